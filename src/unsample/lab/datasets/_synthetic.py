"""Synthetic interactions that look like real ones: few popular items, few busy users, tastes.

User u takes n_u distinct items, one after the other, each with probability proportional to

    w(u, i) = popularity(i) * exp(taste * <p_u, q_i>)

among the items not yet taken. Popularity falls as a power of the item's place, n_u is log-normal,
and p and q are Gaussian with <p_u, q_i> of unit variance. Drawing without replacement needs no
loop: the n_u items with the largest log w + Gumbel noise are such a draw.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_integer, check_real
from unsample.lab.datasets._interactions import Interactions

#: Scores held in memory at a time.
_BLOCK = 1 << 20
#: Exponential noise may be zero in float32, and its logarithm must stay finite.
_TINY = np.finfo(np.float32).tiny
#: No user takes more than this share of the catalogue.
_LARGEST_SHARE = 0.5


def synthetic(
    users: int,
    items: int,
    *,
    pairs: int | None = None,
    popularity: float = 0.8,
    activity: float = 0.9,
    taste: float = 2.0,
    factors: int = 8,
    fewest: int = 3,
    rng: Seed,
) -> Interactions:
    """Generate interactions with popular items, busy users and tastes that can be learnt.

    Parameters
    ----------
    users, items
        How many of each; item ids say nothing about popularity.
    pairs
        About how many pairs in all; by default 40 a user, or a tenth of the catalogue if less.
    popularity
        Exponent of the power law of popularity; 0 makes all items alike.
    activity
        Standard deviation of the logarithm of a user's number of items.
    taste
        How strongly users differ: standard deviation of log w between users. At 0 nothing but
        popularity can be learnt.
    factors
        Number of dimensions of taste.
    fewest
        The fewest items a user has.
    rng
        Seed or Generator; the same seed gives the same interactions.

    ``time`` counts up over all pairs; a user's items come in random order.

    >>> synthetic(100, 200, pairs=2000, rng=0)
    Interactions(synthetic, 100 users, 200 items, 2,000 pairs)
    """
    users = check_integer("users", users, minimum=1)
    items = check_integer("items", items, minimum=2)
    factors = check_integer("factors", factors, minimum=1)
    popularity = check_real("popularity", popularity, low=0.0)
    activity = check_real("activity", activity, low=0.0)
    taste = check_real("taste", taste, low=0.0)
    most = max(1, int(items * _LARGEST_SHARE))
    fewest = check_integer("fewest", fewest, minimum=1, maximum=most)
    if pairs is None:
        pairs = users * max(fewest, min(40, items // 10))
    pairs = check_integer(
        "pairs",
        pairs,
        minimum=users * fewest,
        maximum=users * most,
        hint=f"a user has {fewest} (fewest) to {most} (half of the catalogue) items",
    )
    generator = as_rng(rng)
    sizes = _sizes(generator.lognormal(0.0, activity, users), pairs, fewest, most)
    log_popularity = -popularity * np.log(1.0 + generator.permutation(items))
    scale = np.sqrt(taste / np.sqrt(factors))
    of_users = generator.normal(0.0, scale, (users, factors)).astype(np.float32)
    of_items = generator.normal(0.0, scale, (items, factors)).astype(np.float32)
    user, item = _draw(of_users, of_items, log_popularity.astype(np.float32), sizes, generator)
    time = generator.permutation(len(user))
    return Interactions.from_pairs(
        user, item, users=users, items=items, time=time, name="synthetic"
    )


def _sizes(weights: npt.NDArray[np.float64], total: int, fewest: int, most: int) -> IntArray:
    """Return whole numbers about proportional to the weights, within bounds, with this total."""
    low, high = 0.0, total / float(weights.min())
    for _ in range(100):
        middle = (low + high) / 2
        if np.clip(weights * middle, fewest, most).sum() < total:
            low = middle
        else:
            high = middle
    exact = np.clip(weights * high, fewest, most)
    # Rounding the running total keeps the total, and each number within its bounds.
    ends = np.floor(np.cumsum(exact) + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)


def _draw(
    of_users: npt.NDArray[np.float32],
    of_items: npt.NDArray[np.float32],
    log_popularity: npt.NDArray[np.float32],
    sizes: IntArray,
    generator: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Draw ``sizes`` items for each user, busy users together so that a block needs one width."""
    chosen_users, chosen_items = [], []
    busiest_first = np.argsort(-sizes, kind="stable")
    rows = max(1, _BLOCK // len(of_items))
    for start in range(0, len(sizes), rows):
        block = busiest_first[start : start + rows]
        scores = of_users[block] @ of_items.T
        scores += log_popularity
        noise = generator.standard_exponential(scores.shape, dtype=np.float32)
        scores -= np.log(np.maximum(noise, _TINY, out=noise), out=noise)
        best = _largest(scores, int(sizes[block[0]]))
        taken = np.arange(best.shape[1]) < sizes[block][:, None]
        chosen_users.append(np.repeat(block, sizes[block]))
        chosen_items.append(best[taken])
    return np.concatenate(chosen_users), np.concatenate(chosen_items)


def _largest(scores: npt.NDArray[np.float32], width: int) -> IntArray:
    """Return the positions of the ``width`` largest scores of each row, largest first."""
    best = np.argpartition(-scores, width - 1, axis=1)[:, :width]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)
