"""The front door: `estimate` and `exact`, and the results they return."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import FloatArray, Seed, as_rng, check_integer
from unsample.confidence import blind_rank, is_resolved, percentile_interval
from unsample.counts import RankCounts
from unsample.distribution import RankDistribution
from unsample.errors import (
    BiasedMethodWarning,
    ConvergenceWarning,
    DesignError,
    InputError,
    MethodError,
    RankError,
    UnresolvedWarning,
    UnsampleWarning,
)
from unsample.estimators import Estimator, Evaluation, Observed, group_catalogues
from unsample.metrics import Metric
from unsample.sampling import Design
from unsample.simplex import Certificate, Status

__all__ = ["DEFAULT_METRICS", "Estimate", "Estimates", "estimate", "exact"]

DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
DEFAULT_LEVEL = 0.95
#: Ranks that stand alone in the distribution of exact ranks; beyond them bins are as fine as ever.
_MOST_SINGLE_RANKS = 20_000


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric by one method: its value, how sure that is, and how it was found."""

    metric: Metric
    method: str
    value: float
    #: Whether the sample can see ranks as small as K; see `unsample.confidence.is_resolved`.
    resolved: bool
    certificate: Certificate
    replicates: FloatArray = field(repr=False)

    def interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return (low, high) from a bootstrap over targets.

        It covers the chance of who was evaluated and of which items were sampled. It does not
        cover the bias of the method: where ``resolved`` is false, that may be far larger.
        """
        return percentile_interval(self.replicates, level)

    @property
    def standard_error(self) -> float:
        """Return the standard deviation of the bootstrap replicates."""
        return float(self.replicates.std(ddof=1)) if len(self.replicates) > 1 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output."""
        low, high = self.interval()
        return {
            "metric": self.metric.name,
            "method": self.method,
            "value": self.value,
            "low": _or_none(low),
            "high": _or_none(high),
            "bound_low": None,
            "bound_high": None,
            "resolved": self.resolved,
            "solver": str(self.certificate),
        }

    def __str__(self) -> str:
        low, high = self.interval()
        doubt = "" if self.resolved else ", NOT RESOLVED by the sample"
        return f"{self.metric} = {self.value:.4f} [{low:.4f}, {high:.4f}] ({self.method}{doubt})"


@dataclass(frozen=True, eq=False)
class Estimates(Mapping[str, Estimate]):
    """Estimates by metric name; with several methods, by ``(metric, method)``.

    Any spelling of a metric finds it: ``result["HR@10"]`` is ``result["Recall@10"]``.
    """

    entries: tuple[Estimate, ...]
    counts: RankCounts
    distributions: Mapping[str, RankDistribution]
    warnings: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods in the order given."""
        return tuple(dict.fromkeys(entry.method for entry in self.entries))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics in the order given."""
        return tuple(dict.fromkeys(entry.metric for entry in self.entries))

    @property
    def distribution(self) -> RankDistribution:
        """Return P(R) as the method learned it."""
        if len(self.distributions) != 1:
            known = ", ".join(self.distributions) or "none of these methods"
            raise MethodError(f"distribution needs exactly one method that gives P(R), got {known}")
        return next(iter(self.distributions.values()))

    def __getitem__(self, key: str | Metric | tuple[str | Metric, str]) -> Estimate:
        name, method = key if isinstance(key, tuple) else (key, None)
        metric = _metrics.parse(name)
        found = [entry for entry in self.entries if entry.metric == metric]
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
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row for each estimate.

        ``backend`` is ``"polars"``, ``"pandas"`` or ``"pyarrow"``; by default the first installed.
        """
        from unsample._frames import frame_from_rows

        return frame_from_rows([entry.to_dict() for entry in self.entries], backend)

    def __str__(self) -> str:
        from unsample._text import estimates_table

        return estimates_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from unsample._text import estimates_html

        return estimates_html(self)


def estimate(
    ranks: npt.ArrayLike | RankCounts,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = "mle",
    weights: npt.ArrayLike | None = None,
    replacement: bool = True,
    sampler: str = "uniform",
    resamples: int = 400,
    rng: Seed = 0,
) -> Estimates:
    """Estimate full-catalogue metrics from ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each target among the ``sampled + 1`` items it was ranked with, 1 the best;
        or `RankCounts`, which already know ``items`` and ``sampled``.
    items
        The number of candidates in a full ranking, the target included: one number, or one for
        each target (where seen items are left out of the candidates, it differs by user).
    sampled
        The number of items sampled for a target, without the target: one number or one each.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Names from `unsample.estimators.REGISTRY` such as ``"mle"`` or ``"bv(gamma=0.01)"``.
    weights
        How much each target counts, where they differ (1/3 each for a user's three targets).
    replacement
        Whether the same item may be sampled twice for a target.
    sampler
        ``"uniform"``; anything else is refused with the reason.
    resamples
        Bootstrap samples behind the intervals; 0 for none.
    rng
        Seed or Generator of the bootstrap.

    >>> result = estimate([1, 1, 2, 5, 40], items=3706, sampled=99, metrics="Recall@50")
    >>> round(result["Recall@50"].value, 2), result["Recall@50"].resolved
    (0.56, True)
    """
    if sampler != "uniform":
        Design(items=2, sampled=1, sampler=sampler)
    counts = _as_counts(ranks, items, sampled, weights, replacement)
    wanted = _metrics.parse_all(metrics)
    methods = _estimators.parse_all(method)
    resamples = check_integer("resamples", resamples, minimum=0)
    for one in methods:
        one.require(wanted)
    # Grouping first keeps the bootstrap small where every user has a catalogue of its own.
    grouped = group_catalogues(counts)
    resampled = _resample(grouped, resamples, rng)
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in wanted]
    observed = Observed.prepare(grouped, resampled=resampled, cutoffs=cutoffs)
    evaluations = {str(one): one.evaluate(observed, wanted) for one in methods}
    notes: list[tuple[type[UnsampleWarning], str]] = [
        *_resolution_notes(wanted, counts),
        *((BiasedMethodWarning, one.caution) for one in methods if one.caution),
        *_solver_notes(evaluations),
    ]
    for category, text in notes:
        warnings.warn(text, category, stacklevel=2)
    return Estimates(
        tuple(
            Estimate(
                metric,
                name,
                float(evaluation.values[0, column]),
                is_resolved(metric, counts),
                evaluation.certificate,
                evaluation.values[1:, column],
            )
            for name, evaluation in evaluations.items()
            for column, metric in enumerate(wanted)
        ),
        counts,
        {
            name: evaluation.distribution
            for name, evaluation in evaluations.items()
            if evaluation.distribution is not None
        },
        tuple(text for _, text in notes),
    )


def exact(
    full_ranks: npt.ArrayLike,
    *,
    items: npt.ArrayLike,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    weights: npt.ArrayLike | None = None,
    resamples: int = 400,
    rng: Seed = 0,
) -> Estimates:
    """Return plain metrics of ranks in the full catalogue, as the same kind of result.

    The values hold for these targets without error; the intervals say how far they would move
    with other targets like these.

    >>> exact([1, 3, 20], items=100, metrics="HR@10")["HR@10"].value
    0.6666666666666666
    """
    sizes = np.asarray(items)
    try:
        counts = RankCounts.from_ranks(
            full_ranks, items=items, sampled=sizes - 1, weights=weights, replacement=False
        )
    except RankError as problem:
        raise RankError(str(problem).replace("sampled + 1", "items")) from problem
    wanted = _metrics.parse_all(metrics)
    resamples = check_integer("resamples", resamples, minimum=0)
    observed = Observed.prepare(
        counts,
        resampled=_resample(counts, resamples, rng),
        cutoffs=np.unique(counts.low)[:_MOST_SINGLE_RANKS],
    )
    closed = Certificate(Status.CLOSED_FORM, 0.0, 0.0, 0.0, 0)
    entries = []
    for metric in wanted:
        values = observed.known_metric(metric)
        entries.append(Estimate(metric, "exact", float(values[0]), True, closed, values[1:]))
    masses = RankDistribution(observed.grid, observed.known_mass()[0])
    return Estimates(tuple(entries), counts, {"exact": masses})


def _as_counts(
    ranks: npt.ArrayLike | RankCounts,
    items: npt.ArrayLike | None,
    sampled: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    replacement: bool,
) -> RankCounts:
    if isinstance(ranks, RankCounts):
        if items is not None or sampled is not None or weights is not None:
            raise InputError(
                "items, sampled and weights must be left out with RankCounts, which hold them"
            )
        return ranks
    for name, value in (("items", items), ("sampled", sampled)):
        if value is None:
            raise DesignError(
                f"{name} must be given with ranks, got None; see help(unsample.estimate)"
            )
    return RankCounts.from_ranks(
        ranks,
        items=items,  # type: ignore[arg-type]
        sampled=sampled,  # type: ignore[arg-type]
        weights=weights,
        replacement=replacement,
    )


def _resample(counts: RankCounts, size: int, rng: Seed) -> FloatArray | None:
    # One target, or ranks that are all alike, resample only to themselves: an interval of width
    # zero would be a lie.
    if size == 0 or counts.effective < 2 or np.count_nonzero(counts.weight) < 2:
        return None
    return counts.resample(size, rng=as_rng(rng))


def _resolution_notes(
    wanted: tuple[Metric, ...], counts: RankCounts
) -> list[tuple[type[UnsampleWarning], str]]:
    blind = [metric.name for metric in wanted if not is_resolved(metric, counts)]
    if not blind:
        return []
    smallest = math.ceil(blind_rank(counts) - 1e-9)
    are = "is" if len(blind) == 1 else "are"
    return [
        (
            UnresolvedWarning,
            (
                f"{', '.join(blind)} {are} not resolved: fewer than one sampled item falls into "
                "the top K on average, so the value rests on the method's assumption about the "
                f"top ranks; this sample resolves K >= {smallest}"
            ),
        )
    ]


def _solver_notes(
    evaluations: Mapping[str, Evaluation],
) -> list[tuple[type[UnsampleWarning], str]]:
    notes: list[tuple[type[UnsampleWarning], str]] = []
    for name, evaluation in evaluations.items():
        if not evaluation.certificate.usable:
            text = f"{name} did not converge on the data: {evaluation.certificate}"
            notes.append((ConvergenceWarning, text))
        elif evaluation.failures:
            text = f"{name} did not converge on {evaluation.failures} bootstrap samples"
            notes.append((ConvergenceWarning, text))
    return notes


def _one_or_range(values: npt.NDArray[np.int64]) -> int | list[int]:
    low, high = int(values.min()), int(values.max())
    return low if low == high else [low, high]


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
