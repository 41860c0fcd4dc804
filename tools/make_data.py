"""Make anew the data that ship: ``python tools/make_data.py ranks FOLDER | bank FOLDER | prior``.

``ranks`` takes a folder with the ranks of every recommender on every data set, put there by
``python -m unsample.lab train --validate`` (ml-1m without ``--validate``). ``bank`` takes a folder
of exact ranks on other data sets, and adds the bundled ones and those of
``benchmarks/other_ranks.py``. ``prior`` learns from the bank, some minutes: each family of data
sets is left out in turn, a prior learned from the others is tried on samples of it, and the errors
give the spreads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample._files import write_atomically
from unsample.lab._train import load_trained
from unsample.lab.bank import Bank, RankSet, load_bank, read_folder
from unsample.lab.bank._folder import bundled_sets
from unsample.lab.bank._trials import (
    VERDICT,
    Duel,
    School,
    Trial,
    run_trials,
    spreads,
    standard_errors,
)
from unsample.lab.datasets import names
from unsample.lab.paper import RECOMMENDERS
from unsample.metrics import parse_all

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "unsample"
SIZES = (20, 49, 99, 199, 499)
METRICS = parse_all(
    [f"{name}@{k}" for name in ("NDCG", "Recall", "AP") for k in (1, 5, 10, 20, 50)]
)


def make_ranks(folder: Path, out: Path) -> None:
    """Put the ranks of all recommenders together, users shuffled, and say where they come from."""
    provenance = {}
    for dataset in names():
        arrays, recommenders = {}, {}
        for name in RECOMMENDERS:
            unseen, every = (
                load_trained(folder, dataset, name, candidates=kind) for kind in ("unseen", "all")
            )
            order = np.random.default_rng(1).permutation(len(unseen))
            arrays[f"{name}.everyday"] = unseen.ranks[order].astype(np.uint16)
            arrays[f"{name}.paper"] = every.ranks[order].astype(np.uint16)
            arrays["items.everyday"] = unseen.items[order].astype(np.uint16)
            recommenders |= unseen.provenance["recommenders"]
        command = f"python -m unsample.lab train {dataset} MODEL --validate"
        provenance[dataset] = {
            **unseen.provenance,
            "command": command,
            "recommenders": recommenders,
        }
        write_atomically(out / f"{dataset}.npz", partial(np.savez_compressed, **arrays))
    text = json.dumps(provenance, indent=1) + "\n"
    write_atomically(out / "provenance.json", lambda file: file.write(text.encode()))


def make_bank(folder: Path, out: Path) -> None:
    """Count the ranks of a folder, the bundled ones, and those of four more recommenders."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import other_ranks

    bundled = bundled_sets()
    sets = list(bundled.sets)
    for one in {each.dataset: each for each in bundled}.values():
        about = {key: getattr(one, key) for key in ("dataset", "group", "family", "partial")}
        for model in other_ranks.NAMES:
            for candidates in ("unseen", "all"):
                ranks, sizes = other_ranks.load(one.dataset, model, candidates)
                named = about | {"model": model, "candidates": candidates, "kind": candidates}
                sets.append(RankSet.of_ranks(ranks, sizes, **named))
    Bank(tuple(sets), bundled.sources).add(read_folder(folder)).save(out)


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


def make_prior(out: Path) -> None:
    """Learn the prior from the bank, and its spreads from families left out."""
    trials: list[Trial] = []
    duels: list[Duel] = []
    with ProcessPoolExecutor() as pool:
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
    prior.save(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ranks", "bank", "prior"))
    parser.add_argument("folder", type=Path, nargs="?", help="of ranks, for ranks and bank")
    parser.add_argument("--out", type=Path, help="instead of the place in the package")
    chosen = parser.parse_args()
    if chosen.what == "ranks":
        make_ranks(chosen.folder, chosen.out or PACKAGE / "lab" / "datasets" / "bundled")
    elif chosen.what == "bank":
        make_bank(chosen.folder, chosen.out or PACKAGE / "lab" / "bank" / "bank.npz")
    else:
        make_prior(chosen.out or PACKAGE / "estimators" / "prior" / "learned.npz")


if __name__ == "__main__":
    main()
