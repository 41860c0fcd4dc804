"""Leaving data sets out: what a prior learned from the others says about samples of them.

A whole family of data sets is left out at a time. From each of its rank sets a sample is drawn, and
the posterior is compared with the exact metrics. How much larger the errors are than the posterior
says is the spread with which the shipped prior is calibrated.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators import Observed
from unsample.estimators.prior import FEW, KINDS, NARROWED, Gaussian, History, Posterior, Prior
from unsample.evidence import RankCounts
from unsample.lab.bank._bank import Bank, RankSet
from unsample.law import draw_sampled_ranks
from unsample.metrics import Metric

#: Families of other kinds that count in the spread of a kind, however many there are.
_BORROWED = 5.0
#: Degrees of freedom of the t laws of the posterior.
_FREEDOM = 5.0
#: What spreads are right at: intervals of 95 %; chances of 95 %, which are ends of 90 %.
INTERVAL, VERDICT = 0.95, 0.90


@dataclass(frozen=True, eq=False)
class Trial:
    """One sample of one rank set: the posterior under its own kind, and the truth (metrics)."""

    ranks: RankSet
    sampled: int
    exact: FloatArray
    posterior: Posterior

    @property
    def mean(self) -> FloatArray:
        """Return the posterior mean of the logarithm of each metric."""
        return np.asarray(self.posterior.mean[0, 0])

    @property
    def deviation(self) -> FloatArray:
        """Return its standard deviation, before intervals of some kinds are narrowed."""
        return np.asarray(self.posterior.scale[0, 0] / NARROWED.get(self.ranks.kind, 1.0))


@dataclass(frozen=True, eq=False)
class Duel:
    """The ranks of a model beside another's: the posterior of the difference of logarithms."""

    ranks: RankSet
    sampled: int
    exact: FloatArray
    mean: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, eq=False)
class School:
    """The histories of a bank, what each says, and priors learned from some of them."""

    sets: tuple[RankSet, ...]
    histories: tuple[History, ...] = field(repr=False)
    evidence: tuple[Gaussian, ...] = field(repr=False)

    @classmethod
    def of(cls, bank: Bank) -> School:
        """Take the complete data sets of a bank; those of one family share their weight."""
        sets = tuple(each for each in bank if not each.partial)
        share = family_shares(sets)
        histories = tuple(
            History(each.grid, each.counts, each.dataset, each.kind, share[each.kind, each.dataset])
            for each in sets
        )
        return cls(sets, histories, tuple(each.evidence() for each in histories))

    def without(self, family: str | None) -> Prior:
        """Return the prior that is learned without a family, or from all."""
        kept = [at for at, each in enumerate(self.sets) if each.family != family]
        return Prior.fit(
            [self.histories[at] for at in kept], evidence=[self.evidence[at] for at in kept]
        )


def family_shares(sets: Iterable[RankSet]) -> dict[tuple[str, str], float]:
    """Return, by kind and data set, one over the number of data sets of its family."""
    known = {(each.kind, each.family, each.dataset) for each in sets}
    families = [(kind, family) for kind, family, _ in known]
    return {(kind, name): 1.0 / families.count((kind, family)) for kind, family, name in known}


def observe(ranks: RankSet, sampled: int, *, cutoffs: Iterable[int], seed: int = 0) -> Observed:
    """Return one sampled evaluation of a rank set, the same for the same seed."""
    name = "/".join((ranks.dataset, ranks.model, ranks.candidates, str(sampled)))
    size = min(sampled, ranks.items - 1)
    drawn = draw_sampled_ranks(
        ranks.ranks(),
        items=ranks.items,
        sampled=size,
        rng=np.random.default_rng([seed, zlib.crc32(name.encode())]),
    )
    counts = RankCounts.from_ranks(drawn, items=ranks.items, sampled=size)
    return Observed.prepare(counts, cutoffs=cutoffs, candidates=ranks.candidates)


def run_trials(
    prior: Prior, sets: Sequence[RankSet], sampled: int, metrics: Sequence[Metric], seed: int = 0
) -> tuple[list[Trial], list[Duel]]:
    """Return a trial for each rank set, and a duel for each two models of one data set."""
    plain = replace(prior, spread=dict.fromkeys(KINDS, 1.0), pair_spread=dict.fromkeys(KINDS, 1.0))
    cutoffs = [int(metric.k or 1) for metric in metrics]
    trials, duels = [], []
    for _, found in groupby(sorted(sets, key=_place), key=_place):
        members = list(found)
        observed = [observe(each, sampled, cutoffs=cutoffs, seed=seed) for each in members]
        exact = [each.exact(metrics) for each in members]
        kind = members[0].kind
        for one, seen, truth in zip(members, observed, exact, strict=True):
            trials.append(Trial(one, sampled, truth, plain.posterior(seen, metrics, kind=kind)))
        joint = plain.joint(observed, metrics, kind=kind)
        for first, second in combinations(range(len(members)), 2):
            with np.errstate(divide="ignore", invalid="ignore"):
                truth = np.log(exact[first]) - np.log(exact[second])
            mean, scale = joint.difference(first, second)
            duels.append(Duel(members[first], sampled, truth, mean[0], scale[0]))
    return trials, duels


def _place(ranks: RankSet) -> tuple[str, str]:
    return ranks.dataset, ranks.kind


def spreads(
    errors: Sequence[tuple[str, str, FloatArray]], *, level: float = INTERVAL
) -> dict[str, float]:
    """Return the spread of each kind from (kind, family, standardised errors of a family).

    So many of the standardised errors lie within the t law with that spread as it says; families
    count alike, and those of other kinds count for a few. Of a kind with few families errors may be
    larger than those that were seen.
    """
    from scipy.special import stdtrit

    kinds = sorted({kind for kind, _, _ in errors})
    result = {}
    for wanted in kinds:
        others = sum(kind != wanted for kind, _, _ in errors)
        values, weights = [], []
        for kind, _, standard in errors:
            sizes = np.abs(standard[np.isfinite(standard)])
            part = 1.0 if kind == wanted else min(1.0, _BORROWED / max(others, 1))
            values.append(sizes)
            weights.append(np.full(len(sizes), part / max(len(sizes), 1)))
        size, weight = np.concatenate(values), np.concatenate(weights)
        order = np.argsort(size)
        reached = np.cumsum(weight[order]) / weight.sum()
        known = sum(kind == wanted for kind, _, _ in errors)
        reach = float(size[order][np.searchsorted(reached, level)])
        result[wanted] = (1.0 + FEW / known**2) * reach / float(stdtrit(_FREEDOM, 0.5 + level / 2))
    return result


def standard_errors(
    trials: Iterable[Trial] | Iterable[Duel],
) -> Iterator[tuple[str, str, FloatArray]]:
    """Yield kind, family and standardised errors of the logarithms, family by family."""
    found: dict[tuple[str, str], list[FloatArray]] = {}
    for each in trials:
        with np.errstate(divide="ignore", invalid="ignore"):
            truth = np.log(each.exact) if isinstance(each, Trial) else each.exact
            standard = (each.mean - truth) / each.deviation
        found.setdefault((each.ranks.kind, each.ranks.family), []).append(standard)
    for (kind, family), parts in found.items():
        yield kind, family, np.concatenate(parts)


def wins(mean: float, deviation: float, spread: float) -> float:
    """Return the chance that a difference is positive."""
    from scipy.special import stdtr

    return float(stdtr(_FREEDOM, mean / (spread * max(deviation, math.ulp(1.0)))))
