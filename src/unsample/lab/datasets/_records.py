"""Records of public data sets, read from ``registry.toml`` beside this file."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from unsample._checks import check_choice


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: its format, its address, and how to know its plain content."""

    name: str
    format: str
    checksum: str
    address: str = ""
    member: str = ""

    def checksum_of(self, content: bytes) -> str:
        """Return the checksum of ``content``, of the kind that this file is known by."""
        if self.checksum.startswith("sha256:"):
            return f"sha256:{hashlib.sha256(content).hexdigest()}"
        blob = b"blob %d\0" % len(content) + content  # what git hashes
        return f"git-blob:{hashlib.sha1(blob, usedforsecurity=False).hexdigest()}"


@dataclass(frozen=True)
class Source:
    """Files that together give the interactions, or the stated part of them."""

    files: tuple[str, ...]
    complete: bool = True
    note: str = ""
    users: int | None = None


@dataclass(frozen=True)
class Record:
    """The entry of one data set in the registry: its published counts and its files."""

    name: str
    users: int
    items: int
    interactions: int
    files: Mapping[str, DataFile]
    sources: tuple[Source, ...]
    test: str = ""
    negatives: str = ""

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the names of the files to download: the best source and the published split."""
        published = [name for name in (self.test, self.negatives) if name]
        return tuple(dict.fromkeys((*self.sources[0].files, *published)))


def names() -> tuple[str, ...]:
    """Return the names of the public data sets.

    >>> names()
    ('ml-1m', 'pinterest-20', 'citeulike-a', 'yelp')
    """
    return tuple(_tables())


def record(name: str) -> Record:
    """Return the entry of ``name`` in the registry, or suggest the nearest name."""
    tables = _tables()
    check_choice("name", name, tables)
    fields = dict(tables[name])
    return Record(
        name,
        files={key: DataFile(key, **value) for key, value in fields.pop("files").items()},
        sources=tuple(
            Source(**{**source, "files": tuple(source["files"])})
            for source in fields.pop("sources")
        ),
        **fields,
    )


def _tables() -> dict[str, Any]:
    text = files("unsample.lab.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
