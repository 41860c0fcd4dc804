"""Loading the public data sets from their original files, the best of what is on this machine.

Contents are verified by their checksums, so that their lines need no checks here.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from unsample._archives import read_arrays
from unsample._checks import IntArray
from unsample.lab.datasets._downloads import locate, read_verified
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._records import Record, Source, record

#: Users and items of the rows of a file, in its order.
Pairs: TypeAlias = tuple[IntArray, IntArray]

_TO_SPACES = bytes(byte if byte in b"0123456789." else ord(" ") for byte in range(256))


def at_hand(name: str) -> Source | None:
    """Return the best files of a data set that are on this machine, or None."""
    dataset = record(name)
    for source in dataset.sources:
        if all(locate(name, dataset.files[file]) for file in source.files):
            return source
    return None


def load(name: str) -> Interactions:
    """Load a public data set, from this machine if it is there, or else from the network.

    Where only a part is on this machine, that part is loaded, with ``complete=False`` and a
    ``note`` that says which part it is; `fetch` gets the whole.

    Raises
    ------
    InputError
        If there is no data set of this name.
    FileError
        If a file on this machine is not the published one.
    DownloadError
        If the network does not give it.
    """
    dataset = record(name)
    source = at_hand(name) or dataset.sources[0]
    parts = [_pairs(dataset, file) for file in source.files]
    user, item = (np.concatenate(column) for column in zip(*parts, strict=True))
    users = source.users or dataset.users
    every = Interactions(
        user[user < users],
        item[user < users],
        users=users,
        items=dataset.items,
        name=name,
        complete=source.complete,
        note=source.note,
    )
    return every.distinct()


def load_published_test(name: str) -> tuple[IntArray, IntArray, IntArray | None]:
    """Return users, their held-out items, and the negatives if they are on this machine."""
    dataset = record(name)
    user, item = _pairs(dataset, dataset.test)
    order = np.argsort(user, kind="stable")
    user = user[order]
    item = item[order]
    file = dataset.files.get(dataset.negatives)
    if file is None or locate(name, file) is None:
        return user, item, None
    users, negatives = _read_negatives(read_verified(name, file))
    return user, item, negatives[np.argsort(users, kind="stable")]


def _pairs(dataset: Record, name: str) -> Pairs:
    file = dataset.files[name]
    return READERS[file.format](read_verified(dataset.name, file))


# -- the original formats: bytes in, pairs out --------------------------------------------------


def _read_negatives(content: bytes) -> tuple[IntArray, IntArray]:
    """Read ``(user,item)<tab>negative<tab>...`` as users and a matrix of negatives."""
    table = _numbers(content).reshape(content.count(b"("), -1)
    return table[:, 0], table[:, 2:]


def _read_movielens(content: bytes) -> Pairs:
    """Read ``UserID::MovieID::Rating::Timestamp``, numbering ids by first appearance.

    That is the numbering of the published split of Neural Collaborative Filtering.
    """
    user, item = _read_ratings(content)
    return _by_appearance(user), _by_appearance(item)


def _read_ratings(content: bytes) -> Pairs:
    """Read user, item, rating and time, separated by tabs."""
    user, item, _, _ = _numbers(content).reshape(-1, 4).T
    return user, item


def _read_lists(content: bytes) -> Pairs:
    """Read one line for each user: how many items, then the items."""
    lists = [_numbers(line)[1:] for line in content.splitlines()]
    sizes = [len(items) for items in lists]
    return np.repeat(np.arange(len(lists)), sizes), np.concatenate(lists)


def _read_arrays(content: bytes) -> Pairs:
    """Read the arrays ``user`` and ``item`` of a NumPy archive."""
    arrays = read_arrays(io.BytesIO(content), "the arrays user and item")
    return arrays["user"].astype(np.int64), arrays["item"].astype(np.int64)


#: Readers by the name of their format in the registry.
READERS: Mapping[str, Callable[[bytes], Pairs]] = MappingProxyType(
    {
        "movielens": _read_movielens,
        "ratings": _read_ratings,
        "lists": _read_lists,
        "arrays": _read_arrays,
    }
)


def _numbers(content: bytes) -> IntArray:
    """Return all numbers of a text, without the decimals of ratings.

    >>> _numbers(b"1::1193::4.5")
    array([   1, 1193,    4])
    """
    # Integers are read several times faster as such.
    kind: Any = np.float64 if b"." in content else np.int64
    numbers = np.fromstring(content.translate(_TO_SPACES), dtype=kind, sep=" ")
    return np.asarray(numbers, dtype=np.int64)


def _by_appearance(ids: IntArray) -> IntArray:
    """Return the number of each id, when ids are numbered by their first appearance.

    >>> _by_appearance(np.array([7, 3, 7, 9]))
    array([0, 1, 0, 2])
    """
    _, first, position = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[position.reshape(-1)])
