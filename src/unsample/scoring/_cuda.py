"""Exact ranks of factors on a torch device: by Triton kernels on CUDA, else in blocks of rows.

One kernel multiplies a block of users with all blocks of items, and compares the products with the
targets' scores while they are in registers. Only two counts for each user leave the chip. A
target's own score is the diagonal of a product of the same kind. So it has the same rounding as the
scores that it is compared with, and equal scores tie. A third kernel counts the excluded items in
the same way, and they are subtracted.

Rounding decides which of two nearly equal items comes first. ``"float32"`` is as precise as numpy,
with additions in another order. ``"bfloat16"`` keeps seven bits of each factor; products are exact,
and are added up in float32. Targets and items are rounded in the same way. So a rank is wrong only
by items with almost the same score as the target. With random factors (128 factors, 200,000 items,
targets at ranks 1 to 8,000), half of the ranks change, by 0.7 % on average
(``benchmarks/gpu_ranking.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import check_choice, import_extra
from unsample._rules import import_whole
from unsample.errors import InputError, ScoreError
from unsample.scoring._candidates import Candidates
from unsample.scoring._full_rankings import PRECISIONS, Counted
from unsample.scoring._scorers import FactorScores


def _import_if_there(module: str) -> Any:
    try:
        return import_whole(module)
    except ImportError:
        return None


# Without Triton (or with one that is too old to have descriptors) there are no kernels, and
# factors are ranked in blocks of rows.
triton = _import_if_there("triton")
tl = _import_if_there("triton.language")
descriptors = _import_if_there("triton.tools.tensor_descriptor")

#: Targets sent to the device at a time.
_TARGETS = 1 << 18
#: Scores in memory at a time without kernels.
_SCORES = 1 << 26
#: The largest number of factors (a power of two) of a block of users.
_LARGEST_DIM = 128
#: Rows by which the excluded items of a single user are multiplied: the smallest number that the
#: instruction of the main kernel takes, so that the arithmetic is the same.
_MIN_ROWS = 64
_EXCLUDED_AT_ONCE = 64
#: Blocks that keep every processor of a large device busy.
_BLOCKS = 1024
#: Items that are counted at a time: each of a user's eight counters holds 4,095.
_RANGE = 32_000
#: Of each target, how many items beat it, how many others tie, and its own score, as tensors.
_Counts: TypeAlias = "tuple[Any, Any, Any]"


@dataclass(frozen=True)
class Launch:
    """How a kernel reads factors, and the size of a block."""

    precision: str
    users: int
    items: int
    warps: int
    stages: int


#: What suits each precision, found by timing on an H200.
LAUNCHES = {
    # Three products of ten-bit numbers are as precise as one of 23 bits, and faster.
    "float32": Launch("tf32x3", users=128, items=64, warps=8, stages=2),
    "bfloat16": Launch("tf32", users=256, items=64, warps=16, stages=2),
}


def count_on_device(
    factors: FactorScores, candidates: Candidates, *, device: str, precision: str
) -> Iterator[Counted]:
    """Compare targets with all their candidates on a device."""
    check_choice("precision", precision, PRECISIONS)
    torch, chosen = _torch_device(device)
    items = _rounded(torch, factors.item_factors, device=chosen, precision=precision)
    if not bool(torch.isfinite(items).all()):
        raise ScoreError(
            "item factors must be finite, got some that are not; a model that diverged has such "
            f"factors, and so have factors that are too large for {precision}"
        )
    if _is_fused(chosen, items.shape[1]):
        rows = _TARGETS
        count = _by_kernels(torch, factors, items=items, precision=precision)
    else:
        rows = max(1, _SCORES // candidates.items)
        count = _by_products(torch, factors, items=items, precision=precision)
    for at, part in candidates.parts(rows):
        better, equal, own = (array.cpu().numpy() for array in count(part))
        yield at, better.astype(np.int64), equal.astype(np.int64), own


def _torch_device(device: str) -> tuple[Any, Any]:
    """Return torch and a device of it; refuse a device that is not there."""
    torch = import_extra("torch", extra="neural", purpose="Ranking on a device")
    try:
        chosen = torch.device(device)
    except RuntimeError as problem:
        raise InputError(f"device must be one of torch, got {device!r}: {problem}") from problem
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device must be available, got {device!r}, but torch finds no CUDA device; use 'cpu'"
        )
    return torch, chosen


def _is_fused(device: Any, dim: int) -> bool:
    """Return whether there are kernels for this device and number of factors."""
    return device.type == "cuda" and descriptors is not None and dim <= _LARGEST_DIM


def _by_kernels(
    torch: Any, factors: FactorScores, *, items: Any, precision: str
) -> Callable[[Candidates], _Counts]:
    """Return a function that counts by the kernels; ``items`` are rounded factors."""
    launch = LAUNCHES[precision]
    item_factors = _for_kernel(torch, items)
    device = item_factors.device

    def count(part: Candidates) -> _Counts:
        rounded = _rounded(
            torch, factors.user_factors[part.users], device=device, precision=precision
        )
        users = _for_kernel(torch, rounded)
        targets = torch.as_tensor(part.targets, device=device)
        own = own_scores(users, item_factors, targets=targets, launch=launch)
        better, not_worse = count_above(users, item_factors, own=own, launch=launch)
        _, excluded_items = part.excluded
        if len(excluded_items):
            of_user = part.items - 1 - part.others
            begins = np.concatenate([[0], np.cumsum(of_user)])
            fewer_better, fewer_not_worse = count_excluded(
                users,
                item_factors,
                own=own,
                starts=_as_ids(torch, begins, device=device),
                excluded=_as_ids(torch, excluded_items, device=device),
                launch=launch,
            )
            better = better - fewer_better
            not_worse = not_worse - fewer_not_worse
        return better, not_worse - better - 1, own

    return count


def _by_products(
    torch: Any, factors: FactorScores, *, items: Any, precision: str
) -> Callable[[Candidates], _Counts]:
    """Return a function that counts by whole rows of scores, where there are no kernels."""
    # In float32, products of rounded factors are exact, as in the kernel.
    item_factors = items.float()
    device = items.device

    def count(part: Candidates) -> _Counts:
        rounded = _rounded(
            torch, factors.user_factors[part.users], device=device, precision=precision
        )
        scores = rounded.float() @ item_factors.T
        own = scores.gather(1, torch.as_tensor(part.targets, device=device)[:, None])
        better = (scores > own).sum(dim=1)
        not_worse = (scores >= own).sum(dim=1)
        excluded_rows, excluded_items = part.excluded
        if len(excluded_rows):
            row = _as_ids(torch, excluded_rows, device=device)
            excluded = scores[row, _as_ids(torch, excluded_items, device=device)]
            rival = own[row, 0]
            better.index_add_(0, row, (excluded > rival).long(), alpha=-1)
            not_worse.index_add_(0, row, (excluded >= rival).long(), alpha=-1)
        return better, not_worse - better - 1, own[:, 0]

    return count


def _rounded(torch: Any, factors: npt.NDArray[Any], *, device: Any, precision: str) -> Any:
    """Return rounded factors on the device."""
    tensor = torch.as_tensor(np.asarray(factors, dtype=np.float32), device=device)
    return tensor.bfloat16() if precision == "bfloat16" else tensor


def _for_kernel(torch: Any, factors: Any) -> Any:
    """Return factors with zeros added, so that their number is a power of two."""
    dim = max(16, 1 << (factors.shape[1] - 1).bit_length())
    return torch.nn.functional.pad(factors, (0, dim - factors.shape[1])).contiguous()


def _as_ids(torch: Any, ids: npt.NDArray[Any], *, device: Any) -> Any:
    """Return whole numbers as a tensor on the device."""
    return torch.as_tensor(ids.astype(np.int64), device=device)


def own_scores(user_factors: Any, item_factors: Any, targets: Any, launch: Launch) -> Any:
    """Return the score of each user's target, rounded as in `count_above`."""
    import torch

    users, dim = user_factors.shape
    own = user_factors.new_empty(users, dtype=torch.float32)
    _own_kernel[(triton.cdiv(users, _MIN_ROWS),)](
        user_factors, item_factors, targets, own, users,
        dim=dim, rows=_MIN_ROWS, precision=launch.precision, num_warps=4, num_stages=1,
    )  # fmt: skip
    return own


def count_above(user_factors: Any, item_factors: Any, own: Any, launch: Launch) -> tuple[Any, Any]:
    """Return for each user how many items score above ``own``, and how many not below it."""
    users, dim = user_factors.shape
    items = len(item_factors)
    blocks = triton.cdiv(users, launch.users)
    ranges = max(triton.cdiv(_BLOCKS, blocks), triton.cdiv(items, _RANGE))
    span = triton.cdiv(triton.cdiv(items, launch.items), ranges) * launch.items
    # Zeros are read after the last item, up to a whole block. Their scores are zero, and they are
    # counted where a target's own score is below zero: so the counts begin below zero there.
    spare = -items % launch.items
    better = -spare * (own < 0).int()
    not_worse = -spare * (own <= 0).int()
    as_blocks = descriptors.TensorDescriptor.from_tensor
    _above_kernel[(blocks, ranges)](
        as_blocks(user_factors, [launch.users, dim]), as_blocks(item_factors, [launch.items, dim]),
        own, better, not_worse, users, items, span,
        rows=launch.users, columns=launch.items, precision=launch.precision,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return better, not_worse


def count_excluded(
    user_factors: Any, item_factors: Any, own: Any, starts: Any, excluded: Any, launch: Launch
) -> tuple[Any, Any]:
    """Return how many of each user's excluded items score above ``own``, and not below it.

    The excluded items of user i are ``excluded[starts[i] : starts[i + 1]]``.
    """
    import torch

    users, dim = user_factors.shape
    better = own.new_empty(users, dtype=torch.int32)
    not_worse = own.new_empty(users, dtype=torch.int32)
    _excluded_kernel[(users,)](
        user_factors, item_factors, own, starts, excluded, better, not_worse,
        dim=dim, rows=_MIN_ROWS, columns=_EXCLUDED_AT_ONCE, precision=launch.precision,
        num_warps=4,
    )  # fmt: skip
    return better, not_worse


def _kernel(*sizes: str) -> Callable[[Any], Any]:
    """Return a decorator that compiles a kernel, once for all values of some sizes."""
    if tl is None:
        return lambda function: function
    return lambda function: triton.jit(function, do_not_specialize=sizes)


# Parts of a catalogue and of the users have many sizes, and one compiled program serves them.
@_kernel("users", "items", "span")
def _above_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, better, not_worse, users, items, span,
    rows: tl.constexpr,  # type: ignore[name-defined]
    columns: tl.constexpr,  # type: ignore[name-defined]
    precision: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    first = tl.program_id(0) * rows
    row = first + tl.arange(0, rows)
    left = user_factors.load([first, 0])
    rival = tl.load(own + row, mask=row < users, other=float("inf"))[:, None]
    # The distance of two scores, times a unit, times this number is at least 1, or zero for ties.
    huge = 2.0**127
    unit = tl.where(tl.abs(rival) < 1, huge, 1.0)
    tally = tl.zeros([rows, 8], dtype=tl.float32)
    start = tl.program_id(1) * span
    for item in range(start, tl.minimum(start + span, items), columns):
        right = item_factors.load([item, 0]).T
        scores = tl.dot(left, right, input_precision=precision)
        # An item above the target counts 1, a tie 1/4096, and one below 0. This takes three
        # instructions for each score, at twice the rate of comparisons. A thread holds scores of
        # every eighth column, so that these sums need no other thread.
        each = tl.clamp((scores * unit - rival * unit) * huge + 1 / 4096, 0.0, 1.0)
        tally += tl.sum(tl.reshape(each, [rows, columns // 8, 8]), axis=1)
    counts = (tally * 4096).to(tl.int32)
    above = tl.sum(counts // 4096, axis=1)
    level = tl.sum(counts % 4096, axis=1)
    tl.atomic_add(better + row, above, mask=row < users)
    tl.atomic_add(not_worse + row, above + level, mask=row < users)


@_kernel("users")
def _own_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, targets, own, users,
    dim: tl.constexpr,  # type: ignore[name-defined]
    rows: tl.constexpr,  # type: ignore[name-defined]
    precision: tl.constexpr,  # type: ignore[name-defined]
):  # fmt: skip
    index = tl.arange(0, rows)
    row = tl.program_id(0) * rows + index
    factor = tl.arange(0, dim)
    inside = row < users
    left = tl.load(
        user_factors + row[:, None] * dim + factor[None, :], mask=inside[:, None], other=0
    )
    target = tl.load(targets + row, mask=inside, other=0)
    right = tl.load(item_factors + target[None, :] * dim + factor[:, None])
    scores = tl.dot(left, right, input_precision=precision)
    diagonal = tl.sum(tl.where(index[:, None] == index[None, :], scores, 0.0), axis=1)
    tl.store(own + row, diagonal, mask=inside)


@_kernel()
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
    for start in range(tl.load(starts + row), stop, columns):
        at = start + tl.arange(0, columns)
        column = tl.load(excluded + at, mask=at < stop, other=0)
        right = tl.load(item_factors + column[None, :] * dim + factor[:, None])
        # Every row is the same user: the largest of equal scores is any of them.
        scores = tl.max(tl.dot(left, right, input_precision=precision), axis=0)
        above += ((scores > rival) & (at < stop)).to(tl.int32)
        level += ((scores >= rival) & (at < stop)).to(tl.int32)
    tl.store(better + row, tl.sum(above, axis=0))
    tl.store(not_worse + row, tl.sum(level, axis=0))
