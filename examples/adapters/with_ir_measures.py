"""ir_measures: numbers on the whole collection beside those of a run of sampled documents."""

import ir_measures
import numpy as np
from ir_measures import RR, R, nDCG

from unsample.adapters.ir_measures import full

DOCUMENTS, QUERIES, SAMPLED = 5000, 300, 99


def their_objects():
    """Make a run that ranks each query's one relevant document among 99 drawn ones."""
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for query in map(str, range(QUERIES)):
        drawn = rng.choice(DOCUMENTS, SAMPLED + 1, replace=False)
        scores = rng.normal(size=SAMPLED + 1)
        scores[0] += rng.exponential(2.0)  # the relevant document tends to be found
        run[query] = {f"d{doc}": float(score) for doc, score in zip(drawn, scores, strict=True)}
        qrels[query] = {f"d{drawn[0]}": 1}
    return qrels, run


def full_catalogue(qrels, run):
    """Ask for them as for any other measure: the estimate, and the ends of its interval."""
    measures = [RR, nDCG @ 100, *full(nDCG @ 100, items=DOCUMENTS)]
    measures += full(R @ 100, items=DOCUMENTS, level=0.9)
    return ir_measures.calc_aggregate(measures, qrels, run)


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
