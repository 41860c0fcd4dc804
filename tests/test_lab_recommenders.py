"""Every recommender keeps one contract; the closed forms equal their references."""

from __future__ import annotations

import numpy as np
import pytest

from unsample.errors import InputError
from unsample.lab.datasets import Interactions
from unsample.lab.recommenders import (
    EASE,
    REGISTRY,
    ItemKNN,
    NeuMF,
    create,
)
from unsample.scoring import exact_ranks

USERS, ITEMS, BLOCKS = 60, 40, 4

#: Settings with which each recommender learns the little world below in a second or two.
SMALL = {
    "itemknn": {"neighbours": 10},
    "als": {"factors": 4, "regularization": 1.0},
    "ease": {"penalty": 5.0},
    "neumf": {
        "factors": 8,
        "layers": (16, 8, 4),
        "negatives": 4,
        "averaging": 0.9,
        "epochs": 10,
        "batch": 64,
        "learning_rate": 0.02,
    },
    "multivae": {"hidden": 32, "latent": 8, "epochs": 40, "batch": 20, "learning_rate": 0.01},
}


@pytest.fixture(scope="module")
def world():
    """Users and items fall into blocks; a user has six of the ten items of the own block.

    The last user has nothing, and nobody has the last item.
    """
    rng = np.random.default_rng(0)
    pairs = [
        (user, item)
        for user in range(USERS - 1)
        for item in rng.choice(ITEMS // BLOCKS, 6, replace=False) * BLOCKS + user % BLOCKS
        if item != ITEMS - 1
    ]
    user, item = np.array(pairs).T
    return Interactions(user, item, USERS, ITEMS)


@pytest.fixture(scope="module")
def fitted(world):
    return {name: create(name, **SMALL[name]).fit(world) for name in REGISTRY}


# -- the contract -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGISTRY)
class TestContract:
    def test_score_agrees_with_score_all(self, name, fitted):
        rng = np.random.default_rng(1)
        users, items = rng.integers(USERS, size=9), rng.integers(ITEMS, size=(9, 5))
        users[0], items[1, 1] = USERS - 1, ITEMS - 1
        whole = np.take_along_axis(fitted[name].score_all(users), items, axis=1)
        np.testing.assert_allclose(fitted[name].score(users, items), whole, rtol=1e-4, atol=1e-5)

    def test_scores_are_finite_and_the_same_for_the_same_seed(self, name, fitted, world):
        scores = fitted[name].score_all(np.arange(USERS))
        assert scores.shape == (USERS, ITEMS)
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()
        again = create(name, **SMALL[name]).fit(world)
        assert np.array_equal(again.score_all(np.arange(USERS)), scores)

    def test_unknown_users_get_popularity_and_unknown_items_come_last(self, name, fitted, world):
        scores = fitted[name].score_all(np.arange(USERS))
        popularity = np.bincount(world.item, minlength=ITEMS)
        assert scores[USERS - 1].tolist() == popularity.tolist()
        assert (scores[:, -1:] <= scores).all()
        assert (scores[:, -1:] < scores[:, :-1]).any(axis=1).all()

    def test_scores_can_be_ranked(self, name, fitted, world):
        scorer = fitted[name].scorer()
        ranks = exact_ranks(scorer, ([0, 1], [0, 1]), items=ITEMS, exclude=world.matrix())
        assert ((ranks.ranks >= 1) & (ranks.ranks <= ranks.items)).all()
        for key, value in fitted[name].hyperparameters.items():
            assert f"{key}={value!r}" in repr(fitted[name])


@pytest.mark.parametrize("name", REGISTRY)
def test_items_of_the_own_block_come_first(name, fitted, world):
    """Among items the user does not have, those of the user's block score higher."""
    users = np.arange(USERS - 1)
    scores = fitted[name].score_all(users)
    unseen = world.matrix().toarray()[users] == 0
    unseen[:, ITEMS - 1] = False
    own = (np.arange(ITEMS) % BLOCKS) == (users % BLOCKS)[:, None]
    inside = np.where(own & unseen, scores, np.nan)
    outside = np.where(~own & unseen, scores, np.nan)
    wins = inside[:, :, None] > outside[:, None, :]
    pairs = ~np.isnan(inside[:, :, None]) & ~np.isnan(outside[:, None, :])
    assert wins[pairs].mean() > 0.97


# -- single recommenders --------------------------------------------------------------------------


def test_ease_equals_a_dense_reference(world):
    dense = world.matrix().toarray().astype(np.float64)
    inverse = np.linalg.inv(dense.T @ dense + 7.0 * np.eye(ITEMS))
    weights = np.eye(ITEMS) - inverse / np.diag(inverse)
    model = EASE(penalty=7.0).fit(world)
    scores = model.score_all(np.arange(USERS - 1))[:, :-1]
    expected = (dense @ weights)[: USERS - 1, :-1]
    np.testing.assert_allclose(scores, expected, atol=2e-6)


def test_itemknn_sums_similarities_of_the_users_items(world):
    dense = world.matrix().toarray().astype(np.float64)
    norms = np.maximum(np.linalg.norm(dense, axis=0), 1e-9)
    cosine = (dense.T @ dense) / norms / norms[:, None]
    model = ItemKNN(neighbours=ITEMS, weighting="cosine").fit(world)
    scores = model.score_all(np.arange(USERS - 1))[:, :-1]
    np.testing.assert_allclose(scores, (dense @ cosine)[: USERS - 1, :-1], atol=1e-5)


def test_bad_input_is_refused(world):
    with pytest.raises(InputError, match="did you mean multivae"):
        create("mult-vae")
    with pytest.raises(InputError, match="device must be one that PyTorch can use here"):
        NeuMF(device="no-such-device").fit(world)
    with pytest.raises(InputError, match="must be fitted before"):
        EASE().score_all([0])
