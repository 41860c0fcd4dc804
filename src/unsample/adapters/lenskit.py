"""Item lists and pipelines of LensKit.

LensKit scores the candidates it is given; lists that hold a user's targets and sampled items make
a sampled evaluation. Items that a pipeline cannot score (NaN) come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed
from unsample.adapters._lists import rank_lists
from unsample.adapters._tasks import Task, check_object, held_out, require
from unsample.designs import RowScores
from unsample.errors import InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]

#: Stands for no score. Not -inf: a target without a score has a rank, among the last.
_LAST = float(np.finfo(np.float64).min)


def targets(
    scored: Any,
    test: Any,
    *,
    items: int | Mapping[Any, int],
    sampled: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    filtered: bool = False,
) -> Targets:
    """Rank test items among the sampled items of each user's scored list.

    Parameters
    ----------
    scored
        An `ItemListCollection` of scored lists that hold test and sampled items, such as
        ``lenskit.batch.score(pipeline, candidates)`` returns.
    test
        An `ItemListCollection` of the test items, with the same keys.
    items, sampled, ties, rng, filtered
        As in `unsample.adapters.trec.targets`, with users for queries.
    """
    lists = {}
    for key, row in _read("scored", scored):
        if row.scores() is None:
            raise InputError(
                f"scored must hold lists with scores, got none for {key!s}; keep what "
                "lenskit.batch.score returns"
            )
        lists[key] = dict(zip(row.ids().tolist(), _filled(row.scores()).tolist(), strict=True))
    relevant = {key: dict.fromkeys(row.ids().tolist(), 1.0) for key, row in _read("test", test)}
    how: dict[str, Any] = {"ties": ties, "rng": rng, "filtered": filtered}
    return rank_lists("scored", lists, relevant, items=items, sampled=sampled, **how)


def task(pipeline: Any, train: Any, test: Any) -> Task:
    """Make a task of a trained pipeline; users and items have their numbers in ``train``.

    Parameters
    ----------
    pipeline
        A `lenskit.pipeline.Pipeline` after ``pipeline.train(train)``.
    train
        The `lenskit.data.Dataset` it was trained on: its items are the catalogue, and what a user
        has there is no candidate.
    test
        An `ItemListCollection` of the test items of users that are in ``train``.
    """
    check_object("pipeline", pipeline, "a pipeline of lenskit", "node")
    check_object("train", train, "a dataset of lenskit", "interaction_matrix")
    from scipy.sparse import csr_array

    user_ids, every = np.asarray(train.users.ids()), np.arange(train.item_count, dtype=np.int32)
    score = require("lenskit", "lenskit").score
    listed = require("lenskit", "lenskit.data").ItemList(item_nums=every, vocabulary=train.items)

    def all_items(users: IntArray, /) -> FloatArray:
        asked = user_ids[users].tolist()
        rows = (score(pipeline, user, listed).scores() for user in asked)
        return np.stack([_filled(row) for row in rows])

    pairs = [(key, item) for key, row in _read("test", test) for item in row.ids().tolist()]
    users, items = zip(*pairs, strict=True)
    wanted = held_out(_numbers("user", train.users, users), _numbers("item", train.items, items))
    seen = csr_array(train.interaction_matrix(format="scipy", layout="csr"))
    return Task(RowScores(all_items), wanted, train.item_count, seen)


def _read(name: str, collection: Any) -> list[tuple[Any, Any]]:
    """Return the lists of a collection with their keys."""
    check_object(name, collection, "an ItemListCollection of lenskit", "key_fields", "lists")
    if not len(collection):
        raise InputError(f"{name} must hold at least one item list, got none")
    return [(key[0] if len(key) == 1 else "/".join(map(str, key)), row) for key, row in collection]


def _numbers(what: str, vocabulary: Any, names: tuple[Any, ...]) -> IntArray:
    """Return the numbers of users or items in the training data; refuse those that it lacks."""
    found = np.asarray(vocabulary.numbers(np.array(names), missing="negative"))
    if (found < 0).any():
        strange = names[int(np.argmax(found < 0))]
        raise InputError(
            f"each {what} of test must be known to train, got {strange!s}; leave it out"
        )
    return found.astype(np.int64)


def _filled(scores: npt.ArrayLike) -> FloatArray:
    """Return scores, the lowest where there is none."""
    given = np.asarray(scores, dtype=np.float64)
    return np.where(np.isnan(given), _LAST, given)
