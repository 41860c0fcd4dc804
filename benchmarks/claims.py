"""How often printed numbers tell two recommenders apart, and whether the verdicts are right.

Full ranks of the bundled recommenders are sampled, their sampled metrics printed with four
decimals, and compared as `unsample.compare` compares papers. Run: python benchmarks/claims.py
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np

import unsample
from unsample.answers import Difference, Published
from unsample.designs import Fixed
from unsample.lab import load_ranks

DATASETS = ("ml-1m", "citeulike-a", "yelp", "pinterest-20")
RECOMMENDERS = ("ease", "itemknn", "neumf", "als", "multivae")
METRICS = [f"{name}@{k}" for name in ("Recall", "NDCG") for k in (10, 20, 50, 100)]
#: What a paper prints, against how many sampled items.
PAPERS = {("HR@10", "NDCG@10"): 99, ("HR@1", "HR@5", "HR@10", "NDCG@10"): 100}


def printed(dataset: str, name: str, names: tuple[str, ...], sampled: int) -> Published:
    """Return what can be said of a recommender from its printed numbers."""
    full = load_ranks(dataset, name)
    rng = 0 if sampled == 99 else 1
    drawn = np.asarray(Fixed(sampled).simulate(full.ranks, items=full.items, rng=rng).ranks)
    found = unsample.exact(drawn, items=sampled + 1, metrics=names, resamples=0)
    return unsample.published(
        {key: f"{entry.value:.4f}" for key, entry in found.items()},
        items=round(float(np.mean(full.items))),
        sampled=sampled,
        users=len(drawn),
        candidates="unseen",
        metrics=METRICS,
    )


def verdict(pair: Difference, truth: dict[str, unsample.Estimates]) -> str:
    """Return what is said of two recommenders, and whether it is true."""
    if pair.winner is None:
        return "not told apart"
    values = {name: truth[name][pair.metric].value for name in (pair.a, pair.b)}
    right = "right" if pair.winner == max(values, key=values.__getitem__) else "WRONG"
    return f"{'proven' if pair.proven else 'by chance'}, {right}"


def main() -> None:
    """Count the verdicts from each set of printed numbers."""
    warnings.simplefilter("ignore", unsample.errors.UnsampleWarning)
    for names, sampled in PAPERS.items():
        verdicts: Counter[str] = Counter()
        for dataset in DATASETS:
            models = {name: printed(dataset, name, names, sampled) for name in RECOMMENDERS}
            truth = {}
            for name in RECOMMENDERS:
                full = load_ranks(dataset, name)
                truth[name] = unsample.exact(
                    full.ranks, items=full.items, metrics=METRICS, resamples=0
                )
            found = unsample.compare(models, correction="none")
            verdicts.update(verdict(pair, truth) for pair in found.differences)
        print(f"{', '.join(names)}: {dict(verdicts)}")


if __name__ == "__main__":
    main()
