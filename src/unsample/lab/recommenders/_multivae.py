"""MultiVAE: a variational autoencoder with a multinomial likelihood (Liang et al., 2018).

PyTorch learns; scores are plain numpy, so a saved recommender needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_integer, check_real
from unsample.lab.recommenders._base import (
    BaseRecommender,
    Fitted,
    Scores,
    Training,
    Weights,
    check_seed,
    history_weights,
    scored_history,
)
from unsample.lab.recommenders._epochs import (
    Learner,
    Schedule,
    learn_in_epochs,
    torch_for,
    validation_quality,
)

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["MultiVAE"]


@dataclass(frozen=True)
class MultiVAE(BaseRecommender):
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
    learns_in_epochs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("hidden", "latent", "annealing", "epochs", "patience", "batch"):
            check_integer(name, getattr(self, name), minimum=1)
        check_real("dropout", self.dropout, low=0.0, high=1.0, open_high=True)
        check_real("averaging", self.averaging, low=0.0, high=1.0, open_high=True)
        check_real("kl_weight", self.kl_weight, low=0.0)
        check_real("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_seed(self.seed)

    def _learn(self, training: Training) -> Weights:
        torch = torch_for(self.device, "MultiVAE")
        rng = np.random.default_rng(self.seed)
        learner = Learner(
            torch,
            self._start(training.matrix.shape[1], rng),
            device=self.device,
            learning_rate=self.learning_rate,
            averaging=self.averaging,
        )
        noise = torch.Generator(device=self.device).manual_seed(self.seed)
        active = np.flatnonzero(np.diff(training.matrix.indptr))

        def run_epoch(epoch: int) -> float:
            kl_weight = self.kl_weight * min(1.0, epoch / self.annealing)
            losses = []
            for users in _batches(active, self.batch, rng):
                rows = torch.from_numpy(training.matrix[users].toarray()).to(self.device)
                loss = self._loss(torch, learner.tensors, rows, kl_weight, noise)
                losses.append(learner.step(loss))
            return float(torch.stack(losses).mean())

        def score_all(users: IntArray, weights: Weights) -> Scores:
            return _decode(training.matrix[users], weights)

        weights = learn_in_epochs(
            run_epoch,
            learner.weights,
            validation_quality(training, score_all),
            Schedule(self.epochs, self.patience),
            training,
        )
        return {**history_weights(training.matrix), **weights}

    def _start(self, items: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.float32]]:
        """Return the first weights: uniform with the variance of Glorot, no offsets."""
        sizes = {
            "encode": (items, self.hidden),
            "mean": (self.hidden, self.latent),
            "log_variance": (self.hidden, self.latent),
            "decode": (self.latent, self.hidden),
            "output": (self.hidden, items),
        }
        start = {}
        for name, (rows, columns) in sizes.items():
            bound = np.sqrt(6.0 / (rows + columns))
            start[name] = rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)
            start[f"{name}_offset"] = np.zeros(columns, dtype=np.float32)
        return start

    def _loss(
        self, torch: Any, weights: dict[str, Any], rows: Any, kl_weight: float, noise: Any
    ) -> Any:
        """Return the negative evidence bound of a batch of users, per user."""
        inputs = torch.nn.functional.normalize(rows)
        kept = torch.rand(rows.shape, generator=noise, device=rows.device) >= self.dropout
        inputs = inputs * kept / (1.0 - self.dropout)
        hidden = torch.tanh(_layer(inputs, weights, "encode"))
        mean = _layer(hidden, weights, "mean")
        log_variance = _layer(hidden, weights, "log_variance")
        draw = torch.randn(mean.shape, generator=noise, device=rows.device)
        code = mean + draw * torch.exp(0.5 * log_variance)
        hidden = torch.tanh(_layer(code, weights, "decode"))
        log_share = torch.log_softmax(_layer(hidden, weights, "output"), dim=1)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        return (kl_weight * divergence - (log_share * rows).sum(dim=1)).mean()

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        return _decode(scored_history(users, fitted), fitted.weights)


def _decode(history: scipy.sparse.csr_array, weights: Weights) -> Scores:
    """Return the logits of all items at the mean of the code."""
    length = np.sqrt(np.maximum(np.diff(history.indptr), 1)).astype(np.float32)
    hidden = np.tanh((history @ weights["encode"]) / length[:, None] + weights["encode_offset"])
    code = _layer(hidden, weights, "mean")
    hidden = np.tanh(_layer(code, weights, "decode"))
    return np.asarray(_layer(hidden, weights, "output"), dtype=np.float32)


def _layer(inputs: Any, weights: Weights | dict[str, Any], name: str) -> Any:
    return inputs @ weights[name] + weights[f"{name}_offset"]


def _batches(users: IntArray, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    shuffled = rng.permutation(users)
    for start in range(0, len(shuffled), size):
        yield shuffled[start : start + size]
