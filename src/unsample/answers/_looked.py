"""What an audit looks at: all counts and tests, before they are put into words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.confidence import (
    CountTest,
    DrawnLists,
    Power,
    permuted,
    power_law,
    same_lists,
    too_few,
)
from unsample.evidence import ListCounts, Negatives, overlaps

#: Probabilities that vary by less than this are nearly equal. A law that is off by less than this
#: nearly fits. With 10^8 draws much smaller differences are significant, but do no harm.
NEARLY = 0.05
#: The most pairs of neighbouring lists that are compared, and the fewest.
_NEIGHBOURS, _FEWEST_NEIGHBOURS = 1000, 5
#: With this many draws for each item, it is not by chance that an item was never drawn.
_OFTEN = 10
#: Questions that lists of all candidates can answer.
_OF_COMPLETE = ("replacement", "seen items", "targets")
#: How many groups of items a profile has.
_GROUPS = 20


@dataclass(frozen=True)
class Group:
    """Some items: their place in the order, in percent, and their draws, found and expected."""

    place: float
    items: int
    draws: int
    expected: float
    #: How much their ratio varies by chance alone, at 95 %.
    noise: float

    @property
    def ratio(self) -> float:
        """Return draws over expected draws."""
        return self.draws / self.expected if self.expected > 0.0 else math.nan


@dataclass(frozen=True)
class Profile:
    """How draws change along an order of the items: groups of equal size, in this order."""

    along: str
    groups: tuple[Group, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain values."""
        names = ("place", "items", "draws", "expected")
        rows = [{name: getattr(group, name) for name in names} for group in self.groups]
        return {"along": self.along, "groups": rows}


@dataclass(frozen=True, eq=False)
class Looked:
    """All counts and tests of an audit, before they are put into words."""

    negatives: Negatives
    popularity: FloatArray | None
    #: The probability of each item in a single draw, if it is stated.
    probabilities: FloatArray | None
    alpha: float
    rng: np.random.Generator

    @cached_property
    def found(self) -> ListCounts:
        """Return what is counted in a single pass over the lists."""
        return ListCounts.of(self.negatives)

    @cached_property
    def distinct(self) -> int:
        """Return the number of distinct lists."""
        return int(self.found.first.sum())

    @cached_property
    def sameness(self) -> CountTest | None:
        """Return the test of whether lists are equal only by chance."""
        return same_lists(self.found, self.negatives)

    @cached_property
    def kept(self) -> BoolArray:
        """Return which lists were drawn separately: of shared lists the first."""
        tested = self.sameness
        shared = tested is not None and tested.p_value < self.alpha
        return self.found.first if shared else np.ones(len(self.negatives), dtype=bool)

    @cached_property
    def seen_out(self) -> bool:
        """Return whether lists leave out what their user has seen; shared lists cannot."""
        known = self.negatives.exclude is not None and bool(self.kept.all())
        return known and not self.found.seen.any()

    @cached_property
    def whole(self) -> DrawnLists:
        """Return the lists, each once, as draws from the whole catalogue."""
        return self._lists(None)

    def _lists(self, there: BoolArray | None) -> DrawnLists:
        targets_out = bool(self.kept.all()) and not self.found.targets.any()
        return DrawnLists.of(
            self.negatives,
            self.found,
            self.kept,
            seen_out=self.seen_out,
            targets_out=targets_out,
            there=there,
        )

    @cached_property
    def lists(self) -> DrawnLists:
        """Return the lists as draws from the items that seem to be candidates.

        If far too many items were never drawn, and all others equally often, the others are taken
        as the catalogue.
        """
        whole = self.whole
        there = whole.counts > 0
        often = whole.draws >= _OFTEN * max(int(there.sum()), 1)
        if not often or whole.never_drawn(whole.expected).p_value >= self.alpha:
            return whole
        fewer = self._lists(there)
        tested = fewer.uniformity
        if tested is None:
            return whole
        spread = math.sqrt(max(tested.value / tested.expected - 1.0, 0.0))
        return fewer if tested.p_value >= self.alpha or spread < NEARLY else whole

    @cached_property
    def complete(self) -> bool:
        """Return whether each list holds all of its candidates."""
        held = self.negatives
        own = np.ones(len(held), dtype=np.int64)  # a target is never a negative, known or not
        if held.target_lists is not None:
            own = np.maximum(np.bincount(held.target_lists, minlength=len(held)), 1)
        left_out = own + held.weight_left_out(np.ones(held.items)).astype(np.int64)
        whole = bool((held.sizes >= held.items - left_out).all())
        met = self.found.repeats.any() or self.found.seen.any() or self.found.targets.any()
        return whole and not met

    @property
    def catalogue(self) -> int:
        """Return how many items seem to be candidates, judged by the draws."""
        return int((self.lists.expected > 0.0).sum())

    @cached_property
    def power(self) -> Power | None:
        """Return the power of popularity that fits the draws best."""
        if self.popularity is None:
            return None
        law = power_law(self.negatives, self.lists, self.kept, self.popularity, out=self.seen_out)
        return None if law is None else law.fit()

    @cached_property
    def stated(self) -> Power | None:
        """Return how well the stated probabilities fit."""
        if self.probabilities is None:
            return None
        law = power_law(
            self.negatives, self.lists, self.kept, self.probabilities, out=self.seen_out
        )
        return None if law is None else law.judge(1.0)

    @cached_property
    def variations(self) -> dict[str, float]:
        """Return how much the items' probabilities vary (coefficient of variation), for each test.

        The tests see all differences, those along popularity, and those along the item's number.
        """
        found: dict[str, float] = {}
        tested, slope, power = self.lists.uniformity, self.lists.slope, self.power
        if tested is not None:
            found["uniform"] = math.sqrt(max(tested.value / tested.expected - 1.0, 0.0))
        if power is not None:
            mean = float(power.expected.mean())
            found["popularity"] = float(power.expected.std()) / mean if mean > 0.0 else 0.0
        if slope is not None:
            # The standard deviation of n consecutive numbers is n over the root of 12.
            shift = abs(slope.value - slope.expected)
            found["item numbers"] = shift * math.sqrt(12.0) / self.negatives.items
        return found

    def variation(self, p_values: Mapping[str, float], alpha: float) -> float:
        """Return the largest variation that is significant; 0 if none is."""
        return max(
            (size for name, size in self.variations.items() if p_values.get(name, 1.0) < alpha),
            default=0.0,
        )

    @cached_property
    def even(self) -> bool:
        """Return whether the other tests may assume equal probabilities."""
        tested, slope, power = self.lists.uniformity, self.lists.slope, self.power
        p_values = {
            "uniform": 1.0 if tested is None else tested.p_value,
            "item numbers": 1.0 if slope is None else slope.p_value,
            "popularity": 1.0 if power is None else power.p_of_uniform,
        }
        return self.variation(p_values, self.alpha) < NEARLY

    @cached_property
    def other_law(self) -> Power | None:
        """Return a law of unequal probabilities that other tests may assume."""
        for law in (self.stated, self.power):
            if law is not None and (law.p_value >= self.alpha or law.misfit < NEARLY):
                return law
        return None

    @cached_property
    def strays(self) -> int:
        """Return the draws of items with popularity 0, which no power explains."""
        if self.popularity is None:
            return 0
        return int(self.lists.counts[self.popularity <= 0.0].sum())

    @cached_property
    def chance_of_pair(self) -> FloatArray:
        """Return the probability that two draws of a list are equal, if items may occur twice."""
        lists = self.lists
        if self.even or lists.pairs_between <= 0.0:
            return np.asarray(1.0 / lists.candidates)
        return np.full(len(lists.sizes), lists.coincidences / lists.pairs_between)

    def profiles(self) -> tuple[Profile, ...]:
        """Return how draws change with the item's number, and with its popularity."""
        found = [self._profile("item number", np.arange(self.negatives.items))]
        if self.popularity is not None:
            order = np.argsort(-self.popularity, kind="stable")
            found.append(self._profile("popularity, the highest first", order))
        return tuple(found)

    def _profile(self, along: str, order: IntArray) -> Profile:
        lists, groups = self.lists, []
        parts = np.array_split(order, min(_GROUPS, len(order)))
        for number, members in enumerate(parts):
            expected = float(lists.expected[members].sum())
            noise = 1.96 * math.sqrt(float(lists.variance[members].sum()))
            place = 100.0 * (number + 0.5) / len(parts)
            draws = int(lists.counts[members].sum())
            share = noise / expected if expected > 0.0 else math.nan
            groups.append(Group(place, len(members), draws, expected, share))
        return Profile(along, tuple(groups))

    def tests(self) -> dict[str, CountTest]:
        """Return every possible test, by its question."""
        lists, made = self.lists, dict[str, CountTest | None]()
        made["replacement"] = lists.repeated(self.chance_of_pair)
        made["uniform"] = lists.uniformity
        made["item numbers"] = lists.slope
        if self.power is not None:
            made["popularity"] = CountTest(self.power.exponent, 0.0, self.power.p_of_uniform)
            if not self.even:
                fit = CountTest(self.power.statistic, self.power.freedom, self.power.p_value)
                made["fit of popularity"] = fit
        if self.stated is not None:
            stated = self.stated
            made["probabilities"] = CountTest(stated.statistic, stated.freedom, stated.p_value)
        made["seen items"] = self._met(self.found.seen, self._seen_if_kept())
        made["targets"] = self._met(self.found.targets, self._targets_if_kept())
        made["shared lists"] = self.sameness
        made["neighbours"] = self._neighbours()
        if self.even:
            made["never drawn"] = self.whole.never_drawn(self.whole.expected)
        elif (law := self.other_law) is not None:
            expected = np.zeros(self.negatives.items)
            expected[law.there] = law.expected
            made["never drawn"] = lists.never_drawn(expected)
        # If every list holds all candidates, there are no probabilities to test.
        asked = _OF_COMPLETE if self.complete else tuple(made)
        return {
            name: tested for name, tested in made.items() if tested is not None and name in asked
        }

    def _met(self, found: Any, expected: float | None) -> CountTest | None:
        if expected is None:
            return None
        hits = float(found.sum())
        return CountTest(hits, expected, too_few(hits, expected))

    def _seen_if_kept(self) -> float | None:
        """Return how many seen items the lists would hold if these were drawn like all others."""
        if self.negatives.exclude is None:
            return None
        chance = self._chances()
        share = self.negatives.weight_left_out(chance)
        return float((share * self.negatives.sizes).sum())

    def _targets_if_kept(self) -> float | None:
        lists, items = self.negatives.target_lists, self.negatives.target_items
        if lists is None or items is None:
            return None
        return float((self._chances()[items] * self.negatives.sizes[lists]).sum())

    def _chances(self) -> FloatArray:
        """Return the probability of each item: equal, or its share of the draws."""
        if self.even:
            return np.asarray(self.lists.expected / self.lists.expected.sum())
        return np.asarray(self.lists.counts / max(self.lists.draws, 1))

    def _neighbours(self) -> CountTest | None:
        """Return the test of whether neighbours share more items than other lists."""
        pairs = len(self.negatives) // 2
        if pairs < _FEWEST_NEIGHBOURS or self.distinct == 1:
            return None
        left = 2 * np.arange(pairs)
        if pairs > _NEIGHBOURS:
            left = 2 * np.sort(self.rng.choice(pairs, _NEIGHBOURS, replace=False))
        return permuted(overlaps(self.negatives, left, left + 1), self.rng)
