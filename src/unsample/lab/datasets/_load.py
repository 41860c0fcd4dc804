"""Loading the public data sets, and telling what of them is at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample.errors import DatasetError, FileError
from unsample.lab.datasets import _store
from unsample.lab.datasets._download import Progress, fetch_files
from unsample.lab.datasets._formats import Columns, read_columns, read_negatives
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._registry import DataFile, Record, Source, record

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from unsample._checks import IntArray

__all__ = ["DatasetInfo", "FileInfo", "PublishedTest", "info", "load", "load_published_test"]

_UNVERIFIED = "read without checksums"


@dataclass(frozen=True)
class FileInfo:
    """One file of a data set; ``path`` is None where it is not on this machine."""

    name: str
    address: str
    checksum: str
    size: int | None
    path: Path | None


@dataclass(frozen=True)
class DatasetInfo:
    """A public data set: terms, published counts, and what is on this machine.

    ``at_hand`` tells whether `load` needs no download; ``complete`` whether it would then give the
    whole data set, and ``note`` what is missing otherwise.
    """

    name: str
    title: str
    home: str
    licence: str
    citations: tuple[str, ...]
    users: int
    items: int
    interactions: int
    published_split: bool
    published_negatives: bool
    at_hand: bool
    complete: bool
    note: str
    files: tuple[FileInfo, ...]

    @property
    def density(self) -> float:
        """Return the share of all (user, item) pairs that are present, by the published counts."""
        return self.interactions / (self.users * self.items)


@dataclass(frozen=True, eq=False)
class PublishedTest:
    """The published held-out item of each user, and the published negatives where at hand."""

    user: IntArray
    item: IntArray
    negatives: IntArray | None = None


def info(name: str, *, cache: str | os.PathLike[str] | None = None) -> DatasetInfo:
    """Describe a public data set; its files are looked for, but neither read nor verified."""
    dataset = record(name)
    source = _source_at_hand(dataset, cache)
    return DatasetInfo(
        name=name,
        title=dataset.title,
        home=dataset.home,
        licence=dataset.licence,
        citations=dataset.citations,
        users=dataset.users,
        items=dataset.items,
        interactions=dataset.interactions,
        published_split=bool(dataset.test),
        published_negatives=bool(dataset.negatives),
        at_hand=source is not None,
        complete=source is not None and source.complete,
        note="" if source is None else source.note,
        files=tuple(_file_info(name, file, cache) for file in dataset.files.values()),
    )


def load(
    name: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
    progress: Progress | None = None,
) -> Interactions:
    """Load a public data set, from this machine if it is there.

    Parameters
    ----------
    name
        One of `names`.
    cache
        The folder of downloads; by default ``$UNSAMPLE_CACHE`` or the platform's own.
    download
        Whether to fetch the data set where nothing of it is on this machine.
    verify
        Whether files must have the published checksums. Files read without are noted as such, and
        count as complete only if they hold the published number of pairs.
    progress
        As in `fetch`.

    Where only a part is on this machine, that part is loaded, with ``complete=False`` and a
    ``note`` that says which part it is; `fetch` gets the whole.
    """
    dataset = record(name)
    source = _source_at_hand(dataset, cache)
    if source is None:
        source = dataset.sources[0]
        if not download:
            raise DatasetError(_not_at_hand(dataset, source.files))
        fetch_files(dataset, source.files, cache=cache, progress=progress)
    rows = _joined([_rows(dataset, file, cache, verify=verify) for file in source.files])
    if source.users is not None:
        rows = _of_first_users(rows, source.users)
    interactions = Interactions.from_pairs(
        rows.user,
        rows.item,
        # Published files have the published ids; of others only what they hold is known.
        users=(source.users or dataset.users) if verify else None,
        items=dataset.items if verify else None,
        rating=rows.rating,
        time=rows.time,
        name=name,
        complete=source.complete,
        note=source.note,
        user_ids=rows.user_ids,
        item_ids=rows.item_ids,
    )
    return interactions if verify else _as_unverified(interactions, dataset)


def load_published_test(
    name: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
    progress: Progress | None = None,
) -> PublishedTest:
    """Load the published held-out items, and the negatives where they are at hand; as `load`."""
    dataset = record(name)
    if not dataset.test:
        raise DatasetError(
            f"{name} must have a published test item for each user, and has none; "
            "use leave_random_out(load(name), rng=...)"
        )
    if _store.locate(name, dataset.files[dataset.test], cache) is None:
        if not download:
            raise DatasetError(_not_at_hand(dataset, [dataset.test]))
        fetch_files(dataset, dataset.published, cache=cache, progress=progress)
    rows = _rows(dataset, dataset.test, cache, verify=verify)
    order = np.argsort(rows.user, kind="stable")
    user, item = rows.user[order], rows.item[order]
    return PublishedTest(user, item, _negatives(dataset, user, item, cache, verify=verify))


def _source_at_hand(dataset: Record, cache: str | os.PathLike[str] | None) -> Source | None:
    for source in dataset.sources:
        if all(_store.locate(dataset.name, dataset.files[file], cache) for file in source.files):
            return source
    return None


def _file_info(dataset: str, file: DataFile, cache: str | os.PathLike[str] | None) -> FileInfo:
    path = _store.locate(dataset, file, cache)
    return FileInfo(file.name, file.address, file.checksum, file.size, path)


def _not_at_hand(dataset: Record, files: Sequence[str]) -> str:
    places = " and ".join(f"{dataset.name}/original/{file}" for file in files)
    return (
        f"{dataset.name} must be on this machine when download=False, and is not; get it with "
        f"unsample.lab.datasets.fetch({dataset.name!r}), or set UNSAMPLE_DATA to a folder that holds "
        f"{places} (plain, .xz or .gz)"
    )


def _content(
    dataset: Record, file: str, cache: str | os.PathLike[str] | None, *, verify: bool
) -> tuple[str, bytes] | None:
    found = _store.read_local(dataset.name, dataset.files[file], cache, verify=verify)
    return None if found is None else (str(found[0]), found[1])


def _rows(
    dataset: Record, file: str, cache: str | os.PathLike[str] | None, *, verify: bool
) -> Columns:
    found = _content(dataset, file, cache, verify=verify)
    if found is None:
        raise DatasetError(_not_at_hand(dataset, [file]))
    where, content = found
    return read_columns(content, dataset.files[file].format, where)


def _joined(parts: list[Columns]) -> Columns:
    """Return the rows of all parts; parts share their ids, and rating and time if all have them."""
    if len(parts) == 1:
        return parts[0]
    return Columns(
        np.concatenate([part.user for part in parts]),
        np.concatenate([part.item for part in parts]),
        _concatenated([part.rating for part in parts]),
        _concatenated([part.time for part in parts]),
    )


def _concatenated(columns: list[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if len(present) == len(columns) else None


def _of_first_users(rows: Columns, users: int) -> Columns:
    kept = rows.user < users
    rating = None if rows.rating is None else rows.rating[kept]
    time = None if rows.time is None else rows.time[kept]
    return Columns(rows.user[kept], rows.item[kept], rating, time)


def _as_unverified(interactions: Interactions, dataset: Record) -> Interactions:
    note = "; ".join(filter(None, [interactions.note, _UNVERIFIED]))
    complete = interactions.complete and len(interactions) == dataset.interactions
    return replace(interactions, complete=complete, note=note)


def _negatives(
    dataset: Record,
    user: IntArray,
    item: IntArray,
    cache: str | os.PathLike[str] | None,
    *,
    verify: bool,
) -> IntArray | None:
    """Return the published negatives, one row for each target, where the file is at hand."""
    found = (
        _content(dataset, dataset.negatives, cache, verify=verify) if dataset.negatives else None
    )
    if found is None:
        return None
    where, content = found
    users, items, negatives = read_negatives(content, where)
    order = np.argsort(users, kind="stable")
    if not (np.array_equal(users[order], user) and np.array_equal(items[order], item)):
        raise FileError(f"{where} must list the same users and held-out items as {dataset.test}")
    return negatives[order]
