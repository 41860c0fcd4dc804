"""Makes ranks.csv: sampled ranks of 6,040 targets with known global ranks. Prints the truth."""

import sys
from pathlib import Path

import numpy as np

import unsample
from unsample.sampling import SamplingModel

rng = np.random.default_rng(2021)
global_ranks = np.minimum(3706, np.ceil(3706 * rng.beta(0.45, 2.6, 6040))).astype(int)
sampled_ranks = SamplingModel(items=3706, sampled=99).draw(global_ranks, rng=rng)
text = "rank\n" + "".join(f"{rank}\n" for rank in sampled_ranks)
path = Path(*sys.argv[1:] or [Path(__file__).with_name("ranks.csv")])
path.write_text(text, encoding="ascii")
print(unsample.exact(global_ranks, items=3706, metrics=["Recall@10", "NDCG@10", "Recall@50"]))  # noqa: T201
