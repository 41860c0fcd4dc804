"""`plan`: how many items to sample, or how else to spend them, before anything is scored."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import Seed, as_rng, check_integer, check_real
from unsample.answers._door import page_of
from unsample.answers.planning._guess import Guess
from unsample.answers.planning._planner import DESIGNS, Planner
from unsample.answers.planning._simulate import Outcome, Simulation
from unsample.errors import DesignError, MetricError
from unsample.evidence import RankCounts
from unsample.law import RankDistribution
from unsample.metrics import Metric

__all__ = ["Plan", "plan"]

#: numpy draws from urns of fewer balls than this.
_LARGEST_CATALOGUE = 10**9 - 1


@dataclass(frozen=True, eq=False)
class Plan:
    """The expected error of each design at the same cost, and which one to use."""

    items: int
    users: int
    metric: Metric
    #: The guess of P(R) in words, and the metric it has.
    guess: str
    value: float
    #: The error that is sought, relative to the metric.
    precision: float
    #: Items that may be scored for a user on average; what the recommended design costs where no
    #: budget was given.
    cost: float
    #: Each design at (or just below) this cost.
    outcomes: tuple[Outcome, ...]
    #: Each design at growing costs, for a plot.
    curves: tuple[Outcome, ...]
    #: What each design costs to reach the precision.
    needed: dict[str, float]
    repeats: int

    @property
    def best(self) -> Outcome:
        """Return the design with the least expected error at this cost."""
        return min(self.outcomes, key=lambda outcome: (outcome.rmse, outcome.cost))

    @property
    def recommendation(self) -> str:
        """Return what to do, in a sentence or two."""
        best = self.best
        text = (
            f"{_VERBS[best.design]} {best.setting}: {best.cost:,.0f} scored items a user "
            f"({_percent(best.cost / self.items)} of a full ranking) for an expected error of "
            f"{self._relative(best.rmse)} of {self.metric}."
        )
        cheapest = min(self.needed, key=lambda name: self.needed[name])
        if best.rmse > self.precision * self.value:
            text += (
                f" An error of {_percent(self.precision)} needs about {self.needed[cheapest]:,.0f} "
                f"scored items a user ({cheapest})."
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": self.items,
            "users": self.users,
            "metric": self.metric.name,
            "guess": self.guess,
            "value": self.value,
            "precision": self.precision,
            "cost": self.cost,
            "designs": [self._row(outcome) for outcome in self.outcomes],
            "curves": [self._row(outcome) for outcome in self.curves],
            "recommended": self.best.design,
            "recommendation": self.recommendation,
            "repeats": self.repeats,
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one interactive page, and write it to ``path`` if one is given."""
        return page_of(self, path)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row for each design; see `Estimates.to_frame`."""
        from unsample.pages._frames import frame_from_rows

        return frame_from_rows([self._row(outcome) for outcome in self.outcomes], backend)

    def __str__(self) -> str:
        from unsample.pages import as_text

        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from unsample.pages import as_notebook

        return as_notebook(self)

    def _relative(self, error: float) -> str:
        return _percent(error / self.value)

    def _row(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **asdict(outcome),
            "rmse": outcome.rmse,
            "relative_error": outcome.rmse / self.value,
            "share_of_full": outcome.cost / self.items,
            "cost_for_precision": self.needed[outcome.design],
        }


_VERBS = {
    "fixed": "Rank each target against",
    "adaptive": "Sample adaptively,",
    "certified": "Rank exactly,",
    "fewer users": "Rank in full",
}


def plan(
    *,
    items: int,
    users: int,
    k: int = 10,
    metric: str = "NDCG",
    precision: float = 0.05,
    budget: float | None = None,
    recall: float | None = None,
    pilot: RankCounts | RankDistribution | npt.ArrayLike | None = None,
    repeats: int = 200,
    rng: Seed = 0,
) -> Plan:
    """Compare ways to evaluate before any item is scored: the error of each at the same cost.

    The error is that of the metric of these users, which ranking all of them in full would give
    exactly. Designs: a ``fixed`` sample; an ``adaptive`` one that doubles until enough items beat
    the target; ``certified``, scoring items until the metric@K is certain; and ``fewer users``
    ranked in full. The last two evaluate as many users as the cost allows.

    Parameters
    ----------
    items, users
        The size of the catalogue and the number of targets to evaluate.
    k, metric
        The metric@K that matters; ``metric`` is a family such as ``"NDCG"`` or ``"Recall"``.
    precision
        The error that is sought, relative to the metric.
    budget
        How many items may be scored in total. Without it, the designs are compared at the cost at
        which the first of them reaches the precision.
    recall
        A guess of Recall@k on the full catalogue; P(R) is then the power law that has it. By
        default 0.1, or 1 - (1 - k/items)^2 where that is more, as in small catalogues.
    pilot
        What is known of P(R) instead: `RankCounts` of sampled ranks, a `RankDistribution`, or
        ranks among all items.
    repeats
        Simulated evaluations behind each error of a sampled design.
    rng
        Seed of the simulation.

    >>> result = plan(items=1000, users=5000, budget=500_000, repeats=20)
    >>> result.best.design
    'adaptive'
    """
    items = check_integer("items", items, minimum=2, maximum=_LARGEST_CATALOGUE, error=DesignError)
    users = check_integer("users", users, minimum=1, hint="the number of targets to evaluate")
    wanted = _metric_at(metric, k, items)
    precision = check_real("precision", precision, low=0.0, high=1.0, open_low=True, open_high=True)
    repeats = check_integer("repeats", repeats, minimum=2)
    cutoff = wanted.cutoff(items)
    if pilot is None:
        guess = Guess.power_law(items, cutoff, recall)
    else:
        guess = Guess.from_pilot(pilot, items, cutoff)
    allowed = None if budget is None else _cost_of(budget, items, users)
    planner = Planner(Simulation(guess, users, wanted, repeats, _seed(rng)), cutoff, precision)
    cost, outcomes, curves = planner.compare(allowed)
    needed = {name: planner.needed(name, curves) for name in DESIGNS}
    if allowed is None:
        # What was found by trying counts more than what the curve between two trials promises.
        best = min(outcomes, key=lambda outcome: outcome.rmse)
        needed[best.design] = best.cost
    return Plan(
        items,
        users,
        wanted,
        guess.source,
        planner.value,
        precision,
        cost,
        outcomes,
        tuple(sorted(curves, key=lambda outcome: (outcome.design, outcome.cost))),
        needed,
        repeats,
    )


def _metric_at(metric: str, k: int, items: int) -> Metric:
    family = _metrics.parse(metric)
    k = check_integer("k", k, minimum=1, error=MetricError)
    if family.k is not None and family.k != k:
        raise MetricError(f"metric must be a family such as NDCG, got {metric!r} and k = {k}")
    if k > items:
        raise MetricError(f"k must be at most items = {items}, got {k}")
    return family.family @ k


def _cost_of(budget: float, items: int, users: int) -> float:
    """Return the scored items a user of a budget, which must allow one sampled item for each."""
    budget = check_real(
        "budget",
        budget,
        low=2.0 * users,
        hint="each target is scored, and at least one item beside it",
    )
    return min(budget / users, float(items))


def _seed(rng: Seed) -> np.random.SeedSequence:
    return np.random.SeedSequence(int(as_rng(rng).integers(2**63)))


def _percent(share: float, sign: str = "") -> str:
    """Return a percentage with two digits at least, and none for nothing."""
    digits = 1 if abs(share) >= 0.001 or share == 0.0 else 3
    return f"{100.0 * share:{sign}.{digits}f} %"
