"""Sampled ranks with full ranks of some users: estimates that assume nothing of P(R)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, bias, coverage, keep, simulations
from tests.test_evaluate import World
from unsample.answers._pilot import pilot_targets
from unsample.confidence import PilotError
from unsample.designs import Pilot
from unsample.errors import BiasedMethodWarning, DesignError, InputError, MethodError, RankError
from unsample.evidence import Targets
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse, parse_all

ITEMS, SAMPLED = 2000, 99


def _zipf(exponent=0.9, items=ITEMS):
    mass = np.arange(1.0, items + 1) ** -exponent
    return mass / mass.sum()


def _world(seed, users=2000, pilot=200, mass=None, sampled=SAMPLED, best=False):
    """Return sampled ranks, full ranks, and those of a random part of the users, or the best."""
    mass = _zipf() if mass is None else mass
    rng = np.random.default_rng(seed)
    full = 1 + rng.choice(len(mass), size=users, p=mass)
    ranks = draw_sampled_ranks(full, items=len(mass), sampled=sampled, rng=rng)
    chosen = np.argsort(full)[:pilot] if best else rng.choice(users, pilot, replace=False)
    known = np.zeros(users, dtype=int)
    known[chosen] = full[chosen]
    return ranks, full, known


def _estimate(ranks, known, metrics="Recall@10", sampled=SAMPLED, items=ITEMS, **options):
    return unsample.estimate(
        ranks, items=items, sampled=sampled, metrics=metrics, pilot=known, **options
    )


def test_a_pilot_narrows_what_a_sample_leaves_open():
    ranks, full, known = _world(0)
    entry = _estimate(ranks, known)["Recall@10"]
    blind = unsample.estimate(
        ranks, items=ITEMS, sampled=SAMPLED, metrics="Recall@10", candidates="unseen", resamples=0
    )["Recall@10"]
    assert np.ptp(entry.interval()) < 0.6 * np.ptp(blind.interval(kind="guaranteed"))
    low, high = entry.interval(population=False)
    assert low <= float((full <= 10).mean()) <= high
    # Guesses help: the pilot alone would be less sure.
    alone = unsample.exact(known[known > 0], items=ITEMS, metrics="Recall@10")["Recall@10"]
    assert np.ptp(entry.interval()) < 0.95 * np.ptp(alone.interval())
    assert entry.resolved
    assert entry.method == "pilot"


def test_the_value_is_the_mean_of_guesses_and_what_they_miss():
    rng = np.random.default_rng(1)
    known = rng.integers(0, 2, 60).astype(float)
    guessed, others = 0.6 * known + rng.random(60) * 0.4, rng.random(500)
    value, error = PilotError.of_pilot(known, guessed, others, parse("Recall@10"))
    trust = error.trust
    assert 0.0 < trust <= 1.0
    assert value == pytest.approx(trust * others.mean() + (known - trust * guessed).mean())
    left = known - trust * guessed
    variance = left.var(ddof=2) / 60 + trust**2 * others.var(ddof=1) / 500
    assert error.population == pytest.approx(np.sqrt(variance))


def test_useless_guesses_leave_the_pilot_alone():
    rng = np.random.default_rng(2)
    known = rng.integers(0, 2, 200).astype(float)
    value, error = PilotError.of_pilot(known, np.full(200, 0.3), np.full(900, 0.3), parse("HR@5"))
    assert error.trust == 0.0
    assert value == pytest.approx(known.mean())
    assert error.interval(value, 0.95) == error.alone.interval(value, 0.95)


def test_unknown_may_be_zero_or_nan_and_catalogues_may_differ():
    ranks, _, known = _world(3)
    same = _estimate(ranks, np.where(known > 0, known, np.nan))
    assert same["Recall@10"].value == _estimate(ranks, known)["Recall@10"].value
    items = np.where(np.arange(len(ranks)) % 2, ITEMS, ITEMS + 100)
    assert 0.0 < _estimate(ranks, known, items=items)["Recall@10"].value < 1.0


def test_a_result_with_a_pilot_prints_and_says_what_it_took_for_granted():
    ranks, _, known = _world(4)
    result = _estimate(ranks, known, ["Recall@10", "AUC"])
    assert "200 of 2,000 users ranked in full" in str(result)
    assert "taken as drawn at random" in str(result)
    assert "it assumes nothing" in str(result)
    assert result.to_dict()["estimates"][0]["resolved"]
    assert "pilot" in result.to_latex()


def test_a_pilot_of_the_best_users_is_called_so():
    ranks, _, known = _world(5, best=True)
    with pytest.warns(BiasedMethodWarning, match="hardly drawn at random"):
        _estimate(ranks, known)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (lambda known: known[:-1], {}, InputError, "a full rank for each of the 2000 ranks"),
        (lambda known: known * 0, {}, InputError, "at least 10 users, got 0 of 2000"),
        (lambda known: known * 0 + 2000, {}, InputError, "all but two"),
        (lambda known: known * 1000, {}, RankError, "ranks in 1..items = 2000"),
        (lambda known: known + 0.5, {}, InputError, "pilot must be"),
        (lambda known: np.where(known > 0, 1, 0), {}, RankError, "must agree with the sampled"),
        (lambda known: known, {"method": "naive"}, MethodError, "learns P"),
        (lambda known: known, {"shape": "none"}, InputError, "shape must be left out with a pilot"),
        (lambda known: known, {"users": np.arange(2000)}, InputError, "left out with a pilot"),
        (lambda known: known, {"weights": np.ones(2000)}, InputError, "left out with a pilot"),
        (lambda known: known, {"negatives": "shared"}, InputError, "left out with a pilot"),
        (lambda known: known.astype(str), {}, InputError, "pilot must be"),
        (lambda known: np.where(known > 0, np.inf, 0), {}, InputError, "pilot must be"),
        (lambda known: known, {"sampled": None}, InputError, "must be an array with a pilot"),
    ],
)
def test_wrong_pilots_are_refused(change, options, error, message):
    ranks, _, known = _world(6)
    with pytest.raises(error, match=message):
        _estimate(ranks, change(known), **options)


def test_targets_that_know_more_than_a_pilot_can_take_are_refused():
    ranks, _, known = _world(7)
    plain = Targets(ranks, ITEMS, SAMPLED)
    result = unsample.estimate(plain, metrics="Recall@10", pilot=known)
    assert result["Recall@10"].value == _estimate(ranks, known)["Recall@10"].value
    assert result.candidates is None
    for more in ({"users": np.arange(2000) // 2}, {"weights": np.ones(2000)}, {"stop": 1}):
        with pytest.raises(InputError, match="left out with a pilot"):
            unsample.estimate(replace(plain, **more), metrics="Recall@10", pilot=known)


# -- promises -------------------------------------------------------------------------------------


def _needle():
    mass = 0.7 * _zipf()
    mass[12] += 0.3
    return mass


LAWS = {"Zipf 0.9": _zipf(), "Zipf 1.5": _zipf(1.5), "a needle at rank 13": _needle()}


def _held(law, pilot, size, *, best=False) -> list[Finding]:
    mass, wanted = LAWS[law], parse_all(["Recall@10", "NDCG@10", "AUC"])
    rows: dict[str, list[tuple[float, ...]]] = {metric.name: [] for metric in wanted}
    for seed in range(size):
        ranks, full, known = _world(10_000 + seed, pilot=pilot, mass=mass, best=best)
        result = _estimate(ranks, known, wanted, method="mle(iterations=10)")
        for metric in wanted:
            own = float(metric.weights(full, ITEMS).mean())
            low, high = result[metric].interval(population=False)
            rows[metric.name].append((*result[metric].interval(), low - own, high - own))
    found = []
    for metric in wanted:
        truth = float(mass @ metric.weights(np.arange(1, ITEMS + 1), ITEMS))
        low, high, below, above = np.transpose(rows[metric.name])
        where = f"{law}, {pilot} of 2,000 users, {metric}"
        promise = "intervals with a pilot hold, whatever P(R) is"
        found.append(coverage(promise, where, low, high, truth, 0.93))
        found.append(coverage(promise, f"{where}, these users", below, above, 0.0, 0.93))
    return found


@pytest.mark.validity
@pytest.mark.parametrize("pilot", [30, 100, 400])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_with_a_pilot_hold_whatever_the_law(law, pilot, ledger):
    keep(ledger(_held(law, pilot, simulations(600))))


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.BiasedMethodWarning")
def test_a_pilot_that_was_not_drawn_at_random_breaks_the_promise(ledger):
    findings = ledger(_held("Zipf 0.9", 100, 20, best=True), planted="a pilot of the best users")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)


# -- the command ----------------------------------------------------------------------------------


def _files(tmp_path, ranks, known):
    order = np.random.default_rng(0).permutation(len(ranks))
    paths = tmp_path / "ranks.csv", tmp_path / "full.csv"
    rows = [f"u{user},{ranks[user]}" for user in order]
    full = [f"u{user},{known[user]}" for user in np.flatnonzero(known)]
    for path, lines in zip(paths, (rows, full), strict=True):
        path.write_text("\n".join(["user,rank", *lines]) + "\n")
    return [str(path) for path in paths]


def test_the_command_takes_full_ranks_of_some_users(tmp_path, run):
    ranks, _, known = _world(8)
    first, second = _files(tmp_path, ranks, known)
    call = ["estimate", first, "--items", ITEMS, "--sampled", SAMPLED, "--pilot", second]
    _, out, _ = run(*call, "-m", "Recall@10", "--json")
    entry = json.loads(out)["estimates"][0]
    here = _estimate(ranks, known)["Recall@10"]
    assert entry["value"] == pytest.approx(here.value)
    assert (entry["low"], entry["high"]) == pytest.approx(here.interval())
    assert "ranked in full correct" in run(*call)[1]


def test_the_command_says_what_is_wrong_with_a_pilot(tmp_path, run):
    ranks, _, known = _world(9)
    first, second = _files(tmp_path, ranks, known)
    call = ["estimate", first, "--items", ITEMS, "--sampled", SAMPLED, "--pilot"]
    strange = tmp_path / "strange.csv"
    strange.write_text("user,rank\nnobody,3\n")
    nameless = tmp_path / "nameless.csv"
    nameless.write_text("rank\n3\n4\n")
    again = tmp_path / "again.csv"
    again.write_text("user,rank\nu1,3\nu1,4\n")
    for pilot, more, words in (
        (str(strange), [], "the pilot must hold users of FILE, got 1 others, such as 'nobody'"),
        (str(nameless), [], "the file of pilot must both have a column user"),
        (str(again), [], "the pilot must name each user once"),
        (second, ["--by", "user"], "by, probabilities and strata must be left out with a pilot"),
    ):
        code, _, err = run(*call, pilot, *more)
        assert code != 0
        assert words in " ".join(err.split())


# -- the design -----------------------------------------------------------------------------------


def test_a_pilot_design_gives_what_estimate_gives_with_its_pilot():
    world = World(users=400, items=600)
    found = world.run("pilot", budget=60_000, metrics=["Recall@10", "AUC"])
    full = world.run("exact", metrics=["Recall@10", "AUC"])
    assert found.scored == 60_000
    assert found["Recall@10"].method == "pilot"
    for metric in ("Recall@10", "AUC"):
        low, high = found[metric].interval(0.9999, population=False)
        assert low <= full[metric].value <= high
    assert "ranked in full correct" in str(found)
    assert found.drawn
    assert world.run("pilot", budget=400 * 600).methods == ("exact",)
    other = world.run("pilot", budget=60_000, scorer=(world.left[::-1], world.right), rng=1,
                      metrics=["Recall@10", "AUC"])  # fmt: skip
    compared = unsample.compare({"A": found, "B": other}, metrics="Recall@10")
    assert not compared.paired
    assert any("a pilot evaluation of A" in text for text in compared.warnings)
    assert compared.winner("Recall@10") == "A"
    difference = compared.difference("A", "B", "Recall@10")
    assert difference.value == pytest.approx(found["Recall@10"].value - other["Recall@10"].value)


def test_what_a_pilot_design_cannot_take_is_refused():
    world = World(users=60, items=100)
    twice = {user: [1, 2] for user in range(40)}
    options = {"items": 100, "design": "pilot", "metrics": "Recall@5"}
    for words, more in (
        ("users must have one target each", {}),
        ("users must have one target each", {"filtered": True}),
        ("relevance and weights must be left out", {"weights": np.ones(80)}),
        ("relevance and weights must be left out", {"relevance": np.ones(80)}),
        ("method must be left out with design='pilot'", {"method": "mle"}),
        ("guide must be left out with design='pilot'", {"guide": np.ones(100)}),
    ):
        with pytest.raises(DesignError, match=words):
            unsample.evaluate(world.scores, twice, **options, **more)
    for wrong in ({"sampled": 0}, {"share": 0.0}, {"share": 1.5}, {"k": 0}):
        with pytest.raises(DesignError):
            Pilot(**wrong)
    with pytest.raises(DesignError, match="at most a target's other candidates"):
        world.run(Pilot(sampled=200))


def _pilot_held(size, budget, law="Zipf 0.9") -> list[Finding]:
    """Return bias and coverage of a pilot design on the same users, drawn from anew."""
    rng = np.random.default_rng(1)
    full = 1 + rng.choice(ITEMS, size=2000, p=LAWS[law])
    wanted = parse_all(["Recall@10", "NDCG@10"])
    rows = []
    for seed in range(size):
        found = Pilot().simulate(full, items=ITEMS, budget=budget, rng=seed, metrics=wanted)
        result = pilot_targets(found, wanted, "mle(iterations=10)")
        rows.append([(e.value, *e.interval(population=False)) for e in result.entries])
    findings = []
    for metric, (value, low, high) in zip(wanted, np.transpose(rows, (1, 2, 0)), strict=True):
        truth = float(metric.weights(full, ITEMS).mean())
        where = f"{law}, {budget:,} scores, {metric}"
        promise = "a pilot design is valid, whatever P(R) is and wherever the budget ends"
        findings.append(bias(promise, where, value, truth, allowed=0.02 * truth))
        findings.append(coverage(promise, where, low, high, truth, 0.93))
    return findings


@pytest.mark.validity
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("budget", [60_000, 200_000])
def test_a_pilot_design_is_valid_wherever_its_budget_ends(law, budget, ledger):
    keep(ledger(_pilot_held(simulations(400), budget, law)))
