"""Link prediction of OGB and TGB: scores of true edges and of sampled ones.

Their evaluators take ``y_pred_pos``, a score for each true edge, and ``y_pred_neg``: a row of
scores for each true edge (own negatives), or one array (negatives that all share). `evaluate` and
`evaluate_tgb` print what they print; `targets` leads on to the metrics among all items.

>>> own, others = np.array([0.9, 0.2]), np.array([[0.5, 0.1, 0.9], [0.3, 0.1, 0.4]])
>>> evaluate(own, others)["mrr_list"].round(3).tolist()  # one tie: rank 1.5
[0.667, 0.333]
>>> evaluate_tgb(own, others, k=2)
{'hits@2': 0.5, 'mrr': 0.5}
>>> targets(own, others, items=1000).counts
RankCounts(2 targets, 2 cells, items=1000, sampled=3, with replacement)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_integer
from unsample.adapters._tasks import as_array
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import Targets, check_ties, rank_with_ties, shared_targets

__all__ = ["evaluate", "evaluate_tgb", "targets"]

#: The K of OGB's evaluator where each edge has negatives of its own.
_CUTOFFS = (1, 3, 10)
#: Pairs of true and shared edges of which it is kept which beats which.
_MOST_PAIRS = 1 << 28


def evaluate(y_pred_pos: Any, y_pred_neg: Any, *, k: int | None = None) -> dict[str, Any]:
    """Return what ``ogb.linkproppred.Evaluator`` does.

    With a row of negatives for each edge: ``hits@1_list``, ``hits@3_list``, ``hits@10_list`` and
    ``mrr_list``, where ties have the mean rank. With shared negatives: ``hits@K`` for ``k``, the
    share of true edges above the K-th best negative.
    """
    own, others = _scores(y_pred_pos, y_pred_neg)
    if others.ndim == 2:
        ranks = _mean_ranks(own, others)
        hits = {f"hits@{cut}_list": (ranks <= cut).astype(np.float64) for cut in _CUTOFFS}
        return {**hits, "mrr_list": 1.0 / ranks}
    cut = check_integer("k", k, minimum=1, hint="shared negatives need the K of hits@K")
    if len(others) < cut:
        return {f"hits@{cut}": 1.0}
    limit = np.partition(others, len(others) - cut)[len(others) - cut]
    return {f"hits@{cut}": float((own > limit).mean())}


def evaluate_tgb(y_pred_pos: Any, y_pred_neg: Any, *, k: int = 10) -> dict[str, float]:
    """Return ``mrr`` and ``hits@K`` as TGB's evaluator does, of a row of negatives each."""
    own, others = _scores(y_pred_pos, y_pred_neg)
    cut = check_integer("k", k, minimum=1)
    ranks = _mean_ranks(own, np.broadcast_to(others, (len(own), others.shape[-1])))
    return {f"hits@{cut}": float((ranks <= cut).mean()), "mrr": float((1.0 / ranks).mean())}


def targets(
    y_pred_pos: Any,
    y_pred_neg: Any,
    *,
    items: npt.ArrayLike,
    users: npt.ArrayLike | None = None,
    sampler: str = "uniform",
    replacement: bool = True,
    ties: str = "random",
    rng: Seed = 0,
) -> Targets:
    """Take the ranks of true edges among negatives that were drawn uniformly.

    Parameters
    ----------
    y_pred_pos, y_pred_neg
        Arrays of numpy or torch, as for the evaluators.
    items
        How many candidates there are, the true one included: one number, or one for each edge.
        Of shared negatives, which are whole edges, the number of pairs that are no edge, and one.
    users
        The source of each edge, where sources repeat: other true edges were no negatives, so that
        metrics are those of edges, and errors count sources.
    sampler
        ``"uniform"``. Others are refused: TGB draws up to half of its negatives from the history of
        the source (``"historical"``); give `table` to `unsample.estimate` there.
    replacement
        Whether a negative may come twice.
    ties, rng
        As in `unsample.adapters.trec.targets`. A rank is a whole one here: placed at random among
        its ties, it follows the law that the estimate knows.
    """
    rule = check_ties(ties, whole=True)
    own, others = _scores(y_pred_pos, y_pred_neg)
    _check_sampler(sampler)
    if others.ndim == 2:
        ranks = rank_with_ties(*_compared(own, others), rule, as_rng(rng)).astype(np.int64)
        sampled = others.shape[1]
        return Targets(
            ranks, items, sampled, users=users, replacement=replacement, filtered=True
        )  # fmt: skip
    if len(own) * len(others) <= _MOST_PAIRS and np.ndim(items) == 0:
        size = check_integer("items", items, minimum=2, error=DesignError)
        return shared_targets(
            own, others, items=size, users=users, filtered=True,
            replacement=replacement, ties=rule, rng=rng,
        )  # fmt: skip
    ordered = np.sort(others)
    below, up_to = (np.searchsorted(ordered, own, side=side) for side in ("left", "right"))
    ranks = rank_with_ties(len(others) - up_to, up_to - below, rule, as_rng(rng)).astype(np.int64)
    return Targets(
        ranks, items, len(others), users=users, replacement=replacement, filtered=True, pools=0
    )


def _check_sampler(sampler: str) -> None:
    if sampler == "uniform":
        return
    history = (
        "up to half of them come from the history of the source, so that their ranks say nothing "
        "of the other items"
        if sampler == "historical"
        else "ranks among other negatives do not tell ranks among all items"
    )
    raise DesignError(
        f"sampler must be 'uniform', got {sampler!r}: {history}; draw uniformly, or evaluate "
        "the model with unsample.evaluate"
    )


def _mean_ranks(own: FloatArray, others: FloatArray) -> FloatArray:
    better, tied = _compared(own, others)
    return np.asarray(1.0 + better + tied / 2.0)


def _compared(own: FloatArray, others: FloatArray) -> tuple[IntArray, IntArray]:
    better = (others > own[:, None]).sum(axis=1)
    return better, (others == own[:, None]).sum(axis=1)


def _scores(y_pred_pos: Any, y_pred_neg: Any) -> tuple[FloatArray, FloatArray]:
    """Return scores as arrays, a score for each true edge and those of its negatives."""
    own, others = as_array(y_pred_pos), as_array(y_pred_neg)
    if own.ndim != 1 or not len(own):
        raise InputError(f"y_pred_pos must be a score for each edge, got shape {own.shape}")
    if (
        others.ndim not in (1, 2)
        or not others.size
        or (others.ndim == 2 and len(others) != len(own))
    ):
        raise InputError(
            f"y_pred_neg must be a row of scores for each of the {len(own)} edges, or one array "
            f"for all of them, got shape {others.shape}"
        )
    for name, values in (("y_pred_pos", own), ("y_pred_neg", others)):
        if not np.issubdtype(values.dtype, np.number) or np.isnan(values).any():
            raise ScoreError(f"{name} must hold numbers that are not NaN")
    # In one type: a comparison must not depend on how scores were rounded.
    kind = np.result_type(own, others)
    return own.astype(kind), others.astype(kind)
