"""Loading the public data sets, the best of what is on this machine."""

from __future__ import annotations

import numpy as np

from unsample._checks import IntArray
from unsample.errors import DatasetError, FileError
from unsample.lab.datasets._files import locate, read_verified
from unsample.lab.datasets._formats import READERS, Columns, read_negatives
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._registry import Record, Source, record


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
    """
    dataset = record(name)
    source = at_hand(name) or dataset.sources[0]
    parts = [_rows(dataset, file) for file in source.files]
    shared = set.intersection(*map(set, parts))
    rows = {column: np.concatenate([part[column] for part in parts]) for column in shared}
    if source.users is not None:
        kept = rows["user"] < source.users
        rows = {column: values[kept] for column, values in rows.items()}
    return Interactions.from_pairs(
        **rows,
        users=source.users or dataset.users,
        items=dataset.items,
        name=name,
        complete=source.complete,
        note=source.note,
    )


def load_published_test(name: str) -> tuple[IntArray, IntArray, IntArray | None]:
    """Return users, their held-out items, and the negatives if they are on this machine."""
    dataset = record(name)
    if not dataset.test:
        raise DatasetError(
            f"{name} must have a published test item for each user, and has none; "
            "use leave_random_out(load(name), rng=...)"
        )
    rows = _rows(dataset, dataset.test)
    order = np.argsort(rows["user"], kind="stable")
    user, item = rows["user"][order], rows["item"][order]
    file = dataset.files.get(dataset.negatives)
    if file is None or locate(name, file) is None:
        return user, item, None
    users, items, negatives = read_negatives(read_verified(name, file))
    order = np.argsort(users, kind="stable")
    if not (np.array_equal(users[order], user) and np.array_equal(items[order], item)):
        raise FileError(f"{file.name} must list the same users and items as {dataset.test}")
    return user, item, negatives[order]


def _rows(dataset: Record, name: str) -> Columns:
    file = dataset.files[name]
    return READERS[file.format](read_verified(dataset.name, file))
