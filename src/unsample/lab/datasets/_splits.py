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

    ``validation`` pairs are held out from training as well. ``negatives`` has a row of published
    negatives for each target.
    """

    name: str
    train: Interactions
    target_user: IntArray
    target_item: IntArray
    validation: Interactions | None = None
    negatives: IntArray | None = None

    @property
    def targets(self) -> tuple[IntArray, IntArray]:
        """Return the users and the items of the targets."""
        return self.target_user, self.target_item

    def history(self) -> Interactions:
        """Return all that was known of the users: training and validation pairs."""
        held, train = self.validation, self.train
        if held is None:
            return train
        user = np.concatenate([train.user, held.user])
        return replace(train, user=user, item=np.concatenate([train.item, held.item]), time=None)


def standard_split(name: str, *, rng: Seed = 0, validation: bool = True) -> Split:
    """Split a public data set as it was published, or at random where nothing was published."""
    if record(name).test:
        return leave_published_out(name, rng=rng, validation=validation)
    return leave_random_out(load(name), rng=rng, validation=validation)


def leave_random_out(interactions: Interactions, *, rng: Seed, validation: bool = False) -> Split:
    """Hold out an item of each user at random, and one more for validation if asked."""
    order = as_rng(rng).random(len(interactions))
    held_out = _last_of_users(interactions, order)
    return _split("leave-random-out", interactions, held_out, order, validation)


def leave_published_out(name: str, *, rng: Seed = 0, validation: bool = False) -> Split:
    """Load a public data set and hold out the published test item of each user.

    The validation item, if asked for, is each user's latest remaining one (a random one where the
    data have no times, or where times are equal). ``negatives`` are as published: for 156 users of
    ml-1m they hold the target itself. A target that the published training file repeats is not in
    ``train``.
    """
    if not record(name).test:
        raise DatasetError(
            f"{name} must have a published test item for each user, and has none; "
            "use leave_random_out(load(name), rng=...)"
        )
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
    train, held = interactions.select(~held_out), None
    if validation:
        last = _last_of_users(train, order[~held_out])
        train, held = train.select(~last), train.select(last)
    return Split(
        name=f"{interactions.name} {name}".strip(),
        train=train,
        target_user=interactions.user[held_out],
        target_item=interactions.item[held_out],
        validation=held,
    )


def _last_of_users(interactions: Interactions, order: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which pairs are their user's last in ``order``, of users who have more than one."""
    rows = np.lexsort((order, interactions.user))
    counts = interactions.count_by_user()
    last = np.zeros(len(rows), dtype=bool)
    last[rows[np.cumsum(counts)[counts > 1] - 1]] = True
    return last


def _latest_or_random(interactions: Interactions, rng: Seed) -> npt.NDArray[Any]:
    """Return each pair's place in time, in random order where times are equal or not known."""
    shuffled = as_rng(rng).random(len(interactions))
    if interactions.time is None:
        return shuffled
    rows = np.lexsort((shuffled, interactions.time))
    place = np.empty(len(rows), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place
