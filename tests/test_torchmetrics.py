"""The metric for training loops: batches add up to the counts, over processes too."""

import subprocess
import sys
import textwrap

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
    metric = build(ties=ties)
    for batch in np.array_split(scores, 7):
        metric.update(torch.from_numpy(batch))
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


PROCESS = """
    import sys, torch, torch.distributed as dist
    from unsample.adapters.torchmetrics import EstimatedMetrics

    rank, address = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    metric = EstimatedMetrics(items=400, sampled=9, metrics=["Recall@50"])
    for place in [1, 2, 3] if rank else [1, 10]:
        metric.update(torch.tensor([[0.5] + [1.0] * (place - 1) + [0.0] * (10 - place)]))
    value = float(metric.compute()["Recall@50"])
    print(value, metric.counts().total)
    dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:5 users are few")
def test_processes_of_a_distributed_run_agree_on_the_whole(torch, tmp_path):
    script = tmp_path / "process.py"
    script.write_text(textwrap.dedent(PROCESS))
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), f"file://{tmp_path}/meet"],
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    lines = [process.communicate(timeout=120)[0].split() for process in started]
    whole = RankCounts.from_ranks([1, 2, 3, 1, 10], items=400, sampled=9)
    expected = unsample.estimate(whole, metrics="Recall@50")["Recall@50"].value
    assert [float(line[0]) for line in lines] == pytest.approx([expected] * 2, rel=1e-6)
    # After `compute` each process holds its own ranks again.
    assert [line[1] for line in lines] == ["2", "3"]
