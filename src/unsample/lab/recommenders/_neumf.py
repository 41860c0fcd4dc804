"""NeuMF: a product of factors and a small network, added up (He et al., 2017).

PyTorch learns; scores are plain numpy, so a saved recommender needs no PyTorch. The first layer
of the network is linear in the user plus linear in the item, so both halves are computed once for
each user and item rather than once for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_integer, check_real
from unsample.errors import InputError
from unsample.lab.recommenders._base import (
    BaseRecommender,
    Fitted,
    Scores,
    Training,
    Weights,
    check_seed,
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

__all__ = ["NeuMF"]

#: Pairs whose hidden layers are held at a time while scoring.
_PAIRS = 1 << 18
#: Times a negative that the user has is drawn again before it is let through.
_REDRAWS = 16
#: Spread of the first embeddings.
_SPREAD = 0.01


@dataclass(frozen=True)
class NeuMF(BaseRecommender):
    """Learn to tell the items a user has from drawn ones, by logistic loss.

    Parameters
    ----------
    factors
        Dimensions of the vectors whose products are summed.
    layers
        Sizes of the network's layers; the first is the user's and the item's vector together.
    negatives
        Items drawn for each pair and epoch, among those the user does not have.
    averaging
        Largest share of its old value that the running mean of the weights keeps at a step; that
        mean is what scores. Zero takes the last weights as they are.
    epochs, patience
        Most epochs, and how many without a better validation result end the learning.
    batch
        Pairs in an optimiser step, the drawn ones not counted.
    learning_rate
        Step size of Adam.
    seed
        Seed of everything random.
    device
        Where to learn: ``"cpu"``, ``"cuda"``, or another device of PyTorch.
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
    learns_in_epochs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        for name in ("factors", "negatives", "epochs", "patience", "batch"):
            check_integer(name, getattr(self, name), minimum=1)
        if len(self.layers) < 2 or self.layers[0] % 2:
            raise InputError(
                "layers must be at least two sizes, the first an even one (half of it is the "
                f"user's vector), got {self.layers}"
            )
        for size in self.layers:
            check_integer("each of layers", size, minimum=1)
        check_real("averaging", self.averaging, low=0.0, high=1.0, open_high=True)
        check_real("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_seed(self.seed)

    def _learn(self, training: Training) -> Weights:
        torch = torch_for(self.device, "NeuMF")
        rng = np.random.default_rng(self.seed)
        users, items = training.matrix.shape
        learner = Learner(
            torch,
            self._start(users, items, rng),
            device=self.device,
            learning_rate=self.learning_rate,
            averaging=self.averaging,
        )
        pairs = _Pairs.of(training.matrix)

        def run_epoch(epoch: int) -> float:
            losses = []
            for batch in pairs.batches(self.batch, self.negatives, rng):
                asked = (torch.from_numpy(part).to(self.device) for part in batch)
                logits = _logits(torch, learner.tensors, *asked)
                losses.append(learner.step(_loss(torch, logits)))
            return float(torch.stack(losses).mean())

        return learn_in_epochs(
            run_epoch,
            learner.weights,
            validation_quality(training, _score_users),
            Schedule(self.epochs, self.patience),
            training,
        )

    def _start(
        self, users: int, items: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.float32]]:
        half = self.layers[0] // 2

        def normal(*shape: int) -> npt.NDArray[np.float32]:
            return (_SPREAD * rng.standard_normal(shape)).astype(np.float32)

        def glorot(rows: int, columns: int) -> npt.NDArray[np.float32]:
            bound = np.sqrt(6.0 / (rows + columns))
            return rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)

        start = {
            "user_factors": normal(users, self.factors),
            "item_factors": normal(items, self.factors),
            "user_vectors": normal(users, half),
            "item_vectors": normal(items, half),
            "user_layer": glorot(half, self.layers[1]),
            "item_layer": glorot(half, self.layers[1]),
            "offset_1": np.zeros(self.layers[1], dtype=np.float32),
        }
        for depth, (rows, columns) in enumerate(pairwise(self.layers[1:]), start=2):
            start[f"layer_{depth}"] = glorot(rows, columns)
            start[f"offset_{depth}"] = np.zeros(columns, dtype=np.float32)
        out = glorot(self.factors + self.layers[-1], 1)[:, 0]
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


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The training pairs, and which keys ``user * items + item`` they are (sorted)."""

    user: IntArray
    item: IntArray
    key: IntArray
    items: int

    @classmethod
    def of(cls, matrix: scipy.sparse.csr_array) -> _Pairs:
        user = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        item = matrix.indices.astype(np.int64)
        return cls(user, item, np.sort(user * matrix.shape[1] + item), matrix.shape[1])

    def batches(
        self, size: int, negatives: int, rng: np.random.Generator
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield users, and for each a row of items: first one it has, then drawn ones."""
        order = rng.permutation(len(self.user))
        user = self.user[order]
        asked = np.column_stack([self.item[order], self._drawn(user, negatives, rng)])
        for start in range(0, len(order), size):
            yield user[start : start + size], asked[start : start + size]

    def _drawn(self, user: IntArray, negatives: int, rng: np.random.Generator) -> IntArray:
        """Draw items for a whole epoch at once; those the user has are drawn again."""
        owner = np.repeat(user, negatives)
        drawn = rng.integers(self.items, size=len(owner))
        wrong = np.arange(len(owner))
        for _ in range(_REDRAWS):
            key = owner[wrong] * self.items + drawn[wrong]
            place = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
            wrong = wrong[self.key[place] == key]
            if len(wrong) == 0:
                break
            drawn[wrong] = rng.integers(self.items, size=len(wrong))
        return drawn.reshape(len(user), negatives)


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
