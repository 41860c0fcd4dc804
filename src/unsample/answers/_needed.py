"""How many more sampled items, or users, would tell two models apart.

Suppose that the models are as estimated. Then the expected histogram of another evaluation
is known, and with it the chance of winning. That chance is computed for larger and larger samples,
and for more and more users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample.answers._chances import Chances
from unsample.answers._published import Published
from unsample.answers._result import Estimates
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import Law, RankDistribution
from unsample.metrics import Metric

#: Samples and users grow by this factor in each step, and the greatest number of steps.
_GROWTH, _LOOKS = 1.5, 24
#: Larger samples are not tried: a full ranking is then as cheap.
_LARGEST_SAMPLE, _LARGEST_SHARE = 20_000, 0.5
#: Targets of the expected histogram: so many that rounding does not change it.
_PLENTY = 10**9
#: Cells of sampled ranks: single ranks down to the first number, then ranges of this ratio.
_SINGLE, _RATIO = 64, 0.03


@dataclass(frozen=True)
class Needed:
    """How large an evaluation must be to tell two models apart, if they are as estimated.

    None means that no number that was tried suffices.
    """

    a: str
    b: str
    metric: str
    level: float
    #: Sampled items for each target, if users stay the same; users, if sampled items do.
    sampled: int | None
    users: int | None
    #: The present numbers of sampled items and of targets.
    now: tuple[int, int]

    def __str__(self) -> str:
        pair = f"{self.a} and {self.b} on {self.metric} at {100 * self.level:g} %"
        if self.sampled == self.now[0]:
            return f"this sample should tell {pair} apart, if they are as estimated"
        found = []
        if self.sampled is not None:
            found.append(f"{self.sampled:,} sampled items for each target ({self.now[0]:,} now)")
        if self.users is not None:
            found.append(f"{self.users:,} targets ({self.now[1]:,} now)")
        if not found:
            return (
                f"neither more users nor larger samples would tell {pair} apart, if they are as "
                "estimated: rank some users in full (evaluate with design='guided')"
            )
        alone = "" if self.users is not None else "; more users alone would not"
        return (
            f"about {', or '.join(found)} should tell {pair} apart, if they are as estimated{alone}"
        )


def needed_for(
    pair: tuple[str, str],
    estimates: tuple[Estimates, Estimates],
    metric: Metric,
    level: float,
) -> Needed | None:
    """Return how many sampled items or users would suffice.

    Return None without a prior, for few targets, for designs that differ, and if only printed
    numbers are known: a histogram of as many targets would say more than those numbers.
    """
    if Chances.of(dict(zip(pair, estimates, strict=True)), [metric]) is None:
        return None
    first, second = (each.calibrated for each in estimates)
    shapes = [each.distributions.get(each.methods[0]) for each in estimates]
    laws = {cells.design for each in estimates for cells in each.counts.by_design()}
    printed = any(isinstance(each, Published) for each in estimates)
    if first is None or second is None or printed or None in shapes or len(laws) != 1:
        return None
    (law,) = laws
    items, sampled = law.items, law.sampled
    targets = min(each.targets(each.observed) for each in (first, second))

    def chance(size: int, users: float) -> float:
        seen = [_expected(each, replace(law, sampled=size)) for each in shapes if each is not None]
        won = Chances.under(first, pair, [metric], seen, [users, users]).beats(*pair, metric.name)
        return 0.5 if won is None else max(won, 1.0 - won)

    most = min(_LARGEST_SAMPLE, int(_LARGEST_SHARE * (items - 1)))
    larger = [round(sampled * _GROWTH**at) for at in range(_LOOKS)]
    more = [round(targets * _GROWTH**at) for at in range(_LOOKS)]
    return Needed(
        *pair,
        metric.name,
        level,
        _least([each for each in larger if each <= max(most, sampled)], level, chance, targets),
        _least(more, level, lambda users, size: chance(int(size), users), sampled),
        (sampled, round(targets)),
    )


def _least(
    sizes: Sequence[int], level: float, chance: Callable[[int, float], float], other: float
) -> int | None:
    """Return the least size whose chance reaches the level; chances grow with the size."""
    if not sizes or chance(sizes[-1], other) < level:
        return None
    low, high = -1, len(sizes) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(sizes[middle], other) >= level else (middle, high)
    return sizes[high]


def _expected(shape: RankDistribution, law: Law) -> Observed:
    """Return what a sample of this size shows on average, ranks far down grouped into ranges."""
    starts = [*range(1, min(_SINGLE, law.n) + 1)]
    while starts[-1] < law.n:
        starts.append(starts[-1] + max(1, int(_RATIO * starts[-1])))
    low = np.array([each for each in starts if each <= law.n])
    high = np.append(low[1:] - 1, law.n)
    chances = law.matrix(low, high, shape.grid) @ np.maximum(shape.mass, 0.0)
    times = np.rint(_PLENTY * chances / chances.sum()).astype(np.int64)
    counts = RankCounts.from_ranges(low, high, times, law)
    return Observed.prepare(counts)
