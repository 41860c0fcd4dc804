"""Ranks that ship with the package, ranks trained here, and ``python -m unsample.lab``."""

import pytest
from synthetic import synthetic

import unsample
from unsample.errors import DatasetError, FileError, MissingExtraError
from unsample.lab import _train, datasets
from unsample.lab._train import load_trained, train
from unsample.lab.bank import read_folder
from unsample.lab.datasets import bundled_ranks, load_ranks, names
from unsample.prior import Prior

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
        result = unsample.exact(ranks.ranks, items=ranks.items, metrics="NDCG@10")
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


# -- ranks trained here ---------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A small data set in the place of ml-1m."""
    split = datasets.leave_random_out(synthetic(300, 200, pairs=6000, rng=0), rng=0)
    monkeypatch.setattr(_train, "standard_split", lambda name, **options: split)
    return split


def test_trained_ranks_are_kept_for_both_kinds_of_candidates(small, tmp_path):
    found = train("ml-1m", "ease")
    path = found.save(tmp_path)
    for candidates in ("unseen", "all"):
        kept = load_trained(tmp_path, "ml-1m", "ease", candidates=candidates)
        assert kept.ranks.tolist() == found.ranks[candidates].tolist()
        assert (kept.items < 200).all() == (candidates == "unseen")
        assert kept.provenance["recommenders"]["ease"]["hyperparameters"]["penalty"] == 500.0
        assert kept.provenance["training_pairs"] == len(small.train)
    assert load_trained(tmp_path, "ml-1m", "als", candidates="all") is None
    assert load_trained(tmp_path, "yelp", "ease", candidates="all") is None
    assert path.name == "ml-1m.npz"


def test_the_ranks_of_several_models_stand_in_one_file_that_the_bank_reads(small, tmp_path):
    pytest.importorskip("implicit")
    for name in ("ease", "als"):
        train("ml-1m", name).save(tmp_path)
    sets = read_folder(tmp_path).sets
    assert {(each.model, each.kind) for each in sets} == {
        (model, kind) for model in ("ease", "als") for kind in ("unseen", "all")
    }
    about = load_trained(tmp_path, "ml-1m", "ease", candidates="all").provenance
    assert list(about["recommenders"]) == ["ease"]


# -- the command ----------------------------------------------------------------------------------


def test_data_sets_are_listed_and_fetched(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path))
    assert all(name in lab("fetch") for name in names())
    monkeypatch.setattr("unsample.lab.datasets.fetch", lambda name: {"users.dat": tmp_path / name})
    assert lab("fetch", "citeulike-a") == f"{tmp_path / 'citeulike-a'}\n"
    with pytest.raises(SystemExit):
        lab("fetch", "ml-2m")


def test_a_recommender_is_trained(lab, small, tmp_path, monkeypatch):
    out = lab("train", "ml-1m", "ease", "--out", tmp_path / "ranks")
    assert "NDCG@10 0." in out
    assert (tmp_path / "ranks" / "ml-1m.npz").exists()
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError, match="neural"):
        lab("train", "ml-1m", "neumf")


def test_the_bank_is_listed_and_a_prior_is_learned_from_ranks(lab, tmp_path):
    assert "ml-1m" in lab("bank")
    with pytest.raises(FileError, match="must hold files of full ranks"):
        lab("bank", "learn", tmp_path, "--items", 3706, "--out", tmp_path / "prior.npz")
    for name in ("ease", "als"):
        ranks = load_ranks("ml-1m", name).ranks
        (tmp_path / f"{name}.csv").write_text("rank\n" + "\n".join(map(str, ranks)))
    out = tmp_path / "own" / "prior.npz"
    out.parent.mkdir()
    assert "learned from 2 models" in lab("bank", "learn", tmp_path, "--items", 3706, "--out", out)
    assert Prior.load(out).learned
    with pytest.raises(FileError, match="make its folder first"):
        lab("bank", "add", tmp_path, "--out", tmp_path / "none" / "bank.npz")
