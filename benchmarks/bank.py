"""How good the learned prior is on data sets that it was not learned from: ``benchmarks/bank.py``.

For each family of data sets in the bank a prior is learned from all other families. A sample is
drawn from each rank set of the family, at several sizes, and the posterior is compared with the
exact metrics. Spreads (calibration) are taken from the other families, too. Printed: errors of the
logarithm, width and coverage of the 95 % interval, verdicts on pairs of models, all by kind; and
coverage by group. ``--against`` adds the errors of other estimators on the same samples,
``--ratios`` the RMSE as a multiple of MLE's, ``--plot FILE`` draws how often intervals of any
level hold, at n = 99. Intervals are made as those of the package, with what is kept for tops that
training items cover.
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

from unsample.estimators import Observed, parse
from unsample.estimators.prior import KINDS, Posterior, Prior
from unsample.lab.bank import Bank, RankSet, load_bank
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
from unsample.lab.paper._cells import count_repeats
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse_all

SIZES = (20, 49, 99, 199, 499)
CUTOFFS = (1, 5, 10, 20, 50)
METRICS = parse_all([f"{name}@{k}" for name in ("NDCG", "Recall", "AP") for k in CUTOFFS])
NAMES = [str(metric) for metric in METRICS]
#: The aims: median error, half-width, share of pairs with a verdict (at n = 99, NDCG@10).
AIMS = {
    "unseen": (0.10, 0.40, 0.55),
    "all": (0.15, 0.65, 0.45),
    "repeats": (0.11, 0.50, 0.45),
    "graph": (0.09, 0.40, 0.10),
}
RATIO_METRICS = parse_all([f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in (10, 20)])
REPEATS = 4
#: Sampled items of the calibration plot.
PLOTTED = 99


@dataclass(frozen=True, eq=False)
class Fold:
    """All that was found on one family."""

    family: str
    trials: list[Trial]
    duels: list[Duel]
    #: Where the kind is not given, and intervals are not calibrated.
    unknown: dict[tuple[str, str, str, int], Posterior]
    against: dict[tuple[str, str, str, int, str], np.ndarray]
    ratios: dict[tuple[str, str, str], np.ndarray]


@cache
def school(folder: str) -> School:
    return School.of(bank_of(folder))


def bank_of(folder: str) -> Bank:
    return Bank.load(Path(folder)) if folder else load_bank()


def key(ranks: RankSet, sampled: int) -> tuple[str, str, str, int]:
    return ranks.dataset, ranks.model, ranks.kind, sampled


def fold(
    family: str, folder: str, sizes: Sequence[int], against: Sequence[str], ratios: bool, seed: int
) -> Fold:
    learned = school(folder)
    prior = learned.without(family)
    sets = [each for each in learned.sets if each.family == family]
    result = Fold(family, [], [], {}, {}, {})
    for sampled in sizes:
        trials, duels = run_trials(prior, sets, sampled, METRICS, seed)
        result.trials.extend(trials)
        result.duels.extend(duels)
        for ranks in sets if sampled in {20, 99, 499} or against else ():
            seen = observe(ranks, sampled, cutoffs=CUTOFFS, seed=seed)
            truth = exact_values(ranks, METRICS)
            result.unknown[key(ranks, sampled)] = prior.posterior(seen, METRICS)
            with np.errstate(divide="ignore"):
                for method in against:
                    value = parse(method).evaluate(seen, METRICS).values[0]
                    other = np.log(np.maximum(value, 1e-12)) - np.log(truth)
                    result.against[(*key(ranks, sampled), method)] = other
    if ratios:
        for ranks in sets:
            result.ratios[key(ranks, 0)[:3]] = rmse_ratio(ranks, prior, seed)
    return result


def rmse_ratio(ranks: RankSet, prior: Prior, seed: int) -> np.ndarray:
    """Return the RMSE of the posterior over that of MLE, for each metric, n = 100."""
    size = min(99, ranks.items - 1)
    drawn = draw_sampled_ranks(
        ranks.ranks(), items=ranks.items, sampled=size, rng=seed + 7, size=(REPEATS,)
    )
    counts, rows = count_repeats(drawn, np.full(ranks.targets, ranks.items), size)
    observed = Observed.prepare(
        counts, resampled=rows, cutoffs=(10, 20), candidates=ranks.candidates
    )
    batch = replace(observed, shares=observed.shares[1:])
    truth = exact_values(ranks, RATIO_METRICS)
    mine = prior.posterior(batch, RATIO_METRICS, kind=ranks.kind).values
    plain = parse("mle").evaluate(batch, RATIO_METRICS).values
    return np.sqrt(((mine - truth) ** 2).mean(axis=0) / ((plain - truth) ** 2).mean(axis=0))


def all_folds(chosen: argparse.Namespace) -> list[Fold]:
    families = chosen.families or sorted({each.family for each in school(chosen.bank).sets})
    settings = (chosen.bank, chosen.sizes, chosen.against, chosen.ratios, chosen.seed)
    found = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for done in [pool.submit(fold, family, *settings) for family in families]:
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


def lines_of(
    folds: Sequence[Fold], nested: dict[str, dict[str, float]], *, kind_given: bool = True
) -> list[Line]:
    """Return the figures of all samples, with the spreads that other families ask for."""
    result = []
    for one in folds:
        for trial in one.trials:
            found = one.unknown.get(key(trial.ranks, trial.sampled))
            found = trial.posterior if kind_given else found
            if found is None:
                continue
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
        unknown = [
            abs(np.log(one.unknown[key(line.ranks, sampled)].values[0, at] / line.exact))
            for one in folds
            for line in mine
            if line.ranks.family == one.family and key(line.ranks, sampled) in one.unknown
        ]
        called = [
            (wins(duel.mean[at], duel.deviation[at], nested[one.family][kind]), duel.exact[at])
            for one in folds
            for duel in one.duels
            if duel.first.kind == kind and duel.sampled == sampled and np.isfinite(duel.exact[at])
        ]
        sure, surer = (verdicts(called, level) for level in (0.95, 0.975))
        aims = AIMS[kind] if (sampled, metric) == (99, "NDCG@10") else None
        text = (
            f"  {kind:8} {len(mine):4} sets  median {np.median(errors):.3f} (kind unknown "
            f"{np.median(unknown or [np.nan]):.3f})  95 % {np.quantile(errors, 0.95):.2f}  "
            f"half-width {np.median([line.half for line in mine]):.2f}  coverage "
            f"{coverage(mine, shares):.1%} of data sets, {np.mean([m.inside() for m in mine]):.1%}"
            f"  verdicts {len(sure) / len(called):.0%}, right {np.mean(sure or [np.nan]):.1%}"
            f" (at 97.5 %: {len(surer) / len(called):.0%}, {np.mean(surer or [np.nan]):.1%})"
        )
        print(text + (f"  aims {aims}" if aims else ""))
        others = sorted({k[4] for one in folds for k in one.against})
        for method in others:
            found = [
                abs(one.against[(*key(line.ranks, sampled), method)][at])
                for one in folds
                for line in mine
                if line.ranks.family == one.family
            ]
            print(
                f"           {method:8} median {np.median(found):.3f}, mean "
                f"{np.mean(np.minimum(found, 3)):.3f} against {errors.mean():.3f}"
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


def print_matrix(lines: Sequence[Line]) -> None:
    print("\nmedian error / half-width / coverage of data sets, NDCG@K by n")
    shares = family_shares([line.ranks for line in lines])
    for kind in kinds_of(lines):
        for sampled in sorted({line.sampled for line in lines}):
            cells = []
            for k in CUTOFFS:
                mine = [
                    line
                    for line in lines
                    if line.ranks.kind == kind
                    and line.sampled == sampled
                    and line.metric == f"NDCG@{k}"
                ]
                error = np.median([abs(line.error) for line in mine])
                half = np.median([line.half for line in mine])
                cells.append(f"{error:.2f}/{half:.2f}/{coverage(mine, shares):.0%}")
            print(f"  {kind:8} n = {sampled:3}  " + "  ".join(cells))


def print_unknown(lines: Sequence[Line], unknown: Sequence[Line]) -> None:
    print("\nkind given, and not given: median error / half-width / coverage of data sets")
    shares = family_shares([line.ranks for line in lines])
    sizes = {line.sampled for line in unknown}
    for kind in kinds_of(unknown):
        texts = []
        for found in (lines, unknown):
            every = [line for line in found if line.ranks.kind == kind and line.sampled in sizes]
            one = [line for line in every if (line.sampled, line.metric) == (99, "NDCG@10")]
            for mine in (one or every, every):
                error = np.median([abs(line.error) for line in mine])
                half = np.median([line.half for line in mine])
                texts.append(f"{error:.3f}/{half:.2f}/{coverage(mine, shares):.1%}")
        print(
            f"  {kind:8} n = 99, NDCG@10 {texts[0]} and {texts[2]}; "
            f"all n, metrics, K {texts[1]} and {texts[3]}"
        )


def print_cells(folds: Sequence[Fold], lines: Sequence[Line]) -> None:
    """Print where the mean error is more than a fifth above that of another estimator."""
    others = {k: np.abs(v) for one in folds for k, v in one.against.items()}
    methods = sorted({k[4] for k in others})
    cells: dict[tuple[str, str, int, str], list[tuple[float, float]]] = {}
    for line in lines:
        for method in methods:
            other = others[(*key(line.ranks, line.sampled), method)][NAMES.index(line.metric)]
            pair = min(abs(line.error), 3.0), min(float(other), 3.0)
            place = line.ranks.kind, line.metric, line.sampled, method
            cells.setdefault(place, []).append(pair)
    means = {place: np.mean(pairs, axis=0) for place, pairs in cells.items()}
    worse = {place: mean for place, mean in means.items() if mean[0] > 1.2 * mean[1]}
    print(f"\nmean error more than a fifth above another's: {len(worse)} of {len(means)} cells")
    for (kind, metric, sampled, method), mean in sorted(worse.items()):
        figures = f"{mean[0]:.3f} against {mean[1]:.3f}"
        print(f"  {kind:8} {metric:9} n = {sampled:3} {method:7} {figures}")


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
    parser.add_argument("--bank", default="", help="a bank other than the one of the package")
    parser.add_argument("--families", nargs="+", help="leave out these alone, and not each in turn")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--against", nargs="*", default=[])
    parser.add_argument("--ratios", action="store_true")
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
    print_matrix(lines)
    print_unknown(lines, lines_of(folds, nested, kind_given=False))
    if chosen.against:
        print_cells(folds, lines)
    if chosen.plot:
        draw_calibration(lines, chosen.plot)
    for kind in kinds_of(lines) if chosen.ratios else ():
        found = [np.log(v) for one in folds for k, v in one.ratios.items() if k[2] == kind]
        print(f"RMSE over MLE's, geometric mean, {kind}: {np.exp(np.mean(found)):.3f}")


if __name__ == "__main__":
    main()
