"""Scores as functions of users, and the checks every block of scores passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.errors import InputError, ScoreError

__all__ = ["FactorScores", "Score", "ScoreAll", "ScoreArray", "score_block"]

ScoreArray: TypeAlias = npt.NDArray[np.floating[Any]]

#: Whole numbers up to this size are floats of their own.
_LARGEST_WHOLE = 2.0**53
#: Bytes of item factors gathered at a time.
_ROOM = 1 << 20


class ScoreAll(Protocol):
    """Scores of every item: one row for each user asked for, one column for each item."""

    def __call__(self, users: IntArray, /) -> npt.ArrayLike:
        """Return the scores of all items for these users."""


class Score(Protocol):
    """Scores of chosen items: row i of ``items`` is scored for ``users[i]``."""

    def __call__(self, users: IntArray, items: IntArray, /) -> npt.ArrayLike:
        """Return scores in the shape of ``items``."""


@dataclass(frozen=True, eq=False)
class FactorScores:
    """Scores that are products of user and item factors, plus an item's bias.

    Calling it gives the scores of all items; `score` those of chosen ones.

    >>> model = FactorScores(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.0, 10.0]))
    >>> model(np.array([1]))
    array([[ 2., 14.]])
    """

    user_factors: ScoreArray
    item_factors: ScoreArray
    item_bias: ScoreArray | None = None

    def __post_init__(self) -> None:
        for name in ("user_factors", "item_factors"):
            shape = np.shape(getattr(self, name))
            if len(shape) != 2:
                raise InputError(f"{name} must be a matrix, got an array of shape {shape}")
        users, items = self.user_factors.shape, self.item_factors.shape
        if users[1] != items[1]:
            raise InputError(
                "user_factors and item_factors must have as many columns as each other, got "
                f"{users[1]} and {items[1]}"
            )
        if self.item_bias is not None and np.shape(self.item_bias) != (items[0],):
            raise InputError(
                f"item_bias must be {items[0]} numbers, one an item, got shape "
                f"{np.shape(self.item_bias)}"
            )

    def __call__(self, users: IntArray, /) -> ScoreArray:
        """Return the scores of all items for these users."""
        left, right = self.folded
        return np.asarray(left[users] @ right.T)

    def score(self, users: IntArray, items: IntArray, /) -> ScoreArray:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        left, right = self.folded
        asked = np.asarray(items)
        table = asked.reshape(len(users), -1)
        if table.size and not 0 <= table.min() <= table.max() < len(right):
            raise InputError(f"items must be in 0..{len(right) - 1}, got others among them")
        kind = np.result_type(left, right)
        scores = np.empty(table.shape, dtype=kind)
        # Factors are gathered into a room that stays in the processor's cache.
        rows = max(1, _ROOM // max(1, table.shape[1] * right.shape[1] * right.itemsize))
        room = np.empty((min(rows, len(table)), table.shape[1], right.shape[1]), dtype=right.dtype)
        for start in range(0, len(table), rows):
            part = slice(start, start + rows)
            size = len(table[part])
            np.take(right, table[part], axis=0, out=room[:size], mode="clip")
            np.matmul(room[:size], left[users[part], :, None], out=scores[part, :, None])
        return scores.reshape(asked.shape)

    @cached_property
    def folded(self) -> tuple[ScoreArray, ScoreArray]:
        """Return the factors with the bias as one more: a product then adds it without a pass."""
        if self.item_bias is None:
            return self.user_factors, self.item_factors
        ones = np.ones((len(self.user_factors), 1), dtype=self.user_factors.dtype)
        bias = self.item_bias[:, None].astype(self.item_factors.dtype)
        return np.hstack([self.user_factors, ones]), np.hstack([self.item_factors, bias])


def score_block(score_all: ScoreAll, users: IntArray, items: int) -> ScoreArray:
    """Score all items for these users and refuse what cannot be ranked."""
    distinct, place = np.unique(users, return_inverse=True)
    repeated = len(distinct) < len(users)
    asked = distinct if repeated else users
    scores = as_scores(score_all(asked), (len(asked), items), asked)
    return scores[place] if repeated else scores


def as_scores(
    values: npt.ArrayLike,
    shape: tuple[int, ...],
    users: IntArray,
    *,
    items: IntArray | None = None,
) -> ScoreArray:
    """Return scores as floats of the right shape without NaN (infinities are fine).

    ``items`` are the items of each row where they are not all items in order.
    """
    scores = np.asarray(values)
    if scores.shape != shape:
        raise ScoreError(
            f"scores must be an array of shape {shape} for {len(users)} users, got "
            f"{scores.shape}; row i holds the scores of the i-th user asked for"
        )
    if not np.issubdtype(scores.dtype, np.floating):
        scores = _to_float(scores)
    # A product with zeros is one quick pass, and is zero unless something is not finite.
    with np.errstate(invalid="ignore"):
        suspicious = np.isnan(scores @ np.zeros(shape[-1], dtype=scores.dtype))
    if suspicious.any():
        _refuse_nan(scores, users, items)
    return scores


def _to_float(scores: npt.NDArray[Any]) -> ScoreArray:
    if not (np.issubdtype(scores.dtype, np.integer) or scores.dtype == np.bool_):
        raise ScoreError(f"scores must be real numbers, got values of type {scores.dtype}")
    floats = scores.astype(np.float64)
    if scores.size and np.abs(floats).max() >= _LARGEST_WHOLE:
        raise ScoreError(
            f"scores that are whole numbers must be below 2^53 in size, got "
            f"{floats[np.unravel_index(np.abs(floats).argmax(), floats.shape)]:.17g}; larger ones "
            "would tie with their neighbours as floats: subtract a constant, or give floats"
        )
    return floats


def refuse_infinite_targets(own: ScoreArray, users: IntArray, targets: IntArray) -> None:
    """Refuse targets that are scored as if they must not be recommended, or without bound."""
    bad = np.isinf(own)
    if bad.any():
        where = int(np.argmax(bad))
        raise ScoreError(
            f"scores of targets must be finite, got {int(bad.sum())} infinite ones among "
            f"{len(own)}, the first {own[where]} for user {int(users[where])} and item "
            f"{int(targets[where])}; an item masked by -inf cannot be a target (other items may "
            "be infinite: they rank above or below all finite ones)"
        )


def _refuse_nan(scores: ScoreArray, users: IntArray, items: IntArray | None) -> None:
    bad = np.isnan(scores)
    if not bad.any():
        return
    row, column = (int(place) for place in np.argwhere(bad)[0][[0, -1]])
    item = column if items is None else int(items[row, column])
    raise ScoreError(
        f"scores must not be NaN, got {int(bad.sum())} NaN in a block of {len(users)} users, the "
        f"first for user {int(users[row])} and item {item}; a model that diverged gives such "
        "scores, and -inf may stand for an item that must not be recommended"
    )
