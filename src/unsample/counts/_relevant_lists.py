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
    """Return ranks, sample sizes and positions of targets in a list with all those of their user.

    A list holds all relevant items of a user and ``sampled`` others that are not relevant. Of
    these, ``better`` beat the target. Its ``score`` gives its order among the relevant items.
    ``items`` counts all candidates, including the relevant ones. Where all other items are in the
    list, ranks are those of the full list. Otherwise the list becomes a uniform sample of
    all items but the target: sampled items are replaced by as many relevant items as such a
    sample would hold at random. The order of the rows does not matter.
    """
    generator = as_rng(rng)
    # Ties with sampled items are already broken: scores decide the rest of the order.
    order = np.lexsort([-score, better, user])
    level = np.argsort(order)
    position = positions_by_user(user, level.astype(np.float64))
    relevant = np.bincount(user)[user]
    rivals = items - relevant
    refuse_where(
        rivals < 1, "items must exceed the relevant items of a user", values=items, error=RankError
    )
    full = (sampled == rivals) & (not replacement or some_in_full(rivals + 1, sampled))
    drawn = np.where(full, 0, sampled)

    def hits(good: IntArray, bad: IntArray, draws: IntArray) -> IntArray:
        """Return how many draws without replacement hit good ones, drawn in the sorted order."""
        rest = np.minimum(bad, _MAX_ITEMS - good)
        found = generator.hypergeometric(
            good[order], rest[order], np.minimum(draws, good + rest)[order]
        )
        return np.asarray(found[level])

    if replacement:
        probability = (relevant - 1) / np.maximum(items - 1, 1)
        others = generator.binomial(drawn[order], probability[order])[level]
        share = np.divide(
            position - 1, relevant - 1, out=np.zeros(len(position)), where=relevant > 1
        )
        above = generator.binomial(others[order], share[order])[level]
    else:
        others = hits(relevant - 1, rivals, draws=drawn)
        above = hits(position - 1, relevant - position, draws=others)
    kept = better - hits(better, sampled - better, draws=others)
    ranks = np.where(full, better + position, 1 + kept + above)
    return ranks, np.where(full, items - 1, sampled), position
