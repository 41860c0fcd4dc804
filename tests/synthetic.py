"""Interactions that look like real ones: few popular items, few busy users, tastes to be learnt.

User u takes n_u distinct items, each with probability proportional to
w(u, i) = popularity(i) * exp(2 <p_u, q_i>) among those not yet taken: popularity falls as a power
of the item's rank, n_u is log-normal, and <p_u, q_i> is Gaussian with unit variance. The n_u items
with the largest log w + Gumbel noise are such a draw.
"""

from __future__ import annotations

import numpy as np

from unsample.lab.datasets import Interactions

POPULARITY, ACTIVITY, TASTE, FACTORS, FEWEST = 0.8, 0.9, 2.0, 8, 3
TINY = np.finfo(np.float32).tiny


def synthetic(users: int, items: int, *, pairs: int | None = None, rng: int) -> Interactions:
    """Draw about ``pairs`` pairs: by default 40 a user, or a tenth of the catalogue if less."""
    generator = np.random.default_rng(rng)
    total = pairs or users * max(FEWEST, min(40, items // 10))
    busy = generator.lognormal(0.0, ACTIVITY, users)
    sizes = np.clip(total * busy / busy.sum(), FEWEST, items // 2).astype(int)
    log_popularity = -POPULARITY * np.log(1.0 + generator.permutation(items))
    scale = np.sqrt(TASTE / np.sqrt(FACTORS))
    of_users = generator.normal(0.0, scale, (users, FACTORS)).astype(np.float32)
    of_items = generator.normal(0.0, scale, (items, FACTORS)).astype(np.float32)
    scores = of_users @ of_items.T + log_popularity.astype(np.float32)
    noise = generator.standard_exponential(scores.shape, dtype=np.float32)
    order = np.argsort(np.log(np.maximum(noise, TINY)) - scores, axis=1)
    taken = np.arange(items) < sizes[:, None]
    user = np.repeat(np.arange(users), sizes)
    time = generator.permutation(len(user))
    return Interactions(user, order[taken], users, items, time, "synthetic").distinct()
