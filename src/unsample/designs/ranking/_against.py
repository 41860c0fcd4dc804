"""Ranks against negatives that somebody published."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_choice
from unsample._progress import Progress
from unsample.designs.ranking._candidates import check_ids
from unsample.designs.ranking._results import SampledRanks
from unsample.designs.ranking._scores import Score, as_scores
from unsample.designs.ranking._ties import check_ties, rank_with_ties
from unsample.errors import InputError

__all__ = ["ranks_against"]

#: What to do with a negative that is the target itself.
_ON_TARGET = ("drop", "tie", "refuse")
#: Pairs scored at a time.
_BLOCK = 1 << 20


def ranks_against(
    score: Score,
    users: npt.ArrayLike,
    targets: npt.ArrayLike,
    negatives: npt.ArrayLike,
    *,
    on_target: str = "drop",
    ties: str = "random",
    rng: Seed = 0,
    progress: Progress | None = None,
) -> SampledRanks:
    """Rank each target among the negatives of its row.

    Published negatives may hold the target itself (for 156 users of ml-1m they do). ``on_target``
    says what happens then: ``"drop"`` leaves that negative out, so that the target is ranked
    among fewer (the usual evaluation script does so, since it keys scores by item; the result's
    ``sampled`` tells), ``"tie"`` keeps it as an item that ties with the target, and ``"refuse"``
    raises an error. A negative listed twice counts twice.

    Parameters
    ----------
    score
        Gives the scores of ``items`` (a matrix, one row for each user): a model's ``score``.
    users, targets
        One user and one target item for each row of ``negatives``.
    negatives
        Matrix of item ids, one row for each target.
    on_target, ties, rng, progress
        See above and `exact_ranks`.
    """
    rule, generator = check_ties(ties), as_rng(rng)
    check_choice("on_target", on_target, _ON_TARGET)
    user_ids = check_ids("users", users, None, of="users")
    target_ids = check_ids("targets", targets, None, of="items")
    matrix = _as_negatives(negatives, len(user_ids), len(target_ids))
    itself = matrix == target_ids[:, None]
    if on_target == "refuse" and itself.any():
        _refuse_targets(itself, user_ids)
    counted = ~itself if on_target == "drop" else np.ones_like(itself)
    better, equal = (np.empty(len(user_ids), dtype=np.int64) for _ in range(2))
    rows = max(1, _BLOCK // (matrix.shape[1] + 1))
    for start in range(0, len(user_ids), rows):
        part = slice(start, start + rows)
        asked = np.column_stack([target_ids[part], matrix[part]])
        scores = as_scores(score(user_ids[part], asked), asked.shape, user_ids[part])
        better[part] = ((scores[:, 1:] > scores[:, :1]) & counted[part]).sum(axis=1)
        equal[part] = ((scores[:, 1:] == scores[:, :1]) & counted[part]).sum(axis=1)
        if progress is not None:
            progress(min(start + rows, len(user_ids)), len(user_ids))
    return SampledRanks(rank_with_ties(better, equal, rule, generator), counted.sum(axis=1))


def _as_negatives(negatives: npt.ArrayLike, users: int, targets: int) -> IntArray:
    matrix = np.asarray(negatives)
    if matrix.ndim != 2 or not users == targets == len(matrix) or matrix.size == 0:
        raise InputError(
            "negatives must be a matrix with a row for each target and at least one column, got "
            f"shape {matrix.shape} for {targets} targets of {users} users"
        )
    ids = check_ids("negatives", matrix.reshape(-1), None, of="items")
    return ids.reshape(matrix.shape)


def _refuse_targets(itself: npt.NDArray[np.bool_], users: IntArray) -> None:
    rows = np.flatnonzero(itself.any(axis=1))
    raise InputError(
        f"negatives must not hold the target, got it for {len(rows)} users, the first user "
        f"{int(users[rows[0]])}; pass on_target='drop' to leave such negatives out"
    )
