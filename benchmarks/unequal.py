"""What negatives drawn by popularity tell, beside uniform ones of the same number.

python benchmarks/unequal.py [runs] [data set ...]

A recommender scores every item once; then 100 negatives for each target are drawn again and again,
by popularity (with and without replacement in turn) and uniformly. Printed are the relative errors
(root mean square) of the estimates, the half-widths of the 95 % intervals, and how many of them
hold. The data sets must be at hand (UNSAMPLE_DATA, or `python -m unsample.lab fetch`).
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab.datasets import standard_split
from unsample.lab.recommenders import EASE, ItemKNN

SIZE = 100
METRICS = ["Recall@10", "NDCG@10"]
#: EASE inverts a matrix of all items, which takes minutes on the larger set.
MODELS = {"ml-1m": {"EASE": EASE, "itemKNN": ItemKNN}, "citeulike-a": {"itemKNN": ItemKNN}}
ROWS = 256


@dataclass(frozen=True, eq=False)
class World:
    """Which items beat each target, which could be drawn, and how popular items are."""

    beats: np.ndarray
    candidates: np.ndarray
    popularity: np.ndarray

    @property
    def items(self) -> np.ndarray:
        return 1 + self.candidates.sum(axis=1)

    def truth(self, name: str) -> float:
        ranks = 1 + self.beats.sum(axis=1)
        return float(unsample.metrics.parse(name).weights(ranks, len(self.popularity)).mean())

    def draw(self, rng: np.random.Generator, weights: np.ndarray, replacement: bool) -> np.ndarray:
        found = np.empty((len(self.beats), SIZE), dtype=np.int64)
        for user, candidate in enumerate(self.candidates):
            own = weights * candidate
            if replacement:
                below = np.cumsum(own)
                found[user] = np.searchsorted(below, rng.random(SIZE) * below[-1], side="right")
            else:
                with np.errstate(divide="ignore"):
                    times = rng.exponential(size=len(own)) / own
                found[user] = np.argpartition(times, SIZE)[:SIZE]
        return found

    def by_popularity(self, rng: np.random.Generator, replacement: bool) -> unsample.Estimates:
        lists = self.draw(rng, self.popularity, replacement)
        table = {
            "user": np.repeat(np.arange(len(lists)), SIZE),
            "item": lists.ravel(),
            "beats": np.take_along_axis(self.beats, lists, axis=1).ravel().astype(float),
        }
        return unsample.estimate(
            table,
            items=len(self.popularity),
            probabilities=self.popularity / self.popularity.sum(),
            exclude=scipy.sparse.csr_array(~self.candidates),
            replacement=replacement,
            metrics=METRICS,
            candidates="unseen",
        )

    def uniform(self, rng: np.random.Generator) -> unsample.Estimates:
        lists = self.draw(rng, np.ones(len(self.popularity)), True)
        ranks = 1 + np.take_along_axis(self.beats, lists, axis=1).sum(axis=1)
        return unsample.estimate(
            ranks,
            items=self.items,
            sampled=SIZE,
            metrics=METRICS,
            method=["auto", "mle"],
            candidates="unseen",
        )


def load(dataset: str, kind: type) -> World:
    """Score every item for every target."""
    split = standard_split(dataset, validation=False)
    seen = split.history().matrix().tocsr()
    model = kind()
    model.fit_split(split)
    beats, candidates = [], []
    for start in range(0, len(split.target_user), ROWS):
        users, targets = (
            each[start : start + ROWS] for each in (split.target_user, split.target_item)
        )
        rows = np.arange(len(users))
        free = seen[users].toarray() == 0
        free[rows, targets] = False
        scores = model.score_all(users).astype(np.float64)
        scores += 1e-9 * np.random.default_rng(start).random(scores.shape)
        beats.append((scores > scores[rows, targets][:, None]) & free)
        candidates.append(free)
    # Items that nobody has rated can be drawn as well.
    popularity = 1.0 + np.asarray(seen.sum(axis=0), dtype=np.float64).ravel()
    return World(np.concatenate(beats), np.concatenate(candidates), popularity)


def main() -> None:
    """Print a row for each recommender, metric and way to draw."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    warnings.simplefilter("ignore", UnsampleWarning)
    print("data set     model    metric     drawn by            error  half-width  held")
    for dataset in sys.argv[2:] or MODELS:
        for model, kind in MODELS[dataset].items():
            world = load(dataset, kind)
            rows: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
            for run in range(runs):
                rng = np.random.default_rng(run)
                found = (world.by_popularity(rng, run % 2 == 0), world.uniform(rng))
                for entry in (entry for result in found for entry in result.entries):
                    row = (entry.value, *entry.interval())
                    rows.setdefault((entry.metric.name, entry.method), []).append(row)
            for (metric, method), values in rows.items():
                value, low, high = np.array(values).T
                truth = world.truth(metric)
                error = np.sqrt(np.mean((value / truth - 1.0) ** 2))
                width = np.median(high - low) / 2.0 / truth
                held = np.mean((low <= truth) & (truth <= high))
                how = "popularity" if method == "weighted" else f"uniform, {method}"
                print(
                    f"{dataset:12} {model:8} {metric:10} {how:18} {error:6.1%}  {width:9.0%} "
                    f"{held:6.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
