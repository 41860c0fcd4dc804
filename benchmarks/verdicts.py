"""How often the verdicts of `compare` are right: ``make coverage``.

Full ranks of real recommenders play the truth. Each repeat draws sampled ranks of all of them for
the same users, asks `compare` for verdicts on every pair and metric at 95 %, and checks them
against the exact metrics. Beside the verdicts by chance stand those that are proven. Both data sets
are in the bank that the prior was learned from; ``benchmarks/bank.py`` leaves data sets out.
"""

from __future__ import annotations

import argparse
import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

import unsample
from unsample.lab.datasets import load_ranks
from unsample.law import draw_sampled_ranks

RECOMMENDERS = ("ease", "itemknn", "als", "multivae", "neumf")
METRICS = [f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in (5, 10, 20, 50, 100)]
STATEMENTS = {"unseen": (None, "unseen"), "all": (None, "all")}


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
        name: unsample.exact(one.ranks, items=one.items, metrics=METRICS, resamples=0)
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


def main() -> None:
    """Print the tallies by setting and in all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--datasets", nargs="+", default=["ml-1m", "citeulike-a"])
    parser.add_argument("--sampled", nargs="+", type=int, default=[99, 499])
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    work = [
        (dataset, candidates, sampled, stated, args.repeats)
        for dataset, candidates, sampled in itertools.product(
            args.datasets, STATEMENTS, args.sampled
        )
        for stated in STATEMENTS[candidates]
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


if __name__ == "__main__":
    main()
