"""A world in which targets share a pool of sampled items, for promises about such samples.

Target i's score of item s is the item's effect plus noise of its own. Its own score is such that
it stands at a drawn rank R of its own row, so that the truth is that of the law of R, whatever the
items are. The pools are drawn without replacement from the other items.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample.answers import compare
from unsample.confidence import SHAPES, Certainty, PooledCertainty
from unsample.evidence import ItemCounts, Targets
from unsample.metrics import Metric, parse


@dataclass(frozen=True)
class World:
    """One cell of the simulations."""

    #: Standard deviation of items' effects; that of the noise is one. Infinite: no noise at all.
    effects: float
    sampled: int
    targets: int = 2000
    items: int = 5000
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
) -> list[dict[int, Batch]]:
    """Return, for each model, its outcomes by pool size (those in ``sizes`` and the world's own).

    Models have effects and noise of their own, and share the pool. Smaller pools are parts of
    larger ones.
    """
    sizes = tuple(sorted({world.sampled, *sizes}))
    others = world.items - 1
    pool = rng.choice(others, sizes[-1], replace=False)
    found = []
    for _ in range(models):
        effects = rng.standard_normal(others, dtype=np.float32)
        ranks = rng.choice(world.items, world.targets, p=world.law)
        scores = _scores(world, effects, world.targets, rng)
        ordered = np.sort(scores, axis=1)[:, ::-1]
        # The target stands just above the item that has its place: R - 1 items beat it.
        own = np.append(ordered, np.full((len(ordered), 1), -np.inf), axis=1)[
            np.arange(len(ordered)), ranks
        ]
        beats = scores[:, pool] > own[:, None]
        by_size = {size: Batch(pool[:size], beats[:, :size]) for size in sizes}
        found.append(by_size)
    return found


def _scores(world: World, effects: np.ndarray, rows: int, rng: np.random.Generator) -> np.ndarray:
    if np.isinf(world.effects):
        return np.broadcast_to(effects, (rows, len(effects)))
    scores = rng.standard_normal((rows, len(effects)), dtype=np.float32)
    scores += np.float32(world.effects) * effects
    return scores


# -- what is said of them ------------------------------------------------------------------------


def told(world: World, batch: Batch, *, known: bool = True, shared: bool = True) -> Targets:
    """Return what is told of the targets: outcomes by item, that items are shared, or neither."""
    ranks, sampled = batch.beats.sum(axis=1) + 1, batch.beats.shape[1]
    found = Targets(ranks, world.items, sampled, replacement=False)
    if not shared:
        return found
    unknown = ItemCounts.without_outcomes(sampled)
    outcomes = ItemCounts.from_outcomes(batch.beats, items=batch.items) if known else unknown
    return replace(found, shared=outcomes)


def truth(world: World, metric: Metric) -> float:
    """Return the metric of all targets of such a world."""
    return float(world.law @ metric.weights(np.arange(1, world.items + 1), world.items))


def measure(
    world: World, names: Iterable[str], trials: int, seed: int, **how: bool
) -> dict[str, np.ndarray]:
    """Return rows of one cell by metric: low, high, and the ends that are estimated."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for _ in range(trials):
        (batches,) = draw(world, rng)
        counts = told(world, batches[world.sampled], **how).counts
        certainty = Certainty.of(counts, [10, 50, 100], SHAPES["power"])
        for name, found in rows.items():
            metric = parse(name)
            estimated = 2.0
            if isinstance(certainty, PooledCertainty):
                sides = [certainty.side(metric, end, 0.95) for end in (-1, 1)]
                estimated = float(sum(side is not None for side in sides))
            found.append((*certainty.interval(metric), estimated))
    return {name: np.array(found) for name, found in rows.items()}


def verdicts(
    world: World, names: Sequence[str], trials: int, seed: int, **how: bool
) -> dict[str, float]:
    """Return by metric how often one of two models that are equally good is called better."""
    rng = np.random.default_rng(seed)
    wrong = dict.fromkeys(names, 0.0)
    for _ in range(trials):
        a, b = (told(world, each[world.sampled], **how) for each in draw(world, rng, models=2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare({"A": a, "B": b}, metrics=names, method="mle", candidates="unseen")
        for name in wrong:
            wrong[name] += (found.winner(name) is not None) / trials
    return wrong
