"""Item lists and pipelines of LensKit.

LensKit scores the candidates it is given; lists that hold a user's targets and sampled items make
a sampled evaluation. Items that a pipeline cannot score (NaN) come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed
from unsample.adapters._lists import Counting, Lists, numbers_of
from unsample.adapters._tasks import ModelScores, Task, require
from unsample.errors import InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]

_UNSCORED = np.finfo(np.float64).min


def targets(
    scored: Any,
    test: Any,
    *,
    items: int | Mapping[Any, int],
    sampled: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    each: str = "user",
) -> Targets:
    """Rank test items among the sampled items of each user's scored list.

    Parameters
    ----------
    scored
        An `ItemListCollection` of scored lists that hold test and sampled items, such as
        ``lenskit.batch.score(pipeline, candidates)`` returns.
    test
        An `ItemListCollection` of the test items, with the same keys.
    items
        Candidates in a full ranking of a user, all test items included: a number, or one for each
        user.
    sampled, ties, rng, each
        As in `unsample.adapters.trec.targets`.
    """
    counting = Counting(ties, rng, each)
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
    if not callable(getattr(pipeline, "node", None)):
        raise InputError(f"pipeline must be a pipeline of lenskit, got {type(pipeline).__name__}")
    if not callable(getattr(train, "interaction_matrix", None)):
        raise InputError(f"train must be a dataset of lenskit, got {type(train).__name__}")
    user_ids, item_ids = (np.asarray(ids.ids()) for ids in (train.users, train.items))
    held_out = _read("test", test)
    users = numbers_of(held_out.query, user_ids, what="user", here="test", there="train")
    chosen = numbers_of(held_out.item, item_ids, what="item", here="test", there="train")
    seen = train.interaction_matrix(format="scipy", layout="coo")
    scores = _PipelineScores(pipeline, component, train.items, user_ids)
    return Task.of_pairs(
        ModelScores(scores, len(item_ids), scores),
        (users, chosen),
        (seen.row, seen.col),
        user_ids=user_ids,
        item_ids=item_ids,
    )


@dataclass(frozen=True, eq=False)
class _PipelineScores:
    """Scores of a pipeline, user by user as LensKit gives them."""

    pipeline: Any
    component: str
    vocabulary: Any
    user_ids: npt.NDArray[Any]

    def __call__(self, users: IntArray, items: IntArray | None = None, /) -> npt.NDArray[Any]:
        """Return the scores of these items, row by row, or of all items."""
        if items is None:
            everything = np.arange(len(self.vocabulary))
            return np.stack([self._of_user(user, everything) for user in users.tolist()])
        rows = []
        for user, asked in zip(users.tolist(), items, strict=True):
            # A list holds an item once, and a sample with replacement may hold it twice.
            distinct, place = np.unique(asked, return_inverse=True)
            rows.append(self._of_user(user, distinct)[place])
        return np.stack(rows)

    def _of_user(self, user: int, numbers: IntArray) -> npt.NDArray[Any]:
        score = require("lenskit", "lenskit").score
        item_list = require("lenskit", "lenskit.data").ItemList
        asked = item_list(item_nums=numbers.astype(np.int32), vocabulary=self.vocabulary)
        found = score(self.pipeline, self.user_ids[user].item(), asked, component=self.component)
        return np.asarray(found.scores(), dtype=np.float64)


def _read(name: str, collection: Any, *, with_scores: bool = False) -> Lists:
    if not hasattr(collection, "key_fields") or not hasattr(collection, "lists"):
        raise InputError(
            f"{name} must be an ItemListCollection of lenskit, got {type(collection).__name__}"
        )
    keys, lists = [], []
    for key, items in collection:
        keys.append(key[0] if len(key) == 1 else "/".join(map(str, key)))
        lists.append(items)
        if with_scores and items.scores() is None:
            raise InputError(
                f"{name} must hold lists with scores, got none for {keys[-1]!s}; keep what "
                "lenskit.batch.score returns"
            )
    if not lists:
        raise InputError(f"{name} must hold at least one item list, got none")
    ids = np.concatenate([np.asarray(items.ids()) for items in lists])
    scores = np.zeros(len(ids))
    if with_scores:
        given = np.concatenate([np.asarray(items.scores(), dtype=np.float64) for items in lists])
        scores = np.where(np.isnan(given), _UNSCORED, given)
    return Lists(name, np.repeat(np.array(keys), [len(items) for items in lists]), ids, scores)
