"""What can be had without a guide: a learned one, and a pilot, on a real recommender.

python benchmarks/learned.py [runs] [data set ...]

EASE is the model. Seen items are scored last and not excluded, so that nothing is known of items
beforehand. Certified and guided evaluations meet items in random order, as learned on the way, or
by popularity; a pilot is simulated on the full ranks at the cost of 99 items for each target.

The data sets must be at hand (UNSAMPLE_DATA, or `unsample datasets fetch`).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import unsample
from unsample.answers import Estimates, certified_targets
from unsample.designs import Design, Guided, Pilot
from unsample.lab.datasets import standard_split
from unsample.lab.recommenders import EASE
from unsample.metrics import parse_all

METRICS = parse_all(["NDCG@10", "Recall@10"])
#: Items for each target of a guided evaluation.
COST, COST_OF_PILOT = 200, 99


def _limits(result: Estimates, truth: list[float]) -> list[float]:
    """Return, for each metric, the relative half-width for these users, and whether it covers."""
    found = []
    for metric, true in zip(METRICS, truth, strict=True):
        low, high = result[metric].interval(population=False)
        found += [(high - low) / 2 / true, float(low - 1e-12 <= true <= high + 1e-12)]
    return found


def _row(name: str, share: float, rows: list[list[float]]) -> None:
    width, covers, wide, covered = np.mean(rows, axis=0)
    print(f"| {name} | {share:.4f} | {width:.2%} | {covers:.3f} | {wide:.2%} | {covered:.3f} |")
    sys.stdout.flush()


def main(runs: int, datasets: list[str]) -> None:
    """Print a table for each data set."""
    for dataset in datasets:
        split = standard_split(dataset, validation=False)
        seen = split.history().matrix().tocsr()
        model = EASE()
        model.fit_split(split)
        blocks = np.array_split(np.arange(seen.shape[0]), 20)
        scores = np.concatenate([model.score_all(block) for block in blocks])
        scores[seen.nonzero()] = -1e9
        options: dict[str, Any] = {"items": scores.shape[1], "metrics": METRICS, "resamples": 0}
        targets = split.target_user, split.target_item

        def score(users: Any, items: Any, scores: Any = scores) -> Any:
            return scores[users[:, None], items]

        full = unsample.evaluate(score, targets, design="exact", **options)
        truth = [full[metric].value for metric in METRICS]
        print(f"{dataset}, {COST} items for each target; pilots {COST_OF_PILOT}")
        print("| way | certified share | NDCG@10 half-width | covers | Recall@10 | covers |")
        print("|" + " --- |" * 6)
        guides = {
            "random order": np.random.default_rng(0).random(scores.shape[1]),
            "learned": None,
            "popularity": np.asarray(seen.sum(axis=0)).ravel(),
        }
        for name, guide in guides.items():
            whole = unsample.evaluate(score, targets, design="certified", guide=guide, **options)
            budget = (COST + 1) * len(targets[0])
            rows = [
                _limits(
                    unsample.evaluate(
                        score, targets, budget=budget, guide=guide, rng=seed, **options
                    ),
                    truth,
                )
                for seed in range(runs)
            ]
            _row(name, whole.share, rows)
        designs: list[Design] = [Pilot(), Guided()]
        for design in designs:
            rows = []
            for seed in range(10 * runs):
                found = design.simulate(
                    full.ranks,
                    items=scores.shape[1],
                    budget=(COST_OF_PILOT + 1) * len(full.ranks),
                    rng=seed,
                    metrics=METRICS,
                )
                rows.append(_limits(certified_targets(found, METRICS, None, 0, 0), truth))
            _row(f"{design.name}, simulated in random order", np.nan, rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:] or ["ml-1m"])
