"""Splits: which interactions are held out as targets, and what is left to train on.

A user gives a target only if at least one pair is left to train on, and a validation item only if
another one is left; so the targets are the same with and without validation. All pairs of the other
users stay in training. Targets whose item is left without any training pair are kept, since a full
ranking has to face them too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng
from unsample.errors import DatasetError
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import load, load_published_test
from unsample.lab.datasets._registry import record


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training interactions and held-out targets, one row for each target, sorted by user.

    ``validation_user`` and ``validation_item`` are held out from training as well. ``negatives``
    has a row of published negatives for each target.
    """

    train: Interactions
    target_user: IntArray
    target_item: IntArray
    validation_user: IntArray | None = None
    validation_item: IntArray | None = None
    negatives: IntArray | None = None
    name: str = ""

    @property
    def targets(self) -> tuple[IntArray, IntArray]:
        """Return the users and the items of the targets."""
        return self.target_user, self.target_item

    @property
    def complete(self) -> bool:
        """Return whether this is a split of a whole data set; see `note`."""
        return self.train.complete

    @property
    def note(self) -> str:
        """Return what is missing of the data set."""
        return self.train.note

    def validation(self) -> Interactions | None:
        """Return the validation pairs as interactions, or None where none were held out."""
        if self.validation_user is None or self.validation_item is None:
            return None
        return Interactions(
            self.validation_user, self.validation_item, self.train.users, self.train.items
        )

    def history(self) -> Interactions:
        """Return all that was known of the users: training and validation pairs."""
        held = self.validation()
        if held is None:
            return self.train
        return Interactions(
            np.concatenate([self.train.user, held.user]),
            np.concatenate([self.train.item, held.item]),
            self.train.users,
            self.train.items,
        )

    def __repr__(self) -> str:
        parts = [self.name, f"{len(self.target_user):,} targets"]
        parts.append(f"{len(self.train):,} training pairs")
        if self.validation_user is not None:
            parts.append(f"{len(self.validation_user):,} validation pairs")
        parts.append("" if self.complete else f"INCOMPLETE: {self.note}")
        return f"Split({', '.join(filter(None, parts))})"


def standard_split(name: str, *, rng: Seed = 0, validation: bool = True) -> Split:
    """Split a public data set as it was published, or at random where nothing was published."""
    if record(name).test:
        return leave_published_out(name, rng=rng, validation=validation)
    return leave_random_out(load(name), rng=rng, validation=validation)


def leave_random_out(interactions: Interactions, *, rng: Seed, validation: bool = False) -> Split:
    """Hold out an item of each user at random, and one more for validation if asked.

    >>> from unsample.lab.datasets import synthetic
    >>> leave_random_out(synthetic(50, 80, pairs=1000, rng=0), rng=0)
    Split(synthetic leave-random-out, 50 targets, 950 training pairs)
    """
    order = as_rng(rng).random(len(interactions))
    held_out = interactions.count_by_user()[interactions.user] > 1
    held_out &= _count_after(interactions, order) == 0
    if not held_out.any():
        raise DatasetError(
            f"{interactions.name or 'interactions'} must have a user with more than one pair, to "
            "hold out one and train on the rest, got none"
        )
    return _split("leave-random-out", interactions, held_out, order, validation)


def leave_published_out(name: str, *, rng: Seed = 0, validation: bool = False) -> Split:
    """Load a public data set and hold out the published test item of each user.

    The validation item, if asked for, is each user's latest remaining one (a random one where the
    data have no times, or where times are equal). ``negatives`` are as published: for 156 users of
    ml-1m they hold the target itself. A target that the published training file repeats is not in
    ``train``.
    """
    user, item, negatives = load_published_test(name)
    interactions = load(name)
    present = (user < interactions.users) & (item < interactions.items)
    user, item = user[present], item[present]
    held_out = np.isin(interactions.pair_keys(), user * interactions.items + item)
    order = _latest_or_random(interactions, rng)
    split = _split("leave-published-out", interactions, held_out, order, validation)
    negatives = None if negatives is None else negatives[present]
    return replace(split, target_user=user, target_item=item, negatives=negatives)


def _split(
    name: str,
    interactions: Interactions,
    held_out: npt.NDArray[np.bool_],
    order: npt.NDArray[Any],
    validation: bool,
) -> Split:
    """Train on what is not held out, less the last pair in ``order`` of each user if asked."""
    train = interactions.select(~held_out)
    validation_user = validation_item = None
    if validation:
        last = train.count_by_user()[train.user] > 1
        last &= _count_after(train, order[~held_out]) == 0
        validation_user, validation_item = train.user[last], train.item[last]
        train = train.select(~last)
    return Split(
        train=train,
        target_user=interactions.user[held_out],
        target_item=interactions.item[held_out],
        validation_user=validation_user,
        validation_item=validation_item,
        name=" ".join(filter(None, [interactions.name, name])),
    )


def _count_after(interactions: Interactions, order: npt.NDArray[Any]) -> IntArray:
    """Return for each pair how many pairs of its user come after it in ``order``."""
    rows = np.lexsort((order, interactions.user))
    end_of_user = np.cumsum(interactions.count_by_user())
    after = np.empty(len(rows), dtype=np.int64)
    after[rows] = end_of_user[interactions.user[rows]] - 1 - np.arange(len(rows))
    return after


def _latest_or_random(interactions: Interactions, rng: Seed) -> npt.NDArray[Any]:
    """Return each pair's place in time, in random order where times are equal or not known."""
    shuffled = as_rng(rng).random(len(interactions))
    if interactions.time is None:
        return shuffled
    rows = np.lexsort((shuffled, interactions.time))
    place = np.empty(len(rows), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place
