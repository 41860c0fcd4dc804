"""`Result`, the base of all answers, and `Estimates`, metrics with intervals."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import check_choice, import_extra
from unsample.answers._notes import Note
from unsample.confidence import (
    Calibrated,
    Certainty,
    MeanError,
    SamplingError,
)
from unsample.errors import InputError, MethodError, MetricError, MissingExtraError
from unsample.estimators import Certificate
from unsample.evidence import RankCounts
from unsample.law import RankDistribution
from unsample.metrics import Metric

DEFAULT_LEVEL = 0.95
DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
#: The method whose value goes with the calibrated interval.
AUTO = "auto"
#: Kinds of intervals: for data sets like those of the prior, or any P(R) of a stated shape.
INTERVALS = ("calibrated", "guaranteed")
#: The error of each metric by one method; none where nothing varies.
Errors: TypeAlias = tuple[SamplingError | MeanError, ...]
#: Libraries for data frames; the first one that is installed is the default.
BACKENDS = ("polars", "pandas", "pyarrow")


class Result(ABC):
    """The base of every answer: it prints, and turns into JSON, a data frame, a page or a table."""

    #: What the reader must know before using the numbers.
    notes: tuple[Note, ...] = ()
    #: The library of the data frame that came in, which `to_frame` gives back; None for others.
    library: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the sentences of the notes."""
        return tuple(note.text for note in self.notes)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `to_frame`."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return `rows` as a data frame.

        ``backend`` is ``"polars"``, ``"pandas"`` or ``"pyarrow"``; by default the library of the
        frame that came in, or else the first of these that is installed.
        """
        return frame_of(self.rows(), backend or self.library)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the result as one interactive page, and return its path."""
        _pages().write_html(self, path, title=title)
        return Path(path)

    def to_latex(self) -> str:
        """Return the tables of the result for LaTeX (with the package booktabs)."""
        return str(_pages().as_latex(self))

    def to_markdown(self) -> str:
        """Return the tables of the result as Markdown."""
        return str(_pages().as_markdown(self))

    def _repr_html_(self) -> str:
        return str(_pages().as_notebook(self))

    def __str__(self) -> str:
        return str(_pages().as_text(self))

    __repr__ = __str__


def frame_of(rows: list[dict[str, Any]], backend: str | None) -> Any:
    """Return rows as a data frame of ``backend``; by default of the first library installed."""
    if backend is None:
        installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
        if not installed:
            raise MissingExtraError(
                "a data frame needs polars, pandas or pyarrow, and none is installed; "
                "install one with: pip install 'unsample[frames]', or use to_dict()"
            )
        backend = installed[0]
    check_choice("backend", backend, BACKENDS)
    library = import_extra(backend, extra="frames", purpose=f"a {backend} frame")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return library.table(columns) if backend == "pyarrow" else library.DataFrame(columns)


def _pages() -> ModuleType:
    """Return the package `pages`, imported late because it imports all results."""
    from unsample import pages

    return pages


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric by one method: its value, how certain it is, and how it was found."""

    metric: Metric
    method: str
    value: float
    #: Whether the metric is resolved; see `unsample.confidence.Certainty.resolves`.
    resolved: bool
    certificate: Certificate
    #: What the data say about any metric; None if the full ranks are known.
    certainty: Certainty | None = field(repr=False)
    #: Whether the method's value is meant as an estimate, and the method converged.
    meant: bool = field(repr=False)
    #: Whether the method's value was outside the range of the metric and was moved into it.
    clipped: bool
    #: How the values of each method vary with other targets, computed on first use.
    errors: Mapping[str, Errors] = field(repr=False)
    #: The position of the metric among those of the result.
    place: int = field(repr=False)
    #: What these data and the prior say about any metric; None without a prior.
    calibrated: Calibrated | None = field(default=None, repr=False)

    @property
    def error(self) -> SamplingError | MeanError | None:
        """Return how the value varies; None if there is one target, or all ranks are equal."""
        errors = self.errors[self.method]
        return errors[self.place] if errors else None

    def interval(
        self, level: float = DEFAULT_LEVEL, *, kind: str | None = None, population: bool = True
    ) -> tuple[float, float]:
        """Return (low, high), an interval for the true metric, the bias of sampling included.

        It belongs to the metric and not to the method. A ``"calibrated"`` interval holds the true
        value for a share ``level`` of data sets like those that the prior was learned from. It is
        the default if there is a prior. A ``"guaranteed"`` one holds it, with confidence ``level``,
        for every data set whose P(R) has the stated shape. With ``population``, the interval is for
        users like these; without it, for these users alone. With full ranks, it is the interval of
        a mean over users (the metric of these users is known). In a guided evaluation, it also
        covers the choice of the users that were ranked in full. If a method's value is outside, the
        interval is widened to include it, within the bounds.
        """
        if kind is not None:
            check_choice("kind", kind, INTERVALS)
        if kind == "calibrated" and self.calibrated is None:
            raise InputError(
                "kind must be 'guaranteed' or left out, got 'calibrated': this result has no prior"
            )
        if self.calibrated is not None and kind != "guaranteed" and self._like_others:
            low, high = self.calibrated.interval(self.metric, level, population=population)
            if self.method.startswith(AUTO):
                # The value follows from the middle P(R), not the middle of the log metric.
                low, high = min(low, self.value), max(high, self.value)
            least, most = self.bounds(level)
            return min(max(low, least), most), max(min(high, most), least)
        low, high = self.raw_interval(level, population=population)
        if self.meant and self.certainty is not None and not low <= self.value <= high:
            least, most = self.bounds(level)
            inside = min(max(self.value, least), most)
            low, high = min(low, inside), max(high, inside)
        return low, high

    @property
    def _like_others(self) -> bool:
        """Return whether a prior from other data sets may be applied to these data."""
        return self.certainty is None or self.certainty.usual

    def raw_interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return the guaranteed interval of the metric, not widened to the method's value."""
        if self.certainty is not None:
            return self.certainty.interval(self.metric, level, population=population)
        if population:
            return self.sampling_interval(level)
        error = self.error
        known = self.value, self.value
        return error.of_these(self.value, level) if isinstance(error, MeanError) else known

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the least and greatest value that agree with the data, whatever P(R) is."""
        if self.certainty is None:
            return self.interval(level)
        return self.certainty.bounds(self.metric, level)

    def sampling_interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the interval of the method's value.

        It says how much the method's value would vary, and nothing about the method's bias.
        """
        if self.error is None:
            return math.nan, math.nan
        return self.error.interval(self.value, level)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the method's value, for users like these."""
        return math.nan if self.error is None else self.error.population

    @property
    def credible(self) -> bool:
        """Return whether the value is in the interval of its metric; else its method is refuted."""
        calibrated = self.calibrated is not None and self._like_others
        low, high = self.interval() if calibrated else self.raw_interval()
        return math.isnan(low) or low - 1e-9 <= self.value <= high + 1e-9

    @property
    def widened(self) -> bool:
        """Return whether the guaranteed interval was widened to include the value."""
        if not self.meant or self.certainty is None:
            return False
        low, high = self.raw_interval()
        return not (math.isnan(low) or low - 1e-9 <= self.value <= high + 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output."""
        ends = zip(("low", "high"), self.interval(), strict=True)
        sure = zip(
            ("guaranteed_low", "guaranteed_high"), self.interval(kind="guaranteed"), strict=True
        )
        bounds = zip(("bound_low", "bound_high"), self.bounds(), strict=True)
        return {
            "metric": self.metric.name,
            "method": self.method,
            "value": _or_none(self.value),
            **{name: _or_none(value) for name, value in (*ends, *sure, *bounds)},
            "resolved": self.resolved,
            "standard_error": _or_none(self.standard_error),
            "solver": str(self.certificate),
        }

    def __str__(self) -> str:
        low, high = self.interval()
        limits = "no interval: nothing varies" if math.isnan(low) else f"{low:.4f} .. {high:.4f}"
        doubt = "" if self.resolved else ", NOT RESOLVED by the sample"
        doubt += "" if self.credible else ", OUTSIDE its interval"
        return f"{self.metric} = {self.value:.4f} [{limits}] ({self.method}{doubt})"


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Result, Mapping[str, Estimate]):
    """Estimates by metric: ``result["NDCG@10"]``, or by method too: ``result["NDCG@10", "mle"]``.

    Without a method, the first that was asked for is used. The keys are the metrics' names as they
    were asked for; other spellings work too (``"HR@10"`` finds ``"Recall@10"``).
    """

    entries: tuple[Estimate, ...]
    counts: RankCounts
    #: P(R) by method, for methods that estimate it.
    distributions: Mapping[str, RankDistribution]
    notes: tuple[Note, ...] = ()
    #: ``"unseen"``, ``"all"``, or None if it was not given.
    candidates: str | None = None
    #: What a method chose and why, for methods that make a choice.
    explanations: Mapping[str, str] = field(default_factory=dict)
    #: Whether metrics are per target, because a user's other relevant items were left out.
    filtered: bool = False
    library: str | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods in the given order."""
        return tuple(dict.fromkeys(entry.method for entry in self.entries))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics in the given order."""
        return tuple({entry.metric.name: entry.metric for entry in self.entries}.values())

    @property
    def certainty(self) -> Certainty | None:
        """Return what the data say about any metric; None for full ranks."""
        return self.entries[0].certainty

    @property
    def calibrated(self) -> Calibrated | None:
        """Return what these data and the prior say about any metric; None without a prior."""
        return self.entries[0].calibrated

    def certainty_at(self, cutoffs: Iterable[int]) -> Certainty | None:
        """Return `certainty` prepared for metrics@K at other K.

        If users have several relevant items, it is for metrics that count these items equally.
        """
        if self.certainty is None:
            return None
        counts = self.certainty.counts
        if self.counts.several:
            counts = self.counts.for_metric(_metrics.Recall())
        return Certainty.of(counts, cutoffs, self.certainty.shape)

    @property
    def drawn(self) -> bool:
        """Return whether some users were drawn to be ranked in full and represent the others."""
        error = None if self.certainty is not None else self.entries[0].error
        return isinstance(error, MeanError) and error.of_draw

    @property
    def assumes(self) -> str:
        """Return the assumption behind the intervals, as the end of a sentence."""
        return "nothing" if self.certainty is None else self.certainty.assumes

    @property
    def distribution(self) -> RankDistribution:
        """Return P(R) as the method estimated it; there must be exactly one such method."""
        if len(self.distributions) != 1:
            known = ", ".join(self.distributions) or "none of these methods"
            raise MethodError(f"distribution needs exactly one method that gives P(R), got {known}")
        return next(iter(self.distributions.values()))

    def __getitem__(self, key: str | Metric | tuple[str | Metric, str]) -> Estimate:
        name, method = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        metric = find_metric(name, self.metrics, several=self.counts.several)
        asked = method and _full_name(method)
        for entry in self.entries:
            if entry.metric == metric and asked in (None, entry.method):
                return entry
        by = f" by {method}" if method else ""
        there = f"{', '.join(self)} by {', '.join(self.methods)}"
        raise KeyError(f"no estimate of {name}{by}; there are {there}")

    def __iter__(self) -> Iterator[str]:
        return iter(metric.name for metric in self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each metric and method."""
        return [entry.to_dict() for entry in self.entries]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": _one_or_range(self.counts.items),
            "sampled": _one_or_range(self.counts.sampled),
            "users": self.counts.users,
            "estimates": self.rows(),
            "warnings": list(self.warnings),
            "candidates": self.candidates,
            "assumes": self.assumes,
            "explanations": dict(self.explanations),
            "targets": self.counts.total,
            "filtered": self.filtered,
            "negatives": "own" if self.counts.shared is None else "shared",
        }


def find_metric(name: Any, metrics: Iterable[Metric], *, several: bool = False) -> Metric | None:
    """Return the metric that has this name, or else the same metric under another name.

    If users have ``several`` relevant items, fewer names mean the same metric.
    """
    there = tuple(metrics)
    for metric in there:
        if metric.name == str(name):
            return metric
    try:
        wanted = _metrics.parse(name)
    except MetricError:
        return None
    return next((metric for metric in there if metric.same_as(wanted, several=several)), None)


def _full_name(method: str) -> str:
    """Return the name of a method as results print it, for any spelling."""
    try:
        return str(_estimators.parse(method))
    except MethodError:
        return method


def _one_or_range(values: npt.NDArray[np.int64]) -> int | list[int]:
    low, high = int(values.min()), int(values.max())
    return low if low == high else [low, high]


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def percent(share: float) -> str:
    """Return a share in percent, with more digits if it is small."""
    digits = 1 if abs(share) >= 0.001 or share == 0.0 else 3
    return f"{100.0 * share:.{digits}f} %"
