"""What to do if two models are not told apart: how many users to rank, and in which way.

Suppose that the models are as estimated, and as similar as their users show. With full ranks,
the difference of two models is a mean over users, so its error is known in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unsample.answers._comparison import Comparison
from unsample.answers._pair import Pair
from unsample.answers._planner import Asked
from unsample.answers._power import Powers, normal_deviate
from unsample.answers._published import Published
from unsample.designs import Guided
from unsample.errors import InputError
from unsample.law import mean_over
from unsample.metrics import Metric

#: How often the models should be told apart.
_POWER = 0.8
#: The assumed quality of the guide of a guided evaluation: that of popularity on citeulike-a, the
#: data set on which popularity helped least (``python benchmarks/guided.py``).
_ODDS = 6.0
#: Steps of the search for a budget, and the smallest number of users that is proposed.
_HALVED, _FEWEST = 6, 20


@dataclass(frozen=True)
class Remedy:
    """What would tell two models apart with a power of 80 %, if they are as estimated."""

    a: str
    b: str
    metric: str
    #: Users that must be ranked in full or certified, and users that there are.
    users: int
    now: int
    #: Scores of both models to certify these users; None without K, or if there are too few.
    certified: int | None
    #: Scores of both models for a guided evaluation of all users that suffices, if asked for.
    guided: int | None = None

    def __str__(self) -> str:
        pair = f"tell {self.a} and {self.b} apart on {self.metric}, if they are as estimated"
        if self.users > self.now:
            return (
                f"full ranks of all {self.now:,} users would not {pair}: that takes about "
                f"{self.users:,} users"
            )
        text = f"full ranks of about {self.users:,} of the {self.now:,} users would {pair}"
        if self.certified is not None:
            text += f": about {self.certified:,} scores of both models with design='certified'"
        if self.guided is not None:
            text += (
                f", {self.guided:,} with design='guided' and a guide as good as popularity, "
                "for all users"
            )
        return text


def remedies(comparison: Comparison, *, guided: bool = False) -> list[Remedy]:
    """Return a remedy for each metric on which the two best models are not told apart.

    There is none if P(R) of a model is not known, or if users have several targets.
    """
    found = (remedy_for(comparison, metric, guided=guided) for metric in comparison.metrics)
    return [each for each in found if each is not None]


def remedy_for(comparison: Comparison, metric: Metric, *, guided: bool = False) -> Remedy | None:
    """Return what would tell the two best models apart; None if they are, or if it is unknown."""
    first, second = comparison.by_estimate(metric)[:2]
    names = first, second
    held = [comparison.estimates[name] for name in names]
    if comparison.difference(*names, metric).winner is not None or any(
        isinstance(each, Published) or each.counts.several or not each.distributions
        for each in held
    ):
        return None
    items = held[0].counts.largest_catalogue
    try:
        pair = Pair.of(comparison, items, metric, held[0].candidates)
    except InputError:
        return None
    if pair.difference <= 0.0:
        return None
    now = min(each.counts.users for each in held)
    users = max(math.ceil((pair.spread * _deviates(comparison.level)[1] / pair.difference) ** 2), 2)
    users = max(users, min(_FEWEST, now))
    certified = None
    if metric.k is not None and users <= now:
        certified = math.ceil(users * sum(_certified_cost(pair, each) for each in (0, 1)))
    remedy = Remedy(*names, metric.name, users, now, certified)
    if guided and certified is not None:
        return replace(remedy, guided=_guided(pair, now, comparison.level))
    return remedy


def _deviates(level: float) -> tuple[float, float]:
    """Return how many standard errors a verdict needs, and how many the wanted power needs."""
    verdict = normal_deviate((1.0 + level) / 2.0)
    return verdict, verdict + normal_deviate(_POWER)


def _certified_cost(pair: Pair, place: int) -> float:
    """Return how many scores, on average, it takes in random order until K items beat a target."""
    shape, k = pair.shapes[place], pair.metric.k or pair.items
    part = mean_over(lambda ranks: np.minimum(1.0, k / ranks), shape.grid.low, shape.grid.high)
    return float(pair.items * (shape.mass @ part))


def _guided(pair: Pair, users: int, level: float) -> int | None:
    """Return the least budget for both models at which the error is small enough."""
    asked = Asked(pair.items, pair.metric, users, odds=_ODDS)
    powers = Powers(asked, pair, level, _POWER, None, None, 1, (0,))
    # A half-width is as many errors as a verdict needs; the wanted power needs some more.
    verdict, told = _deviates(level)
    sought = pair.difference * verdict / told
    least = 2.0 * (pair.metric.k or 1) * users
    low, high = min(least, powers.full_cost), powers.full_cost
    for _ in range(_HALVED):
        middle = math.sqrt(low * high)
        enough = powers.half_width(Guided.name, int(middle)) <= sought
        low, high = (low, middle) if enough else (middle, high)
    return None if high == powers.full_cost else math.ceil(high)
