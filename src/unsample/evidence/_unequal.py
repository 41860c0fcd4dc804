"""What was seen of targets whose negatives were not drawn uniformly.

Each item has its own chance of being in a target's sample. Items that were taken whole have chance
one: those of them that beat the target are counted for certain. Of the others, an item with chance
pi that beats the target stands for 1/pi such items, so that the sum of 1/pi is an unbiased estimate
of how many there are (Horvitz and Thompson 1952).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, as_index, check_integer
from unsample.errors import DesignError, InputError
from unsample.evidence._negatives import Negatives, check_probabilities

#: Chances above this are certainty.
_CERTAIN = 1.0 - 1e-9
#: Chances that differ by less are the same.
_SAME = 1e-9
_BISECTIONS = 40
#: What a stratum may be, beside a number of items.
WHOLE, REST = "all", "rest"


@dataclass(frozen=True, eq=False)
class SeenItems:
    """Of each target, which items were in its sample, and what is known of them.

    Items stand list after list, as in ``negatives``, each once.
    """

    negatives: Negatives
    #: Whether the item beats its target, and its chance of having been in the sample.
    beats: BoolArray
    chance: FloatArray
    #: The number of candidates of each target, itself included.
    items: IntArray
    #: Whether items outside the sample could have been in it; otherwise nothing is known of them.
    rest_drawn: bool = True

    def __len__(self) -> int:
        return len(self.negatives)

    @cached_property
    def owner(self) -> IntArray:
        """Return the target of each item."""
        return np.repeat(np.arange(len(self)), as_index(self.negatives.sizes))

    @cached_property
    def is_certain(self) -> BoolArray:
        """Return which items were taken whatever chance did."""
        return np.asarray(self.chance >= _CERTAIN)

    @cached_property
    def certain(self) -> IntArray:
        """Return how many certain items beat each target."""
        return self._count(self.beats & self.is_certain)

    @cached_property
    def taken(self) -> IntArray:
        """Return how many certain items each target has."""
        return self._count(self.is_certain)

    @cached_property
    def hits(self) -> IntArray:
        """Return how many of the drawn items beat each target."""
        return self._count(self.hit)

    @cached_property
    def hit(self) -> BoolArray:
        """Return which items were drawn by chance and beat their target."""
        return self.beats & ~self.is_certain

    @cached_property
    def drawn(self) -> IntArray:
        """Return how many items were drawn by chance for each target."""
        return np.asarray(self.negatives.sizes - self.taken)

    @property
    def best(self) -> IntArray:
        """Return the best rank that each target may have: one more than the items seen ahead."""
        return np.asarray(1 + self.certain + self.hits)

    @property
    def candidates_seen(self) -> tuple[float, float]:
        """Return how many candidates the drawn items stand for, and the standard error of that.

        As a share of those there are: it is one if every item could be drawn as stated.
        """
        stand_for = np.bincount(self.owner, 1.0 / self.chance, minlength=len(self))
        share = stand_for / np.maximum(self.items - 1, 1)
        return float(share.mean()), float(share.std()) / math.sqrt(len(self))

    @property
    def unbiased_ranks(self) -> FloatArray:
        """Return estimates of each target's rank whose expectation is the rank."""
        stands_for = np.where(self.beats, 1.0 / self.chance, 0.0)
        return np.asarray(1.0 + np.bincount(self.owner, stands_for, minlength=len(self)))

    @cached_property
    def uniform(self) -> bool:
        """Return whether all items drawn for a target had the same chance."""
        chance, owner = self.chance[~self.is_certain], self.owner[~self.is_certain]
        most = np.zeros(len(self))
        np.maximum.at(most, owner, chance)
        return bool((np.abs(chance - most[owner]) <= _SAME).all())

    def _count(self, kept: BoolArray) -> IntArray:
        return np.bincount(self.owner[kept], minlength=len(self)).astype(np.int64)


def seen_items(
    negatives: Negatives,
    beats: BoolArray,
    *,
    probabilities: Any = None,
    given: FloatArray | None = None,
    strata: Any = None,
    names: Any = None,
    replacement: bool = True,
) -> SeenItems:
    """Return what was seen, with the chance of each item.

    One of these says how items were drawn. ``probabilities``: the chance of each item of the
    catalogue in one draw, among items that a user could draw. ``given``: the chance that each row's
    item was in the sample. ``strata``: a label for each item of the catalogue, items of a label
    drawn uniformly; or with ``names``, the stratum of each row, what each stratum is: ``"all"``,
    ``"rest"`` or a number of items.
    """
    draws = negatives.sizes
    kept = _first_of_equal(negatives)
    once = _without(negatives, kept)
    seen = negatives.weight_left_out(np.ones(negatives.items)).astype(np.int64)
    # Without a table of training items, every other item is a candidate.
    items = negatives.items - seen
    owner = np.repeat(np.arange(len(once)), as_index(once.sizes))
    rest = True
    if given is not None:
        chance = _checked_chances(given[kept])
        rest = bool((chance < _CERTAIN).any())
    elif probabilities is not None:
        chances = check_probabilities(probabilities, negatives.count())
        rate = _rates(once, chances, draws, replacement=replacement)
        chance = -np.expm1(-rate[owner] * chances[once.ids])
    elif names is not None:
        chance, rest = _chances_by_name(once, names[kept], strata, items)
    else:
        chance = _chances_by_label(once, strata)
    return SeenItems(once, beats[kept], chance, items, rest)


def _rates(
    once: Negatives, chances: FloatArray, draws: IntArray, *, replacement: bool
) -> FloatArray:
    """Return for each target the rate t with which item i is in its sample: 1 - exp(-t q_i).

    With replacement, n draws of mass m: (1 - q/m)^n is nearly exp(-n q/m). Without, a sample is as
    if items arrived at times with rate q_i and the first n were kept (Rosen 1997): t is the time
    at which n have arrived on average.
    """
    who, left_out = once.pairs_left_out
    rate = chances[left_out]
    mass = 1.0 - np.bincount(who, rate, minlength=len(once))
    if (mass <= 0.0).any():
        raise InputError(
            "probabilities must leave a user something to draw, got users whose seen items have "
            "all of the chances"
        )
    if replacement:
        return np.asarray(draws / mass)
    ladder = np.geomspace(1e-3, 1e9, 600)
    arrived = np.array([-np.expm1(-chances * time).sum() for time in ladder])
    possible = np.count_nonzero(chances)
    if (draws >= possible).any():
        raise DesignError(
            f"sampled must be below the {possible:,} items that can be drawn, got "
            f"{int(draws.max()):,} without replacement; pass replacement=True if items repeat"
        )
    low, high = np.log(draws / 2.0), np.full(len(once), np.log(1e9))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        missing = -np.expm1(-rate * np.exp(middle)[who])
        there = np.interp(middle, np.log(ladder), arrived)
        there -= np.bincount(who, missing, minlength=len(once))
        low, high = np.where(there < draws, middle, low), np.where(there < draws, high, middle)
    return np.asarray(np.exp((low + high) / 2.0))


def _chances_by_label(once: Negatives, strata: Any) -> FloatArray:
    """Return the chances where items of the same label were drawn uniformly."""
    labels = np.asarray(strata)
    if labels.shape != (once.items,):
        raise InputError(
            f"strata must hold a label for each of the {once.items:,} items, got shape "
            f"{labels.shape}; with a column stratum, give what each stratum is"
        )
    names, label = np.unique(labels, return_inverse=True)
    label = label.reshape(-1)
    who, left_out = once.pairs_left_out
    owner = np.repeat(np.arange(len(once)), as_index(once.sizes))
    found = np.empty(len(once.ids))
    for number, name in enumerate(names):
        inside = (label == number).astype(np.float64)
        size = inside.sum() - np.bincount(who, inside[left_out], minlength=len(once))
        mine = label[once.ids] == number
        # How many are drawn from a stratum may vary by chance: the mean holds for all targets.
        drawn = float(mine.sum()) / len(once)
        if drawn == 0.0:
            raise InputError(
                f"strata must each have been drawn from, got none of the {int(inside.sum()):,} "
                f"items of stratum {str(name)!r}; nothing can be known of them"
            )
        found[mine] = (drawn / np.maximum(size[owner[mine]], 1.0)).clip(max=1.0)
    return found


def _chances_by_name(
    once: Negatives, names: Any, strata: Any, items: IntArray
) -> tuple[FloatArray, bool]:
    """Return the chances of rows that name their stratum, and whether the rest was drawn from."""
    if not isinstance(strata, Mapping):
        raise InputError(
            "strata must say what each value of column stratum is, such as "
            f"{{'list': 'all', 'random': 'rest'}}, got {type(strata).__name__}"
        )
    found = np.empty(len(once.ids))
    owner = np.repeat(np.arange(len(once)), as_index(once.sizes))
    rest = False
    known = {str(name): kind for name, kind in strata.items()}
    text = np.asarray(names).astype(np.str_)
    whole = np.isin(text, [name for name, kind in known.items() if kind == WHOLE])
    others = items - 1 - np.bincount(owner[whole], minlength=len(once))
    sizes = {name: kind for name, kind in known.items() if isinstance(kind, int | np.integer)}
    others = others - int(sum(sizes.values()))
    if sizes and REST not in known.values() and (others > 0).any():
        raise InputError(
            f"strata must hold all candidates, got {int(others.max()):,} items that are in none "
            "and could never be drawn; add a stratum 'rest', or give items as the number of "
            "candidates"
        )
    for name in np.unique(text):
        kind, mine = known.get(str(name)), text == name
        drawn = np.bincount(owner[mine], minlength=len(once))
        if kind == WHOLE:
            found[mine] = 1.0
            continue
        rest = True
        if kind == REST:
            size = others
        elif isinstance(kind, int | np.integer) and not isinstance(kind, bool):
            least = int(drawn.max())
            size = np.full(len(once), check_integer(f"stratum {name!r}", kind, minimum=least))
        else:
            raise InputError(
                f"strata must say of {str(name)!r} that it is 'all', 'rest' or a number of items, "
                f"got {kind!r}"
            )
        found[mine] = (drawn / np.maximum(size, 1))[owner[mine]].clip(max=1.0)
    return found, rest


def _checked_chances(given: FloatArray) -> FloatArray:
    bad = ~((given > 0.0) & (given <= 1.0))
    if bad.any():
        raise InputError(
            "probabilities must be chances above 0 and up to 1 of items that were drawn, got "
            f"{given[int(np.argmax(bad))]}"
        )
    return given


def _first_of_equal(negatives: Negatives) -> BoolArray:
    """Return which draws are the first of their item in their list."""
    kept = np.zeros(len(negatives.ids), dtype=bool)
    for part in negatives.blocks():
        first = np.unique(negatives.keys(part), return_index=True)[1]
        kept[negatives.starts[part.start] + first] = True
    return kept


def _without(negatives: Negatives, kept: BoolArray) -> Negatives:
    """Return lists of which some draws are left out."""
    starts = as_index(np.minimum(negatives.starts[:-1], len(kept)))
    sizes = np.add.reduceat(np.append(kept, False).astype(np.int64), starts)
    sizes = np.where(negatives.sizes > 0, sizes, 0)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return Negatives(
        negatives.ids[kept],
        starts,
        negatives.items,
        negatives.users,
        negatives.exclude,
        negatives.target_lists,
        negatives.target_items,
    )
