"""What the default recommenders must reach on ml-1m with its published split."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from unsample.designs.ranking import exact_ranks, ranks_against
from unsample.lab.datasets import Interactions
from unsample.lab.recommenders import create
from unsample.metrics import NDCG

pytestmark = pytest.mark.realdata

#: NDCG@10 among all items that the user does not have.
FLOORS = {"itemknn": 0.039, "als": 0.049, "ease": 0.055, "multivae": 0.050, "neumf": 0.045}


@pytest.fixture(scope="module")
def ml_1m():
    path = Path(os.environ.get("UNSAMPLE_DATA", "")) / "ml-1m" / "interactions.npz"
    if not path.is_file():
        pytest.skip("set UNSAMPLE_DATA to a folder that holds ml-1m/interactions.npz")
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("name", FLOORS)
def test_defaults_reach_their_floor(name, ml_1m):
    learnt = ~ml_1m["is_test"]
    user, item = (ml_1m[key][learnt].astype(np.int64) for key in ("user", "item"))
    targets = ml_1m["test_item"].astype(np.int64)
    users, items = len(targets), len(ml_1m["movielens_item_id"])
    train = Interactions(user, item, users, items)
    model = create(name).fit(train)
    ranks = exact_ranks(
        model.score_all, np.arange(users), targets, items=items, exclude=train.matrix()
    ).ranks
    assert (NDCG @ 10).weights(ranks, items).mean() >= FLOORS[name]
    if name == "neumf":
        published = ranks_against(
            model.score, np.arange(users), targets, ml_1m["test_negative"].astype(np.int64)
        )
        assert (published.ranks <= 10).mean() >= 0.67
        assert (published.sampled < 99).sum() == 156
