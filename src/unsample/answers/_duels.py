"""Compare pairs of models: bounds of their differences, chances of winning, and verdicts."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.answers._chances import Chances
from unsample.answers._comparison import ALL, BEST, Difference, Standing
from unsample.answers._exact import UserValues
from unsample.answers._model import Model
from unsample.answers._paired import Added, Pairing
from unsample.answers._result import Estimate, Estimates
from unsample.answers._verdicts import corrected
from unsample.confidence import (
    AffineBound,
    DirectMean,
    DrawnError,
    PooledCertainty,
    PooledError,
    SamplingError,
    degrees_of_freedom,
    difference_part,
)
from unsample.errors import InputError
from unsample.estimators import Observed
from unsample.evidence import ItemCounts, RankCounts
from unsample.law import RankGrid, bin_weights
from unsample.metrics import Metric

#: Corrections that keep the chance of any wrong verdict among many at 1 - level.
CORRECTIONS = ("holm", "bonferroni", "none")
#: If bounds cross by less than this share of their error, the cause is rounding.
_ROUNDING = 0.01
#: An error below this share of the errors of the two models comes from rounding.
_NO_ERROR = 1e-9
#: Draws for the chances of being the best model, and how many are made at once.
_DRAWS, _DRAWS_AT_ONCE = 20_000, 1_000
#: A model this many standard errors behind the highest estimate is taken never to be the best.
_HOPELESS = 8.0
#: Degrees of freedom at which the t distribution is normal.
_PLENTY = 1e9
#: Drawn values that differ by less than this share of their error differ only by rounding.
_SAME_DRAW = 1e-6


@dataclass(frozen=True, eq=False)
class _Side:
    """The least or the greatest value of a model's metric."""

    expected: float
    error: float
    #: What users add to it; None if they are not paired.
    added: Added | None
    #: A score for each sampled rank, if targets share their negatives.
    scores: FloatArray | None = None
    pools: ItemCounts | None = None
    #: The weight of the targets.
    weight: float = 1.0
    #: Whether this is the value itself, known from full ranks.
    known: bool = False
    #: Variance that is assumed, not observed, in addition to ``error``: see `DrawnError`.
    assumed: float = 0.0


@dataclass(frozen=True, eq=False)
class _Entrant:
    """One model on one metric, with what all its comparisons need: computed only once."""

    model: Model
    value: float
    #: The standard error of the value.
    error: float
    #: What users add to the value; None if they are not paired.
    added: Added | None
    #: The least and the greatest value; None if there are too few targets for such bounds.
    sides: tuple[_Side, _Side] | None = None


@dataclass(frozen=True, eq=False)
class Duels:
    """Pairs of models, the bounds of their differences, and the chances of winning.

    ``against`` says which pairs are compared: all; one model with every other; or, on each metric,
    the highest estimate with every other. Only "all" is quadratic in the number of models.
    """

    models: list[Model]
    estimates: Mapping[str, Estimates]
    pairing: Pairing
    level: float
    against: str
    #: Chances of winning under a prior, if there is one.
    chances: Chances | None = None

    @property
    def family(self) -> int:
        """Return the number of pairs that the correction of the verdicts counts.

        If the data choose the model to compare with, it could be any: all pairs count.
        """
        count = len(self.models)
        return count * (count - 1) // 2 if self.against in {ALL, BEST} else count - 1

    def differences(self, metric: Metric) -> list[Difference]:
        """Return the difference of each pair, with p-values not yet corrected."""
        span = self._span(metric)
        return [self._difference(metric, *pair, span) for pair in self._pairs(metric)]

    def verdicts(self, metric: Metric, correction: str) -> list[Difference]:
        """Return the differences with corrected p-values and the verdicts that follow."""
        by_chance = self.chances is not None and metric.name in self.chances.metrics
        found = self.differences(metric)
        return corrected(found, correction, self.level, self.family, by_chance=by_chance)

    def _pairs(self, metric: Metric) -> Iterator[tuple[_Entrant, _Entrant]]:
        everyone = (self._with_sides(metric, model) for model in self.models)
        if self.against == ALL:
            yield from itertools.combinations(everyone, 2)
            return
        named = [model for model in self.models if model.name == self.against]
        chosen = self._leader(metric) if self.against == BEST else named[0]
        first = self._with_sides(metric, chosen)
        yield from ((first, other) for other in everyone if other.model is not chosen)

    def _leader(self, metric: Metric) -> Model:
        return max(self.models, key=lambda model: self.estimates[model.name][metric].value)

    def _difference(self, metric: Metric, a: _Entrant, b: _Entrant, span: float) -> Difference:
        from scipy.special import ndtr, stdtr, stdtrit

        value = a.value - b.value
        names = a.model.name, b.model.name
        chance = None if self.chances is None else self.chances.beats(*names, metric.name)
        if chance is None:
            # The chance if sampling has the same bias for both models.
            spread = self._spread(a, b)
            chance = float(ndtr(value / spread)) if spread > 0 else 0.5
        bounds = self._bounds(a, b)
        if bounds is None:
            ends = self._exact_limits(metric, a.model, b.model)
            # The limits hold for all pairs together, so no correction can undo a verdict.
            least, most = float(ends[0] > 0), 1.0 - float(ends[1] < 0)
        else:
            (low, low_error), (high, high_error) = bounds
            freedom = self._freedom(a, b)
            least = float(stdtr(freedom, low / low_error))
            most = max(least, float(stdtr(freedom, high / high_error)))
            t = float(stdtrit(freedom, (1.0 + self.level) / 2.0))
            ends = max(low - t * low_error, -span), min(high + t * high_error, span)
        if not ends[0] <= value <= ends[1]:
            # Estimate or assumption is wrong. The interval covers both; a verdict needs both.
            ends = min(ends[0], value), max(ends[1], value)
            least, most = least * (ends[0] > 0), max(most, float(ends[1] >= 0))
        # Two-sided: either model may win.
        p_value = min(1.0, 2.0 * min(1.0 - least, most))
        return Difference(metric.name, *names, value, *ends, least, most, chance, p_value, None)

    def _spread(self, a: _Entrant, b: _Entrant) -> float:
        """Return the standard error of the difference of the two estimates."""
        variance = a.error**2 + b.error**2 - 2.0 * self._correlation(a, b) * a.error * b.error
        return math.sqrt(max(variance, 0.0))

    def _correlation(self, a: _Entrant, b: _Entrant) -> float:
        if a.added is None or b.added is None:
            return 0.0
        return self.pairing.correlation(a.added, b.added)

    def _span(self, metric: Metric) -> float:
        """Return the greatest difference that two models can have."""
        items = max(model.counts.largest_catalogue for model in self.models)
        grid = RankGrid.fine(items, cutoffs=[metric.cutoff(items)])
        return float(np.ptp(bin_weights(metric, grid, items)))

    def _bounds(
        self, a: _Entrant, b: _Entrant
    ) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return the least and the greatest difference, each with its standard error.

        Return None for few targets, or if the data hardly fit the shape: then only limits that hold
        for any number of targets can be trusted. The bounds are means of different scores, and
        cross by more than rounding if the data hardly fit.
        """
        if a.sides is None or b.sides is None:
            return None
        lower = self._bound(a.sides[0], b.sides[1], a.model.counts, -1)
        upper = self._bound(a.sides[1], b.sides[0], a.model.counts, 1)
        if lower is None or upper is None:
            return None
        (low, low_error), (high, high_error) = lower, upper
        if low - high > _ROUNDING * min(low_error, high_error):
            return None
        return (min(low, high), low_error), (max(low, high), high_error)

    def _freedom(self, a: _Entrant, b: _Entrant) -> float:
        """Return the degrees of freedom of a difference of full ranks, or a large number."""
        assert a.sides is not None
        assert b.sides is not None
        of_a, of_b = a.sides[0], b.sides[0]
        if not (of_a.known and of_b.known):
            return _PLENTY
        first, second = (
            None if side.added is None else side.added.by_user for side in (of_a, of_b)
        )
        if first is None or second is None:
            users = min(a.model.counts.users, b.model.counts.users)
            return float(max(users - 1, 1))
        return degrees_of_freedom(first - second)

    def _bound(
        self, of_a: _Side, of_b: _Side, counts: RankCounts, side: int
    ) -> tuple[float, float] | None:
        """Return the least or greatest difference, and its standard error.

        Return None if the error cannot be estimated because targets share their negatives.
        """
        error, alone = 0.0, math.hypot(of_a.error, of_b.error)
        if of_a.added is not None and of_b.added is not None:
            error = self.pairing.error_of_difference(of_a.added, of_b.added)
            seen = math.sqrt(of_a.added.variance + of_b.added.variance)
            # Allow for rare events that were not seen, as the error of each model alone does.
            error *= max(alone / seen, 1.0) if seen > 0.0 else 1.0
        if of_a.scores is not None and of_b.scores is not None:
            shared = self._shared_error(of_a, of_b, counts, error)
            if shared is None or not shared.trusted:
                return None
            error = shared.standard_error(self.level, side)
        if error <= _NO_ERROR * alone:
            # Equal differences for all users do not prove that chance plays no part.
            error = alone
        error = math.sqrt(error**2 + of_a.assumed + of_b.assumed)
        return of_a.expected - of_b.expected, max(error, 1e-12)

    def _shared_error(
        self, of_a: _Side, of_b: _Side, counts: RankCounts, error: float
    ) -> PooledError | None:
        """Return the error of the difference of two models that share their pools, else None.

        The effect of an item on both models cancels. With different pools, nothing cancels.
        """
        a, b = of_a.pools, of_b.pools
        if a is None or b is None or of_a.scores is None or of_b.scores is None:
            return None
        if error == 0.0:
            return None
        left = 1.0 - a.sampled / (counts.largest_catalogue - 1)
        try:
            part = difference_part(
                (a, of_a.scores, of_a.weight),
                (b, of_b.scores, of_b.weight),
                left=1.0 if counts.replacement else left,
            )
        except InputError:  # the pools differ
            return None
        return PooledError(error**2, part)

    def _exact_limits(self, metric: Metric, a: Model, b: Model) -> tuple[float, float]:
        """Return limits of the difference that hold for any number of targets."""
        # Each model gets half of the error rate, and each of several verdicts its part of that.
        level = 1.0 - (1.0 - self.level) / (2.0 * len(self.models) ** 2)
        of_a, of_b = (
            self.estimates[each.name][metric].interval(level, kind="guaranteed") for each in (a, b)
        )
        return of_a[0] - of_b[1], of_a[1] - of_b[0]

    # -- one model --------------------------------------------------------------------------

    def _entrant(self, metric: Metric, model: Model) -> _Entrant:
        entry = self.estimates[model.name][metric]
        if entry.calibrated is not None and self.chances is not None:
            return _Entrant(model, entry.value, 0.0, None)
        known = entry.certainty is None and model.targets is not None and _of_draw(entry) is None
        added = self._added(metric, entry, model)
        error = entry.standard_error
        if known:
            # The error is that of the mean of the ranks.
            own = added or Pairing.of_models([model]).of_totals(model, _plain_totals(metric, model))
            error = math.nan if own is None else math.sqrt(own.variance)
        return _Entrant(model, entry.value, 0.0 if math.isnan(error) else error, added)

    def _added(self, metric: Metric, entry: Estimate, model: Model) -> Added | None:
        """Return what users add to the estimate, up to a factor; None if they are not paired."""
        drawn, counts = _of_draw(entry), model.counts
        if drawn is not None:
            return self.pairing.of_totals(model, drawn.totals)
        if entry.certainty is None or not isinstance(entry.error, SamplingError):
            return self._plain(metric, model)
        scores = entry.error.of_ranks(*_ranks_of(counts.for_metric(metric)))
        return self.pairing.of_scores(model, metric, scores)

    def _plain(self, metric: Metric, model: Model) -> Added | None:
        """Return what users add to the metric, with the ranks taken as they are."""
        counts = model.counts.for_metric(metric)
        direct = None if counts.known.all() else DirectMean.of(metric, counts)
        if direct is not None:
            return self.pairing.of_scores(model, metric, direct.values)
        if model.targets is not None:
            return self.pairing.of_totals(model, _plain_totals(metric, model))
        known = Observed.prepare(counts).known_weights([metric])[:, 0]
        return self.pairing.of_scores(model, metric, known)

    def _with_sides(self, metric: Metric, model: Model) -> _Entrant:
        entrant, entry = self._entrant(metric, model), self.estimates[model.name][metric]
        certainty = entry.certainty
        if model.published:
            # What rounding hides is not chance: only limits that always hold are compared.
            return entrant
        error = _of_draw(entry)
        if error is not None:
            return self._with_drawn_sides(entrant, entry, error)
        if isinstance(certainty, PooledCertainty):
            return self._with_shared_sides(metric, entrant, certainty)
        if certainty is None or DirectMean.of(metric, certainty.counts) is not None:
            # Of a plain mean, the least and the greatest value are the value itself.
            added = self._plain(metric, model)
            side = _Side(entrant.value, entrant.error, added, known=certainty is None)
            return replace(entrant, sides=(side, side))
        if certainty.few or certainty.doubt > 0.0:
            return entrant
        low, high = (
            _Side(bound.expected, bound.standard_error(), self._added_to(metric, bound, model))
            for bound in (certainty.affine_bound(metric, side, self.level) for side in (-1, 1))
        )
        return replace(entrant, sides=(low, high))

    def _with_drawn_sides(self, entrant: _Entrant, entry: Estimate, error: DrawnError) -> _Entrant:
        """Return the entrant with its estimate as both sides, unless too few users were drawn."""
        if not entry.resolved:
            return entrant
        side = _Side(entry.value, error.population, None, known=True)
        added = self.pairing.of_totals(entrant.model, error.totals)
        if added is not None:
            seen = math.sqrt(added.variance)
            side = replace(side, error=seen, added=added, assumed=error.assumed)
        return replace(entrant, sides=(side, side))

    def _with_shared_sides(
        self, metric: Metric, entrant: _Entrant, certainty: PooledCertainty
    ) -> _Entrant:
        """Return the entrant with sides that include the effect of shared items, if it is known."""
        model, sides = entrant.model, []
        for end in (-1, 1):
            found = certainty.side(metric, end, self.level)
            if found is None:
                return entrant
            scores = found.scores[certainty.counts.low - 1] / certainty.counts.scale
            added = self.pairing.of_scores(model, metric, scores)
            error = found.error.standard_error(self.level, end)
            pools, weight = certainty.shared, float(certainty.counts.weight.sum())
            sides.append(_Side(found.expected, error, added, found.scores, pools, weight))
        return replace(entrant, sides=(sides[0], sides[1]))

    def _added_to(self, metric: Metric, bound: AffineBound, model: Model) -> Added | None:
        counts = model.counts.for_metric(metric)
        scores = bound.of_ranks(*_ranks_of(counts), counts.items, counts.weight)
        return self.pairing.of_scores(model, metric, scores)

    # -- all models -------------------------------------------------------------------------

    def standings(
        self, metric: Metric, differences: list[Difference], rng: np.random.Generator
    ) -> list[Standing]:
        """Return the models, highest estimate first, given the differences on the metric."""
        chances: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for pair in differences:
            chances[pair.a].append((pair.least, pair.most))
            chances[pair.b].append((1.0 - pair.most, 1.0 - pair.least))
        alike = self._chances_of_being_best(metric, rng)
        rows = []
        for model in self.models:
            entry = self.estimates[model.name][metric]
            duels = chances[model.name]
            # At worst the chances of losing to each other model add up. A model that was not
            # compared with all others gets 0.
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
                )
            )
        return sorted(rows, key=lambda row: -row.value)

    def _chances_of_being_best(self, metric: Metric, rng: np.random.Generator) -> dict[str, float]:
        """Return the chance of being the best, for each model that has one.

        Without a prior, it is the chance if sampling has the same bias for all models.
        """
        known = None if self.chances is None else self.chances.best(metric.name, rng)
        if known is not None:
            return known
        leader = self._entrant(metric, self._leader(metric))
        hopeful = [
            entrant
            for entrant in (self._entrant(metric, model) for model in self.models)
            if leader.value - entrant.value <= _HOPELESS * self._spread(leader, entrant)
            or entrant.model is leader.model
        ]
        values, errors = np.array([(each.value, each.error) for each in hopeful]).T
        together = self._correlations(hopeful)
        chances = (_count_wins(values, errors, together, rng) / _DRAWS).tolist()
        return dict(zip((each.model.name for each in hopeful), chances, strict=True))

    def _correlations(self, entrants: list[_Entrant]) -> FloatArray:
        """Return the correlations of the estimates of several models."""
        by_user = [None if each.added is None else each.added.by_user for each in entrants]
        if all(each is not None for each in by_user):
            rows = np.stack([each for each in by_user if each is not None])
            length = np.sqrt((rows**2).sum(axis=1))
            rows = np.divide(
                rows, length[:, None], out=np.zeros_like(rows), where=length[:, None] > 0
            )
            found = np.asarray(rows @ rows.T)
        else:
            found = np.eye(len(entrants))
            for i, j in itertools.combinations(range(len(entrants)), 2):
                found[i, j] = found[j, i] = self._correlation(entrants[i], entrants[j])
        np.fill_diagonal(found, 1.0)
        return found


def _of_draw(entry: Estimate) -> DrawnError | None:
    """Return the error of drawing users to be ranked in full; None if none were drawn."""
    error = None if entry.certainty is not None else entry.error
    return error if isinstance(error, DrawnError) else None


def _plain_totals(metric: Metric, model: Model) -> FloatArray:
    """Return the metric of each user, from full ranks."""
    assert model.targets is not None
    return UserValues.of(model.targets, [metric], model.relevance).totals[:, 0]


def _ranks_of(counts: RankCounts) -> tuple[IntArray, IntArray]:
    return counts.low, counts.sampled


def _count_wins(
    values: FloatArray, scale: FloatArray, correlation: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw all estimates with their errors and correlations, and count how often each is first.

    Models that tie for the first place share the win.
    """
    powers, axes = np.linalg.eigh(correlation)
    root = axes * np.sqrt(np.maximum(powers, 0.0))
    wins = np.zeros(len(values))
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        noise = rng.standard_normal((_DRAWS_AT_ONCE, root.shape[1]))
        drawn = values + scale * (noise @ root.T)
        first = drawn >= drawn.max(axis=1, keepdims=True) - _SAME_DRAW * scale.max()
        wins += (first / first.sum(axis=1, keepdims=True)).sum(axis=0)
    return wins
