"""`plan`: which design to evaluate by, before anything is scored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import Seed, as_rng, check_integer, check_real
from unsample.answers._planner import Outcome, Planner, best_of, from_pilot, power_law
from unsample.answers._result import Result, percent
from unsample.errors import DesignError, MetricError
from unsample.evidence import RankCounts
from unsample.law import LARGEST_URN, RankDistribution
from unsample.metrics import Metric

#: The K whose Recall is guessed for metrics without K.
_USUAL_K = 10


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """The expected error of each design at the same cost, and which one to use.

    ``evaluate(scorer, targets, items=..., design=plan.best.design, budget=plan.budget)`` does what
    is recommended.
    """

    items: int
    users: int
    #: Relevant items of all users together: what is ranked.
    targets: int
    metric: Metric
    #: The guess of P(R) in words, and the metric it has.
    guess: str
    value: float
    #: The error that is sought, relative to the metric.
    precision: float
    #: Scores that may be asked for; what the recommended design needs where none was given.
    budget: int
    #: Each design at (or just below) this cost.
    outcomes: tuple[Outcome, ...]
    #: Each design at growing costs, for a plot.
    curves: tuple[Outcome, ...]
    #: The scores that each design needs to reach the precision.
    needed: dict[str, float]
    repeats: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return nothing: the plan itself says what it guesses."""
        return ()

    @property
    def best(self) -> Outcome:
        """Return the design with the least expected error at this cost."""
        return best_of(self.outcomes)

    @property
    def shares(self) -> dict[str, float]:
        """Return the share of a full ranking that each design needs to reach the precision.

        That of ``"fixed"`` is the part of a corpus to keep where it is cut down by chance.
        """
        full = float(self.items) * self.targets
        return {name: cost / full for name, cost in self.needed.items()}

    @property
    def recommendation(self) -> str:
        """Return what to do, in a sentence or two."""
        best = self.best
        share = best.cost / (self.items * self.targets)
        text = (
            f"Use design={best.name!r} ({best.setting}): {best.cost:,.0f} scores "
            f"({percent(share)} of a full ranking) for an expected error of "
            f"{percent(best.rmse / self.value)} of {self.metric}."
        )
        if best.users < self.users:
            text += f" Evaluate {best.users:,} of the {self.users:,} users, drawn at random."
        if best.rmse > self.precision * self.value:
            cheapest = min(self.needed, key=lambda name: self.needed[name])
            text += (
                f" An error of {percent(self.precision)} needs about {self.needed[cheapest]:,.0f} "
                f"scores ({cheapest})."
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": self.items,
            "users": self.users,
            "targets": self.targets,
            "metric": self.metric.name,
            "guess": self.guess,
            "value": self.value,
            "precision": self.precision,
            "budget": self.budget,
            "designs": self.rows(),
            "curves": [self._row(outcome) for outcome in self.curves],
            "recommended": self.best.name,
            "recommendation": self.recommendation,
            "repeats": self.repeats,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each design."""
        return [self._row(outcome) for outcome in self.outcomes]

    def _row(self, outcome: Outcome) -> dict[str, Any]:
        names = ("setting", "users", "cost", "bias", "sd", "method", "rmse")
        return {
            "design": outcome.name,
            **{name: getattr(outcome, name) for name in names},
            "relative_error": outcome.rmse / self.value,
            "share_of_full": outcome.cost / (float(self.items) * self.targets),
            "cost_for_precision": self.needed[outcome.name],
        }


def plan(
    *,
    items: int,
    users: int,
    targets: int | None = None,
    metrics: str | Metric | Iterable[str | Metric] = "NDCG@10",
    budget: int | None = None,
    precision: float = 0.05,
    pilot: RankCounts | RankDistribution | npt.ArrayLike | None = None,
    recall: float | None = None,
    odds: float | None = None,
    repeats: int = 100,
    rng: Seed = 0,
) -> Plan:
    """Compare ways to evaluate before any item is scored: the error of each at the same cost.

    The error is that of the metric of these users, which ranking all of them in full would give
    exactly. Designs: a ``fixed`` sample; an ``adaptive`` one; where a guide is stated, a ``guided``
    one; and ``certified`` (``exact`` for a metric without K), which evaluates as many users as the
    budget allows, drawn at random. Each is simulated as `evaluate` runs it, and estimated by the
    method that it uses by default (fixed samples of more than 1,000 items by ``"mle"``; the plan
    says so).

    Parameters
    ----------
    items, users
        The size of the catalogue and the number of users to evaluate.
    targets
        The number of targets, where users have several; by default one for each user. Errors count
        users: targets of one user are taken to be alike.
    metrics
        The metric that matters, such as ``"NDCG@10"``.
    budget
        How many scores may be asked for in total, as in `evaluate`. Without it, the designs are
        compared at the cost at which the first of them reaches the precision.
    precision
        The error that is sought, relative to the metric.
    pilot
        What is known of P(R): `RankCounts` of sampled ranks, a `RankDistribution`, or ranks among
        all items.
    recall
        Without a pilot, a guess of Recall@K on the full catalogue; P(R) is then the power law that
        has it. By default 0.1, or 1 - (1 - K/items)^2 where that is more, as in small catalogues.
    odds
        How good a guide there is: the odds with which an item that beats a target comes next in
        its order, against one that does not. For EASE on ml-1m and citeulike-a popularity is worth
        19 and 6, itemKNN 56 and 570 (``python benchmarks/guided.py``); 1 is a random order. By
        default there is no guide.
    repeats
        Simulated evaluations behind each error of a sampled design.
    rng
        Seed or Generator of the simulation.

    >>> result = plan(items=1000, users=5000, budget=500_000, repeats=20)
    >>> result.best.design.name, result.best.cost <= 500_000
    ('adaptive', True)
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_URN - 1, error=DesignError)
    users = check_integer("users", users, minimum=1, hint="the number of users to evaluate")
    least = "each user has one at least"
    targets = check_integer("targets", targets or users, minimum=users, hint=least)
    metric = _only_metric(metrics, items)
    precision = check_real("precision", precision, low=0.0, high=1.0, open_low=True, open_high=True)
    repeats = check_integer("repeats", repeats, minimum=2)
    if budget is not None:
        hint = "each target is scored, and at least one item beside it"
        budget = check_integer("budget", budget, minimum=2 * targets, hint=hint)
    k = metric.k or min(_USUAL_K, items - 1)
    if isinstance(pilot, RankCounts):
        pilot = pilot.for_metric(metric)
    guess, source = power_law(items, k, recall) if pilot is None else from_pilot(pilot, items, k)
    seed = np.random.SeedSequence(int(as_rng(rng).integers(2**63)))
    if odds is not None:
        odds = check_real("odds", odds, low=0.0, open_low=True, hint="1 is no guide at all")
    planner = Planner(guess, targets, metric, repeats, seed, precision, targets / users, odds)
    budget, outcomes, curves = planner.compare(budget)
    needed = {name: planner.needed(name, curves) for name in planner.names}
    best = best_of(outcomes)
    if best.rmse <= planner.sought:
        # What was found by trying counts more than what the curve between two trials promises.
        needed[best.name] = min(needed[best.name], best.cost)
    return Plan(
        items,
        users,
        targets,
        metric,
        source,
        planner.value,
        precision,
        budget,
        outcomes,
        tuple(sorted(curves, key=lambda outcome: (outcome.name, outcome.cost))),
        needed,
        repeats,
    )


def _only_metric(metrics: str | Metric | Iterable[str | Metric], items: int) -> Metric:
    wanted = _metrics.parse_all(metrics)
    if len(wanted) != 1:
        raise MetricError(
            f"metrics must be one metric to plan for, got {', '.join(map(str, wanted))}; plan for "
            "the one that is hardest to know: the smallest K"
        )
    if (wanted[0].k or 0) > items:
        raise MetricError(f"the K of metrics must be at most items = {items}, got {wanted[0]}")
    return wanted[0]
