"""Which settings must the paper's tables have been made with? EASE on ml-1m, as in its Table 2.

The ratio of WMLE to MLE and the spread of MES over samples depend on a weight and on eta. This
prints both beside what the paper prints. ``python benchmarks/paper_settings.py [REPEATS]``
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab import load_ranks

METHODS = {
    "mle": "35.33 ± 7.17",
    "mle(iterations=30)": "",
    "mle(iterations=1000)": "",
    "wmle": "36.30 ± 7.41",
    "wmle(weight=ndcg)": "",
    "mes": "35.22 ± 7.36",
    "mes(eta=0.0001)": "",
}


def main(repeats: int) -> None:
    warnings.simplefilter("ignore", UnsampleWarning)
    truth = load_ranks("ml-1m", "ease", candidates="all")
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for seed in range(repeats):
        ranks = unsample.designs.Fixed(99).simulate(truth.ranks, items=truth.items, rng=seed)
        result = unsample.estimate(
            ranks, metrics="Recall@10", method=list(METHODS), resamples=0, candidates="all"
        )
        for entry in result.entries:
            found[entry.method].append(1000 * entry.value)
    middle = np.mean(found["mle"])
    print("method                 ours (x 1000)    over mle  printed")
    for method, printed in METHODS.items():
        values = np.array(found[method])
        text = f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
        print(f"{method:22} {text:16} {values.mean() / middle:8.3f}  {printed}")
    print(f"exact: {1000 * np.mean(truth.ranks <= 10):.2f}, printed 34.77")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
