"""Learning in epochs with PyTorch: optimiser steps, early stopping, and the curve they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, import_extra
from unsample.errors import InputError, SolverError
from unsample.metrics import NDCG
from unsample.ranking import exact_ranks
from unsample.recommenders._base import Scores, Training, Weights

__all__ = ["Schedule", "as_arrays", "learn_in_epochs", "torch_for", "validation_quality"]

_METRIC = NDCG @ 10


@dataclass(frozen=True)
class Schedule:
    """How long to learn: ``epochs`` at most, ``patience`` of them without a better one."""

    epochs: int
    patience: int


def torch_for(device: str, purpose: str) -> Any:
    """Return the torch module, having made sure that the device exists."""
    torch = import_extra("torch", extra="neural", purpose=purpose)
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(
            f"device must be one that PyTorch can use here, got {device!r} ({reason}); "
            "device='cpu' always works"
        ) from problem
    return torch


def learn_in_epochs(
    run_epoch: Callable[[int], float],
    weights: Callable[[], Weights],
    quality: Callable[[Weights], float] | None,
    schedule: Schedule,
    training: Training,
) -> Weights:
    """Run epochs and return the weights of the best one, or of the last without validation.

    The learning curve goes with them: ``curve_loss``, and ``curve_quality`` where it was measured.
    """
    losses: list[float] = []
    qualities: list[float] = []
    best: Weights | None = None
    for epoch in range(schedule.epochs):
        losses.append(run_epoch(epoch))
        if not np.isfinite(losses[-1]):
            raise SolverError(
                f"the loss is {losses[-1]} after epoch {epoch + 1}; take a smaller learning_rate"
            )
        note = f"loss {losses[-1]:.4f}"
        if quality is not None:
            now = weights()
            qualities.append(quality(now))
            note += f", {_METRIC} {qualities[-1]:.4f}"
            if qualities[-1] == max(qualities):
                best = now
        if training.progress is not None:
            training.progress(epoch + 1, schedule.epochs, note)
        if qualities and len(qualities) - 1 - int(np.argmax(qualities)) >= schedule.patience:
            break
    curve = {"curve_loss": np.array(losses), "curve_quality": np.array(qualities)}
    return {**(weights() if best is None else best), **curve}


def validation_quality(
    training: Training, score_all: Callable[[IntArray, Weights], Scores]
) -> Callable[[Weights], float] | None:
    """Return the NDCG@10 of validation pairs as a function of weights; None without them."""
    validation = training.validation
    if validation is None:
        return None

    def quality(weights: Weights) -> float:
        ranks = exact_ranks(
            lambda users: score_all(users, weights),
            validation.user,
            validation.item,
            items=validation.items,
            seen=training.matrix,
            ties="realistic",
        )
        return float(_METRIC.weights(ranks.ranks, validation.items).mean())

    return quality


def as_arrays(tensors: dict[str, Any]) -> dict[str, npt.NDArray[np.float32]]:
    """Copy tensors into numpy arrays."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}
