"""Ranks that ship with the package, ranks trained here, and ``python -m unsample.lab``."""

import sys

import pytest

import unsample
from tests.synthetic import synthetic
from unsample.errors import FileError, InputError, MissingExtraError
from unsample.lab import _train, datasets
from unsample.lab.bank import read_folder
from unsample.lab.datasets import load_ranks, names

#: The five recommenders, and what they must reach by NDCG@10 on ml-1m.
FLOORS = {"itemknn": 0.039, "als": 0.049, "ease": 0.055, "multivae": 0.050, "neumf": 0.045}


@pytest.mark.parametrize("recommender", FLOORS)
@pytest.mark.parametrize("dataset", names())
def test_bundled_ranks_are_ranks(dataset, recommender):
    unseen = load_ranks(dataset, recommender)
    every = load_ranks(dataset, recommender, candidates="all")
    for bundled in (unseen, every):
        assert len(bundled.ranks) == len(bundled.items) == len(bundled)
        assert ((bundled.ranks >= 1) & (bundled.ranks <= bundled.items)).all()
    about = unseen.provenance
    assert about["complete"] == (dataset in ("ml-1m", "citeulike-a"))
    assert bool(about["note"]) != about["complete"]
    assert {"split", "seed", "training_pairs"} <= set(about)
    assert {"hyperparameters", "seconds", "versions"} <= set(about["recommenders"][recommender])
    # Where a user's own items are left out, ranks can only be better.
    assert (unseen.ranks <= every.ranks).mean() > 0.99
    if dataset == "ml-1m":
        result = unsample.exact(unseen.ranks, items=unseen.items, metrics="NDCG@10")
        assert result["NDCG@10"].value >= FLOORS[recommender]


def test_unknown_ranks_are_refused(tmp_path):
    for arguments, words in (
        (("ml-2m", "ease"), "did you mean ml-1m"),
        (("ml-1m", "eas"), "did you mean ease"),
        (("ml-1m", "popularity"), "recommender must be one of"),
    ):
        with pytest.raises(InputError, match=words):
            load_ranks(*arguments)
    with pytest.raises(InputError, match="candidates must be one of unseen, all"):
        load_ranks("ml-1m", "ease", candidates="mine")
    with pytest.raises(FileError, match="train a recommender first"):
        load_ranks("ml-1m", "ease", folder=tmp_path)


# -- the command ----------------------------------------------------------------------------------


def test_trained_ranks_of_several_models_stand_in_one_file(lab, tmp_path, monkeypatch):
    pytest.importorskip("implicit")
    split = datasets.leave_random_out(synthetic(300, 200, pairs=6000, rng=0), rng=0)
    monkeypatch.setattr(_train, "standard_split", lambda name, **options: split)
    for name in ("ease", "als"):
        out = lab("train", "ml-1m", name, "--out", tmp_path)
        assert "NDCG@10 0." in out
        assert out.endswith(f"{tmp_path / 'ml-1m.npz'}\n")
    for candidates in ("unseen", "all"):
        kept = load_ranks("ml-1m", "ease", candidates=candidates, folder=tmp_path)
        assert (kept.items < 200).all() == (candidates == "unseen")
        assert ((kept.ranks >= 1) & (kept.ranks <= kept.items)).all()
        assert list(kept.provenance["recommenders"]) == ["ease"]
        assert kept.provenance["recommenders"]["ease"]["hyperparameters"]["penalty"] == 500.0
        assert kept.provenance["training_pairs"] == len(split.train)
    assert {(each.model, each.kind) for each in read_folder(tmp_path)} == {
        (model, kind) for model in ("ease", "als") for kind in ("unseen", "all")
    }
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
