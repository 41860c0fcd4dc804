"""Bundled ranks, evaluating on data sets, and the verbs that do."""

import json

import numpy as np
import pytest

import unsample
from unsample.__main__ import application
from unsample.designs import Adaptive, Fixed, Guided
from unsample.errors import DatasetError, DesignError, InputError, RecommenderError
from unsample.lab import _evaluate, datasets, evaluate
from unsample.lab.datasets import Split, bundled_ranks, load_ranks, names, synthetic
from unsample.lab.recommenders import REGISTRY

FIVE = ("ease", "multivae", "neumf", "itemknn", "als")


# -- bundled ranks ------------------------------------------------------------------------------


def test_the_five_recommenders_are_there_on_all_four_data_sets():
    assert {name: set(found) for name, found in bundled_ranks().items()} == {
        name: set(FIVE) for name in names()
    }


@pytest.mark.parametrize("recommender", FIVE)
@pytest.mark.parametrize("dataset", names())
def test_bundled_ranks_are_ranks(dataset, recommender):
    unseen = load_ranks(dataset, recommender)
    every = load_ranks(dataset, recommender, candidates="all")
    for bundled in (unseen, every):
        assert len(bundled.ranks) == len(bundled.items) == len(bundled)
        assert ((bundled.ranks >= 1) & (bundled.ranks <= bundled.items)).all()
        assert bundled.complete == (dataset in ("ml-1m", "citeulike-a"))
        assert bool(bundled.note) != bundled.complete
        made = bundled.provenance["recommenders"][recommender]
        assert {"hyperparameters", "seconds", "versions"} <= set(made)
        assert {"split", "seed", "command", "training_pairs"} <= set(bundled.provenance)
    # Where a user's own items are left out, ranks can only be better.
    assert (unseen.ranks <= every.ranks).mean() > 0.99


def test_bundled_ranks_reach_the_floors_of_ml_1m():
    floors = {"itemknn": 0.039, "als": 0.049, "ease": 0.055, "multivae": 0.050, "neumf": 0.045}
    for recommender, floor in floors.items():
        ranks = load_ranks("ml-1m", recommender)
        result = unsample.exact(ranks.ranks, items=ranks.items, metrics="NDCG@10", resamples=0)
        assert result["NDCG@10"].value >= floor, recommender


def test_unknown_bundled_ranks_are_refused():
    for arguments, words in (
        (("ml-2m", "ease"), "did you mean ml-1m"),
        (("ml-1m", "eas"), "did you mean ease"),
        (("ml-1m", "popularity"), "recommender must be one of"),
    ):
        with pytest.raises(DatasetError, match=words):
            load_ranks(*arguments)
    with pytest.raises(DatasetError, match="candidates must be one of unseen, all"):
        load_ranks("ml-1m", "ease", candidates="mine")


# -- evaluation ---------------------------------------------------------------------------------


def test_a_simulated_evaluation_shows_the_bias_and_removes_most_of_it():
    result = evaluate("ml-1m", "ease", bundled=True, metrics=["HR@10", "Recall@50"], resamples=0)
    rows = {(row["metric"], row["method"]): row for row in result.rows()}
    assert rows["Recall@50", "naive"]["relative_error"] > 1
    assert abs(rows["Recall@50", "auto"]["relative_error"]) < 0.1
    assert result.truth["HR@10"] == pytest.approx((load_ranks("ml-1m", "ease").ranks <= 10).mean())
    assert "off by" in str(result)


@pytest.mark.parametrize("design", ["certified", "exact"])
def test_exact_designs_need_no_estimate_and_notes_on_the_data_are_warnings(design):
    result = evaluate("yelp", "als", bundled=True, design=design, metrics="HR@5", resamples=0)
    ranks = load_ranks("yelp", "als").ranks
    assert result["HR@5"].value == pytest.approx((ranks <= 5).mean())
    assert not result.truth
    assert "42 %" in result.warnings[-1]
    assert result.scored <= result.catalogues.sum() + 16


@pytest.mark.parametrize(
    ("design", "method"), [(Adaptive(), "mle(iterations=30)"), (Guided(), None)], ids=str
)
def test_a_budget_is_kept(design, method):
    budget = 400 * 5551
    result = evaluate(
        "citeulike-a",
        "ease",
        bundled=True,
        design=design,
        budget=budget,
        metrics="NDCG@10",
        method=method,
        resamples=0,
    )
    assert 0.8 * budget < result.scored <= budget
    assert result["NDCG@10"].value == pytest.approx(result.truth["NDCG@10"], rel=0.2)
    low, high = result["NDCG@10"].interval(population=False)
    assert low < result.truth["NDCG@10"] < high


def _fake_split(monkeypatch, validation: bool = False) -> Split:
    pairs = synthetic(300, 200, pairs=6000, rng=0)
    split = datasets.leave_random_out(pairs, rng=0, validation=validation)
    monkeypatch.setattr(_evaluate, "standard_split", lambda name, **options: split)
    return split


@pytest.mark.parametrize("candidates", ["unseen", "all"])
@pytest.mark.parametrize("recommender", ["popularity", "ease"])
def test_training_ranking_and_sampling_fit_together(monkeypatch, candidates, recommender):
    split = _fake_split(monkeypatch)
    result = evaluate(
        "synthetic",
        recommender,
        candidates=candidates,
        design=Fixed(20),
        metrics="AUC",
        method=["naive", "mle"],
        resamples=0,
    )
    assert len(result.ranks) == len(split.target_user)
    assert result.ranks.max() <= 21
    assert all(abs(row["error"]) < 0.03 for row in result.rows())
    exact = evaluate(
        "synthetic", recommender, candidates=candidates, design="exact", metrics="AUC", resamples=0
    )
    assert exact["AUC"].value == pytest.approx(result.truth["AUC"], abs=5e-3)  # ties by chance
    assert (exact.catalogues < 200).all() == (candidates == "unseen")


def test_a_checkpoint_is_continued(monkeypatch, tmp_path):
    _fake_split(monkeypatch)
    asked = []

    def counted(model, users, items):
        asked.append(np.size(items))
        return score(model, users, items)

    score = REGISTRY["ease"].score
    monkeypatch.setattr(REGISTRY["ease"], "score", counted)
    options = {"design": "certified", "metrics": "NDCG@10", "resamples": 0}
    first = evaluate("synthetic", "ease", checkpoint=tmp_path / "state.npz", **options)
    spent = sum(asked)
    again = evaluate("synthetic", "ease", checkpoint=tmp_path / "state.npz", **options)
    assert first.to_dict() == again.to_dict()
    assert sum(asked) - spent < spent / 20


def test_validation_chooses_the_epochs_and_then_all_pairs_are_learnt(monkeypatch):
    split = _fake_split(monkeypatch, validation=True)
    model = REGISTRY["multivae"](epochs=3, hidden=8, latent=4, patience=3)
    model.fit_split(split)
    curve = model.fitted.weights["curve_quality"]
    assert len(curve) == 3
    assert len(model.fitted.weights["curve_loss"]) == np.argmax(curve) + 1
    assert model.fitted.activity.sum() == len(split.train) + len(split.validation_user)
    assert len(split.history()) == len(split.train) + len(split.validation())
    plain = _fake_split(monkeypatch)
    assert plain.validation() is None
    assert plain.history() is plain.train


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(RecommenderError, match="did you mean ease"):
        evaluate("ml-1m", "eese")
    with pytest.raises(InputError, match="candidates must be one of unseen, all"):
        evaluate("ml-1m", "ease", candidates="theirs")
    with pytest.raises(DesignError, match="checkpoint must be left out with bundled ranks"):
        evaluate("ml-1m", "ease", bundled=True, checkpoint=tmp_path / "state.npz")


# -- the verbs ----------------------------------------------------------------------------------


@pytest.fixture
def verb(capsys):
    def call(*words):
        """Call a verb; what it raises comes out, as it would not in a shell."""
        with pytest.raises(SystemExit) as ended:
            application()(args=[str(word) for word in words], prog_name="unsample")
        return int(ended.value.code or 0), capsys.readouterr().out

    return call


def test_several_recommenders_are_compared_with_the_same_draws(verb, monkeypatch):
    two = ("--recommender", "ease", "--recommender", "als", "--metrics", "NDCG@10")
    base = ("evaluate", "--dataset", "ml-1m", *two, "--bundled")
    found = json.loads(verb(*base, "--design", "guided", "--budget", 2_400_000, "--json")[1])
    assert found["models"] == ["ease", "als"]
    assert found["paired"]
    assert sum(found["scored"].values()) <= 2_400_000
    truth = [
        evaluate("ml-1m", name, bundled=True, design="exact", metrics="NDCG@10")["NDCG@10"].value
        for name in ("ease", "als")
    ]
    pair = found["differences"][0]
    assert pair["low"] < truth[0] - truth[1] < pair["high"]
    for more, words in (
        (("--method", "mle", "--method", "bv"), "method must be one where recommenders"),
        (("--recommender", "ease"), "recommenders must each be named once, got ease twice"),
    ):
        with pytest.raises(InputError, match=words):
            verb(*base, *more)
    _fake_split(monkeypatch)
    trained = _evaluate.evaluate_together(
        "synthetic", ["ease", "popularity"], design="certified", metrics="NDCG@10", resamples=0
    )
    assert trained.paired
    assert set(trained.scored) == {"ease", "popularity"}


EASE = ("evaluate", "--dataset", "ml-1m", "--recommender", "ease", "--bundled", "--resamples", 0)


def test_evaluate_prints_a_table_or_json(verb):
    code, out = verb(*EASE, "-m", "HR@10")
    assert code == 0
    heading = "ease on ml-1m (bundled ranks), candidates: unseen\nfixed design: 604,016 scores"
    assert out.startswith(heading)
    code, out = verb(
        *EASE, "--json", "-m", "HR@5", "--method", "bv", "--candidates", "all", "--rng", 3
    )
    data = json.loads(out)
    assert (data["items"], data["candidates"]) == (3706, "all")
    assert {"exact", "error", "value", "low", "high"} <= set(data["estimates"][0])
    code, out = verb(*EASE, "--design", "exact")
    assert code == 0
    assert "off by" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "ml-1n"], "did you mean ml-1m"),
        (["--design", "wild"], "exact, fixed"),
        (["--candidates", "x"], "unseen, all"),
        (["--design", "exact", "--sampled", "9"], "sampled and replacement must be left out"),
    ],
)
def test_bad_evaluations_are_refused(verb, words, message):
    with pytest.raises(InputError, match=message):
        verb(*EASE, *words)


def test_data_that_is_not_at_hand_says_how_to_get_it(verb, monkeypatch, tmp_path):
    monkeypatch.delenv("UNSAMPLE_DATA", raising=False)
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(OSError, match="UNSAMPLE_DATA"):
        verb("evaluate", "--dataset", "citeulike-a", "--recommender", "ease")


def test_datasets_are_listed_and_shown(verb, monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path))
    listed = verb("datasets", "list")[1]
    assert "citeulike-a" in listed
    assert "multivae" in listed
    assert {row["name"] for row in json.loads(verb("datasets", "list", "--json")[1])} == set(
        names()
    )
    assert "licence" in verb("datasets", "info", "ml-1m")[1]
    assert json.loads(verb("datasets", "info", "ml-1m", "--json")[1])["users"] == 6040
    with pytest.raises(DatasetError, match="must be one of"):
        verb("datasets", "info", "movielens")
