"""Rounds on a device of torch: items are listed, scored and compared there, and counts come back.

`DeviceScan` does what a `Scan` does, for scores that can be had as tensors. `by_products_on` counts
windows of a guide's order, as `_windows.by_products` does on the processor. What goes to the device
in a round is a few numbers for each target; exclusions, lists and orders are put there once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs._device import DeviceScores, matrix_products
from unsample.designs._guides import GuidedOrders
from unsample.designs._orders import FIRST, ROUNDS, SECOND, SHORT, Orders, network
from unsample.designs._scan import Compared, Job, Scan, Tally
from unsample.designs._scorers import as_scores, refuse_infinite_targets
from unsample.designs._windows import Count, Counted, Windows, rounding

#: Lower half of a 64-bit word.
_WORD = 0xFFFFFFFF
#: Scores that are held at a time where windows are compared, and items of a tile at most.
_SCORES, _COLUMNS = 1 << 26, 1 << 14
#: Targets whose windows are compared at a time.
WINDOWS_AT_ONCE = 1 << 12
#: Products of a device may cut off where a processor rounds.
_COARSER = 4.0


class TensorScores(Protocol):
    """Scores that can be had as tensors."""

    @property
    def place(self) -> Any:
        """Return the device."""

    def of(self, users: Any, items: Any) -> Any:
        """Return scores in the shape of ``items``, row i for ``users[i]``, all of them tensors."""


def can_scan(scan: Scan) -> bool:
    """Return whether items can be listed on a device, and nobody wants them back."""
    tensors = all(hasattr(scan.score, name) for name in ("place", "of"))
    plain = scan.listener is None and scan.learner is None and not scan.replacement
    known = scan.guided is None or isinstance(scan.guided, GuidedOrders)
    return tensors and plain and known and int(scan.candidates.others.min()) > SHORT


@dataclass(frozen=True, eq=False)
class DeviceScan(Scan):
    """A scan whose items never leave the device."""

    @classmethod
    def of(cls, scan: Scan) -> DeviceScan:
        """Return the scan of the same targets on the device of its scores."""
        return cls(**{each.name: getattr(scan, each.name) for each in fields(scan)})

    def advance(self, tally: Tally, goal: IntArray, *, batch: int, workers: int = 1) -> Any:
        """Compare every target with items until it met ``goal`` of them: lists first."""
        if isinstance(self.guided, GuidedOrders):
            listed = np.minimum(goal, self.guided.listed_others)
            yield from super().advance(tally, listed, batch=batch, workers=workers)
        yield from super().advance(tally, goal, batch=batch, workers=workers)

    def _compare(self, job: Job, tally: Tally) -> Compared:
        rows, length, fresh = job
        torch = _torch()
        scorer: TensorScores = self.score  # type: ignore[assignment]
        users, targets = self.candidates.users[rows], self.candidates.targets[rows]
        items = self._items(rows, tally.scored[rows], length)
        asked = items
        if fresh:
            asked = torch.cat([self._sent(targets)[:, None], items], dim=1)
        scores = scorer.of(self._sent(users), asked)
        if tuple(scores.shape) != tuple(asked.shape) or bool(torch.isnan(scores).any()):
            as_scores(scores.cpu().numpy(), tuple(asked.shape), users, asked.cpu().numpy())
        own = tally.own[rows]
        if fresh:
            own = scores[:, 0].double().cpu().numpy()
            refuse_infinite_targets(own, users, targets)
            scores = scores[:, 1:]
        rival = self._sent(own)[:, None]
        tied = (scores == rival).nonzero()
        counts = torch.stack([(scores > rival).sum(dim=1), torch.isinf(scores).sum(dim=1)])
        row, item = tied[:, 0], items[tied[:, 0], tied[:, 1]]
        row, item = row.cpu().numpy(), item.cpu().numpy()
        better, infinite = counts.cpu().numpy()
        lost = Orders(self.candidates.others[rows], self.keys[rows]).tie_is_lost(row, item)
        part = Tally(
            np.full(len(rows), length),
            better,
            np.bincount(row, minlength=len(rows)),
            np.bincount(row[lost], minlength=len(rows)),
            infinite,
            own,
        )
        nothing = np.empty(0, dtype=np.int64)
        return rows, part, asked.numel(), (nothing, nothing.astype(bool))

    def _items(self, rows: IntArray, first: IntArray, count: int) -> Any:
        """Return the items that some targets meet as number ``first, first + 1, ...``."""
        torch, held = _torch(), self._held
        column = torch.arange(count, device=held.place)
        if held.lists is not None and held.listed is not None:
            row, size, own = (each[rows] for each in held.listed)
            if (first < size).any():
                offset = self._sent(first)[:, None] + column
                # The target itself is passed over where it stands on the list.
                offset = offset + (offset >= self._sent(own)[:, None])
                return held.lists[self._sent(row)[:, None], offset].long()
        others, pairs, targets = self._rest(rows)
        start = first - (self.candidates.others[rows] - others)
        index = self._sent(start)[:, None] + column
        if held.order is None:
            index = _permuted(others, self.keys[rows], index, self._sent)
        found = _items_at(index, targets, *pairs, self.candidates.items)
        return found if held.order is None else held.order[found]

    def _rest(self, rows: IntArray) -> tuple[IntArray, tuple[Any, Any], Any]:
        """Return how many candidates are on no list, and what is passed over among items.

        Items are named by their places where a guide orders them all.
        """
        held, others = self._held, self.candidates.others[rows]
        lists = held.listed is not None and held.listed[1][rows].any()
        if lists and isinstance(self.guided, GuidedOrders):
            some, size = self.guided.rest(rows)
            row, column = (self._sent(ids.astype(np.int64)) for ids in some.excluded)
            return others - size, (row, column), self._sent(some.targets)
        targets = self._sent(held.targets[rows])
        return others, held.excluded(self._sent(self.candidates.users[rows]), targets), targets

    @cached_property
    def _held(self) -> _Held:
        return _Held.of(self, self._sent)

    def _sent(self, values: npt.NDArray[Any]) -> Any:
        scorer: TensorScores = self.score  # type: ignore[assignment]
        return _sent(values, scorer.place)


@dataclass(frozen=True, eq=False)
class _Held:
    """What is kept on the device from round to round."""

    place: Any
    targets: IntArray
    #: Where the excluded items of each user begin, and all of them, sorted for each user.
    starts: Any
    items: Any
    order: Any
    lists: Any
    #: The row of each target's list, how many others are on it, and the target's own place.
    listed: tuple[IntArray, IntArray, IntArray] | None

    @classmethod
    def of(cls, scan: DeviceScan, sent: Any) -> _Held:
        """Send what there is."""
        candidates, order, lists, listed = scan.candidates, None, None, None
        if isinstance(scan.guided, GuidedOrders):
            candidates, listed = scan.guided.relabelled, scan.guided.listed
            order, lists = scan.guided.guide.order, scan.guided.guide.lists
        exclude = candidates.exclude
        return cls(
            scan.score.place,  # type: ignore[attr-defined]
            candidates.targets,
            None if exclude is None else sent(exclude.indptr.astype(np.int64)),
            None if exclude is None else sent(exclude.indices.astype(np.int64)),
            None if order is None else sent(order),
            None if lists is None or listed is None else sent(lists),
            listed,
        )

    def excluded(self, users: Any, targets: Any) -> tuple[Any, Any]:
        """Return the pairs (row, item) to leave out; a target is always a candidate."""
        torch = _torch()
        if self.starts is None:
            nothing = torch.empty(0, dtype=torch.int64, device=self.place)
            return nothing, nothing
        start = self.starts[users]
        size = self.starts[users + 1] - start
        row = torch.repeat_interleave(torch.arange(len(users), device=self.place), size)
        at = torch.arange(len(row), device=self.place) + (start - size.cumsum(0) + size)[row]
        column = self.items[at]
        other = column != targets[row]
        return row[other], column[other]


def _items_at(index: Any, targets: Any, row: Any, column: Any, items: int) -> Any:
    """Return the items at places ``index`` among other candidates: see `Candidates.items_at`."""
    torch, count = _torch(), len(targets)
    if not len(row):
        return index + (index >= targets[:, None])
    before = torch.bincount(row[column < targets[row]], minlength=count)
    index = index + (index >= (targets - before)[:, None])
    size = torch.bincount(row, minlength=count)
    first = size.cumsum(0) - size
    ranges = torch.arange(count, device=index.device) * (items + 1)
    keys = column - (torch.arange(len(row), device=index.device) - first[row]) + ranges[row]
    found = torch.searchsorted(keys, index + ranges[:, None], right=True)
    return index + found - first[:, None]


def _permuted(size: IntArray, keys: npt.NDArray[np.uint64], places: Any, sent: Any) -> Any:
    """Return where the network of each row sends its places: see `Orders.positions`."""
    left, right, words = (sent(each.astype(np.int64)) for each in network(size, keys))
    limit = sent(size)[:, None]
    places = _walk(places, left, right, words)
    row, column = (places >= limit).nonzero(as_tuple=True)
    while len(row):
        again = _walk(places[row, column][:, None], left[row], right[row], words[row])[:, 0]
        places[row, column] = again
        outside = again >= limit[row, 0]
        row, column = row[outside], column[outside]
    return places


def _walk(places: Any, left: Any, right: Any, words: Any) -> Any:
    high = places // right
    low = places - high * right
    for step in range(0, ROUNDS, 2):
        high = _shifted(high, low, words[:, step, None], left)
        low = _shifted(low, high, words[:, step + 1, None], right)
    return high * right + low


def _shifted(digit: Any, other: Any, word: Any, radix: Any) -> Any:
    """Return a digit plus a keyed function of the other one, modulo the radix."""
    mixed = (other + word) & _WORD
    mixed = ((mixed ^ (mixed >> 16)) * int(FIRST)) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * int(SECOND)) & _WORD
    digit = digit + (((mixed >> 16) * radix) >> 16)
    return _torch().where(digit >= radix, digit - radix, digit)


def by_products_on(scores: DeviceScores, order: IntArray) -> Count:
    """Return what counts windows of factors on a device."""
    torch, place = scores.torch, scores.place
    kind = np.dtype(str(scores.left.dtype).removeprefix("torch."))
    relative = _COARSER * rounding(kind, scores.left.shape[1])
    places = _sent(order, place)

    def count(windows: Windows) -> Counted:
        users, start, stop, row, column = (
            _sent(each, place)
            for each in (windows.users, windows.start, windows.stop, windows.row, windows.place)
        )
        some, own = scores.left[users], _sent(windows.own, place).to(scores.left.dtype)
        length = some.double().norm(dim=1)
        better = torch.zeros(len(windows), dtype=torch.int64, device=place)
        ties = [(row[:0], row[:0])]
        edges = windows.edges(max(1, min(_COLUMNS, _SCORES // len(windows))))
        cuts = np.searchsorted(windows.place, edges).tolist()
        for at, (first, last) in enumerate(pairwise(edges)):
            tile = scores.right[places[first:last]]
            with matrix_products(torch, tf32=scores.rounded):
                found = some @ tile.T
            inside = torch.arange(first, last, device=place)
            found[(inside < start[:, None]) | (inside >= stop[:, None])] = -torch.inf
            cut = slice(cuts[at], cuts[at + 1])
            found[row[cut], column[cut] - first] = -torch.inf
            margin = relative * length * tile.double().norm(dim=1).max()
            low, high = ((own + side * margin).to(own.dtype)[:, None] for side in (-1, 1))
            better += (found > high).sum(dim=1)
            who, near = ((found >= low) & (found <= high)).nonzero(as_tuple=True)
            if len(who):
                exact = scores.of(users[who], places[first + near][:, None])[:, 0]
                better += torch.bincount(who[exact > own[who]], minlength=len(windows))
                tied = exact == own[who]
                ties.append((who[tied], first + near[tied]))
        columns = (torch.cat(column).cpu().numpy() for column in zip(*ties, strict=True))
        return better.cpu().numpy(), *columns

    return count


def _torch() -> Any:
    import torch

    return torch


def _sent(values: npt.NDArray[Any], place: Any) -> Any:
    return _torch().as_tensor(np.ascontiguousarray(values), device=place)
