"""`plan`: which design to use in an evaluation, before anything is scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import Seed, as_rng, check_choice, check_integer, check_level, check_real
from unsample._gone import refuses_gone
from unsample.answers._comparison import Comparison
from unsample.answers._guess import from_pilot, power_law, usual_k
from unsample.answers._pair import Pair
from unsample.answers._planned import Plan, PowerPlan
from unsample.answers._planner import Asked, Planner
from unsample.answers._power import Powers
from unsample.answers._result import DEFAULT_LEVEL
from unsample.errors import DesignError, InputError, MetricError
from unsample.estimators import CANDIDATES
from unsample.evidence import RankCounts
from unsample.law import LARGEST_URN, RankDistribution
from unsample.metrics import Metric


@overload
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
    compare: None = None,
    level: float = DEFAULT_LEVEL,
    power: float = 0.8,
    candidates: str | None = None,
    repeats: int = 100,
    rng: Seed = 0,
) -> Plan: ...


@overload
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
    compare: float | str | Mapping[str, Any] | Comparison,
    level: float = DEFAULT_LEVEL,
    power: float = 0.8,
    candidates: str | None = None,
    repeats: int = 100,
    rng: Seed = 0,
) -> PowerPlan: ...


@refuses_gone
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
    compare: float | str | Mapping[str, Any] | Comparison | None = None,
    level: float = DEFAULT_LEVEL,
    power: float = 0.8,
    candidates: str | None = None,
    repeats: int = 100,
    rng: Seed = 0,
) -> Plan | PowerPlan:
    """Compare the expected errors of designs at the same cost, before any item is scored.

    The error is the distance to the metric of these users that full rankings of all of them would
    give. The designs are ``fixed``, ``guided`` (if ``odds`` are given) and
    ``certified`` (``exact`` for a metric without K). The last one evaluates as many users as the
    budget allows, drawn at random. Each design is simulated as `evaluate` runs it, with the default
    method of `evaluate`. Only fixed samples of more than 1,000 items are estimated by ``"mle"``;
    the plan says so.

    With ``compare``, return a `PowerPlan` for two models. It has for each design the power, which
    is the probability that `unsample.compare` names the better model, and the least difference that
    the design detects. To find the power, both models are evaluated many times, each time on other
    users, and compared by the code of `unsample.compare`. Verdicts for the better one are counted.

    Parameters
    ----------
    items, users
        The size of the catalogue and the number of users to evaluate.
    targets
        The number of targets, if users have several; by default one for each user. Errors count
        users: the targets of one user are assumed to be alike.
    metrics
        The metric that matters, such as ``"NDCG@10"``.
    budget
        The total number of scores that may be asked for, as in `evaluate`; with ``compare``, for
        both models together. By default the designs are compared at the lowest cost at which one
        of them reaches the precision, or the power.
    precision
        The wanted error, relative to the metric.
    pilot
        What is known about P(R): `RankCounts` of sampled ranks, a `RankDistribution`, or ranks
        among all items.
    recall
        Without a pilot, a guess of Recall@K on the full catalogue. P(R) is the power law that
        gives it. By default 0.1, or 1 - (1 - K/items)^2 if that is more, as in small catalogues.
    odds
        How good the guide is: the odds that an item that beats the target comes before one that
        does not. 1 is a random order. For EASE on ml-1m and citeulike-a, popularity has 19
        and 6, itemKNN 56 and 570 (``python benchmarks/guided.py``). By default there is no guide.
    compare
        What the evaluation should detect: a difference of the metric, such as ``0.01``, or ``"5%"``
        of it; or two models by name, each with ranks among all items, `Targets` or `RankCounts` of
        sampled ranks, or a `RankDistribution`; or a `Comparison`, of which the two best models are
        used. How similar the models are is estimated from users that they share, or else guessed.
        With models, leave out ``pilot`` and ``recall``.
    level, power
        With ``compare``: the level of the verdicts, and how often they should name the better one.
    candidates
        With ``compare``: ``"unseen"`` or ``"all"``, as in `unsample.compare`; verdicts from
        samples depend on it.
    repeats
        Simulated evaluations for each error of a sampled design; with ``compare``, the most for
        each power.
    rng
        Seed or Generator of the simulation.

    >>> result = plan(items=1000, users=5000, budget=500_000, repeats=20)
    >>> result.best.design.name, result.best.cost <= 500_000
    ('fixed', True)
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
    if odds is not None:
        odds = check_real("odds", odds, low=0.0, open_low=True, hint="1 is no guide at all")
    seed = np.random.SeedSequence(int(as_rng(rng).integers(2**63)))
    known = isinstance(compare, Comparison | Mapping)
    if known and not (pilot is None and recall is None):
        raise InputError(
            "pilot and recall must be left out where compare says what models are like"
        )
    k, asked = usual_k(metric, items), Asked(items, metric, users, targets / users, odds)
    if isinstance(pilot, RankCounts):
        pilot = pilot.for_metric(metric)
    if not known:
        guess, source = (
            power_law(items, k, recall) if pilot is None else from_pilot(pilot, items, k)
        )
    if compare is not None:
        if candidates is None and isinstance(compare, Comparison):
            candidates = next(iter(compare.estimates.values())).candidates
        if candidates is not None:
            check_choice("candidates", candidates, CANDIDATES)
        if isinstance(compare, Comparison | Mapping):
            pair = Pair.of(compare, items, metric, candidates)
        else:
            pair = Pair.with_difference(guess, metric, compare, source)
        power = check_real("power", power, low=0.0, high=1.0, open_low=True, open_high=True)
        seeds = tuple(seed.generate_state(2).tolist())
        powers = Powers(
            asked, pair, check_level(level), power, candidates, pair.sampled, repeats, seeds
        )
        return powers.plan(budget)
    return Planner(asked, guess, repeats, seed, precision).plan(budget, source)


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
