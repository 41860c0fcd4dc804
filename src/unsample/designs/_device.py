"""A factor model on a device: exact ranks, fused on CUDA with Triton and in chunks elsewhere.

How a product is rounded decides which of two nearly equal items comes first. ``"float32"`` is as
fine as numpy's, with additions in another order. ``"tf32"`` keeps ten bits of each factor, and
``"bfloat16"`` seven; products are then exact and added up in float32. Targets and items are
rounded alike, so a rank is off only by items whose scores lie within the rounding of the target's:
of random factors (128 of them, 200,000 items, targets at ranks 1 to 8,000) no, 27 % and 52 % of
the ranks move, by 0.1 % and 0.7 % of themselves in the mean (``benchmarks/gpu_ranking.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_choice, import_extra
from unsample.designs._item_item import ItemItemScores
from unsample.designs._ranking import Counted
from unsample.designs._scan import Candidates
from unsample.designs._scorers import FactorScores, Scorer, as_scores
from unsample.errors import InputError, ScoreError

PRECISIONS = ("float32", "tf32", "bfloat16")
#: Targets sent to the device at a time, and scores that the chunked engine holds at a time.
TARGETS, _SCORES = 1 << 18, 1 << 26


def count_all_on_device(
    factors: FactorScores, candidates: Candidates, device: str, precision: str
) -> Iterator[Counted]:
    """Compare targets with all their candidates on a device, chunk after chunk of targets."""
    torch = import_extra("torch", extra="neural", purpose="Ranking on a device")
    check_choice("precision", precision, PRECISIONS)
    place = _checked_device(torch, device, precision)
    left, right = factors.folded
    fused = _is_fused(place, left.shape[1])
    items = _as_tensor(torch, right, place, precision, fused)
    if not bool(torch.isfinite(items).all()):
        raise ScoreError(
            "item factors must be finite, got some that are not; a model that diverged has such "
            f"factors, and {precision} holds no larger numbers than it holds"
        )
    counts = _fused_counts if fused else _chunked_counts
    for at, part in candidates.parts(TARGETS if fused else max(1, _SCORES // candidates.items)):
        users = _as_tensor(torch, left[part.users], place, precision, fused)
        targets = torch.as_tensor(part.targets, device=place)
        found = counts(torch, users, items, targets, part, precision)
        better, not_worse, own = (array.cpu().numpy() for array in found)
        better, not_worse = better.astype(np.int64), not_worse.astype(np.int64)
        yield at, better, not_worse - better - 1, own


def count_item_item_on_device(
    model: ItemItemScores, candidates: Candidates, device: str, precision: str
) -> Iterator[Counted]:
    """Compare targets with all their candidates on a device: sparse rows times dense weights."""
    torch = import_extra("torch", extra="neural", purpose="Ranking on a device")
    if precision != "float32":
        raise InputError(
            f"precision must be 'float32' unless factors are ranked, got {precision!r}; "
            "item-item weights are not rounded"
        )
    place = _checked_device(torch, device, precision)
    held: Any = model.weights
    dense = held if isinstance(held, np.ndarray) else held.toarray()
    weights = torch.as_tensor(dense, device=place)
    sums = on_kernels(torch, model, weights)
    for at, part in candidates.parts(max(1, _SCORES // candidates.items)):
        found = fused_sums(torch, model, sums, part) if sums is not None else None
        if found is None:
            found = chunked_sums(torch, model, weights, part)
        better, equal, own = (array.cpu().numpy() for array in found)
        yield at, better.astype(np.int64), equal.astype(np.int64), own


def on_kernels(torch: Any, model: ItemItemScores, weights: Any) -> Any:
    """Return what counts sums of these weights by kernels, None where nothing does."""
    from unsample.designs import _fused

    if not _is_fused(weights.device, 0) or weights.dtype != torch.float32:
        return None
    more = [
        None if held is None else torch.as_tensor(held, device=weights.device)
        for held in (model.item_bias, model.newcomers)
    ]
    # Scores must be finite for certain, for nobody looks at each of them.
    largest = float(weights.abs().max()) * float(abs(model.history).sum(axis=1).max())
    finite = all(bool(torch.isfinite(held).all()) for held in more if held is not None)
    if not (finite and largest < torch.finfo(weights.dtype).max):
        return None
    return _fused.Sums.of(weights, *more)


def fused_sums(
    torch: Any, model: ItemItemScores, sums: Any, part: Candidates
) -> tuple[Any, Any, Any] | None:
    """Count by kernels; None where too many scores are close to their target's."""
    place, some = sums.weights.device, model.history[part.users]
    starts, history, values, targets = (
        torch.as_tensor(array, device=place)
        for array in (some.indptr, some.indices, some.data, part.targets)
    )
    counted = torch.ones((len(part), part.items), dtype=torch.uint8, device=place)
    rows = torch.arange(len(part), device=place)
    counted[rows, targets] = 0
    lengths = torch.as_tensor(part.items - 1 - part.others, device=place)
    column = torch.as_tensor(part.excluded[1], device=place).long()
    counted[rows.repeat_interleave(lengths, output_size=len(column)), column] = 0
    found: tuple[Any, Any, Any] | None = sums.count((starts, history, values), targets, counted)
    return found


def chunked_sums(
    torch: Any, model: ItemItemScores, weights: Any, part: Candidates
) -> tuple[Any, Any, Any]:
    """Count by whole rows of scores."""
    place, some = weights.device, model.history[part.users]
    ids = _as_ids(torch, place, some.indptr, some.indices)
    values = torch.as_tensor(some.data, device=place)
    with warnings.catch_warnings():  # torch calls its sparse rows a beta
        warnings.simplefilter("ignore", UserWarning)
        rows = torch.sparse_csr_tensor(*ids, values, size=some.shape)
        with matrix_products(torch, tf32=False):
            scores = rows @ weights
    if model.item_bias is not None:
        scores += torch.as_tensor(model.item_bias, device=place)
    if model.newcomers is not None:
        new = torch.as_tensor(np.diff(some.indptr) == 0, device=place)
        scores[new] = torch.as_tensor(model.newcomers, device=place)
    if bool(torch.isnan(scores).any()):
        as_scores(scores.cpu().numpy(), tuple(scores.shape), part.users)
    targets = torch.as_tensor(part.targets, device=place)
    better, not_worse, own = _compared(torch, scores, targets, part)
    return better, not_worse - better - 1, own


def on_device(scorer: Scorer, device: str | None, precision: str, *, whole: bool) -> Scorer:
    """Return a scorer of chosen items that keeps its factors on a device.

    Where ``whole`` rows are ranked on it, the scorer stays as it is.
    """
    if device is None:
        return scorer
    factors = scorer.factors
    if factors is None and not (whole and scorer.item_item is not None):
        raise InputError(
            f"device must be left out unless factors are scored, got {device!r}; a torch module "
            "is asked on the device it is on"
        )
    if whole or factors is None:
        return scorer
    check_choice("precision", precision, PRECISIONS)
    if precision == "tf32":
        raise InputError(
            f"precision must be 'float32' or 'bfloat16' unless all items are ranked, got "
            f"{precision!r}; use design='exact'"
        )
    torch = import_extra("torch", extra="neural", purpose="Scoring on a device")
    place = _checked_device(torch, device, precision)
    left, right = (torch.as_tensor(np.asarray(held), device=place) for held in factors.folded)
    if precision == "bfloat16":
        left, right = (each.bfloat16().float() for each in (left, right))
    fused = _is_fused(place, left.shape[1])
    return Scorer(DeviceScores(torch, place, left, right, factors, fused, precision != "float32"))


@dataclass(frozen=True, eq=False)
class DeviceScores:
    """Scores of chosen items, the same to the last bit whatever is asked with them.

    Products are added up factor by factor, in double precision: how a device adds up a row may
    depend on how many rows there are.
    """

    torch: Any
    place: Any
    left: Any
    right: Any
    #: The factors as they are here; whether full rankings are fused; whether they were rounded.
    factors: FactorScores
    fused: bool
    rounded: bool

    @property
    def launch(self) -> Any:
        """Return how the kernels are to be started."""
        from unsample.designs import _fused

        return _fused.LAUNCHES["bfloat16" if self.rounded else "float32"]

    def for_kernel(self, factors: Any) -> Any:
        """Return factors as the kernels take them."""
        return for_kernel(self.torch, factors.bfloat16() if self.rounded else factors.float())

    def __call__(self, users: IntArray, items: IntArray, /) -> npt.NDArray[Any]:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        found = self.of(*_as_ids(self.torch, self.place, np.asarray(users), np.asarray(items)))
        return np.asarray(found.cpu().numpy())

    def of(self, users: Any, items: Any) -> Any:
        """Return scores in the shape of ``items``, row i for ``users[i]``, all of them tensors."""
        if _is_fused(self.place, 0):
            from unsample.designs import _fused

            return _fused.score_pairs(self.left, self.right, users, items)
        left, right = self.left[users].double(), self.right[items]
        scores = self.torch.zeros(tuple(items.shape), dtype=left.dtype, device=self.place)
        for number in range(left.shape[1]):
            scores += left[:, number, None] * right[:, :, number].double()
        return scores.to(self.left.dtype)


def _checked_device(torch: Any, device: str, precision: str) -> Any:
    try:
        place = torch.device(device)
    except RuntimeError as problem:
        raise InputError(f"device must be one of torch, got {device!r}: {problem}") from problem
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device must be at hand, got {device!r}, and torch finds no CUDA device; use 'cpu'"
        )
    if precision == "tf32" and place.type != "cuda":
        raise InputError(
            f"precision must be 'float32' or 'bfloat16' on {place.type}, got 'tf32', a number "
            "format of CUDA devices"
        )
    return place


def _is_fused(place: Any, dim: int) -> bool:
    """Return whether the kernels, which never write a score, can be had."""
    # Imported here, for Triton takes a while.
    from unsample.designs import _fused

    return place.type == "cuda" and _fused.AVAILABLE and dim <= _fused.LARGEST_DIM


def _as_tensor(
    torch: Any, factors: npt.NDArray[Any], place: Any, precision: str, fused: bool
) -> Any:
    """Return factors on the device, rounded."""
    tensor = torch.as_tensor(np.asarray(factors, dtype=np.float32), device=place)
    if precision == "bfloat16":
        tensor = tensor.bfloat16()
    # In float32 the products of rounded factors are exact, as they are in the kernel.
    return for_kernel(torch, tensor) if fused else tensor.float()


def for_kernel(torch: Any, factors: Any) -> Any:
    """Return factors with as many columns as the kernel takes, a power of two."""
    dim = max(16, 1 << (factors.shape[1] - 1).bit_length())
    return torch.nn.functional.pad(factors, (0, dim - factors.shape[1])).contiguous()


def _fused_counts(
    torch: Any, users: Any, items: Any, targets: Any, part: Candidates, precision: str
) -> tuple[Any, Any, Any]:
    from unsample.designs import _fused

    launch = _fused.LAUNCHES[precision]
    own = _fused.own_scores(users, items, targets, launch=launch)
    better, not_worse = _fused.count_above(users, items, own, ties=True, launch=launch)
    if len(part.excluded[0]):
        stops = np.cumsum(part.items - 1 - part.others)
        starts = np.concatenate([[0], stops[:-1]])
        pairs = _as_ids(torch, users.device, starts, stops, part.excluded[1])
        fewer = _fused.count_excluded(users, items, own, tuple(pairs), launch=launch)
        better, not_worse = better - fewer[0], not_worse - fewer[1]
    return better, not_worse, own


def _chunked_counts(
    torch: Any, users: Any, items: Any, targets: Any, part: Candidates, precision: str
) -> tuple[Any, Any, Any]:
    # Factors rounded to bfloat16 are whole in tf32: its products are the same, and faster.
    with matrix_products(torch, tf32=precision != "float32"):
        scores = users @ items.T
    return _compared(torch, scores, targets, part)


def _compared(torch: Any, scores: Any, targets: Any, part: Candidates) -> tuple[Any, Any, Any]:
    """Compare whole rows of scores with those of the targets."""
    own = scores.gather(1, targets[:, None])
    better, not_worse = (scores > own).sum(dim=1), (scores >= own).sum(dim=1)
    if len(part.excluded[0]):
        row, column = _as_ids(torch, scores.device, *part.excluded)
        excluded, rival = scores[row, column], own[row, 0]
        better.index_add_(0, row, (excluded > rival).long(), alpha=-1)
        not_worse.index_add_(0, row, (excluded >= rival).long(), alpha=-1)
    return better, not_worse, own[:, 0]


def _as_ids(torch: Any, place: Any, *arrays: npt.NDArray[Any]) -> list[Any]:
    return [torch.as_tensor(ids.astype(np.int64), device=place) for ids in arrays]


@contextmanager
def matrix_products(torch: Any, *, tf32: bool) -> Iterator[None]:
    """Let CUDA multiply float32 matrices in tf32 or not, and leave the setting as it was."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = tf32
    try:
        yield
    finally:
        settings.allow_tf32 = before
