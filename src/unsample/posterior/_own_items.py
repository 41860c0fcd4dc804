"""Where the items that users have seen are among the candidates: they push targets down.

A user's *own items* are the items that the user has seen. If s of them stand above a target, its
rank among all items is s more than its rank among unseen items, and ranks among unseen items follow
a smooth curve that other data sets teach.

Models differ in how many own items they put above a target: an autoencoder nearly all of them, a
model of the next item hardly any. A *push* describes one habit of models: the mean share of own
items that stand above a target, and how evenly users have it. Six pushes, with probabilities
learned from a corpus of rankings, predict NDCG@10 among all items from the ranks among unseen items
within a factor of e^0.25 on four in five of 452 rank sets (``benchmarks/pushes.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.sampling import RankGrid

#: The number of own items over its mean, in each tenth of the users: medians of 27 data sets.
_OVER_MEAN = (0.31, 0.36, 0.41, 0.50, 0.59, 0.71, 0.88, 1.14, 1.61, 3.49)
TENTHS = len(_OVER_MEAN)
#: Parts of the users of a tenth, who have different shares of their items above a target.
_PARTS = 5
#: Numbers of items above a target are rounded to about this part of them, and to this at least.
_ROUNDED = 0.1
_FINEST = 0.25


@dataclass(frozen=True)
class Push:
    """One habit of models: how many of a user's own items they put above a target.

    ``share`` is the mean over users of the share of own items above a target. ``evenness`` says how
    evenly users have it: it is the shape of a gamma distribution, so 50 gives all users nearly the
    same share, and 0.3 gives few users most of it. (No user's share exceeds 1.) ``probability`` is
    how many models have this habit.
    """

    share: float
    evenness: float
    probability: float


#: Learned from the ranks of 27 models on 27 data sets, among all items and among unseen ones.
PUSHES = (
    Push(share=0.04, evenness=0.3, probability=0.13),
    Push(share=0.12, evenness=0.3, probability=0.12),
    Push(share=0.35, evenness=0.3, probability=0.34),
    Push(share=0.9, evenness=0.3, probability=0.22),
    Push(share=0.9, evenness=1.0, probability=0.10),
    Push(share=0.9, evenness=50.0, probability=0.09),
)
#: The pushes where nobody knows how many items users have seen, by the mean number of own items
#: that may stand above a target.
UNKNOWN_PUSHES: Mapping[float, Push] = {
    1.5: Push(share=1.0, evenness=0.3, probability=0.3),
    5.0: Push(share=1.0, evenness=0.3, probability=0.3),
    20.0: Push(share=1.0, evenness=0.3, probability=0.22),
    8.0: Push(share=1.0, evenness=50.0, probability=0.08),
    25.0: Push(share=1.0, evenness=50.0, probability=0.06),
    90.0: Push(share=1.0, evenness=1.0, probability=0.04),
}


@dataclass(frozen=True)
class OwnItems:
    """How many own items stand above a target: each number, and the share of users who have it."""

    above: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, push: Push, seen: tuple[int, ...]) -> OwnItems:
        """Return the numbers under a push, for users who have seen ``seen`` items.

        ``seen`` is a number of items for each of some equal parts of the users. Within a part the
        shares of users are five quantiles of the push's gamma distribution. Here all users have
        seen 20 items, half of which stand above a target, evenly:

        >>> own_items = OwnItems.of(Push(share=0.5, evenness=50.0, probability=1.0), seen=(20,))
        >>> np.round(own_items.above, 2).tolist(), own_items.weights
        ([8.0, 9.6, 10.4, 12.0], (0.2, 0.4, 0.2, 0.2))

        The mean is 9.92, for numbers near one another are rounded to the same number: each costs a
        pass over all bins.
        """
        from scipy.special import gammaincinv

        middles = (np.arange(_PARTS) + 0.5) / _PARTS
        over_mean = gammaincinv(push.evenness, middles) / push.evenness
        over_mean /= over_mean.mean()
        of_user = np.array(seen, dtype=np.float64)[:, None]
        above = np.minimum(push.share * of_user * over_mean, of_user).ravel()
        power_of_two = 2.0 ** np.floor(np.log2(np.maximum(above, _FINEST)))
        step = np.maximum(_FINEST, _ROUNDED * power_of_two)
        numbers, times = np.unique(step * np.rint(above / step), return_counts=True)
        return cls(above=tuple(numbers.tolist()), weights=tuple((times / above.size).tolist()))


def usual_own_items(seen: tuple[int, ...]) -> list[tuple[OwnItems, float]]:
    """Return what usual models do with own items, each with its probability.

    ``seen`` is a number of items for each of some equal parts of the users; it is empty where
    nobody knows these numbers.

    >>> for own_items, probability in usual_own_items((30,))[:2]:
    ...     print(own_items.above, probability)
    (0.0, 0.25, 1.25, 4.4) 0.13
    (0.0, 0.25, 1.0, 3.75, 12.8) 0.12
    """
    if seen:
        return [(OwnItems.of(push, seen), push.probability) for push in PUSHES]
    return [
        (OwnItems.of(push, spread_over_users(mean)), push.probability)
        for mean, push in UNKNOWN_PUSHES.items()
    ]


@lru_cache(maxsize=16)
def push_matrix(grid: RankGrid, own_items: OwnItems) -> FloatArray:
    """Return where own items push targets: P(new bin | old bin), a column for each old bin.

    Half of the users have one own item above a target: rank 1 becomes rank 2. The other half have
    half an item: half of their targets stay at rank 1, and half go to rank 2.

    >>> grid = RankGrid(np.array([1, 2, 3, 4]), 4)
    >>> matrix = push_matrix(grid, OwnItems(above=(1.0, 0.5), weights=(0.5, 0.5)))
    >>> matrix[:, 0].tolist()
    [0.25, 0.75, 0.0, 0.0]
    >>> matrix[:, 3].tolist()                                    # nothing is pushed off the end
    [0.0, 0.0, 0.0, 1.0]
    """
    matrix = np.zeros((len(grid), len(grid)))
    for above, weight in zip(own_items.above, own_items.weights, strict=True):
        matrix += weight * _shifted(grid, above)
    return matrix


def _shifted(grid: RankGrid, by: float) -> FloatArray:
    """Return P(new bin | old bin) where each target goes down by one number of ranks.

    The targets of a bin lie evenly between its edges. Both edges move down, and a bin between them
    receives what lies inside it. The bin of the ranks 2 to 5 moves by 1 to the ranks 3 to 6: three
    quarters stay inside.

    >>> _shifted(RankGrid(np.array([1, 2, 6]), 9), by=1.0)[:, 1].tolist()
    [0.0, 0.75, 0.25]
    """
    bins = np.arange(len(grid))
    last_bin = len(grid) - 1
    edges = np.append(grid.low, grid.items + 1) - 0.5
    start = np.minimum(edges[:-1] + by, edges[-1])
    end = np.minimum(edges[1:] + by, edges[-1])
    matrix = np.zeros((len(grid), len(grid)))
    # All old bins go down together, from the first new bin of each to its last one.
    new_bin = np.minimum(np.searchsorted(edges, start, side="right") - 1, last_bin)
    before = np.zeros(len(grid))
    while True:
        # How much of each old bin lies above the lower edge of its new bin.
        passed = np.clip((edges[new_bin + 1] - start) / grid.width, 0.0, 1.0)
        passed = np.where(end <= edges[new_bin + 1], 1.0, passed)
        matrix[new_bin, bins] += passed - before
        if (passed >= 1.0).all() or (new_bin == last_bin).all():
            return matrix
        before = passed
        new_bin = np.minimum(new_bin + 1, last_bin)


def spread_over_users(mean: float) -> tuple[int, ...]:
    """Return how many items the users of each tenth have seen, given the mean over all users.

    >>> spread_over_users(100.0)
    (31, 36, 41, 50, 59, 71, 88, 114, 161, 349)
    """
    return tuple(round(mean * over_mean) for over_mean in _OVER_MEAN)


def tenths_of_users(seen: Sequence[int] | IntArray) -> tuple[int, ...]:
    """Return how many items the users of each tenth have seen: the median of each tenth.

    ``seen`` is the number of each user.

    >>> tenths_of_users(np.arange(1, 101))
    (6, 16, 26, 36, 46, 55, 65, 75, 85, 95)
    """
    middles = (np.arange(TENTHS) + 0.5) / TENTHS
    return tuple(int(number) for number in np.rint(np.quantile(seen, middles)))
