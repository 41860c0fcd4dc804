"""Counting the items above each target on a CUDA device, without ever writing a score.

One kernel multiplies a block of users with one block of items after the other and compares the
products with the targets' scores while they are still in registers; all that leaves the chip is
one count for each user. A target's own score is the diagonal of a product of the same kind, so it
comes from the same arithmetic as the scores it is compared with, and ties are ties. What excluded
items contributed is counted by a third kernel, likewise, and subtracted by the caller.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AVAILABLE",
    "LARGEST_DIM",
    "LAUNCHES",
    "Launch",
    "count_above",
    "count_excluded",
    "own_scores",
]


def _found(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


# Without Triton there are no kernels: whoever wants them looks at `AVAILABLE` first.
triton, tl = _found("triton"), _found("triton.language")
AVAILABLE = tl is not None
#: Most factors (a power of two) that a block of users keeps at hand.
LARGEST_DIM = 128
#: Rows of users with which a single user's excluded items are multiplied: the least that the
#: instruction of the main kernel takes, so that its arithmetic is the same.
_LEAST_ROWS = 64
_EXCLUDED_AT_ONCE = 64


def _kernel(function: Any) -> Any:
    return triton.jit(function) if AVAILABLE else function


@dataclass(frozen=True)
class Launch:
    """How the kernel reads factors, and how the work is cut.

    ``users`` and ``items`` are those of a block, ``ranges`` the parts into which all items are
    cut, so that there are enough blocks for every processor.
    """

    precision: str
    users: int
    items: int
    warps: int
    stages: int
    ranges: int = 8


#: What suits each precision, found by timing on an H200.
LAUNCHES = {
    # Three products of numbers of ten bits each give what one of 23 bits would, and sooner.
    "float32": Launch("tf32x3", users=128, items=64, warps=8, stages=2),
    "tf32": Launch("tf32", users=128, items=64, warps=8, stages=3),
    "bfloat16": Launch("tf32", users=256, items=64, warps=8, stages=3),
}


@_kernel
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


@_kernel
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


@_kernel
def _excluded_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, starts, excluded, better, not_worse,
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
    stop = tl.load(starts + row + 1)
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


def own_scores(user_factors: Any, item_factors: Any, targets: Any, *, launch: Launch) -> Any:
    """Return the score of each user's target, by the arithmetic of `count_above`."""
    import torch

    users, dim = user_factors.shape
    own = user_factors.new_empty(users, dtype=torch.float32)
    _own_kernel[(triton.cdiv(users, launch.users),)](
        user_factors, item_factors, targets, own, users,
        dim=dim, rows=launch.users, precision=launch.precision,
        num_warps=launch.warps, num_stages=1,
    )  # fmt: skip
    return own


def count_above(
    user_factors: Any, item_factors: Any, own: Any, *, ties: bool, launch: Launch
) -> tuple[Any, Any]:
    """Return for each user how many items score above ``own``, and how many not below it.

    Without ``ties`` the second count is not made, and zero.
    """
    import torch

    (users, dim), items = user_factors.shape, len(item_factors)
    better, not_worse = (own.new_zeros(users, dtype=torch.int32) for _ in range(2))
    tiles = triton.cdiv(triton.cdiv(items, launch.items), launch.ranges)
    _above_kernel[(triton.cdiv(users, launch.users), launch.ranges)](
        user_factors, item_factors, own, better, not_worse, users, items, tiles,
        dim=dim, rows=launch.users, columns=launch.items, precision=launch.precision, ties=ties,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return better, not_worse


def count_excluded(
    user_factors: Any, item_factors: Any, own: Any, starts: Any, excluded: Any, *, launch: Launch
) -> tuple[Any, Any]:
    """Return how many of each user's excluded items score above ``own``, and not below it."""
    import torch

    users, dim = user_factors.shape
    better, not_worse = (own.new_empty(users, dtype=torch.int32) for _ in range(2))
    _excluded_kernel[(users,)](
        user_factors, item_factors, own, starts, excluded, better, not_worse,
        dim=dim, rows=_LEAST_ROWS, columns=_EXCLUDED_AT_ONCE, precision=launch.precision,
        num_warps=4,
    )  # fmt: skip
    return better, not_worse
