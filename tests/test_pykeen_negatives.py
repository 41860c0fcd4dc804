"""Negatives that PyKEEN was given: uniform ones pass, those drawn by relation are told apart."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.libraries import PyKEEN
from unsample.adapters import graphs, pykeen
from unsample.errors import DesignError, InputError

ENTITIES, RELATIONS, TRIPLES, SAMPLED = 300, 4, 120, 12


class Tensor:
    """As much of a tensor as the adapter uses."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def cpu(self):
        return self.values


@pytest.fixture(scope="module")
def graph():
    """Test triples, and training triples of relations with few heads and many tails."""
    rng = np.random.default_rng(0)
    relation = rng.integers(0, RELATIONS, 2000)
    head = 40 * relation + rng.integers(0, 40, 2000)
    tail = (relation * 60 + rng.integers(0, 120, 2000)) % ENTITIES
    triples = np.unique(np.column_stack([head, relation, tail]), axis=0)
    rng.shuffle(triples)
    return triples[TRIPLES:], triples[:TRIPLES]


def true_answers(graph, column):
    """Return the set of true answers of each test triple, by a loop."""
    every = np.concatenate(graph).tolist()
    return [
        {row[column] for row in every if row[1] == rel and row[2 - column] == own[2 - column]}
        for own, rel in ((row, row[1]) for row in graph[1].tolist())
    ]


def evaluator(graph, pools=None, seed=0):
    """Return what PyKEEN would have kept, with negatives drawn among all or among the pools."""
    rng = np.random.default_rng(seed)
    test, ranks, samples, among = graph[1], {}, {}, {}
    for side, column in (("head", 0), ("tail", 2)):
        lists = []
        for row, true in zip(test.tolist(), true_answers(graph, column), strict=True):
            given = range(ENTITIES) if pools is None else pools[side][row[1]].nonzero()[-1]
            possible = sorted(set(map(int, given)) - true)
            lists.append(rng.choice(possible, SAMPLED, replace=False))
        samples[side] = Tensor(lists)
        found = rng.integers(1, SAMPLED + 2, TRIPLES)
        ranks[side, "optimistic"], ranks[side, "pessimistic"] = [found], [found]
        among[side] = [np.full(TRIPLES, SAMPLED + 1)]
    return SimpleNamespace(
        negative_samples=samples, ranks=ranks, num_candidates=among, num_entities=ENTITIES,
        triple_to_index={tuple(row): place for place, row in enumerate(test.tolist())},
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_uniform_negatives_pass(graph, seed):
    found = pykeen.targets(evaluator(graph, seed=seed), known=graph[0])
    wanted = [ENTITIES - len(true) + 1 for c in (0, 2) for true in true_answers(graph, c)]
    assert np.array_equal(found.items, wanted)


def test_negatives_by_relation_are_refused_unless_it_is_said_where_they_come_from(graph):
    pools = {
        side: each.toarray() for side, each in graphs.domains(graph[0], entities=ENTITIES).items()
    }
    given = evaluator(graph, pools)
    with pytest.raises(DesignError, match=r"share [\d.]+ times as many .* drawn by relation"):
        pykeen.targets(given, known=graph[0])
    found = pykeen.targets(given, known=graph[0], among=pools)
    wanted = [
        len(set(np.flatnonzero(pools[side][row[1]])) - true) + 1
        for side, column in (("head", 0), ("tail", 2))
        for row, true in zip(graph[1].tolist(), true_answers(graph, column), strict=True)
    ]
    assert np.array_equal(found.items, wanted)
    assert np.array_equal(found.sampled, np.full(2 * TRIPLES, SAMPLED))
    sparse = graphs.domains(graph[0], entities=ENTITIES)
    again = pykeen.targets(given, known=graph[0], among=sparse, side="tail")
    assert np.array_equal(again.items, wanted[TRIPLES:])


def test_domains_are_what_training_has_seen(graph):
    found = graphs.domains(graph[0], entities=ENTITIES)
    for side, column in (("head", 0), ("tail", 2)):
        for relation in range(RELATIONS):
            seen = set(graph[0][graph[0][:, 1] == relation][:, column].tolist())
            assert set(found[side][[relation]].nonzero()[1].tolist()) == seen


def test_wrong_pools_are_refused(graph):
    pools = graphs.domains(graph[0], entities=ENTITIES)
    given = evaluator(graph)
    with pytest.raises(InputError, match="got a negative outside for 'head' of triple"):
        pykeen.targets(given, known=graph[0], among=pools)
    with pytest.raises(InputError, match="a matrix for each side, got none for 'tail'"):
        pykeen.targets(evaluator(graph, pools), known=graph[0], among={"head": pools["head"]})
    with pytest.raises(InputError, match=r"a column for each of 300 entities, got shape \(4, 7\)"):
        pykeen.targets(given, known=graph[0], among={"head": np.ones((4, 7))}, side="head")


def test_an_evaluator_of_ogb_keeps_no_ranks(graph):
    kept = evaluator(graph)
    kind = type("OGBEvaluator", (SimpleNamespace,), {})
    with pytest.raises(InputError, match="got an OGBEvaluator, which hands scores to OGB"):
        pykeen.targets(kind(**vars(kept) | {"ranks": {}}))


def test_ranks_of_pykeen_by_relation_are_among_the_entities_of_the_relation():
    pytest.importorskip("pykeen")
    library = PyKEEN()
    given, pools = library.by_relation()
    found = pykeen.targets(given, known=library.train, among={"head": pools, "tail": pools})
    true = {
        tuple(row) for part in (library.train, library.test) for row in part.mapped_triples.tolist()
    }
    wanted = []
    for column in (0, 2):
        for row in library.test.mapped_triples.tolist():
            free = [
                e for e in np.flatnonzero(pools[row[1]]).tolist()
                if (*row[:column], e, *row[column + 1 :]) not in true
            ]  # fmt: skip
            wanted.append(len(free) + 1)
    assert np.array_equal(found.items, wanted)
    best = np.concatenate([np.concatenate(given.ranks[s, "optimistic"]) for s in ("head", "tail")])
    assert np.array_equal(found.ranks, best)  # no ties
