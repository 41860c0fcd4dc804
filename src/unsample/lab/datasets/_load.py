"""Loading the public data sets, and which of their files are on this machine."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from unsample.errors import DatasetError, FileError
from unsample.lab.datasets._files import Progress, fetch_files, locate, read_local
from unsample.lab.datasets._formats import Columns, read_columns, read_negatives
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._registry import About, Record, Source, record

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from unsample._checks import IntArray


@dataclass(frozen=True)
class FileInfo:
    """One file of a data set; ``path`` is None where it is not on this machine."""

    name: str
    address: str
    checksum: str
    size: int | None
    path: Path | None


@dataclass(frozen=True)
class DatasetInfo(About):
    """A public data set: terms, published counts, and what is on this machine.

    ``at_hand`` tells whether `load` needs no download; ``complete`` whether it would then give the
    whole data set, and ``note`` what is missing otherwise.
    """

    published_split: bool
    published_negatives: bool
    at_hand: bool
    complete: bool
    note: str
    files: tuple[FileInfo, ...]


@dataclass(frozen=True)
class Access:
    """A data set and how its files are come by; the options are those of `load`."""

    dataset: Record
    cache: str | os.PathLike[str] | None = None
    download: bool = True
    verify: bool = True
    progress: Progress | None = None

    def path(self, file: str) -> Path | None:
        """Return where a file lies, or None."""
        return locate(self.dataset.name, self.dataset.files[file], self.cache)

    def source(self) -> Source | None:
        """Return the best combination of files that is on this machine."""
        found = (s for s in self.dataset.sources if all(self.path(file) for file in s.files))
        return next(found, None)

    def require(self, files: Sequence[str]) -> None:
        """Fetch missing files, or say how to get them."""
        if self.download:
            fetch_files(self.dataset, files, cache=self.cache, progress=self.progress)
            return
        name = self.dataset.name
        places = " and ".join(f"{name}/original/{file}" for file in files)
        raise DatasetError(
            f"{name} must be on this machine when download=False, and is not; get it with "
            f"unsample.lab.datasets.fetch({name!r}), or set UNSAMPLE_DATA to a folder that holds "
            f"{places} (plain, .xz or .gz)"
        )

    def content(self, file: str) -> tuple[Path, bytes] | None:
        """Return where a file lies and what it holds, or None."""
        found = self.dataset.files[file]
        return read_local(self.dataset.name, found, self.cache, verify=self.verify)

    def rows(self, file: str) -> Columns:
        """Return the rows of a file."""
        found = self.content(file)
        assert found is not None
        return read_columns(found[1], self.dataset.files[file].format, str(found[0]))


def info(name: str, *, cache: str | os.PathLike[str] | None = None) -> DatasetInfo:
    """Describe a public data set; its files are looked for, but neither read nor verified."""
    dataset = record(name)
    access = Access(dataset, cache)
    source = access.source()
    return DatasetInfo(
        **{part.name: getattr(dataset, part.name) for part in fields(About)},
        published_split=bool(dataset.test),
        published_negatives=bool(dataset.negatives),
        at_hand=source is not None,
        complete=source is not None and source.complete,
        note="" if source is None else source.note,
        files=tuple(
            FileInfo(file.name, file.address, file.checksum, file.size, access.path(file.name))
            for file in dataset.files.values()
        ),
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
    return load_interactions(Access(record(name), cache, download, verify, progress))


def load_interactions(access: Access) -> Interactions:
    """Load the interactions of a data set; see `load`."""
    dataset, source = access.dataset, access.source()
    if source is None:
        source = dataset.sources[0]
        access.require(source.files)
    parts = [access.rows(file) for file in source.files]
    shared = set.intersection(*map(set, parts))
    rows = {name: np.concatenate([part[name] for part in parts]) for name in shared}
    if source.users is not None:
        kept = rows["user"] < source.users
        rows = {name: column[kept] for name, column in rows.items()}
    # Published files have the published ids; of others only what they hold is known.
    published = access.verify
    interactions = Interactions.from_pairs(
        **rows,
        users=(source.users or dataset.users) if published else None,
        items=dataset.items if published else None,
        name=dataset.name,
        complete=source.complete,
        note=source.note,
    )
    if published:
        return interactions
    return replace(
        interactions,
        complete=interactions.complete and len(interactions) == dataset.interactions,
        note="; ".join(filter(None, [interactions.note, "read without checksums"])),
    )


def load_published_test(access: Access) -> tuple[IntArray, IntArray, IntArray | None]:
    """Return users, their held-out items, and the negatives if they are on this machine."""
    dataset = access.dataset
    if not dataset.test:
        raise DatasetError(
            f"{dataset.name} must have a published test item for each user, and has none; "
            "use leave_random_out(load(name), rng=...)"
        )
    if access.path(dataset.test) is None:
        access.require(dataset.published if access.download else [dataset.test])
    rows = access.rows(dataset.test)
    order = np.argsort(rows["user"], kind="stable")
    user, item = rows["user"][order], rows["item"][order]
    found = access.content(dataset.negatives) if dataset.negatives else None
    if found is None:
        return user, item, None
    where, content = found
    users, items, negatives = read_negatives(content, str(where))
    order = np.argsort(users, kind="stable")
    if not (np.array_equal(users[order], user) and np.array_equal(items[order], item)):
        raise FileError(f"{where} must list the same users and held-out items as {dataset.test}")
    return user, item, negatives[order]
