"""What a design sees of targets whose ranks are known, drawn from the law instead of from scores.

The counts have the distribution of `evaluate`'s; nothing is scored, so hundreds of repeats are
quick. Experiments on designs are made of this.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import IntArray
from unsample.designs.running._designs import Design, Standing

__all__ = ["draw_by_design", "merged_sizes"]

#: Catalogues within this factor of each other are one design.
_SAME_SIZE = 0.04


def draw_by_design(
    design: Design, ranks: IntArray, items: IntArray, rng: np.random.Generator, *, lot: IntArray
) -> tuple[IntArray, IntArray]:
    """Return sampled ranks and how many items each is among, for targets at these global ranks.

    The design must be fitted (`Design.fit_to`) already. ``lot`` is a random order of the targets;
    models evaluated with one seed share it.
    """
    better, others = ranks - 1, items - 1
    scored, beaten = (np.zeros(len(ranks), dtype=np.int64) for _ in range(2))
    while True:
        step = design.goal(Standing(scored, beaten, others, lot)) - scored
        rows = np.flatnonzero(step)
        if not len(rows):
            return 1 + beaten, scored
        if design.with_replacement:
            hits = rng.binomial(step[rows], better[rows] / others[rows])
        else:
            left = better[rows] - beaten[rows]
            hits = rng.hypergeometric(left, others[rows] - scored[rows] - left, step[rows])
        beaten[rows] += hits
        scored[rows] += step[rows]


def merged_sizes(items: IntArray, sampled: IntArray, *, replacement: bool) -> IntArray:
    """Return catalogue sizes with those within four per cent of each other made one.

    Leaving out each user's own items makes a catalogue size for every user. Sizes that differ
    so little move a rank by two per cent, up for some and down for others: far less than what a
    sample leaves open. Ranks that are known keep their size. Fewer designs make a fit quick.
    """
    known = (sampled == items - 1) & (not replacement)
    group = np.round(np.log(items) / _SAME_SIZE).astype(np.int64)
    found, where = np.unique(group, return_inverse=True)
    sums = np.bincount(where, items, minlength=len(found))
    means = np.rint(sums / np.bincount(where)).astype(np.int64)[where]
    if not replacement:
        # A target that was not followed to its end must not seem to have been.
        means = np.maximum(means, sampled + 2)
    return np.where(known, items, means)
