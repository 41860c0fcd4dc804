"""Full-catalogue numbers where RecBole, LensKit and ir_measures show theirs.

`make libraries` runs this file once with each real library, in an environment of its own.
"""

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from tools.library_metrics import Problem

import unsample
from tests import user_metrics
from tests.libraries import LIBRARIES, need_library
from unsample.adapters import lenskit, recbole, trec
from unsample.errors import DesignError, InputError
from unsample.evidence import RankCounts

foreign = pytest.mark.filterwarnings("ignore")  # the libraries' own warnings


@cache
def library(name):
    need_library(name)
    return LIBRARIES[name]()


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """RecBole writes logs to where it is run."""
    monkeypatch.chdir(tmp_path)


def ends(found, level=0.95):
    return (found.value, *found.interval(level))


# -- ir_measures -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measures():
    need_library("ir_measures")
    import ir_measures

    return ir_measures


@pytest.fixture
def full(measures):
    from unsample.adapters.ir_measures import full

    return full


def sampled_run(queries=200, items=2000, sampled=49, seed=0):
    """Return judgements and a run, one relevant document for each query."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in map(str, range(queries)):
        docs = [f"d{doc}" for doc in rng.choice(items, sampled + 1, replace=False)]
        scores = rng.normal(size=sampled + 1)
        scores[0] += rng.exponential(2.0)
        run[query] = dict(zip(docs, scores.tolist(), strict=True))
        qrels[query] = {docs[0]: 1}
    return qrels, run


@pytest.mark.parametrize("seed", range(3))
def test_full_runs_give_what_ir_measures_gives(measures, full, seed):
    problem = Problem.random(seed, users=40)
    asked = [measures.parse_measure(f"{m}@{k}") for m in ("nDCG", "R", "P", "RR", "AP", "Success")
             for k in (1, 3, 10)]  # fmt: skip
    asked += [measures.nDCG, measures.RR, measures.AP, measures.R(rel=2) @ 3, measures.P(rel=2) @ 3]
    for measure in asked:
        # Judgements of one grade, but where the measure itself says which grades count.
        qrels = problem.qrels() if "rel" in measure.params else problem.binary()
        lowest = measure.params.get("rel", 1)
        qrels = {q: d for q, d in qrels.items() if max(d.values()) >= lowest}
        run = problem.run()
        value, low, high = full(measure, items=problem.items)
        found = measures.calc_aggregate([measure, value, low, high], qrels, run)
        assert found[value] == pytest.approx(found[measure], rel=0, abs=1e-9), measure
        assert found[low] <= found[value] <= found[high]


def test_sampled_runs_give_the_estimates(measures, full):
    qrels, run = sampled_run()
    names = {"nDCG@50": "NDCG@50", "R@50": "Recall@50", "RR": "MRR"}
    asked = {theirs: full(theirs, items=2000, candidates="all", level=0.9) for theirs in names}
    every = [measures.RR, *(measure for three in asked.values() for measure in three)]
    found = measures.calc_aggregate(every, qrels, run)
    counts = trec.targets(run, qrels, items=2000).counts
    wanted = unsample.estimate(counts, metrics=list(names.values()), candidates="all", resamples=0)
    for theirs, name in names.items():
        numbers = [found[measure] for measure in asked[theirs]]
        assert numbers == pytest.approx(ends(wanted[name], 0.9), rel=0, abs=1e-9)
    # Rows and frames are as good as dicts.
    rows = [measures.ScoredDoc(q, d, s) for q, docs in run.items() for d, s in docs.items()]
    again = measures.calc_aggregate(every, qrels, rows)
    assert again == pytest.approx(found, rel=0, abs=1e-9)


def test_measures_are_known_by_name_and_numbers_of_a_run(measures, full):
    qrels, run = sampled_run(queries=60)
    value, low, high = full(measures.nDCG @ 50, items=2000)
    assert str(low) == "Full(measure='nDCG@50',items=2000,end='low')"
    assert [measures.parse_measure(str(m)) for m in (value, low, high)] == [value, low, high]
    whole = measures.calc_aggregate([value], qrels, run)[value]
    provider = measures.providers.registry["unsample"]
    assert provider.calc_aggregate([value], qrels, run)[value] == whole
    assert value.calc_aggregate(qrels, run) == whole
    # Beside a measure of another provider and alone.
    for asked in ([value], [measures.RR, value]):
        result = measures.calc(asked, qrels, run)
        rows = {row.query_id: row.value for row in result.per_query if row.measure == value}
        assert result.aggregated[value] == rows.pop("all") == whole
        assert rows.keys() == qrels.keys()
        assert all(map(math.isnan, rows.values()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"measure": "ERR@10"},
            "measure must be one of nDCG, R, P, RR, AP, Success, .* got ERR@10",
        ),
        ({"measure": "NDGC@10"}, "measure must be one of ir_measures, got 'NDGC@10'"),
        ({"measure": "R"}, "measure must be one of ir_measures, got 'R': invalid param cutoff"),
        ({"measure": "P(judged_only=True)@5"}, "no parameters but a cutoff and rel"),
        ({"items": 1}, "items must be an integer of at least 2"),
        ({"sampled": 0}, "sampled must be an integer of at least 1"),
        ({"level": 95}, "level must be a number in"),
    ],
)
def test_measures_that_cannot_be_are_refused(full, given, message):
    options = {"measure": "nDCG@10", "items": 50} | given
    with pytest.raises(InputError, match=message):
        full(options.pop("measure"), **options)


def test_runs_that_do_not_tell_are_refused(measures, full):
    qrels, run = sampled_run()
    target = next(iter(qrels["1"]))
    shared = {query: run["0"] | {d: run[query][d] for d in docs} for query, docs in qrels.items()}
    for judged, ranked, options, message in (
        (qrels | {"1": {target: 0}}, run, {}, "relevance 1 or more for each query, got none for 1"),
        (qrels | {"1": {target: 2}}, run, {}, "qrels must be of one grade for nDCG"),
        (qrels, run, {"sampled": 48}, "run must hold sampled = 48 items .* got 49"),
        (qrels, {"1": run["1"]}, {}, "run must hold every target"),
        (qrels, shared, {}, 'documents must be drawn anew .* negatives="shared"'),
    ):
        asked = full("nDCG@10", items=2000, **options)
        with pytest.raises(InputError, match=message):
            measures.calc_aggregate(asked, judged, ranked)


@pytest.mark.parametrize(("queries", "items", "sampled"), [(2, 60, 10), (300, 60, 20), (5, 9, 8)])
def test_documents_of_each_query_its_own_are_not_taken_for_shared(
    measures, full, queries, items, sampled
):
    for seed in range(20):
        given = sampled_run(queries, items, sampled, seed)
        found = measures.calc_aggregate(full("R@5", items=items, method="naive"), *given)
        assert all(0 <= number <= 1 for number in found.values())


# -- LensKit ---------------------------------------------------------------------------------------


def scored_lists(made, pick):
    """Return the lists of a pipeline, in order, of the items that ``pick`` gives for each user."""
    import lenskit as theirs
    from lenskit.data import ItemListCollection

    lists = {user: pick(user) for user in made.data.users.tolist()}
    found = theirs.batch.score(made.pipeline("als"), made.collection(lists), n_jobs=1)
    ordered = {key.user_id: row.top_n() for key, row in found}
    return ItemListCollection.from_dict(ordered, key="user_id")


@foreign
def test_lenskit_full_lists_give_what_lenskit_gives():
    made = library("lenskit")
    from lenskit.metrics import NDCG, Hit, LogRankWeight, Precision, Recall, RecipRank, RunAnalysis
    from lenskit.metrics.ranking import AveragePrecision

    items = dict(zip((1000 + made.data.users).tolist(), made.data.items.tolist(), strict=True))
    lists = scored_lists(made, lambda user: np.flatnonzero(~made.data.seen[user]))
    kinds = (Recall, Precision, Hit, RecipRank, AveragePrecision, NDCG)
    asked = {metric(k).label: metric(k) for metric in kinds for k in (1, 3, 10)}
    asked |= {
        "NDCG": NDCG(),
        "RecipRank": RecipRank(),
        "usual": NDCG(weight=LogRankWeight(offset=1)),
    }
    for label, metric in asked.items():
        analysis = RunAnalysis()
        analysis.add_metric(metric, label=label)
        for one in lenskit.full(metric, items=items):
            analysis.add_metric(one)
        result = analysis.measure(lists, made.test)
        own, numbers = result.list_summary().loc[label, "mean"], result.global_metrics()
        value, low, high = (numbers[f"{metric.label}_{end}"] for end in ("full", "low", "high"))
        assert value == pytest.approx(own, rel=0, abs=1e-9), label
        assert low <= value <= high


@foreign
def test_lenskit_sampled_lists_give_the_estimates():
    made = library("lenskit")
    from lenskit.metrics import RunAnalysis

    rng, data = np.random.default_rng(0), made.data

    def pick(user):
        free = np.setdiff1d(np.flatnonzero(~data.seen[user]), data.held[user])
        return np.append(rng.choice(free, 40, replace=False), data.held[user])

    lists, items = scored_lists(made, pick), 150
    analysis = RunAnalysis(*lenskit.full("NDCG@20", items=items, candidates="unseen", level=0.9))
    targets = lenskit.targets(lists, made.test, items=items)
    wanted = unsample.estimate(targets.counts, metrics="NDCG@20", candidates="unseen", resamples=0)[
        "NDCG@20"
    ]
    measured = analysis.measure(lists, made.test).global_metrics()
    assert measured.to_list() == pytest.approx(ends(wanted, 0.9), rel=0, abs=1e-12)
    assert list(measured.index) == ["NDCG@20_full", "NDCG@20_low", "NDCG@20_high"]
    # The same metrics of another run: nothing is left from the first.
    few = made.collection({user: data.held[user] for user in range(60)})
    again = analysis.measure(lists, few).global_metrics()
    fewer = lenskit.targets(lists, few, items=items).counts
    assert again.iloc[0] == pytest.approx(
        unsample.estimate(fewer, metrics="NDCG@20", candidates="unseen", resamples=0)[
            "NDCG@20"
        ].value
    )
    assert again.iloc[0] != measured.iloc[0]


@foreign
def test_lenskit_metrics_that_cannot_be_are_refused():
    made = library("lenskit")
    from lenskit.metrics import DCG, NDCG, RBP, LogRankWeight, RunAnalysis

    for metric, message in (
        (RBP(10), "metric must be one of Recall, .* got RBP@10"),
        (DCG(10), "metric must be one of Recall, .* got DCG@10"),
        (NDCG(10, gain="rating"), "without gain, got NDCG@10"),
        (NDCG(10, weight=LogRankWeight(offset=2)), "of offset 0 or 1"),
        (NDCG(10, discount=np.log2), "of offset 0 or 1"),
        ("NDGC@10", "NDCG"),
        (10, "metric must be a name such as 'NDCG@10' or a metric of lenskit, got int"),
    ):
        with pytest.raises(InputError, match=message):
            lenskit.full(metric, items=150)
    cut = made.collection({user: [0, 1, 2] for user in range(3)})
    analysis = RunAnalysis(*lenskit.full("NDCG@10", items=150))
    with pytest.raises(InputError, match="scored must hold lists with scores"):
        analysis.measure(cut, made.test)


# -- RecBole ---------------------------------------------------------------------------------------


def trainer_of(made, name, mode, split):
    """Return a trainer, its model and the loaders, as a script of RecBole's users makes them."""
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import get_model, get_trainer, init_seed

    config, _, _ = made.prepare(name, mode, split)
    init_seed(1, reproducibility=True)
    train, valid, test = data_preparation(config, create_dataset(config))
    model = get_model(name)(config, train.dataset)
    return get_trainer(config["MODEL_TYPE"], name)(config, model), model, (train, valid, test)


def record(model):
    """Return a list to which the model adds users and scores whenever it is asked for some."""
    asked, predict = [], model.predict

    def predicted(interaction):
        scores = predict(interaction)
        asked.append((interaction["user_id"].tolist(), scores.reshape(-1).tolist()))
        return scores

    model.predict = predicted
    return asked


@foreign
@pytest.mark.parametrize("name", ["BPR", "SASRec"])
def test_recbole_results_have_the_estimate_of_the_same_draws(name):
    made = library("recbole")
    plain, _, loaders = trainer_of(made, name, "uni50", made.one_target)
    plain.fit(loaders[0], saved=False, verbose=False)
    own = plain.evaluate(loaders[2], load_best_model=False)
    trainer, model, loaders = trainer_of(made, name, "uni50", made.one_target)
    assert recbole.watch(trainer, level=0.9) is trainer
    trainer.fit(loaders[0], saved=False, verbose=False)
    asked = record(model)
    found = trainer.evaluate(loaders[2], load_best_model=False)
    # What RecBole says itself stays as it is, and comes first.
    assert list(found.items())[: len(own)] == list(own.items())
    # A user's rows are its target and the 50 items that were drawn for it, in this order.
    lists = {}
    for users, scores in asked:
        for user, score in zip(users, scores, strict=True):
            lists.setdefault(user, []).append(score)
    assert {len(row) for row in lists.values()} == {51}
    ranks = {user: 1 + sum(score > row[0] for score in row[1:]) for user, row in lists.items()}
    items = recbole._catalogue(loaders[2])
    counts = RankCounts.from_ranks(
        list(ranks.values()), items=items[list(ranks)], sampled=50, users=list(ranks)
    )
    assert trainer.full_catalogue.counts == counts
    names = {theirs: user_metrics.same("recbole", theirs) for theirs in own}
    wanted = unsample.estimate(
        counts, metrics=list(names.values()), resamples=0,
        candidates="all" if name == "SASRec" else "unseen",
    )  # fmt: skip
    for theirs, ours in names.items():
        numbers = [found[f"{theirs}_{end}"] for end in ("full", "low", "high")]
        assert numbers == pytest.approx(ends(wanted[ours], 0.9), rel=0, abs=1e-9)


@foreign
@pytest.mark.parametrize("several", [False, True])
def test_recbole_intervals_hold_what_a_full_ranking_gives(several):
    made = library("recbole")
    split = made.several if several else made.one_target
    trainer, _, loaders = trainer_of(made, "EASE", "uni50", split)
    recbole.watch(trainer, level=0.99)
    trainer.fit(loaders[0], saved=False, verbose=False)
    found = trainer.evaluate(loaders[2], load_best_model=False)
    _, _, exact = made.train("EASE", "full", split)
    assert trainer.full_catalogue.counts.several == several
    for name in ("hit@10", "ndcg@10", "recall@10", "map@10"):
        assert found[f"{name}_low"] <= exact[name] <= found[f"{name}_high"]
        # And it is not the sampled number that is held.
        assert found[name] > exact[name]
        assert abs(found[f"{name}_full"] - exact[name]) < abs(found[name] - exact[name])


@foreign
def test_recbole_full_evaluations_stay_as_they_are():
    made = library("recbole")
    trainer, model, loaders = trainer_of(made, "EASE", "full", made.several)
    trainer.fit(loaders[0], saved=False, verbose=False)
    own = trainer.evaluate(loaders[2], load_best_model=False)
    assert recbole.watch(trainer).evaluate(loaders[2], load_best_model=False) == own
    _, _, popular = made.prepare("EASE", "pop50", made.one_target)
    with pytest.raises(DesignError, match="loader must draw items uniformly, got 'popularity'"):
        trainer.evaluate(popular, load_best_model=False)
    for wrong, message in (
        (lambda: recbole.watch(model), "trainer must be a trainer of recbole, got EASE"),
        (lambda: recbole.watch(trainer, level=95), "level must be a number in"),
        (lambda: recbole.watch(trainer, ties="realistic"), "ties must be one of"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()
    _, _, one = made.prepare("EASE", "uni50", made.one_target)
    trainer.config["single_spec"] = False
    with pytest.raises(DesignError, match="trainer must evaluate in one process"):
        trainer.evaluate(one, load_best_model=False)


@foreign
def test_recbole_in_one_line(monkeypatch):
    made = library("recbole")
    import sys

    from recbole.quick_start import quick_start

    monkeypatch.setattr(sys, "argv", sys.argv[:1])  # which RecBole reads
    settings = made.settings("uni50", made.one_target) | {
        "epochs": 2, "valid_metric": "NDCG@10_full", "metric_decimal_place": 4,
        "show_progress": False,
    }  # fmt: skip
    seen, find = [], quick_start.get_trainer
    done = recbole.run(
        "BPR", "toy", config_dict=settings, saved=False, after=lambda *given: seen.append(given)
    )
    # Two validations and the test, of which the best validation is found by the estimate.
    assert [estimates.counts.total for _, estimates in seen] == [100] * 3
    assert done["best_valid_score"] == max(row["ndcg@10_full"] for row, _ in seen[:2])
    assert done["test_result"] == seen[2][0]
    assert done["test_result"]["ndcg@10_full"] == round(seen[2][1]["NDCG@10"].value, 4)
    assert quick_start.get_trainer is find
    with pytest.raises(InputError, match="level must be"):
        recbole.run("BPR", "toy", config_dict=settings, saved=False, level=95)
    assert quick_start.get_trainer is find


def test_recbole_results_with_estimates_are_read_as_printed():
    made = library("recbole")
    _, test, results = made.train("EASE", "uni50", made.one_target)
    added = results | {"hit@10_full": 0.1, "hit@10_low": 0.0, "hit@10_high": 0.2}
    one, other = (recbole.published(given, test, metrics="Recall@20") for given in (results, added))
    assert one["Recall@20"].value == other["Recall@20"].value


def test_a_trainer_is_needed():
    with pytest.raises(
        InputError, match="trainer must be a trainer of recbole, got SimpleNamespace"
    ):
        recbole.watch(SimpleNamespace(evaluate=print))
