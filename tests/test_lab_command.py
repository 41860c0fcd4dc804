"""Ranks that ship with the package, ranks trained here, and ``python -m unsample.lab``."""

import sys

import pytest

import unsample
from tests.synthetic import synthetic
from unsample.errors import DatasetError, FileError, MissingExtraError
from unsample.lab import _train, datasets
from unsample.lab._train import load_trained, train
from unsample.lab.bank import read_folder
from unsample.lab.datasets import bundled_ranks, load_ranks, names
from unsample.prior import Prior

#: The five recommenders, and what they must reach by NDCG@10 on ml-1m.
FLOORS = {"itemknn": 0.039, "als": 0.049, "ease": 0.055, "multivae": 0.050, "neumf": 0.045}


# -- bundled ranks ------------------------------------------------------------------------------


def test_the_five_recommenders_are_there_on_all_four_data_sets():
    found = {name: set(models) for name, models in bundled_ranks().items()}
    assert found == {name: set(FLOORS) for name in names()}


@pytest.mark.parametrize("recommender", FLOORS)
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
    for recommender, floor in FLOORS.items():
        ranks = load_ranks("ml-1m", recommender)
        result = unsample.exact(ranks.ranks, items=ranks.items, metrics="NDCG@10")
        assert result["NDCG@10"].value >= floor, recommender


def test_a_caller_cannot_change_what_the_next_one_gets():
    first = load_ranks("ml-1m", "ease")
    first.ranks[:] = 1
    first.provenance["recommenders"]["ease"].clear()
    second = load_ranks("ml-1m", "ease")
    assert second.ranks.max() > 1
    assert second.provenance["recommenders"]["ease"]


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


# -- ranks trained here, and the command ----------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A small data set in the place of ml-1m."""
    split = datasets.leave_random_out(synthetic(300, 200, pairs=6000, rng=0), rng=0)
    monkeypatch.setattr(_train, "standard_split", lambda name, **options: split)
    return split


def test_trained_ranks_of_several_models_stand_in_one_file_that_the_bank_reads(small, tmp_path):
    pytest.importorskip("implicit")
    for name in ("ease", "als"):
        assert train("ml-1m", name, tmp_path) == tmp_path / "ml-1m.npz"
    for candidates in ("unseen", "all"):
        kept = load_trained(tmp_path, "ml-1m", "ease", candidates=candidates)
        assert (kept.items < 200).all() == (candidates == "unseen")
        assert ((kept.ranks >= 1) & (kept.ranks <= kept.items)).all()
        assert list(kept.provenance["recommenders"]) == ["ease"]
        assert kept.provenance["recommenders"]["ease"]["hyperparameters"]["penalty"] == 500.0
        assert kept.provenance["training_pairs"] == len(small.train)
    assert load_trained(tmp_path, "ml-1m", "neumf", candidates="all") is None
    assert load_trained(tmp_path, "yelp", "ease", candidates="all") is None
    assert {(each.model, each.kind) for each in read_folder(tmp_path)} == {
        (model, kind) for model in ("ease", "als") for kind in ("unseen", "all")
    }


def test_a_recommender_is_trained(lab, small, tmp_path, monkeypatch):
    out = lab("train", "ml-1m", "ease", "--out", tmp_path / "ranks")
    assert "NDCG@10 0." in out
    assert out.endswith(f"{tmp_path / 'ranks' / 'ml-1m.npz'}\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="neural"):
        lab("train", "ml-1m", "neumf")


def test_data_sets_are_listed_and_fetched(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    assert lab("fetch").count("not here") == len(names())
    monkeypatch.setattr("unsample.lab.datasets.fetch", lambda name: {"users.dat": tmp_path / name})
    assert lab("fetch", "citeulike-a") == f"{tmp_path / 'citeulike-a'}\n"
    with pytest.raises(SystemExit):
        lab("fetch", "ml-2m")


def test_the_bank_is_listed_and_a_prior_is_learned_from_ranks(lab, tmp_path):
    assert "ml-1m" in lab("bank")
    paths = [tmp_path / f"{name}.csv" for name in ("ease", "als")]
    for path in paths:
        ranks = load_ranks("ml-1m", path.stem).ranks
        path.write_text("rank\n" + "\n".join(map(str, ranks)))
    asked = ("learn", *paths, "--items", 3706, "--out")
    assert "learned from 2 models" in lab(*asked, tmp_path / "prior.npz")
    assert Prior.load(tmp_path / "prior.npz").learned
    with pytest.raises(FileError, match="make its folder first"):
        lab(*asked, tmp_path / "none" / "prior.npz")
