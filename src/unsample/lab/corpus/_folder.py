"""A folder of exact ranks, one file a data set, into the bank.

They are written as `unsample.lab.datasets` writes those that it trains, maybe with ``repeat``: the
target is itself a training item. ``about.toml`` in this package says for each name its family,
source, licence, and whether it is a graph or partial.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample.errors import FileError, InputError
from unsample.lab.bank._bank import Bank, RankSet
from unsample.lab.datasets import CANDIDATES

#: Share of targets that are training items above which a data set is one of repeats.
_REPEATS = 0.05


def read_folder(folder: Path) -> Bank:
    """Return the histograms of all ranks in a folder."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise FileError(f"folder must hold NAME.npz files with ranks, got none in {folder.name!r}")
    table = tomllib.loads((files("unsample.lab.bank") / "about.toml").read_text(encoding="utf-8"))
    sets: list[RankSet] = []
    for path in paths:
        with path.open("rb") as file:
            arrays = read_arrays(file, f"the ranks {path.name}")
        sets += _sets(path.stem, table.get(path.stem, {}), arrays)
    return Bank(tuple(sets))


def _sets(name: str, entry: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[RankSet]:
    missing = {"items", "n_seen"} - set(arrays)
    if missing:
        raise InputError(f"{name}.npz must hold items and n_seen, it lacks {sorted(missing)}")
    items, seen = int(arrays["items"]), arrays["n_seen"].astype(np.int64)
    repeat = arrays.get("repeat", np.zeros(len(seen), dtype=bool)).astype(bool)
    every = np.full(len(seen), items)
    repeats = "repeats" if repeat.mean() > _REPEATS else "all"
    kinds = {"all": (every, repeats), "unseen": ((items - seen)[~repeat], "unseen")}
    if entry.get("graph", False):
        kinds = {"unseen": (kinds["unseen"][0], "graph")}
    for candidates, (sizes, kind) in kinds.items():
        end = f"_{CANDIDATES[candidates]}"
        for array in sorted(array for array in arrays if array.endswith(end)):
            ranks = arrays[array].astype(np.int64)
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
