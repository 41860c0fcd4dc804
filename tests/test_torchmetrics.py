"""The metric for training loops: batches add up to the counts, over processes too."""

import numpy as np
import pytest

import unsample
from tests.libraries import need_library
from unsample.errors import InputError
from unsample.evidence import RankCounts


@pytest.fixture(scope="module")
def torch():
    need_library("torchmetrics")
    import torch

    return torch


@pytest.fixture
def build(torch):
    from unsample.adapters.torchmetrics import EstimatedMetrics

    def make(**options):
        return EstimatedMetrics(items=400, sampled=9, metrics=["Recall@50", "NDCG@50"], **options)

    return make


@pytest.fixture(scope="module")
def scores():
    return np.random.default_rng(0).integers(0, 8, (300, 10)).astype(np.float32)


@pytest.mark.parametrize("ties", ["optimistic", "pessimistic"])
def test_batches_add_up_to_the_ranks_of_all_rows(torch, build, scores, ties):
    metric, elsewhere = build(ties=ties), build(ties=ties)
    for number, batch in enumerate(np.array_split(scores, 7)):
        (elsewhere if number % 2 else metric).update(torch.from_numpy(batch))
    metric.merge_state(elsewhere)  # as states of several processes are
    beats = np.greater if ties == "optimistic" else np.greater_equal
    ranks = 1 + beats(scores[:, 1:], scores[:, :1]).sum(axis=1)
    expected = RankCounts.from_ranks(ranks, items=400, sampled=9)
    assert metric.counts() == expected
    wanted = unsample.estimate(expected, metrics=["Recall@50", "NDCG@50"])
    computed = {name: float(value) for name, value in metric.compute().items()}
    assert computed == pytest.approx({name: wanted[name].value for name in wanted}, rel=1e-6)


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_it_lives_in_a_collection_that_is_reset(torch, build, scores):
    from torchmetrics import MetricCollection

    collection = MetricCollection({"valid": build()})
    assert all(np.isnan(float(value)) for value in collection.compute().values())
    collection.update(torch.from_numpy(scores))
    collection.update(torch.from_numpy(scores[:0]))
    assert sorted(collection.compute()) == ["NDCG@50", "Recall@50"]
    assert collection["valid"].counts().total == 300
    collection.reset()
    assert int(collection["valid"].histogram.sum()) == 0


def test_bad_batches(torch, build):
    metric, nan = build(), float("nan")
    for batch, words in (
        (torch.zeros(3, 9), r"sampled \+ 1 = 10 columns"),
        (torch.zeros(10), "got shape"),
        (torch.full((3, 10), nan), "must not be NaN"),
    ):
        with pytest.raises(InputError, match=words):
            metric.update(batch)
    with pytest.raises(InputError, match="ties must be one of random, optimistic, pessimistic"):
        build(ties="realistic")
