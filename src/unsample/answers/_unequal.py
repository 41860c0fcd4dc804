"""Metrics from negatives that were not drawn uniformly, where it is known which items they were."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_integer
from unsample.answers._looked import Looked
from unsample.answers._result import Estimate, Estimates, Variation
from unsample.answers._seen import with_seen
from unsample.confidence import (
    Certainty,
    Shape,
    StratumBehind,
    UnequalCertainty,
    laws_allowed,
    shape_for,
)
from unsample.errors import (
    BiasedMethodWarning,
    DesignError,
    InputError,
    MetricError,
    UnresolvedWarning,
    UnsampleWarning,
)
from unsample.estimators import (
    CLOSED_FORM,
    AverageCurve,
    Certificate,
    Condensed,
    HitLaw,
    Hits,
    Observed,
)
from unsample.evidence import (
    Negatives,
    RankCounts,
    SeenItems,
    check_probabilities,
    group_catalogues,
    seen_items,
)
from unsample.law import RankDistribution, RankGrid, bin_weights
from unsample.metrics import Metric
from unsample.tables import is_table, read_compared

#: The name of the method in results, for values that come from unequal draws.
NAME = "weighted"
#: A group with fewer targets is estimated together with the next group.
_SMALL_GROUP = 50
#: Chances are refused if the p-value of the draws is smaller, and their relative error larger.
_SURE, _OFF = 1e-6, 0.1
_REMEDY = "draw more items, or more of those that are likely to be at the top"
_HARD = (
    "items outside the lists were never drawn, so that nothing is known of them: there are only "
    "bounds, from the items that were seen to beat a target; draw some items at random as well"
)


@dataclass(frozen=True, eq=False)
class _Group:
    """Targets that are beaten by about the same number of items from strata taken whole."""

    ahead: int
    #: The smallest and the largest number of such items.
    span: tuple[int, int]
    rows: IntArray
    counts: RankCounts
    share: float

    def stratum(self, cutoffs: list[int], law: HitLaw | None) -> StratumBehind:
        """Return what these targets say about P(R)."""
        behind = [max(k - self.ahead, 1) for k in cutoffs]
        if law is None:
            return StratumBehind.drawn_alike(self.counts, self.span, behind, self.share)
        return StratumBehind.by_law(self.counts, self.span, behind, self.share, law)


@dataclass(frozen=True, eq=False)
class _Draws:
    """The targets in groups, and the law of their hits if it had to be learned."""

    seen: SeenItems
    groups: tuple[_Group, ...]
    law: HitLaw | None

    @classmethod
    def of(cls, seen: SeenItems, most: int) -> _Draws:
        """Group the targets; ``most`` is the largest K, and ranks beyond it do not matter."""
        ahead = np.minimum(seen.certain, most)
        rest = seen.items - seen.taken
        groups, start = [], 0
        for number in range(int(ahead.max()) + 1):
            rows = np.flatnonzero((ahead >= start) & (ahead <= number))
            left = int((ahead > number).sum())
            if len(rows) < _SMALL_GROUP and left and number < most:
                continue
            if len(rows):
                # The mean of the group; beyond the largest K it makes no difference.
                usual = round(float(ahead[rows].mean()))
                counts = RankCounts.from_ranks(
                    1 + seen.hits[rows],
                    items=rest[rows],
                    sampled=seen.drawn[rows],
                    replacement=False,
                )
                groups.append(_Group(usual, (start, number), rows, counts, len(rows) / len(seen)))
            start = number + 1
        law = None if seen.uniform else HitLaw.learn(_hits(seen), int(rest.max()))
        return cls(seen, tuple(groups), law)

    def certainty(self, cutoffs: Iterable[int], shape: Shape, counts: RankCounts) -> Certainty:
        """Return the bounds and intervals that follow from the draws."""
        wanted = sorted(set(cutoffs))

        def under(law: HitLaw | None) -> tuple[StratumBehind, ...]:
            return tuple(group.stratum(wanted, law) for group in self.groups)

        others = () if self.law is None else laws_allowed(self.law)
        return UnequalCertainty(
            counts,
            under(self.law),
            shape,
            tuple(Certainty(counts, under(law), shape) for law in others),
            self.seen.best,
            self.law is None,
            lambda other: self.certainty(other, shape, counts),
        )

    def fit(self, metrics: Sequence[Metric]) -> tuple[FloatArray, RankDistribution, Certificate]:
        """Return the values, P(R), and how well the fits converged."""
        values = np.zeros(len(metrics))
        items = int(self.seen.items.max())
        whole = RankGrid.build(items, cutoffs=[metric.cutoff(items) for metric in metrics])
        below, worst = np.zeros(len(whole)), CLOSED_FORM
        for group in self.groups:
            rest = group.counts.largest_catalogue
            cutoffs = [max(metric.cutoff(items) - group.ahead, 1) for metric in metrics]
            grid = RankGrid.build(rest, cutoffs=[min(k, rest) for k in cutoffs])
            average = self._curve(group)
            (mass,) = average.mass(grid)
            solution = average.solution(mass[None, :])
            worst = max(
                worst, solution.certificate(0), key=lambda each: (not each.usable, each.gap)
            )
            for place, metric in enumerate(metrics):
                weights = bin_weights(metric.behind(group.ahead), grid, rest)
                values[place] += group.share * float(mass @ weights)
            learned = RankDistribution(grid, mass)
            ranks = (whole.high - group.ahead).clip(0, rest)
            below += group.share * np.where(ranks > 0, learned.cdf(np.maximum(ranks, 1)), 0.0)
        mass = np.diff(below, prepend=0.0).clip(min=0.0)
        return values, RankDistribution(whole, mass / mass.sum()), worst

    def _curve(self, group: _Group) -> AverageCurve:
        targets = group.counts.effective
        if self.law is None:
            observed = Observed.prepare(group_catalogues(group.counts))
            return AverageCurve.of(Condensed.of(observed), targets)
        condensed = self.law.condense(_hits(self.seen, group.rows))
        return AverageCurve.of(condensed, targets)


def unequal_estimates(
    table: Any,
    *,
    items: Any,
    metrics: str | Metric | Iterable[str | Metric],
    probabilities: Any,
    strata: Any,
    exclude: Any,
    replacement: bool,
    candidates: str | None,
    shape: str | Shape | None,
    rng: Seed,
) -> Estimates:
    """Return metrics from targets, the items they were ranked against, and how these were drawn."""
    if not is_table(table):
        raise InputError(
            "ranks must be a table with columns user, item, score and target (or user, item and "
            "beats) with probabilities or strata: ranks alone do not tell which items were drawn"
        )
    if items is None or np.ndim(items):
        raise DesignError("items must be the number of items with probabilities or strata")
    if probabilities is not None and strata is not None:
        raise InputError("probabilities must be left out with strata, got both")
    wanted = _metrics.parse_all(metrics)
    for metric in wanted:
        if metric.k is None or metric.family.uses_items:
            raise MetricError(
                f"metrics must have a cutoff with probabilities or strata, got {metric}; write "
                f"{metric.label}@10"
            )
    size = check_integer("items", items, minimum=2, error=DesignError)
    seen = _seen(table, size, probabilities, strata, exclude, replacement, rng)
    counts = RankCounts.from_ranks(
        seen.best,
        items=seen.items,
        sampled=seen.negatives.sizes,
        replacement=False,
    )
    cutoffs = [metric.cutoff(size) for metric in wanted]
    if not seen.rest_drawn:
        return _only_bounds(seen, counts, wanted, candidates)
    draws = _Draws.of(seen, max(cutoffs))
    certainty = draws.certainty(cutoffs, shape_for(shape, candidates), counts)
    values, distribution, certificate = draws.fit(wanted)
    variation = {NAME: Variation(np.empty((0, len(wanted))))}
    entries = []
    for place, metric in enumerate(wanted):
        most = float(metric.weights(seen.best, size).mean())
        value, resolved = min(float(values[place]), most), certainty.resolves(metric)
        fitted = (certificate, certainty, True, False)
        entries.append(Estimate(metric, NAME, value, resolved, *fitted, variation, place))
    return Estimates(
        tuple(entries),
        counts,
        {NAME: distribution},
        notes=(*unresolved_notes(entries, _REMEDY), *_unreached(seen)),
        candidates=candidates,
        explanations={NAME: _explained(draws)},
    )


def _seen(
    table: Any,
    items: int,
    probabilities: Any,
    strata: Any,
    exclude: Any,
    replacement: bool,
    rng: Seed,
) -> SeenItems:
    """Return the items of each target, and the chance of each item."""
    found = read_compared(table, items=items, rng=as_rng(rng))
    negatives = with_seen(found.negatives, found.names, exclude)
    if probabilities is not None and not isinstance(probabilities, str):
        _check_agreement(negatives, probabilities, as_rng(rng))
    given = None
    if isinstance(probabilities, str):
        if found.chance is None or probabilities != "probability":
            raise InputError(
                "probabilities must be a chance for each item, or 'probability', a column of the "
                f"table, got {probabilities!r}"
            )
        given, probabilities = found.chance, None
    by_name = found.stratum is not None and not (np.ndim(strata) == 1 and np.size(strata) == items)
    return seen_items(
        negatives,
        found.beats,
        probabilities=probabilities,
        given=given,
        strata=strata,
        names=found.stratum if strata is not None and by_name else None,
        replacement=replacement,
    )


def _check_agreement(negatives: Negatives, probabilities: Any, rng: np.random.Generator) -> None:
    """Refuse chances that the draws contradict."""
    chances = check_probabilities(probabilities, negatives.count())
    law = Looked(negatives, None, chances, _SURE, rng).stated
    if law is None or law.p_value >= _SURE:
        return
    # A small misfit is allowed: without replacement the likeliest items are drawn less often.
    off = math.sqrt(max(law.statistic - law.freedom, 0.0) / len(negatives.ids))
    if off > _OFF:
        raise InputError(
            f"probabilities must agree with how often items were drawn, got a misfit of "
            f"{100 * off:.0f} % of the chances (p = {law.p_value:.1g}); "
            "see unsample.audit for how they were drawn"
        )


def _hits(seen: SeenItems, rows: IntArray | None = None) -> Hits:
    owner, chance = seen.owner[seen.hit], seen.chance[seen.hit]
    if rows is None:
        return Hits.of(len(seen), owner, chance)
    place = np.full(len(seen), -1)
    place[rows] = np.arange(len(rows))
    mine = place[owner] >= 0
    return Hits.of(len(rows), place[owner[mine]], chance[mine])


def _only_bounds(
    seen: SeenItems, counts: RankCounts, metrics: Sequence[Metric], candidates: str | None
) -> Estimates:
    """Return bounds alone, for lists without any random draw."""
    certainty = UnequalCertainty(counts, (), shape_for("none", None), (), seen.best, exact=False)
    variation = {NAME: Variation(np.empty((0, len(metrics))))}
    known = (certainty, False, False)
    entries = tuple(
        Estimate(metric, NAME, math.nan, False, CLOSED_FORM, *known, variation, place)
        for place, metric in enumerate(metrics)
    )
    return Estimates(entries, counts, {}, notes=(UnresolvedWarning(_HARD),), candidates=candidates)


def unresolved_notes(entries: Sequence[Estimate], remedy: str) -> tuple[UnsampleWarning, ...]:
    """Return a warning with the names of metrics that are not resolved, if there are any."""
    unresolved = [entry.metric.name for entry in entries if not entry.resolved]
    if not unresolved:
        return ()
    names = f"{', '.join(unresolved)} {'is' if len(unresolved) == 1 else 'are'}"
    return (
        UnresolvedWarning(
            f"{names} not resolved: the data leave open more than a quarter of the value; {remedy}"
        ),
    )


def _unreached(seen: SeenItems) -> tuple[UnsampleWarning, ...]:
    """Return a warning if the drawn items do not represent all candidates."""
    share, error = seen.candidates_seen
    if len(seen) < _SMALL_GROUP or abs(share - 1.0) <= max(_OFF, 4.0 * error):
        return ()
    return (
        BiasedMethodWarning(
            f"the items drawn stand for {100 * share:.0f} % of the candidates, by their chances: "
            "some could never be drawn, or chances or items are not as stated, and nothing here "
            "can be trusted"
        ),
    )


def _explained(draws: _Draws) -> str:
    seen = draws.seen
    rank = "one drawn item falls into the top"
    taken = f"{seen.taken.mean():.0f} items taken whole; " if seen.taken.any() else ""
    if draws.law is None:
        blind = float(np.mean((seen.items - 1 - seen.taken) / np.maximum(seen.drawn, 1)))
        return f"{taken}the others drawn alike: {rank} {blind:,.0f} on average"
    return (
        f"{taken}chances learned from the items that beat targets: {rank} "
        f"{draws.law.blind_rank:,.0f} on average"
    )
