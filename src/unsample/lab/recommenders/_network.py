"""How networks learn in epochs, by PyTorch: MultiVAE and NeuMF alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample.designs import RowScores, exact_ranks
from unsample.errors import InputError, SolverError
from unsample.lab.recommenders._base import Fitted, Recommender, Training, Weights
from unsample.metrics import NDCG

#: What validation pairs are ranked by, and how many of them at most: a few thousand tell epochs
#: apart, and ranking them all would cost more than the epoch.
_METRIC = NDCG @ 10
_MOST_VALIDATION_PAIRS = 3000


class Network(Recommender):
    """A recommender that learns in epochs, with these hyperparameters among its own.

    ``patience`` is how many epochs without a better validation result end the learning,
    ``averaging`` the largest share of its old value that the running mean of the weights keeps at
    a step, and ``device`` one of PyTorch.
    """

    epochs: int
    patience: int
    batch: int
    averaging: float
    learning_rate: float
    seed: int
    device: str
    libraries: ClassVar[tuple[tuple[str, str], ...]] = (("torch", "neural"),)
    learns_in_epochs: ClassVar[bool] = True


class Learner:
    """Tensors that Adam improves, and the running mean of their values over the steps.

    The mean is what scores: it is steadier and ranks better than the last values. At step t it
    keeps the share t / (t + 10) of its old value, so that it spans about the last tenth of the
    steps, and never more than ``averaging``.
    """

    def __init__(self, model: Network, start: dict[str, npt.NDArray[np.float32]]) -> None:
        self._model = model
        (self.torch,) = model.import_libraries()
        _check_device(self.torch, model.device)
        self.tensors = {
            name: self.torch.tensor(array, device=model.device, requires_grad=True)
            for name, array in start.items()
        }
        self._mean = {name: tensor.detach().clone() for name, tensor in self.tensors.items()}
        self._adam = self.torch.optim.Adam(self.tensors.values(), lr=model.learning_rate)
        self._steps = 0

    def run(self, epoch: Callable[[int], Iterable[Any]], training: Training) -> Weights:
        """Learn in epochs, and return the weights of the best one, or of the last unvalidated.

        ``epoch(number)`` yields the losses of its batches. The learning curve goes with the
        weights: ``curve_loss``, and ``curve_quality`` where it was measured.
        """
        losses: list[float] = []
        qualities: list[float] = []
        best: Weights | None = None
        for number in range(self._model.epochs):
            steps = [self._step(loss) for loss in epoch(number)]
            losses.append(float(self.torch.stack(steps).mean()))
            if not np.isfinite(losses[-1]):
                raise SolverError(
                    f"the loss is {losses[-1]} after epoch {number + 1}; take a smaller "
                    "learning_rate"
                )
            note = f"loss {losses[-1]:.4f}"
            if training.validation is not None:
                now = {name: mean.clone() for name, mean in self._mean.items()}
                qualities.append(_quality(self._model, training, now))
                note += f", {_METRIC} {qualities[-1]:.4f}"
                if qualities[-1] == max(qualities):
                    best = now
            if training.progress is not None:
                training.progress(number + 1, self._model.epochs, note)
            if qualities and len(qualities) - 1 - np.argmax(qualities) >= self._model.patience:
                break
        found = {name: mean.cpu() for name, mean in (best or self._mean).items()}
        return {**found, "curve_loss": np.array(losses), "curve_quality": np.array(qualities)}

    def _step(self, loss: Any) -> Any:
        """Go one step down the gradient of a loss and return the loss."""
        self._adam.zero_grad()
        loss.backward()
        self._adam.step()
        self._steps += 1
        kept = min(self._model.averaging, self._steps / (self._steps + 10))
        for name, tensor in self.tensors.items():
            self._mean[name].lerp_(tensor.detach(), 1.0 - kept)
        return loss.detach()


def _check_device(torch: Any, device: str) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(
            f"device must be one that PyTorch can use here, got {device!r} ({reason}); "
            "device='cpu' always works"
        ) from problem


def _quality(model: Network, training: Training, weights: Weights) -> float:
    """Return the NDCG@10 of validation pairs among all items that their users do not have."""
    pairs = training.validation
    assert pairs is not None
    step = max(1, len(pairs) // _MOST_VALIDATION_PAIRS)
    fitted = Fitted(training.matrix, weights)
    ranks = exact_ranks(
        RowScores(lambda users: model._score_users(users, fitted)),  # noqa: SLF001
        (pairs.user[::step], pairs.item[::step]),
        items=pairs.items,
        exclude=training.matrix,
        ties="realistic",
    )
    return float(_METRIC.weights(ranks.ranks, pairs.items).mean())


def glorot(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Return first weights of a layer: uniform, with the variance of Glorot."""
    bound = np.sqrt(6.0 / (rows + columns))
    return rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)
