"""Plans of comparisons: two models as they may be, and the power that `compare` really has."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, keep
from unsample import metrics
from unsample.answers import PowerPlan, estimates_of, remedies
from unsample.answers._guess import power_law
from unsample.answers._pair import Pair
from unsample.answers._planner import Asked, planned_method
from unsample.answers._power import Powers
from unsample.designs import Exact, Fixed
from unsample.errors import InputError, UnsampleWarning
from unsample.evidence import RankCounts
from unsample.pages import plot_plan

ITEMS, USERS, LEVEL = 300, 400, 0.95
NDCG = metrics.parse("NDCG@10")


@pytest.fixture(scope="module")
def pair() -> Pair:
    guess, source = power_law(ITEMS, 10, 0.2)
    return Pair.with_difference(guess, NDCG, 0.025, source)


def powers(pair: Pair, repeats=120, *, users=USERS, odds=10.0, seed=(5,)) -> Powers:
    asked = Asked(ITEMS, NDCG, users, odds=odds)
    return Powers(asked, pair, LEVEL, 0.8, "unseen", 99, repeats, seed)


# -- two models ----------------------------------------------------------------------------------


def test_models_drawn_have_the_metrics_and_the_difference_asked_for(pair):
    drawn = pair.draw(200_000, np.random.default_rng(1))
    values = [NDCG.weights(each, ITEMS) for each in drawn]
    assert pair.difference == pytest.approx(0.025, rel=1e-6)
    assert [each.mean() for each in values] == pytest.approx(list(pair.values), abs=0.003)
    assert np.std(values[0] - values[1]) == pytest.approx(pair.spread, rel=0.03)
    assert pair.winner == "better"


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_how_alike_models_are_is_found_again_from_full_and_from_sampled_ranks(pair, correlation):
    alike = Pair(pair.names, pair.shapes, NDCG, correlation, "")
    full = alike.draw(20_000, np.random.default_rng(2))
    seen = [Fixed(99).simulate(each, items=ITEMS, rng=at) for at, each in enumerate(full)]
    for given, near in ((full, 0.05), (seen, 0.1)):
        found = Pair.of(dict(zip("ab", given, strict=True)), ITEMS, NDCG, "unseen")
        assert found.correlation == pytest.approx(correlation, abs=near)
        assert found.difference == pytest.approx(pair.difference, abs=0.01)


def test_models_whose_users_are_not_known_are_as_alike_as_usual(pair):
    first, second = pair.draw(500, np.random.default_rng(3))
    counts = [
        RankCounts.from_ranks(each, items=ITEMS, sampled=ITEMS - 1, replacement=False)
        for each in (first, second)
    ]
    for given in (counts, pair.shapes, (first, second[:-1])):
        found = Pair.of(dict(zip("ab", given, strict=True)), ITEMS, NDCG, None)
        assert "a guess" in found.source


# -- the power is that of compare ----------------------------------------------------------------


def evaluated(found) -> unsample.Evaluation:
    """What `evaluate` makes of findings."""
    method = planned_method(found.design)
    made = estimates_of(found, (NDCG,), method=method, candidates="unseen", errors="delta")
    users = np.arange(len(found.ranks))
    return unsample.Evaluation.of(found, made, users=users, targets=users, rng=0)


@pytest.mark.parametrize("label", ["fixed", "guided", "certified", "exact"])
def test_verdicts_are_those_of_compare_on_the_same_findings(pair, label):
    """Draw by draw, not on average: quick ways to a verdict change none."""
    planned = powers(pair, repeats=6)
    part = 30 * USERS if label != "exact" else ITEMS * USERS // 2
    design, users, _, part = planned._evaluation(label, 2 * part)
    quick = planned._verdicts(label, design, pair, users, part)
    for number, (won, _) in enumerate(quick):
        found = planned._found(label, design, pair, users, part, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            models = dict(zip(pair.names, map(evaluated, found), strict=True))
            verdict = unsample.compare(models, metrics=NDCG, level=LEVEL)
        assert won == (verdict.winner(NDCG) == pair.winner)


def observed(pair, design, draws, *, users=USERS, paired=None):
    """The share of evaluations, on users of their own, in which compare names the better model."""
    won = 0
    for number in range(draws):
        ranks = pair.draw(users, np.random.default_rng([77, number]))
        found = {
            name: design.simulate(each, items=ITEMS, rng=9 * number + at)
            for at, (name, each) in enumerate(zip(pair.names, ranks, strict=True))
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            verdict = unsample.compare(found, metrics=NDCG, candidates="unseen", paired=paired)
        won += verdict.winner(NDCG) == pair.winner
    return won / draws


def judged(setting, predicted, seen, draws):
    error = np.sqrt(0.25 / draws + 0.25 / 120)
    keep(
        [
            Finding(
                "predicted power is observed",
                setting,
                "distance",
                abs(predicted - seen),
                3.5 * error,
                False,
                draws,
            )
        ]
    )


@pytest.mark.slow
def test_the_predicted_power_of_full_rankings_is_observed_and_that_without_pairing_is_not(pair):
    draws = 120
    predicted = powers(pair).trial("exact", 2 * ITEMS * USERS, pair, 0.0)
    assert 0.4 < predicted.power < 0.97
    judged("exact", predicted.power, observed(pair, Exact(), draws), draws)
    with pytest.raises(BrokenPromiseError):
        judged(
            "pairing ignored", predicted.power, observed(pair, Exact(), draws, paired=False), draws
        )


@pytest.mark.slow
def test_the_predicted_power_of_samples_is_observed_and_that_without_their_error_is_not(pair):
    draws, strong = 50, pair.apart(0.04)
    planned = powers(strong, repeats=50)
    predicted = planned.trial("more users", 2 * 100 * USERS, strong, 0.0)
    assert predicted.design == Fixed(99, replacement=False)
    judged("99 items", predicted.power, observed(strong, predicted.design, draws), draws)
    blind = planned.trial("exact", 2 * ITEMS * USERS, strong, 0.0)
    with pytest.raises(BrokenPromiseError):
        judged("sampling ignored", blind.power, observed(strong, predicted.design, draws), draws)


def test_a_detectable_difference_has_the_power_sought(pair):
    planned = powers(pair)
    found = planned.outcome("exact", 2 * ITEMS * USERS)
    again = powers(pair, seed=(6,)).trial(
        "exact", 2 * ITEMS * USERS, pair.apart(found.detectable), 0.0
    )
    assert again.power == pytest.approx(0.8, abs=0.12)


def test_the_least_budget_has_the_power_sought(pair):
    planned = powers(pair.apart(0.05))
    for label in ("certified", "exact"):
        cost = planned.needed(label)
        again = powers(planned.pair, seed=(6,)).trial(label, round(cost), planned.pair, 0.0)
        assert again.power == pytest.approx(0.8, abs=0.2)
        assert again.cost <= 1.01 * cost


# -- plans ---------------------------------------------------------------------------------------


#: The budget from which on designs would name the better model so often; full rankings always do.
SUFFICES = {"fixed": 0.5, "more users": 0.3, "guided": 0.1, "certified": 0.2}


@pytest.fixture
def counted(monkeypatch) -> None:
    """Let plans count verdicts that cost no time, as many as the budget is large.

    That the verdicts are those of `compare` is tested above, and docs/planning.md shows a plan of
    real ones.
    """

    def verdicts(self, label, design, pair, users, part):
        budget = 0.5 * self.full_cost * SUFFICES.get(label, 1.0)
        share = min(0.8 * part / budget, 1.0)
        named = np.diff(np.floor(share * np.arange(self.repeats + 1) + 0.5)) > 0
        return ((bool(won), 2 * part) for won in named)

    monkeypatch.setattr(Powers, "_verdicts", verdicts)


@pytest.fixture
def made(counted) -> PowerPlan:
    return unsample.plan(items=ITEMS, users=USERS, recall=0.2, compare=0.05, odds=20, repeats=20)


def test_a_plan_names_the_design_that_needs_least(made):
    there = {label: cost for label, cost in made.needed.items() if cost and label != "more users"}
    assert set(made.needed) == {"fixed", "more users", "guided", "certified", "exact"}
    for label, share in SUFFICES.items():
        if share < 1.0:
            assert made.needed[label] == pytest.approx(share * 2 * ITEMS * USERS, rel=0.15)
    assert made.least == min(there.values())
    assert made.budget == pytest.approx(made.least, abs=1)
    assert made.best.power >= 0.8 - made.best.error
    assert made.best.label == "guided"
    assert made.best.design.name in made.recommendation
    assert made.to_dict()["models"] == dict(zip(made.models, made.values, strict=True))
    assert made.best.cost <= made.budget


def test_the_plot_of_a_plan_has_the_power_of_each_design(made):
    figure = pytest.importorskip("matplotlib.figure")
    axes = plot_plan(made, ax=figure.Figure().subplots())
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    for label in ("exact", "guided"):
        by_cost = {row.cost: row.power for row in made.curves if row.label == label}
        assert sorted(drawn[label]) == sorted(by_cost.values())


def test_what_is_planned_runs(made):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(USERS, 8)), rng.normal(size=(ITEMS, 8))
    targets = np.arange(USERS), rng.integers(ITEMS, size=USERS)
    scorers = {"A": factors, "B": (factors[0] + 0.1, factors[1])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        found = unsample.evaluate(
            scorers,
            targets,
            items=ITEMS,
            design=made.best.design,
            metrics="NDCG@10",
            budget=None if made.best.design.exact else made.budget,
        )
    assert found.estimates["A"].design.name == made.best.design.name


def test_too_few_users_are_said_to_be_too_few(monkeypatch):
    never = lambda self, label, design, pair, users, part: [(False, part)] * self.repeats  # noqa: E731
    monkeypatch.setattr(Powers, "_verdicts", never)
    found = unsample.plan(items=60, users=40, compare="3%", repeats=8)
    assert found.least is None
    assert found.users_needed > 40
    assert "users" in found.recommendation.rpartition("takes about")[2]


def test_a_comparison_is_planned_for_with_its_own_candidates(pair, counted):
    first, second = pair.draw(600, np.random.default_rng(4))
    ranks = {
        name: Fixed(20).simulate(each, items=ITEMS, rng=at)
        for at, (name, each) in enumerate({"A": first, "B": second}.items())
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        compared = unsample.compare(ranks, metrics="NDCG@10", candidates="all")
        found = unsample.plan(items=ITEMS, users=100, compare=compared, repeats=2)
    assert set(found.models) == {"A", "B"}
    assert found.outcomes[1].label == "more users"
    assert found.outcomes[1].design.sampled == 20
    assert "as estimated" in found.guess


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"compare": "much"}, "give a difference such as 0.01"),
        ({"compare": -0.1}, "compare must be a finite number greater than 0"),
        ({"compare": 0.99}, "compare must be a difference of NDCG@10"),
        ({"compare": {"A": [1, 2]}}, "two models, got 1"),
        ({"compare": {"A": [1, 2], "B": [1, 999]}}, "1..60"),
        ({"compare": {"A": [1, 2], "B": [1, 2]}, "recall": 0.3}, "must be left out"),
        ({"compare": 0.1, "power": 1.5}, "power must be a number in"),
        ({"compare": 0.1, "level": 2}, "level must be"),
        ({"compare": 0.1, "candidates": "seen"}, "candidates must be one of"),
    ],
)
def test_what_cannot_be_compared_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        unsample.plan(items=60, users=40, repeats=2, **given)


def test_the_command_takes_differences_and_files(run, tmp_path, monkeypatch, counted):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, worst in (("a", 20), ("b", 9)):
        rows = "\n".join(map(str, rng.integers(1, worst, size=100)))
        (tmp_path / f"{name}.csv").write_text(f"rank\n{rows}\n")
    design = ("plan", "--items", 60, "--users", 80, "-m", "Recall@5", "--repeats", 2, "--json")
    code, out, err = run(*design, "--compare", "a=a.csv", "--compare", "b=b.csv", "--sampled", 19)
    assert code == 0, err
    assert list(json.loads(out)["models"]) == ["a", "b"]
    code, out, err = run(*design, "--compare", "40%", "--power", 0.5)
    assert code == 0, err
    assert json.loads(out)["power"] == 0.5
    for wrong in (("--compare", "a=a.csv"), ("--compare", "1%", "--compare", "2%")):
        code, _, err = run(*design, *wrong)
        assert code == 2
        assert "compare must be one difference, or NAME=FILE for two models" in err


# -- what to do ----------------------------------------------------------------------------------


def undecided(pair, users=3000):
    ranks = pair.draw(users, np.random.default_rng(8))
    found = {
        name: Fixed(20).simulate(each, items=ITEMS, rng=at)
        for at, (name, each) in enumerate(zip(pair.names, ranks, strict=True))
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.compare(found, metrics="NDCG@10", candidates="unseen")


@pytest.mark.slow
def test_so_many_full_ranks_tell_the_models_apart_four_times_out_of_five(pair):
    compared = undecided(pair)
    (remedy,) = remedies(compared)
    assert f"needed: {remedy}" in str(compared)
    as_estimated = Pair.of(compared, ITEMS, NDCG, "unseen")

    def power(users):
        found = powers(as_estimated, users=users).trial(
            "exact", 2 * ITEMS * users, as_estimated, 0.0
        )
        return found.power

    assert power(remedy.users) == pytest.approx(0.8, abs=0.1)
    # Of models that share no users, as many would not do.
    apart = Pair(as_estimated.names, as_estimated.shapes, NDCG, 0.0, "")
    assert (
        powers(apart, users=remedy.users).trial("exact", 2 * ITEMS * remedy.users, apart, 0.0).power
        < 0.7
    )


@pytest.mark.slow
def test_the_guided_budget_is_a_sensible_one(pair):
    (remedy,) = remedies(undecided(pair), guided=True)
    assert 2 * 10 * remedy.now < remedy.guided < 2 * ITEMS * remedy.now
    assert "design='guided'" in str(remedy)
    found = powers(pair, users=remedy.now, odds=6.0, repeats=30)
    assert found.trial("guided", remedy.guided, pair, 0.0).power > 0.4


def test_nothing_is_said_of_models_that_are_told_apart(pair):
    compared = undecided(pair.apart(0.2))
    assert compared.winner("NDCG@10") == "better"
    assert remedies(compared) == []
    assert "needed:" not in str(compared)
