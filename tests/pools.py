"""A world in which targets share a pool of sampled items.

Target i's score of item s is the item's effect plus noise of its own. Its own score is such that it
stands at a drawn rank R of its own row, so that the truth is that of the distribution of R,
whatever the items are. The pool is drawn without replacement from the other items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample.counts import ItemCounts, Targets


@dataclass(frozen=True)
class World:
    """Targets, items, and how much the items have in common for all targets."""

    #: Standard deviation of items' effects; that of the noise is one. Infinite: no noise at all.
    effects: float
    sampled: int = 60
    targets: int = 300
    items: int = 600
    #: P(R) falls as (R + shift)^-fall.
    shift: float = 5.0
    fall: float = 1.0

    @property
    def distribution(self) -> np.ndarray:
        """Return P(R) for R = 1, ..., items."""
        mass = (np.arange(1, self.items + 1) + self.shift) ** -self.fall
        return mass / mass.sum()


@dataclass(frozen=True)
class Pool:
    """The outcomes of one pool: ``beats[i, s]`` says whether item s beats target i."""

    world: World
    items: np.ndarray
    beats: np.ndarray
    effects: np.ndarray

    @classmethod
    def draw(cls, world: World, rng: np.random.Generator, like: Pool | None = None) -> Pool:
        """Return the outcomes of all targets; those of another model, on a pool ``like`` one."""
        others = world.items - 1
        effects = rng.standard_normal(others) if like is None else like.effects
        scores = np.broadcast_to(effects, (world.targets, others))
        if np.isfinite(world.effects):
            scores = world.effects * effects + rng.standard_normal((world.targets, others))
        ranks = rng.choice(world.items, world.targets, p=world.distribution)
        # The target stands just above the item that has its place: R - 1 items beat it.
        ordered = np.append(-np.sort(-scores, axis=1), np.full((len(scores), 1), -np.inf), axis=1)
        own = ordered[np.arange(len(scores)), ranks]
        items = rng.choice(others, world.sampled, replace=False) if like is None else like.items
        return cls(world, items, scores[:, items] > own[:, None], effects)

    @property
    def ranks(self) -> np.ndarray:
        """Return the sampled ranks."""
        return self.beats.sum(axis=1) + 1

    def targets(self, *, known: bool = True) -> Targets:
        """Return the targets, with outcomes by item or only with what is shared."""
        shared = ItemCounts.without_outcomes(self.world.sampled)
        if known:
            shared = ItemCounts.from_outcomes(self.beats, items=self.items)
        return Targets(
            self.ranks, self.world.items, self.world.sampled, replacement=False, shared=shared
        )
