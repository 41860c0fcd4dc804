"""The paper as data: one TOML file for each table and figure.

A file has a ``kind``, its settings, the ids of the deviations that touch it, and, for tables, the
printed numbers as ``columns`` and ``rows``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

#: The estimators of the tables: their label there, and the method that reproduces it.
ESTIMATORS: Mapping[str, str] = MappingProxyType(
    {
        "CLS": "cls",
        "BV 0.1": "bv",
        "BV 0.01": "bv(gamma=0.01)",
        "MLE": "mle",
        "WMLE": "wmle",
        "MES": "mes(eta=0.0001)",
    }
)
#: The recommenders of the tables: our name, and the label there.
RECOMMENDERS: Mapping[str, str] = MappingProxyType(
    {
        "ease": "EASE",
        "multivae": "MultiVAE",
        "neumf": "NeuMF",
        "itemknn": "itemKNN",
        "als": "ALS",
    }
)

_DEVIATIONS = "deviations.toml"


@dataclass(frozen=True)
class Exhibit:
    """One table or figure: how it was made, and what it prints."""

    kind: str
    deviations: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Return every table and figure, by the name of its file.

    >>> sum(len(exhibit.rows) for exhibit in exhibits() if exhibit.kind == "accuracy")
    330
    """
    return tuple(_exhibit(text) for name, text in _texts() if name != _DEVIATIONS)


@cache
def deviations() -> Mapping[str, str]:
    """Return what differs between the paper's text, its tables and us, by id."""
    tables = tomllib.loads(dict(_texts())[_DEVIATIONS])
    return MappingProxyType({key: entry["text"] for key, entry in tables.items()})


def _texts() -> Iterator[tuple[str, str]]:
    folder = files("unsample.lab.paper.exhibits")
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if path.name.endswith(".toml"):
            yield path.name, path.read_text(encoding="utf-8")


def _exhibit(text: str) -> Exhibit:
    table = tomllib.loads(text)
    columns, rows = table.pop("columns", ()), table.pop("rows", ())
    return Exhibit(
        kind=table.pop("kind"),
        deviations=tuple(table.pop("deviations")),
        settings=MappingProxyType(table),
        rows=tuple(dict(zip(columns, row, strict=True)) for row in rows),
    )
