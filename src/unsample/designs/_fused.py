"""Counting the items above each target on a CUDA device, without writing scores to memory.

One kernel multiplies a block of users with all blocks of items, and compares the products with the
targets' scores while they are in registers. Only one count for each user leaves the chip. A
target's own score is the diagonal of a product of the same kind. So it has the same rounding as the
scores that it is compared with, and equal scores tie. A third kernel counts the excluded items in
the same way, and the caller subtracts them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias


def _found(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


# Without Triton there are no kernels. Callers check `AVAILABLE` first.
triton, tl = _found("triton"), _found("triton.language")
AVAILABLE = tl is not None
#: The largest number of factors (a power of two) of a block of users.
LARGEST_DIM = 128
#: Rows by which the excluded items of a single user are multiplied: the smallest number that the
#: instruction of the main kernel takes, so that the arithmetic is the same.
_LEAST_ROWS = 64
_EXCLUDED_AT_ONCE = 64


def _kernel(*sizes: str) -> Callable[[Any], Any]:
    """Return a decorator that compiles a kernel, once for all values of some sizes."""
    if not AVAILABLE:
        return lambda function: function
    return lambda function: triton.jit(function, do_not_specialize=sizes)


@dataclass(frozen=True)
class Launch:
    """How a kernel reads factors, and how the work is divided.

    ``users`` and ``items`` are the size of a block. All items are divided into ``ranges``, so that
    there are enough blocks for all processors.
    """

    precision: str
    users: int
    items: int
    warps: int
    stages: int
    ranges: int = 8


#: Where the excluded items of each user begin and end, and all of them.
Excluded: TypeAlias = "tuple[Any, Any, Any]"
#: Items whose sums a block holds, and items of a user whose weights are read at a time.
_COLUMNS, _AT_ONCE = 1024, 8
#: At most one of this many pairs may be too close for half precision.
_FEW_OF = 50
#: Pairs that a block scores, and factors that it multiplies at a time.
_PAIRS, _FACTORS = 64, 32
#: Blocks that keep every processor of a large device busy.
_BLOCKS = 1024
#: What suits each precision, found by timing on an H200.
LAUNCHES = {
    # Three products of ten-bit numbers are as precise as one of 23 bits, and faster.
    "float32": Launch("tf32x3", users=128, items=64, warps=8, stages=2),
    "tf32": Launch("tf32", users=128, items=64, warps=8, stages=3),
    "bfloat16": Launch("tf32", users=256, items=64, warps=8, stages=3),
}


# Windows of items have many sizes, and one compiled program serves all of them.
@_kernel("users", "items", "tiles")
def _above_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, better, not_worse, users, items, tiles,
    dim: tl.constexpr,  # type: ignore[name-defined]
    rows: tl.constexpr,  # type: ignore[name-defined]
    columns: tl.constexpr,  # type: ignore[name-defined]
    precision: tl.constexpr,  # type: ignore[name-defined]
    ties: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    factor = tl.arange(0, dim)
    inside = row < users
    left = tl.load(
        user_factors + row[:, None] * dim + factor[None, :], mask=inside[:, None], other=0
    )
    rival = tl.load(own + row, mask=inside, other=float("inf"))
    above = tl.zeros([rows], dtype=tl.int32)
    level = tl.zeros([rows], dtype=tl.int32)
    first = tl.program_id(1) * tiles
    whole = tl.minimum(first + tiles, items // columns)
    inner = tl.arange(0, columns)[None, :] * dim + factor[:, None]
    for tile in range(first, whole):
        right = tl.load(item_factors + tl.cast(tile, tl.int64) * columns * dim + inner)
        scores = tl.dot(left, right, input_precision=precision)
        above += tl.sum((scores > rival[:, None]).to(tl.int32), axis=1)
        if ties:
            level += tl.sum((scores >= rival[:, None]).to(tl.int32), axis=1)
    # The last items do not fill a block: the range that holds them ends with a masked one.
    last = items // columns
    if (last * columns < items) & (first <= last) & (last < first + tiles):
        there = (last * columns + tl.arange(0, columns) < items)[None, :]
        block = item_factors + tl.cast(last, tl.int64) * columns * dim
        right = tl.load(block + inner, mask=there, other=0)
        scores = tl.dot(left, right, input_precision=precision)
        above += tl.sum(((scores > rival[:, None]) & there).to(tl.int32), axis=1)
        if ties:
            level += tl.sum(((scores >= rival[:, None]) & there).to(tl.int32), axis=1)
    tl.atomic_add(better + row, above, mask=inside)
    if ties:
        tl.atomic_add(not_worse + row, level, mask=inside)


@_kernel("users")
def _own_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, targets, own, users,
    dim: tl.constexpr,  # type: ignore[name-defined]
    rows: tl.constexpr,  # type: ignore[name-defined]
    precision: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    place = tl.arange(0, rows)
    row = tl.program_id(0) * rows + place
    factor = tl.arange(0, dim)
    inside = row < users
    left = tl.load(
        user_factors + row[:, None] * dim + factor[None, :], mask=inside[:, None], other=0
    )
    target = tl.load(targets + row, mask=inside, other=0)
    right = tl.load(item_factors + target[None, :] * dim + factor[:, None])
    scores = tl.dot(left, right, input_precision=precision)
    diagonal = tl.sum(tl.where(place[:, None] == place[None, :], scores, 0.0), axis=1)
    tl.store(own + row, diagonal, mask=inside)


@_kernel()
def _excluded_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, starts, stops, excluded, better, not_worse,
    dim: tl.constexpr,  # type: ignore[name-defined]
    rows: tl.constexpr,  # type: ignore[name-defined]
    columns: tl.constexpr,  # type: ignore[name-defined]
    precision: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    row = tl.program_id(0)
    factor = tl.arange(0, dim)
    same = tl.zeros([rows], dtype=tl.int64) + row
    left = tl.load(user_factors + same[:, None] * dim + factor[None, :])
    rival = tl.load(own + row)
    above = tl.zeros([columns], dtype=tl.int32)
    level = tl.zeros([columns], dtype=tl.int32)
    stop = tl.load(stops + row)
    for place in range(tl.load(starts + row), stop, columns):
        at = place + tl.arange(0, columns)
        column = tl.load(excluded + at, mask=at < stop, other=0)
        right = tl.load(item_factors + column[None, :] * dim + factor[:, None])
        # Every row is the same user: the largest of equal scores is any of them.
        scores = tl.max(tl.dot(left, right, input_precision=precision), axis=0)
        above += ((scores > rival) & (at < stop)).to(tl.int32)
        level += ((scores >= rival) & (at < stop)).to(tl.int32)
    tl.store(better + row, tl.sum(above, axis=0))
    tl.store(not_worse + row, tl.sum(level, axis=0))


@_kernel("pairs")
def _pairs_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, who, what, scores, pairs, dim,
    width: tl.constexpr,  # type: ignore[name-defined]
    rows: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    row = tl.cast(tl.program_id(0), tl.int64) * rows + tl.arange(0, rows)
    inside = row < pairs
    user = tl.load(who + row, mask=inside, other=0)
    item = tl.load(what + row, mask=inside, other=0)
    sums = tl.zeros([rows, width], dtype=tl.float64)
    for first in range(0, dim, width):
        factor = first + tl.arange(0, width)
        there = inside[:, None] & (factor < dim)[None, :]
        left = tl.load(user_factors + user[:, None] * dim + factor[None, :], mask=there, other=0)
        right = tl.load(item_factors + item[:, None] * dim + factor[None, :], mask=there, other=0)
        sums += left.to(tl.float64) * right.to(tl.float64)
    tl.store(scores + row, tl.sum(sums, axis=1).to(scores.dtype.element_ty), mask=inside)


@_kernel()
def _rough_kernel(  # type: ignore[no-untyped-def]
    halves, starts, history, values, bias, newcomers, own, counted, better, equal, near, found,
    most, items, stride, unit, least,
    columns: tl.constexpr,  # type: ignore[name-defined]
    at_once: tl.constexpr,  # type: ignore[name-defined]
    biased: tl.constexpr,  # type: ignore[name-defined]
    welcome: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    # Users come first: those at work at a time read the same columns of the weights.
    row = tl.cast(tl.program_id(0), tl.int64)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    inside = column < items
    first = tl.load(starts + row)
    last = tl.load(starts + row + 1)
    sums = tl.zeros([columns], dtype=tl.float32)
    size = tl.zeros([columns], dtype=tl.float32)
    weight = 0.0
    whole = first + (last - first) // at_once * at_once
    for start in range(first, whole, at_once):
        for step in tl.static_range(at_once):
            value = tl.load(values + start + step)
            line = halves + tl.load(history + start + step).to(tl.int64) * stride
            part = value * tl.load(line + column).to(tl.float32)
            sums += part
            size += tl.abs(part)
            weight += tl.abs(value)
    for start in range(whole, last):
        value = tl.load(values + start)
        line = halves + tl.load(history + start).to(tl.int64) * stride
        part = value * tl.load(line + column).to(tl.float32)
        sums += part
        size += tl.abs(part)
        weight += tl.abs(value)
    # Halves have eleven bits; sums of n products in single precision are off by n more roundings.
    relative = 0.000489 + (last - first + 4) * 0.00000012
    sums = sums * unit
    size = size * unit * relative + weight * least
    if biased:
        more = tl.load(bias + column, mask=inside, other=0).to(tl.float32)
        sums += more
        size += tl.where(last > first, tl.abs(sums) * 0.00000024 + tl.abs(more) * 0.00000012, 0.0)
    if welcome:
        strangers = tl.load(newcomers + column, mask=inside & (first == last), other=0)
        sums = tl.where(first == last, strangers.to(tl.float32), sums)
    rival = tl.load(own + row).to(tl.float32)
    size += tl.where(last > first, tl.abs(rival) * 0.00000012, 0.0)
    among = tl.load(counted + row * items + column, mask=inside, other=0) != 0
    above = (sums - size > rival) & among
    close = (sums + size >= rival) & among & (sums - size <= rival)
    tl.atomic_add(better + row, tl.sum(above.to(tl.int32), axis=0))
    if last == first:
        tl.atomic_add(equal + row, tl.sum(close.to(tl.int32), axis=0))
    elif tl.max(close.to(tl.int32), axis=0) > 0:
        slot = tl.atomic_add(found + column * 0, 1, mask=close)
        tl.store(near + slot, row * items + column, mask=close & (slot < most))


@_kernel()
def _exact_kernel(  # type: ignore[no-untyped-def]
    weights, starts, history, values, bias, newcomers, pairs, scores, items,
    at_once: tl.constexpr,  # type: ignore[name-defined]
    biased: tl.constexpr,  # type: ignore[name-defined]
    welcome: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    pair = tl.load(pairs + tl.program_id(0))
    row = pair // items
    column = pair - row * items
    first = tl.load(starts + row)
    last = tl.load(starts + row + 1)
    sums = tl.zeros([at_once], dtype=tl.float64)
    for start in range(first, last, at_once):
        at = start + tl.arange(0, at_once)
        item = tl.load(history + at, mask=at < last, other=0).to(tl.int64)
        value = tl.load(values + at, mask=at < last, other=0).to(tl.float64)
        sums += value * tl.load(weights + item * items + column).to(tl.float64)
    score = tl.sum(sums, axis=0)
    if biased:
        score += tl.load(bias + column).to(tl.float64)
    if welcome:
        strangers = tl.load(newcomers + column).to(tl.float64)
        score = tl.where(first == last, strangers, score)
    tl.store(scores + tl.program_id(0), score.to(scores.dtype.element_ty))


def own_scores(user_factors: Any, item_factors: Any, targets: Any, *, launch: Launch) -> Any:
    """Return the score of each user's target, rounded as in `count_above`."""
    import torch

    users, dim = user_factors.shape
    own = user_factors.new_empty(users, dtype=torch.float32)
    _own_kernel[(triton.cdiv(users, launch.users),)](
        user_factors, item_factors, targets, own, users,
        dim=dim, rows=launch.users, precision=launch.precision,
        num_warps=launch.warps, num_stages=1,
    )  # fmt: skip
    return own


def score_pairs(user_factors: Any, item_factors: Any, users: Any, items: Any) -> Any:
    """Return the scores of items (a row for each of ``users``), added up in double precision.

    A score does not depend on the other pairs of the call.
    """
    who, what = users.repeat_interleave(items.shape[1]), items.reshape(-1)
    scores = user_factors.new_empty(len(what))
    if len(what):
        _pairs_kernel[(triton.cdiv(len(what), _PAIRS),)](
            user_factors, item_factors, who, what, scores, len(what), user_factors.shape[1],
            width=_FACTORS, rows=_PAIRS, num_warps=4,
        )  # fmt: skip
    return scores.reshape(items.shape)


def count_above(
    user_factors: Any, item_factors: Any, own: Any, *, ties: bool, launch: Launch
) -> tuple[Any, Any]:
    """Return for each user how many items score above ``own``, and how many not below it.

    Without ``ties`` the second count is zero.
    """
    import torch

    (users, dim), items = user_factors.shape, len(item_factors)
    blocks = triton.cdiv(users, launch.users)
    launch = replace(launch, ranges=max(launch.ranges, triton.cdiv(_BLOCKS, blocks)))
    better, not_worse = (own.new_zeros(users, dtype=torch.int32) for _ in range(2))
    tiles = triton.cdiv(triton.cdiv(items, launch.items), launch.ranges)
    _above_kernel[(blocks, launch.ranges)](
        user_factors, item_factors, own, better, not_worse, users, items, tiles,
        dim=dim, rows=launch.users, columns=launch.items, precision=launch.precision, ties=ties,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return better, not_worse


def count_excluded(
    user_factors: Any, item_factors: Any, own: Any, excluded: Excluded, *, launch: Launch
) -> tuple[Any, Any]:
    """Return how many of each user's excluded items score above ``own``, and not below it."""
    import torch

    users, dim = user_factors.shape
    better, not_worse = (own.new_empty(users, dtype=torch.int32) for _ in range(2))
    _excluded_kernel[(users,)](
        user_factors, item_factors, own, *excluded, better, not_worse,
        dim=dim, rows=_LEAST_ROWS, columns=_EXCLUDED_AT_ONCE, precision=launch.precision,
        num_warps=4,
    )  # fmt: skip
    return better, not_worse


@dataclass(frozen=True)
class Sums:
    """Item-item weights on a device, and a copy in half precision.

    Sums of the copy decide all pairs that are not closer than its rounding. The others are added up
    again in double precision, as is the target's own score. So equal scores tie.
    """

    weights: Any
    bias: Any
    newcomers: Any
    #: Rows are filled to whole blocks, so that no column needs a mask and loads are aligned.
    halves: Any
    unit: float

    @classmethod
    def of(cls, weights: Any, bias: Any, newcomers: Any) -> Sums:
        """Round the weights, scaled so that none is too large for half precision."""
        import torch

        largest = max(float(weights.abs().max()), 1e-30)
        unit = 2.0 ** (math.ceil(math.log2(largest)) - 15)
        had, items = weights.shape
        width = -(-items // _COLUMNS) * _COLUMNS
        halves = weights.new_zeros((had, width), dtype=torch.float16)
        halves[:, :items] = weights / unit
        return cls(weights, bias, newcomers, halves, unit)

    def count(self, history: Excluded, targets: Any, counted: Any) -> tuple[Any, Any, Any] | None:
        """Return how many items score above each target, how many tie, and its own score.

        ``history`` has the begin of each user's items, all items, and their values. Only items that
        are marked in ``counted`` (users x items) count. None if too many are close.
        """
        import torch

        (users, items), (starts, had, values) = counted.shape, history
        values32, place = values.float(), counted.device
        rows = torch.arange(users, device=place)
        own = self._scores(history, rows * items + targets)
        better, equal = (torch.zeros(users, dtype=torch.int32, device=place) for _ in range(2))
        most = users * items // _FEW_OF + 1
        near = torch.empty(most, dtype=torch.int64, device=place)
        found = torch.zeros(1, dtype=torch.int32, device=place)
        stride = self.halves.shape[1]
        _rough_kernel[(users, stride // _COLUMNS)](
            self.halves, starts, had, values32, *self._more, own, counted, better, equal, near,
            found, most, items, stride, self.unit, self.unit * 2.0**-25, columns=_COLUMNS,
            at_once=_AT_ONCE, **self._flags, num_warps=_COLUMNS // 256,
        )  # fmt: skip
        count = int(found)
        if count > most:
            return None
        pairs = near[:count]
        scores, row = self._scores(history, pairs), pairs // items
        for counts, which in ((better, scores > own[row]), (equal, scores == own[row])):
            counts.index_add_(0, row, which.int())
        return better, equal, own

    def _scores(self, history: Excluded, pairs: Any) -> Any:
        scores = self.weights.new_empty(len(pairs))
        if len(pairs):
            _exact_kernel[(len(pairs),)](
                self.weights, *history, *self._more, pairs, scores, self.weights.shape[1],
                at_once=64, **self._flags, num_warps=1,
            )  # fmt: skip
        return scores

    @property
    def _more(self) -> tuple[Any, Any]:
        return tuple(self.weights if each is None else each for each in (self.bias, self.newcomers))

    @property
    def _flags(self) -> dict[str, bool]:
        return {"biased": self.bias is not None, "welcome": self.newcomers is not None}
