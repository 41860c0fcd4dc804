"""Pairs of models: the bounds of their differences, the chance behind them, and the verdicts."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.answers._result import Estimate, Estimates
from unsample.answers.comparison._models import Model, ranks_of, user_index
from unsample.answers.comparison._results import ALL, BEST, Difference, Standing
from unsample.confidence import AffineBound
from unsample.law import RankGrid, bin_weights
from unsample.metrics import Metric

__all__ = ["CORRECTIONS", "Duels", "corrected"]

#: How the chance of any wrong verdict among many is kept at 1 - level.
CORRECTIONS = ("holm", "bonferroni", "none")
#: Bounds that pass each other by less than this share of their error do so by rounding.
_ROUNDING = 0.01
#: Draws behind the chances of being the best of several models, and how many are made at once.
_DRAWS, _DRAWS_AT_ONCE = 20_000, 1_000
#: A model so many standard errors behind the highest estimate is the best in none of the draws.
_HOPELESS = 8.0


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
class _Side:
    """The least or the greatest value of a model's metric."""

    expected: float
    error: float
    #: What each target adds to it; None where targets are not paired.
    scores: FloatArray | None


@dataclass(frozen=True, eq=False)
class _Entrant:
    """One model on one metric, with what its duels are made of: computed once for all of them."""

    model: Model
    value: float
    #: The standard error of the value.
    error: float
    #: What each target adds to the value, centred and of length one; None if not paired. Zeros
    #: where nothing varies, which correlate with nothing.
    direction: FloatArray | None
    #: The least and the greatest value; None where targets are too few for such bounds.
    sides: tuple[_Side, _Side] | None = None

    def spread(self, other: _Entrant) -> float:
        """Return the standard error of the difference of the two estimates."""
        shared = 0.0
        if self.direction is not None and other.direction is not None:
            shared = float(self.direction @ other.direction)
        variance = self.error**2 + other.error**2 - 2.0 * shared * self.error * other.error
        return math.sqrt(max(variance, 0.0))


@dataclass(frozen=True, eq=False)
class Duels:
    """Pairs of models: bounds of their differences, and the chance behind them.

    ``against`` says which pairs: all of them; one model with every other; or, on each metric, the
    highest estimate with every other. Only the first is quadratic in the number of models.
    """

    models: list[Model]
    estimates: Mapping[str, Estimates]
    paired: bool
    level: float
    against: str = ALL

    @property
    def family(self) -> int:
        """Return among how many pairs a wrong verdict is guarded against.

        Where the data choose one side of the pairs, they might have chosen any: all pairs count.
        """
        count = len(self.models)
        return count * (count - 1) // 2 if self.against in {ALL, BEST} else count - 1

    def differences(self, metric: Metric) -> list[Difference]:
        """Return the difference of each pair, with p-values not yet corrected."""
        span = self._span(metric)
        return [self._difference(metric, *pair, span) for pair in self._pairs(metric)]

    def _pairs(self, metric: Metric) -> Iterator[tuple[_Entrant, _Entrant]]:
        everyone = (self._with_sides(metric, model) for model in self.models)
        if self.against == ALL:
            yield from itertools.combinations(everyone, 2)
            return
        chosen = self._leader(metric) if self.against == BEST else self._named(self.against)
        one = self._with_sides(metric, chosen)
        yield from ((one, other) for other in everyone if other.model is not chosen)

    def _leader(self, metric: Metric) -> Model:
        return max(self.models, key=lambda model: self.estimates[model.name][metric].value)

    def _named(self, name: str) -> Model:
        return next(model for model in self.models if model.name == name)

    def _difference(self, metric: Metric, a: _Entrant, b: _Entrant, span: float) -> Difference:
        from scipy.special import ndtr, ndtri

        value = a.value - b.value
        z = float(ndtri((1.0 + self.level) / 2.0))
        spread = a.spread(b)
        alike = float(ndtr(value / spread)) if spread > 0 else 0.5
        bounds = self._bounds(a, b)
        if bounds is None:
            ends = self._exact_limits(metric, a.model, b.model)
            # The limits hold for all pairs together, so that no correction can undo a verdict.
            least, most = float(ends[0] > 0), 1.0 - float(ends[1] < 0)
        else:
            (low, low_error), (high, high_error) = bounds
            least, most = float(ndtr(low / low_error)), float(ndtr(high / high_error))
            most = max(least, most)
            ends = max(low - z * low_error, -span), min(high + z * high_error, span)
        # Two-sided: a verdict may fall either way.
        p_value = min(1.0, 2.0 * min(1.0 - least, most))
        names = a.model.name, b.model.name
        return Difference(metric.name, *names, value, *ends, least, most, alike, p_value, None)

    def _span(self, metric: Metric) -> float:
        """Return the greatest difference that any two models could have."""
        items = max(model.counts.largest_catalogue for model in self.models)
        grid = RankGrid.build(items, cutoffs=[metric.cutoff(items)])
        return float(np.ptp(bin_weights(metric, grid)))

    def _bounds(
        self, a: _Entrant, b: _Entrant
    ) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return the least and the greatest difference, each with its standard error.

        None where only limits that hold anyway can be trusted: few targets, or data that hardly fit
        the shape. The two bounds are means of different scores, and then pass each other by more
        than rounding.
        """
        if a.sides is None or b.sides is None:
            return None
        low, low_error = self._bound(a.sides[0], b.sides[1], a.model)
        high, high_error = self._bound(a.sides[1], b.sides[0], a.model)
        if low - high > _ROUNDING * min(low_error, high_error):
            return None
        return (min(low, high), low_error), (max(low, high), high_error)

    def _bound(self, of_a: _Side, of_b: _Side, model: Model) -> tuple[float, float]:
        """Return the least or greatest difference, and its standard error."""
        error = 0.0
        if of_a.scores is not None and of_b.scores is not None:
            error = _standard_error(of_a.scores - of_b.scores, model, self._users)
        if error == 0.0:
            # Differences that are all alike are no proof that there is no chance in them.
            error = math.hypot(of_a.error, of_b.error)
        return of_a.expected - of_b.expected, max(error, 1e-12)

    @cached_property
    def _users(self) -> IntArray | None:
        """Return the user of each target, the same for all models where targets are paired."""
        return user_index(self.models[0])

    def _few(self, model: Model) -> bool:
        certainty = self.estimates[model.name].certainty
        return certainty is not None and certainty.few

    def _exact_limits(self, metric: Metric, a: Model, b: Model) -> tuple[float, float]:
        """Return limits of the difference that hold for any number of targets."""
        # Each model takes half of the error; one verdict of several then takes its part of it.
        level = 1.0 - (1.0 - self.level) / (2.0 * len(self.models) ** 2)
        of_a, of_b = (self.estimates[one.name][metric].interval(level) for one in (a, b))
        return of_a[0] - of_b[1], of_a[1] - of_b[0]

    # -- one model --------------------------------------------------------------------------

    def _entrant(self, metric: Metric, model: Model) -> _Entrant:
        entry = self.estimates[model.name][metric]
        direction = _direction(self._influence(metric, entry, model)) if self.paired else None
        return _Entrant(model, entry.value, self._error(metric, entry, model), direction)

    def _with_sides(self, metric: Metric, model: Model) -> _Entrant:
        entrant = self._entrant(metric, model)
        if self._few(model):
            return entrant
        low, high = (self._side(metric, model, side) for side in (-1, 1))
        return replace(entrant, sides=(low, high))

    def _side(self, metric: Metric, model: Model, side: int) -> _Side:
        bound = self._affine(metric, model, side)
        scores = bound.of_ranks(*ranks_of(model)) if self.paired else None
        return _Side(bound.expected, bound.standard_error(), scores)

    def _affine(self, metric: Metric, model: Model, side: int) -> AffineBound | KnownBound:
        found = self.estimates[model.name]
        if found.certainty is None:
            entry = found[metric]
            items = model.counts.largest_catalogue
            return KnownBound(metric, entry.value, self._error(metric, entry, model), items)
        return found.certainty.affine_bound(metric, side, self.level)

    def _error(self, metric: Metric, entry: Estimate, model: Model) -> float:
        """Return the standard error of an estimate; of known ranks, that of their mean."""
        if entry.certainty is None and model.ranks is not None:
            users = self._users if self.paired else user_index(model)
            return _standard_error(self._influence(metric, entry, model), model, users)
        return 0.0 if math.isnan(entry.standard_error) else entry.standard_error

    def _influence(self, metric: Metric, entry: Estimate, model: Model) -> FloatArray:
        """Return what each target adds to the estimate, up to a scale."""
        ranks, sampled = ranks_of(model)
        if entry.error is not None:
            return entry.error.of_ranks(ranks, sampled)
        return np.asarray(metric.weights(ranks, model.counts.largest_catalogue), dtype=np.float64)

    # -- all models -------------------------------------------------------------------------

    def standings(
        self, metric: Metric, differences: list[Difference], rng: np.random.Generator
    ) -> list[Standing]:
        """Return the models from best to worst estimate, given the metric's differences."""
        held: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for one in differences:
            held[one.a].append((one.least, one.most))
            held[one.b].append((1.0 - one.most, 1.0 - one.least))
        alike = self._chances_of_being_best(metric, rng)
        places = _places([model.name for model in self.models], differences)
        rows = []
        for model in self.models:
            entry = self.estimates[model.name][metric]
            duels = held[model.name]
            # At worst the chances of losing to each other model add up; of a model that did not
            # meet all others, none can be promised.
            least = max(0.0, 1.0 - sum(1.0 - least for least, _ in duels))
            met_all = len(duels) == len(self.models) - 1
            rows.append(
                Standing(
                    metric.name,
                    model.name,
                    entry.value,
                    *entry.interval(self.level),
                    least if met_all else 0.0,
                    min(most for _, most in duels),
                    alike.get(model.name, 0.0),
                    places[model.name],
                )
            )
        return sorted(rows, key=lambda row: -row.value)

    def _chances_of_being_best(self, metric: Metric, rng: np.random.Generator) -> dict[str, float]:
        """Return the chance of each model that has one, if sampling misleads about all alike."""
        leader = self._entrant(metric, self._leader(metric))
        everyone = (self._entrant(metric, model) for model in self.models)
        hopeful = [
            one
            for one in everyone
            if leader.value - one.value <= _HOPELESS * leader.spread(one)
            or one.model is leader.model
        ]
        wins = _count_wins(hopeful, rng)
        return {one.model.name: won / _DRAWS for one, won in zip(hopeful, wins, strict=True)}


def _direction(influence: FloatArray) -> FloatArray:
    centred = influence - influence.mean()
    length = math.sqrt(float(centred @ centred))
    return np.asarray(centred / length if length > 0 else np.zeros_like(centred))


def _count_wins(entrants: list[_Entrant], rng: np.random.Generator) -> list[int]:
    """Draw all estimates anew, with their errors and correlations, and count who comes first."""
    values = np.array([one.value for one in entrants])
    scale = np.array([one.error for one in entrants])
    root = _correlation_root(entrants)
    wins = np.zeros(len(entrants), dtype=np.int64)
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        noise = rng.standard_normal((_DRAWS_AT_ONCE, root.shape[1]))
        drawn = values + scale * (noise @ root.T)
        wins += np.bincount(drawn.argmax(axis=1), minlength=len(values))
    return [int(won) for won in wins]


def _correlation_root(entrants: list[_Entrant]) -> FloatArray:
    """Return a matrix that times its transpose is the correlation of the estimates.

    It has as many columns as there are models or targets, whichever are fewer.
    """
    if entrants[0].direction is None:
        return np.eye(len(entrants))
    directions = np.stack([one.direction for one in entrants if one.direction is not None])
    alone = ~directions.any(axis=1)
    if directions.shape[0] > directions.shape[1]:
        return np.hstack([directions, np.eye(len(entrants))[:, alone]])
    correlation = directions @ directions.T
    correlation[alone, alone] = 1.0
    powers, axes = np.linalg.eigh(correlation)
    return np.asarray(axes * np.sqrt(np.maximum(powers, 0.0)))


def _standard_error(scores: FloatArray, model: Model, users: IntArray | None) -> float:
    """Return the standard error of a weighted mean over targets, users being independent."""
    weights = model.weights
    assert weights is not None
    total = weights.sum()
    deviations = weights * (scores - (weights @ scores) / total)
    if users is not None:
        deviations = np.bincount(users, deviations)
    return float(np.sqrt((deviations**2).sum()) / total)


def corrected(
    differences: list[Difference], correction: str, level: float, family: int | None = None
) -> list[Difference]:
    """Return the differences with corrected p-values and the verdicts that follow from them.

    ``family`` is the number of pairs that might have been looked at; by default those given. Holm's
    steps hold for a part of a family too: when the first true hypothesis is rejected, those before
    it were false, so at most the rest of the family can be true.
    """
    count = len(differences) if family is None else family
    order = sorted(range(len(differences)), key=lambda place: differences[place].p_value)
    corrected = [0.0] * len(differences)
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
    return replace(one, p_value=p_value, winner=winner)


def _places(names: Iterable[str], differences: Iterable[Difference]) -> dict[str, int]:
    """Return 1 for models that no other beats, 2 for those beaten by one of them, and so on.

    Verdicts on pairs need not be transitive: models in a circle of them, and those whom they beat,
    share the last place, which is never the first.
    """
    beaten_by = dict.fromkeys(names, 0)
    beats: dict[str, list[str]] = defaultdict(list)
    for one in differences:
        if one.winner is not None:
            loser = one.b if one.winner == one.a else one.a
            beats[one.winner].append(loser)
            beaten_by[loser] += 1
    places: dict[str, int] = {}
    place, level = 1, [name for name, count in beaten_by.items() if count == 0]
    while level:
        places |= dict.fromkeys(level, place)
        below = []
        for loser in itertools.chain.from_iterable(beats[name] for name in level):
            beaten_by[loser] -= 1
            if beaten_by[loser] == 0:
                below.append(loser)
        place, level = place + 1, below
    return dict.fromkeys(beaten_by, max(place, 2)) | places
