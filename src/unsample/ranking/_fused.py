"""Counting the items above each target on a CUDA device, without ever writing a score.

One kernel multiplies a block of users with one block of items after the other and compares the
products with the targets' scores while they are still in registers; all that leaves the chip is
one count for each user. A target's own score is the diagonal of a product of the same kind, so it
comes from the same arithmetic as the scores it is compared with, and ties are ties. What excluded
items contributed is counted by a third kernel, likewise, and subtracted by the caller.

This module needs Triton; import it only where that is known to be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["Launch", "count_above", "count_excluded", "own_scores"]

#: Rows of users with which a single user's excluded items are multiplied: the least that the
#: instruction of the main kernel takes, so that its arithmetic is the same.
_LEAST_ROWS = 64
_EXCLUDED_AT_ONCE = 64


@dataclass(frozen=True)
class Launch:
    """How the work is cut: users and items in a block, warps, stages, ranges of items."""

    users: int = 128
    items: int = 128
    warps: int = 8
    stages: int = 3
    ranges: int = 8


@triton.jit
def _above_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, better, not_worse, users, items, tiles,
    DIM: tl.constexpr, USERS: tl.constexpr, ITEMS: tl.constexpr,
    PRECISION: tl.constexpr, TIES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * USERS + tl.arange(0, USERS)
    dim = tl.arange(0, DIM)
    inside = row < users
    left = tl.load(user_factors + row[:, None] * DIM + dim[None, :], mask=inside[:, None], other=0)
    rival = tl.load(own + row, mask=inside, other=float("inf"))
    above = tl.zeros([USERS], dtype=tl.int32)
    level = tl.zeros([USERS], dtype=tl.int32)
    first = tl.program_id(1) * tiles
    whole = tl.minimum(first + tiles, items // ITEMS)
    for tile in range(first, whole):
        column = tile * ITEMS + tl.arange(0, ITEMS)
        right = tl.load(item_factors + column[None, :] * DIM + dim[:, None])
        scores = tl.dot(left, right, input_precision=PRECISION)
        above += tl.sum((scores > rival[:, None]).to(tl.int32), axis=1)
        if TIES:
            level += tl.sum((scores >= rival[:, None]).to(tl.int32), axis=1)
    # The last items do not fill a block: their range ends with a masked one.
    if (whole * ITEMS < items) & (whole < first + tiles):
        column = whole * ITEMS + tl.arange(0, ITEMS)
        there = column < items
        right = tl.load(
            item_factors + column[None, :] * DIM + dim[:, None], mask=there[None, :], other=0
        )
        scores = tl.dot(left, right, input_precision=PRECISION)
        above += tl.sum(((scores > rival[:, None]) & there[None, :]).to(tl.int32), axis=1)
        if TIES:
            level += tl.sum(((scores >= rival[:, None]) & there[None, :]).to(tl.int32), axis=1)
    tl.atomic_add(better + row, above, mask=inside)
    if TIES:
        tl.atomic_add(not_worse + row, level, mask=inside)


@triton.jit
def _own_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, targets, own, users,
    DIM: tl.constexpr, USERS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    place = tl.arange(0, USERS)
    row = tl.program_id(0) * USERS + place
    dim = tl.arange(0, DIM)
    inside = row < users
    left = tl.load(user_factors + row[:, None] * DIM + dim[None, :], mask=inside[:, None], other=0)
    target = tl.load(targets + row, mask=inside, other=0)
    right = tl.load(item_factors + target[None, :] * DIM + dim[:, None])
    scores = tl.dot(left, right, input_precision=PRECISION)
    diagonal = tl.sum(tl.where(place[:, None] == place[None, :], scores, 0.0), axis=1)
    tl.store(own + row, diagonal, mask=inside)


@triton.jit
def _excluded_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, starts, columns, better, not_worse,
    DIM: tl.constexpr, ROWS: tl.constexpr, ITEMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    dim = tl.arange(0, DIM)
    same = tl.zeros([ROWS], dtype=tl.int64) + row
    left = tl.load(user_factors + same[:, None] * DIM + dim[None, :])
    rival = tl.load(own + row)
    above = tl.zeros([ITEMS], dtype=tl.int32)
    level = tl.zeros([ITEMS], dtype=tl.int32)
    stop = tl.load(starts + row + 1)
    for place in range(tl.load(starts + row), stop, ITEMS):
        at = place + tl.arange(0, ITEMS)
        column = tl.load(columns + at, mask=at < stop, other=0)
        right = tl.load(item_factors + column[None, :] * DIM + dim[:, None])
        # Every row is the same user: the largest of equal scores is any of them.
        scores = tl.max(tl.dot(left, right, input_precision=PRECISION), axis=0)
        above += ((scores > rival) & (at < stop)).to(tl.int32)
        level += ((scores >= rival) & (at < stop)).to(tl.int32)
    tl.store(better + row, tl.sum(above, axis=0))
    tl.store(not_worse + row, tl.sum(level, axis=0))


def own_scores(
    user_factors: Any, item_factors: Any, targets: Any, *, precision: str, launch: Launch
) -> Any:
    """Return the score of each user's target, by the arithmetic of `count_above`."""
    users, dim = user_factors.shape
    own = torch.empty(users, dtype=torch.float32, device=user_factors.device)
    _own_kernel[(triton.cdiv(users, launch.users),)](
        user_factors, item_factors, targets, own, users,
        DIM=dim, USERS=launch.users, PRECISION=precision, num_warps=launch.warps, num_stages=1,
    )  # fmt: skip
    return own


def count_above(
    user_factors: Any, item_factors: Any, own: Any, *, precision: str, ties: bool, launch: Launch
) -> tuple[Any, Any]:
    """Return for each user how many items score above ``own``, and how many not below it.

    Without ``ties`` the second count is not made, and zero.
    """
    (users, dim), items = user_factors.shape, len(item_factors)
    better, not_worse = (
        torch.zeros(users, dtype=torch.int32, device=own.device) for _ in range(2)
    )
    tiles = triton.cdiv(triton.cdiv(items, launch.items), launch.ranges)
    _above_kernel[(triton.cdiv(users, launch.users), launch.ranges)](
        user_factors, item_factors, own, better, not_worse, users, items, tiles,
        DIM=dim, USERS=launch.users, ITEMS=launch.items, PRECISION=precision, TIES=ties,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return better, not_worse


def count_excluded(
    user_factors: Any, item_factors: Any, own: Any, starts: Any, columns: Any, *, precision: str
) -> tuple[Any, Any]:
    """Return how many of each user's excluded items score above ``own``, and not below it."""
    users, dim = user_factors.shape
    better, not_worse = (
        torch.empty(users, dtype=torch.int32, device=own.device) for _ in range(2)
    )
    _excluded_kernel[(users,)](
        user_factors, item_factors, own, starts, columns, better, not_worse,
        DIM=dim, ROWS=_LEAST_ROWS, ITEMS=_EXCLUDED_AT_ONCE, PRECISION=precision, num_warps=4,
    )  # fmt: skip
    return better, not_worse
