"""Text retrieval against a random part of a corpus: does the interval hold the full corpus?

python benchmarks/corpora.py [--shares 0.01 0.05 0.1] [--draws 20]

The corpus: long descriptions of 20,000 Debian packages (`Translation-en` of bookworm, one for each
opening of 80 characters, so that packages of one source are in it once). The queries: short
descriptions of 2,000 of them; the one relevant document is the long description of the same
package. Scores are cosines of embeddings by all-MiniLM-L6-v2 (128 tokens at most).
``corpora_ranks.npz`` holds no text: of each query, its rank in the full corpus and the numbers of
the documents before its own. So ranks among any part of the corpus follow, and which document beats
which query.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import unsample
from unsample._archives import read_arrays
from unsample.counts import Targets, shared_targets
from unsample.errors import UnsampleWarning
from unsample.metrics import parse_all

RANKS = Path(__file__).with_name("corpora_ranks.npz")
METRICS = parse_all(["MRR@10", "Recall@10", "NDCG@10"])


@dataclass(frozen=True, eq=False)
class Corpus:
    """How many documents there are, and which of them come before each query's own."""

    documents: int
    ranks: np.ndarray
    before: np.ndarray

    @classmethod
    def load(cls) -> Corpus:
        """Return the ranks beside this file."""
        with RANKS.open("rb") as file:
            arrays = read_arrays(file, RANKS.name)
        return cls(int(arrays["documents"]), arrays["ranks"].astype(int), arrays["before"])

    def against(self, part: np.ndarray) -> Targets:
        """Rank each query's document against a part of the corpus.

        Where it is in the part itself it does not come before itself.
        """
        place = np.full(self.documents, -1)
        place[part] = np.arange(len(part))
        query = np.repeat(np.arange(len(self.ranks)), self.ranks - 1)
        column = place[self.before]
        scores = np.zeros((len(self.ranks), len(part)), dtype=np.int8)
        scores[query[column >= 0], column[column >= 0]] = 2
        return shared_targets(np.ones(len(scores)), scores, items=self.documents, pool=part)


def draw(corpus: Corpus, share: float, seed: int) -> np.ndarray:
    """Return a random part of the corpus."""
    size = round(share * corpus.documents)
    return np.random.default_rng(seed).choice(corpus.documents, size, replace=False)


def print_table(corpus: Corpus, shares: Sequence[float], draws: int) -> None:
    """Print the first draw of each size, and in how many of the draws the interval held.

    ``wider`` is the half-width divided by that of the same ranks, were they of own documents.
    """
    truth = [float(each.weights(corpus.ranks, corpus.documents).mean()) for each in METRICS]
    heads = "part, metric, printed, estimate, 95 % interval, full corpus, held, half-width, wider"
    print("| " + heads.replace(", ", " | ") + " |")
    print("|" + " --- |" * len(heads.split(", ")))
    for share in shares:
        rows = np.zeros((draws, len(METRICS), 4))
        bounds = np.zeros((draws, len(METRICS)), dtype=bool)
        own = np.zeros((draws, len(METRICS)))
        for seed in range(draws):
            found = corpus.against(draw(corpus, share, seed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsampleWarning)
                result = unsample.estimate(found, metrics=METRICS)
                apart = unsample.estimate(replace(found, shared=None), metrics=METRICS)
            for at, metric in enumerate(METRICS):
                entry = result[metric.name]
                printed = float(metric.weights(found.ranks, found.shared.sampled + 1).mean())
                rows[seed, at] = printed, entry.value, *entry.interval()
                own[seed, at] = np.ptp(apart[metric.name].interval()) / 2.0
                bounds[seed, at] = entry.source == "bounds"
        held = (rows[:, :, 2] <= truth) & (truth <= rows[:, :, 3])
        half = (rows[:, :, 3] - rows[:, :, 2]) / 2.0
        wider = np.median(half / own, axis=0)
        for at, metric in enumerate(METRICS):
            printed, value, low, high = rows[0, at]
            word = " (bounds)" if bounds[0, at] else ""
            some = f", {bounds[:, at].sum()} bounds" if bounds[:, at].any() else ""
            print(
                f"| {100 * share:g} % | {metric.name} | {printed:.3f} | {value:.3f} "
                f"| {low:.3f} .. {high:.3f}{word} | {truth[at]:.3f} "
                f"| {held[:, at].sum()} of {draws}{some} | {np.median(half[:, at]):.3f} "
                f"| {wider[at]:.2f} |"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--draws", type=int, default=20)
    chosen = parser.parse_args(arguments)
    print_table(Corpus.load(), chosen.shares, chosen.draws)


if __name__ == "__main__":
    main()
