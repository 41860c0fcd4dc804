"""MultiVAE: a variational autoencoder of users' items (Liang et al., 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.lab.recommenders._network import Batch, Network, glorot
from unsample.lab.recommenders._recommender import FittedRecommender, Scores, Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class MultiVAE(Network):
    """Encode a user's items into a Gaussian, decode it into a distribution over items.

    ``dropout`` is the share of a user's items hidden from the encoder while learning, and
    ``kl_weight`` the weight of the Kullback-Leibler term, reached after ``annealing`` epochs.
    A batch counts users.
    """

    hidden: int = 600
    latent: int = 200
    dropout: float = 0.5
    kl_weight: float = 0.05
    annealing: int = 20
    averaging: float = 0.99
    epochs: int = 12
    batch: int = 128
    learning_rate: float = 3e-3
    seed: int = 0
    device: str = "cpu"
    name: ClassVar[str] = "multivae"

    def _start(
        self, users: int, items: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.float32]]:
        sizes = {
            "encode": (items, self.hidden),
            "mean": (self.hidden, self.latent),
            "log_variance": (self.hidden, self.latent),
            "decode": (self.latent, self.hidden),
            "output": (self.hidden, items),
        }
        start = {}
        for name, (rows, columns) in sizes.items():
            start[name] = glorot(rng, rows, columns=columns)
            start[f"{name}_offset"] = np.zeros(columns, dtype=np.float32)
        return start

    def _batches(self, matrix: csr_array, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield rows of the matrix, of users who have something."""
        shuffled = rng.permutation(np.flatnonzero(np.diff(matrix.indptr)))
        for start in range(0, len(shuffled), self.batch):
            yield (matrix[shuffled[start : start + self.batch]].toarray(),)

    def _loss(self, weights: Weights, batch: Sequence[Any], *, epoch: int, noise: Any) -> Any:
        """Return the negative evidence bound of a batch of users, per user."""
        import torch

        (rows,) = batch
        kl_weight = self.kl_weight * min(1.0, epoch / self.annealing)
        inputs = torch.nn.functional.normalize(rows)
        shown = torch.rand(rows.shape, generator=noise, device=rows.device) >= self.dropout
        encoded = _layer(inputs * shown / (1.0 - self.dropout), weights, name="encode")
        hidden = torch.tanh(encoded)
        mean = _layer(hidden, weights, name="mean")
        log_variance = _layer(hidden, weights, name="log_variance")
        draw = torch.randn(mean.shape, generator=noise, device=rows.device)
        logits = _decode(mean + draw * torch.exp(0.5 * log_variance), weights)
        log_share = torch.log_softmax(logits, dim=1)
        log_likelihood = (log_share * rows).sum(dim=1)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        return (kl_weight * divergence - log_likelihood).mean()

    def _score_users(self, users: IntArray, fitted: FittedRecommender) -> Scores:
        """Return the logits of all items at the mean of the code."""
        import torch

        weights = fitted.weights
        with torch.no_grad():
            rows = torch.from_numpy(fitted.history[users].toarray()).to(weights["encode"].device)
            inputs = torch.nn.functional.normalize(rows)
            hidden = torch.tanh(_layer(inputs, weights, name="encode"))
            logits = _decode(_layer(hidden, weights, name="mean"), weights)
        return np.asarray(logits.cpu().numpy())


def _decode(code: Any, weights: Weights) -> Any:
    """Return the logits of all items for a user's code."""
    import torch

    hidden = torch.tanh(_layer(code, weights, name="decode"))
    return _layer(hidden, weights, name="output")


def _layer(inputs: Any, weights: Weights, *, name: str) -> Any:
    return inputs @ weights[name] + weights[f"{name}_offset"]
