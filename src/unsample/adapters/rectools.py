"""Tables, datasets and models of RecTools."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed
from unsample.adapters._lists import Counting, Lists, numbers_of
from unsample.adapters._tasks import ModelScores, Task
from unsample.designs import FactorScores
from unsample.errors import InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]

_PAIR = ("user_id", "item_id")


def targets(
    reco: Any,
    interactions: Any,
    *,
    items: int | Mapping[Any, int],
    sampled: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    each: str = "user",
) -> Targets:
    """Rank test interactions in a table that holds all sampled items of each user.

    Parameters
    ----------
    reco
        A recommendations table (``Columns.Recommendations``: user_id, item_id, score and/or rank)
        of each user's targets and sampled items; without a score, the rank decides.
    interactions
        A table of test interactions, with user_id and item_id.
    items, sampled, ties, rng, each
        As in `unsample.adapters.trec.targets`.
    """
    counting = Counting(ties, rng, each)
    users, listed = _columns("reco", reco, _PAIR)
    by, sign = ("score", 1.0) if "score" in reco.columns else ("rank", -1.0)
    (value,) = _columns("reco", reco, (by,))
    lists = Lists("reco", users, listed, sign * value.astype(np.float64))
    users, wanted = _columns("interactions", interactions, _PAIR)
    relevant = Lists("interactions", users, wanted, np.zeros(len(users)))
    return lists.rank(relevant, items=items, sampled=sampled, counting=counting)


def task(model: Any, dataset: Any, interactions: Any) -> Task:
    """Make a task of a fitted model.

    Parameters
    ----------
    model
        A fitted model of `rectools.models`. ALS, BPR and PureSVD are asked for their vectors;
        others for the scores of all items.
    dataset
        The `rectools.dataset.Dataset` it was fitted on: its items are the catalogue, and what a
        user has there is no candidate.
    interactions
        A table of test interactions, with user_id and item_id.
    """
    if not callable(getattr(model, "recommend", None)):
        raise InputError(f"model must be a model of rectools, got {type(model).__name__}")
    if not hasattr(dataset, "user_id_map"):
        raise InputError(f"dataset must be a Dataset of rectools, got {type(dataset).__name__}")
    ids = _Ids(*(np.asarray(m.external_ids) for m in (dataset.user_id_map, dataset.item_id_map)))
    held_out = ids.numbers("interactions", *_columns("interactions", interactions, _PAIR))
    return Task.of_pairs(
        _scores(model, dataset, ids),
        held_out,
        dataset.get_user_item_matrix(include_weights=False).nonzero(),
        user_ids=ids.users,
        item_ids=ids.items,
    )


@dataclass(frozen=True, eq=False)
class _Ids:
    """The names of a dataset's users and items, in the order of their numbers."""

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]

    def numbers(
        self, table: str, users: npt.NDArray[Any], items: npt.NDArray[Any]
    ) -> tuple[IntArray, IntArray]:
        """Return users and items of a table by number."""
        return (
            numbers_of(users, self.users, what="user", here=table, there="dataset"),
            numbers_of(items, self.items, what="item", here=table, there="dataset"),
        )


def _scores(model: Any, dataset: Any, ids: _Ids) -> ModelScores | FactorScores:
    distance = getattr(getattr(model, "u2i_dist", None), "name", "")
    vectors = getattr(model, "get_vectors", None)
    # Vectors that depend on a dataset (LightFM's) are left to the model.
    if distance == "DOT" and callable(vectors) and not inspect.signature(vectors).parameters:
        left, right = map(np.asarray, vectors())
        if (len(left), len(right)) == (len(ids.users), len(ids.items)):
            return FactorScores(left, right)

    def recommended(asked: IntArray, /) -> npt.NDArray[Any]:
        """Read the scores of all items off recommendations; the others have none."""
        distinct, place = np.unique(asked, return_inverse=True)
        table = model.recommend(
            users=ids.users[distinct],
            dataset=dataset,
            k=len(ids.items),
            filter_viewed=False,
            add_rank_col=False,
        )
        *names, values = _columns("recommendations", table, (*_PAIR, "score"))
        users, items = ids.numbers("recommendations", *names)
        scores = np.full((len(distinct), len(ids.items)), np.nan)
        scores[np.searchsorted(distinct, users), items] = values
        return scores[place]

    return ModelScores(recommended, len(ids.items))


def _columns(name: str, frame: Any, wanted: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    if not hasattr(frame, "columns"):
        raise InputError(f"{name} must be a pandas frame, got {type(frame).__name__}")
    missing = [column for column in wanted if column not in frame.columns]
    if missing:
        raise InputError(
            f"{name} must have the columns {', '.join(wanted)}, got "
            f"{', '.join(map(str, frame.columns))}"
        )
    return [frame[column].to_numpy() for column in wanted]
