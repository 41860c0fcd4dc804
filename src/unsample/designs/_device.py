"""Models on a device: exact ranks, by Triton kernels on CUDA and in chunks elsewhere.

Rounding decides which of two nearly equal items comes first. ``"float32"`` is as precise as numpy,
with additions in another order. ``"tf32"`` keeps ten bits of each factor and ``"bfloat16"`` seven;
their products are exact, and are added up in float32. Targets and items are rounded in the same
way. So a rank is wrong only by items with almost the same score as the target. With random factors
(128 factors, 200,000 items, targets at ranks 1 to 8,000), 0 %, 27 % and 52 % of the ranks change,
by 0.1 % (tf32) and 0.7 % (bfloat16) on average (``benchmarks/gpu_ranking.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_choice, import_extra
from unsample.designs._item_item import ItemItemScores
from unsample.designs._ranking import Counted
from unsample.designs._scan import Candidates
from unsample.designs._scorers import FactorScores, Scorer, as_scores
from unsample.errors import InputError, ScoreError

PRECISIONS = ("float32", "tf32", "bfloat16")
#: Targets sent to the device at a time, and scores in memory at a time without kernels.
TARGETS, _SCORES = 1 << 18, 1 << 26
#: Of each target, how many items beat it, how many others tie, and its own score, as tensors.
_Counts: TypeAlias = "tuple[Any, Any, Any]"


def count_all_on_device(
    factors: FactorScores, candidates: Candidates, device: str, precision: str
) -> Iterator[Counted]:
    """Compare targets with all their candidates on a device."""
    check_choice("precision", precision, PRECISIONS)
    torch, place = _on(device, precision, purpose="Ranking on a device")
    left, right = factors.folded
    fused = _is_fused(place, left.shape[1])
    items = _as_tensor(torch, right, place, precision, fused)
    if not bool(torch.isfinite(items).all()):
        raise ScoreError(
            "item factors must be finite, got some that are not; a model that diverged has such "
            f"factors, and so have factors that are too large for {precision}"
        )

    def count(part: Candidates) -> _Counts:
        users = _as_tensor(torch, left[part.users], place, precision, fused)
        targets = torch.as_tensor(part.targets, device=place)
        if fused:
            return _fused_counts(torch, users, items, targets, part, precision)
        # tf32 holds factors of bfloat16 without rounding: the products are the same, and faster.
        with matrix_products(torch, tf32=precision != "float32"):
            scores = users @ items.T
        return _compared(torch, scores, targets, part)

    rows = TARGETS if fused else max(1, _SCORES // candidates.items)
    yield from _counted(candidates, rows, count)


def count_item_item_on_device(
    model: ItemItemScores, candidates: Candidates, device: str, precision: str
) -> Iterator[Counted]:
    """Compare targets with all their candidates on a device: sparse rows times dense weights."""
    if precision != "float32":
        raise InputError(
            f"precision must be 'float32' unless factors are ranked, got {precision!r}; "
            "item-item weights are not rounded"
        )
    torch, place = _on(device, precision, purpose="Ranking on a device")
    held: Any = model.weights
    dense = held if isinstance(held, np.ndarray) else held.toarray()
    weights = torch.as_tensor(dense, device=place)
    sums = on_kernels(torch, model, weights)

    def count(part: Candidates) -> _Counts:
        found = None if sums is None else fused_sums(torch, model, sums, part)
        return chunked_sums(torch, model, weights, part) if found is None else found

    yield from _counted(candidates, max(1, _SCORES // candidates.items), count)


def _counted(
    candidates: Candidates, rows: int, count: Callable[[Candidates], _Counts]
) -> Iterator[Counted]:
    """Yield the counts of at most ``rows`` targets at a time, as arrays of numpy."""
    for at, part in candidates.parts(rows):
        better, equal, own = (array.cpu().numpy() for array in count(part))
        yield at, better.astype(np.int64), equal.astype(np.int64), own


def on_kernels(torch: Any, model: ItemItemScores, weights: Any) -> Any:
    """Return these weights for the kernels; None if there are no kernels for them."""
    from unsample.designs import _fused

    if not _is_fused(weights.device, 0) or weights.dtype != torch.float32:
        return None
    more = [
        None if held is None else torch.as_tensor(held, device=weights.device)
        for held in (model.item_bias, model.newcomers)
    ]
    # All scores must be finite, because the kernels do not check them.
    largest = float(weights.abs().max()) * float(abs(model.history).sum(axis=1).max())
    finite = all(bool(torch.isfinite(held).all()) for held in more if held is not None)
    if not (finite and largest < torch.finfo(weights.dtype).max):
        return None
    return _fused.Sums.of(weights, *more)


def fused_sums(torch: Any, model: ItemItemScores, sums: Any, part: Candidates) -> _Counts | None:
    """Count by kernels; None if too many scores are close to their target's."""
    place, some = sums.weights.device, model.history[part.users]
    arrays = some.indptr, some.indices, some.data, part.targets
    *history, targets = (torch.as_tensor(array, device=place) for array in arrays)
    counted = torch.ones((len(part), part.items), dtype=torch.uint8, device=place)
    rows = torch.arange(len(part), device=place)
    counted[rows, targets] = 0
    lengths = torch.as_tensor(part.items - 1 - part.others, device=place)
    column = torch.as_tensor(part.excluded[1], device=place).long()
    counted[rows.repeat_interleave(lengths, output_size=len(column)), column] = 0
    found: _Counts | None = sums.count(tuple(history), targets, counted)
    return found


def chunked_sums(torch: Any, model: ItemItemScores, weights: Any, part: Candidates) -> _Counts:
    """Count from whole rows of scores."""
    place, some = weights.device, model.history[part.users]
    ids = _as_ids(torch, place, some.indptr, some.indices)
    values = torch.as_tensor(some.data, device=place)
    with warnings.catch_warnings():  # torch warns that sparse rows are in beta
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
    return _compared(torch, scores, torch.as_tensor(part.targets, device=place), part)


def on_device(scorer: Scorer, device: str | None, precision: str, *, whole: bool) -> Scorer:
    """Return a scorer of chosen items that keeps its factors on a device.

    The scorer is not changed if ``whole`` rows are ranked.
    """
    factors = scorer.factors
    if device is None or (whole and (factors or scorer.item_item) is not None):
        return scorer
    if factors is None:
        raise InputError(
            f"device must be left out unless factors are scored, got {device!r}; a torch module "
            "is called on its own device"
        )
    check_choice("precision", precision, PRECISIONS)
    if precision == "tf32":
        raise InputError(
            f"precision must be 'float32' or 'bfloat16' unless all items are ranked, got "
            f"{precision!r}; use design='exact'"
        )
    torch, place = _on(device, precision, purpose="Scoring on a device")
    left, right = (torch.as_tensor(np.asarray(held), device=place) for held in factors.folded)
    if precision == "bfloat16":
        left, right = (each.bfloat16().float() for each in (left, right))
    fused = _is_fused(place, left.shape[1])
    return Scorer(DeviceScores(torch, place, left, right, factors, fused, precision != "float32"))


@dataclass(frozen=True, eq=False)
class DeviceScores:
    """Scores of chosen items that do not depend on the other items of a call, to the last bit.

    Products are added up factor by factor, in double precision, because the order in which a device
    adds up a row may depend on the number of rows.
    """

    torch: Any
    place: Any
    left: Any
    right: Any
    #: The given factors; whether kernels compare them; whether ``left`` and ``right`` are rounded.
    factors: FactorScores
    fused: bool
    rounded: bool

    @property
    def launch(self) -> Any:
        from unsample.designs import _fused

        return _fused.LAUNCHES["bfloat16" if self.rounded else "float32"]

    def for_kernel(self, factors: Any) -> Any:
        return for_kernel(self.torch, factors.bfloat16() if self.rounded else factors.float())

    def __call__(self, users: IntArray, items: IntArray, /) -> npt.NDArray[Any]:
        found = self.of(*_as_ids(self.torch, self.place, np.asarray(users), np.asarray(items)))
        return np.asarray(found.cpu().numpy())

    def of(self, users: Any, items: Any) -> Any:
        """Return scores as a tensor; ``users`` and ``items`` are tensors too."""
        if _is_fused(self.place, 0):
            from unsample.designs import _fused

            return _fused.score_pairs(self.left, self.right, users, items)
        left, right = self.left[users].double(), self.right[items]
        scores = self.torch.zeros(tuple(items.shape), dtype=left.dtype, device=self.place)
        for number in range(left.shape[1]):
            scores += left[:, number, None] * right[:, :, number].double()
        return scores.to(self.left.dtype)


def _on(device: str, precision: str, *, purpose: str) -> tuple[Any, Any]:
    """Return torch and a device of it; refuse a device that is not there."""
    torch = import_extra("torch", extra="neural", purpose=purpose)
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
    # Imported here, because Triton takes long to import.
    from unsample.designs import _fused

    return place.type == "cuda" and _fused.AVAILABLE and dim <= _fused.LARGEST_DIM


def _as_tensor(
    torch: Any, factors: npt.NDArray[Any], place: Any, precision: str, fused: bool
) -> Any:
    """Return rounded factors on the device."""
    tensor = torch.as_tensor(np.asarray(factors, dtype=np.float32), device=place)
    if precision == "bfloat16":
        tensor = tensor.bfloat16()
    # In float32, products of rounded factors are exact, as in the kernel.
    return for_kernel(torch, tensor) if fused else tensor.float()


def for_kernel(torch: Any, factors: Any) -> Any:
    """Return factors with zeros added, so that their number is a power of two."""
    dim = max(16, 1 << (factors.shape[1] - 1).bit_length())
    return torch.nn.functional.pad(factors, (0, dim - factors.shape[1])).contiguous()


def _fused_counts(
    torch: Any, users: Any, items: Any, targets: Any, part: Candidates, precision: str
) -> _Counts:
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
    return better, not_worse - better - 1, own


def _compared(torch: Any, scores: Any, targets: Any, part: Candidates) -> _Counts:
    """Compare whole rows of scores with the targets' scores."""
    own = scores.gather(1, targets[:, None])
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
def matrix_products(torch: Any, *, tf32: bool) -> Iterator[None]:
    """Set whether CUDA multiplies float32 matrices in tf32, and restore the setting later."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = tf32
    try:
        yield
    finally:
        settings.allow_tf32 = before
