"""PyKEEN: from a sampled evaluator to metrics among all entities of a knowledge graph."""

import random

import numpy as np
import torch
from pykeen.evaluation import SampledRankBasedEvaluator
from pykeen.models import DistMult
from pykeen.training import LCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

import unsample
from unsample.adapters import pykeen


def their_objects():
    """Train a model and evaluate it against 50 negatives with PyKEEN, as you would anyway."""
    random.seed(0)  # PyKEEN draws its negatives with this generator
    likes = unsample.lab.datasets.synthetic(200, 300, rng=0)
    heads, relations, tails = likes.user, np.zeros_like(likes.user), 200 + likes.item
    triples = torch.as_tensor(np.stack([heads, relations, tails], axis=1))
    train, test = CoreTriplesFactory(triples, 500, 1).split([0.9, 0.1], random_state=0)
    model = DistMult(triples_factory=train, embedding_dim=16, random_seed=0)
    loop = LCWATrainingLoop(model=model, triples_factory=train, optimizer_kwargs={"lr": 0.05})
    loop.train(train, num_epochs=5, batch_size=256, use_tqdm=False)
    known = train.mapped_triples
    evaluator = SampledRankBasedEvaluator(
        test, additional_filter_triples=known, num_negatives=50, clear_on_finalize=False
    )
    evaluator.evaluate(
        model, test.mapped_triples, additional_filter_triples=[known], batch_size=64, use_tqdm=False
    )
    return evaluator, train, model, test


def full_catalogue(evaluator, train):
    """Tell Hits@K and MRR among all entities from the ranks among 50 negatives."""
    found = pykeen.targets(evaluator, known=train, side="tail")
    return unsample.estimate(
        found.counts, metrics=["Hits@10", "Hits@50", "MRR"], candidates="unseen"
    )


def ask_the_model(model, test, train):
    """Leave sampled negatives aside: score few entities, and know the exact Hits@K."""
    task = pykeen.task(model, test, known=train, side="tail")
    return unsample.evaluate(
        task.scorer,
        task.targets,
        items=task.items,
        exclude=task.exclude,
        design="certified",
        metrics=["Hits@10", "Hits@50"],
    )


def main():
    """Return the results, one for each way to the whole catalogue."""
    evaluator, train, model, test = their_objects()
    return [full_catalogue(evaluator, train), ask_the_model(model, test, train)]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
