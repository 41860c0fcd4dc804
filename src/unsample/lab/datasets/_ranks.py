"""Exact ranks of recommenders, in one file for each data set.

Some files ship with the package, and `unsample.lab train` writes others.

``NAME.npz`` holds ``items`` (N), ``n_seen`` (training items of each target's user), ranks
``MODEL_1`` with training items excluded and ``MODEL_0`` with them kept, and ``about``: JSON that
says where they come from.

No interaction can be read off the ranks that ship: a rank names neither the user nor the item, and
the users stand in a shuffled order (the same for all recommenders of a data set, so that they can
be compared user by user). ``tools/make_data.py`` puts them together.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays, save_archive, write_arrays
from unsample._checks import LARGEST_CATALOGUE, IntArray, check_choice
from unsample._fields import Field, read_fields, read_object, refuse_unless
from unsample.errors import FileError
from unsample.lab.datasets._records import names

#: Training items excluded from the candidates, or kept as in Jin et al., AAAI 2021; and the end of
#: an array's name.
CANDIDATES = {"unseen": "1", "all": "0"}


@dataclass(frozen=True, eq=False)
class ExactRanks:
    """Global ranks of one recommender on one data set, and where they come from.

    ``candidates`` is ``"unseen"`` where a user's training items were excluded and ``"all"`` where
    they were kept. ``items`` is each target's own N, which differs by user where they are excluded.
    """

    dataset: str
    recommender: str
    candidates: str
    ranks: IntArray = field(repr=False)
    items: IntArray = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ranks)


def load_ranks(
    dataset: str, recommender: str, *, candidates: str = "unseen", folder: Path | None = None
) -> ExactRanks:
    """Load the shipped ranks of a recommender on a data set, among unseen or among all items.

    Parameters
    ----------
    dataset, recommender
        Names such as ``"ml-1m"`` and ``"ease"``; a wrong one is refused with a list of all.
    candidates
        ``"unseen"`` or ``"all"``.
    folder
        Where ``python -m unsample.lab train`` put other ranks, to load these instead.

    Returns
    -------
    ExactRanks
        ``ranks`` and ``items``, the number of candidates, of each target.

    >>> ranks = load_ranks("ml-1m", "ease", candidates="all")
    >>> len(ranks), int(ranks.items.max())
    (6040, 3706)
    """
    check_choice("dataset", dataset, names())
    check_choice("candidates", candidates, CANDIDATES)
    shipped = Path(str(files("unsample.lab.datasets") / "bundled"))
    arrays, about = read_rank_file((folder or shipped) / f"{dataset}.npz")
    made = about["recommenders"]
    check_choice("recommender", recommender, made)
    items = np.full(len(arrays["n_seen"]), arrays["items"], dtype=np.int64)
    if candidates == "unseen":
        items -= arrays["n_seen"]
    return ExactRanks(
        dataset=dataset,
        recommender=recommender,
        candidates=candidates,
        ranks=arrays[f"{recommender}_{CANDIDATES[candidates]}"].astype(np.int64),
        items=items,
        provenance={**about, "recommenders": {recommender: made[recommender]}},
    )


def read_rank_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a file of ranks, and what they are about."""
    if not path.is_file():
        raise FileError(f"there must be a file of ranks {str(path)!r}; train a recommender first")
    where = f"the ranks {path.name}"
    with path.open("rb") as file:
        arrays = read_arrays(file, where)
    try:
        about = read_object(arrays, "about", where=where)
        made = about.get("recommenders")
        refuse_unless(isinstance(made, dict), f"'about' of {where} must name its recommenders")
        ranks = {f"{name}_{end}" for name in dict(made or {}) for end in CANDIDATES.values()}
        return check_ranks(arrays, ranks, where=where), about
    except FileError as problem:
        raise FileError(
            f"{str(path)!r} must hold exact ranks of recommenders, but {problem}, or give a file "
            "that unsample.lab train wrote"
        ) from problem


def check_ranks(arrays: Mapping[str, Any], ranks: Iterable[str], *, where: str) -> dict[str, Any]:
    """Return the arrays of a file of ranks; refuse ranks outside the catalogue.

    ``repeat`` may mark targets that are training items. They have no rank among unseen items.
    """
    items = _read(
        arrays, {"items": Field("whole", (), low=2, high=LARGEST_CATALOGUE)}, where=where
    )["items"]
    of_targets = {"n_seen": Field("whole", ("targets",), low=0, high=int(items) - 1)}
    if "repeat" in arrays:
        of_targets["repeat"] = Field("flag", ("targets",))
    targets = _read(arrays, of_targets, where=where)
    n_seen = targets["n_seen"]
    repeated = targets.get("repeat", np.zeros(len(n_seen), dtype=np.bool_))
    among_all = Field("whole", repeated.shape, low=1, high=items)
    among_unseen = Field(
        "whole",
        repeated.shape,
        low=np.where(repeated, 0, 1),
        high=np.where(repeated, items, items - n_seen),
    )
    kinds = {CANDIDATES["all"]: among_all, CANDIDATES["unseen"]: among_unseen}
    of_ranks = {name: kinds[name[-1]] for name in sorted(ranks)}
    return {"items": items, **targets, **_read(arrays, of_ranks, where=where)}


def _read(arrays: Mapping[str, Any], fields: Mapping[str, Field], *, where: str) -> dict[str, Any]:
    """Return some of the arrays of a file, as their fields describe them."""
    some = {name: arrays[name] for name in fields if name in arrays}
    return read_fields(some, fields, where=where)


def write_rank_file(path: Path, arrays: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write a file of ranks, whole or not at all."""
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    whole = {"about": text, **arrays}
    write = partial(write_arrays, arrays=whole, compression=zipfile.ZIP_LZMA)
    save_archive(path, write, read=read_rank_file)
