"""Linear programs at random and near the border of feasibility: how long does the slowest take?

    python benchmarks/programs.py --random 100000 --near 10000 --workers 16

A program is that of a random histogram: sampled ranks of a random law, in a random catalogue, of
1 to 10^6 targets, under one of the shapes, for a random metric. Near the border, the number of
targets is such that the data need all but a thousandth of what chance allows, or a thousandth more.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from unsample.confidence import SHAPES, Stratum
from unsample.confidence._program import InfeasibleError, Program
from unsample.confidence._strata import strata_of
from unsample.evidence import RankCounts
from unsample.law import Law
from unsample.metrics import parse

#: How far the data may be from the border, as a share of what chance allows.
NEAR = 1e-3


@dataclass(frozen=True)
class Timed:
    """One program: how long it took, what came out, and how to make it again."""

    seconds: float
    outcome: str
    seed: int


def program_of(seed: int, *, near: bool) -> tuple[Program, Stratum, int]:
    """Return a program, what it is of, and the K of a metric."""
    rng = np.random.default_rng(seed)
    items = round(float(np.exp(rng.uniform(np.log(10), np.log(100_000)))))
    sampled = round(float(np.exp(rng.uniform(0.0, np.log(min(items - 1, 1000))))))
    targets = round(float(np.exp(rng.uniform(0.0, np.log(1e6)))))
    mass = np.arange(1.0, items + 1) ** -rng.uniform(0.0, 2.5)
    share = rng.uniform(0.0, 0.6) if near else rng.choice([0.0, rng.uniform(0.0, 0.6)])
    mass *= (1.0 - share) / mass.sum()
    mass[round(float(np.exp(rng.uniform(0.0, np.log(items))))) - 1] += share
    law = Law(items, sampled)
    ranks = law.draw(1 + rng.choice(items, size=min(targets, 20_000), p=mass), rng=rng)
    histogram = np.bincount(ranks, minlength=sampled + 2)[1:]
    counts = RankCounts.from_histogram(histogram, law)
    k = round(float(np.exp(rng.uniform(0.0, np.log(items)))))
    shape = SHAPES[str(rng.choice(["power", "depleted", "non-increasing", "none"]))]
    counts = _times(counts, max(targets / counts.total, 1.0))
    (stratum,) = strata_of(counts, [k])
    if near:
        for _ in range(4):
            strain = stratum.program(shape, 0.05).strain
            if not 0.0 < strain < np.inf or abs(strain - 1.0) < NEAR:
                break
            counts = _times(counts, (1.0 + rng.uniform(-NEAR, NEAR)) / strain**2)
            (stratum,) = strata_of(counts, [k])
    return replace(stratum, _programs={}).program(shape, 0.05), stratum, k


def _times(counts: RankCounts, factor: float) -> RankCounts:
    """Return the same shares of more or fewer targets."""
    weight = counts.weight * factor
    return replace(counts, weight=weight, weight_squared=weight)


def timed(task: tuple[int, bool]) -> Timed:
    """Build a program and solve it."""
    seed, near = task
    program, stratum, k = program_of(seed, near=near)
    metric = parse(f"{('Recall', 'NDCG')[seed % 2]}@{k}")
    weights = stratum.weights(metric)
    started = time.process_time()
    try:
        found = program.lowest(weights if seed % 4 < 2 else -weights)
        outcome = "solved" if any(score.any() for score in found.scores) else "loosest or free"
    except InfeasibleError:
        outcome = "infeasible"
    return Timed(time.process_time() - started, outcome, seed)


def main() -> None:
    """Run both kinds and print the slowest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--near", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.workers) as pool:
        for name, size, near in (("random", given.random, False), ("near", given.near, True)):
            found = list(pool.map(timed, ((seed, near) for seed in range(size)), chunksize=50))
            seconds = np.array([each.seconds for each in found])
            slowest = found[int(seconds.argmax())]
            kinds = {each.outcome: 0 for each in found}
            for each in found:
                kinds[each.outcome] += 1
            print(
                f"{name}: {size:,} programs, slowest {seconds.max():.3f} s (seed {slowest.seed}, "
                f"{slowest.outcome}), 99.9 % within {np.quantile(seconds, 0.999):.3f} s, median "
                f"{np.median(seconds) * 1e3:.1f} ms; {kinds}",
                flush=True,
            )


if __name__ == "__main__":
    main()
