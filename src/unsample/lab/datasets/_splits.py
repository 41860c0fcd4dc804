"""Splits: which interactions are held out as targets, and what is left to train on.

A user gives a target only if at least one pair is left to train on; all pairs of the other users
stay in training. Targets whose item is left without any training pair are kept, since a full
ranking has to face them too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import IntArray, Seed, as_rng
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import load, load_published_test
from unsample.lab.datasets._records import record


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training interactions and held-out targets, one row for each target, sorted by user.

    ``negatives`` has a row of published negatives for each target.
    """

    name: str
    train: Interactions
    target_user: IntArray
    target_item: IntArray
    negatives: IntArray | None = None

    @property
    def targets(self) -> tuple[IntArray, IntArray]:
        """Return the users and the items of the targets."""
        return self.target_user, self.target_item


def standard_split(name: str, *, rng: Seed = 0) -> Split:
    """Split a public data set as it was published, or at random where nothing was published."""
    if record(name).test:
        return _leave_published_out(name)
    return leave_random_out(load(name), rng=rng)


def leave_random_out(interactions: Interactions, *, rng: Seed) -> Split:
    """Hold out an item at random of each user who has more than one.

    >>> pairs = Interactions(np.array([0, 0, 1]), np.array([0, 1, 1]), users=2, items=2)
    >>> split = leave_random_out(pairs, rng=0)
    >>> split.target_user, len(split.train)
    (array([0]), 2)
    """
    rows = np.lexsort((as_rng(rng).random(len(interactions)), interactions.user))
    counts = np.bincount(interactions.user, minlength=interactions.users)
    held_out = np.zeros(len(rows), dtype=bool)
    held_out[rows[np.cumsum(counts)[counts > 1] - 1]] = True
    return Split(
        name=f"{interactions.name} leave-random-out".strip(),
        train=interactions.select(~held_out),
        target_user=interactions.user[held_out],
        target_item=interactions.item[held_out],
    )


def _leave_published_out(name: str) -> Split:
    """Load a public data set and hold out the published test item of each user.

    ``negatives`` are as published: for 156 users of ml-1m they hold the target itself. A target
    that the published training file repeats is not in ``train``.
    """
    user, item, negatives = load_published_test(name)
    interactions = load(name)
    present = (user < interactions.users) & (item < interactions.items)
    user = user[present]
    item = item[present]
    held_out = np.isin(interactions.pair_keys(), user * interactions.items + item)
    return Split(
        name=f"{name} leave-published-out",
        train=interactions.select(~held_out),
        target_user=user,
        target_item=item,
        negatives=None if negatives is None else negatives[present],
    )
