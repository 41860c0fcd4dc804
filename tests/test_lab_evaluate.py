import json

import numpy as np
import pytest

import unsample
from unsample.errors import DatasetError, InputError, RecommenderError
from unsample.lab import datasets, side_by_side
from unsample.lab.datasets import Interactions, Split, bundled_ranks, load_ranks, names, synthetic
from unsample.lab.recommenders import REGISTRY

FIVE = ("ease", "multivae", "neumf", "itemknn", "als")
CELLS = [(d, r, p) for d in names() for r in FIVE for p in ("everyday", "paper")]


# -- bundled ranks ------------------------------------------------------------------------------


def test_the_five_recommenders_are_there_on_all_four_data_sets():
    assert {name: set(found) for name, found in bundled_ranks().items()} == {
        name: set(FIVE) for name in names()
    }


@pytest.mark.parametrize(("dataset", "recommender", "protocol"), CELLS)
def test_bundled_ranks_are_ranks(dataset, recommender, protocol):
    bundled = load_ranks(dataset, recommender, protocol=protocol)
    assert len(bundled.ranks) == len(bundled.items) == len(bundled)
    assert (bundled.ranks >= 1).all()
    assert (bundled.ranks <= bundled.items).all()
    assert bundled.complete == (dataset in ("ml-1m", "citeulike-a"))
    assert bool(bundled.note) != bundled.complete
    made = bundled.provenance["recommenders"][recommender]
    assert {"hyperparameters", "seconds", "versions"} <= set(made)
    assert {"split", "seed", "command", "training_pairs"} <= set(bundled.provenance)
    # The everyday protocol leaves a user's own items out, so ranks can only be better.
    other = load_ranks(dataset, recommender, protocol="paper")
    assert (bundled.ranks <= other.ranks).mean() > 0.99


def test_bundled_ranks_are_small():
    folder = load_ranks.__globals__["files"]("unsample.lab.datasets.bundled")
    assert sum(len(path.read_bytes()) for path in folder.iterdir() if path.is_file()) < 4_000_000


def test_bundled_ranks_reach_the_floors_of_ml_1m():
    floors = {"itemknn": 0.039, "als": 0.049, "ease": 0.055, "multivae": 0.050, "neumf": 0.045}
    for recommender, floor in floors.items():
        ranks = load_ranks("ml-1m", recommender)
        result = unsample.exact(ranks.ranks, items=ranks.items, metrics="NDCG@10", resamples=0)
        assert result["NDCG@10"].value >= floor, recommender


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ml-2m", "ease"), "did you mean ml-1m"),
        (("ml-1m", "eas"), "did you mean ease"),
        (("ml-1m", "popularity"), "recommender must be one of"),
    ],
)
def test_unknown_bundled_ranks_are_refused(arguments, words):
    with pytest.raises(DatasetError, match=words):
        load_ranks(*arguments)
    with pytest.raises(DatasetError, match="everyday, paper"):
        load_ranks("ml-1m", "ease", protocol="mine")


# -- evaluation ---------------------------------------------------------------------------------


def test_bundled_evaluation_shows_the_bias_and_removes_most_of_it():
    targets = side_by_side.rank_bundled("ml-1m", "ease", sampled=99, rng=3)
    result = side_by_side.evaluate_ranks(targets, metrics=["Recall@10", "Recall@50"])
    rows = {(row["metric"], row["method"]): row for row in result.rows()}
    assert rows["Recall@50", "naive"]["relative_error"] > 1
    assert abs(rows["Recall@50", "auto"]["relative_error"]) < 0.1
    assert "off by" in str(result)
    assert json.loads(result.to_json())["estimates"][0]["exact"] == pytest.approx(
        (targets.ranks <= 10).mean()
    )


def _fake_split(monkeypatch, validation: bool = False) -> Split:
    pairs = synthetic(300, 200, pairs=6000, rng=0)
    split = datasets.leave_random_out(pairs, rng=0, validation=validation)
    monkeypatch.setattr(side_by_side, "standard_split", lambda name, **options: split)
    return split


@pytest.mark.parametrize("protocol", ["everyday", "paper"])
@pytest.mark.parametrize("recommender", ["popularity", "ease", "als"])
def test_training_ranking_and_sampling_fit_together(monkeypatch, protocol, recommender):
    split = _fake_split(monkeypatch)
    targets = side_by_side.rank_trained("synthetic", recommender, protocol=protocol, sampled=20)
    assert len(targets.ranks) == len(split.target_user)
    assert (targets.ranks <= targets.items).all()
    assert targets.sampled_ranks is not None
    assert targets.sampled_ranks.max() <= 21
    # The mean sampled rank is unbiased for the mean relative rank.
    theta = ((targets.ranks - 1) / (targets.items - 1)).mean()
    assert ((targets.sampled_ranks - 1) / 20).mean() == pytest.approx(theta, abs=0.05)
    result = side_by_side.evaluate_ranks(targets, metrics=["AUC"], method=["naive", "mle"])
    assert all(abs(row["error"]) < 0.03 for row in result.rows())


def test_validation_chooses_the_epochs_and_then_all_pairs_are_learnt(monkeypatch):
    split = _fake_split(monkeypatch, validation=True)
    model = REGISTRY["multivae"](epochs=3, hidden=8, latent=4, patience=3)
    model.fit_split(split)
    curve = model.fitted.weights["curve_quality"]
    assert len(curve) == 3
    assert len(model.fitted.weights["curve_loss"]) == np.argmax(curve) + 1
    assert model.fitted.activity.sum() == len(split.train) + len(split.validation_user)


def test_splits_give_their_parts_as_interactions():
    split = datasets.leave_random_out(synthetic(50, 40, pairs=800, rng=0), rng=0, validation=True)
    assert isinstance(split.validation(), Interactions)
    assert len(split.history()) == len(split.train) + len(split.validation())
    plain = datasets.leave_random_out(synthetic(50, 40, pairs=800, rng=0), rng=0)
    assert plain.validation() is None
    assert plain.history() is plain.train


def test_bad_names_are_refused():
    with pytest.raises(RecommenderError, match="did you mean ease"):
        side_by_side.rank_trained("ml-1m", "eese")
    with pytest.raises(InputError, match="protocol"):
        side_by_side.rank_trained("ml-1m", "ease", protocol="theirs")


# -- the command --------------------------------------------------------------------------------


def test_evaluate_bundled_from_the_command_line(run):
    code, out, err = run("evaluate", "--dataset", "ml-1m", "--recommender", "ease", "--bundled")
    assert code == 0
    assert out.startswith("ease on ml-1m (bundled ranks), everyday protocol\n6,040 targets")
    assert "naive" in out
    assert "warning: Recall@10" in err
    arguments = ("evaluate", "--dataset", "yelp", "--recommender", "als", "--bundled", "--json")
    code, out, _ = run(*arguments, "-m", "HR@5", "--method", "bv", "--protocol", "paper")
    data = json.loads(out)
    assert code == 0
    assert data["items"] == 25815
    assert "42 %" in data["note"]
    assert {"exact", "error", "value", "low", "high"} <= set(data["estimates"][0])
    code, out, _ = run(
        "evaluate", "--dataset", "ml-1m", "--recommender", "als", "--bundled", "--design", "exact"
    )
    assert code == 0
    assert "exact" in out
    assert "off by" not in out


BAD = {
    "dataset": (["--dataset", "ml-1n", "--recommender", "ease", "--bundled"], "did you mean ml-1m"),
    "recommender": (["--dataset", "ml-1m", "--recommender", "easy", "--bundled"], "did you mean"),
    "design": (["--dataset", "ml-1m", "--recommender", "ease", "--design", "wild"], "exact, fixed"),
    "protocol": (["--dataset", "ml-1m", "--recommender", "ease", "--protocol", "x"], "everyday"),
    "missing": (["--dataset", "ml-1m"], "--recommender"),
    "metric": (["--dataset", "ml-1m", "--recommender", "ease", "--bundled", "-m", "X@1"], "metric"),
    "sampled": (
        ["--dataset", "ml-1m", "--recommender", "ease", "--bundled", "--sampled", "0"],
        "sampled must be",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_evaluations_exit_with_two(run, case):
    arguments, words = BAD[case]
    code, out, err = run("evaluate", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_data_that_is_not_at_hand_says_how_to_get_it(run, monkeypatch, tmp_path):
    monkeypatch.delenv("UNSAMPLE_DATA", raising=False)
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    code, _, err = run("evaluate", "--dataset", "citeulike-a", "--recommender", "ease")
    assert code != 0
    assert "UNSAMPLE_DATA" in err
    assert "Traceback" not in err


def test_datasets_are_listed_and_shown(run, monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path))
    code, out, _ = run("datasets", "list")
    assert code == 0
    assert "citeulike-a" in out
    assert "multivae" in out
    code, out, _ = run("datasets", "list", "--json")
    assert {row["name"] for row in json.loads(out)} == set(names())
    code, out, _ = run("datasets", "info", "ml-1m")
    assert "licence" in out
    code, out, _ = run("datasets", "info", "ml-1m", "--json")
    assert json.loads(out)["users"] == 6040
    code, _, err = run("datasets", "info", "movielens")
    assert code == 2
    assert "must be one of" in err
