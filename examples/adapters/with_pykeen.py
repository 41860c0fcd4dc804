"""PyKEEN: from a sampled evaluator to metrics among all entities of a knowledge graph."""

import random

import numpy as np
import torch
from pykeen.evaluation import SampledRankBasedEvaluator
from pykeen.models import DistMult
from pykeen.triples import CoreTriplesFactory

import unsample
from unsample.adapters import pykeen

ENTITIES, RELATIONS = 500, 3


def their_objects():
    """Evaluate a model against 50 negatives with PyKEEN, as you would without unsample."""
    random.seed(0)  # PyKEEN draws its negatives with this generator
    shape = ENTITIES, RELATIONS, ENTITIES
    triples = np.unique(np.random.default_rng(0).integers(0, shape, size=(4000, 3)), axis=0)
    factory = CoreTriplesFactory(torch.as_tensor(triples), ENTITIES, RELATIONS)
    train, test = factory.split([0.9, 0.1], random_state=0)
    model = DistMult(triples_factory=train, embedding_dim=8, random_seed=0)
    with (
        torch.no_grad()
    ):  # in place of training: tails come to lie near the heads that ask for them
        entities = model.entity_representations[0]._embeddings.weight  # noqa: SLF001
        entities[triples[:, 2]] += 0.05 * entities[triples[:, 0]]
    known = train.mapped_triples
    evaluator = SampledRankBasedEvaluator(
        test, additional_filter_triples=known, num_negatives=50, clear_on_finalize=False
    )
    evaluator.evaluate(
        model, test.mapped_triples, additional_filter_triples=[known], batch_size=64, use_tqdm=False
    )
    return evaluator, train


def full_catalogue(evaluator, train):
    """Tell Hits@K and MRR among all entities from the ranks among 50 negatives."""
    found = pykeen.targets(evaluator, known=train)
    return unsample.estimate(found.counts, metrics=["Hits@10", "Hits@50", "MRR"])


if __name__ == "__main__":
    print(full_catalogue(*their_objects()))  # noqa: T201
