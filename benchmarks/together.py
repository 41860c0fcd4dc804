"""What it gives to evaluate two models together: paired intervals, and guides for nothing.

python benchmarks/together.py [runs] [data set]

EASE and itemKNN are evaluated in one call, guided by popularity at first. Each run draws other
users like these (with replacement) and evaluates anew; the difference over all users is the truth.
Training takes a minute, so the scores are kept in out/together.

The data sets must be at hand (UNSAMPLE_DATA, or `python -m unsample.lab fetch`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import unsample
from unsample.lab.datasets import standard_split
from unsample.lab.recommenders import create

METRICS = ["NDCG@10", "Recall@10"]
MODELS = ("ease", "itemknn")
#: Items for each target and model.
COSTS = {"ml-1m": (99, 200), "citeulike-a": (500,)}
FOLDER = Path("out/together")


@dataclass(frozen=True, eq=False)
class World:
    """Targets, training pairs, and the scores of every model."""

    targets: np.ndarray
    exclude: csr_array
    scores: dict[str, np.ndarray]

    def models(self, rows: np.ndarray, names: tuple[str, ...] = MODELS) -> dict[str, Any]:
        """Return scorers for some users, perhaps repeated, numbered anew."""
        return {
            name: lambda users, items, held=self.scores[name]: held[rows[users][:, None], items]
            for name in names
        }

    def evaluate(self, rows: np.ndarray, scorer: Any, **options: Any) -> Any:
        """Evaluate one model or several for some users."""
        targets = np.arange(len(rows)), self.targets[rows]
        given = {"items": self.exclude.shape[1], "exclude": self.exclude[rows], "resamples": 0}
        return unsample.evaluate(scorer, targets, metrics=METRICS, **given, **options)


def load(dataset: str) -> World:
    """Return targets and scores of a data set; the models are trained once."""
    split = standard_split(dataset, validation=False)
    users = split.target_user
    exclude = csr_array(split.history().matrix().tocsr()[users])
    scores = {}
    for name in MODELS:
        path = FOLDER / f"{dataset}-{name}.npy"
        if not path.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            model = create(name)
            model.fit_split(split)
            parts = np.array_split(users, 64)
            found = np.concatenate([np.float32(model.score_all(part)) for part in parts])
            np.save(path, found)
        scores[name] = np.load(path, mmap_mode="r")[:]
    return World(split.target_item, exclude, scores)


def table(dataset: str, runs: int) -> None:
    """Print widths, coverage and costs."""
    world = load(dataset)
    everyone = np.arange(len(world.targets))
    exact = world.evaluate(everyone, world.models(everyone), design="exact")
    for metric in METRICS:
        values = ", ".join(f"{name} {exact.estimates[name][metric].value:.4f}" for name in MODELS)
        print(f"{dataset} {metric}: {values}; {exact.difference(*MODELS, metric)}", flush=True)
    print("| items | metric | error | paired | covers | unpaired | covers | narrower by |")
    print("|" + " --- |" * 8, flush=True)
    for cost in COSTS[dataset]:
        rng = np.random.default_rng(cost)
        rows = []
        for seed in range(runs):
            some = rng.integers(len(everyone), size=len(everyone))
            budget = len(MODELS) * (cost + 1) * len(everyone)
            paired = world.evaluate(some, world.models(some), budget=budget, rng=seed)
            alone = unsample.compare(paired.estimates, metrics=METRICS, paired=False)
            rows.append(
                [
                    (one.value, one.low, one.high, two.low, two.high)
                    for one, two in zip(paired.differences, alone.differences, strict=True)
                ]
            )
        for place, metric in enumerate(METRICS):
            value, low, high, wide_low, wide_high = np.array(rows)[:, place].T
            true = exact.difference(*MODELS, metric).value
            half, wide = np.mean(high - low) / 2, np.mean(wide_high - wide_low) / 2
            cells = [
                f"{value.std(ddof=1):.5f}",
                f"{half:.5f}",
                f"{np.mean((low <= true) & (true <= high)):.3f}",
                f"{wide:.5f}",
                f"{np.mean((wide_low <= true) & (true <= wide_high)):.3f}",
                f"{1 - half / wide:.0%}",
            ]
            print("|", " | ".join([str(cost), metric, *cells]), "|", flush=True)
    costs(world, everyone)


def costs(world: World, everyone: np.ndarray) -> None:
    """Print what the second model costs alone, and when the first one has been evaluated."""
    for order in (MODELS, MODELS[::-1]):
        models = world.models(everyone, order)
        both = world.evaluate(everyone, models, design="certified").estimates[order[1]]
        alone = world.evaluate(everyone, models[order[1]], design="certified")
        budget = 200 * len(everyone)
        led = world.evaluate(everyone, models, budget=2 * budget).estimates[order[1]]
        solo = world.evaluate(everyone, models[order[1]], budget=budget)
        widths = [np.ptp(each["NDCG@10"].interval(population=False)) / 2 for each in (solo, led)]
        relative = " and ".join(f"{width / alone['NDCG@10'].value:.2%}" for width in widths)
        print(
            f"{order[1]} alone and after {order[0]}: certified share {alone.share:.4f} and "
            f"{both.share:.4f}; guided, 199 items a target, half-width of NDCG@10 {relative}"
        )


if __name__ == "__main__":
    table(sys.argv[2] if len(sys.argv) > 2 else "ml-1m", int(sys.argv[1]) if sys.argv[1:] else 100)
