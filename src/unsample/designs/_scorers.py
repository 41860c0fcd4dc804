"""One interface for everything that scores items, and the checks of scores."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs._item_item import ItemItemScores
from unsample.errors import InputError, ScoreError

ScoreArray: TypeAlias = npt.NDArray[np.floating[Any]]
#: Scores of all items: one row for each user, one column for each item.
ScoreAll: TypeAlias = Callable[[IntArray], npt.ArrayLike]
#: Scores of chosen items, in their shape: row i of the items is scored for ``users[i]``.
Score: TypeAlias = Callable[[IntArray, IntArray], npt.ArrayLike]

_KINDS = (
    "a callable scores(users, items), a pair (user factors, item factors), a FactorScores, an "
    "ItemItemScores, a torch.nn.Module, a model of implicit, a recommender with score and "
    "score_all, or a Scorer"
)
#: Below this size, different whole numbers are different floats.
_LARGEST_WHOLE = 2.0**53
#: Bytes of item factors gathered at a time.
_ROOM = 1 << 20


@dataclass(frozen=True, eq=False)
class FactorScores:
    """Scores that are products of user and item factors, plus a bias of each item.

    A call returns the scores of all items; `score` those of chosen ones.

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
                "user_factors and item_factors must have the same number of columns, got "
                f"{users[1]} and {items[1]}"
            )
        if self.item_bias is not None and np.shape(self.item_bias) != (items[0],):
            raise InputError(
                f"item_bias must be {items[0]} numbers, one for each item, got shape "
                f"{np.shape(self.item_bias)}"
            )

    def __call__(self, users: IntArray, /) -> ScoreArray:
        left, right = self.folded
        return np.asarray(left[users] @ right.T)

    def score(self, users: IntArray, items: IntArray, /) -> ScoreArray:
        """Return scores in the shape of ``items``, row i for ``users[i]``.

        The score of a pair does not depend on the other pairs of the call, to the last bit. So
        items with equal factors always tie. (Matrix products do not promise that.)
        """
        left, right = self.folded
        asked = np.asarray(items)
        table = asked.reshape(len(users), -1)
        if table.size and not 0 <= table.min() <= table.max() < len(right):
            raise InputError(f"items must be in 0..{len(right) - 1}, got ids outside this range")
        scores = np.empty(table.shape, dtype=np.result_type(left, right))
        # Factors are copied into an array that stays in the cache.
        rows = max(1, _ROOM // max(1, table.shape[1] * right.shape[1] * right.itemsize))
        room = np.empty((min(rows, len(table)), table.shape[1], right.shape[1]), dtype=right.dtype)
        for start in range(0, len(table), rows):
            part = slice(start, start + rows)
            size = len(table[part])
            np.take(right, table[part], axis=0, out=room[:size], mode="clip")
            np.einsum("rcd,rd->rc", room[:size], left[users[part]], out=scores[part])
        return scores.reshape(asked.shape)

    @cached_property
    def folded(self) -> tuple[ScoreArray, ScoreArray]:
        """Return the factors with the bias as a further factor, so that a product adds it."""
        if self.item_bias is None:
            return self.user_factors, self.item_factors
        ones = np.ones((len(self.user_factors), 1), dtype=self.user_factors.dtype)
        bias = self.item_bias[:, None].astype(self.item_factors.dtype)
        return np.hstack([self.user_factors, ones]), np.hstack([self.item_factors, bias])


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores of chosen items, of all items, or both; one of them is enough.

    >>> table = np.array([[0.9, 0.1, 0.5]])
    >>> Scorer(score_all=table.__getitem__).chosen(np.array([0]), np.array([[2, 0]]))
    array([[0.5, 0.9]])
    """

    score: Score | None = None
    score_all: ScoreAll | None = None
    factors: FactorScores | None = None
    item_item: ItemItemScores | None = None

    def __post_init__(self) -> None:
        if self.score is None and self.score_all is None:
            raise InputError("a Scorer must have score or score_all, got neither")

    def chosen(self, users: IntArray, items: IntArray, /) -> npt.ArrayLike:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        if self.score is not None:
            return self.score(users, items)
        assert self.score_all is not None
        return np.take_along_axis(np.asarray(self.score_all(users)), items, axis=1)

    def rows(self, users: IntArray, items: int) -> ScoreArray:
        """Return checked scores of all items; each user is asked for once."""
        distinct, place = np.unique(users, return_inverse=True)
        repeated = len(distinct) < len(users)
        asked = distinct if repeated else users
        if self.score_all is not None:
            found = self.score_all(asked)
        else:
            everything = np.broadcast_to(np.arange(items), (len(asked), items))
            found = self.chosen(asked, everything)
        scores = as_scores(found, (len(asked), items), asked)
        return scores[place] if repeated else scores


def as_scorer(scorer: Any, items: int) -> Scorer:
    """Return the scorer that was given, as a `Scorer`; it must score this number of ``items``."""
    found = scorer if isinstance(scorer, Scorer) else _recognise(scorer)
    if found is None:
        raise InputError(f"scorer must be {_KINDS}; got {type(scorer).__name__}")
    if found.factors is not None and len(found.factors.item_factors) != items:
        raise InputError(
            f"items must be the number of rows of the item factors, "
            f"{len(found.factors.item_factors)}, got {items}"
        )
    if found.item_item is not None and found.item_item.weights.shape[1] != items:
        raise InputError(
            f"items must be the number of columns of the item-item weights, "
            f"{found.item_item.weights.shape[1]}, got {items}"
        )
    return found


def _recognise(scorer: Any) -> Scorer | None:
    factors = hasattr(scorer, "user_factors") and hasattr(scorer, "item_factors")
    if factors and not isinstance(scorer, FactorScores):
        scorer = scorer.user_factors, scorer.item_factors
    if isinstance(scorer, tuple | list):
        if len(scorer) != 2:
            raise InputError(f"scorer must be a pair of factor matrices, got {len(scorer)} of them")
        scorer = FactorScores(*map(as_matrix, scorer))
    if isinstance(scorer, FactorScores):
        return Scorer(scorer.score, scorer, scorer)
    if isinstance(scorer, ItemItemScores):
        return Scorer(scorer.score, scorer, item_item=scorer)
    if callable(getattr(scorer, "score", None)) and callable(getattr(scorer, "score_all", None)):
        handed = getattr(scorer, "item_item", None)
        known = handed if isinstance(handed, ItemItemScores) else None
        return Scorer(scorer.score, scorer.score_all, item_item=known)
    # A user with a module has imported torch. To import it here would take seconds.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(scorer, torch.nn.Module):
        return Scorer(_TorchScores(scorer))
    return Scorer(scorer) if callable(scorer) else None


def as_matrix(values: Any) -> npt.NDArray[Any]:
    """Return factors as a numpy matrix, also from tensors and from implicit's GPU matrices."""
    for method in ("detach", "cpu", "to_numpy"):
        convert = getattr(values, method, None)
        if callable(convert):
            values = convert()
    matrix = np.asarray(values)
    return matrix if np.issubdtype(matrix.dtype, np.floating) else matrix.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _TorchScores:
    """Scores of a module ``forward(users, items)`` that takes two vectors of ids of one length.

    It is called in evaluation mode, without gradients, on the device of its parameters. Afterwards
    it has the mode that it had before.
    """

    module: Any

    def __call__(self, users: IntArray, items: IntArray, /) -> npt.ArrayLike:
        torch = sys.modules["torch"]
        tensors = itertools.chain(self.module.parameters(), self.module.buffers())
        device = next((tensor.device for tensor in tensors), None)
        asked = torch.as_tensor(items, device=device)
        repeated = torch.as_tensor(users, device=device).repeat_interleave(asked.shape[1])
        training = [part for part in self.module.modules() if part.training]
        self.module.eval()
        try:
            with torch.inference_mode():
                found = self.module(repeated, asked.reshape(-1)).float()
        finally:
            for part in training:
                part.training = True
        scores = np.asarray(found.cpu().numpy())
        # The last layer of many networks gives one column instead of a vector.
        return scores.reshape(items.shape) if scores.size == items.size else scores


def as_scores(
    values: npt.ArrayLike,
    shape: tuple[int, int],
    users: IntArray,
    items: IntArray | None = None,
) -> ScoreArray:
    """Return scores as floats; refuse another shape, and NaN (infinite scores are allowed).

    ``items`` are the items of each row; None for all items in order.
    """
    scores = np.asarray(values)
    if scores.shape != shape:
        raise ScoreError(
            f"scores must be an array of shape {shape} for {len(users)} users, got "
            f"{scores.shape}; row i holds the scores of the i-th user asked for"
        )
    if not np.issubdtype(scores.dtype, np.floating):
        scores = _to_float(scores)
    elif scores.dtype.itemsize > 8:  # targets' scores are float64, and must tie with equal ones
        scores = scores.astype(np.float64)
    # A product with zeros is fast, and is NaN only if a score is not finite.
    with np.errstate(invalid="ignore"):
        suspicious = np.isnan(scores @ np.zeros(shape[-1], dtype=scores.dtype))
    if suspicious.any() and (bad := np.isnan(scores)).any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        raise ScoreError(
            f"scores must not be NaN, got {int(bad.sum())} NaN in a block of {len(users)} users, "
            f"the first for user {int(users[row])} and item "
            f"{column if items is None else int(items[row, column])}; a model that diverged gives "
            "such scores, and -inf may stand for an item that must not be recommended"
        )
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
    """Refuse targets with infinite scores."""
    bad = np.isinf(own)
    if bad.any():
        where = int(np.argmax(bad))
        raise ScoreError(
            f"scores of targets must be finite, got {int(bad.sum())} infinite ones among "
            f"{len(own)}, the first {own[where]} for user {int(users[where])} and item "
            f"{int(targets[where])}; an item masked by -inf cannot be a target (other items may "
            "be infinite: they rank above or below all finite ones)"
        )
