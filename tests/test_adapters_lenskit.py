"""LensKit itself; run in an environment of its own by tools/try_adapters.py."""

import numpy as np
import pytest

import unsample
from tests.libraries import evaluate, held_out, need_library
from unsample.adapters import lenskit
from unsample.errors import DesignError, InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own warnings
SAMPLED = 25


@pytest.fixture(scope="module")
def data():
    need_library("lenskit")
    return held_out()


@pytest.fixture(scope="module")
def train(data):
    import pandas as pd
    from lenskit.data import from_interactions_df

    users, items = data.pairs()
    return from_interactions_df(pd.DataFrame({"user_id": users + 1000, "item_id": items + 5000}))


@pytest.fixture(scope="module")
def test(data):
    return collection({1000 + u: [5000 + item] for u, item in enumerate(data.target)})


@pytest.fixture(scope="module", params=["als", "knn"])
def pipeline(request, train):
    from lenskit.als import ImplicitMFScorer
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import topn_pipeline

    scorers = {
        "als": lambda: ImplicitMFScorer(embedding_size=8, epochs=3),
        "knn": lambda: ItemKNNScorer(max_nbrs=20, feedback="implicit"),
    }
    made = topn_pipeline(scorers[request.param]())
    made.train(train)
    return made


def collection(lists):
    from lenskit.data import ItemList, ItemListCollection

    return ItemListCollection.from_dict(
        {user: ItemList(np.asarray(items)) for user, items in lists.items()}, key="user_id"
    )


def test_a_task_ranks_first_what_lenskit_recommends(pipeline, train, test, data):
    import lenskit as library

    task = lenskit.task(pipeline, train, test)
    users = list(range(1000, 1000 + len(data.target)))
    lists = library.batch.recommend(pipeline, users, n=10, n_jobs=1)
    hits = np.mean([5000 + data.target[key.user_id - 1000] in one.ids() for key, one in lists])
    assert evaluate(task)["Recall@10"].value == pytest.approx(hits, abs=1 / len(users))
    exact, certified = (
        evaluate(task, design)["Recall@10"].value for design in ("exact", "certified")
    )
    assert exact == pytest.approx(certified)


def test_scored_lists_give_the_ranks_that_a_loop_finds(pipeline, test, data):
    import lenskit as library

    rng = np.random.default_rng(0)
    lists = {
        1000 + user: 5000 + np.append(data.draw(user, SAMPLED, rng), target)
        for user, target in enumerate(data.target)
    }
    scored = library.batch.score(pipeline, collection(lists), n_jobs=1)
    items = {1000 + user: data.catalogue(user) for user in range(len(data.target))}
    best = lenskit.targets(scored, test, items=items, sampled=SAMPLED, ties="optimistic")
    wanted = {}
    for key, one in scored:
        values = dict(zip(one.ids().tolist(), np.nan_to_num(one.scores(), nan=-1e9), strict=True))
        own = values[5000 + data.target[key.user_id - 1000]]
        wanted[key.user_id] = 1 + sum(value > own for value in values.values())
    assert dict(zip(best.users.tolist(), best.ranks.tolist(), strict=True)) == wanted
    assert best.items.tolist() == [items[user] for user in best.users.tolist()]
    found = unsample.estimate(best.counts, metrics="Recall@20", resamples=0)
    assert 0 <= found["Recall@20"].value <= 1


def test_bad_input_gets_one_clear_message(pipeline, train, test):
    with pytest.raises(InputError, match=r"scored must be an ItemListCollection .* got dict"):
        lenskit.targets({}, test, items=50)
    with pytest.raises(InputError, match="scored must hold lists with scores, got none for 1000"):
        lenskit.targets(test, test, items=50)
    with pytest.raises(InputError, match="test must hold at least one item list"):
        lenskit.task(pipeline, train, collection({}))
    with pytest.raises(InputError, match=r"each item of test must be known .* such as 7"):
        lenskit.task(pipeline, train, collection({1000: [7]}))
    with pytest.raises(InputError, match=r"each user of test must be known .* such as 3"):
        lenskit.task(pipeline, train, collection({3: [5000]}))
    with pytest.raises(InputError, match="pipeline must be a pipeline of lenskit, got str"):
        lenskit.task("ALS", train, test)
    with pytest.raises(InputError, match="train must be a dataset of lenskit"):
        lenskit.task(pipeline, test, test)


def test_lists_that_lack_a_target_or_have_another_length_are_refused(pipeline, test):
    import lenskit as library

    scored = library.batch.score(pipeline, collection({1000: [5000, 5001, 5002]}), n_jobs=1)
    one = collection({1000: [5001]})
    with pytest.raises(DesignError, match=r"scored must hold sampled = 99 items .* got 2"):
        lenskit.targets(scored, one, items=50, sampled=99)
    with pytest.raises(InputError, match="scored must hold every target, got"):
        lenskit.targets(scored, test, items=50)
