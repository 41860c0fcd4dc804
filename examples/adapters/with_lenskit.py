"""LensKit: from scored item lists, or a trained pipeline, to metrics on the whole catalogue."""

import lenskit.batch
import numpy as np
import pandas as pd
from lenskit.als import ImplicitMFScorer
from lenskit.data import ItemList, ItemListCollection, from_interactions_df
from lenskit.metrics import NDCG, Recall, RunAnalysis
from lenskit.pipeline import topn_pipeline

import unsample
from unsample.adapters import lenskit as adapter

SAMPLED = 99


def their_objects():
    """Train a pipeline and score 99 drawn items beside each test item, all with LensKit."""
    rng = np.random.default_rng(0)
    data = unsample.lab.datasets.synthetic(400, 1000, rng=0)
    split = unsample.lab.datasets.leave_random_out(data, rng=0)
    train = from_interactions_df(
        pd.DataFrame({"user_id": split.train.user, "item_id": split.train.item})
    )
    pipeline = topn_pipeline(ImplicitMFScorer(embedding_size=16, epochs=5))
    pipeline.train(train)
    items, seen = np.asarray(train.items.ids()), split.train.matrix()
    test, lists = {}, {}
    for user, item in zip(split.target_user.tolist(), split.target_item.tolist(), strict=True):
        if item in items:
            others = np.setdiff1d(
                items, [item, *seen.indices[seen.indptr[user] : seen.indptr[user + 1]]]
            )
            test[user] = ItemList([item])
            lists[user] = ItemList(np.append(rng.choice(others, SAMPLED, replace=False), item))
    tests, candidates = (ItemListCollection.from_dict(one, key="user_id") for one in (test, lists))
    return pipeline, train, tests, lenskit.batch.score(pipeline, candidates, n_jobs=1)


def full_catalogue(train, test, scored):
    """Tell the metrics among all items from scored lists of sampled ones."""
    stats = train.user_stats()["item_count"]
    items = {user: train.item_count - count for user, count in stats.items()}
    found = adapter.targets(scored, test, items=items, sampled=SAMPLED)
    return unsample.estimate(found.counts, metrics=["Recall@50", "NDCG@50"], candidates="unseen")


def measured(train, test, scored):
    """Let LensKit's own analysis tell them, beside its own metrics."""
    stats = train.user_stats()["item_count"]
    items = {user: train.item_count - count for user, count in stats.items()}
    analysis = RunAnalysis(NDCG(50), Recall(50), *adapter.full("NDCG@50", items=items))
    for metric in adapter.full(Recall(50), items=items):
        analysis.add_metric(metric)
    # LensKit's own metrics want lists in order.
    ranked = {key.user_id: listed.top_n() for key, listed in scored}
    ranked = ItemListCollection.from_dict(ranked, key="user_id")
    return analysis.measure(ranked, test).global_metrics()  # NDCG@50_full, NDCG@50_low, ...


def ask_the_pipeline(pipeline, train, test):
    """Leave sampled lists aside: ask the pipeline about few items, and know the exact metrics."""
    task = adapter.task(pipeline, train, test)
    return unsample.evaluate(
        task.scorer,
        task.targets,
        items=task.items,
        exclude=task.exclude,
        design="certified",
        metrics=["Recall@50", "NDCG@50"],
    )


def main():
    """Return the results, one for each way to the whole catalogue."""
    pipeline, train, test, scored = their_objects()
    numbers = measured(train, test, scored)
    return [
        full_catalogue(train, test, scored),
        {"Recall@50": numbers["Recall@50_full"], "NDCG@50": numbers["NDCG@50_full"]},
        ask_the_pipeline(pipeline, train, test),
    ]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
