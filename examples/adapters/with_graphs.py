"""Triples of a knowledge graph: filtered metrics of any model, few of its scores asked for."""

import numpy as np

import unsample
from unsample.adapters import graphs

ENTITIES, KINDS, RELATIONS = 2000, 30, 12


def their_objects():
    """Make a graph whose relations lead from one kind of entity to another, and a model of it."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, KINDS, ENTITIES)
    entity = rng.normal(size=(ENTITIES, 16)) + 3.0 * rng.normal(size=(KINDS, 16))[kind]
    relation = rng.integers(0, RELATIONS, 6000)
    ends = rng.permutation(KINDS)[: 2 * RELATIONS].reshape(2, -1)
    members = [np.flatnonzero(kind == each) for each in range(KINDS)]
    head, tail = (
        np.array([rng.choice(members[each]) for each in ends[side, relation]]) for side in (0, 1)
    )
    triples = np.unique(np.column_stack([head, relation, tail]), axis=0)
    rng.shuffle(triples)
    centres = np.array([
        [entity[members[each]].mean(axis=0) for each in ends[side]] for side in (1, 0)
    ])  # fmt: skip

    def score(heads, relations, tails):
        """Score triples by how near their ends are to where the relation leads."""
        far = ((entity[tails] - centres[0][relations] - 0.3 * entity[heads]) ** 2).sum(axis=-1)
        near = ((entity[heads] - centres[1][relations] - 0.3 * entity[tails]) ** 2).sum(axis=-1)
        return -far - near

    return triples[300:], triples[:300], score


def ask_the_model(train, test, score):
    """Ask for few scores: relations tell which entities are worth asking about."""
    asked = graphs.questions(train, test, entities=ENTITIES)
    return unsample.evaluate(
        asked.scorer(score),
        asked.targets,
        items=asked.items,
        exclude=asked.exclude,
        guide=asked.guide,
        budget=100 * len(asked.targets[0]),
        metrics=["MRR@20", "Hits@20"],
    )


def main():
    """Return the results."""
    return [ask_the_model(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
