"""What an estimation returns: a value with its interval, its bounds, and its health."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import FloatArray
from unsample.answers._door import page_of
from unsample.confidence import Certainty, Resolution, SamplingError, percentile_interval
from unsample.errors import MethodError
from unsample.estimators import Certificate
from unsample.evidence import RankCounts
from unsample.law import RankDistribution
from unsample.metrics import Metric

__all__ = ["DEFAULT_LEVEL", "Estimate", "Estimates"]

DEFAULT_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric by one method: its value, how sure that is, and how it was found."""

    metric: Metric
    method: str
    value: float
    #: Whether the sample can see ranks as small as K; see `unsample.confidence.is_resolved`.
    resolved: bool
    certificate: Certificate
    #: Values of the method on bootstrap samples of the targets.
    replicates: FloatArray = field(repr=False)
    #: What the data say about any metric; None where the full ranks are known.
    certainty: Certainty | None = field(repr=False, default=None)
    #: Standard errors by the delta method; None where they were not asked for.
    error: SamplingError | None = None
    #: Whether the method's value left the range of the metric and was brought back into it.
    clipped: bool = False

    def interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return (low, high), an interval for the true metric, the bias of sampling included.

        It belongs to the metric and not to the method: it asks which values agree with the data,
        given only the stated shape of P(R). ``population`` means users like these; without it
        the metric of these users alone is covered. Of full ranks, it is the interval of a
        bootstrap over targets (and these users' own metric is known).
        """
        if self.certainty is not None:
            return self.certainty.interval(self.metric, level, population=population)
        return self.sampling_interval(level) if population else (self.value, self.value)

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the least and greatest value that agree with the data, whatever P(R) is."""
        if self.certainty is None:
            return self.interval(level)
        return self.certainty.bounds(self.metric, level)

    def sampling_interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the interval of the method's value: of the bootstrap, or by the delta method.

        It says how the method's value would vary, and nothing about how far off the method is.
        """
        if self.error is not None:
            return self.error.interval(self.value, level)
        return percentile_interval(self.replicates, level)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the method's value, for users like these."""
        if len(self.replicates) > 1:
            return float(self.replicates.std(ddof=1))
        return math.nan if self.error is None else self.error.population

    @property
    def credible(self) -> bool:
        """Return whether the value lies in its own interval, or its method is refuted."""
        low, high = self.interval()
        return math.isnan(low) or low - 1e-9 <= self.value <= high + 1e-9

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output."""
        low, high = self.interval()
        bound_low, bound_high = self.bounds()
        return {
            "metric": self.metric.name,
            "method": self.method,
            "value": self.value,
            "low": _or_none(low),
            "high": _or_none(high),
            "bound_low": _or_none(bound_low),
            "bound_high": _or_none(bound_high),
            "resolved": self.resolved,
            "standard_error": _or_none(self.standard_error),
            "solver": str(self.certificate),
        }

    def __str__(self) -> str:
        low, high = self.interval()
        doubt = "" if self.resolved else ", NOT RESOLVED by the sample"
        return f"{self.metric} = {self.value:.4f} [{low:.4f}, {high:.4f}] ({self.method}{doubt})"


@dataclass(frozen=True, eq=False)
class Estimates(Mapping[str, Estimate]):
    """Estimates by metric name; with several methods, by ``(metric, method)``.

    Another name of a metric finds it, too: ``result["HR@10"]`` where Recall@10 was asked for.
    """

    entries: tuple[Estimate, ...]
    counts: RankCounts
    distributions: Mapping[str, RankDistribution]
    warnings: tuple[str, ...] = ()
    #: What was said about the candidates: ``"unseen"``, ``"all"``, or None for nothing.
    candidates: str | None = None
    #: What a method chose and why, for methods that choose.
    explanations: Mapping[str, str] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods in the order given."""
        return tuple(dict.fromkeys(entry.method for entry in self.entries))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics in the order given."""
        return tuple(dict.fromkeys(entry.metric for entry in self.entries))

    @property
    def certainty(self) -> Certainty | None:
        """Return what the data say about any metric; None for full ranks."""
        return self.entries[0].certainty

    def certainty_at(self, cutoffs: Iterable[int]) -> Certainty | None:
        """Return `certainty` prepared for metrics@K at other K."""
        if self.certainty is None:
            return None
        certainty = self.certainty
        return Certainty.of(certainty.counts, cutoffs, certainty.shape)

    @property
    def assumes(self) -> str:
        """Return the assumption behind the intervals, as the end of a sentence."""
        if self.certainty is None:
            return "nothing"
        return str(self.certainty.shape_in_use())

    @property
    def distribution(self) -> RankDistribution:
        """Return P(R) as the method learned it."""
        if len(self.distributions) != 1:
            known = ", ".join(self.distributions) or "none of these methods"
            raise MethodError(f"distribution needs exactly one method that gives P(R), got {known}")
        return next(iter(self.distributions.values()))

    def resolution(
        self, precision: float = 0.25, *, metric: str = "Recall", level: float = DEFAULT_LEVEL
    ) -> Resolution:
        """Return the smallest K at which the interval is within ``precision`` of its middle."""
        return Resolution.find(self.counts, self.certainty_at, precision, metric, level)

    def __getitem__(self, key: str | Metric | tuple[str | Metric, str]) -> Estimate:
        name, method = key if isinstance(key, tuple) else (key, None)
        metric = _metrics.parse(name)
        found = [entry for entry in self.entries if entry.metric == metric]
        found = found or [entry for entry in self.entries if entry.metric.same_as(metric)]
        if method is not None:
            wanted = str(_estimators.parse(method)) if method != "exact" else method
            found = [entry for entry in found if entry.method == wanted]
        if not found:
            raise KeyError(
                f"no estimate of {metric}"
                + (f" by {method}" if method else "")
                + f"; there are {', '.join(map(str, self.metrics))} by {', '.join(self.methods)}"
            )
        if len(found) > 1:
            raise KeyError(f"several methods give {metric}: ask for [{metric.name!r}, method]")
        return found[0]

    def __iter__(self) -> Iterator[Any]:
        several = len(self.methods) > 1
        for entry in self.entries:
            yield (entry.metric.name, entry.method) if several else entry.metric.name

    def __len__(self) -> int:
        return len(self.entries)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": _one_or_range(self.counts.items),
            "sampled": _one_or_range(self.counts.sampled),
            "users": self.counts.total,
            "estimates": [entry.to_dict() for entry in self.entries],
            "warnings": list(self.warnings),
            "candidates": self.candidates,
            "assumes": self.assumes,
            "explanations": dict(self.explanations),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one interactive page, and write it to ``path`` if one is given."""
        return page_of(self, path)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row for each estimate.

        ``backend`` is ``"polars"``, ``"pandas"`` or ``"pyarrow"``; by default the first installed.
        """
        from unsample.pages._frames import frame_from_rows

        return frame_from_rows([entry.to_dict() for entry in self.entries], backend)

    def __str__(self) -> str:
        from unsample.pages._text import estimates_table

        return estimates_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from unsample.pages._text import estimates_html

        return estimates_html(self)


def _one_or_range(values: npt.NDArray[np.int64]) -> int | list[int]:
    low, high = int(values.min()), int(values.max())
    return low if low == high else [low, high]


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
