"""The paper as data: one TOML file for each table and figure, read and checked.

A file has a ``kind``, where in the paper it belongs, a caption, its settings, the ids of the
deviations that touch it, and, for tables, the printed numbers as ``columns`` and ``rows``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from unsample.errors import FileError

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

_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "statistics": ("dataset", "users", "items", "interactions", "sparsity"),
        "accuracy": (
            "recommender",
            "metric",
            "exact_x1000",
            "estimator",
            "mean_x1000",
            "std_x1000",
        ),
        "winners": ("k", "metric", "estimator", "correct"),
        "distributions": (),
        "sweep": (),
    }
)
_DEVIATIONS = "deviations.toml"
_REQUIRED = ("kind", "where", "caption", "deviations")


@dataclass(frozen=True)
class Exhibit:
    """One table or figure: where it stands, how it was made, and what it prints."""

    name: str
    kind: str
    where: str
    caption: str
    deviations: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Return every table and figure, by the name of its file.

    >>> sum(len(exhibit.rows) for exhibit in exhibits() if exhibit.kind == "accuracy")
    330
    """
    return tuple(_exhibit(name, text) for name, text in _texts() if name != _DEVIATIONS)


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


def _exhibit(name: str, text: str) -> Exhibit:
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{name} is not TOML: {problem}") from problem
    try:
        return _as_exhibit(name, table)
    except FileError:
        raise
    except (TypeError, ValueError) as problem:
        raise FileError(f"{name} must describe a table or a figure: {problem}") from problem


def _as_exhibit(name: str, table: dict[str, Any]) -> Exhibit:
    missing = [key for key in _REQUIRED if key not in table]
    if missing:
        raise FileError(f"{name} must have {', '.join(_REQUIRED)}, and lacks {', '.join(missing)}")
    kind, columns = table["kind"], tuple(table.get("columns", ()))
    if columns != _COLUMNS.get(kind):
        raise FileError(f"{name} must have the columns {_COLUMNS.get(kind)} of {kind!r}")
    unknown = set(table["deviations"]) - set(deviations())
    if unknown:
        raise FileError(f"{name} must name known deviations, got {', '.join(sorted(unknown))}")
    settings = {key: table[key] for key in table if key not in (*_REQUIRED, "columns", "rows")}
    return Exhibit(
        name=name.removesuffix(".toml"),
        kind=kind,
        where=table["where"],
        caption=table["caption"],
        deviations=tuple(table["deviations"]),
        settings=MappingProxyType(settings),
        rows=tuple(dict(zip(columns, row, strict=True)) for row in table.get("rows", ())),
    )
