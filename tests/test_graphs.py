"""Questions of a graph: targets, answers left out and guides, against slow loops."""

import numpy as np
import pytest

import unsample
from unsample.adapters import graphs
from unsample.errors import InputError

ENTITIES, RELATIONS = 60, 4


@pytest.fixture(scope="module")
def triples():
    """Training, validation and test triples in which relations prefer some entities."""
    rng = np.random.default_rng(0)
    head = rng.integers(0, ENTITIES, 900)
    relation = rng.integers(0, RELATIONS, 900)
    tail = (10 * relation + rng.geometric(0.15, 900)) % ENTITIES
    found = np.unique(np.column_stack([head, relation, tail]), axis=0)
    rng.shuffle(found)
    return found[200:], found[150:200], found[:150]


@pytest.fixture(scope="module")
def asked(triples):
    train, valid, test = triples
    return graphs.questions(train, test, entities=ENTITIES, known=[valid])


@pytest.fixture(scope="module")
def score():
    rng = np.random.default_rng(1)
    entity, relation = rng.normal(size=(ENTITIES, 5)), rng.normal(size=(RELATIONS, 5))
    shift = rng.normal(size=(ENTITIES, 5))  # heads and tails are told apart
    return lambda h, r, t: (entity[h] * relation[r] * (entity + shift)[t]).sum(axis=-1)


def evaluate(asked, score, design="exact", metrics=("MRR", "Hits@10", "MR"), **more):
    return unsample.evaluate(
        asked.scorer(score), asked.targets, items=asked.items, exclude=asked.exclude,
        design=design, metrics=list(metrics), resamples=0, **more,
    )  # fmt: skip


def slow_ranks(triples, score):
    """Filtered ranks of heads, then of tails, one triple after the other."""
    test = triples[-1]
    true = {tuple(row) for part in triples for row in part.tolist()}
    found = []
    for column in (0, 2):
        for row in test.tolist():
            own, better = score(*row), 0
            for entity in range(ENTITIES):
                other = list(row)
                other[column] = entity
                better += tuple(other) not in true and score(*other) > own
            found.append(1 + better)
    return np.array(found)


def test_ranks_are_those_of_a_loop_over_all_triples(triples, asked, score):
    found = evaluate(asked, score)
    ranks = slow_ranks(triples, score)
    assert np.array_equal(found.ranks, ranks)
    assert found["MRR"].value == pytest.approx((1.0 / ranks).mean())
    half = len(ranks) // 2
    sides = asked.by_side(found)
    for side, rows in (("head", slice(None, half)), ("tail", slice(half, None))):
        assert sides[side]["MR"].value == pytest.approx(ranks[rows].mean())
        alone = evaluate(asked.of_side(side), score)
        assert np.array_equal(alone.ranks, ranks[rows])
        train, valid, test = triples
        same = graphs.questions(train, test, entities=ENTITIES, known=[valid], side=side)
        assert np.array_equal(evaluate(same, score).ranks, ranks[rows])


def test_results_are_told_apart_by_relation(asked, score):
    full, certified = evaluate(asked, score), evaluate(asked, score, "certified", ["Hits@10"])
    parts = asked.by_relation(full)
    assert list(parts) == list(range(RELATIONS))
    for relation, part in parts.items():
        rows = asked.relations == relation
        assert part["MRR"].value == pytest.approx((1.0 / full.ranks[rows]).mean())
        alone = evaluate(asked.of_relation(relation), score)
        assert np.array_equal(alone.ranks, full.ranks[rows])
        hits = asked.by_relation(certified)[relation]["Hits@10"]
        assert hits.value == pytest.approx(part["Hits@10"].value)
    sampled = evaluate(asked, score, unsample.designs.Fixed(30), ["Hits@10"])
    low, high = asked.by_relation(sampled)[0]["Hits@10"].interval()
    assert low <= parts[0]["Hits@10"].value <= high


def test_the_guide_has_what_training_saw_with_the_relation_the_frequent_first(triples, asked):
    train = triples[0]
    for row in (0, 7, 160, 299):
        relation, wanted = asked.relations[row], asked.wanted[row]
        seen = train[train[:, 1] == relation][:, wanted].tolist()
        expected = sorted(set(seen), key=lambda entity: (-seen.count(entity), entity))
        assert [each for each in asked.guide[row].tolist() if each >= 0] == expected
    short = graphs.questions(train, triples[2], entities=ENTITIES, known=[triples[1]], listed=3)
    assert np.array_equal(short.guide, asked.guide[:, :3])


def test_a_guide_by_relation_costs_less_and_finds_the_same(triples):
    train = triples[0]
    # A model that knows the relations: frequent tails and heads are strong.
    seen = np.zeros((2, RELATIONS, ENTITIES))
    for side, column in enumerate((0, 2)):
        np.add.at(seen[side], (train[:, 1], train[:, column]), 1.0)
    noise = np.random.default_rng(2).normal(size=(ENTITIES, ENTITIES))

    def score(h, r, t):
        return seen[0][r, h] + seen[1][r, t] + 0.5 * noise[h, t]

    asked = graphs.questions(train, triples[2], entities=ENTITIES, known=[triples[1]])
    near = graphs.questions(
        train, triples[2], entities=ENTITIES, known=[triples[1]], guide="neighbours"
    )
    plain = evaluate(asked, score, "certified", ["Hits@5"])
    for guide in (asked.guide, near.guide):
        guided = evaluate(asked, score, "certified", ["Hits@5"], guide=guide)
        assert guided["Hits@5"].value == pytest.approx(plain["Hits@5"].value)
        assert guided.scored < plain.scored


def test_neighbours_are_those_of_a_slow_sum():
    train = np.array([[0, 0, 4], [1, 0, 4], [1, 0, 5], [0, 1, 6], [1, 1, 6], [2, 0, 7], [3, 1, 7]])
    asked = graphs.questions(
        train, [[0, 0, 5]], entities=8, side="tail", guide="neighbours", listed=8
    )
    # What stands where: an entity's places are (relation, side, the other end).
    places = [set() for _ in range(8)]
    for head, relation, tail in train.tolist():
        places[head].add((relation, "head", tail))
        places[tail].add((relation, "tail", head))
    crowd = {each: sum(each in have for have in places) for have in places for each in have}
    telling = {each: np.log(8 / count) for each, count in crowd.items()}
    norm = [np.sqrt(sum(telling[each] ** 2 for each in have)) for have in places]
    alike = np.array([
        [sum(telling[p] ** 2 for p in one & two) / (norm[a] * norm[b])
         for b, two in enumerate(places)] for a, one in enumerate(places)
    ])  # fmt: skip
    edges, answers = np.zeros((8, 8)), np.zeros((8, 8))
    for head, relation, tail in train.tolist():
        edges[head, tail] += 1
        edges[tail, head] += 1
        answers[head, tail] += relation == 0
    degree = edges.sum(axis=1)
    walks = edges / degree[:, None] / np.sqrt(degree)
    parts = [
        (1.0, alike[0] @ answers), (1.0, answers[0] @ alike), (0.3, walks[0] @ walks + walks[0]),
        (0.1, answers.sum(axis=0)), (1e-6, degree),
    ]  # fmt: skip
    near = sum(weight * part / part.sum() for weight, part in parts)
    near[answers[0] > 0] = -1.0  # what training knows is left out, and listed last
    assert asked.guide[0].tolist() == np.argsort(-near, kind="stable").tolist()


def test_guided_results_do_not_tell_questions_apart(asked, score):
    budget = 1500
    found = evaluate(asked, score, "guided", ["Hits@2"], guide=asked.guide, budget=budget)
    assert found.drawn
    with pytest.raises(InputError, match=r"got a guided one, .* evaluate of_side"):
        asked.by_relation(found)
    with pytest.raises(InputError, match="of these 150 targets, got one of 300"):
        asked.of_side("head").by_relation(found)


def test_tensors_are_scores(asked, score):
    torch = pytest.importorskip("torch")
    found = evaluate(asked, lambda *ids: torch.as_tensor(score(*ids)))
    assert np.array_equal(found.ranks, evaluate(asked, score).ranks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": [[0, 0]]}, "test must be a triples factory or an integer array"),
        ({"test": np.zeros((0, 3), dtype=int)}, "test must hold at least one triple"),
        ({"test": [[0, 0, 60]]}, "test must hold entities from 0 to 59"),
        ({"known": [[[-1, 0, 0]]]}, "known must hold entities from 0"),
        ({"side": "tial"}, "side must be one of head, tail, both"),
        ({"entities": 1}, "entities must be"),
        ({"listed": 0}, "listed must be"),
        ({"guide": "model"}, "guide must be one of relation, neighbours"),
    ],
)
def test_what_does_not_fit_is_refused(triples, change, message):
    given = {"train": triples[0], "test": triples[2], "entities": ENTITIES} | change
    train, test = given.pop("train"), given.pop("test")
    with pytest.raises(InputError, match=message):
        graphs.questions(train, test, **given)


def test_known_triples_are_no_test(triples, asked):
    train, _, test = triples
    with pytest.raises(InputError, match="got 2 that are, the first"):
        graphs.questions(train, np.concatenate([test, train[:2]]), entities=ENTITIES)
    with pytest.raises(InputError, match="at least one test triple, got none"):
        asked.of_relation(RELATIONS)
    assert repr(asked.of_side("head")) == "Questions(150 head, 60 entities)"
