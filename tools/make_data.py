"""Make anew the data that ship: ``python tools/make_data.py ranks FOLDER | bank FOLDER``.

``ranks`` takes a folder with the ranks of every recommender on every data set, put there by
``python -m unsample.lab train``. ``bank`` takes a folder of exact ranks on other data sets, and
adds them to the bank. The prior is learned from the bank by ``benchmarks/calibration.py``.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample._files import write_atomically
from unsample.lab._train import load_trained
from unsample.lab.bank import load_bank, read_folder
from unsample.lab.datasets import names
from unsample.lab.paper import RECOMMENDERS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "unsample"


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
        command = f"python -m unsample.lab train {dataset} MODEL"
        provenance[dataset] = {
            **unseen.provenance,
            "command": command,
            "recommenders": recommenders,
        }
        write_atomically(out / f"{dataset}.npz", partial(np.savez_compressed, **arrays))
    text = json.dumps(provenance, indent=1) + "\n"
    write_atomically(out / "provenance.json", lambda file: file.write(text.encode()))


def make_bank(folder: Path, out: Path) -> None:
    """Count the ranks of a folder; its data sets take the place of those with the same name."""
    load_bank().add(read_folder(folder)).save(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ranks", "bank"))
    parser.add_argument("folder", type=Path, help="of ranks")
    parser.add_argument("--out", type=Path, help="instead of the place in the package")
    chosen = parser.parse_args()
    if chosen.what == "ranks":
        make_ranks(chosen.folder, chosen.out or PACKAGE / "lab" / "datasets" / "bundled")
    else:
        make_bank(chosen.folder, chosen.out or PACKAGE / "lab" / "bank" / "bank.npz")


if __name__ == "__main__":
    main()
