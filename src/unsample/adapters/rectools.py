"""Tables, datasets and models of RecTools."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed
from unsample.adapters._lists import ListedItems, rank_in_lists
from unsample.adapters._names import numbers_of
from unsample.adapters._pairs import distinct_pairs, seen_matrix
from unsample.adapters._protocol import ModelScores, Task
from unsample.designs.ranking import FactorScores
from unsample.errors import InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]

_USER, _ITEM, _SCORE, _RANK = "user_id", "item_id", "score", "rank"


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
    listed_users, listed_items = _columns("reco", reco, (_USER, _ITEM))
    by = _SCORE if _SCORE in reco.columns else _RANK
    (value,) = _columns("reco", reco, (by,))
    score = value.astype(np.float64) * (1.0 if by == _SCORE else -1.0)
    users, wanted = _columns("interactions", interactions, (_USER, _ITEM))
    return rank_in_lists(
        ListedItems("reco", listed_users, listed_items, score),
        ListedItems("interactions", users, wanted, np.zeros(len(users))),
        items=items,
        sampled=sampled,
        ties=ties,
        rng=rng,
        each=each,
    )


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
    user_ids, item_ids = (
        np.asarray(ids.external_ids) for ids in (dataset.user_id_map, dataset.item_id_map)
    )
    names = _columns("interactions", interactions, (_USER, _ITEM))
    users = numbers_of(names[0], user_ids, what="user", here="interactions", there="dataset")
    wanted = numbers_of(names[1], item_ids, what="item", here="interactions", there="dataset")
    shape = len(user_ids), len(item_ids)
    return Task(
        scorer=_scores(model, dataset, user_ids, item_ids),
        targets=distinct_pairs(users, wanted, size=len(item_ids)),
        items=len(item_ids),
        exclude=seen_matrix(
            *dataset.get_user_item_matrix(include_weights=False).nonzero(), shape=shape
        ),
        user_ids=user_ids,
        item_ids=item_ids,
    )


def _scores(
    model: Any, dataset: Any, user_ids: npt.NDArray[Any], item_ids: npt.NDArray[Any]
) -> ModelScores | FactorScores:
    distance = getattr(getattr(model, "u2i_dist", None), "name", "")
    vectors = getattr(model, "get_vectors", None)
    # Vectors that depend on a dataset (LightFM's) are left to the model.
    if distance == "DOT" and callable(vectors) and not inspect.signature(vectors).parameters:
        factors = FactorScores(*(np.asarray(matrix) for matrix in vectors()))
        if (len(factors.user_factors), len(factors.item_factors)) == (len(user_ids), len(item_ids)):
            return factors
    return ModelScores(_Recommended(model, dataset, user_ids, item_ids), len(item_ids))


@dataclass(frozen=True, eq=False)
class _Recommended:
    """Scores from recommendations of all items; what is not recommended has no score."""

    model: Any
    dataset: Any
    user_ids: npt.NDArray[Any]
    item_ids: npt.NDArray[Any]

    def __call__(self, users: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all items for these users."""
        distinct, place = np.unique(users, return_inverse=True)
        table = self.model.recommend(
            users=self.user_ids[distinct],
            dataset=self.dataset,
            k=len(self.item_ids),
            filter_viewed=False,
            add_rank_col=False,
        )
        names, items, values = _columns("recommendations", table, (_USER, _ITEM, _SCORE))
        rows = numbers_of(
            names, self.user_ids[distinct], what="user", here="recommendations", there="dataset"
        )
        columns = numbers_of(
            items, self.item_ids, what="item", here="recommendations", there="dataset"
        )
        scores = np.full((len(distinct), len(self.item_ids)), np.nan)
        scores[rows, columns] = values
        return scores[place]


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
