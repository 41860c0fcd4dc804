"""Lists that hold all relevant items of a user: ranks as in a uniform sample of the catalogue."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.errors import RankError
from unsample.evidence._columns import refuse_where
from unsample.metrics import places_of


def rank_in_lists(
    better: IntArray,
    user: IntArray,
    score: FloatArray | IntArray,
    *,
    items: IntArray,
    sampled: IntArray,
    replacement: bool,
    uniforms: tuple[FloatArray, ...],
) -> tuple[IntArray, IntArray, IntArray]:
    """Return ranks, sample sizes and places of targets in a list with all those of their user.

    A list holds all relevant items of a user and ``sampled`` others that are not relevant. Of
    these, ``better`` beat the target. Its ``score`` gives its order among the relevant items.
    ``items`` counts all candidates, including the relevant ones. Where all other items are in the
    list, ranks are those of the full list. Otherwise the list is turned into a uniform sample of
    all items but the target: sampled items are replaced by as many relevant items as such a sample
    would hold by chance.
    """
    # Ties with sampled items are already broken: scores decide the rest of the order.
    order = np.lexsort([-score, better, user])
    level = np.empty(len(order))
    level[order] = np.arange(len(order))
    place = places_of(user, level)
    relevant = np.bincount(user)[user]
    rivals = items - relevant
    refuse_where(rivals < 1, "items must exceed the relevant items of a user", items, RankError)
    full = (sampled == rivals) & (not replacement)
    several = (relevant > 1) & ~full
    drawn = np.where(full, 0, sampled)
    by_chance, by_place, by_rank = uniforms
    if replacement:
        others = _drawn(by_chance, drawn, (relevant - 1) / np.maximum(items - 1, 1))
        share = np.divide(place - 1, relevant - 1, out=np.zeros(len(place)), where=relevant > 1)
        above = _drawn(by_place, others, share)
    else:
        others = _drawn_once(by_chance, relevant - 1, rivals, drawn)
        above = _drawn_once(by_place, place - 1, relevant - place, others)
    # Those that stay are the others of those that are replaced, which are few.
    kept = better - _drawn_once(by_rank, better, sampled - better, others)
    ranks = np.where(several, 1 + kept + above, 1 + better)
    ranks = np.where(full, better + place, ranks)
    return ranks, np.where(full, items - 1, sampled), place


def _drawn(uniform: FloatArray, draws: IntArray, chance: FloatArray) -> IntArray:
    """Return how many of some draws succeed, as the binomial law puts each uniform number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.exp(draws * np.log1p(-chance))
        odds = np.divide(chance, 1 - chance, out=np.full(len(chance), np.inf), where=chance < 1)
    found = _inverse(uniform, first, lambda k: (draws - k) / (k + 1) * odds, draws)
    return np.where(chance >= 1, draws, found)


def _drawn_once(uniform: FloatArray, good: IntArray, bad: IntArray, draws: IntArray) -> IntArray:
    """Return how many draws without replacement hit good ones, by the hypergeometric law."""
    from scipy.special import gammaln

    least = np.maximum(0, draws - bad)

    def log_choose(n: IntArray, k: IntArray) -> FloatArray:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    first = np.exp(
        log_choose(good, least) + log_choose(bad, draws - least) - log_choose(good + bad, draws)
    )
    most = np.minimum(good, draws)

    def ratio(k: int) -> FloatArray:
        hits = least + k
        missed = np.maximum(bad - draws + hits + 1, 1)
        return np.asarray((good - hits) * (draws - hits) / ((hits + 1) * missed))

    return np.asarray(least + _inverse(uniform, first, ratio, most - least))


def _inverse(
    uniform: FloatArray, first: FloatArray, ratio: Callable[[int], FloatArray], most: IntArray
) -> IntArray:
    """Return the least number whose chances, from that of 0 on, add up to the uniform number."""
    found = np.zeros(len(uniform), dtype=np.int64)
    chance, total = first.copy(), first.copy()
    for k in range(int(most.max(initial=0))):
        going = (total < uniform) & (k < most)
        if not going.any():
            break
        found += going
        with np.errstate(over="ignore", invalid="ignore"):
            chance = np.where(k < most, chance * ratio(k), 0.0)
        total += chance
    return found
