"""Scorers: one contract where each score is costly, and one where whole rows are cheap.

* **Costly**: ``scorer(users, items) -> scores``, three vectors of one length. A function, or a
  ``torch.nn.Module``.
* **Cheap**: the scores of all items in one product, so targets are ranked in full. An object with
  ``score_all(users) -> matrix``, a matrix of scores (users x items), a pair (user factors, item
  factors), or an item-item pair (a sparse matrix of users x items, weights of items x items).
"""

from __future__ import annotations

import itertools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, at_position
from unsample.errors import InputError, ScoreError

if TYPE_CHECKING:
    import scipy.sparse

ScoreArray: TypeAlias = npt.NDArray[np.floating[Any]]

_KINDS = (
    "a function scorer(users, items) -> scores, a torch.nn.Module, an object with "
    "score_all(users), a matrix of scores, a pair (user factors, item factors), or a pair (sparse "
    "users x items, item-item weights)"
)
EXAMPLE = """for example:
    def scorer(users, items):   # two vectors of one length: pair i is users[i] and items[i]
        return (user_factors[users] * item_factors[items]).sum(axis=1)   # a score for each pair"""
#: Users whose whole rows are made at a time for single pairs.
_ROWS = 256


class Scorer(ABC):
    """Scores of pairs and of whole rows; `as_scorer` makes one of whatever `evaluate` takes."""

    #: Whether whole rows are cheap.
    whole: ClassVar[bool] = True
    #: The number of users and of items, where the scorer knows them.
    users: int | None = None
    items: int | None = None

    def pairs(self, users: IntArray, items: IntArray) -> ScoreArray:
        """Return the checked score of each pair ``users[i], items[i]``."""
        scores = self._pairs(users, items)
        # The last layer of many networks gives one column instead of a vector.
        if scores.shape not in ((len(users),), (len(users), 1)):
            raise ScoreError(
                f"scores must be a vector with one number for each of the {len(users):,} pairs "
                f"that the scorer was asked for, got an array of shape {scores.shape}; {EXAMPLE}"
            )
        return _checked(scores.reshape(-1), users, items=items)

    def rows(self, users: IntArray, items: int) -> ScoreArray:
        """Return the checked scores of all items; each user is asked for once."""
        distinct, index = np.unique(users, return_inverse=True)
        asked = distinct if len(distinct) < len(users) else users
        table = self._rows(asked, items)
        if table.shape != (len(asked), items):
            raise ScoreError(
                f"score_all must return a matrix of shape {(len(asked), items)}, a row for each "
                f"of {len(asked)} users and a column for each item, got shape {table.shape}"
            )
        scores = _checked(table, asked)
        return scores[index] if asked is distinct else scores

    def _pairs(self, users: IntArray, items: IntArray) -> npt.NDArray[Any]:
        """Return the score of each pair, from whole rows of a few users at a time."""
        distinct, index = np.unique(users, return_inverse=True)
        scores: npt.NDArray[Any] = np.empty(len(users))
        for start in range(0, len(distinct), _ROWS):
            here = np.flatnonzero((index >= start) & (index < start + _ROWS))
            table = self._rows(distinct[start : start + _ROWS], int(items.max()) + 1)
            if scores.dtype != table.dtype:
                scores = scores.astype(table.dtype)
            scores[here] = table[index[here] - start, items[here]]
        return scores

    @abstractmethod
    def _rows(self, users: IntArray, items: int) -> npt.NDArray[Any]:
        """Return the scores of all items, a row for each user."""


@dataclass(frozen=True, eq=False)
class PairScores(Scorer):
    """Scores of a function of pairs, each of which costs."""

    score: Callable[[IntArray, IntArray], npt.ArrayLike]
    whole: ClassVar[bool] = False

    def _pairs(self, users: IntArray, items: IntArray) -> npt.NDArray[Any]:
        asked = f"{len(users):,} pairs, of {_range('users', users)} and {_range('items', items)}"
        try:
            return np.asarray(self.score(users, items))
        except (TypeError, ValueError, LookupError) as problem:
            # What Python says about a call that does not fit the function.
            if isinstance(problem, TypeError) and "positional argument" in str(problem):
                raise ScoreError(
                    f"scorer must take two vectors of one length, users and items, got "
                    f"{problem!r}; {EXAMPLE}"
                ) from problem
            raise ScoreError(_failure("scorer", problem, asked=asked)) from problem

    def _rows(self, users: IntArray, items: int) -> npt.NDArray[Any]:
        every = np.tile(np.arange(items), len(users))
        return self.pairs(np.repeat(users, items), every).reshape(len(users), items)


@dataclass(frozen=True, eq=False)
class RowScores(Scorer):
    """Scores of a function of users that gives whole rows; single pairs come from these.

    >>> table = np.array([[0.9, 0.1, 0.5]])
    >>> RowScores(table.__getitem__).pairs(np.array([0, 0]), np.array([2, 0]))
    array([0.5, 0.9])
    """

    score_all: Callable[[IntArray], npt.ArrayLike]
    items: int | None = None
    users: int | None = None

    def _rows(self, users: IntArray, items: int) -> npt.NDArray[Any]:
        try:
            return np.asarray(self.score_all(users))
        except (TypeError, ValueError, LookupError) as problem:
            asked = f"{len(users):,} rows, of {_range('users', users)}"
            raise ScoreError(_failure("score_all", problem, asked=asked)) from problem


@dataclass(frozen=True, eq=False)
class FactorScores(Scorer):
    """Scores that are products of user and item factors.

    >>> FactorScores(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])).rows(np.array([1]), 2)
    array([[2., 4.]])
    """

    user_factors: ScoreArray
    item_factors: ScoreArray

    def __post_init__(self) -> None:
        for name in ("user_factors", "item_factors"):
            matrix = _as_matrix(getattr(self, name))
            if matrix.ndim != 2:
                raise InputError(f"{name} must be a matrix, got an array of shape {matrix.shape}")
            object.__setattr__(self, name, matrix)
        users, factors = self.user_factors.shape
        items, of_items = self.item_factors.shape
        if factors != of_items:
            raise InputError(
                "user_factors and item_factors must have the same number of columns, got "
                f"{factors} and {of_items}; a matrix of users x items of an item-item model must "
                "be sparse"
            )
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "items", items)

    def _pairs(self, users: IntArray, items: IntArray) -> ScoreArray:
        """Return the score of each pair.

        It does not depend on the other pairs of the call, to the last bit. So items with equal
        factors always tie. (Matrix products do not promise that.)
        """
        of_users = self.user_factors[users]
        of_items = self.item_factors[items]
        return np.asarray(np.einsum("pd,pd->p", of_users, of_items))

    def _rows(self, users: IntArray, items: int) -> ScoreArray:
        return np.asarray(self.user_factors[users] @ self.item_factors.T)


@dataclass(frozen=True, eq=False)
class ItemItemScores(Scorer):
    """Scores of models such as EASE and itemKNN: sums of weights between a user's and all items.

    Parameters
    ----------
    history
        Sparse matrix of users x items: the items of each user, and their weights.
    weights
        The item-item matrix, with a row for each column of ``history``: an array, or sparse.
    item_bias
        Added to the score of each item.
    newcomers
        The scores of all items for users without items; by default 0.

    >>> from scipy.sparse import csr_array
    >>> weights = np.array([[0.0, 0.5, 0.25], [0.5, 0.0, 1.0], [0.25, 1.0, 0.0]])
    >>> model = ItemItemScores(csr_array([[1, 1, 0], [0, 0, 0]]), weights)
    >>> model.rows(np.array([0, 1]), 3)
    array([[0.5 , 0.5 , 1.25],
           [0.  , 0.  , 0.  ]])
    """

    history: scipy.sparse.csr_array
    weights: npt.NDArray[Any] | scipy.sparse.csr_array
    item_bias: npt.NDArray[Any] | None = None
    newcomers: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        from scipy.sparse import csr_array, issparse

        # A product copies weights that are stored by column, each time.
        sparse = issparse(self.weights)
        weights: Any = csr_array(self.weights) if sparse else np.ascontiguousarray(self.weights)
        if weights.dtype not in (np.float32, np.float64):
            weights = weights.astype(np.float64)
        if weights.ndim != 2 or self.history.shape[1] != weights.shape[0]:
            raise InputError(
                f"weights must be a matrix with a row for each of the {self.history.shape[1]} "
                f"columns of history, got shape {weights.shape}"
            )
        history = csr_array(self.history, dtype=weights.dtype)
        if not history.has_canonical_format:
            history = history.copy()
            history.sum_duplicates()
        object.__setattr__(self, "history", history)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "users", history.shape[0])
        object.__setattr__(self, "items", weights.shape[1])

    def _rows(self, users: IntArray, items: int) -> npt.NDArray[Any]:
        history = self.history[users]
        if isinstance(self.weights, np.ndarray):
            # Item by item, a row of weights is read once for all users with that item. The sums of
            # a user have the same order as user by user.
            scores = np.asarray(history.tocsc() @ self.weights)
        else:
            scores = np.asarray((history @ self.weights).toarray())
        if self.item_bias is not None:
            scores += self.item_bias.astype(scores.dtype)
        is_new = np.diff(history.indptr) == 0
        if self.newcomers is not None and is_new.any():
            scores[is_new] = self.newcomers
        return scores


@dataclass(frozen=True, eq=False)
class _TorchScores:
    """Scores of a module, called in evaluation mode, without gradients, on its own device."""

    module: Any

    def __call__(self, users: IntArray, items: IntArray, /) -> npt.ArrayLike:
        torch = sys.modules["torch"]
        tensors = itertools.chain(self.module.parameters(), self.module.buffers())
        device = next((tensor.device for tensor in tensors), None)
        asked = [torch.as_tensor(ids, device=device) for ids in (users, items)]
        training = [part for part in self.module.modules() if part.training]
        self.module.eval()
        try:
            with torch.inference_mode():
                return np.asarray(self.module(*asked).float().cpu().numpy())
        finally:
            for part in training:
                part.training = True


def as_scorer(scorer: Any, items: int) -> Scorer:
    """Return a scorer for any of the forms that `evaluate` takes.

    Parameters
    ----------
    scorer
        A function, a torch module, an object with ``score_all``, a matrix, or a pair of matrices.
    items
        The number of items that it must score.

    Raises
    ------
    InputError
        If it is none of these, or has another number of items.

    >>> factors = np.array([[1.0, 2.0]]), np.array([[0.5, 0.0], [0.0, 0.1], [1.0, 1.0]])
    >>> as_scorer(factors, items=3).rows(np.array([0]), items=3)
    array([[0.5, 0.2, 3. ]])
    """
    recognised = _recognised(scorer)
    if recognised.items not in (None, items):
        raise InputError(
            f"items must be {recognised.items}, as many as the scorer has, got {items}"
        )
    return recognised


def _recognised(scorer: Any) -> Scorer:
    from scipy.sparse import issparse

    if isinstance(scorer, Scorer):
        return scorer
    if isinstance(scorer, tuple | list):
        if len(scorer) != 2:
            raise InputError(f"scorer must be a pair of matrices, got {len(scorer)} of them")
        return (ItemItemScores if issparse(scorer[0]) else FactorScores)(*scorer)
    if callable(getattr(scorer, "score_all", None)):
        return RowScores(scorer.score_all)
    if isinstance(scorer, np.ndarray) and scorer.ndim == 2:
        users, items = scorer.shape
        return RowScores(scorer.__getitem__, items=items, users=users)
    # A user with a module has imported torch. To import it here would take seconds.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(scorer, torch.nn.Module):
        return PairScores(_TorchScores(scorer))
    if not callable(scorer):
        raise InputError(f"scorer must be {_KINDS}; got {type(scorer).__name__}")
    return PairScores(scorer)


def _as_matrix(values: Any) -> npt.NDArray[Any]:
    """Return factors as a numpy array, also from tensors."""
    for method in ("detach", "cpu"):
        convert = getattr(values, method, None)
        if callable(convert):
            values = convert()
    matrix = np.asarray(values)
    return matrix if np.issubdtype(matrix.dtype, np.floating) else matrix.astype(np.float64)


def _checked(
    scores: npt.NDArray[Any], users: IntArray, *, items: IntArray | None = None
) -> ScoreArray:
    """Return scores as floats of at most 64 bits; refuse NaN (infinite scores are allowed).

    ``items`` has the item of each pair; it is None if there is a row of all items for each user.
    """
    if scores.dtype.kind not in "fiub":
        raise ScoreError(f"scores must be real numbers, got values of type {scores.dtype}")
    if scores.dtype.kind != "f" or scores.dtype.itemsize > 8:
        scores = scores.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        fine = np.isfinite(scores.sum())  # one sum is faster than a test of each score
    if not fine and (bad := np.isnan(scores)).any():
        row, column = divmod(int(np.argmax(bad)), 1 if items is not None else scores.shape[1])
        raise ScoreError(
            f"scores must not be NaN, got {int(bad.sum())} NaN of {bad.size:,} scores, the first "
            f"for user {int(users[row])} and item {column if items is None else int(items[row])}; "
            "a model that diverged gives such scores, and -inf may stand for an item that must "
            "not be recommended"
        )
    return scores


def _failure(called: str, problem: Exception, *, asked: str) -> str:
    """Return a message about an error within the user's own code."""
    message = f"{called} failed with {problem!r} when it was asked for {asked}"
    if isinstance(problem, LookupError):
        message += "; ids count from 0, and targets are (users, items), in this order"
    return message


def _range(name: str, ids: IntArray) -> str:
    """Return between which numbers ids lie, in words.

    >>> _range("users", np.array([7, 3, 5]))
    'users 3 to 7'
    """
    return f"{name} {int(ids.min())} to {int(ids.max())}" if len(ids) else f"no {name}"


def refuse_unknown_users(scorer: Scorer, users: IntArray) -> None:
    """Refuse targets of users that the scorer does not have, where it knows how many there are."""
    if scorer.users is None:
        return
    unknown = users >= scorer.users
    if unknown.any():
        where = int(np.argmax(unknown))
        raise InputError(
            f"users of targets must be in 0..{scorer.users - 1} ({scorer.users} users of the "
            f"scorer), got {int(users[where])} {at_position(where, len(users))} "
            f"({int(unknown.sum())} such ids); targets are (users, items), in this order"
        )


def refuse_infinite_targets(own: ScoreArray, users: IntArray, *, targets: IntArray) -> None:
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
