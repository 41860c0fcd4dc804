"""What an experiment is: a frozen `Spec`, and the `Cell` values it consists of.

A cell is the smallest piece of work: one recommender on one data set among all or unseen items,
sampled ``repeats`` times with one sample size. Its random numbers come from the seed and the cell's
own name, so they are the same whatever else is computed, in whatever order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import check_choice, check_integer, suggest
from unsample.errors import DatasetError, InputError, MethodError, RecommenderError
from unsample.lab import recommenders as _recommenders
from unsample.lab.datasets import CANDIDATES, names
from unsample.lab.paper._exhibits import ESTIMATORS, RECOMMENDERS, Exhibit, exhibits
from unsample.metrics import Metric

#: The cutoff of the accuracy tables and of the sweep.
ACCURACY_K = 10
#: Sampled items beyond which BV, CLS and MES have systems too large to solve.
LARGEST_SAMPLE = 4999
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
        """Return the root of this cell's random numbers."""
        digest = hashlib.sha256(self.name.encode()).digest()
        return np.random.SeedSequence(rng, spawn_key=tuple(np.frombuffer(digest, dtype="<u4")))


@dataclass(frozen=True)
class Spec:
    """Everything that decides the numbers of a run.

    ``estimators`` are pairs of a label, as the tables print it, and the method behind it.

    >>> Spec(datasets=("ml-1m",), recommenders=("ease",), candidates=("all",)).tables()
    (Cell(dataset='ml-1m', candidates='all', recommender='ease', sampled=99),)
    """

    datasets: tuple[str, ...] = ("ml-1m", "citeulike-a", "pinterest-20", "yelp")
    candidates: tuple[str, ...] = ("all", "unseen")
    recommenders: tuple[str, ...] = tuple(RECOMMENDERS)
    estimators: tuple[tuple[str, str], ...] = tuple(ESTIMATORS.items())
    metrics: tuple[str, ...] = ("Recall", "NDCG", "AP")
    ks: tuple[int, ...] = (1, 5, 10, 20)
    sampled: int = 99
    repeats: int = 100
    rng: int = 0
    #: Train the recommenders on the data instead of taking the shipped ranks.
    retrain: bool = False

    def __post_init__(self) -> None:
        for dataset in _some("dataset", self.datasets):
            check_choice("dataset", dataset, names(), error=DatasetError)
        for candidates in _some("candidates", self.candidates):
            check_choice("candidates", candidates, CANDIDATES)
        known = _recommenders.REGISTRY if self.retrain else RECOMMENDERS
        for recommender in _some("recommender", self.recommenders):
            check_choice("recommender", recommender, known, error=RecommenderError)
        _some("metric", self.metrics)
        _some("K", self.ks)
        for _, method in _some("estimator", self.estimators):
            _estimators.parse(method).require(self.columns)
        check_integer("sampled", self.sampled, minimum=1, maximum=LARGEST_SAMPLE)
        check_integer("repeats", self.repeats, minimum=2, hint="a spread needs at least two")
        check_integer("rng", self.rng, minimum=0)

    @classmethod
    def choose(cls, **options: Any) -> Spec:
        """Return the spec of these names, in any case; none of a kind stands for all of it."""
        read: dict[str, Any] = {"recommenders": str.casefold, "estimators": _labelled}
        chosen: dict[str, Any] = {}
        for name, given in options.items():
            if isinstance(given, int):
                chosen[name] = given
            elif given:
                chosen[name] = tuple(dict.fromkeys(map(read.get(name, str), given)))
        return cls(**chosen)

    # -- the cells --------------------------------------------------------------------------

    def tables(self) -> tuple[Cell, ...]:
        """Return the cells of the accuracy and winner tables."""
        return tuple(
            Cell(dataset, candidates, recommender, self.sampled)
            for dataset in self.datasets
            for candidates in self.candidates
            for recommender in self.recommenders
        )

    def figures(self, *kinds: str) -> tuple[tuple[Exhibit, tuple[Cell, ...]], ...]:
        """Return the figures of these kinds that this spec covers, each with its cells."""
        covered = []
        for exhibit in exhibits():
            about = exhibit.settings
            if exhibit.kind not in kinds or about["dataset"] not in self.datasets:
                continue
            cells = tuple(
                Cell(about["dataset"], about["candidates"], recommender, sampled)
                for recommender in self.recommenders
                if about["candidates"] in self.candidates
                and label_of(recommender) in about["recommenders"]
                for sampled in about["sampled"]
            )
            if cells:
                covered.append((exhibit, cells))
        return tuple(covered)

    def cells(self) -> tuple[Cell, ...]:
        """Return every cell of tables and figures once, the tables first."""
        shown = [cell for _, cells in self.figures("distributions", "sweep") for cell in cells]
        return tuple(dict.fromkeys([*self.tables(), *shown]))

    def labels_of(self, cell: Cell) -> tuple[str, ...]:
        """Return the labels of the estimators that the tables and figures need of a cell."""
        if cell in self.tables():
            return tuple(label for label, _ in self.estimators)
        wanted = {
            label
            for exhibit, cells in self.figures("distributions", "sweep")
            if cell in cells
            for label in exhibit.settings["estimators"]
        }
        return tuple(label for label, _ in self.estimators if label in wanted)

    def curve_of(self, cell: Cell) -> tuple[int, tuple[str, ...]]:
        """Return how many ranks of P(R) are drawn for a cell (0 for none), and for whom."""
        for exhibit, cells in self.figures("distributions"):
            if cell in cells:
                return exhibit.settings["ranks"], tuple(exhibit.settings["estimators"])
        return 0, ()

    @property
    def columns(self) -> tuple[Metric, ...]:
        """Return every metric at every K, in the order of a cell's values."""
        return _metrics.parse_all(f"{name}@{k}" for name in self.metrics for k in self.ks)


def label_of(recommender: str) -> str:
    """Return how the paper writes a recommender."""
    return RECOMMENDERS.get(recommender, recommender)


def _some(name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise InputError(f"{name} must name at least one, got none")
    return values


def _labelled(text: str) -> tuple[str, str]:
    """Return the label and the method that ``text`` means: a label of the tables, or a method."""
    for label, method in ESTIMATORS.items():
        if label.casefold() == text.strip().casefold():
            return label, method
    try:
        method = str(_estimators.parse(text))
    except MethodError as problem:
        near = suggest(text, ESTIMATORS)
        raise MethodError(
            f"estimator must be one of {', '.join(ESTIMATORS)} or a method, got {text!r}; "
            + (near or str(problem))
        ) from problem
    for label, known in ESTIMATORS.items():
        if str(_estimators.parse(known)) == method:
            return label, known
    return method, method
