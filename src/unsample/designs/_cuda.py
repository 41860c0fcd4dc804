"""Exact ranks on a torch device: factors by Triton kernels on CUDA, all else in blocks of rows.

One kernel multiplies a block of users with all blocks of items, and compares the products with the
targets' scores while they are in registers. Only two counts for each user leave the chip. A
target's own score is the diagonal of a product of the same kind. So it has the same rounding as the
scores that it is compared with, and equal scores tie. A third kernel counts the excluded items in
the same way, and they are subtracted.

Rounding decides which of two nearly equal items comes first. ``"float32"`` is as precise as numpy,
with additions in another order. ``"tf32"`` keeps ten bits of each factor and ``"bfloat16"`` seven;
their products are exact, and are added up in float32. Targets and items are rounded in the same
way. So a rank is wrong only by items with almost the same score as the target. With random factors
(128 factors, 200,000 items, targets at ranks 1 to 8,000), 0 %, 27 % and 52 % of the ranks change,
by 0.1 % (tf32) and 0.7 % (bfloat16) on average (``benchmarks/gpu_ranking.py``).
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import check_choice, import_extra
from unsample.designs._item_item import ItemItemScores
from unsample.designs._scan import Candidates
from unsample.designs._scorers import FactorScores, Scorer, as_scores
from unsample.designs._tiles import Counted
from unsample.errors import InputError, ScoreError


def _found(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


# Without Triton there are no kernels, and factors are ranked in blocks of rows.
triton, tl = _found("triton"), _found("triton.language")

PRECISIONS = ("float32", "tf32", "bfloat16")
#: Targets sent to the device at a time, and scores in memory at a time without kernels.
_TARGETS, _SCORES = 1 << 18, 1 << 26
#: The largest number of factors (a power of two) of a block of users.
_LARGEST_DIM = 128
#: Rows by which the excluded items of a single user are multiplied: the smallest number that the
#: instruction of the main kernel takes, so that the arithmetic is the same.
_LEAST_ROWS = 64
_EXCLUDED_AT_ONCE = 64
#: Blocks that keep every processor of a large device busy.
_BLOCKS = 1024
#: Of each target, how many items beat it, how many others tie, and its own score, as tensors.
_Counts: TypeAlias = "tuple[Any, Any, Any]"


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


#: What suits each precision, found by timing on an H200.
LAUNCHES = {
    # Three products of ten-bit numbers are as precise as one of 23 bits, and faster.
    "float32": Launch("tf32x3", users=128, items=64, warps=8, stages=2),
    "tf32": Launch("tf32", users=128, items=64, warps=8, stages=3),
    "bfloat16": Launch("tf32", users=256, items=64, warps=8, stages=3),
}


def count_on_device(
    scorer: Scorer, candidates: Candidates, device: str, precision: str
) -> Iterator[Counted]:
    """Compare targets with all their candidates on a device."""
    check_choice("precision", precision, PRECISIONS)
    torch, place = _place(device, precision)
    rows = max(1, _SCORES // candidates.items)
    if scorer.factors is None:
        assert scorer.item_item is not None
        count = _by_weights(torch, scorer.item_item, place, precision)
    elif _is_fused(place, scorer.factors.folded[1].shape[1]):
        rows, count = _TARGETS, _by_kernels(torch, scorer.factors, place, precision)
    else:
        count = _by_products(torch, scorer.factors, place, precision)
    for at, part in candidates.parts(rows):
        better, equal, own = (array.cpu().numpy() for array in count(part))
        yield at, better.astype(np.int64), equal.astype(np.int64), own


def _place(device: str, precision: str) -> tuple[Any, Any]:
    """Return torch and a device of it; refuse a device that is not there."""
    torch = import_extra("torch", extra="neural", purpose="Ranking on a device")
    try:
        place = torch.device(device)
    except RuntimeError as problem:
        raise InputError(f"device must be one of torch, got {device!r}: {problem}") from problem
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device must be available, got {device!r}, but torch finds no CUDA device; use 'cpu'"
        )
    if precision == "tf32" and place.type != "cuda":
        raise InputError(
            f"precision must be 'float32' or 'bfloat16' on {place.type}, got 'tf32', which only "
            "CUDA devices have"
        )
    return torch, place


def _is_fused(place: Any, dim: int) -> bool:
    """Return whether there are kernels for this device and number of factors."""
    return place.type == "cuda" and tl is not None and dim <= _LARGEST_DIM


def _by_kernels(
    torch: Any, factors: FactorScores, place: Any, precision: str
) -> Callable[[Candidates], _Counts]:
    launch, left = LAUNCHES[precision], factors.folded[0]
    items = _for_kernel(torch, _item_factors(torch, factors, place, precision))

    def count(part: Candidates) -> _Counts:
        users = _for_kernel(torch, _rounded(torch, left[part.users], place, precision))
        own = own_scores(users, items, torch.as_tensor(part.targets, device=place), launch)
        better, not_worse = count_above(users, items, own, launch)
        if len(part.excluded[0]):
            begins = np.concatenate([[0], np.cumsum(part.items - 1 - part.others)])
            starts, excluded = _as_ids(torch, place, begins, part.excluded[1])
            fewer = count_excluded(users, items, own, starts, excluded, launch)
            better, not_worse = better - fewer[0], not_worse - fewer[1]
        return better, not_worse - better - 1, own

    return count


def _by_products(
    torch: Any, factors: FactorScores, place: Any, precision: str
) -> Callable[[Candidates], _Counts]:
    # In float32, products of rounded factors are exact, as in the kernel.
    left, items = factors.folded[0], _item_factors(torch, factors, place, precision).float()

    def count(part: Candidates) -> _Counts:
        users = _rounded(torch, left[part.users], place, precision).float()
        # tf32 holds factors of bfloat16 without rounding: the products are the same, and faster.
        with _matrix_products(torch, tf32=precision != "float32"):
            scores = users @ items.T
        return _compared(torch, scores, part)

    return count


def _by_weights(
    torch: Any, model: ItemItemScores, place: Any, precision: str
) -> Callable[[Candidates], _Counts]:
    if precision != "float32":
        raise InputError(
            f"precision must be 'float32' unless factors are ranked, got {precision!r}; "
            "item-item weights are not rounded"
        )
    held: Any = model.weights
    dense = held if isinstance(held, np.ndarray) else held.toarray()
    weights = torch.as_tensor(dense, device=place)

    def count(part: Candidates) -> _Counts:
        some = model.history[part.users]
        ids = _as_ids(torch, place, some.indptr, some.indices)
        values = torch.as_tensor(some.data, device=place)
        with warnings.catch_warnings():  # torch warns that sparse rows are in beta
            warnings.simplefilter("ignore", UserWarning)
            rows = torch.sparse_csr_tensor(*ids, values, size=some.shape)
            with _matrix_products(torch, tf32=False):
                scores = rows @ weights
        if model.item_bias is not None:
            scores += torch.as_tensor(model.item_bias, device=place)
        if model.newcomers is not None:
            new = torch.as_tensor(np.diff(some.indptr) == 0, device=place)
            scores[new] = torch.as_tensor(model.newcomers, device=place)
        if bool(torch.isnan(scores).any()):
            as_scores(scores.cpu().numpy(), tuple(scores.shape), part.users)
        return _compared(torch, scores, part)

    return count


def _item_factors(torch: Any, factors: FactorScores, place: Any, precision: str) -> Any:
    items = _rounded(torch, factors.folded[1], place, precision)
    if not bool(torch.isfinite(items).all()):
        raise ScoreError(
            "item factors must be finite, got some that are not; a model that diverged has such "
            f"factors, and so have factors that are too large for {precision}"
        )
    return items


def _rounded(torch: Any, factors: npt.NDArray[Any], place: Any, precision: str) -> Any:
    """Return rounded factors on the device."""
    tensor = torch.as_tensor(np.asarray(factors, dtype=np.float32), device=place)
    return tensor.bfloat16() if precision == "bfloat16" else tensor


def _for_kernel(torch: Any, factors: Any) -> Any:
    """Return factors with zeros added, so that their number is a power of two."""
    dim = max(16, 1 << (factors.shape[1] - 1).bit_length())
    return torch.nn.functional.pad(factors, (0, dim - factors.shape[1])).contiguous()


def _compared(torch: Any, scores: Any, part: Candidates) -> _Counts:
    """Compare whole rows of scores with the targets' scores."""
    own = scores.gather(1, torch.as_tensor(part.targets, device=scores.device)[:, None])
    better, not_worse = (scores > own).sum(dim=1), (scores >= own).sum(dim=1)
    if len(part.excluded[0]):
        row, column = _as_ids(torch, scores.device, *part.excluded)
        excluded, rival = scores[row, column], own[row, 0]
        better.index_add_(0, row, (excluded > rival).long(), alpha=-1)
        not_worse.index_add_(0, row, (excluded >= rival).long(), alpha=-1)
    return better, not_worse - better - 1, own[:, 0]


def _as_ids(torch: Any, place: Any, *arrays: npt.NDArray[Any]) -> list[Any]:
    return [torch.as_tensor(ids.astype(np.int64), device=place) for ids in arrays]


@contextmanager
def _matrix_products(torch: Any, *, tf32: bool) -> Iterator[None]:
    """Set whether CUDA multiplies float32 matrices in tf32, and restore the setting later."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = tf32
    try:
        yield
    finally:
        settings.allow_tf32 = before


def own_scores(user_factors: Any, item_factors: Any, targets: Any, launch: Launch) -> Any:
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


def count_above(user_factors: Any, item_factors: Any, own: Any, launch: Launch) -> tuple[Any, Any]:
    """Return for each user how many items score above ``own``, and how many not below it."""
    import torch

    (users, dim), items = user_factors.shape, len(item_factors)
    blocks = triton.cdiv(users, launch.users)
    launch = replace(launch, ranges=max(launch.ranges, triton.cdiv(_BLOCKS, blocks)))
    better, not_worse = (own.new_zeros(users, dtype=torch.int32) for _ in range(2))
    tiles = triton.cdiv(triton.cdiv(items, launch.items), launch.ranges)
    _above_kernel[(blocks, launch.ranges)](
        user_factors, item_factors, own, better, not_worse, users, items, tiles,
        dim=dim, rows=launch.users, columns=launch.items, precision=launch.precision,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return better, not_worse


def count_excluded(
    user_factors: Any, item_factors: Any, own: Any, starts: Any, excluded: Any, launch: Launch
) -> tuple[Any, Any]:
    """Return how many of each user's excluded items score above ``own``, and not below it.

    Those of user i are ``excluded[starts[i] : starts[i + 1]]``.
    """
    import torch

    users, dim = user_factors.shape
    better, not_worse = (own.new_empty(users, dtype=torch.int32) for _ in range(2))
    _excluded_kernel[(users,)](
        user_factors, item_factors, own, starts, excluded, better, not_worse,
        dim=dim, rows=_LEAST_ROWS, columns=_EXCLUDED_AT_ONCE, precision=launch.precision,
        num_warps=4,
    )  # fmt: skip
    return better, not_worse


def _kernel(*sizes: str) -> Callable[[Any], Any]:
    """Return a decorator that compiles a kernel, once for all values of some sizes."""
    if tl is None:
        return lambda function: function
    return lambda function: triton.jit(function, do_not_specialize=sizes)


# Parts of a catalogue and of the users have many sizes, and one compiled program serves them.
@_kernel("users", "items", "tiles")
def _above_kernel(  # type: ignore[no-untyped-def]
    user_factors, item_factors, own, better, not_worse, users, items, tiles,
    dim: tl.constexpr,  # type: ignore[name-defined]
    rows: tl.constexpr,  # type: ignore[name-defined]
    columns: tl.constexpr,  # type: ignore[name-defined]
    precision: tl.constexpr,  # type: ignore[name-defined]
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
        level += tl.sum((scores >= rival[:, None]).to(tl.int32), axis=1)
    # The last items do not fill a block: the range that holds them ends with a masked one.
    last = items // columns
    if (last * columns < items) & (first <= last) & (last < first + tiles):
        there = (last * columns + tl.arange(0, columns) < items)[None, :]
        block = item_factors + tl.cast(last, tl.int64) * columns * dim
        right = tl.load(block + inner, mask=there, other=0)
        scores = tl.dot(left, right, input_precision=precision)
        above += tl.sum(((scores > rival[:, None]) & there).to(tl.int32), axis=1)
        level += tl.sum(((scores >= rival[:, None]) & there).to(tl.int32), axis=1)
    tl.atomic_add(better + row, above, mask=inside)
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
