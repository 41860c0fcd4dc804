"""Learn the shipped prior from the bank: ``python tools/make_prior.py``, some minutes.

Each family of data sets is left out in turn, and a prior learned from the others is tried on
samples of it; the errors give the spreads. The prior itself is then learned from all.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from unsample.lab.bank import load_bank
from unsample.lab.bank._trials import (
    VERDICT,
    Duel,
    School,
    Trial,
    run_trials,
    spreads,
    standard_errors,
)
from unsample.metrics import parse_all

PLACE = Path(__file__).resolve().parents[1] / "src/unsample/estimators/prior/learned.npz"
SIZES = (20, 49, 99, 199, 499)
METRICS = parse_all(
    [f"{name}@{k}" for name in ("NDCG", "Recall", "AP") for k in (1, 5, 10, 20, 50)]
)


@cache
def school() -> School:
    return School.of(load_bank())


def fold(family: str) -> tuple[list[Trial], list[Duel]]:
    prior = school().without(family)
    sets = [each for each in school().sets if each.family == family]
    trials: list[Trial] = []
    duels: list[Duel] = []
    for sampled in SIZES:
        some, pairs = run_trials(prior, sets, sampled, METRICS)
        trials += some
        duels += pairs
    return trials, duels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PLACE)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    trials: list[Trial] = []
    duels: list[Duel] = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for some, pairs in pool.map(fold, sorted({each.family for each in school().sets})):
            trials += some
            duels += pairs
            print(".", end="", file=sys.stderr, flush=True)
    sets = school().sets
    data_sets = len({each.dataset for each in sets})
    prior = (
        school()
        .without(None)
        .calibrated(
            spreads(list(standard_errors(trials))),
            spreads(list(standard_errors(duels)), level=VERDICT),
            note=f"{len(sets)} full evaluations on {data_sets} data sets",
        )
    )
    prior.save(chosen.out)
    print(f"\n{prior}, {chosen.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
