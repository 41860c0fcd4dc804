"""Full-catalogue ranks of five recommenders on four data sets, shipped with the package.

No interaction can be read off them: a rank names neither the user nor the item, and the users
stand in a shuffled order (the same for all recommenders of a data set, so that they can be
compared user by user). ``tools/make_data.py`` puts them together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample._checks import IntArray, check_choice
from unsample.errors import DatasetError

#: Training items excluded from the candidates, or kept as in Jin et al., AAAI 2021.
CANDIDATES = ("unseen", "all")
#: What the arrays in the shipped files are called.
_ARRAYS = {"unseen": "everyday", "all": "paper"}


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
    complete: bool
    note: str
    provenance: Mapping[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ranks)


def bundled_ranks() -> dict[str, tuple[str, ...]]:
    """Return the recommenders whose ranks are shipped, by data set."""
    return {name: tuple(entry["recommenders"]) for name, entry in _provenance().items()}


def load_ranks(dataset: str, recommender: str, *, candidates: str = "unseen") -> ExactRanks:
    """Load the shipped ranks of a recommender on a data set, among unseen or among all items.

    >>> ranks = load_ranks("ml-1m", "ease", candidates="all")
    >>> len(ranks), int(ranks.items.max())
    (6040, 3706)
    """
    provenance = deepcopy(_provenance())  # a caller's changes must not reach the next one
    check_choice("dataset", dataset, provenance, error=DatasetError)
    entry = provenance[dataset]
    check_choice("recommender", recommender, entry["recommenders"], error=DatasetError)
    check_choice("candidates", candidates, CANDIDATES, error=DatasetError)
    path = files("unsample.lab.datasets") / "bundled" / f"{dataset}.npz"
    with path.open("rb") as file:
        arrays = read_arrays(file, f"the ranks of {dataset}")
    ranks = arrays[f"{recommender}.{_ARRAYS[candidates]}"].astype(np.int64)
    items = np.full(len(ranks), entry["items"], dtype=np.int64)
    if candidates == "unseen":
        items = arrays["items.everyday"].astype(np.int64)
    return ExactRanks(
        dataset=dataset,
        recommender=recommender,
        candidates=candidates,
        ranks=ranks,
        items=items,
        complete=entry["complete"],
        note=entry["note"],
        provenance={**entry, "recommenders": {recommender: entry["recommenders"][recommender]}},
    )


@cache
def _provenance() -> dict[str, Any]:
    path = files("unsample.lab.datasets") / "bundled" / "provenance.json"
    entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return entries
