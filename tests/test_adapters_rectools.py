"""RecTools itself; run in an environment of its own by tools/try_adapters.py."""

import numpy as np
import pytest

from tests.libraries import evaluate, held_out, need_library
from unsample.adapters import ModelScores, rectools
from unsample.designs.ranking import FactorScores
from unsample.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own warnings


@pytest.fixture(scope="module")
def data():
    need_library("rectools")
    return held_out()


@pytest.fixture(scope="module")
def dataset(data):
    import pandas as pd
    from rectools.dataset import Dataset

    users, items = data.pairs()
    frame = pd.DataFrame({"user_id": users + 1000, "item_id": items + 5000})
    return Dataset.construct(
        frame.sample(frac=1, random_state=0).assign(weight=1, datetime="2026-01-01")
    )


@pytest.fixture(scope="module")
def test(data):
    import pandas as pd

    users = np.arange(len(data.target))
    return pd.DataFrame({"user_id": users + 1000, "item_id": data.target + 5000})


def fitted(name, dataset):
    from implicit.als import AlternatingLeastSquares
    from implicit.nearest_neighbours import CosineRecommender
    from rectools import models

    kinds = {
        "als": lambda: models.ImplicitALSWrapperModel(
            AlternatingLeastSquares(factors=8, num_threads=1, random_state=0)
        ),
        "ease": lambda: models.EASEModel(regularization=50.0),
        "knn": lambda: models.ImplicitItemKNNWrapperModel(CosineRecommender(K=10, num_threads=1)),
        "svd": lambda: models.PureSVDModel(factors=8),
        "popular": models.PopularModel,
    }
    return kinds[name]().fit(dataset)


@pytest.mark.parametrize("name", ["als", "ease", "knn", "svd", "popular"])
def test_a_task_ranks_first_what_rectools_recommends(name, dataset, test):
    model = fitted(name, dataset)
    table = model.recommend(
        users=test["user_id"].to_numpy(), dataset=dataset, k=10, filter_viewed=True
    )
    hits = len(test.merge(table, on=["user_id", "item_id"])) / len(test)
    task = rectools.task(model, dataset, test)
    assert isinstance(task.scorer, FactorScores if name in {"als", "svd"} else ModelScores)
    low, high = (
        evaluate(task, ties=ties)["Recall@10"].value for ties in ("pessimistic", "optimistic")
    )
    assert low - 1e-12 <= hits <= high + 1e-12
    assert name in {"knn", "popular"} or low == pytest.approx(high)


def test_tables_of_all_candidates_give_full_ranks(dataset, test, data):
    model = fitted("ease", dataset)
    table = model.recommend(
        users=test["user_id"].to_numpy(), dataset=dataset, k=data.shape[1], filter_viewed=True
    )
    items = {user + 1000: data.catalogue(user) for user in range(len(test))}
    by_score = rectools.targets(table, test, items=items)
    by_rank = rectools.targets(table.drop(columns="score"), test, items=items)
    wanted = test.merge(table, on=["user_id", "item_id"]).sort_values("user_id")["rank"]
    assert np.array_equal(by_rank.ranks, wanted)
    assert np.array_equal(by_score.ranks, wanted)
    assert np.array_equal(by_score.sampled + 1, by_score.items)


def test_bad_input_gets_one_clear_message(dataset, test):
    model = fitted("popular", dataset)
    table = model.recommend(users=[1000], dataset=dataset, k=5, filter_viewed=True)
    with pytest.raises(
        InputError, match="reco must have the columns user_id, item_id, got item_id"
    ):
        rectools.targets(table[["item_id"]], test, items=50)
    with pytest.raises(InputError, match="reco must have the columns rank, got user_id, item_id"):
        rectools.targets(table[["user_id", "item_id"]], test, items=50)
    with pytest.raises(InputError, match="reco must be a pandas frame, got list"):
        rectools.targets([], test, items=50)
    with pytest.raises(InputError, match="reco must hold every target, got"):
        rectools.targets(table, test, items=50)
    with pytest.raises(InputError, match="model must be a model of rectools, got str"):
        rectools.task("model", dataset, test)
    with pytest.raises(InputError, match="dataset must be a Dataset of rectools, got DataFrame"):
        rectools.task(model, test, test)
    with pytest.raises(InputError, match=r"each item of interactions must be known .* such as 3"):
        rectools.task(model, dataset, test.assign(item_id=3))
