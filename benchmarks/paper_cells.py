"""The paper's protocol on the paper's data sets: ``benchmarks/paper_cells.py [--repeats 100]``.

Four data sets and five recommenders make twenty cells. The ranks of each are sampled ``--repeats``
times with 99 items, among all items, as the paper does, and among unseen ones. `auto` uses the
prior that was learned without the data set's family, and knows how many items users have seen.
Printed are the share of 95 % intervals that hold the exact metric, the median error of `auto` and
of `mle` (each the median of a cell, then over cells), and the half-width. ``--out out``
writes the tables, and ``tools/put_tables.py`` puts them into the page of the paper.

The weights of pushes were learned from all families, these too. pinterest-20 and yelp are partial.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample.counts import RankCounts
from unsample.estimators import parse
from unsample.lab.datasets import ExactRanks, load_ranks, names
from unsample.lab.paper import RECOMMENDERS
from unsample.lab.paper._cells import count_repeats
from unsample.likelihood import Observed
from unsample.metrics import parse_all
from unsample.posterior import Cloud, Prior
from unsample.sampling import draw_sampled_ranks

METRICS = parse_all(["NDCG@10", "Recall@10", "MRR@100", "Recall@1"])
PROTOCOLS = ("all", "unseen")
SAMPLED = 99
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Cell:
    """What was said of one recommender on one data set: arrays of repeats x metrics."""

    dataset: str
    recommender: str
    exact: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mle: np.ndarray

    def holds(self) -> np.ndarray:
        return ((self.low <= self.exact) & (self.exact <= self.high)).mean(axis=0)

    def error(self, values: np.ndarray) -> np.ndarray:
        """Return the median error as a share of the exact value; of 0, any other value is all."""
        share = np.abs(values - self.exact) / np.where(self.exact > 0.0, self.exact, 1.0)
        share = np.where((self.exact == 0.0) & (values > 0.0), 1.0, share)
        return np.median(share, axis=0)

    def half_width(self) -> np.ndarray:
        return np.median((self.high - self.low) / 2.0 / np.maximum(self.value, 1e-12), axis=0)


def own_items(dataset: str) -> np.ndarray:
    """Return how many items each user has seen."""
    among_all, unseen = (
        load_ranks(dataset, next(iter(RECOMMENDERS)), candidates=candidates).items
        for candidates in ("all", "unseen")
    )
    return among_all - unseen


def sampled(ranks: ExactRanks, protocol: str, repeats: int) -> np.ndarray:
    name = "/".join((protocol, ranks.dataset, ranks.recommender))
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return draw_sampled_ranks(
        ranks.ranks, items=ranks.items, sampled=SAMPLED, rng=rng, size=(repeats,)
    )


def cell(dataset: str, recommender: str, protocol: str, repeats: int) -> Cell:
    """Sample one cell, and ask `auto` and `mle`."""
    ranks = load_ranks(dataset, recommender, candidates=protocol)
    prior = Prior.shipped(without=dataset)
    if protocol == "all":
        prior = prior.knowing(own_items(dataset).tolist())
    largest = int(ranks.items.max())
    exact = np.array([metric.weights(ranks.ranks, largest).mean() for metric in METRICS])
    drawn = sampled(ranks, protocol, repeats)
    said = np.empty((3, repeats, len(METRICS)))
    for row, one in enumerate(drawn):
        counts = RankCounts.from_ranks(one, items=ranks.items, sampled=SAMPLED)
        cloud = Cloud.of(counts, prior, protocol=protocol)
        for column, metric in enumerate(METRICS):
            number = cloud.metric(metric)
            said[:, row, column] = (number.value, *number.interval(LEVEL))
    counts, histograms = count_repeats(drawn, ranks.items, sampled=SAMPLED)
    cutoffs = [metric.cutoff(largest) for metric in METRICS]
    batch = Observed.prepare(counts, histograms=histograms, cutoffs=cutoffs)
    mle = parse("mle").evaluate(batch, METRICS).values
    return Cell(dataset, recommender, exact, *said, mle=mle)


def table(cells: list[Cell]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: a row a data set, and one of all cells."""
    names_of = ", ".join(metric.name for metric in METRICS[:2])
    yield (
        f"| data set | intervals hold {names_of} | half-width | median error of `auto` | "
        "of `mle` | MRR@100, Recall@1 hold |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for dataset in (*dict.fromkeys(each.dataset for each in cells), None):
        some = [each for each in cells if dataset in (None, each.dataset)]
        holds = 100 * np.mean([each.holds() for each in some], axis=0)
        width = np.median([each.half_width() for each in some], axis=0)
        auto = 100 * np.median([each.error(each.value) for each in some], axis=0)
        mle = 100 * np.median([each.error(each.mle) for each in some], axis=0)
        yield (
            f"| {dataset or '**all cells**'} | {holds[0]:.0f}, {holds[1]:.0f} % "
            f"| {width[0]:.2f}, {width[1]:.2f} | {auto[0]:.0f}, {auto[1]:.0f} % "
            f"| {mle[0]:.0f}, {mle[1]:.0f} % | {holds[2]:.0f}, {holds[3]:.0f} % |"
        )


def print_corpus() -> None:
    """Print the median error of `mle` on the corpus that ``calibration.py`` judges `auto` on."""
    from calibration import Past, sampled_counts

    for protocol in PROTOCOLS:
        errors = []
        for one in Past.of().sets:
            if one.kind != protocol:
                continue
            ranks = one.ranks()
            counts = sampled_counts(ranks, one, SAMPLED, 0)
            cutoffs = [metric.cutoff(one.items) for metric in METRICS]
            values = (
                parse("mle").evaluate(Observed.prepare(counts, cutoffs=cutoffs), METRICS).values
            )
            exact = np.array([metric.weights(ranks, one.items).mean() for metric in METRICS])
            errors.append(np.abs(values.ravel() / np.maximum(exact, 1e-9) - 1.0))
        shares = ", ".join(
            f"{metric.name} {100 * error:.0f} %"
            for metric, error in zip(METRICS, np.median(errors, axis=0), strict=True)
        )
        print(f"mle on {len(errors)} rank sets of protocol {protocol}: median error {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--datasets", nargs="+", choices=names(), default=list(names()))
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--out", type=Path, help="a folder for the tables, such as out")
    parser.add_argument("--corpus", action="store_true", help="`mle` on the corpus, instead")
    chosen = parser.parse_args()
    if chosen.corpus:
        print_corpus()
        return
    with ProcessPoolExecutor(chosen.workers) as pool:
        for protocol in chosen.protocols:
            jobs = [
                pool.submit(cell, dataset, recommender, protocol, chosen.repeats)
                for dataset, recommender in product(chosen.datasets, RECOMMENDERS)
            ]
            lines = list(table([job.result() for job in jobs]))
            print(f"\nCandidates: {protocol}, {chosen.repeats} repeats\n")
            print("\n".join(lines))
            if chosen.out is not None:
                chosen.out.mkdir(parents=True, exist_ok=True)
                text = "".join(f"{line}\n" for line in lines)
                (chosen.out / f"auto-in-cells-{protocol}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
