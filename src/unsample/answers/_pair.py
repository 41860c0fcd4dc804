"""Two assumed models: P(R) of each, and how similarly they rank the targets of a user.

Ranks of two models on the same users are drawn by a Gaussian copula: correlated normal numbers,
each turned into the rank at the same quantile of P(R). The correlation is chosen so that the
covariance of the models on the metric is the one that was observed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unsample._checks import FloatArray, IntArray, as_integer_array, check_real
from unsample.answers._comparison import Comparison
from unsample.answers._estimate import estimate_counts
from unsample.answers._guess import from_pilot, usual_k
from unsample.answers._model import Model
from unsample.errors import InputError
from unsample.evidence import RankCounts, Targets
from unsample.law import Law, RankDistribution, RankGrid, bin_weights
from unsample.metrics import Metric

#: The correlation if nothing is known about it: the median over pairs of recommenders in the
#: bundled ranks (``python benchmarks/power.py correlations``).
USUAL_CORRELATION = 0.77
#: Draws and bisection steps to find a correlation, and the largest one.
_DRAWS, _STEPS, _MOST_ALIKE = 40_000, 12, 0.995
#: The steepest tilt of P(R), and bisection steps to find a tilt.
_STEEPEST, _BISECTIONS = 8.0, 60


@dataclass(frozen=True, eq=False)
class Pair:
    """Two models: the assumed P(R) of each, and the correlation of their ranks."""

    names: tuple[str, str]
    shapes: tuple[RankDistribution, RankDistribution]
    metric: Metric
    correlation: float
    #: Where P(R) and the correlation come from, in words.
    source: str
    #: The sample size of the ranks that they come from, if it is a single one.
    sampled: int | None = None

    @property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return self.shapes[0].items

    @cached_property
    def values(self) -> tuple[float, float]:
        """Return the value of the metric for each model."""
        return self.shapes[0].expect(self.metric), self.shapes[1].expect(self.metric)

    @property
    def difference(self) -> float:
        """Return by how much the better model is better."""
        return abs(self.values[0] - self.values[1])

    @property
    def winner(self) -> str:
        """Return the name of the better model."""
        return self.names[int(self.values[1] > self.values[0])]

    @cached_property
    def spread(self) -> float:
        """Return the standard deviation over users of the difference between the two models."""
        first, second = (
            self.metric.weights(each, self.items)
            for each in self.draw(_DRAWS, np.random.default_rng(0))
        )
        return float(np.std(first - second))

    @cached_property
    def largest_difference(self) -> float:
        """Return by how much a model could be better than the weaker of the two."""
        return _tilted(self._weaker, _STEEPEST).expect(self.metric) - min(self.values)

    @property
    def _weaker(self) -> RankDistribution:
        return self.shapes[int(self.values[1] < self.values[0])]

    def draw(self, users: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw the rank of one target of each user under both models."""
        first, second = _normals(users, self.correlation, rng)
        return _ranks_at(self.shapes[0], first), _ranks_at(self.shapes[1], second)

    def apart(self, difference: float) -> Pair:
        """Return the weaker model and one better by ``difference``, with the same correlation.

        P(R) of the better model is P(R) of the weaker one times a power of R.
        """
        weaker, low, high = self._weaker, 0.0, _STEEPEST
        sought = min(self.values) + difference
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            below = _tilted(weaker, middle).expect(self.metric) < sought
            low, high = (middle, high) if below else (low, middle)
        return replace(self, shapes=(_tilted(weaker, high), weaker))

    @classmethod
    def with_difference(
        cls, guess: RankDistribution, metric: Metric, compare: float | str, source: str
    ) -> Pair:
        """Return a model with the guessed P(R), and one that is better by ``compare``."""
        same = cls(("better", "weaker"), (guess, guess), metric, USUAL_CORRELATION, source)
        sought = _as_difference(compare, same.values[0])
        if not 0.0 < sought < same.largest_difference:
            raise InputError(
                f"compare must be a difference of {metric} above 0 and below "
                f"{same.largest_difference:.4g}, for a model that has {same.values[0]:.4g}, got "
                f"{compare!r}"
            )
        return same.apart(sought)

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any] | Comparison,
        items: int,
        metric: Metric,
        candidates: str | None,
    ) -> Pair:
        """Return two models with known ranks, counts or P(R); or the two best of a comparison."""
        if isinstance(given, Comparison):
            found = _two_best(given, metric)
        else:
            found = [_Known.of(name, each, items) for name, each in given.items()]
        if len(found) != 2:
            raise InputError(f"compare must hold two models, got {len(found)}")
        k = usual_k(metric, items)
        first, second = (
            from_pilot(_among(each.distribution(metric, candidates), items), items, k)[0]
            for each in found
        )
        alike = _correlation(found, (first, second), metric)
        words = f"{found[0].words}, {found[1].words}"
        if alike is None:
            words += "; how alike they are is a guess"
        names = found[0].name, found[1].name
        used = USUAL_CORRELATION if alike is None else alike
        sizes = {size for each in found for size in each.sizes}
        return cls(
            names, (first, second), metric, used, words, sizes.pop() if len(sizes) == 1 else None
        )


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known about one model: its ranks, full or sampled, or only P(R)."""

    name: str
    words: str
    model: Model | None
    shape: RankDistribution | None = None

    @classmethod
    def of(cls, name: str, given: Any, items: int) -> _Known:
        """Return what is given for a model in one form."""
        if isinstance(given, RankDistribution):
            return cls(name, f"{name} as given", None, given)
        if isinstance(given, RankCounts):
            return cls(name, f"{name} from {given.total:,} ranks", Model(name, given))
        if not isinstance(given, Targets):
            ranks = as_integer_array("compare", given, hint="ranks among all items start at 1")
            given = Targets(ranks.astype(np.int64), items, items - 1, replacement=False)
        return cls(name, f"{name} from {len(given.ranks):,} ranks", Model.of(name, given))

    @property
    def sizes(self) -> set[int]:
        """Return the sizes of the samples; an empty set for full ranks."""
        if self.model is None or self.model.counts.known.all():
            return set()
        return set(np.unique(self.model.counts.sampled).tolist())

    def distribution(self, metric: Metric, candidates: str | None) -> RankDistribution:
        """Return P(R), either as given or estimated."""
        if self.shape is not None:
            return self.shape
        assert self.model is not None
        found = estimate_counts(
            self.model.counts.for_metric(metric),
            metrics=metric,
            candidates=candidates,
            errors="delta",
            resamples=0,
        )
        return found.distribution

    def scores(
        self, metric: Metric, guess: RankDistribution
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the metric of each user, and of each bin of the guess.

        For a sampled rank it is the expected metric. None if users are not known, or if samples
        have different sizes or a stopping rule.
        """
        if self.model is None or self.model.targets is None:
            return None
        targets = self.model.targets
        ranks, sampled = np.asarray(targets.ranks), np.unique(np.asarray(targets.sampled))
        if self.model.counts.known.all():
            each = metric.weights(ranks, guess.items)
            return self.model.totals(metric, each), bin_weights(metric, guess.grid, guess.items)
        if len(sampled) > 1:
            return None
        law = _typical_law(targets)
        table = _expected_at(guess, law, [metric])[:, 0]
        numbers = np.arange(1, law.n + 1)
        chances = law.matrix(numbers, numbers, guess.grid, beyond="last")
        return self.model.totals(metric, table[ranks - 1]), table @ chances


def _among(shape: RankDistribution, items: int) -> RankDistribution:
    """Return P(R) on the whole catalogue, if users have fewer candidates than it has items."""
    if shape.items > items:
        raise InputError(
            f"compare must hold models ranked among items = {items} at most, got one among "
            f"{shape.items}"
        )
    return RankDistribution(RankGrid(shape.grid.low, items), shape.mass)


def _two_best(given: Comparison, metric: Metric) -> list[_Known]:
    """Return the two models of a comparison with the highest estimates of the metric."""
    found = []
    for name in given.by_estimate(metric)[:2]:
        held = given.estimates[name]
        if not held.distributions:
            raise InputError(
                f"compare must hold models of which P(R) is known, got {name}, of which only "
                f"the top {metric.k} was looked at; give a difference instead"
            )
        model = next((each for each in given.held if each.name == name), None)
        shape = held.distributions[held.methods[0]]
        found.append(_Known(name, f"{name} as estimated", model, shape))
    return found


def _correlation(
    found: list[_Known], guesses: tuple[RankDistribution, RankDistribution], metric: Metric
) -> float | None:
    """Return the correlation that gives the observed covariance of the users' metrics.

    None if the users of the two models cannot be matched, or if there is only one user.
    """
    first_scores, second_scores = (
        each.scores(metric, guess) for each, guess in zip(found, guesses, strict=True)
    )
    if first_scores is None or second_scores is None:
        return None
    (seen, of_bins), (other_seen, of_other_bins) = first_scores, second_scores
    assert found[0].model is not None
    assert found[1].model is not None
    if not np.array_equal(found[0].model.keys[0], found[1].model.keys[0]):
        return None
    if len(seen) < 2:
        return None
    sought = float(np.cov(seen, other_seen)[0, 1])
    low, high = 0.0, _MOST_ALIKE
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        first, second = _normals(_DRAWS, middle, np.random.default_rng(0))
        bins = [_bins_at(*each) for each in ((guesses[0], first), (guesses[1], second))]
        together = float(np.cov(of_bins[bins[0]], of_other_bins[bins[1]])[0, 1])
        low, high = (middle, high) if together < sought else (low, middle)
    return low


def _as_difference(compare: float | str, value: float) -> float:
    """Return the difference: a number as it is, a percentage as a part of the metric."""
    number, share = compare, 1.0
    if isinstance(compare, str):
        text = compare.strip()
        share = value / 100.0 if text.endswith("%") else 1.0
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            number = compare
    hint = "give a difference such as 0.01 or '5%', two models by name, or a Comparison"
    return share * check_real("compare", number, low=0.0, open_low=True, hint=hint)


def _normals(
    size: int, correlation: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw pairs of quantiles in 0..1 whose normal deviates have this correlation."""
    from scipy.special import ndtr

    first, second = rng.standard_normal((2, size))
    second = correlation * first + math.sqrt(1.0 - correlation**2) * second
    return ndtr(first), ndtr(second)


def _bins_at(shape: RankDistribution, places: FloatArray) -> IntArray:
    """Return the bin at each quantile of the distribution."""
    ends = np.cumsum(shape.mass)
    found = np.searchsorted(ends, ends[-1] * places, side="right")
    return np.asarray(np.minimum(found, len(ends) - 1))


def _ranks_at(shape: RankDistribution, places: FloatArray) -> IntArray:
    """Return the rank at each quantile of the distribution."""
    bins, ends = _bins_at(shape, places), np.cumsum(shape.mass)
    mass, width = shape.mass[bins], shape.grid.width[bins]
    inside = (ends[-1] * places - ends[bins] + mass) / np.maximum(mass, 1e-300)
    steps = np.clip((inside * width).astype(np.int64), 0, width - 1)
    return np.asarray(shape.grid.low[bins] + steps)


def _tilted(shape: RankDistribution, power: float) -> RankDistribution:
    """Return P(R) times R^-power, scaled to sum to one."""
    tilt = np.sqrt(shape.grid.low * shape.grid.high.astype(np.float64)) ** -power
    mass = shape.mass * tilt
    return RankDistribution(shape.grid, mass / mass.sum())


def _typical_law(found: Targets) -> Law:
    """Return one law for all targets, with the mean number of items: any law is valid here."""
    sampled = np.unique(np.asarray(found.sampled))
    if len(sampled) > 1:
        raise InputError(
            f"sampled must be one number to pair models, got {sampled[0]} to {sampled[-1]}"
        )
    items = round(float(np.mean(np.asarray(found.items))))
    size = int(sampled[0])
    return Law(items if found.replacement else max(items, size + 2), size, found.replacement)


def _expected_at(distribution: RankDistribution, law: Law, metrics: list[Metric]) -> FloatArray:
    """Return the expected value of each metric at each sampled rank (ranks x metrics)."""
    ranks, grid = np.arange(1, law.n + 1), distribution.grid
    joint = law.matrix(ranks, ranks, grid, beyond="last") * distribution.mass
    weights = np.stack([bin_weights(each, grid, law.items) for each in metrics], axis=1)
    return np.asarray(joint @ weights / np.maximum(joint.sum(axis=1), 1e-300)[:, None])
