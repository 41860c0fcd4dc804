"""Lists that hold all relevant items of a user: ranks as in a uniform sample of the catalogue."""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, IntArray, Seed, as_rng
from unsample.counts._catalogues import some_in_full
from unsample.counts._columns import refuse_where
from unsample.errors import RankError
from unsample.metrics import positions_by_user

#: numpy draws from fewer items than this; of more, a draw hardly ever hits the same one.
_MAX_ITEMS = 10**9 - 1


def rank_in_lists(
    better: IntArray,
    user: IntArray,
    score: FloatArray | IntArray,
    *,
    items: IntArray,
    sampled: IntArray,
    replacement: bool,
    rng: Seed,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return ranks, sample sizes and positions of targets in lists of all relevant items of a user.

    Where all other items are in the list, its ranks are full ranks. Otherwise the list becomes a
    uniform sample of all items but the target. Such a sample would hold some of the user's other
    relevant items: their number is drawn, and they replace sampled items. The order of the rows
    does not matter.

    Parameters
    ----------
    better
        How many sampled items beat the target.
    user
        The number of the user, from 0.
    score
        Gives the order of a user's relevant items that as many sampled items beat.
    items
        How many candidates there are, including the relevant ones.
    sampled
        How many items of the list are not relevant.
    replacement
        Whether these may occur twice.
    rng
        Seed of the draws.

    One user has two relevant items, and all three others are in the list:

    >>> rank_in_lists(
    ...     np.array([0, 2]), np.array([0, 0]), np.array([0.9, 0.2]),
    ...     items=np.array([5, 5]), sampled=np.array([3, 3]), replacement=False, rng=0,
    ... )
    (array([1, 4]), array([4, 4]), array([1, 2]))
    """
    generator = as_rng(rng)
    # Ties with sampled items are already broken: scores decide the rest of the order.
    order = np.lexsort([-score, better, user])
    sorted_index = np.argsort(order)
    position = positions_by_user(user, sorted_index.astype(np.float64))
    relevant = np.bincount(user)[user]
    rivals = items - relevant
    rule = "items must exceed the relevant items of a user"
    refuse_where(rivals < 1, rule, values=items, error=RankError)
    full = (sampled == rivals) & (not replacement or some_in_full(rivals + 1, sampled))
    drawn = np.where(full, 0, sampled)

    # Numbers are drawn in the sorted order, so that the order of the rows does not matter.
    def successes(draws: IntArray, probability: FloatArray) -> IntArray:
        """Return how many draws succeed, each with this probability."""
        return np.asarray(generator.binomial(draws[order], probability[order])[sorted_index])

    def hits(good: IntArray, bad: IntArray, *, draws: IntArray) -> IntArray:
        """Return how many draws without replacement are good ones."""
        rest = np.minimum(bad, _MAX_ITEMS - good)
        possible = np.minimum(draws, good + rest)
        return np.asarray(
            generator.hypergeometric(good[order], rest[order], possible[order])[sorted_index]
        )

    # How many other relevant items the sample would hold, and how many of them beat the target.
    if replacement:
        others = successes(drawn, (relevant - 1) / np.maximum(items - 1, 1))
        no_others = np.zeros(len(position))
        share = np.divide(position - 1, relevant - 1, out=no_others, where=relevant > 1)
        others_above = successes(others, share)
    else:
        others = hits(relevant - 1, rivals, draws=drawn)
        others_above = hits(position - 1, relevant - position, draws=others)
    replaced = hits(better, sampled - better, draws=others)
    ranks = np.where(full, better + position, 1 + better - replaced + others_above)
    return ranks, np.where(full, items - 1, sampled), position
