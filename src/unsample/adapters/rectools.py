"""Tables, datasets and models of RecTools."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed
from unsample.adapters._lists import Counting, Lists, numbered
from unsample.adapters._tasks import ModelScores, Pairs, Task, check_object
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
    filtered: bool = False,
) -> Targets:
    """Rank test interactions in a table that holds all sampled items of each user.

    Parameters
    ----------
    reco
        A recommendations table (``Columns.Recommendations``: user_id, item_id, score and/or rank)
        of each user's targets and sampled items; without a score, the rank decides.
    interactions
        A table of test interactions, with user_id and item_id.
    items, sampled, ties, rng, filtered
        As in `unsample.adapters.trec.targets`.
    """
    counting = Counting(ties, rng, filtered)
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
        user has there is left out of the candidates.
    interactions
        A table of test interactions, with user_id and item_id.
    """
    check_object("model", model, "a model of rectools", ["recommend"])
    check_object("dataset", dataset, "a Dataset of rectools", ["user_id_map", "item_id_map"])
    known = dataset.user_id_map, dataset.item_id_map
    ids = np.asarray(known[0].external_ids), np.asarray(known[1].external_ids)
    users, items = _columns("interactions", interactions, _PAIR)
    return Task.of_pairs(
        _scores(model, dataset, ids),
        numbered((users, items), ids, here="interactions", there="dataset"),
        dataset.get_user_item_matrix(include_weights=False).nonzero(),
        ids,
    )


def _scores(model: Any, dataset: Any, ids: Pairs) -> ModelScores | FactorScores:
    user_ids, item_ids = ids
    distance = getattr(getattr(model, "u2i_dist", None), "name", "")
    vectors = getattr(model, "get_vectors", None)
    # Vectors that depend on a dataset (LightFM's) are left to the model.
    if distance == "DOT" and callable(vectors) and not inspect.signature(vectors).parameters:
        left, right = map(np.asarray, vectors())
        if (len(left), len(right)) == (len(user_ids), len(item_ids)):
            return FactorScores(left, right)

    def recommended(asked: IntArray, /) -> npt.NDArray[Any]:
        """Read the scores of all items off recommendations; the others have none."""
        distinct, place = np.unique(asked, return_inverse=True)
        table = model.recommend(
            users=user_ids[distinct],
            dataset=dataset,
            k=len(item_ids),
            filter_viewed=False,
            add_rank_col=False,
        )
        names = table["user_id"].to_numpy(), table["item_id"].to_numpy()
        users, items = numbered(names, ids, here="recommendations", there="dataset")
        scores = np.full((len(distinct), len(item_ids)), np.nan)
        scores[np.searchsorted(distinct, users), items] = table["score"]
        return scores[place]

    return ModelScores(recommended, len(item_ids))


def _columns(name: str, frame: Any, wanted: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    check_object(name, frame, "a pandas frame", ["columns"])
    missing = [column for column in wanted if column not in frame.columns]
    if missing:
        raise InputError(
            f"{name} must have the columns {', '.join(wanted)}, got "
            f"{', '.join(map(str, frame.columns))}"
        )
    return [frame[column].to_numpy() for column in wanted]
