"""Full ranks of item-item models on the processor, tile by tile.

A product of sparse rows and a dense matrix is slow because of memory: it reads a whole row of
weights for every item of every user. Here a tile of columns is multiplied for many users at a time,
item by item. A row of the tile is read once for all users with that item, and the sums of the users
stay in the cache, where they are compared. Sums are made in the order of items, as in the plain
product, and are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample._checks import BoolArray, IntArray
from unsample.designs._item_item import ItemItemScores
from unsample.designs._scan import Candidates
from unsample.designs._scorers import ScoreArray
from unsample.designs._tiles import WORD, Compared, Rivals, Tiled, add_up, in_turn

#: Users and items of a tile. Products of sparse weights are faster with long rows.
_ROWS, _COLUMNS = 2048, 256
_SPARSE_ROWS, _SPARSE_COLUMNS = 256, 2040
#: Targets that share one copy of each tile of weights.
_TARGETS = 1 << 15


def count_item_item(model: ItemItemScores, candidates: Candidates) -> Iterator[Tiled]:
    """Compare targets with all their candidates."""
    dense = isinstance(model.weights, np.ndarray)
    rows, width = (_ROWS, _COLUMNS) if dense else (_SPARSE_ROWS, _SPARSE_COLUMNS)
    edges = np.append(np.arange(0, candidates.items, width), candidates.items)
    weights: Any = model.weights
    if not dense:
        weights = weights.tocsc()
    for place, part in candidates.parts(_TARGETS):
        blocks = [_Block.of(model, some, edges) for _, some in part.parts(rows)]

        def count(at: int, blocks: list[_Block] = blocks) -> Compared:
            tile = weights[:, edges[at] : edges[at + 1]]
            tile = np.ascontiguousarray(tile) if dense else tile.tocsr()
            found = [block.count(at, tile) for block in blocks]
            better, not_worse, moved = map(np.concatenate, zip(*found, strict=True))
            return better, not_worse, moved

        own = np.concatenate([block.rivals.own for block in blocks])
        tiles = len(edges) - 1
        yield place, *add_up(own, in_turn(count, range(tiles), tiles))


@dataclass(frozen=True, eq=False)
class _Block:
    """The histories of some targets' users, and the scores of the targets."""

    model: ItemItemScores
    #: Stored by item if weights are dense, so that all users with an item come together.
    history: Any
    row_of: IntArray
    new: BoolArray
    rivals: Rivals

    @classmethod
    def of(cls, model: ItemItemScores, part: Candidates, edges: IntArray) -> _Block:
        users, row_of = np.unique(part.users, return_inverse=True)
        some = model.history[users]
        new = np.diff(some.indptr) == 0
        history = some.tocsc() if isinstance(model.weights, np.ndarray) else some
        rivals = Rivals.of(part, own_sums(model, part), edges)
        return cls(model, history, row_of, new, rivals)

    def count(self, at: int, tile: Any) -> Compared:
        """Compare targets with the items of a tile; rank all again if a sum is not finite."""
        edges, row_of = self.rivals.edges, self.row_of
        product: Any = self.history @ tile
        sums = np.asarray(product if isinstance(product, np.ndarray) else product.toarray())
        with np.errstate(invalid="ignore", over="ignore"):
            finite = bool(np.isfinite(sums.sum()))
        scores = self.model.finished(sums, self.new, slice(int(edges[at]), int(edges[at + 1])))
        if len(scores) < len(row_of):
            scores = scores[row_of]
        mask = np.zeros((len(row_of), -(-scores.shape[1] // WORD) * WORD), dtype=bool)
        better, not_worse, moved = self.rivals.count(at, scores, mask)
        return better, not_worse, moved | (not finite)


def own_sums(model: ItemItemScores, part: Candidates) -> ScoreArray:
    """Return the targets' scores, added up in the order of items as in a product."""
    from scipy.sparse import csr_array

    some = model.history[part.users]
    length = np.diff(some.indptr)
    targets = np.repeat(part.targets, length)
    weights: Any = model.weights[some.indices, targets]
    data = some.data * np.asarray(weights).reshape(-1)
    sums = csr_array((data, some.indices, some.indptr), shape=some.shape) @ np.ones(
        some.shape[1], dtype=data.dtype
    )
    if model.item_bias is not None:
        sums = sums + model.item_bias[part.targets]
    if model.newcomers is not None:
        sums = np.where(length == 0, model.newcomers[part.targets], sums)
    return np.asarray(sums)
