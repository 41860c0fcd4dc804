"""Mean rank and metrics adjusted for chance: their definitions, and what is known of them."""

import numpy as np
import pytest

import unsample
from tests import reference
from unsample import metrics
from unsample.errors import MetricError

ASKED = ["Hits@10", "AHits@10", "MRR", "AMRR", "MR", "AMRI", "AMR"]
#: The metric that each adjusts.
BASE = {"AHits@10": "Hits@10", "AMRR": "MRR", "AMRI": "MR", "AMR": "MR"}


@pytest.fixture(scope="module")
def graph():
    """Ranks of questions with catalogues of their own, as filtering leaves them."""
    rng = np.random.default_rng(0)
    items = rng.integers(300, 400, 600)
    return np.minimum(rng.geometric(0.03, 600), items), items


def test_adjusted_metrics_are_those_of_their_definitions(graph):
    ranks, items = graph
    found = unsample.exact(ranks, items=items, metrics=ASKED)
    assert list(found) == ASKED
    assert found["MR"].value == pytest.approx(ranks.mean())
    for name in BASE:
        metric = metrics.parse(name)
        wanted = reference.adjusted_for_chance(
            metric.family.name, metric.k, ranks.tolist(), items.tolist()
        )
        assert found[name].value == pytest.approx(wanted, rel=1e-12)


def test_chance_is_nothing_and_the_best_is_all():
    every = np.arange(1, 101)
    asked = ["AHits@10", "AMRR", "AMRI"]
    chance = unsample.exact(every, items=100, metrics=[*asked, "AMR"])
    assert [chance[name].value for name in asked] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert chance["AMR"].value == pytest.approx(1.0)
    best = unsample.exact([1, 1, 1], items=100, metrics=asked)
    assert [best[name].value for name in asked] == pytest.approx([1.0, 1.0, 1.0])
    worst = unsample.exact([100, 100], items=100, metrics="AMRI")
    assert worst["AMRI"].value == pytest.approx(-1.0)


def test_of_equal_catalogues_the_index_of_the_mean_rank_is_the_auc(graph):
    found = unsample.exact(graph[0], items=400, metrics=["AMRI", "AUC"])
    assert found["AMRI"].value == pytest.approx(2.0 * found["AUC"].value - 1.0)


def test_all_that_is_known_of_a_metric_moves_with_it(graph):
    ranks, items = graph
    sampled = unsample.designs.Fixed(50).simulate(ranks, items=items, rng=0)
    found = unsample.estimate(sampled, metrics=ASKED, candidates="unseen")
    full = unsample.exact(ranks, items=items, metrics=ASKED)
    for name, base in BASE.items():
        metric, entry, plain = metrics.parse(name), found[name], found[base]
        factor, offset = metric.family.chance.scale(metric.k, items)
        assert entry.value == pytest.approx(factor * plain.value + offset)
        assert entry.standard_error == pytest.approx(abs(factor) * plain.standard_error)
        for ends in ("interval", "bounds", "raw_interval", "sampling_interval"):
            moved = sorted(factor * end + offset for end in getattr(plain, ends)())
            assert getattr(entry, ends)() == pytest.approx(moved)
        low, high = entry.interval()
        assert low <= full[name].value <= high
        assert (entry.resolved, entry.credible) == (plain.resolved, plain.credible)
        assert entry.widened == plain.widened
    assert "AMRI" in str(found)


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


@pytest.mark.parametrize("design", ["exact", "certified", "guided"])
def test_evaluations_adjust_too(design):
    users, items = np.random.default_rng(1).normal(size=(2, 200, 6))
    targets = np.arange(200), np.arange(200)
    found = unsample.evaluate(
        (users, items), targets, items=200, design=design, metrics=["AHits@10", "Hits@10"],
        budget=6_000 if design == "guided" else None, filtered=True,
    )  # fmt: skip
    wanted = (found["Hits@10"].value - 0.05) / 0.95
    assert found["AHits@10"].value == pytest.approx(wanted)
    assert found.drawn == (design == "guided")
    alone = unsample.evaluate(
        (users, items), targets, items=200, design="exact", metrics="AHits@10"
    )
    assert list(alone) == ["AHits@10"]


def test_pages_show_adjusted_metrics(graph, tmp_path):
    ranks, items = graph
    found = unsample.exact(ranks, items=items, metrics=["AHits@10", "AMRI"])
    assert "AHits@10" in found.to_html(tmp_path / "page.html").read_text()
    assert [row["metric"] for row in found.rows()] == ["AHits@10", "AMRI"]


def test_what_has_no_meaning_is_refused(graph):
    ranks, items = graph
    with pytest.raises(MetricError, match="K of MR must be left out, got 10"):
        metrics.parse("MR@10")
    with pytest.raises(MetricError, match=r"AMRR must be asked of exact, .* use MRR here"):
        metrics.AMRR().weights([1, 2], 100)
    with pytest.raises(MetricError, match="must leave room above chance"):
        unsample.exact([1, 2], items=5, metrics="AHits@5")
    with pytest.raises(MetricError, match="one target for each user, got users with several"):
        unsample.exact([1, 2, 3], items=50, users=[0, 0, 1], metrics="AMRI")
    apart = unsample.exact([1, 2, 3], items=50, users=[0, 0, 1], metrics="AMRI", filtered=True)
    assert apart["AMRI"].value == pytest.approx(1.0 - 1.0 / 24.5)
    models = {name: unsample.designs.Fixed(50).simulate(ranks, items=items) for name in "AB"}
    for name, message in (("MR", "use AUC"), ("AMR", "use AUC"), ("AMRR", "use MRR")):
        with pytest.raises(MetricError, match=message):
            unsample.compare(models, metrics=name)
