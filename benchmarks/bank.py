"""How good the learned prior is on data sets that it was not learned from: ``benchmarks/bank.py``.

For each family of data sets in the bank a prior is learned from all other families. A sample is
drawn from each rank set of the family, at several sizes, and the posterior is compared with the
exact metrics. Spreads (calibration) are taken from the other families, too. Printed, by kind:
errors of the logarithm beside those of MLE, width and coverage of the 95 % interval, verdicts on
pairs of models; and coverage by group. ``--plot FILE`` draws how often intervals of any level hold,
at n = 99. Intervals are made as those of the package, with what is kept for tops that training
items cover.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample.estimators import parse
from unsample.estimators.prior import KINDS
from unsample.lab.bank import RankSet, load_bank
from unsample.lab.bank._trials import (
    INTERVAL,
    VERDICT,
    Duel,
    School,
    Trial,
    exact_values,
    family_shares,
    observe,
    run_trials,
    spreads,
    standard_errors,
    wins,
)
from unsample.metrics import parse_all

SIZES = (20, 49, 99, 199, 499)
CUTOFFS = (1, 5, 10, 20, 50)
METRICS = parse_all([f"{name}@{k}" for name in ("NDCG", "Recall", "AP") for k in CUTOFFS])
NAMES = [str(metric) for metric in METRICS]
#: Sampled items of the calibration plot.
PLOTTED = 99


@dataclass(frozen=True, eq=False)
class Fold:
    """All that was found on one family."""

    family: str
    trials: list[Trial]
    duels: list[Duel]
    #: Errors of the logarithms by MLE, of each rank set at each size.
    plain: dict[tuple[str, str, str, int], np.ndarray]


@cache
def school() -> School:
    return School.of(load_bank())


def key(ranks: RankSet, sampled: int) -> tuple[str, str, str, int]:
    return ranks.dataset, ranks.model, ranks.kind, sampled


def fold(family: str, sizes: Sequence[int], seed: int) -> Fold:
    prior = school().without(family)
    sets = [each for each in school().sets if each.family == family]
    result = Fold(family, [], [], {})
    for sampled in sizes:
        trials, duels = run_trials(prior, sets, sampled, METRICS, seed)
        result.trials.extend(trials)
        result.duels.extend(duels)
        for ranks in sets:
            seen = observe(ranks, sampled, cutoffs=CUTOFFS, seed=seed)
            values = parse("mle").evaluate(seen, METRICS).values[0]
            with np.errstate(divide="ignore"):
                error = np.log(np.maximum(values, 1e-12)) - np.log(exact_values(ranks, METRICS))
            result.plain[key(ranks, sampled)] = error
    return result


def all_folds(chosen: argparse.Namespace) -> list[Fold]:
    families = chosen.families or sorted({each.family for each in school().sets})
    found = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for done in [pool.submit(fold, family, chosen.sizes, chosen.seed) for family in families]:
            found.append(done.result())
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def spread_without(
    folds: Iterable[Fold], pairs: bool
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return the spreads by kind that each family gets from the others, and those of all."""
    errors = [each for one in folds for each in standard_errors(one.duels if pairs else one.trials)]
    families = {family for _, family, _ in errors}
    level = VERDICT if pairs else INTERVAL
    nested = {f: spreads([each for each in errors if each[1] != f], level=level) for f in families}
    return nested, spreads(errors, level=level)


@dataclass(frozen=True, eq=False)
class Line:
    """Figures of one rank set at one size, for one metric."""

    ranks: RankSet
    sampled: int
    metric: str
    exact: float
    error: float
    half: float
    #: How large a part of the posterior lies below the truth.
    below: float

    def inside(self, level: float = INTERVAL) -> bool:
        """Return whether the interval of this level holds the truth."""
        return abs(2.0 * self.below - 1.0) <= level


def lines_of(folds: Sequence[Fold], nested: dict[str, dict[str, float]]) -> list[Line]:
    """Return the figures of all samples, with the spreads that other families ask for."""
    result = []
    for one in folds:
        for trial in one.trials:
            found = trial.posterior
            spread = np.array([nested[one.family].get(kind, 1.0) for kind in found.kinds])
            posterior = replace(found, scale=found.scale * spread[:, None])
            low, high = (ends[0] for ends in posterior.interval(INTERVAL))
            values = posterior.values[0]
            with np.errstate(divide="ignore"):
                below = posterior.cdf(np.log(trial.exact)[None, :])[0]
                errors = np.log(values) - np.log(trial.exact)
            halves = (high - low) / (2.0 * values)
            result += [
                Line(trial.ranks, trial.sampled, name, *map(float, figures))
                for name, *figures in zip(NAMES, trial.exact, errors, halves, below, strict=True)
                if figures[0] > 0
            ]
    return result


def coverage(
    lines: Sequence[Line], shares: dict[tuple[str, str], float], level: float = INTERVAL
) -> float:
    """Return the coverage over data sets: each counts once, those of a family share a weight."""
    total = weight = 0.0
    ordered = sorted(lines, key=lambda line: (line.ranks.kind, line.ranks.dataset))
    for (kind, dataset), found in groupby(
        ordered, key=lambda line: (line.ranks.kind, line.ranks.dataset)
    ):
        part = shares[kind, dataset]
        total += part * float(np.mean([line.inside(level) for line in found]))
        weight += part
    return total / weight


def kinds_of(lines: Sequence[Line]) -> list[str]:
    """Return the kinds of which there is a line, in their usual order."""
    found = {line.ranks.kind for line in lines}
    return [kind for kind in KINDS if kind in found]


def verdicts(called: Sequence[tuple[float, float]], level: float) -> list[bool]:
    """Return, of (chance, true difference), which verdicts are right where there is one."""
    return [
        (chance > 0.5) == (truth > 0)
        for chance, truth in called
        if max(chance, 1.0 - chance) >= level
    ]


def print_table(folds: Sequence[Fold], lines: Sequence[Line], sampled: int, metric: str) -> None:
    shares = family_shares([line.ranks for line in lines])
    chosen = [line for line in lines if line.sampled == sampled and line.metric == metric]
    at = NAMES.index(metric)
    nested, _ = spread_without(folds, pairs=True)
    print(f"\nn = {sampled}, {metric}")
    for kind in kinds_of(chosen):
        mine = [line for line in chosen if line.ranks.kind == kind]
        errors = np.abs([line.error for line in mine])
        plain = [
            abs(one.plain[key(line.ranks, sampled)][at])
            for one in folds
            for line in mine
            if line.ranks.family == one.family
        ]
        called = [
            (wins(duel.mean[at], duel.deviation[at], nested[one.family][kind]), duel.exact[at])
            for one in folds
            for duel in one.duels
            if duel.first.kind == kind and duel.sampled == sampled and np.isfinite(duel.exact[at])
        ]
        sure = verdicts(called, 0.95)
        print(
            f"  {kind:8} {len(mine):4} sets  median {np.median(errors):.3f} (mle "
            f"{np.median(plain):.3f})  95 % {np.quantile(errors, 0.95):.2f}  "
            f"half-width {np.median([line.half for line in mine]):.2f}  coverage "
            f"{coverage(mine, shares):.1%} of data sets, {np.mean([m.inside() for m in mine]):.1%}"
            f"  verdicts {len(sure) / len(called):.0%}, right {np.mean(sure or [np.nan]):.1%}"
        )


def print_groups(lines: Sequence[Line], sampled: int) -> None:
    shares = family_shares([line.ranks for line in lines])
    chosen = [line for line in lines if line.sampled == sampled]
    print(f"\ncoverage by group, n = {sampled}: NDCG@10, and all metrics and K")
    for group in sorted({line.ranks.group for line in chosen}):
        mine = [line for line in chosen if line.ranks.group == group]
        one = [line for line in mine if line.metric == "NDCG@10"]
        sets = len({line.ranks.dataset for line in mine})
        figures = f"{coverage(one, shares):.1%}  {coverage(mine, shares):.1%}"
        print(f"  {group:10} {sets:3} data sets  {figures}")


def draw_calibration(lines: Sequence[Line], path: Path) -> None:
    """Draw the coverage of data sets against the level of the interval, a panel a kind."""
    import matplotlib.pyplot as plt
    from scipy.stats import binom

    plt.rcParams["svg.hashsalt"] = "unsample"
    levels = np.linspace(0.5, 0.99, 99)
    shares = family_shares([line.ranks for line in lines])
    kinds = kinds_of(lines)
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(11, 3.3), sharex=True, sharey=True, layout="constrained"
    )
    for ax, kind in zip(axes, kinds, strict=True):
        mine = [line for line in lines if line.ranks.kind == kind and line.sampled == PLOTTED]
        families = len({line.ranks.family for line in mine})
        # Samples of one family are taken to fail together: what chance can do at most.
        ends = [binom.ppf(end, families, levels) / families for end in (0.05, 0.95)]
        band = {"color": "#ccd6d5", "alpha": 0.6, "lw": 0}
        ax.fill_between(
            100 * levels, *(100 * end for end in ends), label="range of chance, 90 %", **band
        )
        ax.plot([50, 100], [50, 100], color="0.4", lw=0.8, ls=":", label="as promised")
        one = [line for line in mine if line.metric == "NDCG@10"]
        chosen = (mine, "all metrics and K", "#d9822b"), (one, "NDCG@10", "#12938b")
        for held, name, colour in chosen:
            reached = [100 * coverage(held, shares, level) for level in levels]
            ax.plot(100 * levels, reached, color=colour, label=name)
        sets = len({line.ranks.dataset for line in mine})
        ax.set_title(f"{kind}\n{sets} data sets of {families} families", fontsize=10)
        ax.set(xlim=(50, 100), ylim=(0, 102), xlabel="level of the interval, %")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("data sets covered, %")
    axes[-1].legend(loc="lower right", frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None, "Creator": "unsample"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", help="leave out these alone, and not each in turn")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    folds = all_folds(chosen)
    nested, common = spread_without(folds, pairs=False)
    pairs = spread_without(folds, pairs=True)[1]
    print("spread", {k: round(v, 3) for k, v in common.items()})
    print("spread of pairs", {k: round(v, 3) for k, v in pairs.items()})
    lines = lines_of(folds, nested)
    for sampled in chosen.sizes:
        for metric in ("NDCG@10", "Recall@1") if sampled == 99 else ("NDCG@10",):
            print_table(folds, lines, sampled, metric)
    print_groups(lines, 99)
    if chosen.plot:
        draw_calibration(lines, chosen.plot)


if __name__ == "__main__":
    main()
