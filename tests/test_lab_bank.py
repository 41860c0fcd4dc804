"""The bank of ranks: what it holds, and adding to it."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from unsample.errors import FileError
from unsample.lab import load_ranks
from unsample.lab.bank import Bank, RankSet, load_bank, read_folder
from unsample.metrics import parse_all


def test_the_bank_holds_what_it_should():
    bank = load_bank()
    assert len((files("unsample.lab.bank") / "bank.npz").read_bytes()) < 3_000_000
    assert len({each.dataset for each in bank}) >= 32
    assert {each.kind for each in bank} == {"unseen", "all", "repeats", "graph"}
    assert {each.dataset for each in bank if each.partial} == {"pinterest-20", "yelp"}
    assert len({each.family for each in bank if "yelp" in each.dataset}) == 1
    assert all(len(each.counts) == len(each.grid) and each.targets > 0 for each in bank)


@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_histograms_have_the_metrics_of_the_ranks(candidates):
    one = load_bank().select(dataset="ml-1m", model="ease", candidates=candidates).sets[0]
    ranks = load_ranks("ml-1m", "ease", candidates=candidates).ranks
    for metric in parse_all(["NDCG@1", "NDCG@10", "Recall@50"]):
        found, exact = (metric.weights(each, one.items).mean() for each in (one.ranks(), ranks))
        assert found == pytest.approx(exact)


def test_a_folder_of_full_ranks_is_added(tmp_path):
    ranks = np.random.default_rng(0).integers(1, 500, size=(2, 400))
    repeat = np.arange(400) < 100
    about = {"items": 500, "n_seen": np.zeros(400, dtype=int), "repeat": repeat}
    np.savez(tmp_path / "shop.npz", **about, knn_1=ranks[0], knn_0=ranks[1])
    load_bank().add(read_folder(tmp_path)).save(tmp_path / "own.npz")
    bank = Bank.load(tmp_path / "own.npz")
    assert len(bank) == len(load_bank()) + 2
    kept, unseen = bank.select(dataset="shop").sets
    assert (kept.kind, unseen.kind, kept.family) == ("repeats", "unseen", "shop")
    assert (kept.targets, unseen.targets) == (400, 300)
    assert kept.counts[:128].tolist() == np.bincount(ranks[1], minlength=200)[1:129].tolist()
    with pytest.raises(FileError, match=r"NAME\.npz"):
        read_folder(tmp_path / "none")
    with pytest.raises(FileError, match="must hold unsample rank bank 2"):
        Bank.load(tmp_path / "shop.npz")


def test_ranks_among_smaller_catalogues_are_moved_to_the_mean_size():
    ranks, sizes = np.array([3, 450, 900]), np.array([900, 900, 1100])
    about = {"dataset": "x", "model": "m", "candidates": "unseen", "kind": "unseen"}
    one = RankSet.of_ranks(ranks, sizes, **about, family="x")
    assert one.items == 967
    assert one.ranks()[0] == 3
    assert one.ranks()[1:] == pytest.approx([450 * 967 / 900, 900 * 967 / 1100], rel=0.02)
