"""Rounds on a torch device: items are listed, scored and compared there, and counts come back.

`DeviceScan` is a `Scan` for scores that are tensors. `by_products_on` counts windows of the order
of a guide, as `_windows.by_products` does on the processor. Excluded items, lists and orders are
sent to the device once, and then a few numbers for each target and round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray
from unsample.designs._device import TARGETS, DeviceScores, matrix_products
from unsample.designs._orders import FIRST, ROUNDS, SECOND, SHORT, network
from unsample.designs._scan import Candidates, Scan, Tally, items_at
from unsample.designs._scorers import as_scores, refuse_infinite_targets
from unsample.designs._windows import Count, Counted, Windows, rounding

#: Lower half of a 64-bit word.
_WORD = 0xFFFFFFFF
#: Scores in memory at a time when windows are compared.
_SCORES = 1 << 26
#: Targets whose windows are compared at a time.
WINDOWS_AT_ONCE = 1 << 12
#: Items of the first window of a certified ranking; each next window is as long as all before.
_FIRST_WINDOW = 1 << 10
#: A device may cut off digits where a processor rounds, so its errors may be larger.
_COARSER = 4.0


def can_scan(scan: Scan) -> bool:
    """Return whether items can be listed and scored on a device, and are needed nowhere else."""
    tensors = all(hasattr(scan.score, name) for name in ("place", "of"))
    plain = not scan.replacement
    return tensors and plain and int(scan.candidates.others.min()) > SHORT


@dataclass(frozen=True, eq=False)
class DeviceScan(Scan):
    """A scan whose items never leave the device.

    The pairs of many targets are scored in one call, whatever number of items each target has: to
    start a kernel takes as long as thousands of pairs.
    """

    @classmethod
    def of(cls, scan: Scan) -> DeviceScan:
        return cls(**{each.name: getattr(scan, each.name) for each in fields(scan)})

    def advance(
        self, tally: Tally, goal: IntArray, *, batch: int, workers: int = 1
    ) -> Iterator[int]:
        """Compare every target with items up to number ``goal``, those on its list first."""
        for each in (np.minimum(goal, self.orders.listed_others), goal):
            while (rows := np.flatnonzero(tally.scored < each)).size:
                count = np.minimum((each - tally.scored)[rows], batch)
                fresh = np.isnan(tally.own[rows])
                part = (np.cumsum(count + fresh) - 1) // batch
                for some in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(part)) + 1):
                    found = self._met(rows[some], count[some], fresh[some], tally)
                    tally.add(rows[some], found)
                    yield int(count[some].sum()) + int(fresh[some].sum())

    def _met(self, rows: IntArray, count: IntArray, fresh: BoolArray, tally: Tally) -> Tally:
        """Return the results of targets with their next ``count`` items."""
        torch, sent, scorer = _torch(), self._sent, cast("Any", self.score)
        users, targets = self.candidates.users[rows], self.candidates.targets[rows]
        row_of, place = _pairs(count, tally.scored[rows], sent)
        items = self._items(rows, tally.scored[rows], row_of, place)
        new = np.flatnonzero(fresh)
        who = torch.cat([sent(users[new]), sent(users)[row_of]])
        what = torch.cat([sent(targets[new]), items])[:, None]
        scores = scorer.of(who, what)
        if tuple(scores.shape) != tuple(what.shape) or bool(torch.isnan(scores).any()):
            found, who, what = (each.cpu().numpy() for each in (scores, who, what))
            as_scores(found, what.shape, who, what)
        scores, own = scores[:, 0], tally.own[rows]
        own[new] = scores[: len(new)].double().cpu().numpy()
        refuse_infinite_targets(own[new], users[new], targets[new])
        scores, rival = scores[len(new) :], sent(own)[row_of]
        better, infinite = (
            torch.bincount(row_of[which], minlength=len(rows)).cpu().numpy()
            for which in (scores > rival, torch.isinf(scores))
        )
        tied = (scores == rival).nonzero()[:, 0]
        ties = row_of[tied].cpu().numpy(), items[tied].cpu().numpy()
        return self.counted(rows, count, better, ties, infinite, own)

    def _items(self, rows: IntArray, first: IntArray, row_of: Any, place: Any) -> Any:
        """Return the items at some places of targets that are at number ``first``."""
        sent, listed = self._sent, self.orders.listed
        if listed is not None:
            row, size, own = (each[rows] for each in listed)
            if (first < size).any():
                # The target itself is left out if it is on the list.
                place = place + (place >= sent(own)[row_of])
                return self._lists[sent(row)[row_of], place].long()
        size, targets, excluded = self._rest(rows)
        place = place - sent(size)[row_of]
        if self._order is None:
            others = self.candidates.others[rows] - size
            place = _permuted(others, self.keys[rows], place, row_of, sent)
        found = items_at(_torch(), place, row_of, targets, excluded, self.candidates.items)
        return found if self._order is None else self._order[found]

    def _rest(self, rows: IntArray) -> tuple[IntArray, Any, tuple[Any, Any]]:
        """Return how many items are on lists, the targets, and the pairs (row, item) to leave out.

        Targets and items are named by their places in the order of the guide, if there is one.
        """
        size = self.orders.listed_others[rows]
        if size.any():
            some, _ = self.orders.rest(rows)
            row, column = (self._sent(ids.astype(np.int64)) for ids in some.excluded)
            return size, self._sent(some.targets), (row, column)
        users = self._sent(self.candidates.users[rows])
        targets = self._sent(self.orders.relabelled.targets[rows])
        return size, targets, self._excluded(users, targets)

    def _excluded(self, users: Any, targets: Any) -> tuple[Any, Any]:
        """Return the excluded pairs (row, item): see `Candidates.excluded`."""
        if self._exclude is None:
            return targets[:0], targets[:0]
        torch, (starts, items) = _torch(), self._exclude
        start = starts[users]
        size = starts[users + 1] - start
        row = torch.arange(len(users), device=size.device).repeat_interleave(size)
        at = torch.arange(len(row), device=size.device) + (start - size.cumsum(0) + size)[row]
        column = items[at]
        other = column != targets[row]
        return row[other], column[other]

    # What is sent to the device once.

    @cached_property
    def _exclude(self) -> tuple[Any, Any] | None:
        exclude = self.orders.relabelled.exclude
        if exclude is None:
            return None
        return self._sent(exclude.indptr).long(), self._sent(exclude.indices).long()

    @cached_property
    def _order(self) -> Any:
        order = self.orders.guide.order
        return None if order is None else self._sent(order)

    @cached_property
    def _lists(self) -> Any:
        assert self.orders.guide.lists is not None
        return self._sent(self.orders.guide.lists)

    def _sent(self, values: npt.NDArray[Any]) -> Any:
        return _sent(values, cast("Any", self.score).place)


def _pairs(count: IntArray, first: IntArray, sent: Any) -> tuple[Any, Any]:
    """Return the row and the place of the next ``count`` items of each target."""
    torch, total = _torch(), int(count.sum())
    times, begin = sent(count), sent(first - (np.cumsum(count) - count))
    row = torch.arange(len(count), device=times.device)
    row = row.repeat_interleave(times, output_size=total)
    return row, torch.arange(total, device=times.device) + begin[row]


def _permuted(
    size: IntArray, keys: npt.NDArray[np.uint64], places: Any, row_of: Any, sent: Any
) -> Any:
    """Return the items at some places of each target's random order: see `Orders.positions`."""
    left, right, words = (sent(each.astype(np.int64)) for each in network(size, keys))
    left, right, limit = left[:, 0], right[:, 0], sent(size)
    outside = _torch().arange(len(places), device=places.device)
    while len(outside):
        row = row_of[outside]
        places[outside] = _walk(places[outside], left[row], right[row], words[row])
        outside = outside[places[outside] >= limit[row]]
    return places


def _walk(places: Any, left: Any, right: Any, words: Any) -> Any:
    high = places // right
    low = places - high * right
    for step in range(0, ROUNDS, 2):
        high = _shifted(high, low, words[:, step], left)
        low = _shifted(low, high, words[:, step + 1], right)
    return high * right + low


def _shifted(digit: Any, other: Any, word: Any, radix: Any) -> Any:
    """Return a digit plus a keyed function of the other digit, modulo the radix."""
    mixed = (other + word) & _WORD
    mixed = ((mixed ^ (mixed >> 16)) * int(FIRST)) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * int(SECOND)) & _WORD
    digit = digit + (((mixed >> 16) * radix) >> 16)
    return _torch().where(digit >= radix, digit - radix, digit)


#: Compares targets with items until K beat each or none is left; yields targets and results.
Certify: TypeAlias = Callable[[IntArray, int], Iterator[tuple[IntArray, Tally]]]


def certify_fused(
    scores: DeviceScores, candidates: Candidates, order: IntArray | None, rows: IntArray, k: int
) -> Iterator[tuple[IntArray, Tally]]:
    """Compare targets with items in one order until ``k`` items beat each, or none is left.

    Without an order, items are sorted by their mean score for the users of these targets. Lists of
    users are not used, because the kernel compares a whole window as fast as it looks up a few
    items. It is the kernel of full rankings, so ranks are the same.
    """
    # Imported here, because Triton takes long to import.
    from unsample.designs import _fused

    torch, place, launch = scores.torch, scores.place, scores.launch
    if order is None:
        mean = scores.left[_sent(candidates.users[rows], place)].mean(dim=0)
        items = torch.argsort(scores.right @ mean, descending=True, stable=True)
    else:
        items = _sent(order, place)
    left, right = (scores.for_kernel(each) for each in (scores.left, scores.right[items]))
    places = torch.empty_like(items)
    places[items] = torch.arange(len(items), device=place)
    passed = _Passed.of(candidates, places)
    edges = [0, *(_FIRST_WINDOW << at for at in range(64)), candidates.items]
    edges = sorted({min(edge, candidates.items) for edge in edges})
    for start in range(0, len(rows), TARGETS):
        at = rows[start : start + TARGETS]
        users, targets = (_sent(each[at], place) for each in (candidates.users, candidates.targets))
        targets = places[targets]
        own = _fused.own_scores(left[users], right, targets, launch=launch)
        counts = torch.zeros((3, len(at)), dtype=torch.int64, device=place)
        still = torch.arange(len(at), device=place)
        also_passed = passed.holds(users, targets)
        for first, last in pairwise(edges):
            who, rival = users[still], own[still]
            some, window = left[who], right[first:last]
            above, level = _fused.count_above(some, window, rival, ties=True, launch=launch)
            here = (targets[still] >= first) & (targets[still] < last) & ~also_passed[still]
            met = last - first - here.long()
            if passed.keys is not None:
                pairs = passed.between(who, first, last)
                fewer = _fused.count_excluded(some, right, rival, pairs, launch=launch)
                above, level = above - fewer[0], level - fewer[1]
                met = met - (pairs[1] - pairs[0])
            counts[:, still] += torch.stack([met, above.long(), level - above - here.long()])
            still = still[counts[1, still] < k]
            if not len(still):
                break
        met, better, equal = counts.cpu().numpy()
        none = np.zeros(len(at), dtype=np.int64)
        yield at, Tally(met, better, equal, none, none, own.double().cpu().numpy())


@dataclass(frozen=True, eq=False)
class _Passed:
    """The excluded pairs (user, place), as sorted numbers, and their places."""

    items: int
    keys: Any = None
    places: Any = None

    @classmethod
    def of(cls, candidates: Candidates, places: Any) -> _Passed:
        torch, exclude = _torch(), candidates.exclude
        if exclude is None or not exclude.nnz:
            return cls(candidates.items)
        lengths = _sent(np.diff(exclude.indptr).astype(np.int64), places.device)
        users = torch.arange(len(lengths), device=places.device).repeat_interleave(lengths)
        found = places[_sent(exclude.indices, places.device).long()]
        keys = (users * candidates.items + found).sort().values
        return cls(candidates.items, keys, keys % candidates.items)

    def holds(self, users: Any, places: Any) -> Any:
        """Return which of these places are excluded. A target is a candidate nevertheless."""
        torch = _torch()
        if self.keys is None:
            return torch.zeros_like(places, dtype=torch.bool)
        wanted = users * self.items + places
        at = torch.searchsorted(self.keys, wanted).clamp(max=len(self.keys) - 1)
        return self.keys[at] == wanted

    def between(self, users: Any, first: int, last: int) -> tuple[Any, Any, Any]:
        """Return where places ``first..last - 1`` of each user begin and end, and all places."""
        torch, base = _torch(), users * self.items
        start, stop = (torch.searchsorted(self.keys, base + edge) for edge in (first, last))
        return start, stop, self.places


def by_products_on(scores: DeviceScores, order: IntArray) -> Count:
    """Return a function that counts windows of factors on a device."""
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
        # Starting a kernel takes as long as many scores, so tiles are as long as memory allows.
        width = _SCORES // len(windows)
        edges = windows.edges(width, width)
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
