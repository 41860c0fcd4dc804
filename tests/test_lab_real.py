"""The published files themselves, and what the recommenders reach on them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.test_lab_command import FLOORS
from unsample.lab import datasets
from unsample.lab._train import train
from unsample.metrics import NDCG

DATA = os.environ.get("UNSAMPLE_DATA", "")

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(not DATA, reason="UNSAMPLE_DATA names no folder with the data sets"),
]
#: Users, items and pairs of the parts that some people hold.
PARTS = {"pinterest-20": (37_501, 9916, 1_000_154), "yelp": (25_677, 25_815, 292_257)}


def need(name: str) -> None:
    if datasets.at_hand(name) is None:
        pytest.skip(f"{name} is not under UNSAMPLE_DATA")


@pytest.mark.parametrize("name", datasets.names())
def test_counts_are_the_published_ones_where_complete(name):
    need(name)
    info, loaded = datasets.record(name), datasets.load(name)
    counts = (loaded.users, loaded.items, len(loaded))
    assert len(np.unique(loaded.pair_keys())) == len(loaded)
    if loaded.complete:
        assert counts == (info.users, info.items, info.interactions)
        assert loaded.note == ""
    else:
        assert counts == PARTS[name]
        assert f"{len(loaded):,} of {info.interactions:,}" in loaded.note
    split = datasets.standard_split(name)
    assert len(split.target_user) == loaded.users
    assert len(split.train) == len(loaded) - loaded.users
    assert split.train.note == loaded.note


def test_the_published_split_of_ml_1m():
    need("ml-1m")
    split = datasets.standard_split("ml-1m")
    assert split.target_user.tolist() == list(range(6040))
    assert split.negatives.shape == (6040, 99)
    assert (split.negatives == split.target_item[:, None]).any(axis=1).sum() == 156
    trained = split.train.matrix().toarray()
    assert trained[np.arange(6040)[:, None], split.negatives].sum() == 0


@pytest.mark.parametrize("name", FLOORS)
def test_recommenders_reach_their_floor(name, tmp_path):
    need("ml-1m")
    train("ml-1m", name, tmp_path)
    found = datasets.load_ranks("ml-1m", name, folder=tmp_path)
    assert (NDCG @ 10).weights(found.ranks, 3706).mean() >= FLOORS[name]
    if name == "neumf":
        made = found.provenance["recommenders"][name]
        assert made["published_negatives_HR@10"] >= 0.67
