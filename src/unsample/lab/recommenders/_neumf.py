"""NeuMF: products of factors and a network on top, together (He et al., 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.lab.recommenders._network import Batch, Network, glorot
from unsample.lab.recommenders._recommender import FittedRecommender, Scores, Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Pairs whose hidden layers are held at a time while scoring.
_PAIRS = 1 << 18
#: How often a negative that the user has is drawn again before it is accepted.
_REDRAWS = 16
#: Standard deviation of the first embeddings.
_DEVIATION = 0.01


@dataclass(frozen=True)
class NeuMF(Network):
    """Learn which items a user has, and which were drawn, by logistic loss.

    The first of ``layers`` is the user's and the item's vector together, so its size is even.
    ``negatives`` items are drawn for each pair and epoch, among those the user does not have. A
    batch counts pairs, the drawn ones apart.
    """

    factors: int = 64
    layers: tuple[int, ...] = (64, 32, 16)
    negatives: int = 8
    averaging: float = 0.998
    epochs: int = 8
    batch: int = 2048
    learning_rate: float = 2e-3
    seed: int = 0
    device: str = "cpu"
    name: ClassVar[str] = "neumf"

    def _start(
        self, users: int, items: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.float32]]:
        half = self.layers[0] // 2

        def normal(*shape: int) -> npt.NDArray[np.float32]:
            return (_DEVIATION * rng.standard_normal(shape)).astype(np.float32)

        start = {
            "user_factors": normal(users, self.factors),
            "item_factors": normal(items, self.factors),
            "user_vectors": normal(users, half),
            "item_vectors": normal(items, half),
            "user_layer": glorot(rng, half, columns=self.layers[1]),
            "item_layer": glorot(rng, half, columns=self.layers[1]),
            "offset_1": np.zeros(self.layers[1], dtype=np.float32),
        }
        for depth, (rows, columns) in enumerate(pairwise(self.layers[1:]), start=2):
            start[f"layer_{depth}"] = glorot(rng, rows, columns=columns)
            start[f"offset_{depth}"] = np.zeros(columns, dtype=np.float32)
        out = glorot(rng, self.factors + self.layers[-1], columns=1)[:, 0]
        start["factors_out"], start["network_out"] = np.split(out, [self.factors])
        start["offset_out"] = np.zeros(1, dtype=np.float32)
        return start

    def _batches(self, matrix: csr_array, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield users, and for each a row of items: first one it has, then drawn ones.

        Drawn items that the user has are drawn again, for the whole epoch at once.
        """
        items = matrix.shape[1]
        user = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        keys = np.sort(user * items + matrix.indices)
        order = rng.permutation(len(user))
        user = user[order]
        own = matrix.indices[order].astype(np.int64)
        owner = np.repeat(user, self.negatives)
        drawn = rng.integers(items, size=len(owner))
        to_check = np.arange(len(owner))
        for _ in range(_REDRAWS):
            key = owner[to_check] * items + drawn[to_check]
            index = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            owned = to_check[keys[index] == key]
            if len(owned) == 0:
                break
            drawn[owned] = rng.integers(items, size=len(owned))
            to_check = owned
        asked = np.column_stack([own, drawn.reshape(len(user), self.negatives)])
        for start in range(0, len(order), self.batch):
            yield user[start : start + self.batch], asked[start : start + self.batch]

    def _loss(self, weights: Weights, batch: Sequence[Any], *, epoch: int, noise: Any) -> Any:
        """Return the logistic loss, where the first item of each row is the user's."""
        import torch

        signs = -torch.ones(1 + self.negatives, device=self.device)
        signs[0] = 1.0
        return torch.nn.functional.softplus(-signs * _logits(weights, *batch)).mean()

    def _score_users(self, users: IntArray, fitted: FittedRecommender) -> Scores:
        """Return the scores of all items, some users at a time."""
        import torch

        weights = fitted.weights
        items = len(weights["item_factors"])
        device = weights["item_factors"].device
        step = max(1, _PAIRS // items)
        blocks = [np.empty((0, items), dtype=np.float32)]
        with torch.no_grad():
            for start in range(0, len(users), step):
                user = torch.from_numpy(users[start : start + step]).to(device)
                blocks.append(_logits(weights, user).cpu().numpy())
        return np.concatenate(blocks)


def _logits(weights: Weights, user: Any, item: Any = None) -> Any:
    """Return the logits of a row of items for each user, or of all items without ``item``."""
    import torch

    embed = torch.nn.functional.embedding
    mixed = embed(user, weights["user_factors"]) * weights["factors_out"]
    from_item = weights["item_vectors"] @ weights["item_layer"]
    if item is None:
        product = mixed @ weights["item_factors"].T
    else:
        factors = embed(item, weights["item_factors"])
        product = torch.bmm(factors, mixed.unsqueeze(2)).squeeze(2)
        from_item = embed(item, from_item)
    from_user = embed(user, weights["user_vectors"]) @ weights["user_layer"]
    hidden = torch.relu(from_user.unsqueeze(1) + from_item + weights["offset_1"])
    depth = 2
    while f"layer_{depth}" in weights:
        hidden = torch.relu(hidden @ weights[f"layer_{depth}"] + weights[f"offset_{depth}"])
        depth += 1
    return product + hidden @ weights["network_out"] + weights["offset_out"]
