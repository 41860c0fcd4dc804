"""Anything that scores items, behind one face: scores of chosen items, and perhaps of all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs.ranking import FactorScores, Score, ScoreAll
from unsample.errors import InputError

__all__ = ["Scorer", "as_scorer"]

_KINDS = (
    "a callable scores(users, items), a pair (user factors, item factors), a FactorScores, a "
    "torch.nn.Module, a model of implicit, or a recommender with score and score_all"
)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores of chosen items; of all items where the model has a quick way to them."""

    score: Score
    score_all: ScoreAll | None = None
    factors: FactorScores | None = None

    @classmethod
    def of_factors(cls, factors: FactorScores) -> Scorer:
        """Take a product of factors."""
        return cls(factors.score, factors, factors)


def as_scorer(scorer: Any, items: int) -> Scorer:
    """Recognise what was passed; ``items`` is the number of items it must be able to score."""
    found = _recognise(scorer)
    if found is None:
        raise InputError(f"scorer must be {_KINDS}; got {type(scorer).__name__}")
    if found.factors is not None and len(found.factors.item_factors) != items:
        raise InputError(
            f"items must be the number of rows of the item factors, "
            f"{len(found.factors.item_factors)}, got {items}"
        )
    return found


def _recognise(scorer: Any) -> Scorer | None:
    if isinstance(scorer, FactorScores):
        return Scorer.of_factors(scorer)
    if isinstance(scorer, tuple | list):
        return _from_pair(scorer)
    if hasattr(scorer, "user_factors") and hasattr(scorer, "item_factors"):
        return _from_pair((scorer.user_factors, scorer.item_factors))
    if callable(getattr(scorer, "score", None)) and callable(getattr(scorer, "score_all", None)):
        return Scorer(scorer.score, scorer.score_all)
    if callable(scorer):
        return Scorer(_TorchScores(scorer) if _is_torch_module(scorer) else scorer)
    return None


def _from_pair(pair: tuple[Any, ...] | list[Any]) -> Scorer:
    if len(pair) != 2:
        raise InputError(f"scorer must be a pair of factor matrices, got {len(pair)} of them")
    return Scorer.of_factors(FactorScores(*(_as_matrix(one) for one in pair)))


def _as_matrix(values: Any) -> npt.NDArray[Any]:
    """Return factors as a numpy matrix: from tensors, and from the matrices of implicit's GPU."""
    for method in ("detach", "cpu", "to_numpy"):
        convert = getattr(values, method, None)
        if callable(convert):
            values = convert()
    matrix = np.asarray(values)
    if not np.issubdtype(matrix.dtype, np.floating):
        matrix = matrix.astype(np.float64)
    return matrix


def _is_torch_module(scorer: Any) -> bool:
    # Whoever has a module has imported torch; importing it here would cost seconds.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(scorer, torch.nn.Module)


@dataclass(frozen=True, eq=False)
class _TorchScores:
    """Scores of a module ``forward(users, items)`` that takes two equally long vectors of ids.

    It is asked in evaluation mode, without gradients, on the device of its parameters, and left
    in the mode in which it was found.
    """

    module: Any

    def __call__(self, users: IntArray, items: IntArray, /) -> npt.ArrayLike:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        torch = sys.modules["torch"]
        device = _device_of(self.module)
        repeated = np.repeat(users, items.shape[1])
        ids = [torch.as_tensor(array, device=device) for array in (repeated, items.reshape(-1))]
        with torch.inference_mode(), _evaluating(self.module):
            scores = self.module(*ids)
        values = np.asarray(scores.float().cpu().numpy())
        # One column, as the last layer of many a network gives, is as good as none.
        return values.reshape(items.shape) if values.size == items.size else values


def _device_of(module: Any) -> Any:
    for tensors in (module.parameters, module.buffers):
        for tensor in tensors():
            return tensor.device
    return None


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Put a module into evaluation mode, and its parts back into the mode they were in."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
