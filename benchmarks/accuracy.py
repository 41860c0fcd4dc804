"""How far estimates are from the truth on the bundled ranks: ``python benchmarks/accuracy.py``.

Every bundled rank set (4 data sets x 5 recommenders x 2 kinds of candidates) is sampled
``--repeats`` times with n = 50, 100, 200 and 500. Every method estimates Recall, NDCG and AP at
K = 5 to 100 from each sample, and is compared with the exact value. Written to ``--out``: one row
for each cell (CSV), the summary (Markdown) and one plot.

``--ranks other`` does the same on 16 rank sets that had no part in choosing anything
(``benchmarks/other_ranks.py`` made them). The four data sets are in the bank that ``auto`` was
learned from; ``benchmarks/calibration.py`` judges it on data sets that were left out.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import other_ranks

from unsample.estimators import Observed, parse
from unsample.evidence import RankCounts
from unsample.lab.datasets import bundled_ranks, load_ranks
from unsample.lab.paper._cells import count_repeats, exact_values
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse_all
from unsample.prior import Posterior, shipped

PAPER = ("mle", "wmle", "mes", "bv", "bv(gamma=0.01)", "cls")
METHODS = (*PAPER, "auto")
CANDIDATES = ("unseen", "all")
#: How candidates are called in the names from which random numbers come.
_NAMED = {"unseen": "everyday", "all": "paper"}
SIZES = (50, 100, 200, 500)
CUTOFFS = (5, 10, 20, 50, 100)
METRICS = parse_all([f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in CUTOFFS])
#: The issue's limits: geometric means against MLE and against the best of the paper, worst cell.
TARGETS = {"unseen": (0.33, 0.6, 1.3), "all": (0.9, None, None)}


@dataclass(frozen=True)
class Problem:
    """One rank set and one sample size."""

    candidates: str
    dataset: str
    recommender: str
    n: int

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the global ranks, and the catalogue size of each target."""
        if self.recommender in other_ranks.NAMES:
            return other_ranks.load(self.dataset, self.recommender, self.candidates)
        bundled = load_ranks(self.dataset, self.recommender, candidates=self.candidates)
        return bundled.ranks, bundled.items

    def sample(self, repeats: int, seed: int) -> Sample:
        """Return the repeats, the exact metrics, and the blind rank."""
        ranks, items = self.truth()
        # A seed made of the name: the same numbers, whatever else is run.
        name = "/".join((_NAMED[self.candidates], self.dataset, self.recommender, str(self.n)))
        drawn = draw_sampled_ranks(
            ranks,
            items=items,
            sampled=self.n - 1,
            rng=np.random.default_rng([seed, zlib.crc32(name.encode())]),
            size=(repeats,),
        )
        counts, histograms = count_repeats(drawn, items, self.n - 1)
        batch = Observed.prepare(counts, histograms=histograms, cutoffs=CUTOFFS)
        each = [RankCounts.from_ranks(one, items=items, sampled=self.n - 1) for one in drawn]
        blind = float(items.mean() - 1) / (self.n - 1)
        return Sample(batch, each, exact_values(ranks, items, METRICS), blind, self.candidates)


@dataclass(frozen=True, eq=False)
class Sample:
    """The repeats of one problem, as one batch and each by itself."""

    batch: Observed
    each: list[RankCounts]
    exact: np.ndarray
    blind: float
    candidates: str


@dataclass(frozen=True)
class Cell:
    """Relative errors of one method for one metric of one problem."""

    candidates: str
    dataset: str
    recommender: str
    n: int
    metric: str
    k: int
    resolution: float
    method: str
    exact: float
    bias: float
    std: float
    rmse: float

    @property
    def place(self) -> tuple[str, str, str, int, str]:
        return self.candidates, self.dataset, self.recommender, self.n, self.metric


Estimate = Callable[[Sample], np.ndarray]


def problems(candidates: str, chosen: argparse.Namespace) -> Iterator[Problem]:
    for n, dataset in product(chosen.sizes, chosen.datasets):
        names = bundled_ranks()[dataset] if chosen.ranks == "bundled" else other_ranks.NAMES
        for recommender in names:
            yield Problem(candidates, dataset, recommender, n)


def measure(
    problem: Problem, methods: Mapping[str, Estimate], repeats: int, seed: int
) -> list[Cell]:
    sample = problem.sample(repeats, seed)
    exact, blind = sample.exact, sample.blind
    cells = []
    for method, estimate in methods.items():
        error = estimate(sample) / exact - 1.0
        bias, std = error.mean(axis=0), error.std(axis=0)
        rmse = np.sqrt((error**2).mean(axis=0))
        cells += [
            Cell(
                **asdict(problem),
                metric=str(metric),
                k=int(metric.k or 0),
                resolution=float(metric.k or 0) / blind,
                method=method,
                exact=float(exact[at]),
                bias=float(bias[at]),
                std=float(std[at]),
                rmse=float(rmse[at]),
            )
            for at, metric in enumerate(METRICS)
        ]
    return cells


def by_name(name: str) -> Estimate:
    if name == "auto":
        return by_posterior
    estimator = parse(name)
    return lambda sample: estimator.evaluate(sample.batch, METRICS).values


def by_posterior(sample: Sample) -> np.ndarray:
    """Return the values of the posterior, repeat by repeat."""
    found = [Posterior.of(one, shipped(), candidates=sample.candidates) for one in sample.each]
    return np.array([[one.law(metric).value() for metric in METRICS] for one in found])


def geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def ratios(cells: list[Cell], method: str, against: str) -> dict[tuple[object, ...], float]:
    """Return RMSE over RMSE for each place that both methods were measured at."""
    base = {cell.place: cell.rmse for cell in cells if cell.method == against}
    return {c.place: c.rmse / base[c.place] for c in cells if c.method == method}


def best_of_paper(cells: list[Cell]) -> str:
    return min(PAPER, key=lambda m: geometric_mean(ratios(cells, m, "mle").values()))


def summary_table(cells: list[Cell]) -> str:
    """Return RMSE against MLE for each method: over all cells, by data set, by n, extremes."""
    datasets = sorted({cell.dataset for cell in cells})
    sizes = sorted({cell.n for cell in cells})
    head = ["method", "all", *datasets, *(f"n = {n}" for n in sizes), "worst cell", "above 1.3"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for method in dict.fromkeys(cell.method for cell in cells):
        ratio = ratios(cells, method, "mle")
        groups = [ratio.values()]
        groups += [[v for place, v in ratio.items() if place[1] == d] for d in datasets]
        groups += [[v for place, v in ratio.items() if place[3] == n] for n in sizes]
        figures = [f"{geometric_mean(group):.2f}" for group in groups]
        above = np.mean([value > 1.3 for value in ratio.values()])
        figures += [f"{max(ratio.values()):.1f}", f"{100 * above:.0f} %"]
        lines.append("| " + " | ".join([f"`{method}`", *figures]) + " |")
    return "\n".join(lines)


def error_table(cells: list[Cell], metric: str, n: int) -> str:
    """Return relative bias and RMSE of MLE and auto for one metric, rank set by rank set."""
    lines = [
        "| ranks | exact | MLE bias | MLE RMSE | auto bias | auto RMSE |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    chosen = {(c.place, c.method): c for c in cells if c.metric == metric and c.n == n}
    for (place, method), auto in chosen.items():
        if method == "auto":
            mle = chosen[place, "mle"]
            lines.append(
                f"| {auto.dataset}, {auto.recommender} | {auto.exact:.4f} "
                f"| {100 * mle.bias:+.0f} % | {100 * mle.rmse:.0f} % "
                f"| {100 * auto.bias:+.0f} % | {100 * auto.rmse:.0f} % |"
            )
    return "\n".join(lines)


def targets_table(cells: list[Cell], candidates: str) -> str:
    against_mle, against_best, worst = TARGETS[candidates]
    auto = ratios(cells, "auto", "mle")
    best = best_of_paper(cells)
    rows = [("auto over MLE, geometric mean", geometric_mean(auto.values()), against_mle)]
    over_best = geometric_mean(ratios(cells, "auto", best).values())
    rows.append(
        (f"auto over the best of the paper ({best}), geometric mean", over_best, against_best)
    )
    rows.append(("auto over MLE, worst cell", max(auto.values()), worst))
    lines = []
    for name, value, limit in rows:
        verdict = "" if limit is None else ("ok  " if value <= limit else "MISS")
        aim = "" if limit is None else f"target <= {limit}"
        lines.append(f"{verdict:<5}{name:<60} {value:6.3f}  {aim}")
    return "\n".join(lines)


def draw(cells: list[Cell], path: Path) -> None:
    """Plot the relative RMSE of each method over K/B, how far the sample resolves the metric."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same bytes from the same numbers.
    mpl.rcParams["svg.hashsalt"] = "unsample"
    from matplotlib import pyplot as plt

    edges = np.geomspace(0.008, 20, 12)
    kinds = dict.fromkeys(cell.candidates for cell in cells)
    figure, axes = plt.subplots(
        1,
        len(kinds),
        figsize=(5 * len(kinds), 4.2),
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for axis, candidates in zip(axes[0], kinds, strict=True):
        for method in ("bv", "mes", "mle", "auto"):
            mine = [c for c in cells if c.candidates == candidates and c.method == method]
            place = np.digitize([c.resolution for c in mine], edges)
            points = [
                (
                    geometric_mean(
                        c.resolution for c, p in zip(mine, place, strict=True) if p == at
                    ),
                    geometric_mean(c.rmse for c, p in zip(mine, place, strict=True) if p == at),
                )
                for at in np.unique(place)
            ]
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=method)
        axis.axvline(1.0, color="grey", linestyle=":", linewidth=1)
        axis.set(
            xscale="log",
            yscale="log",
            title=f"candidates: {candidates}",
        )
        axis.set_xlabel("K / blind rank: right of the line the sample resolves K")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("relative RMSE (geometric mean)")
    axes[0, 0].legend()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def write_csv(cells: list[Cell], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(cells[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(cell) for cell in cells)


def run_suite(chosen: argparse.Namespace) -> None:
    methods = {name: by_name(name) for name in METHODS}
    chosen.out.mkdir(parents=True, exist_ok=True)
    cells: list[Cell] = []
    text = []
    for candidates in chosen.candidates:
        found = []
        for problem in problems(candidates, chosen):
            found += measure(problem, methods, chosen.repeats, chosen.seed)
            print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        text.append(
            f"## Candidates: {candidates}\n\nRMSE as a multiple of MLE's, geometric means over "
            f"{len(ratios(found, 'mle', 'mle'))} cells ({chosen.repeats} repeats each):\n\n"
            f"{summary_table(found)}\n\nNDCG@10, n = 100, relative to the exact value:\n\n"
            f"{error_table(found, 'NDCG@10', 100)}\n"
        )
        print(f"\n{text[-1]}\n{targets_table(found, candidates)}", flush=True)
        cells += found
    write_csv(cells, chosen.out / "accuracy.csv")
    (chosen.out / "summary.md").write_text("\n".join(text), encoding="utf-8")
    draw(cells, chosen.out / "accuracy.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/accuracy"))
    parser.add_argument("--candidates", choices=CANDIDATES, nargs="+", default=list(CANDIDATES))
    parser.add_argument("--ranks", choices=("bundled", "other"), default="bundled")
    parser.add_argument("--datasets", nargs="+", default=list(bundled_ranks()))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    run_suite(parser.parse_args())


if __name__ == "__main__":
    main()
