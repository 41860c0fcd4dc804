"""implicit, Cornac and PyKEEN: what the adapters find is what the libraries themselves find."""

import random

import numpy as np
import pytest
from scipy import sparse

import unsample
from tests.libraries import evaluate, held_out, need_library
from unsample.adapters import ModelScores, cornac, implicit, pykeen
from unsample.designs.ranking import FactorScores
from unsample.errors import DesignError, InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own warnings


@pytest.fixture(scope="module")
def data():
    return held_out()


@pytest.fixture(scope="module")
def matrices(data):
    train = sparse.csr_matrix(data.seen.astype(np.float32))
    pairs = np.arange(len(data.target)), data.target
    return train, sparse.csr_matrix((np.ones(len(data.target)), pairs), shape=data.shape)


# -- implicit ------------------------------------------------------------------------------------


def fit_implicit(kind, train):
    need_library("implicit")
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import BM25Recommender

    options = {} if kind == "bm25" else {"factors": 8, "random_state": 0}
    kinds = {
        "als": AlternatingLeastSquares,
        "bpr": BayesianPersonalizedRanking,
        "bm25": BM25Recommender,
    }
    model = kinds[kind](num_threads=1, **options)
    model.fit(train, show_progress=False)
    return model


@pytest.mark.parametrize("kind", ["als", "bpr", "bm25"])
def test_implicit_recommends_what_the_task_ranks_first(kind, data, matrices):
    train, test = matrices
    model = fit_implicit(kind, train)
    users = np.arange(len(data.target))
    found, _ = model.recommend(users, train, N=10)
    hits = np.mean([data.target[user] in found[user] for user in users])
    task = implicit.task(model, train, test)
    assert evaluate(task)["Recall@10"].value == pytest.approx(hits)
    again = implicit.task(model, sparse.csr_array(train), sparse.coo_array(test))
    assert evaluate(again, "certified")["Recall@10"].value == pytest.approx(hits)
    assert isinstance(task.scorer, ModelScores if kind == "bm25" else FactorScores)


def test_implicit_refuses_what_does_not_fit(matrices):
    train, test = matrices
    model = fit_implicit("als", train)
    from implicit.als import AlternatingLeastSquares

    for bad in (AlternatingLeastSquares(), object()):
        with pytest.raises(InputError, match="model must be a fitted model of implicit"):
            implicit.task(bad, train, test)
    with pytest.raises(InputError, match=r"test must be of shape \(120, 200\).*got \(200, 120\)"):
        implicit.task(model, train, test.T)
    with pytest.raises(InputError, match="train must have a row for each of the model's 120 users"):
        implicit.task(model, train.T, test.T)
    with pytest.raises(InputError, match="a column for each of the model's 200 items, got 150"):
        implicit.task(model, train[:, :150], test[:, :150])
    with pytest.raises(InputError, match=r"train must be a scipy sparse matrix .* got ndarray"):
        implicit.task(model, train.toarray(), test)
    with pytest.raises(InputError, match="at least one target, got none"):
        implicit.task(model, train, sparse.csr_matrix(train.shape))


# -- Cornac --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def split(data):
    need_library("cornac")
    from cornac.eval_methods import RatioSplit

    users, items = data.pairs()
    stars = np.random.default_rng(1).integers(1, 6, len(users))
    ratings = [(f"u{u}", f"i{i}", float(s)) for u, i, s in zip(users, items, stars, strict=True)]

    def make(**options):
        return RatioSplit(
            ratings, test_size=0.15, val_size=0.05, rating_threshold=3.0, seed=1, **options
        )

    return make


@pytest.mark.parametrize("kind", ["BPR", "EASE", "MostPop", "MF"])
@pytest.mark.parametrize("exclude_unknowns", [True, False])
def test_cornac_gives_the_same_recall(split, kind, exclude_unknowns):
    import cornac as library
    from cornac.eval_methods.base_method import ranking_eval

    method = split(exclude_unknowns=exclude_unknowns)
    options = {"BPR": {"k": 8, "max_iter": 20, "seed": 1}, "MF": {"k": 4, "seed": 1}}
    model = getattr(library.models, kind)(**options.get(kind, {}))
    model.fit(method.train_set)
    recall = library.metrics.Recall(k=10)
    (wanted,), _ = ranking_eval(
        model, [recall], method.train_set, method.test_set, method.val_set,
        rating_threshold=3.0, exclude_unknowns=exclude_unknowns,
    )  # fmt: skip
    task = cornac.task(model, method)
    # Cornac breaks ties by place, and the popular model ties often.
    low, high = (
        evaluate(task, ties=ties)["Recall@10"].value for ties in ("pessimistic", "optimistic")
    )
    assert low - 1e-12 <= wanted <= high + 1e-12
    assert kind == "MostPop" or low == pytest.approx(high)


def test_cornac_factors_are_taken_where_there_are_some(split):
    import cornac as library

    method = split()
    kinds = {"BPR": FactorScores, "EASE": ModelScores}
    for name, kind in kinds.items():
        model = getattr(library.models, name)()
        model.fit(method.train_set)
        scorer = cornac.task(model, method).scorer
        assert isinstance(scorer, kind)
        own = np.asarray(model.score(3)).reshape(-1)
        everything = (
            scorer(np.array([3])) if kind is FactorScores else scorer.score_all(np.array([3]))
        )
        assert np.array_equal(np.argsort(everything[0]), np.argsort(own))


def test_cornac_refuses_what_does_not_fit(split):
    import cornac as library

    method = split()
    model = library.models.MostPop()
    with pytest.raises(InputError, match="model must be fitted, got MostPop"):
        cornac.task(model, method)
    with pytest.raises(InputError, match="model must be a recommender of cornac, got object"):
        cornac.task(object(), method)
    with pytest.raises(InputError, match="method must be an evaluation method of cornac"):
        cornac.task(model, method.train_set)
    with pytest.raises(InputError, match="method must have a training and a test set"):
        cornac.task(model, library.eval_methods.BaseMethod())
    session = library.models.SPop()
    session.num_items = 5
    with pytest.raises(InputError, match=r"model must score items for a user alone.*history_items"):
        cornac.task(session, method)


# -- PyKEEN --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph():
    need_library("pykeen")
    import torch
    from pykeen.triples import CoreTriplesFactory

    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, (150, 3, 150), size=(900, 3)), axis=0)
    factory = CoreTriplesFactory(torch.as_tensor(triples), 150, 3)
    return factory.split([0.8, 0.2], random_state=0)


@pytest.fixture(scope="module", params=["DistMult", "TransE"])
def link_model(request, graph):
    import pykeen.models

    kind = getattr(pykeen.models, request.param)
    return kind(triples_factory=graph[0], embedding_dim=8, random_seed=0)


def evaluated(evaluator, model, graph):
    train, test = graph
    result = evaluator.evaluate(
        model, test.mapped_triples, additional_filter_triples=[train.mapped_triples],
        batch_size=64, use_tqdm=False,
    )  # fmt: skip
    return evaluator, result


def sampled_evaluator(graph, negatives=20, **options):
    from pykeen.evaluation import SampledRankBasedEvaluator

    random.seed(0)
    train, test = graph
    return SampledRankBasedEvaluator(
        test, additional_filter_triples=train.mapped_triples, num_negatives=negatives, **options
    )


def test_pykeen_sampled_ranks_know_their_design(link_model, graph):
    from pykeen.evaluation import RankBasedEvaluator

    full, _ = evaluated(RankBasedEvaluator(clear_on_finalize=False), link_model, graph)
    few, result = evaluated(sampled_evaluator(graph, clear_on_finalize=False), link_model, graph)
    found = pykeen.targets(few, known=graph[0])
    # Filtered evaluation tells how many entities compete: the N of each question.
    options = [np.concatenate(full.num_candidates[side]) for side in ("head", "tail")]
    assert np.array_equal(found.items, np.concatenate(options))
    assert (found.sampled == 20).all()
    assert (1 / found.ranks).mean() == pytest.approx(
        result.get_metric("both.realistic.inverse_harmonic_mean_rank")
    )
    one = pykeen.targets(few, known=graph[0], side="tail")
    assert np.array_equal(one.ranks, found.ranks[len(found.ranks) // 2 :])


def test_pykeen_tasks_give_the_metrics_of_the_full_evaluator(link_model, graph):
    from pykeen.evaluation import RankBasedEvaluator

    _, result = evaluated(RankBasedEvaluator(), link_model, graph)
    for side in ("head", "tail", "both"):
        task = pykeen.task(link_model, graph[1], known=graph[0], side=side)
        wanted = result.get_metric(f"{side}.realistic.hits@10")
        for design in ("exact", "certified"):
            assert evaluate(task, design)["Recall@10"].value == pytest.approx(wanted)


def test_pykeen_estimates_cover_the_full_metric(link_model, graph):
    task = pykeen.task(link_model, graph[1], known=graph[0])
    truth = evaluate(task, metrics=["Recall@30"])["Recall@30"].value
    few, _ = evaluated(sampled_evaluator(graph, clear_on_finalize=False), link_model, graph)
    found = unsample.estimate(pykeen.targets(few, known=graph[0]).counts, metrics="Recall@30")
    low, high = found["Recall@30"].interval(0.99)
    assert low <= truth <= high


def test_pykeen_refuses_what_does_not_fit(link_model, graph):
    from pykeen.evaluation import RankBasedEvaluator

    train, test = graph
    with pytest.raises(InputError, match="must be a SampledRankBasedEvaluator, got RankBased"):
        pykeen.targets(RankBasedEvaluator())
    cleared, _ = evaluated(sampled_evaluator(graph), link_model, graph)
    with pytest.raises(InputError, match="got none; make it with clear_on_finalize=False"):
        pykeen.targets(cleared)
    partly = sampled_evaluator(graph, clear_on_finalize=False)
    partly.evaluate(link_model, test.mapped_triples[:50], batch_size=64, use_tqdm=False)
    with pytest.raises(InputError, match="side must be one of head, tail, both"):
        pykeen.targets(partly, side="relation")
    with pytest.raises(InputError, match="each of its 180 triples once, got 50 ranks"):
        pykeen.targets(partly)
    crowded, _ = evaluated(
        sampled_evaluator(graph, negatives=149, clear_on_finalize=False), link_model, graph
    )
    with pytest.raises(DesignError, match="negatives must be different entities, got 149"):
        pykeen.targets(crowded, known=train)
    with pytest.raises(InputError, match="model must be a model of pykeen, got object"):
        pykeen.task(object(), test)
    with pytest.raises(InputError, match="triples must be a triples factory or an integer array"):
        pykeen.task(link_model, np.zeros((4, 2), dtype=int))
    with pytest.raises(InputError, match=r"known must be a triples factory .* got"):
        pykeen.task(link_model, test, known=object())
