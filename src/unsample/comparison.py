"""`compare`: which model is truly better, how sure that is, and when it cannot be told.

Two errors stand between sampled ranks and the true difference of two models. One is chance: other
users, other sampled items. It shrinks with more users, and more so when both models were asked
about the same users. The other is what a sample cannot see: the two models may spread their top
ranks differently. The verdict allows for both. Beside it stands what chance alone would say, which
is the answer if sampling misleads about both models alike.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_integer_array,
    as_rng,
    check_choice,
    check_level,
)
from unsample._pages import page_of
from unsample.confidence import AffineBound
from unsample.counts import RankCounts, Targets
from unsample.errors import DesignError, InputError, UnsampleWarning
from unsample.estimation import (
    DEFAULT_LEVEL,
    DEFAULT_METHOD,
    DEFAULT_METRICS,
    Estimate,
    Estimates,
    estimate,
)
from unsample.estimators import Estimator
from unsample.metrics import Metric

__all__ = ["CORRECTIONS", "Comparison", "Difference", "Standing", "compare"]

#: How the chance of any wrong verdict among many is kept at 1 - level.
CORRECTIONS = ("holm", "bonferroni", "none")
#: Draws behind the chances of being the best of several models.
_DRAWS = 20_000


@dataclass(frozen=True)
class Difference:
    """One metric of model ``a`` minus that of model ``b``."""

    metric: str
    a: str
    b: str
    value: float
    low: float
    high: float
    #: The chance that ``a`` is truly better lies between these; what separates them is not chance.
    least: float
    most: float
    #: The chance that ``a`` is better if sampling misleads about both models alike.
    if_alike: float
    #: How surprising the data are if the verdict is wrong, corrected for the number of pairs.
    p_value: float
    #: The better model, or None if that cannot be told.
    winner: str | None

    def __str__(self) -> str:
        ends = f"[{self.low:+.4f}, {self.high:+.4f}]"
        if self.winner is not None:
            loser = self.b if self.winner == self.a else self.a
            return f"{self.winner} beats {loser} on {self.metric}: {self._facts(ends)}"
        ahead, behind = (self.a, self.b) if self.value >= 0 else (self.b, self.a)
        chance = self.if_alike if self.value >= 0 else 1.0 - self.if_alike
        return (
            f"{ahead} and {behind} cannot be told apart on {self.metric}: {self._facts(ends)}; if "
            f"sampling misleads about both alike, {ahead} is ahead with {_chance(chance)}"
        )

    def _facts(self, ends: str) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"difference {self.value:+.4f}, {ends}, {p}"


@dataclass(frozen=True)
class Standing:
    """One model's metric, and its chance of being the best of all."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    least: float
    most: float
    if_alike: float
    #: 1 for models that no other beats, 2 for those beaten by one of them, and so on.
    place: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models side by side: their standings, all differences, and the verdicts in words."""

    estimates: Mapping[str, Estimates]
    standings: tuple[Standing, ...]
    differences: tuple[Difference, ...]
    #: Whether differences were taken user by user.
    paired: bool
    level: float
    correction: str
    warnings: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order given."""
        return tuple(self.estimates)

    def difference(self, a: str, b: str, metric: str | Metric) -> Difference:
        """Return the difference of two models on a metric, ``a`` minus ``b``."""
        name = _metrics.parse(metric).name
        for one in self.differences:
            if (one.metric, one.a, one.b) == (name, a, b):
                return one
            if (one.metric, one.a, one.b) == (name, b, a):
                return _reversed(one)
        raise KeyError(f"no difference of {a} and {b} on {name}; models: {', '.join(self.models)}")

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other on the metric, or None if none does."""
        name = _metrics.parse(metric).name
        for model in self.models:
            duels = [d for d in self.differences if d.metric == name and model in (d.a, d.b)]
            if duels and all(duel.winner == model for duel in duels):
                return model
        return None

    def sentences(self) -> tuple[str, ...]:
        """Return the verdict on each metric as a person would write it in a paper."""
        names = dict.fromkeys(one.metric for one in self.standings)
        return tuple(_sentence(self, name) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "models": list(self.models),
            "paired": self.paired,
            "level": self.level,
            "correction": self.correction,
            "standings": [vars(one) for one in self.standings],
            "differences": [vars(one) for one in self.differences],
            "sentences": list(self.sentences()),
            "warnings": list(self.warnings),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one interactive page, and write it to ``path`` if one is given."""
        return page_of(self, path)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row for each difference."""
        from unsample._frames import frame_from_rows

        return frame_from_rows([vars(one) for one in self.differences], backend)

    def __str__(self) -> str:
        from unsample._text import comparison_table

        return comparison_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from unsample._text import comparison_html

        return comparison_html(self)


@dataclass(frozen=True, eq=False)
class _Model:
    """What is known of one model: counts for its estimates, ranks for pairing where they exist."""

    name: str
    counts: RankCounts
    ranks: IntArray | None = None
    sampled: IntArray | None = None
    weights: FloatArray | None = None
    users: npt.NDArray[Any] | None = None
    #: Made already, where the model comes from an evaluation.
    estimates: Estimates | None = None

    @property
    def pairable(self) -> bool:
        """Return whether each target has a score of its own, which staged samples have not."""
        staged = self.estimates is not None and self.estimates.certainty is not None
        return self.ranks is not None and not (
            staged and self.estimates.certainty.stop is not None  # type: ignore[union-attr]
        )


class Outcome(Protocol):
    """What `unsample.evaluate` returns, as far as comparisons look at it."""

    @property
    def estimates(self) -> Estimates:
        """Return the metrics that were evaluated."""

    @property
    def ranks(self) -> IntArray:
        """Return the rank of each target."""

    @property
    def sampled(self) -> IntArray:
        """Return among how many items, the target not counted."""

    @property
    def users(self) -> IntArray:
        """Return whose target it is."""

    @property
    def weights(self) -> FloatArray | None:
        """Return how much each target counts, where they differ."""


@dataclass(frozen=True, eq=False)
class _KnownBound:
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


def compare(
    models: Mapping[str, npt.ArrayLike | RankCounts | Targets | Outcome],
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator = DEFAULT_METHOD,
    weights: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    replacement: bool = True,
    seen: str | None = None,
    level: float = DEFAULT_LEVEL,
    correction: str = "holm",
    paired: bool | None = None,
    rng: Seed = 0,
) -> Comparison:
    """Compare two or more models by their sampled ranks.

    Parameters
    ----------
    models
        For each name the ranks of its targets, as in `unsample.estimate`; or `Targets`, which
        know their design and users; or `RankCounts`, which cannot be paired; or what
        `unsample.evaluate` returned for them (``metrics`` are then those it was asked for).
    items, sampled, metrics, method, weights, replacement, seen
        As in `unsample.estimate`, the same for all models.
    users
        Whose target each rank is: one sequence for all models, or one for each name. Models that
        were asked about the same users in another order are brought into the same order.
    level
        The chance that the verdicts of a metric are all right, and the level of the intervals.
    correction
        ``"holm"``, ``"bonferroni"`` or ``"none"``, over the pairs of models on one metric.
    paired
        Whether to take differences user by user: None where users match, True to insist.
    rng
        Seed or Generator behind the chances of being the best.

    >>> ranks = {"A": [1, 2, 2, 9] * 50, "B": [1, 2, 3, 20] * 50}
    >>> compare(ranks, items=500, sampled=99, metrics="Recall@50").paired
    True
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        got = f"{len(models)}" if isinstance(models, Mapping) else type(models).__name__
        raise InputError(f"models must map at least two names to their ranks, got {got}")
    level = check_level(level)
    check_choice("correction", correction, CORRECTIONS)
    wanted = _metrics.parse_all(metrics)
    loaded = [
        _load(name, ranks, items, sampled, weights, _users_of(users, name), replacement)
        for name, ranks in models.items()
    ]
    _check_same_catalogue(loaded)
    matched = _match(loaded, paired)
    notes: list[str] = []
    estimates = {
        one.name: _evaluated(one, wanted)
        or _estimate_quietly(one.counts, wanted, method, seen, notes)
        for one in (matched or loaded)
    }
    if matched is None and paired is None:
        notes.append("the models' users do not match one by one, so they are compared unpaired")
    duels = _Duels(matched or loaded, estimates, matched is not None, level)
    differences = tuple(
        difference
        for metric in wanted
        for difference in _corrected(duels.differences(metric), correction, level)
    )
    standings = tuple(
        standing
        for metric in wanted
        for standing in duels.standings(metric, differences, as_rng(rng))
    )
    return Comparison(
        estimates,
        standings,
        differences,
        matched is not None,
        level,
        correction,
        tuple(dict.fromkeys(notes)),
    )


def _load(
    name: str,
    given: npt.ArrayLike | RankCounts | Targets | Outcome,
    items: npt.ArrayLike | None,
    sampled: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    users: npt.ArrayLike | None,
    replacement: bool,
) -> _Model:
    if isinstance(given, RankCounts):
        return _Model(name, given)
    if hasattr(given, "estimates") and hasattr(given, "ranks"):
        return _from_evaluation(name, cast("Outcome", given))
    if not isinstance(given, Targets):
        if items is None or sampled is None:
            raise DesignError("items and sampled must be given with ranks, got None")
        array = as_integer_array(f"ranks of {name}", given).astype(np.int64)
        given = Targets(array, items, sampled, weights, users, replacement)
    size = len(given.ranks)
    counts = given.counts
    return _Model(
        name,
        counts,
        np.asarray(given.ranks, dtype=np.int64),
        np.broadcast_to(np.asarray(given.sampled, dtype=np.int64), (size,)),
        np.ones(size) if given.weights is None else np.asarray(given.weights, dtype=np.float64),
        None if given.users is None else np.asarray(given.users),
    )


def _from_evaluation(name: str, outcome: Outcome) -> _Model:
    return _Model(
        name,
        outcome.estimates.counts,
        outcome.ranks,
        outcome.sampled,
        np.ones(len(outcome.ranks)) if outcome.weights is None else outcome.weights,
        outcome.users,
        outcome.estimates,
    )


def _evaluated(model: _Model, metrics: tuple[Metric, ...]) -> Estimates | None:
    """Return the estimates a model came with, if they hold what is asked for."""
    if model.estimates is None:
        return None
    missing = [metric.name for metric in metrics if metric not in model.estimates.metrics]
    if missing:
        held = ", ".join(metric.name for metric in model.estimates.metrics)
        raise InputError(
            f"metrics must be ones that {model.name} was evaluated for ({held}), got "
            f"{', '.join(missing)}; evaluate it for these too"
        )
    varies = model.estimates.certainty is not None and np.ptp(_ranks_of(model)[0]) > 0
    if varies and any(math.isnan(entry.standard_error) for entry in model.estimates.entries):
        raise InputError(
            f"{model.name} must have been evaluated with resamples > 0 to be compared, got an "
            "evaluation without standard errors"
        )
    return model.estimates


def _users_of(
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None, name: str
) -> npt.ArrayLike | None:
    if not isinstance(users, Mapping):
        return users
    if name not in users:
        raise InputError(f"users must hold the users of every model, got none for {name}")
    return users[name]


def _check_same_catalogue(models: list[_Model]) -> None:
    sizes = {model.name: model.counts.largest_catalogue for model in models}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise DesignError(
            f"models must be ranked in one catalogue to be compared, got {listed}; metrics@K of "
            "different catalogues mean different things"
        )


def _match(models: list[_Model], paired: bool | None) -> list[_Model] | None:
    """Return the models with their targets in one order, or None where users do not match."""
    problem = _why_unmatched(models) if paired is not False else "not asked for"
    if problem:
        if paired:
            raise InputError(f"paired needs the same users for every model, got {problem}")
        return None
    if models[0].users is None:
        return models
    return [_sorted_by_user(model) for model in models]


def _why_unmatched(models: list[_Model]) -> str:
    for model in models:
        if model.ranks is None:
            return f"RankCounts for {model.name}, which do not know users"
        if not model.pairable:
            return f"an adaptive evaluation of {model.name}, whose sample sizes differ by outcome"
    first = models[0]
    for model in models[1:]:
        if len(model.ranks) != len(first.ranks):  # type: ignore[arg-type]
            return (
                f"{len(first.ranks):,} targets of {first.name} and "  # type: ignore[arg-type]
                f"{len(model.ranks):,} of {model.name}"  # type: ignore[arg-type]
            )
        if (model.users is None) != (first.users is None):
            return f"users for only one of {first.name} and {model.name}"
        if model.users is not None and first.users is not None:
            missing = np.setdiff1d(first.users, model.users)
            if len(missing) or not np.array_equal(np.sort(model.users), np.sort(first.users)):
                example = f", such as {missing[0]}" if len(missing) else ""
                return f"users of {first.name} that {model.name} does not have{example}"
    return ""


def _sorted_by_user(model: _Model) -> _Model:
    order = np.argsort(model.users, kind="stable")  # type: ignore[arg-type]
    return replace(
        model,
        ranks=model.ranks[order],  # type: ignore[index]
        sampled=model.sampled[order],  # type: ignore[index]
        weights=model.weights[order],  # type: ignore[index]
        users=model.users[order],  # type: ignore[index]
    )


def _estimate_quietly(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    method: str | Estimator,
    seen: str | None,
    notes: list[str],
) -> Estimates:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        result = estimate(counts, metrics=metrics, method=method, seen=seen, errors="delta")
    notes.extend(result.warnings)
    return result


@dataclass(frozen=True, eq=False)
class _Duels:
    """All pairs of models: bounds of their differences, and the chance behind them."""

    models: list[_Model]
    estimates: Mapping[str, Estimates]
    paired: bool
    level: float

    def differences(self, metric: Metric) -> list[Difference]:
        """Return the difference of every pair, with p-values not yet corrected."""
        return [self._difference(metric, *pair) for pair in itertools.combinations(self.models, 2)]

    def _difference(self, metric: Metric, a: _Model, b: _Model) -> Difference:
        from scipy.special import ndtr, ndtri

        first, second = self.estimates[a.name][metric], self.estimates[b.name][metric]
        value = first.value - second.value
        z = float(ndtri((1.0 + self.level) / 2.0))
        spread = self._spread(metric, a, b)
        alike = float(ndtr(value / spread)) if spread > 0 else 0.5
        if self._few(a) or self._few(b):
            ends = self._exact_limits(metric, a, b)
            # The limits hold for all pairs together, so that no correction can undo a verdict.
            least, most = float(ends[0] > 0), 1.0 - float(ends[1] < 0)
        else:
            low, low_error = self._bound(metric, a, b, -1)
            high, high_error = self._bound(metric, a, b, +1)
            least, most = float(ndtr(low / low_error)), float(ndtr(high / high_error))
            ends = low - z * low_error, high + z * high_error
        # Two-sided: a verdict may fall either way.
        p_value = min(1.0, 2.0 * min(1.0 - least, most))
        return Difference(
            metric.name, a.name, b.name, value, *ends, least, most, alike, p_value, None
        )

    def _bound(self, metric: Metric, a: _Model, b: _Model, side: int) -> tuple[float, float]:
        """Return the least (-1) or greatest (+1) difference, and its standard error."""
        of_a = self._affine(metric, a, side)
        of_b = self._affine(metric, b, -side)
        error = 0.0
        if self.paired:
            scores = of_a.of_ranks(*_ranks_of(a)) - of_b.of_ranks(*_ranks_of(b))
            error = _standard_error(scores, a)
        if error == 0.0:
            # Differences that are all alike are no proof that there is no chance in them.
            error = math.hypot(of_a.standard_error(), of_b.standard_error())
        return of_a.expected - of_b.expected, max(error, 1e-12)

    def _few(self, model: _Model) -> bool:
        certainty = self.estimates[model.name].certainty
        return certainty is not None and certainty.few

    def _exact_limits(self, metric: Metric, a: _Model, b: _Model) -> tuple[float, float]:
        """Return limits of the difference that hold for any number of targets."""
        # Each model takes half of the error; one verdict of several then takes its part of it.
        level = 1.0 - (1.0 - self.level) / (2.0 * len(self.models) ** 2)
        of_a, of_b = (self.estimates[one.name][metric].interval(level) for one in (a, b))
        return of_a[0] - of_b[1], of_a[1] - of_b[0]

    def _affine(self, metric: Metric, model: _Model, side: int) -> AffineBound | _KnownBound:
        found = self.estimates[model.name]
        if found.certainty is None:
            entry = found[metric]
            items = model.counts.largest_catalogue
            return _KnownBound(metric, entry.value, self._error(metric, entry, model), items)
        return found.certainty.affine_bound(metric, side, self.level)

    def _spread(self, metric: Metric, a: _Model, b: _Model) -> float:
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

    def _error(self, metric: Metric, entry: Estimate, model: _Model) -> float:
        """Return the standard error of an estimate; of known ranks, that of their mean."""
        if entry.certainty is None and model.ranks is not None:
            return _standard_error(self._influence(metric, entry, model), model)
        return 0.0 if math.isnan(entry.standard_error) else entry.standard_error

    def _influence(self, metric: Metric, entry: Estimate, model: _Model) -> FloatArray:
        """Return what each target adds to the estimate, up to a scale."""
        ranks, sampled = _ranks_of(model)
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


def _ranks_of(model: _Model) -> tuple[IntArray, IntArray]:
    assert model.ranks is not None
    assert model.sampled is not None
    return model.ranks, model.sampled


def _standard_error(scores: FloatArray, model: _Model) -> float:
    """Return the standard error of a weighted mean over targets, users being independent."""
    weights = model.weights
    assert weights is not None
    total = weights.sum()
    deviations = weights * (scores - (weights @ scores) / total)
    if model.users is not None:
        _, where = np.unique(model.users, return_inverse=True)
        deviations = np.bincount(where.reshape(-1), deviations)
    return float(np.sqrt((deviations**2).sum()) / total)


def _corrected(differences: list[Difference], correction: str, level: float) -> list[Difference]:
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
    return one if one.a == name else _reversed(one)


def _names(one: Difference) -> tuple[str, str]:
    return one.a, one.b


def _reversed(one: Difference) -> Difference:
    return Difference(
        one.metric,
        one.b,
        one.a,
        -one.value,
        -one.high,
        -one.low,
        1.0 - one.most,
        1.0 - one.least,
        1.0 - one.if_alike,
        one.p_value,
        one.winner,
    )


def _longest_defeat(name: str, differences: list[Difference], above: tuple[str, ...] = ()) -> int:
    """Return how many steps of proven defeats lie between the model and the unbeaten ones.

    Verdicts on pairs need not be transitive; a circle of them is walked once.
    """
    winners = {one.winner for one in differences if name in _names(one)} - {None, name, *above}
    steps = [_longest_defeat(str(one), differences, (*above, name)) for one in winners]
    return max((1 + step for step in steps), default=0)


def _sentence(comparison: Comparison, metric: str) -> str:
    rows = [one for one in comparison.standings if one.metric == metric]
    best = comparison.winner(metric)
    share = f"{comparison.level:.0%}"
    if best is not None:
        others = [one.model for one in rows if one.model != best]
        closest = min(
            (comparison.difference(best, other, metric) for other in others),
            key=lambda one: one.low,
        )
        return (
            f"{best} has the highest full-catalogue {metric} ({_corrected_by(comparison)}): it "
            f"beats {_listed(others)}, by at least {closest.low:.4f} ({share} interval of the "
            f"smallest difference, to {closest.b}: [{closest.low:.4f}, {closest.high:.4f}])."
        )
    leader = rows[0]
    rivals = [one.model for one in rows[1:] if one.place == 1]
    if leader.place > 1 or not rivals:
        return f"No model can be called the best on {metric}."
    return (
        f"Which of {_listed([leader.model, *rivals])} has the highest full-catalogue {metric} "
        f"cannot be told from this sample at {share}; {leader.model} has the highest estimate "
        f"({leader.value:.4f}), and is the best with {_chance(leader.if_alike)} if sampling "
        "misleads about all models alike."
    )


def _corrected_by(comparison: Comparison) -> str:
    share = f"{comparison.level:.0%}"
    return share if comparison.correction == "none" else f"{share}, {comparison.correction.title()}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _chance(value: float) -> str:
    if value > 0.995:
        return "more than 99 %"
    return f"{value:.0%}".replace("%", " %")
