"""Comparing scores: of targets with items of their own, in lists, and with a shared pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, Seed, as_rng, check_unmasked
from unsample.counts._shared_items import ItemCounts, numbered
from unsample.counts._targets import Targets
from unsample.counts._ties import check_ties, rank_with_ties
from unsample.counts._users import number_users, relevant_and_position
from unsample.errors import ScoreError

#: Outcomes that are kept in memory at a time.
_ROOM = 1 << 24


def sampled_ranks(
    target_scores: Any, negative_scores: Any, ties: str = "random", rng: Seed = 0
) -> IntArray:
    """Return the rank of each target, from 1, among the items that were sampled for it.

    `unsample.estimate` takes the ranks; any library gives the scores. Where targets were sampled
    different numbers of items, fill the rows up with -inf, and give ``estimate`` the true numbers
    as ``sampled``.

    Parameters
    ----------
    target_scores
        The score of each target: M numbers (numpy, torch or a list). Infinite scores are allowed,
        NaN is refused.
    negative_scores
        The scores of the items sampled for each target: a matrix of M rows and n columns.
    ties
        Where items score as the target does: ``"random"`` puts it anywhere among them,
        ``"optimistic"`` before and ``"pessimistic"`` after them.
    rng
        Seed of the random rule.

    Returns
    -------
    IntArray
        The rank of each target, from 1 to n + 1.

    Raises
    ------
    ScoreError
        If a score is no number, or the shapes do not fit.
    InputError
        If there is no such rule for ties.

    >>> sampled_ranks([0.9, 0.2], [[0.5, 0.1, 1.0], [0.3, 0.1, 0.4]])
    array([2, 3])
    """
    rule = check_ties(ties, whole=True)
    own = _as_numbers("target_scores", target_scores)
    others = _as_numbers("negative_scores", negative_scores)
    if own.ndim != 1 or not own.size:
        raise ScoreError(
            f"target_scores must be a list of one score for each target, got shape {own.shape}"
        )
    if others.ndim != 2 or len(others) != len(own) or not others.size:
        raise ScoreError(
            f"negative_scores must be a matrix with a row for each of {len(own)} targets, got "
            f"shape {others.shape}; where all targets share their negatives, give "
            "unsample.estimate the scored rows with negatives=unsample.Negatives(shared=True)"
        )
    better = (others > own[:, None]).sum(axis=1)
    tied = (others == own[:, None]).sum(axis=1)
    return rank_with_ties(better, tied, ties=rule, rng=rng).astype(np.int64)


def shared_targets(
    own: npt.ArrayLike,
    others: npt.ArrayLike,
    *,
    items: int,
    pool: npt.ArrayLike | None = None,
    users: npt.ArrayLike | None = None,
    filtered: bool = True,
    replacement: bool = False,
    ties: str = "random",
    rng: Seed = 0,
) -> Targets:
    """Rank targets against one pool of items, and keep which item beats which target.

    Parameters
    ----------
    own
        The score of each target.
    others
        The scores of the pool: a row for each target, one column for each item; or one score for
        each item, where it does not depend on the target (as in OGB).
    items
        The number of candidates of a full ranking, the target included.
    pool
        Names of the items, by which models on the same pool are compared; by default their order.
    users, filtered
        As in `unsample.estimate`. By default other relevant items of a user do not compete.
    replacement
        Whether an item may be in the pool twice.
    ties, rng
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first.

    Returns
    -------
    Targets
        The ranks, and which item beats which target.

    Raises
    ------
    ScoreError
        If scores are not numbers, or their shapes do not fit.

    >>> targets = shared_targets([2.0, 0.5], [1.0, 3.0, 0.0], items=100)
    >>> targets.ranks.tolist(), targets.counts.shared.known
    ([2, 3], True)
    """
    rule = check_ties(ties, whole=True)
    target_scores = _as_numbers("own", own)
    pool_scores = _as_numbers("others", others)
    if not target_scores.size or not pool_scores.size:
        raise ScoreError(
            f"own and others must hold scores, got {target_scores.size} and {pool_scores.size}"
        )
    if target_scores.ndim != 1:
        raise ScoreError(
            f"own must be a list of one score for each target, got shape {target_scores.shape}"
        )
    size = len(target_scores)
    sampled = pool_scores.shape[-1] if pool_scores.ndim else 0
    if pool_scores.shape not in ((sampled,), (size, sampled)):
        raise ScoreError(
            "others must be one score for each item, or a row of them for each target, got shape "
            f"{pool_scores.shape} for {size} targets"
        )
    generator = as_rng(rng)
    names = np.arange(sampled) if pool is None else numbered(pool)
    user = np.arange(size) if users is None or filtered else number_users(users, size)
    ones = np.ones(size, dtype=np.int64)
    relevant, position = relevant_and_position(user, ones, positions=None, full=False)
    ranks = np.empty(size, dtype=np.int64)
    parts = []
    step = max(1, _ROOM // sampled)
    for start in range(0, size, step):
        rows = slice(start, start + step)
        of_rows = target_scores[rows]
        competing = pool_scores if pool_scores.ndim == 1 else pool_scores[rows]
        competing = np.broadcast_to(competing, (len(of_rows), len(names)))
        beats = _beats_of(of_rows, competing, ties=rule, rng=generator)
        ranks[rows] = 1 + beats.sum(axis=1)
        parts.append(
            ItemCounts.from_outcomes(
                beats, items=names, relevant=relevant[rows], position=position[rows]
            )
        )
    return Targets(
        ranks=ranks,
        items=items,
        sampled=len(names),
        users=users,
        replacement=replacement,
        filtered=filtered,
        shared=ItemCounts.merge(parts),
    )


def _beats_of(
    own: FloatArray, others: FloatArray, *, ties: str, rng: np.random.Generator
) -> BoolArray:
    """Return which item beats which target (targets x items), ties being broken by the rule.

    By the random rule a target and its ties get random numbers, whose order decides. So the
    target is equally likely at each place among its ties.
    """
    own_column = own[:, None]
    tied = others == own_column
    if ties == "optimistic":
        tied[:] = False
    elif ties == "random" and tied.any():
        tied &= rng.random(others.shape) < rng.random((len(own), 1))
    return np.asarray((others > own_column) | tied)


def _as_numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """Return scores in their own type, from a tensor on any device too."""
    for step in ("detach", "cpu"):
        values = getattr(values, step)() if hasattr(values, step) else values
    if str(getattr(values, "dtype", "")) == "torch.bfloat16":  # numpy has no such type
        values = values.float()
    check_unmasked(name, values, error=ScoreError)
    try:
        scores = np.asarray(values)
    except (TypeError, ValueError) as problem:
        raise ScoreError(
            f"{name} must be an array of numbers with rows of one length, got "
            f"{type(values).__name__}: {problem}"
        ) from problem
    if not (np.issubdtype(scores.dtype, np.integer) or np.issubdtype(scores.dtype, np.floating)):
        raise ScoreError(f"{name} must be real numbers, got values of type {scores.dtype}")
    unknown = np.isnan(scores)
    if unknown.any():
        raise ScoreError(
            f"{name} must not be NaN, got {int(unknown.sum())} of {scores.size}, the first in row "
            f"{int(np.argwhere(unknown)[0][0])}; -inf may stand for an item without a score"
        )
    return scores
