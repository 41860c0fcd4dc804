"""ranx: from a Run over sampled documents and Qrels to metrics on the whole collection."""

import numpy as np
from ranx import Qrels, Run

import unsample
from unsample.adapters import ranx

DOCUMENTS, QUERIES, SAMPLED = 5000, 300, 99


def their_objects():
    """Make a run that ranks each query's one relevant document among 99 drawn ones."""
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for query in range(QUERIES):
        drawn = rng.choice(DOCUMENTS, SAMPLED + 1, replace=False)
        scores = rng.normal(size=SAMPLED + 1)
        scores[0] += rng.exponential(2.0)  # the relevant document tends to be found
        qrels[f"q{query}"] = {f"d{drawn[0]}": 1}
        run[f"q{query}"] = {f"d{d}": float(s) for d, s in zip(drawn, scores, strict=True)}
    return Run(run, name="model"), Qrels(qrels)


def full_catalogue(run, qrels):
    """Tell the metrics among all documents from the ranks among sampled ones."""
    found = ranx.targets(run, qrels, items=DOCUMENTS, sampled=SAMPLED)
    return unsample.estimate(found.counts, metrics=["Recall@100", "NDCG@100", "MRR"])


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
