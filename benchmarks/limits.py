"""What an estimator could reach at all: ``python benchmarks/limits.py``.

Three measurements on the bundled ranks and on the other ones, candidates unseen, as multiples of
MLE's RMSE over the cells of ``benchmarks/accuracy.py``:

* **P(R) known.** The error that is left when the smooth P(R) behind the ranks is known and only the
  sampled ranks of these users are seen: nobody can promise less.
* **The best belief in hindsight.** `auto` averages curves that go on to rise to the first rank and
  curves that level off. Here the belief that came out best is chosen for each rank set and
  sample size, with the exact ranks in sight, which no evaluation has.
* **The price of caution.** `auto` mixed with MLE: how the mean error and the worst cell trade off.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from accuracy import METRICS, SIZES, Problem, by_name, curves, geometric_mean, problems
from scipy.ndimage import gaussian_filter1d
from scipy.stats import binom

LEVELS = (0.0, 0.05, 0.15, 0.4, 1.0)
CAUTION = (0.0, 0.1, 0.2, 0.3, 0.5)
#: Width of the kernel that smooths the true ranks, in log rank.
WIDTH = 0.3


@dataclass(frozen=True)
class Outcome:
    """Relative RMSE of each method in each cell of one problem."""

    problem: Problem
    rmse: Mapping[str, np.ndarray]

    def ratio(self, method: str) -> np.ndarray:
        return self.rmse[method] / self.rmse["mle"]


def smooth_truth(ranks: np.ndarray, items: int) -> np.ndarray:
    """Return P(1..N), the true ranks smoothed along log(R + 4)."""
    place = np.log(np.arange(1, items + 1) + 4.0)
    lattice = np.linspace(place[0] - 2.0, place[-1] + 2.0, 4000)
    step = lattice[1] - lattice[0]
    edges = np.append(lattice - step / 2, lattice[-1] + step / 2)
    targets, everything = (
        gaussian_filter1d(np.histogram(values, edges)[0].astype(float), WIDTH / step)
        for values in (np.log(ranks + 4.0), place)
    )
    density = np.interp(place, lattice, targets / np.maximum(everything, 1e-12))
    return density / density.sum()


def error_with_known_law(problem: Problem, exact: np.ndarray) -> np.ndarray:
    """Return the relative standard deviation of each metric given the sampled ranks and P(R)."""
    truth = problem.truth()
    items = round(float(truth.items.mean()))
    mass = smooth_truth(truth.ranks, items)
    low = np.unique(np.round(np.append(np.arange(1, 2000), np.geomspace(2000, items, 3000))))
    low = low[low <= items].astype(np.int64)
    middle = (low + np.append(low[1:], items + 1) - 1) / 2.0
    sampled = np.arange(min(problem.n, 200))
    joint = binom.pmf(sampled[:, None], problem.n - 1, (middle - 1) / (items - 1))
    joint *= np.add.reduceat(mass, low - 1)
    cells = np.maximum(joint.sum(axis=1), 1e-300)
    errors = []
    for metric, value in zip(METRICS, exact, strict=True):
        worth = metric.weights(low, items)
        variance = (joint @ worth**2 - (joint @ worth) ** 2 / cells).sum()
        errors.append(np.sqrt(variance / len(truth.ranks)) / value)
    return np.array(errors)


def measure(problem: Problem, repeats: int, seed: int) -> Outcome:
    observed, exact, _ = problem.sample(repeats, seed)
    values = {name: by_name(name)(observed) for name in ("mle", "auto")}
    for level in LEVELS:
        values[f"level {level:g}"] = curves({level: 1.0}, 0.0)(observed)
    for share in CAUTION:
        values[f"caution {share:g}"] = (1 - share) * values["auto"] + share * values["mle"]
    rmse = {
        name: np.sqrt(((value / exact - 1.0) ** 2).mean(axis=0)) for name, value in values.items()
    }
    return Outcome(problem, rmse | {"known": error_with_known_law(problem, exact)})


def in_hindsight(outcome: Outcome) -> np.ndarray:
    """Return the ratios of the belief with the least mean error on this problem."""
    ratios = [outcome.ratio(f"level {level:g}") for level in LEVELS]
    return min(ratios, key=lambda ratio: float(np.log(ratio).mean()))


def print_row(name: str, outcomes: list[Outcome], ratio: Callable[[Outcome], np.ndarray]) -> None:
    every = np.stack([ratio(outcome) for outcome in outcomes])
    datasets = sorted({outcome.problem.dataset for outcome in outcomes})
    groups = [
        geometric_mean(np.concatenate([ratio(o) for o in outcomes if o.problem.dataset == name]))
        for name in datasets
    ]
    figures = "  ".join(f"{figure:11.2f}" for figure in groups)
    mean, above = geometric_mean(every.ravel()), 100 * float((every > 1.3).mean())
    print(f"{name:33} {mean:5.2f}  {figures}  {every.max():6.1f} {above:5.1f} %")


def report(outcomes: list[Outcome]) -> None:
    datasets = sorted({outcome.problem.dataset for outcome in outcomes})
    head = "  ".join(f"{name:>11}" for name in datasets)
    print(f"{'RMSE over that of MLE':33} {'all':>5}  {head}  {'worst':>6} {'> 1.3':>7}")
    print_row("P(R) known", outcomes, lambda o: o.ratio("known"))
    print_row("best belief, in hindsight", outcomes, in_hindsight)
    for level in LEVELS:
        words = f"levels off at {level:g} B" if level else "goes on"
        print_row(f"one belief: {words}", outcomes, lambda o, x=level: o.ratio(f"level {x:g}"))
    for share in CAUTION:
        words = f"auto + {share:.0%} MLE" if share else "auto"
        print_row(words, outcomes, lambda o, x=share: o.ratio(f"caution {x:g}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", choices=("bundled", "other"), nargs="+")
    chosen = parser.parse_args()
    for ranks in chosen.ranks or ("bundled", "other"):
        found = problems(["unseen"], SIZES, ranks)
        outcomes = [measure(problem, chosen.repeats, chosen.seed) for problem in found]
        print(f"\n{ranks} ranks, candidates unseen, {len(outcomes) * len(METRICS)} cells")
        report(outcomes)


if __name__ == "__main__":
    main()
