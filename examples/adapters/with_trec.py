"""TREC files, read by ir_measures: from a run of sampled documents to the whole collection."""

import tempfile
from pathlib import Path

import numpy as np

import unsample
from unsample.adapters import trec

DOCUMENTS, QUERIES, SAMPLED = 5000, 300, 99


def their_objects(folder):
    """Write a run that ranks each query's one relevant document among 99 drawn ones."""
    rng = np.random.default_rng(0)
    run, qrels = Path(folder, "model.run"), Path(folder, "test.qrels")
    with run.open("w") as ranked, qrels.open("w") as judged:
        for query in range(QUERIES):
            drawn = rng.choice(DOCUMENTS, SAMPLED + 1, replace=False)
            scores = rng.normal(size=SAMPLED + 1)
            scores[0] += rng.exponential(2.0)  # the relevant document tends to be found
            judged.write(f"q{query} 0 d{drawn[0]} 1\n")
            for rank, place in enumerate(np.argsort(-scores), 1):
                ranked.write(f"q{query} Q0 d{drawn[place]} {rank} {scores[place]:.6f} model\n")
    return run, qrels


def full_catalogue(run, qrels):
    """Tell the metrics among all documents from the ranks among sampled ones."""
    found = trec.targets(run, qrels, items=DOCUMENTS, sampled=SAMPLED)
    return unsample.estimate(found.counts, metrics=["Recall@100", "NDCG@100", "MRR"])


def main():
    """Return the results, one for each way to the whole catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        return [full_catalogue(*their_objects(folder))]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
