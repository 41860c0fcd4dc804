"""The mean rank, which has no K, is better when lower, and may be any number."""

import numpy as np
import pytest

import unsample
from unsample import metrics
from unsample.errors import MetricError


@pytest.fixture(scope="module")
def graph():
    """Ranks of questions with catalogues of their own, as filtering leaves them."""
    rng = np.random.default_rng(0)
    items = rng.integers(300, 400, 600)
    return np.minimum(rng.geometric(0.03, 600), items), items


def test_it_is_the_mean_of_ranks_and_says_what_the_auc_says(graph):
    ranks, items = graph
    assert unsample.exact(ranks, items=items, metrics="MR")["MR"].value == ranks.mean()
    found = unsample.exact(ranks, items=400, metrics=["MR", "AUC"])
    assert found["AUC"].value == pytest.approx((400 - found["MR"].value) / 399)


def test_sampled_ranks_tell_the_mean_rank_without_bias(graph):
    ranks, items = graph
    seen = [
        unsample.estimate(
            unsample.designs.Fixed(20).simulate(ranks, items=items, rng=seed),
            metrics="MR", prior=None,
        )["MR"]
        for seed in range(30)
    ]  # fmt: skip
    values = np.array([each.value for each in seen])
    assert abs(values.mean() - ranks.mean()) < 4.0 * values.std() / np.sqrt(len(values))
    of_these = [each.interval(population=False) for each in seen]
    covered = np.mean([low <= ranks.mean() <= high for low, high in of_these])
    assert covered >= 0.85


def test_what_has_no_meaning_is_refused(graph):
    ranks, items = graph
    with pytest.raises(MetricError, match="K of MR must be left out, got 10"):
        metrics.parse("MR@10")
    models = {name: unsample.designs.Fixed(50).simulate(ranks, items=items) for name in "AB"}
    with pytest.raises(MetricError, match="use AUC"):
        unsample.compare(models, metrics="MR")
    users, catalogue = np.random.default_rng(1).normal(size=(2, 20, 4))
    scorers = dict.fromkeys("AB", (users, catalogue))
    with pytest.raises(MetricError, match="use AUC"):
        unsample.evaluate(scorers, (range(20), range(20)), items=20, metrics="MR")
