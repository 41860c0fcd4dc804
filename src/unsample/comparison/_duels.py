"""Pairs of models: the bounds of their differences, the chance behind them, and the verdicts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.comparison._models import Model, ranks_of
from unsample.comparison._results import Difference, Standing, turned_around
from unsample.confidence import AffineBound
from unsample.distribution import bin_weights
from unsample.estimation import Estimate, Estimates
from unsample.grid import RankGrid
from unsample.metrics import Metric

__all__ = ["CORRECTIONS", "Duels", "corrected"]

#: How the chance of any wrong verdict among many is kept at 1 - level.
CORRECTIONS = ("holm", "bonferroni", "none")
#: Bounds that pass each other by less than this share of their error do so by rounding.
_ROUNDING = 0.01
#: Draws behind the chances of being the best of several models.
_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class KnownBound:
    """The bound of a metric whose full ranks are known: its value."""

    metric: Metric
    expected: float
    error: float
    items: int

    def standard_error(self) -> float:
        """Return the error for users like these."""
        return self.error

    def of_ranks(self, ranks: IntArray, sampled: IntArray) -> FloatArray:
        """Return the metric of each target."""
        return np.asarray(self.metric.weights(ranks, self.items), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Duels:
    """All pairs of models: bounds of their differences, and the chance behind them."""

    models: list[Model]
    estimates: Mapping[str, Estimates]
    paired: bool
    level: float

    def differences(self, metric: Metric) -> list[Difference]:
        """Return the difference of every pair, with p-values not yet corrected."""
        return [self._difference(metric, *pair) for pair in itertools.combinations(self.models, 2)]

    def _difference(self, metric: Metric, a: Model, b: Model) -> Difference:
        from scipy.special import ndtr, ndtri

        first, second = self.estimates[a.name][metric], self.estimates[b.name][metric]
        value = first.value - second.value
        z = float(ndtri((1.0 + self.level) / 2.0))
        spread = self._spread(metric, a, b)
        alike = float(ndtr(value / spread)) if spread > 0 else 0.5
        low, low_error = self._bound(metric, a, b, -1)
        high, high_error = self._bound(metric, a, b, +1)
        # The two bounds are means of different scores. Where they pass each other by more than
        # rounding, the data hardly fit the shape, and only limits that hold anyway are trusted.
        passed = low - high > _ROUNDING * min(low_error, high_error)
        if passed or self._few(a) or self._few(b):
            ends = self._exact_limits(metric, a, b)
            # The limits hold for all pairs together, so that no correction can undo a verdict.
            least, most = float(ends[0] > 0), 1.0 - float(ends[1] < 0)
        else:
            low, high = min(low, high), max(low, high)
            least, most = float(ndtr(low / low_error)), float(ndtr(high / high_error))
            most = max(least, most)
            span = self._span(metric)
            ends = max(low - z * low_error, -span), min(high + z * high_error, span)
        # Two-sided: a verdict may fall either way.
        p_value = min(1.0, 2.0 * min(1.0 - least, most))
        return Difference(
            metric.name, a.name, b.name, value, *ends, least, most, alike, p_value, None
        )

    def _span(self, metric: Metric) -> float:
        """Return the greatest difference that any two models could have."""
        items = max(model.counts.largest_catalogue for model in self.models)
        grid = RankGrid.build(items, cutoffs=[metric.cutoff(items)])
        return float(np.ptp(bin_weights(metric, grid)))

    def _bound(self, metric: Metric, a: Model, b: Model, side: int) -> tuple[float, float]:
        """Return the least (-1) or greatest (+1) difference, and its standard error."""
        of_a = self._affine(metric, a, side)
        of_b = self._affine(metric, b, -side)
        error = 0.0
        if self.paired:
            scores = of_a.of_ranks(*ranks_of(a)) - of_b.of_ranks(*ranks_of(b))
            error = _standard_error(scores, a)
        if error == 0.0:
            # Differences that are all alike are no proof that there is no chance in them.
            error = math.hypot(of_a.standard_error(), of_b.standard_error())
        return of_a.expected - of_b.expected, max(error, 1e-12)

    def _few(self, model: Model) -> bool:
        certainty = self.estimates[model.name].certainty
        return certainty is not None and certainty.few

    def _exact_limits(self, metric: Metric, a: Model, b: Model) -> tuple[float, float]:
        """Return limits of the difference that hold for any number of targets."""
        # Each model takes half of the error; one verdict of several then takes its part of it.
        level = 1.0 - (1.0 - self.level) / (2.0 * len(self.models) ** 2)
        of_a, of_b = (self.estimates[one.name][metric].interval(level) for one in (a, b))
        return of_a[0] - of_b[1], of_a[1] - of_b[0]

    def _affine(self, metric: Metric, model: Model, side: int) -> AffineBound | KnownBound:
        found = self.estimates[model.name]
        if found.certainty is None:
            entry = found[metric]
            items = model.counts.largest_catalogue
            return KnownBound(metric, entry.value, self._error(metric, entry, model), items)
        return found.certainty.affine_bound(metric, side, self.level)

    def _spread(self, metric: Metric, a: Model, b: Model) -> float:
        """Return the standard error of the difference of the two estimates."""
        covariance = self._covariance(metric)
        places = [self.models.index(a), self.models.index(b)]
        part = covariance[np.ix_(places, places)]
        return math.sqrt(max(part[0, 0] + part[1, 1] - 2.0 * part[0, 1], 0.0))

    def _covariance(self, metric: Metric) -> FloatArray:
        """Return the covariance of the models' estimates of a metric."""
        entries = [self.estimates[model.name][metric] for model in self.models]
        errors = [
            self._error(metric, entry, model)
            for entry, model in zip(entries, self.models, strict=True)
        ]
        variances = np.square(errors)
        if not self.paired:
            return np.diag(variances)
        rows = np.stack(
            [
                self._influence(metric, entry, model)
                for entry, model in zip(entries, self.models, strict=True)
            ]
        )
        correlation = _correlation(rows)
        scale = np.sqrt(variances)
        return np.asarray(correlation * scale[:, None] * scale[None, :])

    def _error(self, metric: Metric, entry: Estimate, model: Model) -> float:
        """Return the standard error of an estimate; of known ranks, that of their mean."""
        if entry.certainty is None and model.ranks is not None:
            return _standard_error(self._influence(metric, entry, model), model)
        return 0.0 if math.isnan(entry.standard_error) else entry.standard_error

    def _influence(self, metric: Metric, entry: Estimate, model: Model) -> FloatArray:
        """Return what each target adds to the estimate, up to a scale."""
        ranks, sampled = ranks_of(model)
        if entry.error is not None:
            return entry.error.of_ranks(ranks, sampled)
        return np.asarray(metric.weights(ranks, model.counts.largest_catalogue), dtype=np.float64)

    def standings(
        self, metric: Metric, differences: tuple[Difference, ...], rng: np.random.Generator
    ) -> list[Standing]:
        """Return the models from best to worst estimate."""
        values = np.array([self.estimates[model.name][metric].value for model in self.models])
        drawn = rng.multivariate_normal(
            values, self._covariance(metric), size=_DRAWS, method="eigh"
        )
        alike = np.bincount(drawn.argmax(axis=1), minlength=len(values)) / _DRAWS
        mine = [one for one in differences if one.metric == metric.name]
        rows = []
        for place in np.argsort(-values, kind="stable"):
            name = self.models[place].name
            duels = [_seen_from(name, one) for one in mine if name in _names(one)]
            low, high = self.estimates[name][metric].interval(self.level)
            rows.append(
                Standing(
                    metric.name,
                    name,
                    float(values[place]),
                    low,
                    high,
                    # At worst the chances of losing to each other model add up.
                    max(0.0, 1.0 - sum(1.0 - duel.least for duel in duels)),
                    min(duel.most for duel in duels),
                    float(alike[place]),
                    1 + _longest_defeat(name, mine),
                )
            )
        return rows


def _correlation(rows: FloatArray) -> FloatArray:
    """Return the correlation of the rows; rows that do not vary correlate with nothing."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    unit = centred / np.where(length > 0, length, 1.0)
    correlation = unit @ unit.T
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def _standard_error(scores: FloatArray, model: Model) -> float:
    """Return the standard error of a weighted mean over targets, users being independent."""
    weights = model.weights
    assert weights is not None
    total = weights.sum()
    deviations = weights * (scores - (weights @ scores) / total)
    if model.users is not None:
        _, where = np.unique(model.users, return_inverse=True)
        deviations = np.bincount(where.reshape(-1), deviations)
    return float(np.sqrt((deviations**2).sum()) / total)


def corrected(differences: list[Difference], correction: str, level: float) -> list[Difference]:
    """Return the differences with corrected p-values and the verdicts that follow from them."""
    count = len(differences)
    order = sorted(range(count), key=lambda place: differences[place].p_value)
    corrected = [0.0] * count
    largest = 0.0
    for position, place in enumerate(order):
        factor = {"holm": count - position, "bonferroni": count, "none": 1}[correction]
        # Holm's values never fall along the order.
        largest = max(largest, min(1.0, factor * differences[place].p_value))
        corrected[place] = (
            largest if correction == "holm" else min(1.0, factor * differences[place].p_value)
        )
    return [
        _decided(one, p_value, level) for one, p_value in zip(differences, corrected, strict=True)
    ]


def _decided(one: Difference, p_value: float, level: float) -> Difference:
    winner = None
    if p_value <= 1.0 - level:
        winner = one.a if one.least > 0.5 else one.b
    return Difference(**{**vars(one), "p_value": p_value, "winner": winner})


def _seen_from(name: str, one: Difference) -> Difference:
    return one if one.a == name else turned_around(one)


def _names(one: Difference) -> tuple[str, str]:
    return one.a, one.b


def _longest_defeat(name: str, differences: list[Difference], above: tuple[str, ...] = ()) -> int:
    """Return how many steps of proven defeats lie between the model and the unbeaten ones.

    Verdicts on pairs need not be transitive; a circle of them is walked once.
    """
    winners = {one.winner for one in differences if name in _names(one)} - {None, name, *above}
    steps = [_longest_defeat(str(one), differences, (*above, name)) for one in winners]
    return max((1 + step for step in steps), default=0)
