"""Planning: the guess of P(R), what designs would cost, and that evaluations keep to the plan."""

import json
import math

import numpy as np
import pytest

import unsample
from tests.promises import Finding, keep
from unsample import metrics
from unsample.answers import certified_targets, plan
from unsample.answers._guess import draw_ranks, from_pilot, power_law
from unsample.answers._planner import Asked, Planner
from unsample.designs import DESIGNS, Certified, Exact, Fixed, Guide
from unsample.errors import DesignError, FileError, InputError, MetricError, RankError
from unsample.evidence import RankCounts
from unsample.law import Law, RankDistribution

ITEMS, K, USERS, BUDGET = 1000, 10, 2000, 200_000
NDCG = metrics.parse("NDCG@10")
NAMES = ["fixed", "certified"]


@pytest.fixture(scope="module")
def guess() -> RankDistribution:
    return power_law(ITEMS, K, 0.1)[0]


@pytest.fixture(scope="module")
def small() -> unsample.Plan:
    return plan(items=ITEMS, users=USERS, budget=BUDGET, repeats=40)


def _planner(
    guess: RankDistribution, users: int = 1000, repeats: int = 100, seed: int = 3
) -> Planner:
    return Planner(Asked(ITEMS, NDCG, users), guess, repeats, np.random.SeedSequence(seed), 0.05)


# -- the guess ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("items", "k"), [(2, 1), (3, 2), (17, 10), (50, 10), (10**6, 10)])
def test_the_default_guess_is_possible_in_every_catalogue(items, k):
    found = power_law(items, k, None)[0].expect(f"Recall@{k}")
    assert max(0.1, k / items) <= found + 1e-9 < 1.0


@pytest.mark.parametrize(
    ("items", "k", "recall"), [(100, 5, 0.3), (3706, 10, 0.1), (10**7, 50, 0.02)]
)
def test_a_power_law_has_the_recall_asked_for(items, k, recall):
    guess = power_law(items, k, recall)[0]
    assert guess.expect(f"Recall@{k}") == pytest.approx(recall, rel=1e-9)
    assert guess.mass.sum() == pytest.approx(1.0)


def test_ranks_drawn_follow_the_guess(guess):
    ranks = draw_ranks(guess, (200_000,), np.random.default_rng(1))
    for name in ("Recall@1", "Recall@10", "NDCG@100", "AUC"):
        exact = unsample.exact(ranks, items=ITEMS, metrics=name, resamples=0)[name].value
        assert exact == pytest.approx(guess.expect(name), abs=0.003)


def test_pilots_of_every_kind_agree():
    rng = np.random.default_rng(2)
    full = np.ceil(ITEMS * rng.beta(0.4, 2.0, size=20_000)).astype(int).clip(1, ITEMS)
    drawn = Law(ITEMS, 300).draw(full, rng=rng)
    pilots = (
        full,
        RankDistribution.from_ranks(full, items=ITEMS),
        RankCounts.from_ranks(drawn, items=ITEMS, sampled=300),
    )
    values = [from_pilot(each, ITEMS, K)[0].expect("NDCG@10") for each in pilots]
    exact = unsample.exact(full, items=ITEMS, metrics="NDCG@10", resamples=0)["NDCG@10"].value
    assert values[:2] == pytest.approx([exact, exact], rel=1e-9)
    assert values[2] == pytest.approx(exact, rel=0.05)


# -- what is planned is what is done --------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_evaluation_asks_for_what_was_planned_and_errs_no_more(small, guess, name):
    outcome = next(each for each in small.outcomes if each.name == name)
    # Here one order of items suits everyone, and would be learned; plans know no guide.
    nothing = Guide(lists=np.empty((0, 0), dtype=int), listed=np.empty(0, dtype=int))
    errors, costs = [], []
    for seed in range(6):
        ranks = draw_ranks(guess, (USERS,), np.random.default_rng(seed))
        some = np.arange(outcome.users)
        found = unsample.evaluate(
            lambda users, items: -items,  # so item i has the rank i + 1
            (some, ranks[some] - 1),
            items=ITEMS,
            design=outcome.design,
            budget=small.budget,
            guide=nothing if outcome.design.guided else None,
            metrics="NDCG@10",
            resamples=0,
            rng=seed,
        )
        assert found.scored <= BUDGET
        assert outcome.method in (None, found.methods[0])
        costs.append(found.scored)
        errors.append(found["NDCG@10"].value - NDCG.weights(ranks, ITEMS).mean())
    assert np.mean(costs) == pytest.approx(outcome.cost, rel=0.05)
    rmse = math.sqrt(np.mean(np.square(errors)))
    assert 0.5 * outcome.rmse < rmse < 1.7 * outcome.rmse


def test_designs_are_compared_at_the_same_cost(small):
    assert [outcome.name for outcome in small.outcomes] == NAMES
    assert set(NAMES) <= set(DESIGNS)
    assert small.budget == BUDGET
    for outcome in small.outcomes:
        # Certified evaluations may take longer by chance.
        assert 0.5 * BUDGET < outcome.cost <= BUDGET
        assert outcome.rmse == pytest.approx(math.hypot(outcome.bias, outcome.sd))
    fixed, certified = small.outcomes
    assert fixed.design == Fixed(98, replacement=False)
    assert certified.design == Certified(10)
    assert fixed.method == "auto"
    assert small.recommendation.startswith(f"Use design={small.best.name!r}")


def test_the_error_of_fewer_users_is_that_of_drawing_them(small, guess):
    outcome = small.outcomes[-1]
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(1000):
        weights = NDCG.weights(draw_ranks(guess, (USERS,), rng), ITEMS)
        errors.append(weights[: outcome.users].mean() - weights.mean())
    assert outcome.sd == pytest.approx(np.std(errors), rel=0.1)


def test_simplified_counts_estimate_as_mle_does(guess):
    """Rounded ranks, thinned samples and a coarse grid change an estimate far less than chance."""
    planner = _planner(guess, repeats=6)
    found = [
        Fixed(400, replacement=False).simulate(row, items=ITEMS, rng=4) for row in planner._ranks
    ]
    ours = planner._estimates(found, "mle")
    theirs = [
        unsample.estimate(each, metrics=NDCG, method="mle", resamples=0)["NDCG@10"].value
        for each in found
    ]
    assert ours == pytest.approx(theirs, rel=0.04)


def test_errors_scale_with_the_number_of_users(guess):
    few, many, scaled = (
        _planner(guess, users, 60, seed).within(100 * users)[0]
        for users, seed in ((250, 1), (1000, 2), (4000, 2))
    )
    assert few.sd / many.sd == pytest.approx(2.0, rel=0.3)
    assert many.sd / scaled.sd == pytest.approx(2.0, rel=0.3)


def test_huge_catalogues_full_samples_and_metrics_without_k_work():
    result = plan(items=10**8, users=100, repeats=3, budget=10**8)
    assert all(math.isfinite(outcome.rmse) for outcome in result.curves)
    everything = plan(items=200, users=100, metrics="Recall@5", repeats=3, budget=200 * 100)
    assert everything.best.rmse < 1e-9
    area = plan(items=200, users=100, metrics="AUC", repeats=3, budget=10_000)
    assert area.outcomes[-1].design == Exact()
    assert area.outcomes[-1].users == 50


def test_a_guide_that_is_stated_is_planned_for_and_runs(guess):
    result = plan(items=ITEMS, users=USERS, budget=BUDGET, repeats=10, odds=5.0)
    assert [row["design"] for row in result.rows()] == ["fixed", "guided", "certified"]
    best = result.best
    assert (best.name, best.method, best.bias) == ("guided", None, 0.0)
    assert "design='guided'" in result.recommendation
    assert best.cost <= BUDGET
    # Other draws of other users err as planned.
    rng, errors = np.random.default_rng(1), []
    for ranks in draw_ranks(guess, (25, USERS), rng):
        options = {"items": ITEMS, "budget": result.budget, "rng": rng, "odds": 5.0}
        found = best.design.simulate(ranks, metrics=NDCG, **options)
        value = certified_targets(found, (NDCG,), None, 0, 0)["NDCG@10"].value
        errors.append(value - NDCG.weights(ranks, ITEMS).mean())
    assert np.std(errors) == pytest.approx(best.sd, rel=0.5)
    scores = rng.normal(size=(USERS, ITEMS))
    done = unsample.evaluate(
        lambda users, items: scores[users[:, None], items],
        (np.arange(USERS), rng.integers(ITEMS, size=USERS)),
        items=ITEMS,
        design=best.design,
        budget=result.budget,
        guide=scores.mean(axis=0),
        metrics="NDCG@10",
    )
    assert (done.design, done.scored <= BUDGET) == (best.design, True)
    without = plan(items=ITEMS, users=USERS, metrics="AUC", budget=BUDGET, repeats=3, odds=2.0)
    assert "guided" not in without.needed
    tiny = plan(items=10**6, users=100, budget=10_000, repeats=3, odds=2.0)
    assert "guided" not in [row["design"] for row in tiny.rows()]


# -- the plan -------------------------------------------------------------------------------------


def test_without_a_budget_the_best_design_reaches_the_precision():
    result = plan(items=ITEMS, users=5000, precision=0.03, repeats=10)
    assert result.best.rmse <= 0.03 * result.value
    assert result.best.cost <= result.budget
    assert min(result.needed.values()) == result.needed[result.best.name] <= result.best.cost
    assert plan(items=ITEMS, users=5000, precision=0.2, repeats=10).budget < result.budget


def test_plans_are_repeatable_and_depend_on_the_seed():
    first, same, other = (
        plan(items=200, users=100, budget=5000, repeats=5, rng=rng) for rng in (0, 0, 1)
    )
    assert same.to_dict() == first.to_dict()
    assert other.outcomes[0].sd != first.outcomes[0].sd


def test_results_print_and_travel(small):
    fields = json.loads(small.to_json())
    assert fields["recommended"] == small.best.name
    assert [row["design"] for row in fields["designs"]] == NAMES
    assert fields["designs"][0]["relative_error"] == pytest.approx(
        small.outcomes[0].rmse / small.value
    )
    assert len(small.to_frame("polars")) == len(NAMES)
    text = str(small)
    assert "P(R) falls as R^-" in text
    assert small.recommendation in text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"items": 1}, DesignError, "items must be"),
        ({"items": 10**9}, DesignError, "at most 999999999"),
        ({"metrics": "NDCG@1001"}, MetricError, "at most items = 1000, got NDCG@1001"),
        ({"odds": 0.0}, InputError, "odds must be"),
        ({"metrics": ["NDCG@10", "NDCG@20"]}, MetricError, "must be one metric to plan for"),
        ({"precision": 0.0}, InputError, "precision must be"),
        ({"budget": 1500}, InputError, "budget must be an integer of at least 2000"),
        ({"budget": math.inf}, InputError, "budget must be"),
        ({"recall": 0.0001}, InputError, "recall must be in 0.01"),
        ({"recall": 1.0}, InputError, "recall must be"),
        ({"metrics": "NDCG@1000"}, InputError, "K must be below items = 1000 where no pilot"),
        ({"pilot": []}, RankError, "pilot must hold at least one rank"),
        ({"pilot": [0, 5]}, InputError, "ranks must hold values in 1..1000"),
        ({"pilot": [500, 900]}, InputError, "some targets in the top 10"),
        ({"pilot": RankDistribution.from_ranks([1], items=50)}, InputError, "among 50 items"),
    ],
)
def test_bad_input_is_refused_with_a_reason(options, error, message):
    with pytest.raises(error, match=message):
        plan(**({"items": ITEMS, "users": 1000} | options))


def test_plots_draw_on_the_axes_given(small, tmp_path):
    figure = pytest.importorskip("matplotlib.figure")
    from unsample.pages import plot_plan, write_plot

    axes = figure.Figure().subplots()
    assert plot_plan(small, ax=axes) is axes
    assert {line.get_label() for line in axes.get_lines()} >= set(NAMES)
    write_plot(small, tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text().startswith("<?xml")
    with pytest.raises(FileError, match="pdf, png, svg"):
        write_plot(small, tmp_path / "plan.doc")


# -- promises -------------------------------------------------------------------------------------


@pytest.mark.validity
@pytest.mark.parametrize("recommender", ["ease", "neumf", "itemknn"])
def test_the_error_expected_is_the_error_met(recommender, ledger):
    """A plan from exact ranks as pilot, against real evaluations of other users like these."""
    bundled = unsample.lab.load_ranks("ml-1m", recommender, candidates="all")
    result = plan(
        items=3706, users=2000, metrics="Recall@50", budget=2000 * 100, pilot=bundled.ranks
    )
    expected = result.outcomes[0]
    rng = np.random.default_rng(12)
    errors = []
    for _ in range(200):
        ranks = rng.choice(bundled.ranks, size=2000)
        found = unsample.estimate(
            expected.design.simulate(ranks, items=3706, rng=rng),
            metrics="Recall@50",
            method=expected.method,
            resamples=0,
        )
        errors.append(found["Recall@50"].value - (ranks <= 50).mean())
    noise = float(np.std(errors)) / math.sqrt(200)
    off = abs(expected.bias - float(np.mean(errors)))
    ratio = abs(expected.sd / float(np.std(errors)) - 1)
    promise = "a plan expects the error that is met"
    keep(
        ledger(
            [
                Finding(promise, recommender, "bias missed by", off, 5 * noise, False, 200),
                Finding(promise, recommender, "standard deviation off by", ratio, 0.2, False, 200),
            ]
        )
    )
