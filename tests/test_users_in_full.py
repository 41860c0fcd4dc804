"""A few users ranked in full beside samples of the others: every door, and what it promises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.counts import RankCounts
from unsample.designs import Fixed
from unsample.errors import BudgetError, DesignError
from unsample.questions.evaluate.ask import estimates_of, evaluate
from unsample.questions.plan.ask import plan
from unsample.sampling import draw_sampled_ranks

USERS, FULL, SAMPLED = 400, 60, 19


@dataclass(frozen=True)
class Mixture:
    """Ranks of users of whom the first are ranked in full, and the others in a sample."""

    ranks: np.ndarray
    items: np.ndarray
    sampled: np.ndarray

    @classmethod
    def of(cls, items: np.ndarray) -> Mixture:
        rng = np.random.default_rng(4)
        ranks = np.floor(items ** rng.random(USERS)).astype(np.int64)
        seen = np.array(draw_sampled_ranks(ranks, items=items, sampled=SAMPLED, rng=rng))
        seen[:FULL] = ranks[:FULL]
        in_full = np.arange(USERS) < FULL
        return cls(seen, items, np.where(in_full, items - 1, SAMPLED))


SIZES = {
    "one size": np.full(USERS, 1500),
    "many sizes": 1400 + np.arange(USERS),
}


@pytest.fixture(params=SIZES.values(), ids=SIZES)
def mixture(request):
    return Mixture.of(request.param)


def counted(mixture, users=slice(None), **options):
    return RankCounts.from_ranks(
        mixture.ranks[users],
        items=mixture.items[users],
        sampled=mixture.sampled[users],
        **options,
    )


# -- the doors -------------------------------------------------------------------------------------


def test_every_door_knows_the_users_in_full(mixture):
    arrays = {"items": mixture.items, "sampled": mixture.sampled}
    expected = unsample.estimate(mixture.ranks, **arrays, metrics="NDCG@10")
    in_full, others = counted(mixture, slice(0, FULL)), counted(mixture, slice(FULL, USERS))
    known = counted(mixture, slice(0, FULL), replacement=False)
    table = pd.DataFrame({"rank": mixture.ranks, "user": np.arange(USERS), **arrays})
    asked = {"metrics": "NDCG@10"}
    doors = {
        "users": unsample.estimate(mixture.ranks, users=np.arange(USERS), **arrays, **asked),
        "table": unsample.estimate(table, **asked),
        "table without users": unsample.estimate(table.drop(columns="user"), **asked),
        "parts": unsample.estimate(RankCounts.merge([in_full, others]), **asked),
        "known part": unsample.estimate(RankCounts.merge([known, others]), **asked),
    }
    assert int(expected.counts.count[expected.counts.known].sum()) == FULL
    for name, found in doors.items():
        assert found.counts == expected.counts, name
        entry = found["NDCG@10"]
        assert entry.value == pytest.approx(expected["NDCG@10"].value, rel=1e-6), name
        assert entry.interval() == pytest.approx(expected["NDCG@10"].interval(), rel=1e-6), name
        assert entry.bounds() == pytest.approx(expected["NDCG@10"].bounds(), rel=1e-6), name
    assert f"{FULL} ranked in full, the others among {SAMPLED} of" in str(expected)


def test_counts_keep_the_users_in_full_in_a_file(mixture, tmp_path):
    counts = counted(mixture)
    counts.save(tmp_path / "counts.npz")
    found = RankCounts.load(tmp_path / "counts.npz")
    assert found == counts
    assert (found.known == counts.known).all()


def test_a_sample_of_one_size_is_never_taken_as_a_full_ranking():
    items = np.array([20, 500, 900])
    assert not RankCounts.from_ranks([3, 1, 2], items=items, sampled=19).full.any()
    assert not RankCounts.from_ranks([3, 1, 2], items=20, sampled=19).full.any()


def test_users_in_full_narrow_interval_and_bounds(mixture):
    both = unsample.estimate(counted(mixture), metrics="NDCG@10")["NDCG@10"]
    drawn = unsample.estimate(counted(mixture, slice(FULL, USERS)), metrics="NDCG@10")["NDCG@10"]
    for name in ("interval", "bounds"):
        narrow, wide = (np.diff(getattr(each, name)()) for each in (both, drawn))
        assert narrow < wide, name
    # These users: those in full are known, and only the others are not.
    assert np.diff(both.interval(population=False)) < np.diff(both.interval())


def test_the_methods_of_papers_take_the_mixture(mixture):
    counts = counted(mixture)
    methods = ["mle", "bv", "mn", "naive"]
    found = unsample.estimate(counts, metrics="NDCG@10", method=methods)
    truth = unsample.estimate(counts.take(counts.known), metrics="NDCG@10", prior=None)["NDCG@10"]
    assert found["NDCG@10", "mle"].value == pytest.approx(truth.value, rel=0.5)


# -- the design ------------------------------------------------------------------------------------


class World:
    """Item i has the rank i + 1 for every user."""

    def __init__(self, ranks: np.ndarray, items: int):
        self.ranks, self.items = ranks, items
        self.targets = np.arange(len(ranks)), ranks - 1

    @classmethod
    def drawn(cls, rng: np.random.Generator, users: int = 300, items: int = 800) -> World:
        """Draw ranks from a power law whose steepness is drawn, too."""
        power = rng.uniform(0.7, 1.6)
        ranks = np.floor(items ** rng.random(users) ** power).astype(np.int64)
        return cls(ranks.clip(1, items), items)

    def run(self, design, *, models=None, **options):
        scorer = self.scores if models is None else models
        given = {"items": self.items, "metrics": ["NDCG@10", "Recall@1"]}
        return evaluate(scorer, self.targets, design=design, **given | options)

    def scores(self, users, items):
        return -items.astype(float)


@pytest.fixture(scope="module")
def world() -> World:
    return World.drawn(np.random.default_rng(2))


@pytest.mark.parametrize("replacement", [True, False])
def test_users_in_full_have_their_full_ranks_and_the_others_samples(world, replacement):
    found = world.run(Fixed(20, replacement=replacement, full=40))
    in_full = found.sampled == world.items - 1
    assert in_full.sum() == 40
    assert (found.sampled[~in_full] == 20).all()
    assert (found.ranks[in_full] == world.ranks[in_full]).all()
    assert found.scored == 300 + 260 * 20 + 40 * 799 + 16
    # Another seed draws other users.
    assert (world.run(Fixed(20, full=40), rng=1).sampled != found.sampled).any()


def test_all_models_have_the_same_users_in_full(world):
    models = {"A": world.scores, "B": lambda users, items: (items * 7919 % 800).astype(float)}
    found = world.run(Fixed(20, full=40), models=models)
    alone = world.run(Fixed(20, full=40))
    for each in found.estimates.values():
        assert (each.sampled == alone.sampled).all()
    assert found.difference("A", "B", "NDCG@10").interval(0.95)[0] > 0.0


def test_scores_that_are_cheap_give_the_same_ranks(world):
    matrix = np.tile(-np.arange(float(world.items)), (len(world.ranks), 1))
    one, other = (world.run(Fixed(20, full=40), models=each) for each in (None, matrix))
    assert (one.ranks == other.ranks).all()
    assert one["NDCG@10"].value == other["NDCG@10"].value


def test_ties_of_users_in_full_are_broken_as_in_a_full_ranking():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, size=(200, 300)).astype(float)
    targets = np.repeat(np.arange(100), 2), rng.permuted(np.tile(np.arange(300), (100, 1)), axis=1)
    targets = targets[0], targets[1][:, :2].reshape(-1)
    whole = evaluate(scores, targets, items=300, metrics="NDCG@10", design="exact", rng=3)
    some = evaluate(scores, targets, items=300, metrics="NDCG@10", design=Fixed(9, full=30), rng=3)
    in_full = some.sampled == 299
    assert in_full.sum() == 60
    assert (some.ranks[in_full] == whole.ranks[in_full]).all()


def test_a_budget_pays_for_the_users_in_full_first(world):
    needed = 300 + 260 + 40 * 799
    found = world.run(Fixed(full=40), budget=60_000)
    assert found.scored <= 60_000
    assert found.design.sampled == (60_000 - 16 - 40 * 800) // 260 - 1
    with pytest.raises(BudgetError, match=f"at least {needed:,} scores .* fewer users in full"):
        world.run(Fixed(full=40), budget=needed - 1)
    assert world.run(Fixed(full=40), budget=needed).design.sampled == 1


def test_all_users_in_full_is_an_exact_evaluation(world):
    found = world.run(Fixed(20, full=1000))
    exact = world.run("exact")
    assert found["NDCG@10"].value == pytest.approx(exact["NDCG@10"].value)
    assert found["NDCG@10"].source == "mean"
    with pytest.raises(DesignError, match="full must be an integer of at least 0, got -1"):
        Fixed(full=-1)


def test_a_simulation_has_users_in_full_too(world):
    found = Fixed(20, full=40).simulate(world.ranks, items=world.items, rng=5)
    in_full = found.met == world.items - 1
    assert in_full.sum() == 40
    assert (found.ranks[in_full] == world.ranks[in_full]).all()
    assert int(found.counts.count[found.counts.known].sum()) == 40


# -- the plan --------------------------------------------------------------------------------------


def test_a_plan_ranks_users_in_full_where_that_is_cheaper_than_a_larger_sample():
    asked = {"items": 500, "users": 5000, "metrics": "Recall@1", "protocol": "repeats"}
    found = plan(**asked, error=0.15, odds=1.0)
    fixed = found.outcomes[0]
    assert fixed.design.full > 0
    assert fixed.setting == f"99 items for each target, {fixed.design.full:,} users in full"
    assert fixed.cost == 5000 * 100 + fixed.design.full * 400
    assert 0.12 < fixed.half_width / found.value <= 0.15
    # What is planned is what runs.
    ranks = np.floor(500 ** np.random.default_rng(0).random(5000)).astype(np.int64)
    assert fixed.design.simulate(ranks, items=500).scored == pytest.approx(fixed.cost, abs=16)


# -- what is promised ------------------------------------------------------------------------------


def findings(size: int, *, best: bool = False, monkeypatch=None) -> list[Finding]:
    """Return how often intervals hold; with ``best``, users with the best ranks are in full."""
    rng = np.random.default_rng(17)
    promise = "users in full beside samples: intervals hold"
    rows = []
    for seed in range(size):
        world = World.drawn(rng)
        if best:
            first = np.argsort(world.ranks, kind="stable")[:40]

            def chosen(self, users, user_order, first=first):
                return np.isin(users, first)

            monkeypatch.setattr(Fixed, "in_full", chosen)
        found = world.run(Fixed(20, full=40), rng=seed)
        truth = [
            float(entry.metric.weights(world.ranks, world.items).mean()) for entry in found.entries
        ]
        ends = [entry.interval(population=False) for entry in found.entries]
        rows.append([(*each, true) for each, true in zip(ends, truth, strict=True)])
    low, high, truth = np.moveaxis(np.array(rows), -1, 0)
    setting = "power laws drawn at random, 300 users, 40 in full, 20 negatives"
    return [
        coverage(promise, f"{setting}, {name}", low[:, at], high[:, at], truth[:, at], 0.92)
        for at, name in enumerate(("NDCG@10", "Recall@1"))
    ]


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore:these sampled ranks are unlike")
def test_intervals_hold_with_users_in_full(ledger):
    keep(ledger(findings(simulations(200))))


@pytest.mark.filterwarnings("ignore:these sampled ranks are unlike")
@pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")
def test_users_in_full_that_were_not_drawn_at_random_break_the_promise(monkeypatch, ledger):
    found = findings(12, best=True, monkeypatch=monkeypatch)
    ledger(found, planted="the users with the best ranks are ranked in full")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(found)


def test_users_in_full_that_were_not_drawn_at_random_raise_a_warning(monkeypatch):
    world = World.drawn(np.random.default_rng(2), users=3000)
    first = np.argsort(world.ranks, kind="stable")[:300]
    monkeypatch.setattr(Fixed, "in_full", lambda self, users, order: np.isin(users, first))
    found = Fixed(20, full=300).simulate(world.ranks, items=world.items)
    metrics = unsample.metrics.parse_all(["NDCG@10"])
    notes = [note.name for note in estimates_of(found, metrics).notes]
    assert "unlike" in notes or "refuted" in notes
