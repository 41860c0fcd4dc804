"""The recommenders with a network: how PyTorch learns in epochs, MultiVAE and NeuMF.

Scores are plain numpy, so a saved recommender needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_integer, check_real, import_extra
from unsample.designs import Scorer, exact_ranks
from unsample.errors import InputError, SolverError
from unsample.lab.datasets import Interactions
from unsample.lab.recommenders._base import (
    Fitted,
    Recommender,
    Scores,
    Training,
    Weights,
    check_seed,
    history_weights,
    scored_history,
)
from unsample.metrics import NDCG

if TYPE_CHECKING:
    import scipy.sparse

#: What validation pairs are ranked by, and how many of them at most: a few thousand tell epochs
#: apart, and ranking them all would cost more than the epoch.
_METRIC = NDCG @ 10
_MOST_VALIDATION_PAIRS = 3000
#: Pairs whose hidden layers NeuMF holds at a time while scoring.
_PAIRS = 1 << 18
#: How often a negative that the user has is drawn again before it is accepted.
_REDRAWS = 16
#: Spread of NeuMF's first embeddings.
_SPREAD = 0.01


# -- learning ---------------------------------------------------------------------------------


class Learner:
    """Tensors that Adam improves, and the running mean of their values over the steps.

    The mean is what scores: it is steadier and ranks better than the last values. At step t it
    keeps the share t / (t + 10) of its old value, so that it spans about the last tenth of the
    steps, and never more than ``averaging``.
    """

    def __init__(self, model: MultiVAE | NeuMF, start: dict[str, npt.NDArray[np.float32]]) -> None:
        self._model = model
        self.torch = _torch_for(model.device, type(model).__name__)
        self.tensors = {
            name: self.torch.tensor(array, device=model.device, requires_grad=True)
            for name, array in start.items()
        }
        self._mean = {name: tensor.detach().clone() for name, tensor in self.tensors.items()}
        self._adam = self.torch.optim.Adam(self.tensors.values(), lr=model.learning_rate)
        self._steps = 0

    def run(
        self,
        epoch: Callable[[int], Iterable[Any]],
        score_all: Callable[[IntArray, Weights], Scores],
        training: Training,
    ) -> Weights:
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
                now = self._weights()
                qualities.append(_quality(training.validation, training.matrix, now, score_all))
                note += f", {_METRIC} {qualities[-1]:.4f}"
                if qualities[-1] == max(qualities):
                    best = now
            if training.progress is not None:
                training.progress(number + 1, self._model.epochs, note)
            if qualities and len(qualities) - 1 - np.argmax(qualities) >= self._model.patience:
                break
        curve = {"curve_loss": np.array(losses), "curve_quality": np.array(qualities)}
        return {**(self._weights() if best is None else best), **curve}

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

    def _weights(self) -> dict[str, npt.NDArray[np.float32]]:
        return {name: mean.cpu().numpy().copy() for name, mean in self._mean.items()}


def _torch_for(device: str, purpose: str) -> Any:
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


def _quality(
    validation: Interactions,
    known: scipy.sparse.csr_array,
    weights: Weights,
    score_all: Callable[[IntArray, Weights], Scores],
) -> float:
    """Return the NDCG@10 of validation pairs among all items that their users do not have."""
    step = max(1, len(validation) // _MOST_VALIDATION_PAIRS)
    ranks = exact_ranks(
        Scorer(score_all=lambda users: score_all(users, weights)),
        (validation.user[::step], validation.item[::step]),
        items=validation.items,
        exclude=known,
        ties="realistic",
    )
    return float(_METRIC.weights(ranks.ranks, validation.items).mean())


def _check_learning(model: MultiVAE | NeuMF, *sizes: str) -> None:
    for name in (*sizes, "epochs", "patience", "batch"):
        check_integer(name, getattr(model, name), minimum=1)
    check_real("averaging", model.averaging, low=0.0, high=1.0, open_high=True)
    check_real("learning_rate", model.learning_rate, low=0.0, open_low=True)
    check_seed(model.seed)


def _glorot(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Return first weights of a layer: uniform, with the variance of Glorot."""
    bound = np.sqrt(6.0 / (rows + columns))
    return rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)


# -- MultiVAE ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class MultiVAE(Recommender):
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
    libraries: ClassVar[tuple[tuple[str, str], ...]] = (("torch", "neural"),)
    learns_in_epochs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_learning(self, "hidden", "latent", "annealing")
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
            return _decode(training.matrix[users], weights)

        return {**history_weights(training.matrix), **learner.run(epoch, score_all, training)}

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
            start[name] = _glorot(rng, rows, columns)
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


# -- NeuMF ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NeuMF(Recommender):
    """Learn to tell the items a user has from drawn ones, by logistic loss.

    Parameters
    ----------
    factors
        Dimensions of the vectors whose products are summed.
    layers
        Sizes of the network's layers; the first is the user's and the item's vector together.
    negatives
        Items drawn for each pair and epoch, among those the user does not have.
    batch
        Pairs in an optimiser step, the drawn ones not counted.
    averaging, epochs, patience, learning_rate, seed, device
        As in `MultiVAE`.
    """

    factors: int = 64
    layers: tuple[int, ...] = (64, 32, 16)
    negatives: int = 8
    averaging: float = 0.998
    epochs: int = 8
    patience: int = 3
    batch: int = 2048
    learning_rate: float = 2e-3
    seed: int = 0
    device: str = "cpu"
    name: ClassVar[str] = "neumf"
    libraries: ClassVar[tuple[tuple[str, str], ...]] = (("torch", "neural"),)
    learns_in_epochs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        _check_learning(self, "factors", "negatives")
        if len(self.layers) < 2 or self.layers[0] % 2:
            raise InputError(
                "layers must be at least two sizes, the first an even one (half of it is the "
                f"user's vector), got {self.layers}"
            )
        for size in self.layers:
            check_integer("each of layers", size, minimum=1)

    def _learn(self, training: Training) -> Weights:
        rng = np.random.default_rng(self.seed)
        learner = Learner(self, self._start(*training.matrix.shape, rng))
        torch = learner.torch

        def epoch(_: int) -> Iterator[Any]:
            for batch in _batches(training.matrix, self.batch, self.negatives, rng):
                asked = (torch.from_numpy(part).to(self.device) for part in batch)
                yield _loss(torch, _logits(torch, learner.tensors, *asked))

        return learner.run(epoch, _score_users, training)

    def _start(
        self, users: int, items: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.float32]]:
        half = self.layers[0] // 2

        def normal(*shape: int) -> npt.NDArray[np.float32]:
            return (_SPREAD * rng.standard_normal(shape)).astype(np.float32)

        start = {
            "user_factors": normal(users, self.factors),
            "item_factors": normal(items, self.factors),
            "user_vectors": normal(users, half),
            "item_vectors": normal(items, half),
            "user_layer": _glorot(rng, half, self.layers[1]),
            "item_layer": _glorot(rng, half, self.layers[1]),
            "offset_1": np.zeros(self.layers[1], dtype=np.float32),
        }
        for depth, (rows, columns) in enumerate(pairwise(self.layers[1:]), start=2):
            start[f"layer_{depth}"] = _glorot(rng, rows, columns)
            start[f"offset_{depth}"] = np.zeros(columns, dtype=np.float32)
        out = _glorot(rng, self.factors + self.layers[-1], 1)[:, 0]
        start["factors_out"], start["network_out"] = np.split(out, [self.factors])
        start["offset_out"] = np.zeros(1, dtype=np.float32)
        return start

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        return _score_users(users, fitted.weights)

    def _score_pairs(self, users: IntArray, items: IntArray, fitted: Fitted) -> Scores:
        weights = fitted.weights
        result = np.empty(items.shape, dtype=np.float32)
        step = max(1, _PAIRS // items.shape[1])
        for start in range(0, len(users), step):
            rows = slice(start, start + step)
            user, item = users[rows], items[rows]
            product = np.einsum(
                "id,ijd->ij",
                weights["user_factors"][user] * weights["factors_out"],
                weights["item_factors"][item],
            )
            from_user, from_item = _first_layer(weights, user, item)
            result[rows] = product + _network(from_user[:, None] + from_item, weights)
        return result


def _batches(
    matrix: scipy.sparse.csr_array, size: int, negatives: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the users of an epoch, and for each a row of items: first one it has, then drawn ones.

    Drawn items that the user has are drawn again, for the whole epoch at once.
    """
    items = matrix.shape[1]
    user = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    keys = np.sort(user * items + matrix.indices)
    order = rng.permutation(len(user))
    user, own = user[order], matrix.indices[order].astype(np.int64)
    owner = np.repeat(user, negatives)
    drawn = rng.integers(items, size=len(owner))
    wrong = np.arange(len(owner))
    for _ in range(_REDRAWS):
        key = owner[wrong] * items + drawn[wrong]
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        wrong = wrong[keys[place] == key]
        if len(wrong) == 0:
            break
        drawn[wrong] = rng.integers(items, size=len(wrong))
    asked = np.column_stack([own, drawn.reshape(len(user), negatives)])
    for start in range(0, len(order), size):
        yield user[start : start + size], asked[start : start + size]


def _logits(torch: Any, weights: dict[str, Any], user: Any, item: Any) -> Any:
    """Return the logits of rows of items, for learning."""
    embed = torch.nn.functional.embedding
    mixed = embed(user, weights["user_factors"]) * weights["factors_out"]
    product = torch.bmm(embed(item, weights["item_factors"]), mixed.unsqueeze(2)).squeeze(2)
    from_user = embed(user, weights["user_vectors"]) @ weights["user_layer"]
    from_item = embed(item, weights["item_vectors"] @ weights["item_layer"])
    hidden = torch.relu(from_user.unsqueeze(1) + from_item + weights["offset_1"])
    for depth in range(2, _depth(weights) + 1):
        hidden = torch.relu(hidden @ weights[f"layer_{depth}"] + weights[f"offset_{depth}"])
    return product + hidden @ weights["network_out"] + weights["offset_out"]


def _loss(torch: Any, logits: Any) -> Any:
    """Return the logistic loss where the first item of each row is the user's."""
    signs = -torch.ones(logits.shape[1], device=logits.device)
    signs[0] = 1.0
    return torch.nn.functional.softplus(-signs * logits).mean()


def _score_users(users: IntArray, weights: Weights) -> Scores:
    """Return the scores of all items, some pairs at a time."""
    scores = (weights["user_factors"][users] * weights["factors_out"]) @ weights["item_factors"].T
    from_user, from_item = _first_layer(weights, users, slice(None))
    step = max(1, _PAIRS // len(from_item))
    for start in range(0, len(users), step):
        rows = slice(start, start + step)
        scores[rows] += _network(from_user[rows, None] + from_item, weights)
    return np.asarray(scores, dtype=np.float32)


def _first_layer(
    weights: Weights, users: IntArray, items: IntArray | slice
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return what users and items add to the first layer, the offset with the users."""
    from_user = weights["user_vectors"][users] @ weights["user_layer"] + weights["offset_1"]
    return from_user, weights["item_vectors"][items] @ weights["item_layer"]


def _network(hidden: npt.NDArray[Any], weights: Weights) -> npt.NDArray[Any]:
    """Return what the network adds, from its first layer before the cut at zero."""
    np.maximum(hidden, 0.0, out=hidden)
    for depth in range(2, _depth(weights) + 1):
        hidden = hidden @ weights[f"layer_{depth}"]
        hidden += weights[f"offset_{depth}"]
        np.maximum(hidden, 0.0, out=hidden)
    return np.asarray(hidden @ weights["network_out"] + weights["offset_out"])


def _depth(weights: Weights | dict[str, Any]) -> int:
    """Return how many layers the network has after its input."""
    return sum(name.startswith("layer_") for name in weights) + 1
