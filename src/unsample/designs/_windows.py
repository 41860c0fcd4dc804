"""Rounds of factor models by matrix products, if all targets have their items in one order.

If a guide orders all items, the items of a target in one round are a window of that order, except
for a few that are left out. The windows of many targets overlap, so matrix products score them,
tile by tile. Products are rounded differently from scores of single pairs. So a product decides
only pairs that no rounding can change. A pair with a score close to its target's is scored again on
its own. The counts equal those of single pairs, ties included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.designs._guides import GuidedOrders
from unsample.designs._scan import Scan, Tally
from unsample.designs._scorers import FactorScores, ScoreArray, refuse_infinite_targets
from unsample.designs._tiles import COLUMNS, ROWS, count_where, in_turn

#: The fewest items of a tile, and how many times longer than usual a tile may be.
_FEWEST_COLUMNS, _LONGER = 512, 8
#: Targets whose own scores are asked for at a time, and rows whose norms are computed at a time.
_FOUND_AT_ONCE = 1 << 12


@dataclass(frozen=True, eq=False)
class Windows:
    """Targets, and the windows of their next items in the order of all items."""

    users: IntArray
    own: FloatArray
    start: IntArray
    stop: IntArray
    #: Pairs (row, place) that are left out, in the order of places.
    row: IntArray
    place: IntArray

    def __len__(self) -> int:
        return len(self.users)

    def edges(self, least: int, most: int) -> list[int]:
        """Return where tiles begin and end; they are not much longer than windows."""
        width = min(max(int((self.stop - self.start).mean()) // 4, least), most)
        first, last = int(self.start.min()), int(self.stop.max())
        return [*range(first, last, width), last]


#: How many items beat each target, and the pairs (row, place) that tie.
Counted: TypeAlias = "tuple[IntArray, IntArray, IntArray]"
Count: TypeAlias = Callable[[Windows], Counted]
#: Compares targets with items up to a goal, and yields how many scores that took.
Advance: TypeAlias = Callable[..., Iterator[int]]


def advance_in_order(
    scan: Scan,
    count: Count,
    tally: Tally,
    goal: IntArray,
    *,
    batch: int,
    workers: int = 1,
    rows: int = ROWS,
) -> Iterator[int]:
    """Compare every target with items up to number ``goal``, as `Scan.advance` does.

    Items on lists of users are scored in single pairs. ``count`` compares windows of the order of
    all items, at most ``rows`` at a time.
    """
    orders = scan.orders
    assert orders.guide.order is not None
    listed = np.minimum(goal, orders.listed_others)
    yield from scan.advance(tally, listed, batch=batch, workers=workers)
    left = np.flatnonzero(tally.scored < goal)
    # Windows that begin and end at about the same place come together.
    left = left[np.lexsort([goal[left], tally.scored[left]])]
    for begin in range(0, len(left), _FOUND_AT_ONCE):
        some = left[begin : begin + _FOUND_AT_ONCE]
        fresh = np.isnan(tally.own[some])
        own = tally.own[some]
        if fresh.any():
            own[fresh] = scan.own_scores(some[fresh])
            users, targets = scan.candidates.users[some], scan.candidates.targets[some]
            refuse_infinite_targets(own, users, targets)
        first, last = tally.scored[some], goal[some]
        cuts = [slice(cut, cut + rows) for cut in range(0, len(some), rows)]
        parts = (_windows(orders, some[cut], own[cut], first[cut], last[cut]) for cut in cuts)
        for cut, counted in zip(cuts, in_turn(count, parts, len(cuts)), strict=True):
            better, row, place = counted
            size, none = (last - first)[cut], np.zeros_like(better)
            ties = row, orders.guide.order[place]
            tally.add(some[cut], scan.counted(some[cut], size, better, ties, none, own[cut]))
            yield int(size.sum()) + int(np.count_nonzero(fresh[cut]))


def _windows(
    orders: GuidedOrders, rows: IntArray, own: FloatArray, first: IntArray, last: IntArray
) -> Windows:
    some, listed = orders.rest(rows)
    ends = some.items_at(np.stack([first - listed, last - listed - 1], axis=1))
    row, place = some.excluded
    row = np.concatenate([row, np.arange(len(rows))])
    place = np.concatenate([place, some.targets])
    inside = (place >= ends[row, 0]) & (place <= ends[row, 1])
    row, place = row[inside], place[inside]
    order = np.argsort(place, kind="stable")
    users = orders.candidates.users[rows]
    return Windows(users, own, ends[:, 0], ends[:, 1] + 1, row[order], place[order])


def by_products(factors: FactorScores, order: IntArray) -> Count:
    """Return a function that counts windows of factors on the processor."""
    left, right = factors.folded
    kind = np.result_type(left, right)
    lengths = _lengths(right)

    def count(windows: Windows) -> Counted:
        better = np.zeros(len(windows), dtype=np.int64)
        ties = [(windows.row[:0], windows.place[:0])]
        some, own = left[windows.users], windows.own.astype(kind)
        length = _lengths(some)
        # If there are few rows, tiles are long, because each tile has a fixed cost.
        width = COLUMNS * min(max(ROWS // len(windows), 1), _LONGER)
        mask = np.zeros((len(windows), width), dtype=bool)
        edges = windows.edges(_FEWEST_COLUMNS, width)
        cuts = np.searchsorted(windows.place, edges)
        for at, (first, last) in enumerate(pairwise(edges)):
            here = np.flatnonzero((windows.start < last) & (windows.stop > first))
            if not len(here):
                continue
            items = order[first:last]
            tile = right[items]
            scores = some[here] @ tile.T
            _pass_over(scores, windows, here, first, slice(cuts[at], cuts[at + 1]))
            margin = rounding(kind, tile.shape[1]) * length[here] * lengths[items].max()
            low, high = (own[here] + margin * side for side in (-1, 1))
            low, high = low.astype(kind), high.astype(kind)
            certain = count_where(np.greater, scores, high, mask[: len(here)])
            possible = count_where(np.greater_equal, scores, low, mask[: len(here)])
            better[here] += certain
            near = np.flatnonzero(possible > certain)
            if len(near):
                close = (scores[near] >= low[near, None]) & (scores[near] <= high[near, None])
                row, column = np.nonzero(close)
                row, place = here[near[row]], first + column
                exact = factors.score(windows.users[row], order[place][:, None])[:, 0]
                better += np.bincount(row[exact > own[row]], minlength=len(windows))
                ties.append((row[exact == own[row]], place[exact == own[row]]))
        row, place = (np.concatenate(column) for column in zip(*ties, strict=True))
        return better, row, place

    return count


def rounding(kind: np.dtype[np.floating], factors: int) -> float:
    """Return the largest difference of two sums of the same products, relative to the norms.

    Each sum is off by at most eps / 2 for each product, in any order of additions. Twice that
    allows for the rounding of the limits themselves.
    """
    return 2.0 * (factors + 1) * float(np.finfo(kind).eps)


def _lengths(factors: ScoreArray) -> FloatArray:
    """Return the norm of each row, in double precision."""
    found = np.empty(len(factors))
    for start in range(0, len(factors), _FOUND_AT_ONCE):
        part = factors[start : start + _FOUND_AT_ONCE].astype(np.float64)
        found[start : start + len(part)] = np.sqrt(np.einsum("id,id->i", part, part))
    return found


def _pass_over(
    scores: ScoreArray, windows: Windows, here: IntArray, first: int, cut: slice
) -> None:
    """Set scores outside the windows, and those of items that are left out, to -inf."""
    width = scores.shape[1]
    start, stop = windows.start[here] - first, windows.stop[here] - first
    cropped = np.flatnonzero((start > 0) | (stop < width))
    if len(cropped):
        column = np.arange(width)
        outside = (column < start[cropped, None]) | (column >= stop[cropped, None])
        scores[cropped] = np.where(outside, -np.inf, scores[cropped])
    row, place = windows.row[cut], windows.place[cut]
    if len(row):
        scores[np.searchsorted(here, row), place - first] = -np.inf
