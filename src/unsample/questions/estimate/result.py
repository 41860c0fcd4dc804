"""`Estimates`: metrics with intervals and bounds, as plain records of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import FloatArray, check_flag
from unsample._rules import import_whole
from unsample._threads import cached_property
from unsample.bounds import Bounds, DirectMean, MeanError
from unsample.counts import RankCounts
from unsample.errors import MethodError, MetricError
from unsample.metrics import Metric, find_metric
from unsample.posterior import Cloud
from unsample.report import Note, Result, View, one_or_range, or_none
from unsample.sampling import RankDistribution
from unsample.uncertainty import DEFAULT_LEVEL, MeanWithError, MeanWithLimits, Uncertain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The method whose value is that of the posterior.
AUTO = "auto"
#: Where an interval comes from: what other data sets say, what holds whatever P(R) is, or known
#: numbers of users, of which only sampling error is left.
PRIOR, BOUNDS, MEAN = "prior", "bounds", "mean"
#: A metric is resolved if the half-width of its interval is at most this part of the value.
_RESOLVED = 0.25


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric by one method: its value, an interval that holds the truth, and bounds."""

    metric: Metric
    method: str
    value: float
    #: ``"prior"``, ``"bounds"`` or ``"mean"``: see `interval`.
    source: str
    #: The bounds at 95 %.
    limits: tuple[float, float] = field(repr=False)
    #: The counts as the metric weighs them.
    counts: RankCounts = field(repr=False)
    #: The metric of users like these; None where the interval is the bounds.
    like: Uncertain | None = field(default=None, repr=False)
    #: The metric of these users; None where it is read from the cloud.
    known: Uncertain | None = field(default=None, repr=False)
    #: The curves that are possible; None without a prior, and where nothing is estimated.
    cloud: Cloud | None = field(default=None, repr=False)

    @classmethod
    def of_known(
        cls, metric: Metric, method: str, *, value: float, error: MeanError, counts: RankCounts
    ) -> Estimate:
        """Return a metric of users whose ranks are all known: other users would have another."""
        like = MeanWithLimits(value, error)
        return cls(
            metric=metric,
            method=method,
            value=value,
            source=MEAN,
            limits=like.interval(DEFAULT_LEVEL),
            counts=counts,
            like=like,
            known=MeanWithError(value, 0.0),
        )

    def interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return (low, high), an interval for the true metric, the bias of sampling included.

        It belongs to the metric and not to the method. Where ``source`` is ``"prior"``, it holds
        the true value for a share ``level`` of data sets like those that the prior was learned
        from. Where it is ``"bounds"``, because there is no prior or nothing is known of shared
        items, it is `bounds`. Where it is ``"mean"``, the value is an unbiased mean, and the
        interval that of a mean. With ``population``, the interval is for users like these; without
        it, for these users: where a full ranking of the same users would land.
        """
        check_flag("population", population)
        uncertain = self.like if population or self.like is None else self.these
        if uncertain is None:
            return self.bounds(level)
        low, high = uncertain.interval(level)
        if self.source == PRIOR:
            least, most = self.bounds(level)
            return min(max(low, least), most), max(min(high, most), least)
        return low, high

    @property
    def these(self) -> Uncertain | None:
        """Return the metric of these users alone: where a full ranking of them would land."""
        if self.known is not None or self.cloud is None:
            return self.known
        return self._of_these_users

    @cached_property
    def _of_these_users(self) -> Uncertain:
        assert self.cloud is not None
        return self.cloud.of_metric(self.metric, population=False)

    @property
    def draws(self) -> FloatArray:
        """Return the metric of each curve of the cloud, in the order of all other metrics."""
        if self.cloud is None or self.source != PRIOR:
            raise MetricError(
                f"{self.metric} must come from the prior to have draws, got one from {self.source}"
            )
        return np.clip(self.cloud.draws(self.metric), *self.limits)

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the least and greatest value that agree with the data, whatever P(R) is."""
        if level == DEFAULT_LEVEL:
            return self.limits
        if isinstance(self.like, MeanWithLimits):
            return self.like.interval(level)  # only sampling error is left
        cutoff = self.metric.cutoff(self.counts.largest_catalogue)
        return Bounds.of(self.counts, [cutoff]).of_metric(self.metric, level)

    def another(self, metric: Metric) -> Estimate:
        """Return another metric of the same data, which weighs targets as this one does."""
        bounds = Bounds.of(self.counts, [metric.cutoff(self.counts.largest_catalogue)])
        return sampled_estimate(
            metric, self.method, counts=self.counts, bounds=bounds, cloud=self.cloud
        )

    @property
    def resolved(self) -> bool:
        """Return whether the 95 % interval's half-width is at most a quarter of the value."""
        low, high = self.interval()
        return (high - low) / 2.0 <= _RESOLVED * self.value

    def to_dict(self, level: float = DEFAULT_LEVEL) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output, with ends at a level."""
        low, high = self.interval(level)
        least, most = self.bounds(level)
        numbers = {"value": self.value, "low": low, "high": high}
        numbers |= {"bound_low": least, "bound_high": most}
        return {
            "metric": self.metric.name,
            "method": self.method,
            **{name: or_none(value) for name, value in numbers.items()},
            "source": self.source,
            "resolved": self.resolved,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        source = ", bounds" if self.source == BOUNDS else ""
        return f"{self.metric} = {self.value:.4f} [{low:.4f} .. {high:.4f}] ({self.method}{source})"


@dataclass(frozen=True, eq=False)
class MeanOfRuns(Estimate):
    """One metric of a model: the mean of its runs, whose spread is a part of the error."""

    runs: tuple[Estimate, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, runs: tuple[Estimate, ...], like: Uncertain | None) -> MeanOfRuns:
        """Return the mean; the interval is that of the bounds where runs have no distribution.

        Runs of the model are always drawn, and with them users: what holds for users like these
        is all that can be said of these users.
        """
        first = runs[0]
        return cls(
            metric=first.metric,
            method=first.method,
            value=sum(each.value for each in runs) / len(runs),
            source=BOUNDS if like is None else first.source,
            limits=_mean_span(each.limits for each in runs),
            counts=first.counts,
            like=like,
            known=like,
            runs=runs,
        )

    def interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return (low, high), for other runs of the model, and for users like these."""
        check_flag("population", population)
        return self.bounds(level) if self.like is None else self.like.interval(level)

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the mean of the bounds of these runs, without variation between trainings."""
        return _mean_span(each.bounds(level) for each in self.runs)

    def another(self, metric: Metric) -> Estimate:
        """Refuse another metric, for which the runs would have to be compared again."""
        raise MetricError(f"{metric} must be asked of compare, which knows all runs of a model")


def _mean_span(spans: Iterable[tuple[float, float]]) -> tuple[float, float]:
    low, high = np.mean(list(spans), axis=0).tolist()
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Result, Mapping[str, Estimate]):
    """Estimates by metric: ``result["NDCG@10"]``, or by method too: ``result["NDCG@10", "mle"]``.

    Without a method, the first that was asked for is used. The keys are the metrics' names as they
    were asked for; other spellings work too (``"HR@10"`` finds ``"Recall@10"``).
    """

    shown_by: ClassVar[str] = "unsample.questions.estimate.view:view_of_estimates"

    #: The question that made it; results of other questions are estimates too.
    made_by: ClassVar[str] = "estimate"

    entries: tuple[Estimate, ...]
    counts: RankCounts
    #: P(R) by method, for methods that estimate it.
    distributions: Mapping[str, RankDistribution]
    notes: tuple[Note, ...] = ()
    #: How targets were ranked: ``"unseen"``, for instance, or None if it was not stated.
    protocol: str | None = None
    #: Whether metrics are per target, because a user's other relevant items were left out.
    filtered: bool = False
    #: The level of the intervals that are shown.
    level: float = DEFAULT_LEVEL

    @property
    def guided(self) -> bool:
        """Return whether more is known of these users than of users like these."""
        return False

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods in the given order."""
        return tuple(dict.fromkeys(entry.method for entry in self.entries))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics in the given order."""
        return tuple({entry.metric.name: entry.metric for entry in self.entries}.values())

    def distribution(self, method: str | None = None) -> RankDistribution:
        """Return P(R) as a method estimated it; by default the first method that gives it."""
        if not self.distributions:
            raise MethodError("method must be one that estimates P(R), got none of them; try mle")
        if method is None:
            return next(iter(self.distributions.values()))
        if method not in self.distributions:
            there = ", ".join(self.distributions)
            raise MethodError(f"method must be one of {there}, which estimated P(R), got {method}")
        return self.distributions[method]

    @property
    def curves(self) -> Cloud:
        """Return the curves P(R) that the data and other data sets allow, as one object.

        >>> import unsample
        >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
        >>> result = unsample.estimate(ranks, items=3706, sampled=99)
        >>> low, high = result.curves.metric("Recall@37").interval()
        >>> low < result.curves.metric("Recall@37").value < high
        True
        """
        clouds = [entry.cloud for entry in self.entries if entry.cloud is not None]
        alike = [each for each in clouds if each.weighs_alike] or clouds
        if not alike:
            raise MethodError(
                "curves must come from sampled ranks and a prior, got none: full rankings have one "
                "P(R), and without a prior there are bounds alone"
            )
        return alike[0]

    def metric(self, name: str | Metric) -> Estimate:
        """Return any other metric, from the stored curve, by the first method of the result."""
        asked = _metrics.parse(name)
        if find_metric(asked, self.metrics, several=self.counts.several) is not None:
            return self[asked]
        counts = self.counts.for_metric(asked)
        alike = (
            entry
            for entry in self.entries
            if np.array_equal(entry.counts.weight, counts.weight)
            and not isinstance(entry.like, MeanWithLimits)
        )
        entry = next(alike, None)
        if entry is None:
            raise MetricError(
                f"{asked} must be asked for with the ranks: none of {', '.join(self)} is estimated "
                "and weighs the relevant items of a user in the same way"
            )
        found, curve = entry.another(asked), self.distributions.get(entry.method)
        value = found.value
        if entry.method != AUTO and DirectMean.of(asked, counts) is None:
            if curve is None:
                raise MetricError(f"{asked} must be asked of estimate: {entry.method} has no P(R)")
            value = min(counts.weight_per_user * curve.expect(asked), counts.ceiling(asked))
        return replace(found, method=entry.method, value=value)

    def plot_curve(
        self,
        *,
        metric: str = "Recall",
        largest: int = 200,
        full_ranks: npt.ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot a metric@K against K: the estimate, its interval and its bounds.

        With ``largest`` the size of the catalogue, Recall@K is the whole of P(R), summed up.
        ``full_ranks`` adds the exact curve, where the truth is known.
        """
        axes: Axes = import_whole("unsample.questions.estimate.curves").plot_curve(
            self, metric=metric, largest=largest, full_ranks=full_ranks, ax=ax
        )
        return axes

    def __getitem__(self, key: str | Metric | tuple[str | Metric, str]) -> Estimate:
        name, method = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        metric = find_metric(name, self.metrics, several=self.counts.several)
        for entry in self.entries:
            if entry.metric == metric and method in (None, entry.method):
                return entry
        by = f" by {method}" if method else ""
        there = f"{', '.join(self)} by {', '.join(self.methods)}"
        raise KeyError(f"no estimate of {name}{by}; there are {there}")

    def __iter__(self) -> Iterator[str]:
        return iter(metric.name for metric in self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    @staticmethod
    def view_of_groups(groups: Mapping[str, Estimates]) -> View:
        """Return what is shown of the estimates of several names."""
        made: View = import_whole("unsample.questions.estimate.view").view_of_groups(groups)
        return made

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each metric and method."""
        return [entry.to_dict(self.level) for entry in self.entries]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": one_or_range(*self.counts.catalogues),
            "sampled": one_or_range(*self.counts.samples),
            "users": self.counts.users,
            "targets": self.counts.total,
            "estimates": self.rows(),
            "warnings": list(self.warnings),
            "level": self.level,
            "protocol": self.protocol,
            "filtered": self.filtered,
            "negatives": "own" if self.counts.shared is None else "shared",
        }


# -- what is known of one metric, whatever the method ---------------------------------------------


def sampled_estimate(
    metric: Metric,
    method: str,
    *,
    counts: RankCounts,
    bounds: Bounds,
    cloud: Cloud | None,
) -> Estimate:
    """Return a metric of sampled ranks: an unbiased mean, or what the cloud says."""
    limits = bounds.of_metric(metric)
    direct = DirectMean.of(metric, counts)
    found = read_from(cloud, metric, limits) if direct is None else _of_direct(direct)
    return Estimate(
        metric=metric,
        method=method,
        value=found.value,
        source=found.source,
        limits=limits,
        counts=counts,
        like=found.like,
        known=found.known,
        cloud=cloud,
    )


class Reading(NamedTuple):
    """What is known of a metric, and where it comes from."""

    value: float
    source: str
    like: Uncertain | None = None
    known: Uncertain | None = None


def read_from(cloud: Cloud | None, metric: Metric, limits: tuple[float, float]) -> Reading:
    """Return what a cloud says of a metric; the value is kept within its bounds.

    Without a cloud the value is the middle of the bounds.
    """
    if cloud is None or metric.family.unlimited:
        return Reading((limits[0] + limits[1]) / 2.0, BOUNDS)
    like = cloud.of_metric(metric)
    value = min(max(like.value, limits[0]), limits[1])
    unknown = cloud.blind or cloud.rests_on_few_items(metric)
    return Reading(value, BOUNDS) if unknown else Reading(value, PRIOR, like)


def _of_direct(direct: DirectMean) -> Reading:
    """Return a metric that is linear in the rank: the sample's own mean is unbiased."""
    error, own = (direct.error(population=each) for each in (True, False))
    if error is None or own is None or direct.counts.users < 2:
        return Reading(direct.value, BOUNDS)
    ends = {"minimum": min(direct.min_value, 0.0), "maximum": max(direct.max_value, 1.0)}
    # Errors count users, and few users tell little of how much they vary.
    df = max(direct.counts.effective_users - 1.0, 1.0)
    like, these = (MeanWithError(direct.value, each, df, **ends) for each in (error, own))
    return Reading(direct.value, MEAN, like, these)
