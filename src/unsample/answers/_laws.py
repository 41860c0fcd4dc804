"""The joint law of one metric of several models, from which all that a comparison says follows.

Models with sampled ranks have a joint posterior of the logarithms of their metrics. Models whose
users' values are known (full rankings, drawn users, unbiased means) have a joint t law of their
means. Where both kinds meet, means are taken as logarithms, independent of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.answers._estimates import Estimate, Estimates, MeanOfRuns
from unsample.answers._model import Model
from unsample.answers._paired import Added, Pairing
from unsample.answers._spread import DirectSpread, LogSpread, MeanSpread, Spread
from unsample.bounds import DirectMean, DrawnError, degrees_of_freedom, quantile
from unsample.designs import UserValues
from unsample.estimators import Observed
from unsample.metrics import Metric
from unsample.prior import (
    BOUNDS,
    CAUTION,
    DRAWS,
    PRIOR,
    Law,
    Posterior,
    best_of,
    cautious,
    draws_of_runs,
    runs_apart,
    symmetric_root,
    with_runs,
)

#: The least value of which there is a logarithm.
_LEAST = 1e-12
#: An error below this share of the errors of the two models comes from rounding.
_NO_ERROR = 1e-9


class DifferenceLaw(Protocol):
    """What the difference of two models may be."""

    @property
    def value(self) -> float:
        """Return the difference of the two values."""

    @property
    def chance(self) -> float:
        """Return the chance that it is positive."""

    def below(self, value: float) -> float:
        """Return the chance that it is less than this; NaN where there is no law."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return its two-sided interval: both ends together hold at this level."""


@dataclass(frozen=True)
class MeanDifference:
    """The difference of two means over users: a t law."""

    value: float
    error: float
    freedom: float

    @property
    def chance(self) -> float:
        """Return the chance that the difference is positive; one half where nothing varies."""
        return 1.0 - self.below(0.0)

    def below(self, value: float) -> float:
        """Return the chance that the difference is less than this."""
        from scipy.special import stdtr

        if self.error == 0.0:
            return 0.5 + 0.5 * float(np.sign(value - self.value))
        return float(stdtr(self.freedom, (value - self.value) / self.error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the difference."""
        reach = quantile(level, self.freedom) * self.error
        return self.value - reach, self.value + reach


@dataclass(frozen=True)
class BoundDifference:
    """A difference of which only the bounds of both models are known; chances are withheld."""

    value: float
    first: Estimate = field(repr=False)
    second: Estimate = field(repr=False)

    @property
    def chance(self) -> float:
        """Return nothing: there is no law."""
        return math.nan

    def below(self, value: float) -> float:
        """Return nothing: there is no law."""
        del value
        return math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the least and the greatest difference; each model has half of the error."""
        both = 1.0 - (1.0 - check_level(level)) / 2.0
        (low, high), (other_low, other_high) = (
            each.interval(both) for each in (self.first, self.second)
        )
        return low - other_high, high - other_low


@dataclass(frozen=True, eq=False)
class MeanLaw:
    """The joint t law of several models' means over users."""

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray
    #: Degrees of freedom of each model's difference from each other.
    freedom: FloatArray
    #: The squared scale that comes from the spread of each model's runs, and its freedom.
    runs: tuple[tuple[float, float], ...] = ()

    def averaged(self, runs: Mapping[str, Sequence[str]]) -> MeanLaw:
        """Return the law of models, given which of the names are the runs of each."""
        places = [[self.names.index(name) for name in names] for names in runs.values()]
        shares = np.zeros((len(runs), len(self.names)))
        for row, at in zip(shares, places, strict=True):
            row[at] = 1.0 / len(at)
        degrees = [[self.freedom[np.ix_(a, b)].min() for b in places] for a in places]
        between = [runs_apart(self.mean[at], self.covariance[np.ix_(at, at)]) for at in places]
        covariance = shares @ self.covariance @ shares.T
        mean, freedom = shares @ self.mean, np.array(degrees)
        return MeanLaw(tuple(runs), mean, covariance, freedom, tuple(between))

    def spread(self, name: str) -> tuple[float, float]:
        """Return scale and freedom of one model's mean."""
        at = self.names.index(name)
        scale, freedom = math.sqrt(self.covariance[at, at]), float(self.freedom[at, at])
        return with_runs(scale, freedom, self.runs[at : at + 1])

    def difference(self, a: str, b: str) -> MeanDifference:
        """Return the law of the first model's mean less the second's."""
        i, j = self.names.index(a), self.names.index(b)
        alone = math.sqrt(self.covariance[i, i] + self.covariance[j, j])
        square = alone**2 - 2.0 * float(self.covariance[i, j])
        error = math.sqrt(max(square, 0.0))
        if error <= _NO_ERROR * alone:
            # Equal differences for all users do not prove that chance plays no part.
            error = alone
        runs = [cautious(*self.runs[at]) for at in (i, j)] if self.runs else []
        found = with_runs(error * math.sqrt(CAUTION), float(self.freedom[i, j]), runs)
        return MeanDifference(float(self.mean[i] - self.mean[j]), *found)

    def draws(self) -> FloatArray:
        """Return values that the means may have, as they count in comparisons."""
        rng, shape = np.random.default_rng(33), (DRAWS, len(self.names))
        noise = rng.standard_normal(shape) @ symmetric_root(CAUTION * self.covariance)
        freedom = self.freedom.min()
        tails = np.sqrt(freedom / rng.chisquare(freedom, size=(DRAWS, 1)))
        return np.asarray(self.mean + noise * tails + draws_of_runs(self.runs, shape, rng))


@dataclass(frozen=True, eq=False)
class Laws:
    """The joint law of any metric of some models; computed once for each metric.

    ``models`` and ``estimates`` are those of single runs, ``runs`` says which are one model's.
    """

    models: Sequence[Model]
    estimates: Mapping[str, Estimates]
    pairing: Pairing
    runs: Mapping[str, Sequence[str]]
    _found: dict[str, tuple[Law | MeanLaw, ...]] = field(default_factory=dict, repr=False)
    _joined: dict[tuple[int, ...], Posterior] = field(default_factory=dict, repr=False)

    @cached_property
    def averages(self) -> dict[str, Estimates]:
        """Return the estimates of each model: those of its only run, or of the mean of its runs."""
        return {
            name: self._averaged(name, [self.estimates[run] for run in runs])
            if len(runs) > 1
            else self.estimates[runs[0]]
            for name, runs in self.runs.items()
        }

    def _averaged(self, name: str, runs: Sequence[Estimates]) -> Estimates:
        first, entries = runs[0], list[Estimate]()
        for metric in first.metrics:
            held = tuple(each[metric] for each in runs)
            law = next((law for law in self._laws(metric) if name in law.names), None)
            entries.append(MeanOfRuns.of(held, None if law is None else _spread(law, name)))
        notes = tuple(note for each in runs for note in each.notes)
        found = tuple(entries)
        return Estimates(found, first.counts, {}, notes, first.candidates, first.filtered)

    def difference(self, metric: Metric, a: str, b: str) -> DifferenceLaw:
        """Return the law of a difference."""
        for law in self._laws(metric):
            if {a, b} <= set(law.names):
                return law.difference(a, b)
        first, second = (self.averages[name][metric] for name in (a, b))
        return BoundDifference(first.value - second.value, first, second)

    def joint(self, metric: Metric) -> Law | MeanLaw:
        """Return the law of all models that have one."""
        return self._laws(metric)[-1]

    def best(self, metric: Metric) -> dict[str, float]:
        """Return the chance of being the best, of each model that has one."""
        laws = self._laws(metric)
        if not laws or len(laws[-1].names) < len(self.runs):
            # Nobody can be called the best of all where some are known by bounds alone.
            return {}
        law = laws[-1]
        return best_of(law.names, law.draws(), lambda a, b: self.difference(metric, a, b).chance)

    def _laws(self, metric: Metric) -> tuple[Law | MeanLaw, ...]:
        """Return the laws of models that have much in common, and last that of all of them."""
        if metric.name not in self._found:
            parts = self._of_models(self._parts(metric))
            several = (_side_by_side(parts),) if len(parts) > 1 else ()
            self._found[metric.name] = (*parts, *several)
        return self._found[metric.name]

    def _of_models(self, parts: Iterable[Law | MeanLaw]) -> list[Law | MeanLaw]:
        """Return laws of models; one whose runs do not all have a law in common has none."""
        if all(len(names) == 1 for names in self.runs.values()):
            return list(parts)
        found = []
        for part in parts:
            whole = {name: runs for name, runs in self.runs.items() if {*runs} <= {*part.names}}
            found += [part.averaged(whole)] if whole else []
        return found

    def _parts(self, metric: Metric) -> list[Law | MeanLaw]:
        """Return a joint law for each prior by which models were judged, and one for means."""
        entries = {name: held[metric] for name, held in self.estimates.items()}
        groups: dict[tuple[object, ...], list[Model]] = {}
        others = []
        # Printed numbers come last: the first model of a group says how the others are joined.
        for model in sorted(self.models, key=lambda each: each.published):
            entry = entries[model.name]
            if entry.source == PRIOR and entry.posterior is not None:
                # Models judged by one prior have what their data sets are like in common.
                key = (*entry.posterior.kinds, *map(id, entry.posterior.learned))
                groups.setdefault(key, []).append(model)
            elif entry.source != BOUNDS:
                others.append(model)
        parts: list[Law | MeanLaw] = [
            self._posterior(metric, group, entries) for group in groups.values()
        ]
        return parts + ([self._means(metric, others, entries)] if others else [])

    def _posterior(
        self, metric: Metric, models: Sequence[Model], entries: Mapping[str, Estimate]
    ) -> Law:
        """Return the law under the joint posterior; its parts were fitted with the estimates."""
        parts = {model.name: entries[model.name].posterior for model in models}
        held = {name: part for name, part in parts.items() if part is not None}
        key = tuple(id(part) for part in held.values())
        if key not in self._joined:
            self._joined[key] = Posterior.joined(held, self.pairing.between(models))
        law = self._joined[key].law(metric)
        # Values are kept within their bounds.
        values = [entries[name].value for name in law.names]
        return replace(law, mean=np.log(np.maximum(values, _LEAST)))

    def _means(
        self, metric: Metric, models: Sequence[Model], entries: Mapping[str, Estimate]
    ) -> MeanLaw:
        """Return the law of means, whose errors are those of each model alone."""
        size = len(models)
        values = np.array([entries[model.name].value for model in models])
        errors = np.array([_error(entries[model.name]) for model in models])
        added = [self._added(metric, entries[model.name], model) for model in models]
        together = np.eye(size)
        users = np.array([float(max(model.counts.users - 1, 1)) for model in models])
        freedom = np.minimum.outer(users, users)
        for i in range(size):
            for j in range(i):
                first, second = added[i], added[j]
                if first is None or second is None:
                    continue
                together[i, j] = together[j, i] = self.pairing.correlation(first, second)
                if first.by_user is not None and second.by_user is not None:
                    apart = degrees_of_freedom(first.by_user - second.by_user)
                    freedom[i, j] = freedom[j, i] = apart
        covariance = together * np.outer(errors, errors)
        return MeanLaw(tuple(model.name for model in models), values, covariance, freedom)

    def _added(self, metric: Metric, entry: Estimate, model: Model) -> Added | None:
        """Return what each user adds to a mean; None if users are not paired."""
        direct = DirectMean.of(metric, entry.counts)
        if isinstance(entry.spread, DirectSpread) and direct is not None:
            return self.pairing.of_scores(model, metric, direct.values)
        error = entry.spread.error if isinstance(entry.spread, MeanSpread) else None
        if isinstance(error, DrawnError):
            return self.pairing.of_totals(model, error.totals)
        if model.targets is not None:
            values = UserValues.of(model.targets, [metric], model.relevance)
            return self.pairing.of_totals(model, values.totals[:, 0])
        if direct is not None:
            return self.pairing.of_scores(model, metric, direct.values)
        known = Observed.prepare(entry.counts).known_weights([metric])[:, 0]
        return self.pairing.of_scores(model, metric, known)


def _side_by_side(parts: Sequence[Law | MeanLaw]) -> Law:
    """Return the law of models that have nothing in common, by the logarithms of means."""
    names = tuple(name for part in parts for name in part.names)
    size, start = len(names), 0
    mean, own, most = np.zeros(size), np.zeros(size), np.full(size, math.inf)
    common, users = np.zeros((size, size)), np.zeros((size, size))
    runs: list[tuple[float, float]] = []
    for part in parts:
        here = slice(start, start + len(part.names))
        start = here.stop
        if isinstance(part, Law):
            mean[here], own[here], most[here] = part.mean, part.own, part.most
            common[here, here], users[here, here] = part.common, part.users
            runs += part.runs or [(0.0, 1.0)] * len(part.names)
            continue
        value, errors = np.maximum(part.mean, _LEAST), np.sqrt(np.diag(part.covariance))
        # As wide as a log-normal law: the logarithm of a mean near zero has no end.
        scale = np.sqrt(np.log1p((errors / value) ** 2))
        factor = np.divide(scale, errors, out=np.zeros_like(scale), where=errors > 0)
        mean[here] = np.log(value)
        users[here, here] = part.covariance * np.outer(factor, factor)
        held = part.runs or [(0.0, 1.0)] * len(part.names)
        runs += [(part_of / at**2, nu) for (part_of, nu), at in zip(held, value, strict=True)]
    return Law(names, mean, common, own, users, most, (PRIOR,) * size, tuple(runs))


def _spread(law: Law | MeanLaw, name: str) -> Spread:
    """Return what a joint law says of one model."""
    if isinstance(law, Law):
        return LogSpread.of(law, name)
    (error, freedom), value = law.spread(name), float(law.mean[law.names.index(name)])
    return DirectSpread(value, error, min(value, 0.0), max(value, 1.0), freedom)


def _error(entry: Estimate) -> float:
    """Return the standard error of a mean; where nothing varies, as its interval has it."""
    spread = entry.spread
    if isinstance(spread, DirectSpread):
        return spread.standard_error
    error = spread.error.population if isinstance(spread, MeanSpread) else 0.0
    if not error > 0.0:
        low, high = entry.interval()
        error = (high - low) / 2.0 / quantile(0.95)
    return 0.0 if math.isnan(error) else error
