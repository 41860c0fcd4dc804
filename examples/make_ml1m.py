"""Makes ease.csv and multivae.csv: two recommenders on ml-1m, ranked among 99 sampled items.

Their full ranks come with the library: each of 6,040 users has one target, ranked among all items
that the user had not seen, so that the number of candidates differs by user. Prints the truth.
"""

import sys
from pathlib import Path

import unsample
from unsample.lab import load_ranks

METRICS = ["Recall@10", "NDCG@10", "Recall@50"]
folder = Path(*sys.argv[1:] or [Path(__file__).parent])
for name, seed in (("ease", 2021), ("multivae", 2022)):
    full = load_ranks("ml-1m", name, candidates="unseen")
    design = unsample.designs.Fixed(99)
    sampled = design.simulate(full.ranks, items=full.items, rng=seed)
    rows = zip(sampled.ranks, full.items, strict=True)
    text = "rank,items\n" + "".join(f"{rank},{items}\n" for rank, items in rows)
    (folder / f"{name}.csv").write_text(text, encoding="ascii")
    print(name, unsample.exact(full.ranks, items=full.items, metrics=METRICS), sep=": ")  # noqa: T201
