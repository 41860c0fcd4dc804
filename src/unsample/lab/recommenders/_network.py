"""How networks learn in epochs, by PyTorch: MultiVAE and NeuMF alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._progress import Progress
from unsample.errors import InputError, SolverError
from unsample.lab.recommenders._base import Recommender, Weights


class Network(Recommender):
    """A recommender that learns in epochs, with these hyperparameters among its own.

    ``averaging`` is the largest share of its old value that the running mean of the weights keeps
    at a step, and ``device`` one of PyTorch.
    """

    epochs: int
    batch: int
    averaging: float
    learning_rate: float
    seed: int
    device: str
    libraries: ClassVar[tuple[tuple[str, str], ...]] = (("torch", "neural"),)


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

    def run(self, epoch: Callable[[int], Iterable[Any]], progress: Progress | None) -> Weights:
        """Learn in epochs and return the weights; ``epoch(number)`` yields its batches' losses."""
        for number in range(self._model.epochs):
            steps = [self._step(loss) for loss in epoch(number)]
            loss = float(self.torch.stack(steps).mean())
            if not np.isfinite(loss):
                raise SolverError(
                    f"the loss is {loss} after epoch {number + 1}; take a smaller learning_rate"
                )
            if progress is not None:
                progress(number + 1, self._model.epochs, f"loss {loss:.4f}")
        return {name: mean.cpu() for name, mean in self._mean.items()}

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


def glorot(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Return first weights of a layer: uniform, with the variance of Glorot."""
    bound = np.sqrt(6.0 / (rows + columns))
    return rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)
