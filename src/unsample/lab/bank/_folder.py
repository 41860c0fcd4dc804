"""A folder of exact ranks, one file a data set, into the bank.

``NAME.npz`` holds ``items`` (N), ``n_seen`` (training items of each target's user), optionally
``repeat`` (the target is itself a training item), and ranks ``MODEL_1`` with training items
excluded and ``MODEL_0`` with them kept. ``about.toml`` in this package says for each name its
group, family, source, licence, and whether it is a graph or partial.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample._checks import IntArray
from unsample.errors import DatasetError, FileError
from unsample.lab.bank._bank import Bank, RankSet

#: Share of targets that are training items above which a data set is one of repeats.
_REPEATS = 0.05
_PROTOCOLS = {"1": "unseen", "0": "all"}


def read_folder(folder: Path) -> Bank:
    """Return the histograms of all ranks in a folder."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise FileError(f"folder must hold NAME.npz files with ranks, got none in {folder.name!r}")
    table = _about()
    sets: list[RankSet] = []
    sources = {}
    for path in paths:
        entry = table.get(path.stem, {})
        with path.open("rb") as file:
            arrays = read_arrays(file, f"the ranks {path.name}")
        sets += _sets(path.stem, entry, arrays)
        sources[path.stem] = _source(entry)
    return Bank(tuple(sets), sources)


def _sets(name: str, entry: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[RankSet]:
    missing = {"items", "n_seen"} - set(arrays)
    if missing:
        raise DatasetError(f"{name}.npz must hold items and n_seen, it lacks {sorted(missing)}")
    items, seen = int(arrays["items"]), arrays["n_seen"].astype(np.int64)
    repeat = arrays.get("repeat", np.zeros(len(seen), dtype=bool)).astype(bool)
    graph = bool(entry.get("graph", False))
    for key, values in sorted(arrays.items()):
        model, _, protocol = key.rpartition("_")
        if protocol not in _PROTOCOLS or not model:
            continue
        candidates = _PROTOCOLS[protocol]
        if graph and candidates == "all":
            continue
        chosen = ~repeat if candidates == "unseen" else np.ones(len(seen), dtype=bool)
        kind = "graph" if graph else candidates
        if kind == "all" and repeat.mean() > _REPEATS:
            kind = "repeats"
        sizes: IntArray = items - seen if candidates == "unseen" else np.full(len(seen), items)
        about = _fields(name, entry) | {"model": model, "candidates": candidates, "kind": kind}
        yield RankSet.of_ranks(values.astype(np.int64)[chosen], sizes[chosen], **about)


def _fields(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataset": name,
        "group": entry.get("group", "other"),
        "family": entry.get("family", name),
        "partial": bool(entry.get("partial", False)),
    }


def _source(entry: Mapping[str, Any]) -> dict[str, str]:
    return {key: entry.get(key, "") for key in ("source", "licence")}


def _about() -> dict[str, Any]:
    text = (files("unsample.lab.bank") / "about.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
