"""`Estimates`: metrics with intervals and bounds, as plain records of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import FloatArray, check_flag, check_level
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

#: The method that gives the value of the posterior.
AUTO = "auto"
#: Sources of an interval: other data sets, ...
PRIOR = "prior"
#: ... the limits that hold whatever P(R) is, ...
BOUNDS = "bounds"
#: ... or a mean over users, which has a sampling error alone.
MEAN = "mean"
#: A metric is resolved if the half-width of its interval is at most this part of the value.
_RESOLVED = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """One metric by one method: its value, an interval for the true metric, and bounds.

    >>> import unsample
    >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
    >>> estimate = unsample.estimate(ranks, items=3706, sampled=99, metrics="AUC")["AUC"]
    >>> round(estimate.value, 3), estimate.source
    (0.779, 'mean')
    >>> [round(end, 3) for end in estimate.interval(0.95)]
    [0.75, 0.808]
    >>> estimate
    AUC = 0.7787 [0.7497 .. 0.8078] (auto, 95 % interval)
    """

    metric: Metric
    method: str
    value: float
    #: ``"prior"``, ``"bounds"`` or ``"mean"``: see `interval`.
    source: str
    #: The bounds at 95 %.
    limits: tuple[float, float] = field(repr=False)
    #: The counts as the metric weighs them.
    counts: RankCounts = field(repr=False)
    #: The metric of users like these; None if the interval is the bounds.
    like: Uncertain | None = field(default=None, repr=False)
    #: The metric of these users; None if it is read from the cloud.
    known: Uncertain | None = field(default=None, repr=False)
    #: The curves that are possible; None without a prior, and if nothing is estimated.
    cloud: Cloud | None = field(default=None, repr=False)

    @classmethod
    def of_known(
        cls, metric: Metric, method: str, *, value: float, error: MeanError, counts: RankCounts
    ) -> Estimate:
        """Return a metric of users whose ranks are all known; only other users would differ."""
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
        """Return (low, high), an interval for the true metric; it allows for the bias of sampling.

        The interval belongs to the metric, not to the method. Its meaning depends on ``source``:

        * ``"prior"``: it holds the true value for a share ``level`` of data sets like those that
          the prior was learned from;
        * ``"bounds"``: it is `bounds`, because there is no prior, or because nothing is known of
          shared items;
        * ``"mean"``: the value is an unbiased mean, and the interval allows for its sampling error.

        Parameters
        ----------
        level
            The probability with which the interval holds.
        population
            True: the interval is for users like these. False: it is for these users, and says where
            a full ranking of them would land.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.
        """
        check_flag("population", population)
        uncertain = self.like if population or self.like is None else self.these
        if uncertain is None:
            return self.bounds(level)
        low, high = uncertain.interval(level)
        if self.source != PRIOR:
            return low, high
        lower, upper = self.bounds(level)
        return min(max(low, lower), upper), max(min(high, upper), lower)

    @property
    def these(self) -> Uncertain | None:
        """Return the metric of these users alone, as a full ranking of them would give it."""
        if self.known is not None or self.cloud is None:
            return self.known
        return self._of_these_users

    @cached_property
    def _of_these_users(self) -> Uncertain:
        assert self.cloud is not None
        return self.cloud.of_metric(self.metric, population=False)

    @property
    def draws(self) -> FloatArray:
        """Return the metric of each curve of the cloud; all metrics have them in one order."""
        if self.cloud is None or self.source != PRIOR:
            raise MetricError(
                f"{self.metric} must come from the prior to have draws, got one from {self.source}"
            )
        return np.clip(self.cloud.draws(self.metric), *self.limits)

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the smallest and the largest value that agree with the data, whatever P(R) is.

        They hold with the probability ``level``, for any number of users.
        """
        level = check_level(level)
        if level not in self._bounds_by_level:
            self._bounds_by_level[level] = self._bounds_at(level)
        return self._bounds_by_level[level]

    @cached_property
    def _bounds_by_level(self) -> dict[float, tuple[float, float]]:
        """Return the bounds that are known so far: a linear program is solved once a level."""
        return {DEFAULT_LEVEL: self.limits}

    def _bounds_at(self, level: float) -> tuple[float, float]:
        """Compute the bounds at a level."""
        if isinstance(self.like, MeanWithLimits):
            return self.like.interval(level)  # only sampling error is left
        return self._bounds_of_data.of_metric(self.metric, level)

    @cached_property
    def _bounds_of_data(self) -> Bounds:
        """Return what the bounds at all levels have in common."""
        cutoff = self.metric.cutoff(self.counts.largest_catalogue)
        return Bounds.of(self.counts, [cutoff])

    def another(self, metric: Metric) -> Estimate:
        """Return another metric of the same data; it must weigh targets as this one does."""
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
        """Return the fields of one entry of the JSON output, with the interval at a level."""
        low, high = self.interval(level)
        bound_low, bound_high = self.bounds(level)
        return {
            "metric": self.metric.name,
            "method": self.method,
            "value": or_none(self.value),
            "low": or_none(low),
            "high": or_none(high),
            "bound_low": or_none(bound_low),
            "bound_high": or_none(bound_high),
            "source": self.source,
            "resolved": self.resolved,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        kind = "bounds" if self.source == BOUNDS else "interval"
        how = f"{self.method}, {100 * DEFAULT_LEVEL:g} % {kind}"
        return f"{self.metric} = {self.value:.4f} [{low:.4f} .. {high:.4f}] ({how})"

    __repr__ = __str__


@dataclass(frozen=True, eq=False, repr=False)
class MeanOfRuns(Estimate):
    """One metric of a model: the mean of its runs, whose spread is a part of the error."""

    runs: tuple[Estimate, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, runs: tuple[Estimate, ...], like: Uncertain | None) -> MeanOfRuns:
        """Return the mean of runs; without a distribution (``like``) its interval is the bounds.

        Other runs would have seen other users too. So the interval for these users is the one for
        users like these.
        """
        first = runs[0]
        return cls(
            metric=first.metric,
            method=first.method,
            value=sum(run.value for run in runs) / len(runs),
            source=BOUNDS if like is None else first.source,
            limits=_mean_span(run.limits for run in runs),
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
        return _mean_span(run.bounds(level) for run in self.runs)

    def another(self, metric: Metric) -> Estimate:
        """Refuse another metric, for which the runs would have to be compared again."""
        raise MetricError(f"{metric} must be asked of compare, which knows all runs of a model")


def _mean_span(spans: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean of the low ends, and of the high ends."""
    low, high = np.mean(list(spans), axis=0).tolist()
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Result, Mapping[str, Estimate]):
    """Estimates by metric: ``result["NDCG@10"]``, or by method too: ``result["NDCG@10", "mle"]``.

    Without a method, the first that was asked for is used. The keys are the names of the metrics as
    they were asked for. Another name finds the same metric. HR@10 and Recall@10 are the same only
    if each user has one target, so ``"HR@10"`` finds ``"Recall@10"`` in such results and in no
    others.

    >>> import unsample
    >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
    >>> result = unsample.estimate(ranks, items=3706, sampled=99, metrics=["Recall@100", "AUC"])
    >>> list(result), "HR@100" in result
    (['Recall@100', 'AUC'], True)
    >>> [round(result[name].value, 1) for name in result]
    [0.3, 0.8]
    >>> users = [user // 2 for user in range(300)]
    >>> result = unsample.estimate(
    ...     ranks, items=3706, sampled=99, users=users, metrics="Recall@100"
    ... )
    >>> "HR@100" in result
    False
    """

    shown_by: ClassVar[str] = "unsample.questions.estimate.view:view_of_estimates"

    #: The question that the result answers; results of other questions are estimates too.
    made_by: ClassVar[str] = "estimate"

    entries: tuple[Estimate, ...]
    counts: RankCounts
    #: P(R) by method, for methods that estimate it.
    distributions: Mapping[str, RankDistribution]
    notes: tuple[Note, ...] = ()
    #: How targets were ranked, such as ``"unseen"``; None if it was not stated.
    protocol: str | None = None
    #: Whether metrics are means over targets, because a user's other relevant items were left out.
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
        """Return P(R) as a method estimated it; by default the first method that estimates it.

        Raises
        ------
        MethodError
            If the method, or every method, estimates no P(R).
        """
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
        """Return the cloud of curves P(R) that the data and other data sets allow.

        >>> import unsample
        >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
        >>> result = unsample.estimate(ranks, items=3706, sampled=99)
        >>> recall = result.curves.metric("Recall@100")
        >>> round(recall.value, 1), [round(end, 1) for end in recall.interval(0.9)]
        (0.3, [0.3, 0.4])

        Raises
        ------
        MethodError
            If there are no curves: without a prior, or if all ranks are known.
        """
        clouds = [entry.cloud for entry in self.entries if entry.cloud is not None]
        equally = [cloud for cloud in clouds if cloud.weighs_alike] or clouds
        if not equally:
            raise MethodError(
                "curves must come from sampled ranks and a prior, got none: full rankings have one "
                "P(R), and without a prior there are bounds alone"
            )
        return equally[0]

    def metric(self, name: str | Metric) -> Estimate:
        """Return any other metric, from the stored curves, by the first method of the result.

        >>> import unsample
        >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
        >>> result = unsample.estimate(ranks, items=3706, sampled=99, metrics="NDCG@10")
        >>> round(result.metric("Recall@100").value, 1)
        0.3

        Raises
        ------
        MetricError
            If the metric weighs the relevant items of a user in another way than all metrics of the
            result, or if the first method estimates no P(R).
        """
        asked = _metrics.parse(name)
        if find_metric(asked, self.metrics, several=self.counts.several) is not None:
            return self[asked]
        counts = self.counts.for_metric(asked)
        same_weights = [
            entry
            for entry in self.entries
            if np.array_equal(entry.counts.weight, counts.weight)
            and not isinstance(entry.like, MeanWithLimits)
        ]
        if not same_weights:
            raise MetricError(
                f"{asked} must be asked for with the ranks: none of {', '.join(self)} is estimated "
                "and weighs the relevant items of a user in the same way"
            )
        entry = same_weights[0]
        other = entry.another(asked)
        value = other.value
        if entry.method != AUTO and DirectMean.of(asked, counts) is None:
            curve = self.distributions.get(entry.method)
            if curve is None:
                raise MetricError(f"{asked} must be asked of estimate: {entry.method} has no P(R)")
            value = min(counts.weight_per_user * curve.expect(asked), counts.ceiling(asked))
        return replace(other, method=entry.method, value=value)

    def plot_curve(
        self,
        *,
        metric: str = "Recall",
        largest: int = 200,
        full_ranks: npt.ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot a metric@K against K: the estimate, its interval and its bounds.

        Parameters
        ----------
        metric
            The name of the metric without K.
        largest
            The largest K. With the size of the catalogue, Recall@K is the whole of P(R), summed up.
        full_ranks
            Ranks among all items, if they are known: they add the exact curve.
        ax
            The axes to use; by default new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.

        Raises
        ------
        InputError
            If the first method gives no P(R) that weighs targets as the metric does.
        """
        axes: Axes = import_whole("unsample.questions.estimate.curves").plot_curve(
            self, metric=metric, largest=largest, full_ranks=full_ranks, ax=ax
        )
        return axes

    def __getitem__(self, key: str | Metric | tuple[str | Metric, str]) -> Estimate:
        name: Any = key
        method: str | None = None
        if isinstance(key, tuple) and len(key) == 2:
            name, method = key
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
        """Return the view of several results by name."""
        view: View = import_whole("unsample.questions.estimate.view").view_of_groups(groups)
        return view

    @property
    def targets_read(self) -> int | None:
        """Return how many targets were read, over all runs of a model."""
        first = self.entries[0]
        if isinstance(first, MeanOfRuns):
            return sum(run.counts.total for run in first.runs)
        return self.counts.total

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each metric and method."""
        return [entry.to_dict(self.level) for entry in self.entries]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it.

        ``P(R)`` holds the share of targets in ranges of ranks, by method, with its interval.
        """
        ranges = import_whole("unsample.questions.estimate.curves").RankRanges.of(self)
        return self.header() | {
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
            "P(R)": None if ranges is None else ranges.to_dict(),
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
    """Return a metric of sampled ranks: an unbiased mean, or else a reading of the cloud."""
    limits = bounds.of_metric(metric)
    direct = DirectMean.of(metric, counts)
    reading = read_from(cloud, metric, limits=limits) if direct is None else _of_direct(direct)
    return Estimate(
        metric=metric,
        method=method,
        value=reading.value,
        source=reading.source,
        limits=limits,
        counts=counts,
        like=reading.like,
        known=reading.known,
        cloud=cloud,
    )


class Reading(NamedTuple):
    """The value of a metric, the source of its interval, and its distributions."""

    value: float
    source: str
    #: For users like these, and for these users, if they are known.
    like: Uncertain | None = None
    known: Uncertain | None = None


def read_from(cloud: Cloud | None, metric: Metric, *, limits: tuple[float, float]) -> Reading:
    """Return a metric as a cloud gives it, with its value kept within the bounds.

    Without a cloud the value is the middle of the bounds.
    """
    low, high = limits
    if cloud is None or metric.family.unlimited:
        return Reading((low + high) / 2.0, BOUNDS)
    like = cloud.of_metric(metric)
    value = min(max(like.value, low), high)
    if cloud.blind or cloud.rests_on_few_items(metric):
        return Reading(value, BOUNDS)
    return Reading(value, PRIOR, like=like)


def _of_direct(direct: DirectMean) -> Reading:
    """Return a metric that is linear in the rank: the sample's own mean is unbiased."""
    error = direct.error(population=True)
    error_of_these = direct.error(population=False)
    if error is None or error_of_these is None or direct.counts.users < 2:
        return Reading(direct.value, BOUNDS)
    # Errors count users, and few users tell little of how much they vary.
    df = max(direct.counts.effective_users - 1.0, 1.0)
    like = MeanWithError(
        direct.value,
        error,
        df=df,
        minimum=min(direct.min_value, 0.0),
        maximum=max(direct.max_value, 1.0),
    )
    return Reading(direct.value, MEAN, like=like, known=replace(like, error=error_of_these))
