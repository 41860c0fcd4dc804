"""Read a folder of exact ranks, one file for each data set, into the corpus.

The files have the format that `unsample.lab.datasets` writes. They may also have ``repeat``: true
where the target is itself a training item. ``about.toml`` in this package tells of each data set
its family, its source, its licence, and whether it is a knowledge graph or partial.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample.errors import FileError
from unsample.lab.corpus._corpus import Corpus, RankSet
from unsample.lab.datasets import CANDIDATES, check_ranks

#: A data set is of kind ``"repeats"`` if more than this share of its targets are training items.
_REPEATS = 0.05


def read_folder(folder: Path) -> Corpus:
    """Return the histograms of all ranks in a folder."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise FileError(f"folder must hold NAME.npz files with ranks, got none in {folder.name!r}")
    table = tomllib.loads((files("unsample.lab.corpus") / "about.toml").read_text(encoding="utf-8"))
    sets: list[RankSet] = []
    for path in paths:
        with path.open("rb") as file:
            arrays = read_arrays(file, f"the ranks {path.name}")
        sets += _sets(path.stem, table.get(path.stem, {}), arrays)
    return Corpus(tuple(sets))


def _sets(name: str, entry: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[RankSet]:
    ends = tuple(f"_{end}" for end in CANDIDATES.values())
    ranks = [array for array in arrays if array.endswith(ends)]
    arrays = check_ranks(arrays, ranks, where=f"the ranks {name}.npz")
    items, seen = int(arrays["items"]), arrays["n_seen"]
    repeat = arrays.get("repeat", np.zeros(len(seen), dtype=bool))
    every = np.full(len(seen), items)
    repeats = "repeats" if repeat.mean() > _REPEATS else "all"
    kinds = {"all": (every, repeats), "unseen": ((items - seen)[~repeat], "unseen")}
    if entry.get("graph", False):
        kinds = {"unseen": (kinds["unseen"][0], "graph")}
    for candidates, (sizes, kind) in kinds.items():
        end = f"_{CANDIDATES[candidates]}"
        for array in sorted(array for array in arrays if array.endswith(end)):
            ranks = arrays[array]
            yield RankSet.of_ranks(
                ranks[~repeat] if candidates == "unseen" else ranks,
                sizes,
                dataset=name,
                model=array.removesuffix(end),
                candidates=candidates,
                kind=kind,
                family=entry.get("family", name),
                partial=bool(entry.get("partial", False)),
            )
