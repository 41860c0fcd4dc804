"""Learning in epochs with PyTorch: optimiser steps, early stopping, and the curve they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, import_extra
from unsample.designs.ranking import exact_ranks
from unsample.errors import InputError, SolverError
from unsample.lab.recommenders._base import Scores, Training, Weights
from unsample.metrics import NDCG

__all__ = ["Learner", "Schedule", "learn_in_epochs", "torch_for", "validation_quality"]

_METRIC = NDCG @ 10
_MOST_VALIDATION_PAIRS = 3000


@dataclass(frozen=True)
class Schedule:
    """How long to learn: ``epochs`` at most, ``patience`` of them without a better one."""

    epochs: int
    patience: int


class Learner:
    """Tensors that Adam improves, and the running mean of their values over the steps.

    The mean is what scores: it is steadier and ranks better than the last values. At step t it
    keeps the share t / (t + 10) of its old value, so that it spans about the last tenth of the
    steps, and never more than ``averaging``.
    """

    def __init__(
        self,
        torch: Any,
        start: dict[str, npt.NDArray[np.float32]],
        *,
        device: str,
        learning_rate: float,
        averaging: float,
    ) -> None:
        self.tensors = {
            name: torch.tensor(array, device=device, requires_grad=True)
            for name, array in start.items()
        }
        self._mean = {name: tensor.detach().clone() for name, tensor in self.tensors.items()}
        self._adam = torch.optim.Adam(self.tensors.values(), lr=learning_rate)
        self._averaging = averaging
        self._steps = 0

    def step(self, loss: Any) -> Any:
        """Go one step down the gradient of a loss and return the loss."""
        self._adam.zero_grad()
        loss.backward()
        self._adam.step()
        self._steps += 1
        kept = min(self._averaging, self._steps / (self._steps + 10))
        for name, tensor in self.tensors.items():
            self._mean[name].lerp_(tensor.detach(), 1.0 - kept)
        return loss.detach()

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return a copy of the means as arrays."""
        return {name: mean.cpu().numpy().copy() for name, mean in self._mean.items()}


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
    # A few thousand pairs tell epochs apart; ranking them all would cost more than the epoch.
    step = max(1, len(validation) // _MOST_VALIDATION_PAIRS)
    users, targets = validation.user[::step], validation.item[::step]

    def quality(weights: Weights) -> float:
        ranks = exact_ranks(
            lambda users: score_all(users, weights),
            users,
            targets,
            items=validation.items,
            exclude=training.matrix,
            ties="realistic",
        )
        return float(_METRIC.weights(ranks.ranks, validation.items).mean())

    return quality
