"""Readers of the original formats: bytes in, columns out.

Contents were verified by their checksums, so that their lines need no checks here.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import IntArray

#: The rows of a file, in its order: ``user``, ``item``, and maybe ``time``.
Columns: TypeAlias = dict[str, IntArray]

_TO_SPACES = bytes(byte if byte in b"0123456789." else ord(" ") for byte in range(256))


def read_negatives(content: bytes) -> tuple[IntArray, IntArray, IntArray]:
    """Read ``(user,item)<tab>negative<tab>...`` as users, items, and a matrix of negatives."""
    rows = content.count(b"(")
    table = _numbers(content).reshape(rows, -1)
    return table[:, 0], table[:, 1], table[:, 2:]


def _read_movielens(content: bytes) -> Columns:
    """Read ``UserID::MovieID::Rating::Timestamp``, numbering ids by first appearance.

    That is the numbering of the published split of Neural Collaborative Filtering.
    """
    user, item, _, time = _numbers(content).reshape(-1, 4).T
    return {"user": _by_appearance(user), "item": _by_appearance(item), "time": time}


def _read_ratings(content: bytes) -> Columns:
    """Read user, item, rating and time, separated by tabs."""
    user, item, _, time = _numbers(content).reshape(-1, 4).T
    return {"user": user, "item": item, "time": time}


def _read_implicit(content: bytes) -> Columns:
    """Read the same layout where every rating is 1 and every time is 0: neither tells anything."""
    rows = _read_ratings(content)
    return {"user": rows["user"], "item": rows["item"]}


def _read_lists(content: bytes) -> Columns:
    """Read one line for each user: how many items, then the items."""
    lists = [_numbers(line)[1:] for line in content.splitlines()]
    sizes = [len(each) for each in lists]
    return {"user": np.repeat(np.arange(len(lists)), sizes), "item": np.concatenate(lists)}


def _read_arrays(content: bytes) -> Columns:
    """Read the arrays ``user`` and ``item`` of a NumPy archive."""
    arrays = read_arrays(io.BytesIO(content), "the arrays user and item")
    return {name: arrays[name].astype(np.int64) for name in ("user", "item")}


#: Readers by the name of their format in the registry.
READERS: Mapping[str, Callable[[bytes], Columns]] = MappingProxyType(
    {
        "movielens": _read_movielens,
        "ratings": _read_ratings,
        "implicit": _read_implicit,
        "lists": _read_lists,
        "arrays": _read_arrays,
    }
)


def _numbers(content: bytes) -> IntArray:
    """Return all numbers of a text, without the decimals of ratings."""
    # Integers are read several times faster as such.
    kind: Any = np.float64 if b"." in content else np.int64
    found = np.fromstring(content.translate(_TO_SPACES), dtype=kind, sep=" ")
    return np.asarray(found, dtype=np.int64)


def _by_appearance(ids: npt.NDArray[np.int64]) -> IntArray:
    """Return the place of each id among the distinct ones, in order of first appearance."""
    _, first, position = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[position.reshape(-1)])
