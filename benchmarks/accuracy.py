"""How far estimates are from the truth on rank sets of the laboratory.

python benchmarks/accuracy.py [--ranks bundled|other] [--repeats 20]

Every rank set (4 data sets x 5 recommenders x 2 kinds of candidates) is sampled ``--repeats`` times
with n = 50, 100, 200 and 500. Every method estimates Recall, NDCG and AP at K = 5 to 100 from each
sample, and is compared with the exact value. Printed is the RMSE as a multiple of MLE's, geometric
means over cells, and the size of MLE's and auto's errors at NDCG@10. "auto, left out" uses the
prior that was learned without the data set's family (pinterest-20 was never in it).

``--ranks other`` takes four more recommenders on the same data sets from the corpus: popularity, a
truncated singular value decomposition, a random walk, and EASE that knows half of the pairs.
``benchmarks/calibration.py`` judges ``auto`` on data sets that were left out.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from unsample.counts import RankCounts
from unsample.estimators import parse
from unsample.lab.corpus import load_corpus
from unsample.lab.datasets import CANDIDATES, load_ranks, names
from unsample.lab.paper import RECOMMENDERS
from unsample.lab.paper._cells import count_repeats, exact_values
from unsample.likelihood import Observed
from unsample.metrics import parse_all
from unsample.posterior import Cloud, Prior, shipped
from unsample.sampling import draw_sampled_ranks

AUTO = "auto"
#: `auto` with the prior that was learned without the data set's family.
LEFT_OUT = "auto, left out"
METHODS = ("mle", "wmle", "mes", "bv", "bv(gamma=0.01)", "cls", AUTO, LEFT_OUT)
OTHERS = ("popularity", "svd", "walk", "half-ease")
#: How candidates are called in the names from which random numbers come.
_NAMED = {"unseen": "everyday", "all": "paper"}
SIZES = (50, 100, 200, 500)
CUTOFFS = (5, 10, 20, 50, 100)
METRICS = parse_all([f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in CUTOFFS])
NDCG = next(at for at, metric in enumerate(METRICS) if metric.name == "NDCG@10")


@dataclass(frozen=True, eq=False)
class Cell:
    """Relative errors of one method on one rank set with one sample size, metric by metric."""

    dataset: str
    recommender: str
    n: int
    method: str
    rmse: np.ndarray

    @property
    def place(self) -> tuple[str, str, int]:
        return self.dataset, self.recommender, self.n


def rank_set(dataset: str, recommender: str, candidates: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the global ranks, and the catalogue size of each target."""
    if recommender in OTHERS:
        wanted = {"dataset": dataset, "model": recommender, "candidates": candidates}
        (found,) = load_corpus().select(**wanted)
        ranks = found.ranks()
        return ranks, np.full(len(ranks), found.items)
    bundled = load_ranks(dataset, recommender, candidates=candidates)
    return bundled.ranks, bundled.items


def prior_for(dataset: str, candidates: str, *, left_out: bool) -> Prior:
    """Return the prior, which knows how many items users have seen where these are candidates."""
    prior = Prior.shipped(without=dataset) if left_out else shipped()
    if candidates == "unseen":
        return prior
    every, unseen = (
        load_ranks(dataset, "ease", candidates=each).items for each in ("all", "unseen")
    )
    return prior.knowing((every - unseen).tolist())


def measured(
    dataset: str, recommender: str, candidates: str, n: int, chosen: argparse.Namespace
) -> Iterator[Cell]:
    """Sample a rank set, and yield what each method makes of it."""
    ranks, items = rank_set(dataset, recommender, candidates)
    # A seed made of the name: the same numbers, whatever else is run.
    name = "/".join((_NAMED[candidates], dataset, recommender, str(n)))
    rng = np.random.default_rng([chosen.seed, zlib.crc32(name.encode())])
    drawn = draw_sampled_ranks(ranks, items=items, sampled=n - 1, rng=rng, size=(chosen.repeats,))
    counts, histograms = count_repeats(drawn, items, sampled=n - 1)
    batch = Observed.prepare(counts, histograms=histograms, cutoffs=CUTOFFS)
    exact = exact_values(ranks, items, metrics=METRICS)
    counted = [RankCounts.from_ranks(one, items=items, sampled=n - 1) for one in drawn]
    for method in METHODS:
        if method in (AUTO, LEFT_OUT):
            prior = prior_for(dataset, candidates, left_out=method == LEFT_OUT)
            clouds = [Cloud.of(one, prior, protocol=candidates) for one in counted]
            values = np.array(
                [[cloud.metric(metric).value for metric in METRICS] for cloud in clouds]
            )
        else:
            values = parse(method).evaluate(batch, METRICS).values
        rmse = np.sqrt(((values / exact - 1.0) ** 2).mean(axis=0))
        yield Cell(dataset, recommender, n, method, rmse)


def geometric_mean(values: Iterable[np.ndarray]) -> float:
    return float(np.exp(np.mean(np.log(np.concatenate(list(values))))))


def print_table(cells: list[Cell]) -> None:
    """Print RMSE against MLE for each method: over all cells, by data set, by n, extremes."""
    datasets = sorted({cell.dataset for cell in cells})
    sizes = sorted({cell.n for cell in cells})
    head = ["method", "all", *datasets, *(f"n = {n}" for n in sizes), "worst cell", "above 1.3"]
    print("| " + " | ".join(head) + " |\n| --- |" + " ---: |" * (len(head) - 1))
    base = {cell.place: cell.rmse for cell in cells if cell.method == "mle"}
    for method in METHODS:
        ratio = {c.place: c.rmse / base[c.place] for c in cells if c.method == method}
        groups = [list(ratio.values())]
        groups += [[v for place, v in ratio.items() if place[0] == d] for d in datasets]
        groups += [[v for place, v in ratio.items() if place[2] == n] for n in sizes]
        whole = np.concatenate(groups[0])
        figures = [f"{geometric_mean(group):.2f}" for group in groups]
        figures += [f"{whole.max():.1f}", f"{100 * np.mean(whole > 1.3):.0f} %"]
        print("| " + " | ".join([f"`{method}`", *figures]) + " |")
    for method in ("mle", AUTO, LEFT_OUT):
        found = [cell.rmse[NDCG] for cell in cells if cell.method == method and cell.n == 100]
        if found:
            print(f"NDCG@10, n = 100: median RMSE of {method} {100 * np.median(found):.0f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--candidates", choices=CANDIDATES, nargs="+", default=list(CANDIDATES))
    parser.add_argument("--ranks", choices=("bundled", "other"), default="bundled")
    parser.add_argument("--datasets", nargs="+", default=list(names()))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    chosen = parser.parse_args()
    for candidates in chosen.candidates:
        cells: list[Cell] = []
        for n, dataset in product(chosen.sizes, chosen.datasets):
            for name in RECOMMENDERS if chosen.ranks == "bundled" else OTHERS:
                cells += measured(dataset, name, candidates, n, chosen)
        print(f"\nCandidates: {candidates}, {chosen.repeats} repeats\n")
        print_table(cells)


if __name__ == "__main__":
    main()
