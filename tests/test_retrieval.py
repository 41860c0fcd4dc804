"""Retrieval on a corpus that was cut down: slow references, other libraries, messages."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unsample
from tests.libraries import need_library
from unsample.adapters import retrieval
from unsample.errors import DesignError, InputError, MetricError, ScoreError
from unsample.evidence import Targets
from unsample.metrics import parse

NAMES = ["NDCG@10", "NDCG(gain=exp)@10", "MRR@10", "Recall@100", "HR@3", "AP@20", "Precision@5"]


def world(queries=60, documents=800, seed=0, ties=False):
    """Return scores of all documents, and several graded relevant ones for each query."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(queries, documents)) + 0.7 * rng.normal(size=documents)
    qrels = {}
    for query in range(queries):
        size = int(rng.integers(1, 6))
        relevant = rng.choice(documents, size, replace=False)
        scores[query, relevant] += rng.exponential(2.0, size)
        grades = rng.integers(1, 4, size)
        qrels[f"q{query}"] = {f"d{d}": int(g) for d, g in zip(relevant, grades, strict=True)}
    return np.round(scores, 1) if ties else scores, qrels


def as_results(scores, documents, best=None):
    """Return BEIR's dict of these documents, or of the best of them."""
    found = {}
    for query, row in enumerate(scores):
        chosen = sorted(documents, key=lambda d: -row[d])[:best]
        found[f"q{query}"] = {f"d{d}": float(row[d]) for d in chosen}
    return found


def cut(qrels, documents, size, seed=0):
    """Return the relevant documents, and others that were drawn."""
    rng = np.random.default_rng(seed)
    relevant = sorted({int(name[1:]) for row in qrels.values() for name in row})
    others = np.setdiff1d(np.arange(documents), relevant)
    return relevant, sorted(rng.choice(others, size, replace=False).tolist())


def slow_targets(scores, qrels, certain, drawn, depth):
    """Count what beats each target document by document: by query and document."""
    found = {}
    for name, row in qrels.items():
        query = int(name[1:])
        for target, grade in row.items():
            own = scores[query, int(target[1:])]
            above = [d for d in certain if scores[query, d] > own]
            beaters = [d for d in drawn if scores[query, d] > own]
            place = 1 + sum(scores[query, int(other[1:])] > own for other in row)
            rank = 1 + len(above) + len(beaters)
            named = sorted(beaters) if len(beaters) <= depth else []
            found[query, place] = len(above), min(len(beaters), depth), rank, float(grade), named
    return found


def as_found(found, documents):
    """Return what `slow_targets` does, of what was found; ``documents`` number the names."""
    beaters = {number: [] for number in range(len(found))}
    for target, document in zip(found.beaten.tolist(), found.document.tolist(), strict=True):
        beaters[target].append(documents[document])
    return {
        (query, place): (*rest, sorted(beaters[number]))
        for number, (query, place, *rest) in enumerate(
            zip(
                found.queries.tolist(), found.places.tolist(), found.ahead.tolist(),
                found.hits.tolist(), found.ranks.tolist(), found.relevance.tolist(), strict=True,
            )
        )
    }  # fmt: skip


def numbered(qrels, kept):
    """Return the numbers of documents in the order of their names."""
    names = sorted({f"d{d}" for d in kept} | {name for row in qrels.values() for name in row})
    return [int(name[1:]) for name in names]


def reordered(qrels):
    """Return the same with queries renumbered by the order of their names."""
    order = sorted(qrels)
    return {f"q{number}": qrels[name] for number, name in enumerate(order)}, [
        int(name[1:]) for name in order
    ]


@pytest.mark.parametrize("best", [None, 150])
def test_what_beats_a_target_is_counted_as_the_definition_says(best, monkeypatch):
    monkeypatch.setattr("unsample.adapters._cut._DEPTH", 20)
    scores, qrels = world()
    relevant, drawn = cut(qrels, 800, 300)
    kept = [*relevant, *drawn]
    found = retrieval.targets(
        as_results(scores, kept, best), qrels, documents=800, corpus=[f"d{d}" for d in kept],
        deepest=10,
    )  # fmt: skip
    renamed, order = reordered(qrels)
    wanted = slow_targets(scores[order], renamed, relevant, drawn, found.depth)
    got = as_found(found, numbered(qrels, kept))
    assert got.keys() == wanted.keys()
    assert (found.depth, found.drawn) == (20, 300)
    assert (found.rest == 800 - len(relevant)).all()
    far = 0
    for key, each in wanted.items():
        if best is not None and each[2] > best:
            # Of what is missing from a list only that is known.
            assert got[key][1] == found.depth
            assert got[key][2] > best
            far += 1
        else:
            assert got[key] == each
    assert far if best else not far


def test_vectors_rank_as_their_products_do():
    rng = np.random.default_rng(1)
    queries, vectors = rng.normal(size=(40, 8)), rng.normal(size=(900, 8))
    qrels = {f"q{q}": {f"d{d}": 1 + q % 3 for d in range(5 * q % 60, 5 * q % 60 + 3)}
             for q in range(40)}  # fmt: skip
    relevant, drawn = cut(qrels, 900, 250)
    kept = np.array([*relevant, *drawn])
    names = [f"d{d}" for d in kept]
    given = {"documents": 900, "deepest": 50}
    for similarity in ("dot", "cosine"):
        right = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        scores = queries @ (right if similarity == "cosine" else vectors).T
        listed = retrieval.targets(as_results(scores, kept), qrels, **given)
        found = retrieval.embedded(
            queries, vectors[kept], qrels, query_ids=[f"q{q}" for q in range(40)],
            document_ids=names, similarity=similarity, **given,
        )  # fmt: skip
        documents = numbered(qrels, kept)
        got, wanted = as_found(found, documents), as_found(listed, documents)
        for key, each in wanted.items():
            # Of the drawn documents no more are looked at than are kept.
            assert got[key] == each or (got[key][:2] == each[:2] and each[1] == found.depth)
            assert got[key][2] <= each[2]
        assert (found.hits < found.depth).mean() > 0.1


def test_vectors_are_ranked_in_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    queries, vectors = rng.normal(size=(30, 4)), rng.normal(size=(200, 4))
    qrels = {q: {q: 2, q + 30: 1} for q in range(30)}
    kept = [*range(60), *range(100, 150)]
    at_once = retrieval.embedded(queries, vectors[kept], qrels, documents=200, document_ids=kept)
    monkeypatch.setattr(retrieval, "_ROOM", 700)
    in_parts = retrieval.embedded(queries, vectors[kept], qrels, documents=200, document_ids=kept)
    assert as_found(at_once, range(200)) == as_found(in_parts, range(200))


def test_shorter_lists_tell_the_same_where_they_are_long_enough():
    scores, qrels = world()
    relevant, drawn = cut(qrels, 800, 300)
    kept = [*relevant, *drawn]
    given = {"documents": 800, "corpus": [f"d{d}" for d in kept], "deepest": 20}
    full, short = (
        retrieval.targets(as_results(scores, kept, best), qrels, **given) for best in (None, 250)
    )
    assert short.depth == full.depth == 64
    same = full.hits < 64
    assert not same.all()
    assert np.array_equal(full.ranks[same], short.ranks[same])
    values = [unsample.estimate(each, metrics="NDCG@10")["NDCG@10"] for each in (full, short)]
    assert values[0].value == pytest.approx(values[1].value, rel=1e-3)
    assert values[0].interval() == pytest.approx(values[1].interval(), rel=1e-2)


def graded(metric, ranks, grades):
    """The metric of one query, of its ranks in full lists, written out."""
    k = metric.k
    pairs = sorted(zip(ranks, grades, strict=True))
    inside = [(rank, grade) for rank, grade in pairs if rank <= k]
    if metric.name.startswith("NDCG"):
        gain = (lambda g: 2**g - 1) if "exp" in metric.name else (lambda g: g)
        best = sorted(map(gain, grades), reverse=True)[:k]
        ideal = sum(g / math.log2(place + 2) for place, g in enumerate(best))
        return sum(gain(grade) / math.log2(rank + 1) for rank, grade in inside) / ideal
    if metric.name.startswith("MRR"):
        return 1 / pairs[0][0] if inside else 0.0
    if metric.name.startswith("HR"):
        return float(bool(inside))
    if metric.name.startswith("AP"):
        return sum((n + 1) / rank for n, (rank, _) in enumerate(inside)) / len(ranks)
    return len(inside) / (k if metric.name.startswith("Precision") else len(ranks))


def test_parts_of_targets_add_up_to_the_metric_of_a_query():
    scores, qrels = world()
    ranks = 1 + (-scores).argsort(axis=1).argsort(axis=1)
    found = retrieval.targets(as_results(scores, range(800)), qrels, documents=800)
    for metric in map(parse, NAMES):
        wanted = [
            graded(metric, [ranks[int(name[1:]), int(d[1:])] for d in row], list(row.values()))
            for name, row in sorted(qrels.items())
        ]
        parts = metric.parts(found.queries, found.places, found.relevance)
        got = np.bincount(found.queries, parts * metric.weights(found.ranks, 800))
        assert got == pytest.approx(wanted, abs=1e-12)


def test_a_complete_corpus_gives_the_exact_metrics():
    scores, qrels = world(ties=False)
    found = retrieval.targets(as_results(scores, range(800), 100), qrels, documents=800,
                              corpus=[f"d{d}" for d in range(800)])  # fmt: skip
    assert found.complete
    result = unsample.estimate(found, metrics=NAMES)
    task = retrieval.task(
        np.eye(60), scores.T, {int(q[1:]): {int(d[1:]): g for d, g in row.items()}
                               for q, row in qrels.items()},
    )  # fmt: skip
    exact = unsample.evaluate(
        task.scorer, task.targets, items=800, relevance=task.relevance, metrics=NAMES,
        design="exact",
    )  # fmt: skip
    for name in NAMES:
        assert result[name].value == pytest.approx(exact[name].value, abs=1e-12)
        assert result[name].interval(population=False) == (result[name].value,) * 2


@pytest.mark.filterwarnings("ignore")  # the library's own warnings
def test_complete_lists_give_what_ir_measures_prints(tmp_path):
    need_library("trec")
    import ir_measures

    scores, qrels = world()
    results = as_results(scores, range(800))
    theirs = {
        "NDCG@10": "nDCG@10", "MRR@10": "RR@10",
        "Recall@100": "R@100", "HR@3": "Success@3", "AP@20": "AP@20", "Precision@5": "P@5",
    }  # fmt: skip
    run, judged = tmp_path / "run", tmp_path / "qrels"
    run.write_text("".join(f"{q} Q0 {d} 0 {score!r} us\n" for q, row in results.items()
                           for d, score in row.items()))  # fmt: skip
    judged.write_text("".join(f"{q} 0 {d} {g}\n" for q, row in qrels.items()
                              for d, g in row.items()))  # fmt: skip
    for given in ((results, qrels), (run, judged)):
        found = retrieval.targets(*given, documents=800)
        ours = unsample.estimate(found, metrics=NAMES)
        for mine, measure in theirs.items():
            parsed = ir_measures.parse_measure(measure)
            (wanted,) = ir_measures.calc_aggregate([parsed], qrels, results).values()
            assert ours[mine].value == pytest.approx(wanted, abs=1e-9)


# -- the law ---------------------------------------------------------------------------------------


def test_pools_are_certain_for_their_own_query_alone():
    scores, qrels = world(queries=20, documents=400)
    relevant, drawn = cut(qrels, 400, 120)
    pools = {f"q{q}": [f"d{d}" for d in np.argsort(-scores[q])[:15]] for q in range(20)}
    results = as_results(scores, [*relevant, *drawn])
    for query, names in pools.items():
        results[query] |= {d: float(scores[int(query[1:]), int(d[1:])]) for d in names}
    corpus = [f"d{d}" for d in (*relevant, *drawn)]
    found = retrieval.targets(results, qrels, documents=400, corpus=corpus, pools=pools, deepest=10)
    names, order = sorted(qrels), [int(name[1:]) for name in sorted(qrels)]
    for target in range(len(found)):
        query = order[found.queries[target]]
        own = {int(d[1:]) for d in pools[f"q{query}"]}
        certain = own | set(relevant)
        assert found.rest[target] == 400 - len(certain)
        row = qrels[names[found.queries[target]]]
        ordered = sorted(-scores[query, int(d[1:])] for d in row)
        score = -ordered[found.places[target] - 1]
        assert found.ahead[target] == sum(scores[query, d] > score for d in certain)
        # Some drawn documents are left out, so that all queries have as many.
        most = sum(scores[query, d] > score for d in drawn if d not in own)
        assert min(most - 15, found.depth) <= found.hits[target] <= most
    assert found.drawn == min(len(set(drawn) - {int(d[1:]) for d in pools[name]}) for name in names)


def test_hits_follow_the_law_that_is_expected_of_them():
    scores, qrels = world(queries=3, documents=300, seed=5)
    ranks = {}
    drawn_hits = []
    for seed in range(400):
        relevant, drawn = cut(qrels, 300, 60, seed)
        found = retrieval.targets(as_results(scores, [*relevant, *drawn]), qrels, documents=300)
        drawn_hits.append(found.hits)
    order = [int(name[1:]) for name in sorted(qrels)]
    places = unsample.law.RankPoints(np.arange(1, found.rest[0] + 2))
    expected = found.expected(int(found.rest[0]), places)
    full = slow_targets(scores[order], reordered(qrels)[0], range(300), [], 64)
    for target in range(len(found)):
        key = found.queries[target], found.places[target]
        ranks[target] = full[key][2] - found.ahead[target]  # among those that were not kept
        seen = np.bincount(np.array(drawn_hits)[:, target], minlength=len(expected)) / 400
        law = expected[:, ranks[target] - 1]
        assert np.abs(seen - law).max() < 4.5 * 0.5 / 20
        mean = (np.arange(len(law)) * law).sum()
        assert mean == pytest.approx((ranks[target] - 1) * 60 / found.rest[0], rel=1e-6)
    assert expected.sum(axis=0) == pytest.approx(1.0)


def left_out(weighed, scores, document):
    """Return the mean score without one drawn document, target by target."""
    found = weighed.found
    beats = np.zeros(len(found), dtype=bool)
    beats[found.beaten[found.document == document]] = True
    total = 0.0
    for group, score in zip(weighed.groups, scores, strict=True):
        for target in group.rows:
            total += weighed.part[target] * score[found.hits[target] - beats[target]]
    return total / found.size


def test_the_part_of_the_documents_is_that_of_leaving_each_out(monkeypatch):
    monkeypatch.setattr("unsample.evidence._cut.smoothed", lambda score: score)
    scores, qrels = world(queries=150, documents=500)
    relevant, drawn = cut(qrels, 500, 150)
    found = retrieval.targets(as_results(scores, [*relevant, *drawn]), qrels, documents=500)
    weighed = found.for_metric(parse("NDCG@10"))
    assert len(weighed.groups) > 1
    rng = np.random.default_rng(0)
    each = [rng.normal(size=found.depth + 1) for _ in weighed.groups]
    mean = weighed.totals(each).mean()
    effects = [mean - left_out(weighed, each, d) for d in np.unique(found.document)]
    effects = np.append(effects, np.zeros(150 - len(effects)))
    part = weighed.items_part(each)
    spread = ((effects - effects.mean()) ** 2).sum() * (1 - 1 / 150)
    twice = 0.0
    for group, score in zip(weighed.groups, each, strict=True):
        for target in group.rows:
            hits = found.hits[target]
            if 0 < hits == found.beaters[target]:
                step = weighed.part[target] * (score[hits] - score[hits - 1]) / found.size
                twice += (1 - 1 / 150) * step**2 * hits * (150 - hits) / 150
    left = 1 - 150 / found.rest[0]
    assert part.variance == pytest.approx(left * max(spread - twice, 0.0), rel=1e-9)
    assert part.drawn == 150


def effect_on_queries(weighed, scores, document):
    """Return what a drawn document does to the metric of each query, target by target."""
    found, effects = weighed.found, np.zeros(weighed.found.size)
    beats = set(found.beaten[found.document == document].tolist())
    for group, score in zip(weighed.groups, scores, strict=True):
        for target in beats.intersection(group.rows.tolist()):
            hits = found.hits[target]
            step = weighed.part[target] * (score[hits] - score[hits - 1])
            effects[found.queries[target]] += step / found.size
    return effects


def two_models(documents=500, size=150, queries=120):
    """Return targets of two models that searched the same part of a corpus."""
    scores, qrels = world(queries=queries, documents=documents)
    other = scores + np.random.default_rng(9).normal(size=scores.shape)
    relevant, drawn = cut(qrels, documents, size)
    return [
        retrieval.targets(as_results(each, [*relevant, *drawn]), qrels, documents=documents)
        for each in (scores, other)
    ]


def test_the_part_of_a_difference_is_that_of_leaving_each_out_of_both_models(monkeypatch):
    monkeypatch.setattr("unsample.evidence._cut.smoothed", lambda score: score)
    rng, size = np.random.default_rng(0), 150
    a, b = (found.for_metric(parse("NDCG@10")) for found in two_models(size=size))
    scores = [[rng.normal(size=each.found.depth + 1) for _ in each.groups] for each in (a, b)]
    effects = np.array(
        [
            effect_on_queries(a, scores[0], document) - effect_on_queries(b, scores[1], document)
            for document in a.found.names.drawn
        ]
    )
    by_document = effects.sum(axis=1)
    spread = ((by_document - by_document.mean()) ** 2).sum()
    twice = (effects**2).sum() - (effects.sum(axis=0) ** 2).sum() / size
    left = 1 - size / a.found.rest[0]
    part = a.difference_part(scores[0], b, scores[1])
    assert part.variance == pytest.approx(left * (1 - 1 / size) * max(spread - twice, 0.0))
    assert part.drawn == size
    # The same model twice has no difference, whatever was drawn.
    assert a.difference_part(scores[0], a, scores[0]).variance == 0.0


def test_two_models_on_one_cut_corpus_are_compared_query_by_query():
    found = dict(zip("AB", two_models(documents=2000, size=600, queries=300), strict=True))
    compared = unsample.compare(found)
    assert (compared.matched, compared.paired) == ("query", True)
    assert [each.name for each in compared.metrics] == ["NDCG@10", "MRR@10", "Recall@100"]
    for metric in compared.metrics:
        pair = compared.difference("A", "B", metric)
        alone = [unsample.estimate(each, metrics=metric)[metric] for each in found.values()]
        assert pair.value == alone[0].value - alone[1].value
        ends = [each.interval() for each in alone]
        # Sharper than what the intervals of each model leave.
        assert pair.high - pair.low < sum(high - low for low, high in ends)
        assert pair.low < pair.value < pair.high
    assert compared.winner("NDCG@10") == "A"
    assert compared.difference("B", "A", "NDCG@10").winner == "A"
    same = unsample.compare({"A": found["A"], "twin": found["A"]}, metrics="NDCG@10")
    assert same.winner("NDCG@10") is None
    assert same.chance("A", "twin", "NDCG@10") == 0.5


def test_models_on_a_complete_corpus_are_compared_by_their_ranks():
    scores, qrels = world()
    other = scores + np.random.default_rng(9).normal(size=scores.shape)
    results = [as_results(each, range(800)) for each in (scores, other)]
    found = [retrieval.targets(each, qrels, documents=800) for each in results]
    compared = unsample.compare(dict(zip("AB", found, strict=True)), metrics="NDCG@10")
    each = [
        np.bincount(
            one.queries,
            one.for_metric(parse("NDCG@10")).part * parse("NDCG@10").weights(one.ranks, 800),
        )
        for one in found
    ]
    apart = each[0] - each[1]
    pair = compared.difference("A", "B", "NDCG@10")
    assert pair.value == pytest.approx(apart.mean())
    assert (pair.high - pair.low) / 2 == pytest.approx(
        2.0 * apart.std(ddof=1) / math.sqrt(len(apart)), rel=0.05
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"documents": 900}, "searched a corpus of one size .* differ, such as in 800"),
        ({"queries": 59}, "the same queries .* such as in q59"),
        ({"grade": 3}, r"the same relevant documents, with the same grades .* of query q0 \("),
        ({"drawn": 1}, "the same documents drawn .* score both on one cut corpus"),
        ({"kept": True}, "the same documents drawn"),
    ],
)
def test_models_on_other_corpora_queries_or_draws_are_not_compared(changed, message):
    scores, qrels = world()
    relevant, drawn = cut(qrels, 800, 100)
    first = retrieval.targets(as_results(scores, [*relevant, *drawn]), qrels, documents=800)
    if "drawn" in changed:
        drawn = cut(qrels, 800, 100, seed=1)[1]
    qrels = dict(list(qrels.items())[: changed.get("queries", 60)])
    if "queries" in changed:
        drawn = [*drawn, *set(relevant) - {int(d[1:]) for row in qrels.values() for d in row}]
    if "grade" in changed:
        name = next(iter(qrels["q0"]))
        qrels = qrels | {"q0": qrels["q0"] | {name: qrels["q0"][name] + 3}}
    second = retrieval.targets(
        as_results(scores, sorted({*relevant, *drawn})),
        qrels,
        documents=changed.get("documents", 800),
        kept=[f"d{d}" for d in drawn[:5]] if "kept" in changed else (),
    )
    with pytest.raises(DesignError, match=message):
        unsample.compare({"A": first, "B": second})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"items": 50}, "items must be left out with CutTargets"),
        ({"method": "mle"}, "method must be left out with CutTargets"),
        ({"paired": True}, "paired must be left out with CutTargets"),
    ],
)
def test_what_cut_corpora_know_is_not_taken_again(given, message):
    found = retrieval.targets(RESULTS, QRELS, documents=50)
    with pytest.raises(InputError, match=message):
        unsample.compare({"A": found, "B": found}, **given)
    with pytest.raises(InputError, match="must all be CutTargets where one is, got other ranks"):
        unsample.compare({"A": found, "B": Targets([1, 2], 50, 9)})


def test_groups_hold_every_target_that_may_count_once():
    scores, qrels = world(queries=300, documents=2000)
    relevant, drawn = cut(qrels, 2000, 200)
    found = retrieval.targets(as_results(scores, [*relevant, *drawn]), qrels, documents=2000)
    for metric in map(parse, NAMES):
        weighed = found.for_metric(metric)
        rows = np.concatenate([group.rows for group in weighed.groups])
        counting = (found.ahead < metric.k) & (weighed.part > 0)
        assert np.array_equal(np.sort(rows), np.flatnonzero(counting))
        for group in weighed.groups:
            low, high = group.span
            assert (found.ahead[group.rows] >= low).all()
            assert (found.ahead[group.rows] <= high).all()


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_bounds_hold_intervals_and_intervals_the_truth():
    scores, qrels = world(queries=300, documents=3000, seed=3)
    ranks = 1 + (-scores).argsort(axis=1).argsort(axis=1)
    relevant, drawn = cut(qrels, 3000, 300)
    found = retrieval.targets(as_results(scores, [*relevant, *drawn]), qrels, documents=3000)
    result = unsample.estimate(found)
    assert [str(metric) for metric in result.metrics] == ["NDCG@10", "MRR@10", "Recall@100"]
    for metric in result.metrics:
        true = np.mean([
            graded(metric, [ranks[int(name[1:]), int(d[1:])] for d in row], list(row.values()))
            for name, row in qrels.items()
        ])  # fmt: skip
        entry = result[metric.name]
        least, most = entry.bounds()
        for population in (True, False):
            low, high = entry.interval(population=population)
            assert least <= low <= true <= high <= most + 1e-9
        assert low <= entry.value <= high
        cut_off = np.bincount(
            found.queries,
            metric.parts(found.queries, found.places, found.relevance)
            * metric.weights(found.ranks, 3000),
        ).mean()
        assert cut_off > true  # what the cut corpus itself would print
    text = str(result)
    assert f"{len(relevant):,} documents kept and 300 of" in text
    assert result.to_dict()["estimates"][0]["metric"] == "NDCG@10"


@pytest.mark.parametrize("hubs", [0.0, 3.0])
def test_documents_that_are_strong_for_every_query_make_errors_larger(hubs):
    scores, qrels = world(queries=400, documents=1000)
    scores = scores + hubs * np.random.default_rng(9).normal(size=1000)
    relevant, drawn = cut(qrels, 1000, 100)
    found = retrieval.targets(as_results(scores, [*relevant, *drawn]), qrels, documents=1000)
    weighed = found.for_metric(parse("Recall@100"))
    each = [(np.arange(found.depth + 1) < 10).astype(float) for _ in weighed.groups]
    share = weighed.items_part(each).variance / weighed.variance(each)
    assert share > 1.0 if hubs else share < 0.7


# -- embeddings of the full corpus -----------------------------------------------------------------


def test_first_dimensions_guide_the_evaluation_by_all_of_them():
    rng = np.random.default_rng(4)
    scale = 0.9 ** np.arange(32)
    queries, vectors = rng.normal(size=(100, 32)) * scale, rng.normal(size=(3000, 32)) * scale
    queries, vectors = queries.astype(np.float32), vectors.astype(np.float32)
    noisy = queries @ vectors.T + rng.normal(size=(100, 3000)).astype(np.float32)
    qrels = {q: {int(d): int(1 + n % 3) for n, d in enumerate(np.argsort(-noisy[q])[:4])}
             for q in range(100)}  # fmt: skip
    task = retrieval.task(queries, vectors, qrels)
    given = {"items": task.items, "relevance": task.relevance, "metrics": ["NDCG@10", "MRR@10"]}
    exact = unsample.evaluate(task.scorer, task.targets, **given, design="exact")
    certain = unsample.evaluate(
        task.scorer, task.targets, **given, design="certified", guide=task.first(8)
    )
    blind = unsample.evaluate(
        task.scorer, task.targets, **given, design="certified", guide=-np.arange(3000)
    )
    for name in given["metrics"]:
        assert certain[name].value == pytest.approx(exact[name].value, abs=1e-12)
    assert certain.share < 0.8 * blind.share


def test_tensors_are_taken_as_arrays():
    torch = pytest.importorskip("torch")
    task = retrieval.task(torch.eye(2), torch.eye(2, requires_grad=True), {0: {1: 1}, 1: {1: 2}})
    assert isinstance(task.scorer.item_factors, np.ndarray)
    assert task.relevance.tolist() == [1.0, 2.0]


# -- messages --------------------------------------------------------------------------------------

RESULTS = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "p": {"a": 1.0, "b": 2.0, "c": 3.0}}
QRELS = {"q": {"a": 1}, "p": {"a": 2, "b": 0}}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sampler": "top"}, DesignError, "sampler must be 'uniform', got 'top': nothing is known"),
        ({"documents": 2}, DesignError, "size of the full corpus, got 2 with 3 documents"),
        ({"documents": "many"}, InputError, "documents must be an integer"),
        ({"deepest": 0}, InputError, "deepest must be an integer of at least 1, got 0"),
        ({"ties": "realistic"}, InputError, "ties must be one of"),
        ({"kept": ["c"]}, DesignError, "drawn at random, got none beside those that were kept"),
        ({"corpus": ["b", "c"]}, InputError, "corpus must hold every relevant document, got 2"),
        ({"corpus": ["a", "b", "e"]}, InputError, "results must hold documents .* such as c"),
        ({"corpus": "abc"}, InputError, "corpus must be names, got one text"),
        ({"corpus": [1, 2]}, InputError, "results and corpus must name each document alike"),
        ({"pools": {"q": ["b"]}}, InputError, "corpus must be given with pools"),
        ({"relevance": 3}, InputError, "qrels must hold a document of grade 3 or more, got none"),
        ({"qrels": {"z": {"a": 1}}}, InputError, "a list for each query .* such as z"),
        ({"results": {"q": RESULTS["q"], "p": {"a": 1.0}}}, DesignError,
         "corpus must be given where lists differ, got 1 of the 3 .* for query p: the best k"),
        ({"results": {"q": {"a": float("nan"), "b": 1.0}}}, ScoreError, "must not be NaN"),
        ({"results": {"q": {"c": 1.0}, "p": {"c": 3.0}}, "corpus": ["a", "b", "c"]}, InputError,
         "the best 100 documents of each query at least, .* got 1 .* lower deepest"),
    ],
)  # fmt: skip
def test_wrong_input_gets_the_message_of_its_door(given, error, message):
    arguments = {"results": RESULTS, "qrels": QRELS, "documents": 50, **given}
    with pytest.raises(error, match=message):
        retrieval.targets(**arguments)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"queries": [1.0]}, InputError, r"queries must be a matrix .* shape \(1,\)"),
        ({"queries": np.ones((2, 3))}, InputError, "as many columns as each other, got 3 and 2"),
        ({"vectors": [[np.nan, 1.0]]}, ScoreError, "vectors must be finite"),
        ({"similarity": "l2"}, InputError, "similarity must be one of dot, cosine, got 'l2'"),
        ({"document_ids": [1, 1]}, InputError, "document_ids must be 2 different names"),
        ({"qrels": {0: {5: 1}}}, InputError, "each document of qrels must have a vector, got 1"),
    ],
)
def test_wrong_vectors_get_the_message_of_their_door(given, error, message):
    arguments = {"queries": np.eye(2), "vectors": np.eye(2), "qrels": {0: {1: 1}}, **given}
    with pytest.raises(error, match=message):
        retrieval.task(**arguments)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"metrics": "NDCG"}, MetricError, "must have a K .* got NDCG; write NDCG@10"),
        ({"metrics": "AUC@10"}, MetricError, "must have a K and be sums .* got AUC@10"),
        ({"metrics": "Recall@200"}, MetricError, "K of Recall@200 must be at most deepest = 100"),
        ({"items": 50}, InputError, "items must be left out with CutTargets"),
        ({"method": "mle"}, InputError, "method must be left out with CutTargets"),
    ],
)
def test_what_a_cut_corpus_cannot_tell_is_refused(given, error, message):
    found = retrieval.targets(RESULTS, QRELS, documents=50)
    with pytest.raises(error, match=message):
        unsample.estimate(found, **given)
