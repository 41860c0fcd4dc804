"""Does averaging an estimate over bootstrap samples help? RMSE of the average against RMSE of MLE.

The paper left this variance reduction as future work. ``python benchmarks/bagging.py`` prints, for
each data set, kind of candidates and K, the ratio of root mean square errors over repeated draws.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab.datasets import load_ranks
from unsample.law import draw_sampled_ranks

REPEATS, RESAMPLES, SAMPLED = 20, 100, 99
METRICS = ["NDCG@10", "NDCG@50", "Recall@100"]


def errors(dataset: str, candidates: str, recommender: str) -> np.ndarray:
    """Return the errors (repeats x metrics x plain or averaged), relative to the exact value."""
    truth = load_ranks(dataset, recommender, candidates=candidates)
    exact = unsample.exact(truth.ranks, items=truth.items, metrics=METRICS, resamples=0)
    rng = np.random.default_rng(0)
    found = np.empty((REPEATS, len(METRICS), 2))
    for repeat in range(REPEATS):
        drawn = draw_sampled_ranks(truth.ranks, items=truth.items, sampled=SAMPLED, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = unsample.estimate(
                drawn,
                items=int(np.median(truth.items)),
                sampled=SAMPLED,
                metrics=METRICS,
                method="mle",
                resamples=RESAMPLES,
                rng=rng,
            )
        for column, entry in enumerate(result.entries):
            value = exact[entry.metric].value
            found[repeat, column] = np.array([entry.value, entry.replicates.mean()]) / value - 1.0
    return found


def main() -> None:
    """Print the ratios and their geometric mean."""
    ratios = []
    for dataset, candidates in itertools.product(("ml-1m", "citeulike-a"), ("unseen", "all")):
        for recommender in ("ease", "itemknn", "als"):
            found = errors(dataset, candidates, recommender)
            rmse = np.sqrt((found**2).mean(axis=0))
            spread = found.std(axis=0)
            ratio = rmse[:, 1] / rmse[:, 0]
            ratios.append(ratio)
            cells = "  ".join(
                f"{name} {one:.2f} (sd {two:.2f})"
                for name, one, two in zip(METRICS, ratio, spread[:, 1] / spread[:, 0], strict=True)
            )
            print(f"{dataset:<12} {candidates:<9} {recommender:<8} {cells}", flush=True)
    print("geometric mean of RMSE ratios:", np.exp(np.log(ratios).mean(axis=0)).round(3))


if __name__ == "__main__":
    main()
