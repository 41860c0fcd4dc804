"""Splits: which interactions are held out as targets, and what is left to train on.

A user gives targets only if at least one pair is left to train on, and a validation item only if
another one is left; so the targets are the same with and without validation. All pairs of the other
users stay in training, and `Split.users_without_target` counts them. Targets whose item is left
without any training pair are kept, since a full ranking has to face them too, and
`Split.unseen_targets` counts them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_integer
from unsample.errors import DatasetError, InputError
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import Access, load, load_interactions, load_published_test
from unsample.lab.datasets._registry import record

if TYPE_CHECKING:
    import os

    from unsample.lab.datasets._files import Progress


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

    def __post_init__(self) -> None:
        if len(self.target_user) != len(self.target_item):
            raise InputError(
                "target_user and target_item must be equally long, "
                f"got {len(self.target_user)} and {len(self.target_item)}"
            )
        if (self.validation_user is None) != (self.validation_item is None):
            raise InputError("validation_user and validation_item must be given together")
        if self.negatives is not None and len(self.negatives) != len(self.target_user):
            raise InputError(
                f"negatives must have a row for each of the {len(self.target_user)} targets, "
                f"got {len(self.negatives)}"
            )

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

    @property
    def users_without_target(self) -> int:
        """Return how many users have no target."""
        return self.train.users - len(np.unique(self.target_user))

    @property
    def unseen_targets(self) -> int:
        """Return how many targets are items that nobody has in training."""
        return int((self.train.count_by_item()[self.target_item] == 0).sum())

    def __repr__(self) -> str:
        parts = [f"{len(self.target_user):,} targets", f"{len(self.train):,} training pairs"]
        if self.name:
            parts.insert(0, self.name)
        if self.validation_user is not None:
            parts.append(f"{len(self.validation_user):,} validation pairs")
        if self.users_without_target:
            parts.append(f"{self.users_without_target:,} users without a target")
        if self.unseen_targets:
            parts.append(f"{self.unseen_targets:,} targets unseen in training")
        if self.note:
            parts.append(self.note if self.complete else f"INCOMPLETE: {self.note}")
        return f"Split({', '.join(parts)})"


def standard_split(name: str, *, rng: Seed = 0, validation: bool = True) -> Split:
    """Split a public data set as it was published, or at random where nothing was published."""
    if record(name).test:
        return leave_published_out(name, rng=rng, validation=validation)
    return leave_random_out(load(name), rng=rng, validation=validation)


def leave_random_out(
    interactions: Interactions, per_user: int = 1, *, rng: Seed, validation: bool = False
) -> Split:
    """Hold out ``per_user`` items of each user at random, and one more for validation if asked.

    >>> from unsample.lab.datasets import synthetic
    >>> leave_random_out(synthetic(50, 80, pairs=1000, rng=0), rng=0)
    Split(synthetic leave-random-out, 50 targets, 950 training pairs)
    """
    order = as_rng(rng).random(len(interactions))
    held_out = _last_in(order, interactions, per_user)
    return _split("leave-random-out", interactions, held_out, order, validation)


def leave_latest_out(
    interactions: Interactions, per_user: int = 1, *, rng: Seed = 0, validation: bool = False
) -> Split:
    """Hold out the latest ``per_user`` items of each user, and the one before if asked.

    Items of the same time are ordered at random: by id, the held-out items would lean towards the
    items that were numbered late. ``rng`` seeds that order.
    """
    if interactions.time is None:
        raise DatasetError(
            f"{interactions.name or 'interactions'} must have times for leave_latest_out, and has "
            "none; use leave_random_out"
        )
    order = _latest_or_random(interactions, rng)
    held_out = _last_in(order, interactions, per_user)
    return _split("leave-latest-out", interactions, held_out, order, validation)


def leave_published_out(
    name: str,
    *,
    rng: Seed = 0,
    validation: bool = False,
    cache: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
    progress: Progress | None = None,
) -> Split:
    """Load a public data set and hold out the published test item of each user.

    The validation item, if asked for, is each user's latest remaining one (a random one where the
    data have no times, or where times are equal). ``negatives`` are as published: for 156 users of
    ml-1m they hold the target itself. A target that the published training file repeats is not in
    ``train``. The other arguments are those of `load`.
    """
    access = Access(record(name), cache, download, verify, progress)
    user, item, negatives = load_published_test(access)
    interactions = load_interactions(access)
    present = (user < interactions.users) & (item < interactions.items)
    user, item = user[present], item[present]
    held_out = np.isin(interactions.pair_keys(), user * interactions.items + item)
    order = _latest_or_random(interactions, rng)
    split = _split("leave-published-out", interactions, held_out, order, validation)
    negatives = None if negatives is None else negatives[present]
    return replace(split, target_user=user, target_item=item, negatives=negatives)


def _last_in(
    order: npt.NDArray[Any], interactions: Interactions, per_user: int
) -> npt.NDArray[np.bool_]:
    """Return which pairs are the last ``per_user`` of their user in ``order``, and not all."""
    per_user = check_integer("per_user", per_user, minimum=1)
    last = interactions.count_by_user()[interactions.user] > per_user
    last &= _count_after(interactions, order) < per_user
    if not last.any():
        raise DatasetError(
            f"{interactions.name or 'interactions'} must have a user with more than {per_user} "
            f"pairs, to hold out {per_user} and train on the rest, got none; lower per_user"
        )
    return last


def _split(
    name: str,
    interactions: Interactions,
    held_out: npt.NDArray[np.bool_],
    order: npt.NDArray[Any],
    validation: bool,
) -> Split:
    """Train on what is not held out, less the last pair in ``order`` of each user if asked."""
    train = interactions.select(~held_out)
    if not len(train):
        raise DatasetError(
            f"{interactions.name or 'interactions'} must have pairs besides the targets, got none: "
            f"all {len(interactions):,} are held out"
        )
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
