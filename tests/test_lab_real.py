"""The published files themselves, and what the recommenders reach on them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from unsample import sampled_ranks
from unsample.designs import exact_ranks
from unsample.lab import datasets
from unsample.lab.recommenders import create
from unsample.metrics import NDCG

DATA = os.environ.get("UNSAMPLE_DATA", "")

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(not DATA, reason="UNSAMPLE_DATA names no folder with the data sets"),
]


def need(name: str) -> None:
    if datasets.at_hand(name) is None:
        pytest.skip(f"{name} is not under UNSAMPLE_DATA")


@pytest.mark.parametrize("name", datasets.names())
def test_counts_are_the_published_ones_where_complete(name):
    need(name)
    info, loaded = datasets.record(name), datasets.load(name)
    assert loaded.complete == datasets.at_hand(name).complete
    assert loaded.items == info.items
    assert len(np.unique(loaded.pair_keys())) == len(loaded)
    if loaded.complete:
        assert loaded.users == info.users
        assert len(loaded) == info.interactions
        assert loaded.note == ""
    else:
        assert f"{len(loaded):,} of {info.interactions:,}" in loaded.note


def test_ml_1m_is_whole():
    need("ml-1m")
    loaded = datasets.load("ml-1m")
    assert (loaded.users, loaded.items, len(loaded)) == (6040, 3706, 1_000_209)
    assert loaded.count_by_item().min() > 0
    assert loaded.count_by_user().min() == 20


def test_both_sources_of_ml_1m_agree(monkeypatch, tmp_path):
    need("ml-1m")
    first = datasets.load("ml-1m")
    (tmp_path / "ml-1m").mkdir()
    for path in (Path(DATA) / "ml-1m" / "original").glob("ml-1m.*"):
        (tmp_path / "ml-1m" / path.name).symlink_to(path)
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    if datasets.at_hand("ml-1m") is None:
        pytest.skip("the files of the published split are not under UNSAMPLE_DATA")
    second = datasets.load("ml-1m")
    for column in ("user", "item", "time"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))


def test_the_published_split_of_ml_1m():
    need("ml-1m")
    split = datasets.leave_published_out("ml-1m")
    whole = datasets.load("ml-1m")
    assert split.target_user.tolist() == list(range(6040))
    assert len(split.train) == 994_169
    assert whole.time is not None
    latest = np.zeros(6040, dtype=np.int64)
    np.maximum.at(latest, whole.user, whole.time)
    place = np.searchsorted(whole.pair_keys(), split.target_user * 3706 + split.target_item)
    np.testing.assert_array_equal(whole.time[place], latest)
    assert split.negatives is not None
    assert split.negatives.shape == (6040, 99)
    assert (split.negatives == split.target_item[:, None]).any(axis=1).sum() == 156
    trained = split.train.matrix().toarray()
    assert trained[np.arange(6040)[:, None], split.negatives].sum() == 0


def test_citeulike_is_whole():
    need("citeulike-a")
    loaded = datasets.load("citeulike-a")
    assert (loaded.users, loaded.items, len(loaded)) == (5551, 16_980, 204_986)
    assert loaded.count_by_user().min() == 10


def test_the_part_of_pinterest():
    need("pinterest-20")
    loaded = datasets.load("pinterest-20")
    if loaded.complete:
        pytest.skip("the whole of pinterest-20 is at hand")
    assert (loaded.users, loaded.items, len(loaded)) == (37_501, 9916, 1_000_154)
    assert (loaded.count_by_item() > 0).sum() == 9836
    split = datasets.leave_published_out("pinterest-20", validation=True)
    assert len(split.target_user) == 37_501
    assert split.validation_user is not None
    assert len(split.train) == 1_000_154 - 2 * 37_501
    assert not split.complete
    assert "users 0 to 37500" in split.note


def test_the_part_of_yelp():
    need("yelp")
    loaded = datasets.load("yelp")
    if loaded.complete:
        pytest.skip("the whole of yelp is at hand")
    assert (loaded.users, loaded.items, len(loaded)) == (25_677, 25_815, 292_257)
    split = datasets.leave_published_out("yelp")
    assert len(split.target_user) == 25_677
    assert len(split.train) == 292_257 - 25_677
    assert "42 %" in split.note


@pytest.mark.parametrize("name", datasets.names())
def test_the_arrays_prepared_from_the_same_files_agree(name):
    arrays = Path(DATA) / name / "interactions.npz"
    if not arrays.exists():
        pytest.skip(f"{arrays.name} is not under UNSAMPLE_DATA/{name}")
    loaded = datasets.load(name)
    with np.load(arrays) as prepared:
        keys = prepared["user"].astype(np.int64) * loaded.items + prepared["item"]
        np.testing.assert_array_equal(np.sort(keys), loaded.pair_keys())


#: NDCG@10 on ml-1m with its published split, among all items that the user does not have.
FLOORS = {"itemknn": 0.039, "als": 0.049, "ease": 0.055, "multivae": 0.050, "neumf": 0.045}


@pytest.fixture(scope="module")
def ml_1m():
    need("ml-1m")
    return datasets.leave_published_out("ml-1m")


@pytest.mark.parametrize("name", FLOORS)
def test_defaults_reach_their_floor(name, ml_1m):
    targets, items = (ml_1m.target_user, ml_1m.target_item), ml_1m.train.items
    model = create(name).fit(ml_1m.train)
    ranks = exact_ranks(model, targets, items=items, exclude=ml_1m.train.matrix()).ranks
    assert (NDCG @ 10).weights(ranks, items).mean() >= FLOORS[name]
    if name == "neumf":
        user, item = targets
        itself = ml_1m.negatives == item[:, None]
        others = np.where(itself, -np.inf, model.score(user, ml_1m.negatives))
        against = sampled_ranks(model.score(user, item[:, None])[:, 0], others)
        assert (against <= 10).mean() >= 0.67
        assert itself.any(axis=1).sum() == 156
