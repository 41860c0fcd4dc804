"""OGB's link prediction: from the evaluator's arrays to the metrics among all nodes."""

import numpy as np
import torch
from ogb.linkproppred import Evaluator

import unsample
from unsample.adapters import ogb

NODES, EDGES, NEGATIVES = 20_000, 800, 1000


def their_objects():
    """Make the scores that an evaluation of ogbl-citation2 hands to its evaluator."""
    rng = np.random.default_rng(0)
    own = torch.as_tensor(rng.normal(2.0, 1.5, EDGES))
    return own, torch.as_tensor(rng.normal(size=(EDGES, NEGATIVES)))


def full_catalogue(y_pred_pos, y_pred_neg):
    """Tell the metrics among all nodes from the ranks among 1,000 of them."""
    found = ogb.targets(y_pred_pos, y_pred_neg, items=NODES)
    return unsample.estimate(found, metrics=["MRR", "Hits@50"], kind="graph", candidates="unseen")


def main():
    """Return the results, after a look at what OGB itself prints."""
    own, others = their_objects()
    given = {"y_pred_pos": own, "y_pred_neg": others}
    theirs = Evaluator("ogbl-citation2").eval(given)
    assert np.allclose(theirs["mrr_list"], ogb.evaluate(own, others)["mrr_list"])
    return [full_catalogue(own, others)]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
