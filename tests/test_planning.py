"""Planning: closed forms against simulation, the law of designs, and what is recommended."""

import json
import math

import numpy as np
import pytest

import unsample
from tests.promises import Finding, keep
from unsample import metrics
from unsample.answers.planning import DESIGNS, plan
from unsample.answers.planning._designs import (
    SampledDesign,
    adaptive_design,
    certified_cost,
    fixed_design,
)
from unsample.answers.planning._guess import Guess
from unsample.answers.planning._simulate import Simulation
from unsample.answers import published
from unsample.errors import DesignError, FileError, InputError, MetricError, RankError
from unsample.estimators import MLE
from unsample.evidence import RankCounts
from unsample.law import Law, RankDistribution

ITEMS, K = 1000, 10
NDCG = metrics.parse("NDCG@10")


@pytest.fixture(scope="module")
def guess() -> Guess:
    return Guess.power_law(ITEMS, K, 0.1)


@pytest.fixture(scope="module")
def small() -> unsample.answers.planning.Plan:
    return plan(items=ITEMS, users=5000, budget=500_000, repeats=60)


def _simulation(guess: Guess, users: int = 1000, repeats: int = 100) -> Simulation:
    return Simulation(guess, users, NDCG, repeats, np.random.SeedSequence(3))


# -- the guess ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("items", "k"), [(2, 1), (3, 2), (17, 10), (50, 10), (10**6, 10)])
def test_the_default_guess_is_possible_in_every_catalogue(items, k):
    found = Guess.power_law(items, k, None).distribution.expect(f"Recall@{k}")
    assert max(0.1, k / items) <= found + 1e-9 < 1.0


@pytest.mark.parametrize(
    ("items", "k", "recall"), [(100, 5, 0.3), (3706, 10, 0.1), (10**7, 50, 0.02)]
)
def test_a_power_law_has_the_recall_asked_for(items, k, recall):
    guess = Guess.power_law(items, k, recall)
    assert guess.distribution.expect(f"Recall@{k}") == pytest.approx(recall, rel=1e-9)
    assert guess.distribution.mass.sum() == pytest.approx(1.0)


def test_ranks_drawn_follow_the_guess(guess):
    ranks = guess.draw((200_000,), np.random.default_rng(1))
    for name in ("Recall@1", "Recall@10", "NDCG@100", "AUC"):
        exact = unsample.exact(ranks, items=ITEMS, metrics=name, resamples=0)[name].value
        assert exact == pytest.approx(guess.distribution.expect(name), abs=0.003)


def test_pilots_of_every_kind_agree():
    rng = np.random.default_rng(2)
    full = np.ceil(ITEMS * rng.beta(0.4, 2.0, size=20_000)).astype(int).clip(1, ITEMS)
    drawn = Law(ITEMS, 300).draw(full, rng=rng)
    pilots = (
        full,
        RankDistribution.from_ranks(full, items=ITEMS),
        RankCounts.from_ranks(drawn, items=ITEMS, sampled=300),
    )
    values = [Guess.from_pilot(one, ITEMS, K).distribution.expect("NDCG@10") for one in pilots]
    exact = unsample.exact(full, items=ITEMS, metrics="NDCG@10", resamples=0)["NDCG@10"].value
    assert values[:2] == pytest.approx([exact, exact], rel=1e-9)
    assert values[2] == pytest.approx(exact, rel=0.05)


# -- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "design",
    [
        SampledDesign((50,)),
        SampledDesign((20, 40, 80, 160), 1),
        SampledDesign((20, 40, 80, 160, 320, 640, 999), 3),
    ],
)
def test_the_expected_cost_is_that_of_simulated_targets(design, guess):
    ranks = guess.draw((100_000,), np.random.default_rng(4))
    seen = design.see(ranks, ITEMS, np.random.default_rng(5))
    error = seen.sampled.std() / math.sqrt(len(ranks))
    assert design.expected_cost(guess.distribution) == pytest.approx(
        seen.sampled.mean() + 1, abs=4 * error + 0.1
    )


def test_the_cost_of_certainty_is_that_of_scanning_in_random_order():
    """Items in random order are scored until K beat the target, or there are no more."""
    items, k = 60, 3
    ranks = np.repeat(np.arange(1, items + 1), 300)
    orders = np.random.default_rng(6).permuted(
        np.tile(np.arange(1, items), (len(ranks), 1)), axis=1
    )
    beaten = np.cumsum(orders < ranks[:, None], axis=1)
    scored = 2 + (beaten < k).sum(axis=1).clip(max=items - 2)
    closed = certified_cost(RankDistribution.from_ranks(ranks, items=items), k)
    error = scored.std() / math.sqrt(len(ranks))
    assert closed == pytest.approx(scored.mean(), abs=4 * error)


def test_the_error_of_fewer_users_is_that_of_drawing_them(small, guess):
    outcome = next(one for one in small.outcomes if one.design == "fewer users")
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(3000):
        weights = NDCG.weights(guess.draw((5000,), rng), ITEMS)
        errors.append(weights[:500].mean() - weights.mean())
    assert outcome.setting == "500 of 5,000 users"
    assert outcome.sd == pytest.approx(np.std(errors), rel=0.06)


# -- the law of designs ---------------------------------------------------------------------------


def test_one_stage_is_a_sample_without_replacement():
    ranks = np.repeat([1, 30, 400, 1000], 20_000)
    seen = SampledDesign((99,)).see(ranks, ITEMS, np.random.default_rng(8))
    assert (seen.sampled == 99).all()
    for rank in (1, 30, 400, 1000):
        drawn = np.bincount(seen.rank[ranks == rank], minlength=101)[1:] / 20_000
        expected = Law(ITEMS, 99, replacement=False).pmf(np.arange(1, 101), rank)
        assert np.abs(drawn - expected).max() < 0.015


def test_targets_are_done_after_the_first_stage_with_enough_beats():
    design = SampledDesign((20, 40, 80), 2)
    ranks = np.repeat([1, 40, 700], 20_000)
    seen = design.see(ranks, ITEMS, np.random.default_rng(9))
    assert set(np.unique(seen.sampled)) <= {20, 40, 80}
    assert (seen.rank[seen.sampled < 80] > 2).all()
    assert (seen.sampled[ranks == 1] == 80).all()
    for rank in (40, 700):
        few = Law(ITEMS, 20, replacement=False).pmf([1, 2], rank).sum()
        assert (seen.sampled[ranks == rank] > 20).mean() == pytest.approx(few, abs=0.015)
        # The share of items above the target is right on average at the first stage alone.
        later = Law(ITEMS, 40, replacement=False).pmf([1, 2], rank).sum()
        assert (seen.sampled[ranks == rank] > 40).mean() == pytest.approx(later, abs=0.015)


@pytest.mark.parametrize("cost", [2, 5, 21, 60, 150, 400, 900, 1000])
def test_designs_keep_within_their_cost(cost, guess):
    fixed = fixed_design(cost, ITEMS)
    adaptive = adaptive_design(cost, guess.distribution, K)
    assert fixed.expected_cost(guess.distribution) <= cost + 1e-9
    assert adaptive.expected_cost(guess.distribution) <= cost + 1e-9
    assert adaptive.beats <= K


def test_as_many_beats_as_k_make_it_exact(guess):
    design = adaptive_design(ITEMS, guess.distribution, K)
    assert design.beats == K
    outcome = _simulation(guess, repeats=10).outcome(design, "adaptive")
    assert outcome.rmse < 1e-9


# -- the simulation -------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [SampledDesign((99,)), SampledDesign((20, 40, 80, 160), 1)])
def test_it_estimates_as_mle_does(design, guess):
    """Rounded ranks and a coarse grid change an estimate by far less than its error."""
    simulation = _simulation(guess, repeats=8)
    seen = design.see(simulation.ranks, ITEMS, np.random.default_rng(10))
    ours = simulation._estimates(seen)
    theirs = [
        MLE()
        .fit(
            RankCounts.from_ranks(rank, items=ITEMS, sampled=sampled, replacement=False),
            cutoffs=[K],
        )
        .expect(NDCG)
        for rank, sampled in zip(seen.rank, seen.sampled, strict=True)
    ]
    assert ours == pytest.approx(theirs, rel=0.04)


def test_errors_scale_with_the_number_of_users(guess):
    design = SampledDesign((99,))
    few = Simulation(guess, 250, NDCG, 300, np.random.SeedSequence(1)).outcome(design, "fixed")
    many = Simulation(guess, 1000, NDCG, 300, np.random.SeedSequence(2)).outcome(design, "fixed")
    scaled = Simulation(guess, 4000, NDCG, 300, np.random.SeedSequence(2)).outcome(design, "fixed")
    assert few.sd / many.sd == pytest.approx(2.0, rel=0.2)
    assert many.sd / scaled.sd == pytest.approx(2.0)


def test_huge_catalogues_and_full_samples_work():
    result = plan(items=10**8, users=100, repeats=3, budget=10**8)
    assert all(math.isfinite(outcome.rmse) for outcome in result.curves)
    everything = plan(items=200, users=100, k=5, repeats=3, budget=200 * 100)
    assert everything.best.rmse < 1e-9


# -- the plan -------------------------------------------------------------------------------------


def test_designs_are_compared_at_the_same_cost(small):
    assert [outcome.design for outcome in small.outcomes] == list(DESIGNS)
    assert small.cost == 100
    for outcome in small.outcomes:
        # Adaptive stages come in steps, and may leave a part of the budget.
        assert (70 if outcome.design == "adaptive" else 95) <= outcome.cost <= 101.5
        assert outcome.rmse == pytest.approx(math.hypot(outcome.bias, outcome.sd))
    assert small.best.design == "adaptive"
    assert small.recommendation.startswith("Sample adaptively, 20 items, doubled until")


def test_without_a_budget_the_best_design_reaches_the_precision():
    result = plan(items=ITEMS, users=5000, precision=0.03, repeats=60)
    assert result.best.rmse <= 0.03 * result.value
    assert min(result.needed.values()) == result.needed[result.best.design] == result.best.cost
    assert plan(items=ITEMS, users=5000, precision=0.2, repeats=60).cost < result.cost


def test_what_fewer_users_need_is_what_they_then_reach(small):
    needed = small.needed["fewer users"]
    again = plan(items=ITEMS, users=5000, budget=needed * 5000, repeats=3)
    outcome = next(one for one in again.outcomes if one.design == "fewer users")
    assert outcome.rmse == pytest.approx(0.05 * again.value, rel=0.01)


def test_plans_are_repeatable_and_depend_on_the_seed(small):
    same = plan(items=ITEMS, users=5000, budget=500_000, repeats=60)
    other = plan(items=ITEMS, users=5000, budget=500_000, repeats=60, rng=1)
    assert same.to_dict() == small.to_dict()
    assert other.outcomes[0].sd != small.outcomes[0].sd
    assert other.outcomes[0].sd == pytest.approx(small.outcomes[0].sd, rel=0.4)


def test_results_print_and_travel(small):
    fields = json.loads(small.to_json())
    assert fields["recommended"] == "adaptive"
    assert {row["design"] for row in fields["designs"]} == set(DESIGNS)
    assert fields["designs"][0]["relative_error"] == pytest.approx(
        small.outcomes[0].rmse / small.value
    )
    assert len(small.to_frame("polars")) == len(DESIGNS)
    text = str(small)
    assert "P(R) falls as R^-" in text
    assert small.recommendation in text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"items": 1}, DesignError, "items must be"),
        ({"items": 10**9}, DesignError, "at most 999999999"),
        ({"users": 0}, InputError, "users must be"),
        ({"k": 0}, MetricError, "k must be"),
        ({"k": 1001}, MetricError, "k must be at most items = 1000, got 1001"),
        ({"metric": "Fame"}, MetricError, "metric must be one of"),
        ({"metric": "NDCG@20"}, MetricError, "'NDCG@20' and k = 10"),
        ({"precision": 0.0}, InputError, "precision must be"),
        ({"precision": 1.5}, InputError, "precision must be"),
        ({"budget": 1500}, InputError, "budget must be a finite number of at least 2000"),
        ({"budget": math.inf}, InputError, "budget must be"),
        ({"recall": 0.0001}, InputError, "recall must be in 0.01"),
        ({"recall": 1.0}, InputError, "recall must be"),
        ({"k": 1000}, InputError, "k must be below items = 1000 where no pilot"),
        ({"repeats": 1}, InputError, "repeats must be"),
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
    from unsample.pages import plot_metric_curve, plot_plan, write_plot

    axes = figure.Figure().subplots()
    assert plot_plan(small, ax=axes) is axes
    assert {line.get_label() for line in axes.get_lines()} >= set(DESIGNS)
    write_plot(small, tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text().startswith("<?xml")
    with pytest.raises(FileError, match="pdf, png, svg"):
        write_plot(small, tmp_path / "plan.doc")
    paper = published({"HR@1": "0.18", "HR@10": "0.69"}, items=3706, sampled=99, users=6040)
    axes = figure.Figure().subplots()
    assert plot_metric_curve(paper, ax=axes) is axes
    assert axes.get_ylabel() == "Recall@K"


# -- the command ----------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_json(run, tmp_path):
    options = ["plan", "--items", "1000", "--users", "5000", "--budget", "500000"]
    code, out, _ = run(*options, "--repeats", "20")
    assert code == 0
    assert "Sample adaptively" in out
    code, out, _ = run(*options, "--repeats", "20", "--json")
    assert code == 0
    assert json.loads(out) == plan(items=1000, users=5000, budget=500_000, repeats=20).to_dict()
    pilot = tmp_path / "pilot.csv"
    pilot.write_text("rank\n" + "\n".join(str(rank) for rank in [1, 1, 2, 5, 40] * 20))
    code, out, _ = run(*options, "--repeats", "5", "--pilot", pilot, "--sampled", "99")
    assert code == 0
    assert "fitted to a pilot of 100 sampled ranks" in out


def test_the_command_refuses_in_one_line(run):
    code, _, err = run("plan", "--items", "1000", "--users", "5000", "--budget", "5")
    assert code == 2
    assert "budget must be" in err
    code, _, err = run("plan", "--items", "1000", "--users", "5000", "--sampled", "99")
    assert code == 2
    assert "without a pilot" in err


# -- promises -------------------------------------------------------------------------------------


@pytest.mark.validity
@pytest.mark.parametrize("recommender", ["ease", "neumf", "itemknn"])
def test_the_error_expected_is_the_error_met(recommender, ledger):
    """A plan from exact ranks as pilot, against real evaluations of other users like these."""
    bundled = unsample.lab.datasets.load_ranks("ml-1m", recommender, candidates="all")
    result = plan(
        items=3706, users=2000, k=50, metric="Recall", budget=2000 * 100, pilot=bundled.ranks
    )
    expected = result.outcomes[0]
    rng = np.random.default_rng(12)
    errors = []
    for _ in range(200):
        ranks = rng.choice(bundled.ranks, size=2000)
        drawn = Law(3706, 99, replacement=False).draw(ranks, rng=rng)
        found = unsample.estimate(
            drawn,
            items=3706,
            sampled=99,
            replacement=False,
            metrics="Recall@50",
            method="mle",  # which plans reckon with
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
