"""MultiVAE: a variational autoencoder of users' items (Liang et al., 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_real, import_extra
from unsample.lab.recommenders._base import Fitted, Scores, Training, Weights
from unsample.lab.recommenders._network import Learner, Network, as_scores, check_learning, glorot

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True)
class MultiVAE(Network):
    """Encode a user's items into a Gaussian, decode it into a distribution over items.

    Parameters
    ----------
    hidden, latent
        Sizes of the hidden layers and of the code between them.
    dropout
        Share of a user's items hidden from the encoder while learning.
    kl_weight
        Weight of the Kullback-Leibler term once it is fully on.
    annealing
        Epochs over which that weight rises from zero.
    averaging
        Largest share of its old value that the running mean of the weights keeps at a step; that
        mean is what scores. Zero takes the last weights as they are.
    epochs, patience
        Most epochs, and how many without a better validation result end the learning.
    batch
        Users in an optimiser step.
    learning_rate
        Step size of Adam.
    seed
        Seed of everything random.
    device
        Where to learn: ``"cpu"``, ``"cuda"``, or another device of PyTorch.
    """

    hidden: int = 600
    latent: int = 200
    dropout: float = 0.5
    kl_weight: float = 0.05
    annealing: int = 20
    averaging: float = 0.99
    epochs: int = 12
    patience: int = 10
    batch: int = 128
    learning_rate: float = 3e-3
    seed: int = 0
    device: str = "cpu"
    name: ClassVar[str] = "multivae"

    def __post_init__(self) -> None:
        check_learning(self, "hidden", "latent", "annealing")
        check_real("dropout", self.dropout, low=0.0, high=1.0, open_high=True)
        check_real("kl_weight", self.kl_weight, low=0.0)

    def _learn(self, training: Training) -> Weights:
        rng = np.random.default_rng(self.seed)
        learner = Learner(self, self._start(training.matrix.shape[1], rng))
        torch = learner.torch
        noise = torch.Generator(device=self.device).manual_seed(self.seed)
        active = np.flatnonzero(np.diff(training.matrix.indptr))

        def epoch(number: int) -> Iterator[Any]:
            kl_weight = self.kl_weight * min(1.0, number / self.annealing)
            shuffled = rng.permutation(active)
            for start in range(0, len(shuffled), self.batch):
                users = shuffled[start : start + self.batch]
                rows = torch.from_numpy(training.matrix[users].toarray()).to(self.device)
                yield self._loss(torch, learner.tensors, rows, kl_weight, noise)

        def score_all(users: IntArray, weights: Weights) -> Scores:
            return _decoded(torch, training.matrix[users], weights)

        return learner.run(epoch, score_all, training)

    def _start(self, items: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.float32]]:
        sizes = {
            "encode": (items, self.hidden),
            "mean": (self.hidden, self.latent),
            "log_variance": (self.hidden, self.latent),
            "decode": (self.latent, self.hidden),
            "output": (self.hidden, items),
        }
        start = {}
        for name, (rows, columns) in sizes.items():
            start[name] = glorot(rng, rows, columns)
            start[f"{name}_offset"] = np.zeros(columns, dtype=np.float32)
        return start

    def _loss(self, torch: Any, weights: Weights, rows: Any, kl_weight: float, noise: Any) -> Any:
        """Return the negative evidence bound of a batch of users, per user."""
        inputs = torch.nn.functional.normalize(rows)
        kept = torch.rand(rows.shape, generator=noise, device=rows.device) >= self.dropout
        hidden = torch.tanh(_layer(inputs * kept / (1.0 - self.dropout), weights, "encode"))
        mean = _layer(hidden, weights, "mean")
        log_variance = _layer(hidden, weights, "log_variance")
        draw = torch.randn(mean.shape, generator=noise, device=rows.device)
        logits = _decode(torch, mean + draw * torch.exp(0.5 * log_variance), weights)
        log_share = torch.log_softmax(logits, dim=1)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        return (kl_weight * divergence - (log_share * rows).sum(dim=1)).mean()

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        torch = import_extra("torch", extra="neural", purpose="MultiVAE")
        return _decoded(torch, fitted.history[users], fitted.weights)


def _decoded(torch: Any, history: scipy.sparse.csr_array, weights: Weights) -> Scores:
    """Return the logits of all items at the mean of the code."""
    with torch.no_grad():
        rows = torch.from_numpy(history.toarray()).to(weights["encode"].device)
        hidden = torch.tanh(_layer(torch.nn.functional.normalize(rows), weights, "encode"))
        return as_scores(_decode(torch, _layer(hidden, weights, "mean"), weights))


def _decode(torch: Any, code: Any, weights: Weights) -> Any:
    return _layer(torch.tanh(_layer(code, weights, "decode")), weights, "output")


def _layer(inputs: Any, weights: Weights, name: str) -> Any:
    return inputs @ weights[name] + weights[f"{name}_offset"]
