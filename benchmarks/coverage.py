"""How often `interval(0.95)` covers, and how often verdicts of `compare` are right.

Full ranks of real recommenders play the truth. Each simulation draws sampled ranks from them and
asks for intervals, so every cell below is a coverage of a known value. One CSV row for each cell:
data set, candidates, recommender, sampled, what was said about seen items, metric, exact value,
coverage for users like these and for these users, mean ends of intervals and bounds.

``--verdicts N`` draws sampled ranks of five recommenders for the same users, N times, asks for
verdicts of `compare` on every pair and metric at 95 %, and checks them against the exact metrics.
Beside the verdicts by chance stand those that are proven. The data sets are in the bank that the
prior was learned from; ``benchmarks/bank.py`` leaves data sets out.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from accuracy import Problem

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab.datasets import load_ranks
from unsample.law import draw_sampled_ranks

RECOMMENDERS = ("ease", "itemknn", "als", "multivae", "neumf")
METRICS = [f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in (5, 10, 20, 50, 100)]
BOUNDS_EVERY = 10
#: What may be said truthfully about each kind of candidates.
TRUE_STATEMENTS = {"unseen": (None, "unseen"), "all": (None, "all")}


@dataclass(frozen=True)
class Cell:
    """The coverage of one metric in one setting."""

    dataset: str
    candidates: str
    recommender: str
    sampled: int
    stated: str
    metric: str
    exact: float
    simulations: int
    covered: float
    covered_these: float
    covered_bounds: float
    low: float
    high: float
    low_these: float
    high_these: float
    bound_low: float
    bound_high: float


def simulate(
    dataset: str, candidates: str, recommender: str, sampled: int, stated: str | None, size: int
) -> list[Cell]:
    """Return the coverage of every metric over ``size`` draws of sampled ranks."""
    ranks, items = Problem(candidates, dataset, recommender, sampled + 1).truth()
    exact = unsample.exact(ranks, items=items, metrics=METRICS)
    rng = np.random.default_rng([sampled, size])
    limits = np.empty((size, len(METRICS), 6))
    for number in range(size):
        drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = unsample.estimate(
                drawn,
                items=items,
                sampled=sampled,
                metrics=METRICS,
                method="naive",
                candidates=stated,
            )
        for column, entry in enumerate(result.entries):
            # Bounds hold with much to spare; they are looked at in every tenth simulation.
            bounds = entry.bounds(0.95) if number % BOUNDS_EVERY == 0 else (np.nan, np.nan)
            limits[number, column] = [
                *entry.interval(0.95, kind="guaranteed"),
                *entry.interval(0.95, kind="guaranteed", population=False),
                *bounds,
            ]
    cells = []
    for column, metric in enumerate(METRICS):
        ends, value = limits[:, column], exact[metric].value
        covered = []
        for kind in range(3):
            low, high = ends[:: BOUNDS_EVERY if kind == 2 else 1, 2 * kind : 2 * kind + 2].T
            covered.append(float(((low <= value) & (value <= high)).mean()))
        said = stated or "not said"
        means = np.nanmean(ends, axis=0).tolist()
        cells.append(
            Cell(
                dataset,
                candidates,
                recommender,
                sampled,
                said,
                metric,
                value,
                size,
                *covered,
                *means,
            )
        )
    return cells


def settings(args: argparse.Namespace) -> list[tuple[str, str, str, int, str | None, int]]:
    """Return the arguments of every simulation to run."""
    return [
        (dataset, candidates, recommender, sampled, stated, args.simulations)
        for dataset, candidates, recommender, sampled in itertools.product(
            args.datasets, TRUE_STATEMENTS, args.recommenders, args.sampled
        )
        for stated in TRUE_STATEMENTS[candidates]
        if args.both_statements or stated is None
    ]


def summary(cells: list[Cell]) -> str:
    """Return coverage and relative widths by setting, and the worst cell of all."""
    lines = [
        "data set      candidates sampled stated     cells  least coverage  width / exact (median)"
    ]
    key = lambda cell: (cell.dataset, cell.candidates, cell.sampled, cell.stated)  # noqa: E731
    for group, members in itertools.groupby(sorted(cells, key=key), key):
        chosen = list(members)
        worst = min(cell.covered for cell in chosen)
        width = np.median([(cell.high - cell.low) / cell.exact for cell in chosen])
        dataset, candidates, sampled, stated = group
        lines.append(
            f"{dataset:<13} {candidates:<9} {sampled:>7}  {stated!s:<9} {len(chosen):>4}  "
            f"{worst:>14.3f}  {width:>10.2f}"
        )
    for name in ("covered", "covered_these", "covered_bounds"):
        worst_cell = min(cells, key=lambda cell: getattr(cell, name))
        where = f"{worst_cell.dataset} {worst_cell.candidates} {worst_cell.recommender}"
        lines.append(
            f"worst {name}: {getattr(worst_cell, name):.3f} ({where}, {worst_cell.sampled} "
            f"sampled, stated {worst_cell.stated}, {worst_cell.metric})"
        )
    return "\n".join(lines)


# -- verdicts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """Verdicts of one setting: how many pairs there were, were called, and were called wrongly."""

    setting: tuple[str, str, int, str | None]
    pairs: int
    called: int
    wrong: int
    proven: int
    wrongly_proven: int


def tally(
    dataset: str,
    candidates: str,
    sampled: int,
    stated: str | None,
    repeats: int,
    *,
    alike: bool = False,
) -> Tally:
    """Return how the verdicts of ``repeats`` draws fared.

    ``alike`` calls a pair as if sampling misled about both models alike, which it does not.
    """
    loaded = {name: load_ranks(dataset, name, candidates=candidates) for name in RECOMMENDERS}
    exact = {
        name: unsample.exact(one.ranks, items=one.items, metrics=METRICS)
        for name, one in loaded.items()
    }
    rng = np.random.default_rng([sampled, repeats])
    seen_so_far = np.zeros(5, dtype=int)
    for _ in range(repeats):
        ranks = {
            name: draw_sampled_ranks(one.ranks, items=one.items, sampled=sampled, rng=rng)
            for name, one in loaded.items()
        }
        result = unsample.compare(
            ranks,
            items=loaded["ease"].items,
            sampled=sampled,
            metrics=METRICS,
            method="auto",
            candidates=stated,
            prior=None if alike else "shipped",
        )
        for one in result.differences:
            truth = exact[one.a][one.metric].value - exact[one.b][one.metric].value
            better = one.a if truth > 0 else one.b
            winner = one.winner
            if alike and not 0.025 < one.chance < 0.975:
                winner = one.a if one.chance > 0.5 else one.b
            seen_so_far += [
                1,
                winner is not None,
                winner not in (None, better),
                one.proven is not None,
                one.proven not in (None, better),
            ]
    return Tally((dataset, candidates, sampled, stated), *seen_so_far.tolist())


def count_verdicts(args: argparse.Namespace) -> None:
    """Print how many verdicts there were and how many of them right, by setting and in all."""
    work = [
        (dataset, candidates, sampled, stated, args.verdicts)
        for dataset, candidates, sampled in itertools.product(
            args.datasets, TRUE_STATEMENTS, args.sampled
        )
        for stated in TRUE_STATEMENTS[candidates]
    ]
    print("data set      candidates sampled stated      pairs   called  right       proven  right")
    with ProcessPoolExecutor(args.workers) as pool:
        tallies = list(pool.map(tally, *zip(*work, strict=True)))
    for one in tallies:
        dataset, candidates, sampled, stated = one.setting
        print(
            f"{dataset:<13} {candidates:<9} {sampled:>7}  {stated or '-':<9} {one.pairs:>6}  "
            f"{100 * one.called / one.pairs:>5.1f} %  {_right(one.called, one.wrong)}  "
            f"{100 * one.proven / one.pairs:>9.1f} %  {_right(one.proven, one.wrongly_proven)}"
        )
    for kind, names in {
        "verdicts": ("called", "wrong"),
        "proven": ("proven", "wrongly_proven"),
    }.items():
        called, wrong = (sum(getattr(one, name) for one in tallies) for name in names)
        print(f"in all: {called} {kind}, {_right(called, wrong).strip()} right")


def _right(called: int, wrong: int) -> str:
    return f"{100 * (1 - wrong / called):>5.1f} %" if called else "      -"


def main() -> None:
    """Simulate, write the cells as CSV, print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--datasets", nargs="+", default=["ml-1m", "citeulike-a"])
    parser.add_argument("--recommenders", nargs="+", default=list(RECOMMENDERS[:3]))
    parser.add_argument("--sampled", nargs="+", type=int, default=[99, 499])
    parser.add_argument("--both-statements", action="store_true")
    parser.add_argument("--verdicts", type=int, metavar="N", help="count verdicts instead")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("out/coverage.csv"))
    args = parser.parse_args()
    if args.verdicts:
        count_verdicts(args)
        return
    work = settings(args)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    cells: list[Cell] = []
    with (
        ProcessPoolExecutor(args.workers) as pool,
        args.out.open("w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.DictWriter(stream, [field.name for field in fields(Cell)])
        writer.writeheader()
        for part in pool.map(simulate, *zip(*work, strict=True)):
            cells.extend(part)
            # Row by row, so that a run that is stopped leaves what it has.
            writer.writerows(asdict(cell) for cell in part)
            stream.flush()
    print(summary(cells))


if __name__ == "__main__":
    main()
