"""Several models in one call: the same targets and draws, one budget, and paired differences."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import unsample
from tests.test_evaluate import METRICS, Counting, World
from unsample.designs import Guided, run
from unsample.errors import InputError, UnsampleWarning
from unsample.metrics import parse_all
from unsample.questions.compare.result import Comparison
from unsample.questions.evaluate.ask import evaluate
from unsample.questions.evaluate.result import Evaluation
from unsample.scoring import Candidates, as_scorer

#: Each design, with a budget for two models.
DESIGNS = {"exact": 120_000, "certified": 80_000, "fixed": 10_001, "guided": None}


@pytest.fixture(scope="module")
def world():
    return World(users=150, items=400)


def models(world):
    """Return the model of a world and one like it."""
    other = copy.copy(world)
    other.left = world.left + np.random.default_rng(3).normal(scale=0.4, size=world.left.shape)
    return {"A": Counting(world), "B": Counting(other)}


# Made-up ranks may have shapes that no real ones have.
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize(("design", "budget"), DESIGNS.items())
def test_models_together_are_models_alone_compared(world, design, budget):
    both = models(world)
    result = world.run(design, budget=budget, scorer=both)
    assert isinstance(result, Comparison)
    assert result.models == ("A", "B")
    assert {name: model.asked for name, model in both.items()} == result.scored
    assert budget is None or sum(result.scored.values()) <= budget
    found = result.estimates
    for name, alone in models(world).items():
        assert isinstance(found[name], Evaluation)
        solo = world.run(design, budget=None if budget is None else budget // 2, scorer=alone)
        assert found[name].design == solo.design
        for metric in METRICS:
            one, two = found[name][metric], solo[metric]
            assert one.value == two.value
            assert one.interval() == two.interval()
    again = unsample.compare(found, metrics=METRICS)
    assert again.differences == result.differences
    assert result.paired
    assert result.winner("NDCG@10") in {None, "A"}
    assert f"{sum(result.scored.values()):,} in all" in str(result)


def test_all_models_rank_the_same_users_in_full(world):
    candidates = Candidates.check(world.targets, world.items, world.exclude)
    scorers = [as_scorer(model, world.items) for model in models(world).values()]
    a, b = run(Guided(), scorers, candidates, metrics=parse_all(METRICS), budget=16_001)
    assert np.array_equal(a.notes.draw_order, b.notes.draw_order)
    assert (a.notes.draw_order > 0).any()


def test_guided_results_are_paired_with_each_other_and_with_certified_ones(world):
    for seeds in ((0, 0), (0, 1)):
        found = {
            name: world.run("guided", scorer=model, budget=8000, rng=seed)
            for (name, model), seed in zip(models(world).items(), seeds, strict=True)
        }
        paired = unsample.compare(found, metrics="NDCG@10")
        assert paired.paired
        assert paired.pairing == "user by user"
        assert not paired.warnings
        alone = [np.ptp(each["NDCG@10"].interval(0.9)) for each in found.values()]
        assert np.ptp(paired.differences[0].interval(0.9)) < 1.19 * np.hypot(*alone)
    found["B"] = world.run("certified", scorer=models(world)["B"])
    mixed = unsample.compare(found, metrics="NDCG@10")
    assert mixed.paired
    truth = world.run("exact")["NDCG@10"].value - found["B"]["NDCG@10"].value
    assert mixed.differences[0].low < truth < mixed.differences[0].high


def test_few_drawn_users_leave_the_difference_to_limits_that_hold_anyway(world):
    with pytest.warns(UnsampleWarning, match="not resolved by the budget"):
        result = world.run("guided", scorer=models(world), budget=5000)
    assert any("not resolved" in text for text in result.warnings)
    assert {result.estimates[name]["NDCG@10"].source for name in "AB"} == {"bounds"}
    one, two = (result.estimates[name]["NDCG@10"].interval(0.95) for name in "AB")
    pair = result.difference("A", "B", "NDCG@10")
    assert (pair.low, pair.high) == (one[0] - two[1], one[1] - two[0])
    assert pair.probability is None


@pytest.mark.filterwarnings("ignore:the models' users do not match")
def test_other_targets_of_the_same_users_are_not_paired(world):
    users, targets = world.targets
    moved = np.where(users == 7, (targets + 1) % world.items, targets)
    options = {"items": world.items, "design": "certified", "metrics": "NDCG@10"}
    found = {
        name: evaluate((world.left, world.right), (users, some), **options)
        for name, some in (("A", targets), ("B", moved))
    }
    result = unsample.compare(found, metrics="NDCG@10")
    assert not result.paired
    assert "other targets for B than for A, such as item" in result.warnings[0]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({}, "map at least two names to their models, got 1 in a dict"),
        ({"": None}, "named by text that is not blank, got ''"),
        ({"B": "nonsense"}, r"scorer must be .* got str \(model 'B'\)"),
        ({"B": (np.ones((150, 2)), np.ones((399, 2)))}, r"399, .* \(model 'B'\)"),
        ({"B": lambda users, items: np.nan * items}, r"must not be NaN.*\(model 'B'\)"),
        ({"B": np.ones((150, 400))}, r"for guided and 300 targets \(of all models\), got 3,000"),
    ],
)
def test_bad_models_are_refused_by_name(world, others, words):
    scorer = {"A": Counting(world), **others}
    with pytest.raises(InputError, match=words):
        world.run("guided", scorer=scorer, budget=3000 if "all models" in words else None)
