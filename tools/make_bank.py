"""Make the bank of the package from a folder of exact ranks: ``python tools/make_bank.py FOLDER``.

The bundled ranks of the paper's four data sets are added, and the ranks of other recommenders on
them (``benchmarks/other_ranks.py``). ``unsample bank add`` adds a folder to a bank of one's own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unsample.lab.bank import Bank, RankSet, read_folder
from unsample.lab.bank._folder import bundled_sets

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "src" / "unsample" / "lab" / "bank" / "bank.npz"


def others(bundled: Bank) -> Bank:
    """Return four more recommenders on the data sets whose ranks are bundled."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import other_ranks

    sets = []
    for one in {each.dataset: each for each in bundled}.values():
        about = {key: getattr(one, key) for key in ("dataset", "group", "family", "partial")}
        for model in other_ranks.NAMES:
            for candidates in ("unseen", "all"):
                ranks, sizes = other_ranks.load(one.dataset, model, candidates)
                named = about | {"model": model, "candidates": candidates, "kind": candidates}
                sets.append(RankSet.of_ranks(ranks, sizes, **named))
    return Bank(tuple(sets))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=PLACE)
    chosen = parser.parse_args()
    bundled = bundled_sets()
    more = others(bundled)
    bank = Bank((*bundled.sets, *more.sets), bundled.sources).add(read_folder(chosen.folder))
    bank.save(chosen.out)
    size = chosen.out.stat().st_size
    names = {each.dataset for each in bank}
    print(f"{len(bank)} rank sets of {len(names)} data sets, {size:,} bytes")


if __name__ == "__main__":
    main()
