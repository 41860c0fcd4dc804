"""Item lists and pipelines of LensKit.

LensKit scores the candidates it is given; lists that hold a user's targets and sampled items make
a sampled evaluation. Items that a pipeline cannot score (NaN) come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed
from unsample.adapters._lists import Counting, Lists, numbered
from unsample.adapters._tasks import ModelScores, Task, check_object, require, unscored_last
from unsample.errors import InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]


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
    counting = Counting(ties, rng, filtered)
    listed, relevant = _read("scored", scored, with_scores=True), _read("test", test)
    return listed.rank(relevant, items=items, sampled=sampled, counting=counting)


def task(pipeline: Any, train: Any, test: Any, *, component: str = "scorer") -> Task:
    """Make a task of a trained pipeline.

    Parameters
    ----------
    pipeline
        A `lenskit.pipeline.Pipeline` after ``pipeline.train(train)``.
    train
        The `lenskit.data.Dataset` it was trained on: its items are the catalogue, and what a user
        has there is no candidate.
    test
        An `ItemListCollection` of the test items of users that are in ``train``.
    component
        The node of the pipeline that gives scores.
    """
    check_object("pipeline", pipeline, "a pipeline of lenskit", ["node"])
    check_object("train", train, "a dataset of lenskit", ["interaction_matrix"])
    ids = np.asarray(train.users.ids()), np.asarray(train.items.ids())
    held_out = _read("test", test)
    score = require("lenskit", "lenskit").score
    item_list = require("lenskit", "lenskit.data").ItemList

    def scores(users: IntArray, items: IntArray | None = None, /) -> npt.NDArray[Any]:
        """Return the scores of these items, or of all, user by user as LensKit gives them."""
        rows = []
        for place, user in enumerate(ids[0][users].tolist()):
            asked = np.arange(len(ids[1])) if items is None else items[place]
            # A list holds an item once, and a sample with replacement may hold it twice.
            distinct, inverse = np.unique(asked, return_inverse=True)
            listed = item_list(item_nums=distinct.astype(np.int32), vocabulary=train.items)
            found = score(pipeline, user, listed, component=component)
            rows.append(np.asarray(found.scores(), dtype=np.float64)[inverse])
        return np.stack(rows)

    seen = train.interaction_matrix(format="scipy", layout="coo")
    return Task.of_pairs(
        ModelScores(scores, len(ids[1]), scores),
        numbered((held_out.query, held_out.item), ids, here="test", there="train"),
        (seen.row, seen.col),
        ids,
    )


def _read(name: str, collection: Any, *, with_scores: bool = False) -> Lists:
    kind = "an ItemListCollection of lenskit"
    check_object(name, collection, kind, ["key_fields", "lists"])
    keys, lists, scores = [], [], []
    for key, items in collection:
        keys.append(key[0] if len(key) == 1 else "/".join(map(str, key)))
        lists.append(np.asarray(items.ids()))
        found = items.scores() if with_scores else np.zeros(len(items))
        if found is None:
            raise InputError(
                f"{name} must hold lists with scores, got none for {keys[-1]!s}; keep what "
                "lenskit.batch.score returns"
            )
        scores.append(unscored_last(found))
    if not lists:
        raise InputError(f"{name} must hold at least one item list, got none")
    queries = np.repeat(np.array(keys), [len(ids) for ids in lists])
    return Lists(name, queries, np.concatenate(lists), np.concatenate(scores).astype(np.float64))
