"""What guided evaluation gives on real recommenders: widths and coverage of its intervals.

python benchmarks/guided.py [runs] [data set ...]

EASE is the model, and each of some guides is tried: plain itemKNN (cosine, 1,000 neighbours),
popularity, a random order, and itemKNN in reverse, which meets the weakest items first. The model
scores once; then only the draws differ from run to run. Training takes minutes, so what is needed
of the scores is kept in out/guided.

The data sets must be at hand (UNSAMPLE_DATA, or `python -m unsample.lab fetch`); `synthetic` is a
small one that is made here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unsample.designs import Certified, Guided
from unsample.designs._simulation import simulated
from unsample.lab.datasets import Interactions, leave_random_out, standard_split
from unsample.lab.recommenders import EASE, ItemKNN
from unsample.metrics import parse_all
from unsample.questions.evaluate.ask import estimates_of

K = 10
METRICS = parse_all(["NDCG@10", "Recall@10"])
#: Items for each target, by data set.
COSTS = {"ml-1m": (99, 200), "citeulike-a": (500,), "synthetic": (30,)}
GUIDES = ("itemknn", "popularity", "random", "reversed")
FOLDER = Path("out/guided")
NEVER = np.iinfo(np.int64).max
ROWS = 256


@dataclass(frozen=True, eq=False)
class World:
    """Full ranks of a model, and where the first K items that beat each target come in an order."""

    ranks: np.ndarray
    items: np.ndarray
    positions: dict[str, np.ndarray]

    @property
    def truth(self) -> list[float]:
        """Return the metrics of all users."""
        return [float(metric.weights(self.ranks, self.items.max()).mean()) for metric in METRICS]

    def take(self, rows: np.ndarray) -> World:
        """Return some users, perhaps more than once."""
        positions = {name: found[rows] for name, found in self.positions.items()}
        return World(self.ranks[rows], self.items[rows], positions)


def load(dataset: str) -> World:
    """Return the ranks of EASE under each guide; computed once."""
    path = FOLDER / f"{dataset}.npz"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        blocks = list(_blocks(dataset))
        whole = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        np.savez(path, **whole)
    with np.load(path) as held:
        positions = {name: held[name] for name in GUIDES}
        return World(held["ranks"], held["items"], positions)


def _blocks(dataset: str) -> Iterator[dict[str, np.ndarray]]:
    if dataset == "synthetic":
        likes = np.random.default_rng(0).random((120, 150)) < 0.8 / np.arange(1, 151) ** 0.5
        split = leave_random_out(Interactions(*likes.nonzero(), 120, 150), rng=0)
    else:
        split = standard_split(dataset)
    seen_by = split.train.matrix().tocsr()
    model, similar = EASE(), ItemKNN(neighbours=1000, weighting="cosine")
    model.fit(split.train)
    similar.fit(split.train)
    popularity = np.asarray(seen_by.sum(axis=0), dtype=np.float64).ravel()
    rng = np.random.default_rng(0)
    for start in range(0, len(split.target_user), ROWS):
        users = split.target_user[start : start + ROWS]
        targets, rows = split.target_item[start : start + ROWS], np.arange(len(users))
        candidate = seen_by[users].toarray() == 0
        scores = model.score_all(users).astype(np.float64)
        own = scores[rows, targets][:, None]
        candidate[rows, targets] = False
        beats = (scores > own) & candidate
        near = similar.score_all(users) + 1e-9 * popularity
        found = {"ranks": 1 + beats.sum(axis=1), "items": 1 + candidate.sum(axis=1)}
        strengths = {
            "itemknn": near,
            "popularity": np.broadcast_to(popularity, scores.shape),
            "random": rng.random(scores.shape),
            "reversed": -near,
        }
        for name, strength in strengths.items():
            order = np.argsort(np.where(candidate, -strength, np.inf), axis=1, kind="stable")
            found[name] = _first_positions(np.take_along_axis(beats, order, axis=1))
        yield found


def _first_positions(beats: np.ndarray) -> np.ndarray:
    """Return the positions, from 1, of the first K that beat each target, or NEVER."""
    positions = np.full((len(beats), K), NEVER)
    count = np.cumsum(beats, axis=1, dtype=np.int32)
    for number in range(K):
        there = count[:, -1] > number
        positions[there, number] = 1 + np.argmax(count[there] > number, axis=1)
    return positions


def shares(dataset: str, world: World) -> None:
    """Print what a certified evaluation costs under each guide, and with which odds as much."""

    def certified(**guide: object) -> float:
        found = simulated(Certified(), world.ranks, world.items, 0, metrics=METRICS, **guide)
        return float(found.scored / world.items.sum())

    print(f"{dataset}: share of targets in the top {K} {np.mean(world.ranks <= K):.4f}")
    for name in GUIDES:
        share, low, high = certified(positions=world.positions[name]), -7.0, 14.0
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if certified(odds=2**middle) > share else (low, middle)
        print(f"  {name}: certified share {share:.4f}, as with odds {2**middle:.2g}", flush=True)


def cell(world: World, guide: str, cost: int, runs: int) -> list[str]:
    """Return, for each metric, bias, error, half-width and coverage as cells of a table."""
    rng, truth = np.random.default_rng([cost, GUIDES.index(guide)]), np.array(world.truth)
    rows, spent = [], []
    for _ in range(runs):
        # The same users, drawn from anew; and other users like these.
        other = world.take(rng.integers(len(world.ranks), size=len(world.ranks)))
        row = []
        for some, population in ((world, False), (other, True)):
            budget = (cost + 1) * len(some.ranks)
            found = simulated(
                Guided(),
                some.ranks,
                some.items,
                rng,
                budget=budget,
                metrics=METRICS,
                positions=some.positions[guide],
            )
            result = estimates_of(found, METRICS)
            spent.append(found.scored / budget)
            limits = [entry.interval(population=population) for entry in result.entries]
            row.append(
                [(entry.value, *ends) for entry, ends in zip(result.entries, limits, strict=True)]
            )
        rows.append(row)
    found, cells = np.array(rows), [f"{np.mean(spent):.3f}"]
    for place, true in enumerate(truth):
        value, low, high = found[:, 0, place].T
        _, wide_low, wide_high = found[:, 1, place].T
        covered = np.mean((low <= true + 1e-12) & (true <= high + 1e-12))
        like_these = np.mean((wide_low <= true) & (true <= wide_high))
        cells += [
            f"{(value.mean() - true) / true:+.2%}",
            f"{value.std(ddof=1) / true:.2%}",
            f"{np.mean(high - low) / 2 / true:.2%}",
            f"{covered:.3f}",
            f"{like_these:.3f}",
        ]
    return cells


def main(runs: int, datasets: list[str]) -> None:
    """Print the table."""
    head = ["data set", "items a target", "guide", "spent"]
    for metric in METRICS:
        head += [f"{metric} bias", "error", "half-width", "covers", "users like these"]
    print("|", " | ".join(head), "|")
    print("|" + " --- |" * len(head), flush=True)
    for dataset in datasets:
        world = load(dataset)
        for cost in COSTS[dataset]:
            for guide in GUIDES:
                cells = cell(world, guide, cost, runs)
                print("|", " | ".join([dataset, str(cost), guide, *cells]), "|", flush=True)
    for dataset in datasets:
        shares(dataset, load(dataset))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, sys.argv[2:] or ["ml-1m", "citeulike-a"])
