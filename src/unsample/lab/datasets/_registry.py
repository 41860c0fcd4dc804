"""The registry of public data sets, read from ``registry.toml`` beside this file."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unsample._checks import check_choice
from unsample.errors import DatasetError, FileError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}|git-blob:[0-9a-f]{40}")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: No file of the registry is larger; where the size is not known, reading stops here.
LARGEST_FILE = 1 << 28


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: its format, its address, and how to know its plain content."""

    name: str
    format: str
    address: str = ""
    member: str = ""
    size: int | None = None
    sha256: str = ""
    git_blob: str = ""

    @property
    def limit(self) -> int:
        """Return the most bytes that the plain content may have."""
        return LARGEST_FILE if self.size is None else self.size

    @property
    def checksum(self) -> str:
        """Return the checksum that is verified, with the kind in front."""
        return f"sha256:{self.sha256}" if self.sha256 else f"git-blob:{self.git_blob}"

    def checksum_of(self, content: bytes) -> str:
        """Return the checksum of ``content``, of the kind that this file is known by."""
        if self.sha256:
            return f"sha256:{hashlib.sha256(content).hexdigest()}"
        return f"git-blob:{git_blob_id(content)}"


@dataclass(frozen=True)
class Source:
    """Files that together give the interactions, or the stated part of them."""

    files: tuple[str, ...]
    complete: bool = True
    note: str = ""
    users: int | None = None


@dataclass(frozen=True)
class Record:
    """What the registry holds on one data set; the counts are the published ones."""

    name: str
    title: str
    home: str
    licence: str
    citations: tuple[str, ...]
    users: int
    items: int
    interactions: int
    files: Mapping[str, DataFile]
    sources: tuple[Source, ...]
    test: str = ""
    negatives: str = ""

    @property
    def published(self) -> tuple[str, ...]:
        """Return the names of the files that hold the published split."""
        return tuple(name for name in (self.test, self.negatives) if name)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the names of the files to download: the best source and the published split."""
        return tuple(dict.fromkeys((*self.sources[0].files, *self.published)))


def names() -> tuple[str, ...]:
    """Return the names of the public data sets.

    >>> names()
    ('ml-1m', 'pinterest-20', 'citeulike-a', 'yelp')
    """
    return tuple(_tables())


def record(name: str) -> Record:
    """Return what the registry holds on ``name``, or suggest the nearest name."""
    tables = _tables()
    check_choice("name", name, tables, error=DatasetError)
    return _as_record(name, tables[name])


def git_blob_id(content: bytes) -> str:
    """Return what ``git hash-object`` prints for a file with this content.

    >>> git_blob_id(b"hello")
    'b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0'
    """
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def read_registry(text: str, where: str) -> dict[str, Record]:
    """Read a registry, checking every record; ``where`` names it in messages."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{where} is not TOML: {problem}") from problem
    records = {}
    for name, table in tables.items():
        try:
            records[name] = _as_record(name, table)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise FileError(f"{where} must describe {name} as a data set: {problem}") from problem
        _check_record(records[name])
    return records


def _tables() -> dict[str, Any]:
    text = files("unsample.lab.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _as_record(name: str, table: dict[str, Any]) -> Record:
    fields = dict(table)
    data_files = {key: DataFile(key, **value) for key, value in fields.pop("files").items()}
    sources = tuple(
        Source(**{**source, "files": tuple(source["files"])}) for source in fields.pop("sources")
    )
    citations = tuple(fields.pop("citations"))
    return Record(name, citations=citations, files=data_files, sources=sources, **fields)


def _check_record(dataset: Record) -> None:
    """Refuse files that could not be told from others, or that lie outside the data set's folder.

    Everything that is downloaded is known by a checksum and comes over https.
    """
    for file in dataset.files.values():
        if not _CHECKSUM.fullmatch(file.checksum):
            raise FileError(
                f"{file.name} of {dataset.name} must have a checksum, got {file.checksum!r}"
            )
        if file.address and not file.address.startswith("https://"):
            raise FileError(f"{file.name} must have an https address, got {file.address!r}")
        if not _PLAIN_NAME.fullmatch(file.name) or not _PLAIN_NAME.fullmatch(dataset.name):
            raise FileError(
                f"{dataset.name}/{file.name} must be plain names, without folders in them"
            )
    used = {name for source in dataset.sources for name in source.files} | {*dataset.published}
    missing = sorted(name for name in used if name not in dataset.files)
    if missing or not dataset.sources:
        raise FileError(f"{dataset.name} must describe its files, and lacks {', '.join(missing)}")
