"""Make anew the data that ship: ``python tools/make_data.py ranks FOLDER | corpus FOLDER``.

``ranks`` takes a folder with the ranks of every recommender on every data set, put there by
``python -m unsample.lab train``. ``corpus`` takes a folder of exact ranks on other data sets, and
adds them to the corpus. The prior is learned from the corpus by ``benchmarks/calibration.py``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from unsample.lab.corpus import load_corpus, read_folder
from unsample.lab.datasets import read_rank_file, write_rank_file

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "unsample"


def make_ranks(folder: Path, out: Path) -> None:
    """Shuffle the users of each file of ranks, and store as few bytes as numbers need."""
    for path in sorted(folder.glob("*.npz")):
        arrays, about = read_rank_file(path)
        order = np.random.default_rng(1).permutation(len(arrays["n_seen"]))
        items = arrays.pop("items")
        shuffled = {name: array[order].astype(np.uint16) for name, array in arrays.items()}
        write_rank_file(out / path.name, {"items": items, **shuffled}, about)


def make_corpus(folder: Path, out: Path) -> None:
    """Count the ranks of a folder; its data sets take the place of those with the same name."""
    load_corpus().add(read_folder(folder)).save(out / "corpus.npz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ranks", "corpus"))
    parser.add_argument("folder", type=Path, help="of ranks")
    parser.add_argument("--out", type=Path, help="a folder instead of the place in the package")
    chosen = parser.parse_args()
    if chosen.out is not None and chosen.out.resolve() == chosen.folder.resolve():
        parser.error(
            f"--out must be another folder than {str(chosen.folder)!r}, whose ranks are read"
        )
    if chosen.what == "ranks":
        make_ranks(chosen.folder, chosen.out or PACKAGE / "lab" / "datasets" / "bundled")
    else:
        make_corpus(chosen.folder, chosen.out or PACKAGE / "lab" / "corpus")


if __name__ == "__main__":
    main()
