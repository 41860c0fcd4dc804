"""How networks learn in epochs, by PyTorch: MultiVAE and NeuMF alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import import_extra
from unsample._progress import Progress
from unsample.errors import InputError, SolverError
from unsample.lab.recommenders._recommender import Recommender, Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Batch: TypeAlias = tuple[npt.NDArray[Any], ...]


class Network(Recommender):
    """A recommender that learns in epochs, with these hyperparameters among its own.

    What scores is the running mean of the weights over the steps: it is steadier and ranks better
    than the last values. At step t it keeps the share t / (t + 10) of its old value, so that it
    spans about the last tenth of the steps, and never more than ``averaging``. ``device`` is one
    of PyTorch.
    """

    epochs: int
    batch: int
    averaging: float
    learning_rate: float
    seed: int
    device: str

    @abstractmethod
    def _start(
        self, users: int, items: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Return the first weights."""

    @abstractmethod
    def _batches(self, matrix: csr_array, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield the batches of an epoch, as arrays."""

    @abstractmethod
    def _loss(self, weights: Weights, batch: Sequence[Any], *, epoch: int, noise: Any) -> Any:
        """Return the loss of a batch, which is tensors now.

        ``noise`` is the source of the random numbers.
        """

    def _learn(self, matrix: csr_array, progress: Progress | None) -> Weights:
        torch = import_extra("torch", extra="neural", purpose=type(self).__name__)
        _check_device(torch, self.device)
        rng = np.random.default_rng(self.seed)
        noise = torch.Generator(device=self.device).manual_seed(self.seed)
        weights = {
            name: torch.tensor(array, device=self.device, requires_grad=True)
            for name, array in self._start(*matrix.shape, rng).items()
        }
        mean = {name: tensor.detach().clone() for name, tensor in weights.items()}
        adam = torch.optim.Adam(weights.values(), lr=self.learning_rate)
        step = 0
        for epoch in range(self.epochs):
            losses = []
            for batch in self._batches(matrix, rng):
                tensors = [torch.from_numpy(array).to(self.device) for array in batch]
                loss = self._loss(weights, tensors, epoch=epoch, noise=noise)
                adam.zero_grad()
                loss.backward()
                adam.step()
                losses.append(loss.detach())
                step += 1
                kept_share = min(self.averaging, step / (step + 10))
                for name, tensor in weights.items():
                    mean[name].lerp_(tensor.detach(), 1.0 - kept_share)
            mean_loss = float(torch.stack(losses).mean())
            if not np.isfinite(mean_loss):
                raise SolverError(
                    f"the loss is {mean_loss} after epoch {epoch + 1}; take a smaller learning_rate"
                )
            if progress is not None:
                progress(epoch + 1, self.epochs, note=f"loss {mean_loss:.4f}")
        return {name: tensor.cpu() for name, tensor in mean.items()}


def _check_device(torch: Any, device: str) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(
            f"device must be one that PyTorch can use here, got {device!r} ({reason}); "
            "device='cpu' always works"
        ) from problem


def glorot(rng: np.random.Generator, rows: int, *, columns: int) -> npt.NDArray[np.float32]:
    """Return first weights of a layer: uniform, with the variance of Glorot.

    The variance is 2 / (rows + columns), so the weights lie within sqrt(6 / (rows + columns)) of
    zero:

    >>> weights = glorot(np.random.default_rng(0), 200, columns=100)
    >>> round(float(np.abs(weights).max()), 3), round(float(weights.var()) * 300, 2)
    (0.141, 1.99)
    """
    bound = np.sqrt(6.0 / (rows + columns))
    return rng.uniform(-bound, bound, size=(rows, columns)).astype(np.float32)
