"""Ranks: those that ship with the package, the corpus of all, those trained here, the command."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.synthetic import synthetic
from unsample.errors import FileError, InputError, MissingExtraError
from unsample.lab import _train, datasets
from unsample.lab.corpus import Corpus, RankSet, load_corpus, read_folder
from unsample.lab.datasets import load_ranks, names
from unsample.metrics import NDCG, parse_all

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
    # Where a user's own items are left out, ranks can only be better.
    assert (unseen.ranks <= every.ranks).mean() > 0.99
    if dataset == "ml-1m":
        assert (NDCG @ 10).weights(unseen.ranks, 3706).mean() >= FLOORS[recommender]


def test_unknown_ranks_are_refused(tmp_path):
    for arguments, words in (
        (("ml-2m", "ease"), "did you mean ml-1m"),
        (("ml-1m", "eas"), "did you mean ease"),
    ):
        with pytest.raises(InputError, match=words):
            load_ranks(*arguments)
    with pytest.raises(InputError, match="candidates must be one of unseen, all"):
        load_ranks("ml-1m", "ease", candidates="mine")
    with pytest.raises(FileError, match="train a recommender first"):
        load_ranks("ml-1m", "ease", folder=tmp_path)


# -- the corpus -----------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_histograms_have_the_metrics_of_the_ranks(candidates):
    one = load_corpus().select(dataset="ml-1m", model="ease", candidates=candidates).sets[0]
    ranks = load_ranks("ml-1m", "ease", candidates=candidates).ranks
    for metric in parse_all(["NDCG@1", "NDCG@10", "Recall@50"]):
        found, exact = (metric.weights(each, one.items).mean() for each in (one.ranks(), ranks))
        assert found == pytest.approx(exact)


def test_a_folder_of_full_ranks_is_added(tmp_path):
    ranks = np.random.default_rng(0).integers(1, 500, size=(2, 400))
    repeat = np.arange(400) < 100
    about = {"items": 500, "n_seen": np.zeros(400, dtype=int), "repeat": repeat}
    np.savez(tmp_path / "shop.npz", **about, knn_1=ranks[0], knn_0=ranks[1])
    load_corpus().add(read_folder(tmp_path)).save(tmp_path / "own.npz")
    corpus = Corpus.load(tmp_path / "own.npz")
    assert len(corpus) == len(load_corpus()) + 2
    kept, unseen = corpus.select(dataset="shop").sets
    assert (kept.kind, unseen.kind, kept.family) == ("repeats", "unseen", "shop")
    assert (kept.targets, unseen.targets) == (400, 300)
    assert kept.counts[:128].tolist() == np.bincount(ranks[1], minlength=200)[1:129].tolist()
    with pytest.raises(FileError, match=r"NAME\.npz"):
        read_folder(tmp_path / "none")
    with pytest.raises(FileError, match="must hold unsample corpus 3"):
        Corpus.load(tmp_path / "shop.npz")


def test_ranks_among_smaller_catalogues_are_moved_to_the_mean_size():
    ranks, sizes = np.array([3, 450, 900]), np.array([900, 900, 1100])
    about = {"dataset": "x", "model": "m", "candidates": "unseen", "kind": "unseen"}
    one = RankSet.of_ranks(ranks, sizes, **about, family="x")
    assert one.items == 967
    assert one.ranks()[0] == 3
    assert one.ranks()[1:] == pytest.approx([450 * 967 / 900, 900 * 967 / 1100], rel=0.02)


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
        assert kept.provenance["recommenders"]["ease"]["hyperparameters"]["penalty"] == 500.0
        assert kept.provenance["training_pairs"] == len(split.train)
    assert {(each.model, each.kind) for each in read_folder(tmp_path)} == {
        (model, kind) for model in ("ease", "als") for kind in ("unseen", "all")
    }
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="neural"):
        lab("train", "ml-1m", "neumf")


def test_what_is_no_file_of_trained_ranks_is_kept_and_said_before_training(lab, tmp_path):
    path = tmp_path / "ml-1m.npz"
    np.savez(path, rank=np.arange(1, 9))
    before = path.read_bytes()
    with pytest.raises(FileError, match="must hold exact ranks of recommenders"):
        lab("train", "ml-1m", "ease", "--out", tmp_path)
    with pytest.raises(FileError, match="must be new, or a file that was saved here before"):
        load_corpus().save(path)
    assert path.read_bytes() == before


def test_data_sets_are_listed_and_fetched(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    assert lab("fetch").count("not here") == len(names())
    monkeypatch.setattr("unsample.lab.datasets.fetch", lambda name: {"users.dat": tmp_path / name})
    assert lab("fetch", "citeulike-a") == f"{tmp_path / 'citeulike-a'}\n"
    with pytest.raises(SystemExit):
        lab("fetch", "ml-2m")
