"""Rounds on a device of torch: items are listed, scored and compared there, and counts come back.

`DeviceScan` does what a `Scan` does, for scores that can be had as tensors. `by_products_on` counts
windows of a guide's order, as `_windows.by_products` does on the processor. What goes to the device
in a round is a few numbers for each target; exclusions, lists and orders are put there once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, as_index
from unsample.designs._device import TARGETS, DeviceScores, matrix_products
from unsample.designs._guides import GuidedOrders
from unsample.designs._orders import FIRST, ROUNDS, SECOND, SHORT, Orders, network
from unsample.designs._scan import Candidates, Scan, Tally
from unsample.designs._scorers import as_scores, refuse_infinite_targets
from unsample.designs._windows import Count, Counted, Windows, rounding

#: Lower half of a 64-bit word.
_WORD = 0xFFFFFFFF
#: Scores that are held at a time where windows are compared.
_SCORES = 1 << 26
#: Targets whose windows are compared at a time.
WINDOWS_AT_ONCE = 1 << 12
#: Items of the first window of a certified ranking; each further one is as long as all before.
_FIRST_WINDOW = 1 << 10
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
    """A scan whose items never leave the device.

    Pairs of many targets lie in one row, however many items each target meets: a launch takes as
    long as thousands of pairs.
    """

    @classmethod
    def of(cls, scan: Scan) -> DeviceScan:
        """Return the scan of the same targets on the device of its scores."""
        return cls(**{each.name: getattr(scan, each.name) for each in fields(scan)})

    def advance(
        self, tally: Tally, goal: IntArray, *, batch: int, workers: int = 1
    ) -> Iterator[int]:
        """Compare every target with items until it met ``goal`` of them: lists first."""
        goals = [goal]
        if isinstance(self.guided, GuidedOrders):
            goals.insert(0, np.minimum(goal, self.guided.listed_others))
        for each in goals:
            while (rows := np.flatnonzero(tally.scored < each)).size:
                count = np.minimum((each - tally.scored)[rows], batch)
                fresh = np.isnan(tally.own[rows])
                part = (np.cumsum(count + fresh) - 1) // batch
                for some in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(part)) + 1):
                    found = self._met(rows[some], count[some], fresh[some], tally)
                    tally.add(rows[some], found)
                    yield int(count[some].sum()) + int(fresh[some].sum())

    def _met(self, rows: IntArray, count: IntArray, fresh: BoolArray, tally: Tally) -> Tally:
        """Return how targets compare with their next items, so many of each."""
        torch, sent = _torch(), self._sent
        scorer: TensorScores = self.score  # type: ignore[assignment]
        users, targets = self.candidates.users[rows], self.candidates.targets[rows]
        pairs = _Pairs.of(count, tally.scored[rows], sent)
        items = self._items(rows, pairs)
        new = np.flatnonzero(fresh)
        who = torch.cat([sent(users[new]), sent(users)[pairs.row]])
        what = torch.cat([sent(targets[new]), items])[:, None]
        scores = scorer.of(who, what)
        if tuple(scores.shape) != tuple(what.shape) or bool(torch.isnan(scores).any()):
            as_scores(
                scores.cpu().numpy(), tuple(what.shape), who.cpu().numpy(), what.cpu().numpy()
            )
        scores, own = scores[:, 0], tally.own[rows]
        own[new] = scores[: len(new)].double().cpu().numpy()
        refuse_infinite_targets(own[new], users[new], targets[new])
        scores, rival = scores[len(new) :], sent(own)[pairs.row]
        better, infinite = (
            torch.bincount(pairs.row[which], minlength=len(rows)).cpu().numpy()
            for which in (scores > rival, torch.isinf(scores))
        )
        tied = (scores == rival).nonzero()[:, 0]
        row, item = pairs.row[tied].cpu().numpy(), items[tied].cpu().numpy()
        lost = Orders(self.candidates.others[rows], self.keys[rows]).tie_is_lost(row, item)
        equal, lost_ties = (
            np.bincount(as_index(some), minlength=len(rows)) for some in (row, row[lost])
        )
        return Tally(count, better, equal, lost_ties, infinite, own)

    def _items(self, rows: IntArray, pairs: _Pairs) -> Any:
        """Return the items that some targets meet."""
        held, place = self._held, pairs.place
        if held.lists is not None and held.listed is not None:
            row, size, own = (each[rows] for each in held.listed)
            if (pairs.first < size).any():
                # The target itself is passed over where it stands on the list.
                place = place + (place >= self._sent(own)[pairs.row])
                return held.lists[self._sent(row)[pairs.row], place].long()
        others, passed, targets = self._rest(rows)
        place = place - self._sent(self.candidates.others[rows] - others)[pairs.row]
        if held.order is None:
            place = _permuted(others, self.keys[rows], place, pairs.row, self._sent)
        found = _items_at(place, pairs.row, targets, *passed, self.candidates.items)
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
class _Pairs:
    """Some targets with some items each, one after the other."""

    #: How many items each target met before.
    first: IntArray
    #: The row of each pair's target, and which of its items comes, both on the device.
    row: Any
    place: Any

    @classmethod
    def of(cls, count: IntArray, first: IntArray, sent: Any) -> _Pairs:
        """Return ``count`` items of each target, from number ``first`` on."""
        torch, total = _torch(), int(count.sum())
        times, begin = sent(count), sent(first - (np.cumsum(count) - count))
        row = torch.arange(len(count), device=times.device)
        row = row.repeat_interleave(times, output_size=total)
        return cls(first, row, torch.arange(total, device=times.device) + begin[row])


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


def _items_at(place: Any, row_of: Any, targets: Any, row: Any, column: Any, items: int) -> Any:
    """Return the items at places among other candidates: see `Candidates.items_at`."""
    torch, count = _torch(), len(targets)
    if not len(row):
        return place + (place >= targets[row_of])
    before = torch.bincount(row[column < targets[row]], minlength=count)
    place = place + (place >= (targets - before)[row_of])
    size = torch.bincount(row, minlength=count)
    first = size.cumsum(0) - size
    keys = column - (torch.arange(len(row), device=row.device) - first[row]) + row * (items + 1)
    found = torch.searchsorted(keys, place + row_of * (items + 1), right=True)
    return place + found - first[row_of]


def _permuted(
    size: IntArray, keys: npt.NDArray[np.uint64], places: Any, row_of: Any, sent: Any
) -> Any:
    """Return where the network of each target sends its places: see `Orders.positions`."""
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
    """Return a digit plus a keyed function of the other one, modulo the radix."""
    mixed = (other + word) & _WORD
    mixed = ((mixed ^ (mixed >> 16)) * int(FIRST)) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * int(SECOND)) & _WORD
    digit = digit + (((mixed >> 16) * radix) >> 16)
    return _torch().where(digit >= radix, digit - radix, digit)


#: Compares targets with items until K beat each or none is left; yields targets and their counts.
Certify: TypeAlias = Callable[[IntArray, int], Iterator[tuple[IntArray, Tally]]]


def certify_fused(
    scores: DeviceScores, candidates: Candidates, order: IntArray | None, rows: IntArray, k: int
) -> Iterator[tuple[IntArray, Tally]]:
    """Compare targets with items in one order until ``k`` items beat each, or none is left.

    Without an order, items come as these targets' users like them on average. Users' own lists are
    not looked at: a kernel compares a whole window of items in the time in which a few would be
    looked up. It scores as it does in full rankings, so ranks are the same.
    """
    # Imported here, for Triton takes a while.
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
    """What each user passes over: pairs (user, place) as sorted numbers, and their places."""

    items: int
    keys: Any = None
    places: Any = None

    @classmethod
    def of(cls, candidates: Candidates, places: Any) -> _Passed:
        """Name what is excluded by its place in the order of all items."""
        torch, exclude = _torch(), candidates.exclude
        if exclude is None or not exclude.nnz:
            return cls(candidates.items)
        lengths = _sent(np.diff(exclude.indptr).astype(np.int64), places.device)
        users = torch.arange(len(lengths), device=places.device).repeat_interleave(lengths)
        found = places[_sent(exclude.indices, places.device).long()]
        keys = (users * candidates.items + found).sort().values
        return cls(candidates.items, keys, keys % candidates.items)

    def holds(self, users: Any, places: Any) -> Any:
        """Return whether these places are passed over: a target is a candidate all the same."""
        torch = _torch()
        if self.keys is None:
            return torch.zeros_like(places, dtype=torch.bool)
        wanted = users * self.items + places
        at = torch.searchsorted(self.keys, wanted).clamp(max=len(self.keys) - 1)
        return self.keys[at] == wanted

    def between(self, users: Any, first: int, last: int) -> tuple[Any, Any, Any]:
        """Return where the places from ``first`` to before ``last`` begin and end, and all."""
        torch, base = _torch(), users * self.items
        start, stop = (torch.searchsorted(self.keys, base + edge) for edge in (first, last))
        return start, stop, self.places


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
        # A launch takes as long as many scores, so tiles are as long as memory allows.
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
