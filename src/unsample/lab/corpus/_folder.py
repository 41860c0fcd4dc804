"""Read a folder of exact ranks, one file for each data set, into the corpus.

The files have the format that `unsample.lab.datasets` writes. They may also have the array
``repeat``, which is true where the target is itself a training item. The table ``about.toml`` of
this package has the family, the source and the licence of each data set, and says whether it is a
knowledge graph or partial.
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
from unsample.posterior import tenths_of_users

#: A data set is of kind ``"repeats"`` if more than this share of its targets are training items.
_REPEATS = 0.05


def read_folder(folder: Path) -> Corpus:
    """Return the histograms of all ranks in a folder.

    Raises
    ------
    FileError
        If there is no file of ranks, or one of another format.
    """
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise FileError(f"folder must hold NAME.npz files with ranks, got none in {folder.name!r}")
    table = tomllib.loads((files("unsample.lab.corpus") / "about.toml").read_text(encoding="utf-8"))
    sets: list[RankSet] = []
    for path in paths:
        with path.open("rb") as file:
            arrays = read_arrays(file, f"the ranks {path.name}")
        sets += _sets(path.stem, arrays, about=table.get(path.stem, {}))
    return Corpus(tuple(sets))


def _sets(
    dataset: str, arrays: Mapping[str, Any], *, about: Mapping[str, Any]
) -> Iterator[RankSet]:
    """Yield the rank sets of a file: of each model, among all items and among unseen items.

    Targets that are training items are left out among unseen items, where they are no candidates.
    """
    ends = tuple(f"_{end}" for end in CANDIDATES.values())
    names_of_ranks = [name for name in arrays if name.endswith(ends)]
    arrays = check_ranks(arrays, names_of_ranks, where=f"the ranks {dataset}.npz")
    items = int(arrays["items"])
    seen = arrays["n_seen"]
    repeat = arrays.get("repeat", np.zeros(len(seen), dtype=bool))
    sizes = {"all": np.full(len(seen), items), "unseen": (items - seen)[~repeat]}
    for candidates, kind in _kinds(repeat.mean(), graph=about.get("graph", False)).items():
        end = f"_{CANDIDATES[candidates]}"
        for name in sorted(name for name in arrays if name.endswith(end)):
            ranks = arrays[name]
            yield RankSet.of_ranks(
                ranks[~repeat] if candidates == "unseen" else ranks,
                sizes[candidates],
                dataset=dataset,
                model=name.removesuffix(end),
                candidates=candidates,
                kind=kind,
                family=about.get("family", dataset),
                partial=bool(about.get("partial", False)),
                seen=() if candidates == "unseen" else tenths_of_users(seen),
            )


def _kinds(repeated: float, *, graph: bool) -> dict[str, str]:
    """Return the kind of a data set by its candidates.

    ``repeated`` is the share of targets that are training items.

    >>> _kinds(0.01, graph=False), _kinds(0.3, graph=False)["all"], _kinds(0.0, graph=True)
    ({'all': 'all', 'unseen': 'unseen'}, 'repeats', {'unseen': 'graph'})
    """
    if graph:
        return {"unseen": "graph"}
    return {"all": "repeats" if repeated > _REPEATS else "all", "unseen": "unseen"}
