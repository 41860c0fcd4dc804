"""BEIR-style dicts of a corpus that was cut down: metrics on the full corpus, with intervals."""

import numpy as np

import unsample
from unsample.adapters import retrieval

DOCUMENTS, QUERIES, DRAWN = 20_000, 300, 2000


def their_objects():
    """Score the relevant documents of all queries, and a tenth of the others, drawn at random."""
    rng = np.random.default_rng(0)
    vectors = (
        rng.normal(size=(DOCUMENTS, 24))
        + 2.0 * rng.normal(size=(200, 24))[rng.integers(0, 200, DOCUMENTS)]
    )
    relevant = [rng.choice(DOCUMENTS, rng.integers(1, 5), replace=False) for _ in range(QUERIES)]
    queries = np.array([vectors[each].mean(axis=0) for each in relevant])
    queries += rng.normal(size=queries.shape)
    qrels = {
        f"q{query}": {f"d{each}": int(rng.integers(1, 4)) for each in relevant[query]}
        for query in range(QUERIES)
    }
    kept = np.unique(np.concatenate(relevant))
    drawn = rng.choice(np.setdiff1d(np.arange(DOCUMENTS), kept), DRAWN, replace=False)
    corpus = {f"d{each}": {"text": "..."} for each in np.concatenate([kept, drawn])}
    scores = queries @ vectors[[int(name[1:]) for name in corpus]].T
    results = {
        f"q{query}": dict(zip(corpus, row.tolist(), strict=True))
        for query, row in enumerate(scores)
    }
    return corpus, qrels, results


def full_catalogue(corpus, qrels, results):
    """Tell the metrics on all documents from the part of them that was scored."""
    found = retrieval.targets(results, qrels, documents=DOCUMENTS, corpus=corpus)
    return unsample.estimate(found, metrics=["NDCG@10", "MRR@10", "Recall@100"])


def main():
    """Return the results."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
