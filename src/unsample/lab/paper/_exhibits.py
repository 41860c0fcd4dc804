"""The paper as data: one TOML file for each table and figure, and the cells they consist of.

A file has a ``kind``, its settings, and, for tables, the printed numbers as ``columns`` and
``rows``. A cell is the smallest piece of work: one recommender
on one data set among all or unseen items, sampled again and again with one sample size.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from unsample.metrics import parse_all

#: The data sets, in the paper's order.
DATASETS = ("ml-1m", "citeulike-a", "pinterest-20", "yelp")
#: Among which items targets are ranked: the paper's choice, then the usual one.
CANDIDATES = ("all", "unseen")
#: The estimators of the tables: label in the paper -> the method that reproduces it.
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
#: The recommenders of the tables: our name -> label in the paper.
RECOMMENDERS: Mapping[str, str] = MappingProxyType(
    {
        "ease": "EASE",
        "multivae": "MultiVAE",
        "neumf": "NeuMF",
        "itemknn": "itemKNN",
        "als": "ALS",
    }
)
#: Every metric at every K of the tables, in the order of a cell's values.
METRICS = parse_all(f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in (1, 5, 10, 20))
#: The cutoff of the accuracy tables and of the sweep.
ACCURACY_K = 10
#: How many items the tables sample.
SAMPLED = 99

#: How candidates are called in the names of cells, from which their random numbers come.
_NAMED = {"unseen": "everyday", "all": "paper"}


@dataclass(frozen=True, order=True)
class Cell:
    """One recommender on one data set, sampled again and again with one sample size."""

    dataset: str
    candidates: str
    recommender: str
    sampled: int

    @property
    def name(self) -> str:
        """Return the name from which the cell's random numbers come."""
        return f"{self.dataset}.{_NAMED[self.candidates]}.{self.recommender}.{self.sampled}"

    def seed_sequence(self, rng: int) -> np.random.SeedSequence:
        """Return the root of this cell's random numbers, whatever else is computed."""
        digest = hashlib.sha256(self.name.encode()).digest()
        return np.random.SeedSequence(rng, spawn_key=tuple(np.frombuffer(digest, dtype="<u4")))


@dataclass(frozen=True)
class Exhibit:
    """One table or figure: how it was made, and what it prints."""

    kind: str
    settings: Mapping[str, Any] = field(repr=False)
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells of a figure."""
        about = self.settings
        return tuple(
            Cell(
                about["dataset"],
                about["candidates"],
                recommender=recommender,
                sampled=sampled,
            )
            for recommender, label in RECOMMENDERS.items()
            if label in about["recommenders"]
            for sampled in about["sampled"]
        )


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Return every table and figure, by the name of its file.

    >>> sum(len(exhibit.rows) for exhibit in exhibits() if exhibit.kind == "accuracy")
    330
    """
    folder = files("unsample.lab.paper") / "exhibits"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=str)
    return tuple(_exhibit(path.read_text(encoding="utf-8")) for path in paths)


def figures(kind: str, datasets: Sequence[str]) -> tuple[Exhibit, ...]:
    """Return the figures of a kind that are about these data sets."""
    mine = [exhibit for exhibit in exhibits() if exhibit.kind == kind]
    return tuple(exhibit for exhibit in mine if exhibit.settings["dataset"] in datasets)


def table_cells(datasets: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells of the accuracy and winner tables.

    >>> len(table_cells(["ml-1m"]))
    10
    """
    return tuple(
        Cell(dataset, candidates, recommender=recommender, sampled=SAMPLED)
        for dataset in datasets
        for candidates in CANDIDATES
        for recommender in RECOMMENDERS
    )


def all_cells(datasets: Sequence[str]) -> tuple[Cell, ...]:
    """Return every cell of tables and figures once, the tables first."""
    shown = [*figures("distributions", datasets), *figures("sweep", datasets)]
    drawn = (cell for figure in shown for cell in figure.cells())
    return tuple(dict.fromkeys([*table_cells(datasets), *drawn]))


@cache
def deviations() -> Mapping[str, str]:
    """Return what differs between the paper's text, its tables and us, by id."""
    text = files("unsample.lab.paper").joinpath("deviations.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


def _exhibit(text: str) -> Exhibit:
    table = tomllib.loads(text)
    columns = table.pop("columns", ())
    rows = table.pop("rows", ())
    return Exhibit(
        kind=table.pop("kind"),
        settings=MappingProxyType(table),
        rows=tuple(dict(zip(columns, row, strict=True)) for row in rows),
    )
