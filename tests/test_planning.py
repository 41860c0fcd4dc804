"""Planning: the guess of P(R), what designs would cost, and that evaluations keep to the plan."""

import math
import re

import numpy as np
import pytest

import unsample
from tests.promises import Finding, keep
from unsample import metrics
from unsample.designs import Certified, Exact, Fixed
from unsample.errors import InputError
from unsample.questions.evaluate.ask import estimates_of
from unsample.questions.plan.ask import plan
from unsample.questions.plan.assumed_ranks import draw_ranks, power_law
from unsample.sampling import RankDistribution

ITEMS, K, USERS, BUDGET = 1000, 10, 2000, 200_000
NDCG = metrics.parse("NDCG@10")
NAMES = ["fixed", "guided", "certified"]
#: A pilot without a target at the top.
BOTTOM = RankDistribution.from_ranks([500, 900], items=ITEMS)


@pytest.fixture(scope="module")
def guess() -> RankDistribution:
    return power_law(ITEMS, K, recall=0.1)[0]


@pytest.fixture(scope="module")
def small() -> unsample.Plan:
    return plan(items=ITEMS, users=USERS, budget=BUDGET, odds=1.0)


@pytest.mark.parametrize("name", NAMES)
def test_an_evaluation_costs_what_was_planned_and_is_as_sure(small, guess, name):
    outcome = next(each for each in small.outcomes if each.name == name)
    scale = np.random.default_rng(9).normal(0.0, 1e6, USERS).round()
    widths, costs = [], []
    for seed in range(6):
        ranks = draw_ranks(guess, USERS, rng=np.random.default_rng(seed))
        some = np.arange(outcome.users)
        found = unsample.evaluate(
            # Item i has the rank i + 1. Own scores tell nothing, for users have their own scales.
            lambda users, items: scale[users] - items,
            (some, ranks[some] - 1),
            items=ITEMS,
            design=outcome.design,
            budget=small.budget,
            metrics="NDCG@10",
            rng=seed,
        )
        assert found.scored <= BUDGET
        costs.append(found.scored)
        # Exact designs know some users, who were drawn from all.
        drawn = outcome.design.exact
        low, high = found["NDCG@10"].interval(population=drawn)
        left = 1.0 - outcome.users / USERS if drawn else 1.0
        widths.append((high - low) / 2.0 * math.sqrt(left))
    assert np.mean(costs) == pytest.approx(outcome.cost, rel=0.05)
    assert np.median(widths) == pytest.approx(outcome.half_width, rel=0.15)


def test_designs_are_compared_within_the_budget(small, guess):
    assert guess.expect("Recall@10") == pytest.approx(0.1, rel=1e-9)
    assert small.value == pytest.approx(guess.expect(NDCG))
    assert [outcome.name for outcome in small.outcomes] == NAMES
    assert all(0.5 * BUDGET < outcome.cost <= BUDGET for outcome in small.outcomes)
    fixed, _, certified = small.outcomes
    assert (fixed.design, certified.design) == (Fixed(99), Certified(10))
    assert small.best.half_width == min(outcome.half_width for outcome in small.outcomes)
    assert small.recommendation.startswith(f"Use design='{small.best.name}'")


def test_full_and_tiny_budgets_and_metrics_without_k_work():
    everything = plan(items=200, users=100, metrics="Recall@5", budget=200 * 100)
    assert everything.best.half_width == 0.0
    without = plan(items=200, users=100, metrics="MRR", budget=10_000).outcomes[-1]
    assert (without.design, without.users) == (Exact(), 50)
    tiny = plan(items=10**6, users=100, budget=10_000, odds=2.0)
    assert [row["design"] for row in tiny.rows()] == ["fixed"]


def test_without_a_budget_each_design_has_the_cost_that_it_needs():
    result = plan(items=ITEMS, users=5000, error=0.1)
    for outcome in result.outcomes:
        assert outcome.enough
        # A draw that is settled by a pilot is on the safe side.
        least = 0.4 if outcome.name == "guided" else 0.85
        assert least < outcome.half_width / (result.error * result.value) <= 1.1
    assert result.best.cost == min(outcome.cost for outcome in result.outcomes)
    assert result.best.cost <= result.budget
    assert plan(items=ITEMS, users=5000, error=0.2).budget < result.budget
    top = plan(items=10**6, users=10**5, metrics="Recall@20000")
    assert (top.best.name, top.best.half_width <= top.error * top.value) == ("fixed", True)


def test_the_smallest_difference_is_where_compare_begins_to_tell(guess):
    rng, users = np.random.default_rng(8), 1500
    widths = []
    for _ in range(5):
        models = {name: draw_ranks(guess, users, rng=rng) for name in "AB"}
        negatives = unsample.Negatives(replacement=False)
        design = {"items": ITEMS, "sampled": ITEMS - 1, "negatives": negatives}
        found = unsample.compare(models, metrics=NDCG, prior=None, **design)
        both = found.difference("A", "B", NDCG)
        widths.append((both.high - both.low) / 2.0)
    full = plan(items=ITEMS, users=users, budget=ITEMS * users)
    assert full.best.smallest_difference == pytest.approx(np.mean(widths), rel=0.05)


def test_a_difference_that_is_sought_is_told_apart():
    result = plan(items=ITEMS, users=USERS, difference="50%")
    assert result.difference == pytest.approx(result.value / 2.0)
    assert result.best.smallest_difference <= result.difference
    told = re.search(
        r"As guessed, it tells apart .* differ by (\S+) or more", result.recommendation
    )
    assert result.best.smallest_difference <= float(told[1])
    same = plan(items=ITEMS, users=USERS, difference=result.difference)
    assert same.best == result.best


def test_too_few_users_for_a_difference_are_told():
    with pytest.raises(InputError, match=r"2,000 users tell apart, .* takes about") as no:
        plan(items=ITEMS, users=USERS, difference=0.01)
    needed = int(str(no.value).split()[-2].replace(",", ""))
    assert plan(items=ITEMS, users=needed, difference=0.01).outcomes[-1].users == needed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": 10**9}, "at most 999999999"),
        ({"metrics": ["NDCG@10", "NDCG@20"]}, "must be one metric to plan for"),
        ({"difference": "much"}, "such as 0.01, or '5%' of it"),
        ({"difference": 0.1, "error": 0.1}, "error must be left out"),
        ({"budget": 1500}, "budget must be an integer of at least 2000"),
        ({"recall": 0.0001}, "recall must be in 0.01"),
        ({"metrics": "NDCG@1000"}, "K must be below items = 1000 where no pilot"),
        ({"metrics": "AUC"}, "which a small sample shows without bias"),
        ({"pilot": [1, 5]}, "pilot must be a RankDistribution, got list"),
        ({"pilot": BOTTOM}, "some targets in the top 10"),
        ({"pilot": RankDistribution.from_ranks([1], items=50)}, "among 50 items"),
    ],
)
def test_bad_input_is_refused_with_a_reason(options, message):
    with pytest.raises(InputError, match=message):
        plan(**({"items": ITEMS, "users": 1000} | options))


# -- promises -------------------------------------------------------------------------------------


@pytest.mark.validity
@pytest.mark.parametrize("recommender", ["ease", "neumf", "itemknn"])
def test_the_width_expected_is_the_width_met(recommender, ledger):
    """A plan from exact ranks as pilot, against real evaluations of other users like these."""
    ranks = unsample.lab.load_ranks("ml-1m", recommender, candidates="all").ranks
    metric = metrics.parse("Recall@50")
    given = {"items": 3706, "users": 2000, "metrics": metric, "protocol": "all"}
    pilot = RankDistribution.from_ranks(ranks, items=3706)
    result = plan(**given, budget=2000 * 100, pilot=pilot, odds=10.0)
    rng, found = np.random.default_rng(12), []
    for outcome in result.outcomes[:2]:
        widths = []
        for _ in range(40):
            drawn = rng.choice(ranks, size=2000)
            options = {"items": 3706, "budget": result.budget, "metrics": metric, "rng": rng}
            made = estimates_of(
                outcome.design.simulate(drawn, odds=10.0, **options), (metric,), protocol="all"
            )
            low, high = made[metric].interval(population=False)
            widths.append((high - low) / 2.0)
        ratio = abs(outcome.half_width / float(np.median(widths)) - 1.0)
        promise = "a plan expects the width that is met"
        where = f"{recommender}, {outcome.name}"
        found.append(Finding(promise, where, "half-width off by", ratio, 0.25, False, 40))
    keep(ledger(found))
