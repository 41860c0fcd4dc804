"""A world in which targets share a pool of sampled items, for promises about such samples.

Target i's score of item s is the item's effect plus noise of its own. Its own score is such that
it stands at a drawn rank R of its own row, so that the truth is that of the law of R, whatever the
items are. The pools are drawn without replacement from the other items.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unsample.confidence import SHAPES, Certainty, MeanLimits, blind_rank
from unsample.confidence._certainty import AffineBound
from unsample.confidence._program import InfeasibleError, Program
from unsample.confidence._shared import PooledError, PooledLimits, proved_rows
from unsample.estimators import mean_weights
from unsample.evidence import RankCounts
from unsample.evidence._pools import PoolCounts, part_of_pools
from unsample.metrics import Metric, parse


@dataclass(frozen=True)
class World:
    """One cell of the simulations."""

    #: Standard deviation of items' effects; that of the noise is one. Infinite: no noise at all.
    effects: float
    sampled: int
    targets: int = 2000
    items: int = 5000
    #: How many targets share a pool; None where all do.
    batch: int | None = None
    #: P(R) falls as (R + shift)^-fall.
    shift: float = 5.0
    fall: float = 1.0

    @property
    def law(self) -> np.ndarray:
        """Return P(R) for R = 1, ..., items."""
        mass = (np.arange(1, self.items + 1) + self.shift) ** -self.fall
        return mass / mass.sum()

    @property
    def left(self) -> float:
        """Return the share of the other items that a pool leaves out."""
        return 1.0 - self.sampled / (self.items - 1)


@dataclass(frozen=True)
class Batch:
    """The outcomes of one pool: ``beats[i, s]`` says whether item s beats target i."""

    items: np.ndarray
    beats: np.ndarray


def draw(
    world: World, rng: np.random.Generator, sizes: tuple[int, ...] = (), models: int = 1
) -> list[dict[int, list[Batch]]]:
    """Return, for each model, its batches by pool size (those in ``sizes`` and the world's own).

    Models have effects and noise of their own, and share the pools. Smaller pools are parts of
    larger ones.
    """
    sizes = tuple(sorted({world.sampled, *sizes}))
    others = world.items - 1
    batch = world.batch or world.targets
    edges = [*range(0, world.targets, batch), world.targets]
    pools = [rng.choice(others, sizes[-1], replace=False) for _ in edges[1:]]
    found = []
    for _ in range(models):
        effects = rng.standard_normal(others, dtype=np.float32)
        by_size: dict[int, list[Batch]] = {size: [] for size in sizes}
        ranks = rng.choice(world.items, world.targets, p=world.law)
        for first, last, pool in zip(edges[:-1], edges[1:], pools, strict=True):
            scores = _scores(world, effects, last - first, rng)
            ordered = np.sort(scores, axis=1)[:, ::-1]
            # The target stands just above the item that has its place: R - 1 items beat it.
            own = np.append(ordered, np.full((len(ordered), 1), -np.inf), axis=1)[
                np.arange(len(ordered)), ranks[first:last]
            ]
            beats = scores[:, pool] > own[:, None]
            for size in sizes:
                by_size[size].append(Batch(pool[:size], beats[:, :size]))
        found.append(by_size)
    return found


def _scores(world: World, effects: np.ndarray, rows: int, rng: np.random.Generator) -> np.ndarray:
    if np.isinf(world.effects):
        return np.broadcast_to(effects, (rows, len(effects)))
    scores = rng.standard_normal((rows, len(effects)), dtype=np.float32)
    scores += np.float32(world.effects) * effects
    return scores


# -- what is said of them ------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """One model's sampled ranks, as the programs see them."""

    world: World
    batches: list[Batch]
    cutoffs: tuple[int, ...] = (10, 50, 100)
    shape: str = "power"
    _programs: dict[tuple[float, bool], Program] = field(default_factory=dict, repr=False)

    @cached_property
    def pools(self) -> PoolCounts:
        return PoolCounts.merge(
            PoolCounts.from_outcomes(each.beats, items=each.items, pool=number)
            for number, each in enumerate(self.batches)
        )

    @cached_property
    def ranks(self) -> np.ndarray:
        return np.concatenate([each.beats.sum(axis=1) + 1 for each in self.batches])

    @cached_property
    def certainty(self) -> Certainty:
        counts = RankCounts.from_ranks(
            self.ranks, items=self.world.items, sampled=self.sampled, replacement=False
        )
        return Certainty.of(counts, self.cutoffs, SHAPES[self.shape])

    @property
    def sampled(self) -> int:
        return self.batches[0].beats.shape[1]

    @property
    def left(self) -> float:
        return 1.0 - self.sampled / (self.world.items - 1)

    @property
    def part(self) -> MeanLimits:
        return self.certainty.evidence[0]

    def error(self, scores: np.ndarray, targets: float, *, known: bool) -> PooledError:
        """Return the error of a mean of scores; ``known`` says whether outcomes by item are."""
        if not known:
            return PooledError(0.0, self.pools.between_part(scores))
        return PooledError(targets, self.pools.items_part(scores, left=self.left))

    def limits(self, *, known: bool) -> PooledLimits:
        """Return the region in which the programs of the affine bounds are solved."""
        ranks = np.arange(1, self.sampled + 2)
        errors = []
        for end, share in zip(self.part.ends, self.part.low, strict=True):
            targets = share * (1.0 - share) / len(self.ranks)
            errors.append(self.error((ranks <= end).astype(float), targets, known=known))
        return PooledLimits.of(self.part, errors)

    def program(self, evidence: MeanLimits, alpha: float) -> Program:
        certainty = self.certainty
        blind = blind_rank(certainty.counts)
        return Program(certainty.grid, (evidence,), certainty.shape, blind, alpha)

    @cached_property
    def estimated(self) -> dict[bool, Program]:
        return {known: self.program(self.limits(known=known), 0.05) for known in (True, False)}

    def weights(self, metric: Metric) -> np.ndarray:
        return mean_weights(metric, self.certainty.grid, self.certainty.counts)

    def side(self, metric: Metric, side: int, *, known: bool) -> Side:
        """Return one side of a metric as a mean of scores; of AUC, which needs no bounds, itself.

        Raises `InfeasibleError` where the data refute the shape.
        """
        if metric.name == "AUC":
            scores = 1.0 - np.arange(self.sampled + 1) / self.sampled
            values = scores[self.ranks - 1]
            return Side(float(values.mean()), scores, float(values.var() / len(values)))
        weights = self.weights(metric)
        solved = self.estimated[known].lowest(-side * weights)
        scores = (side * solved.scores[0],)
        bound = AffineBound(side, -side * solved.offset, (self.part,), scores, solved.mass, weights)
        every_rank = self.part.locate(np.arange(1, self.sampled + 2))
        return Side(bound.expected, bound.scores[0][every_rank], bound.standard_error() ** 2)

    def proved(self, metric: Metric, level: float, *, at_once: bool = False) -> tuple[float, float]:
        """Return an interval that needs nothing but ranks."""
        weights = self.weights(metric)
        for every in (at_once, True):
            try:
                program = self._proved(level, every)
                return program.lowest(weights).value, -program.lowest(-weights).value
            except InfeasibleError:
                continue
        return float(weights.min()), float(weights.max())

    def _proved(self, level: float, at_once: bool) -> Program:
        if (level, at_once) not in self._programs:
            rows = proved_rows(self.part, 1.0 - level, at_once=at_once)
            self._programs[level, at_once] = self.program(rows, 1.0 - level)
        return self._programs[level, at_once]

    def interval(
        self, metric: Metric, level: float = 0.95, *, known: bool = True
    ) -> tuple[float, float, int]:
        """Return an interval, and how many of its ends are proved rather than estimated.

        ``known`` says whether it is known which item beats which target. An end whose error can be
        trusted is estimated, and goes no further than what is proved of all shares at once; the
        other ends are proved.
        """
        ends: list[float | None] = []
        for side in (-1, 1):
            try:
                found = self.side(metric, side, known=known)
            except InfeasibleError:
                ends.append(None)
                continue
            error = self.error(found.scores, found.targets, known=known)
            end = found.expected + side * error.reach(level, side)
            ends.append(end if error.trusted else None)
        low, high = ends
        if low is not None and high is not None and low > high:
            # The two ends are means of different scores: the data hardly fit the shape.
            low = high = None
        fallen = (low is None) + (high is None)
        if fallen < 2:
            least, most = self.proved(metric, level, at_once=True)
            low = None if low is None else max(low, least)
            high = None if high is None else min(high, most)
        if fallen:
            least, most = self.proved(metric, level)
            low, high = least if low is None else low, most if high is None else high
        return min(low, high), max(low, high), fallen

    def naive(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return what independent targets would give."""
        if metric.name == "AUC":
            found = self.side(metric, 1, known=True)
            reach = 1.96 * found.targets**0.5
            return found.expected - reach, found.expected + reach
        return self.certainty.interval(metric, level)


@dataclass(frozen=True)
class Side:
    """A bound that is the mean of a score of each rank, and the targets' part of its variance."""

    expected: float
    scores: np.ndarray
    targets: float


def difference(
    a: Sample, b: Sample, metric: Metric, level: float = 0.95, *, known: bool = True
) -> tuple[float, float, int]:
    """Return limits of the difference of two models, and how many of them are proved."""
    ends = []
    for side in (-1, 1):
        try:
            of_a, of_b = a.side(metric, side, known=known), b.side(metric, -side, known=known)
        except InfeasibleError:
            ends.append(None)
            continue
        apart = of_a.scores[a.ranks - 1] - of_b.scores[b.ranks - 1]
        if known:
            drawn = a.pools.difference_part(b.pools, of_a.scores, of_b.scores, left=a.left)
            error = PooledError(float(apart.var() / len(apart)), drawn)
        else:
            (of_pools, shares), (others, _) = (
                each.pools.pool_means(found.scores) for each, found in ((a, of_a), (b, of_b))
            )
            error = PooledError(0.0, part_of_pools(of_pools - others, shares))
        end = of_a.expected - of_b.expected + side * error.reach(level, side)
        ends.append(end if error.trusted else None)
    half = 1.0 - (1.0 - level) / 2.0
    if None in ends:
        of_a, of_b = (each.interval(metric, half, known=known) for each in (a, b))
        apart = (of_a[0] - of_b[1], of_a[1] - of_b[0])
        fallen = ends.count(None)
        ends = [other if end is None else end for end, other in zip(ends, apart, strict=True)]
        return min(ends), max(ends), fallen
    return min(ends), max(ends), 0


def truth(world: World, metric: Metric) -> float:
    """Return the metric of all targets of such a world."""
    return float(world.law @ metric.weights(np.arange(1, world.items + 1), world.items))


def measure(
    world: World, names: Iterable[str], trials: int, seed: int, *, known: bool = True
) -> dict[str, np.ndarray]:
    """Return rows of one cell by metric: low, high, ends that are proved, truth."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for _ in range(trials):
        (batches,) = draw(world, rng)
        sample = Sample(world, batches[world.sampled])
        for name, found in rows.items():
            metric = parse(name)
            found.append((*sample.interval(metric, known=known), truth(world, metric)))
    return {name: np.array(found) for name, found in rows.items()}


def verdicts(
    world: World, names: Iterable[str], trials: int, seed: int, *, known: bool = True
) -> dict[str, float]:
    """Return by metric how often one of two models that are equally good is called better."""
    rng = np.random.default_rng(seed)
    wrong = dict.fromkeys(names, 0.0)
    for _ in range(trials):
        a, b = (Sample(world, each[world.sampled]) for each in draw(world, rng, models=2))
        for name in wrong:
            low, high, _ = difference(a, b, parse(name), known=known)
            wrong[name] += (low > 0 or high < 0) / trials
    return wrong
