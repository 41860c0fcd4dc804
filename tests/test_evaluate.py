"""Designs by contract, and `evaluate`: the same answers however the work is done."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import unsample
from unsample import metrics
from unsample.designs import DESIGNS, Certified, Exact, Fixed, Guided, Run, run
from unsample.errors import (
    BudgetError,
    CheckpointError,
    DesignError,
    FileError,
    InputError,
    ScoreError,
    UnsampleWarning,
)
from unsample.questions.evaluate.ask import estimates_of, evaluate
from unsample.scoring import Candidates, as_scorer, exact_ranks

# Made-up ranks have shapes that no real ones have; that intervals say so is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")

METRICS = ["Recall@10", "NDCG@10", "AP@10", "NDCG@5", "Recall@1"]
FIRST_RANKS = [1, 1, 1, 2, 1, 8, 1, 3, 17, 1]


class World:
    """A factor model with targets at all ranks, and seen items."""

    def __init__(self, users=300, items=900, dim=6, seed=0, levels=None, share_seen=0.05):
        rng = np.random.default_rng(seed)
        self.items = items
        self.left = rng.normal(size=(users, dim))
        self.right = rng.normal(size=(items, dim))
        if levels:  # whole numbers of few kinds: many ties, and no rounding
            self.left, self.right = (
                rng.integers(-levels, levels + 1, size=factors.shape).astype(float)
                for factors in (self.left, self.right)
            )
        order = np.argsort(-(self.left @ self.right.T), axis=1)
        places = np.floor(items ** rng.random(users)).astype(int) - 1
        self.targets = np.arange(users), order[np.arange(users), places]
        seen = rng.random((users, items)) < share_seen
        seen[self.targets] = False
        self.exclude = csr_array(seen)

    def scores(self, users, items):
        return np.einsum("pd,pd->p", self.left[users], self.right[items])

    def run(self, design="fixed", **options):
        given = {
            "scorer": (self.left, self.right),
            "targets": self.targets,
            "items": self.items,
            "exclude": self.exclude,
            "metrics": METRICS,
        }
        return evaluate(design=design, **given | options)

    def find(self, design, *, scorer=None, budget=None, rng=0, **manner):
        """Run a design without the estimates, which take longer than all else."""
        design = DESIGNS[design]() if isinstance(design, str) else design
        candidates = Candidates.check(self.targets, self.items, self.exclude)
        options = {"metrics": metrics.parse_all(METRICS), "budget": budget, "rng": rng}
        given = (self.left, self.right) if scorer is None else scorer
        chosen = as_scorer(given, self.items)
        return run(design, [chosen], candidates, how=Run(**manner), **options)[0]


@pytest.fixture(scope="module")
def world():
    return World()


def same(first, second, which=""):
    for name in ("users", "ranks", "lowest", "items", "sampled", "met", "scored", "design"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), (which, name)


# -- the contract of every design ------------------------------------------------------------------

#: Designs, and budgets for 300 targets.
CASES = [
    (Exact(), [300_000]),
    (Fixed(), [None, 901, 30_000]),
    (Fixed(20, replacement=False), [6300]),
    (Fixed(20, full=9), [None, 30_000]),
    (Certified(), [None, 200_000]),
    (Guided(), [None, 6000, 300_000, 30_000]),
]
#: Each design with one of its budgets.
ONE_EACH = [pytest.param(design, b[-1], id=str(design)) for design, b in CASES]
EACH = [
    pytest.param(design, budget, id=f"{design}-{budget}") for design, b in CASES for budget in b
]


class Counting:
    """A scorer that counts what it is asked for, and remembers every pair."""

    def __init__(self, world):
        self.world, self.asked, self.calls = world, 0, []

    def __call__(self, users, items):
        self.asked += items.size
        self.calls.append((users, items))
        return self.world.scores(users, items)

    def pairs(self):
        return tuple(np.concatenate(each) for each in zip(*self.calls, strict=True))


def test_every_design_is_under_contract():
    assert {design.name for design, _ in CASES} == set(DESIGNS)


@pytest.mark.parametrize(("design", "budget"), EACH)
def test_what_is_scored_is_what_was_asked_for_and_within_the_budget(world, design, budget):
    scorer = Counting(world)
    found = world.find(design, scorer=scorer, budget=budget)
    assert scorer.asked == found.scored
    assert found.scored <= (budget or np.inf)
    if isinstance(design, Fixed):  # every model is compared with the same items
        other = Counting(world)
        world.find(design, scorer=lambda *pairs: -other(*pairs), budget=budget)
        assert set(zip(*other.pairs(), strict=True)) == set(zip(*scorer.pairs(), strict=True))
    users, items = scorer.pairs()
    own = items == world.targets[1][users]
    first = scorer.calls[0]
    probed = len(first[0]) if (first[1] == world.targets[1][first[0]]).all() else 0
    assert own.sum() == 300 + probed
    assert not world.exclude.toarray()[users, items].any()
    if not found.design.with_replacement:
        pairs = users[~own] * world.items + items[~own]
        assert len(np.unique(pairs)) == len(pairs), "no item is scored twice"
    assert own.sum() + found.met.sum() == found.scored
    assert np.array_equal(found.sampled, found.items - 1 if design.certifies else found.met)


def module_of(world):
    """Return a module of torch, in training mode, with dropout that must not show."""
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = (
                torch.nn.Embedding.from_pretrained(torch.as_tensor(factors))
                for factors in (world.left, world.right)
            )
            self.dropout = torch.nn.Dropout(0.5)

        def forward(self, users, items):
            return (self.dropout(self.left(users)) * self.right(items)).sum(-1, keepdim=True)

    return Module().train()


def rows(world):
    return world.left @ world.right.T


#: Every form of a scorer, of which the first is the usual one.
FORMS = {
    "factors": lambda world: (world.left, world.right),
    "function": lambda world: world.scores,
    "module": module_of,
    "score_all": lambda world: SimpleNamespace(score_all=lambda users: rows(world)[users]),
    "matrix": rows,
    "item-item": lambda world: (csr_array(world.left), world.right.T),
}


@pytest.mark.parametrize(("design", "budget"), ONE_EACH)
def test_scorers_batches_and_threads_change_nothing(world, design, budget):
    first = world.find(design, budget=budget)
    for name, form in FORMS.items():
        scorer = form(world)
        same(first, world.find(design, budget=budget, scorer=scorer), name)
        assert getattr(scorer, "training", True), "a module is left in the mode it was in"
    same(first, world.find(design, budget=budget, batch=400))
    same(first, world.find(design, budget=budget, workers=3, batch=3000))


@pytest.mark.parametrize(("design", "budget"), ONE_EACH)
def test_a_simulation_and_an_evaluation_find_the_same_in_distribution(design, budget):
    wide = World(users=3000, items=400)
    options = {"items": wide.items, "exclude": wide.exclude}
    full = exact_ranks((wide.left, wide.right), wide.targets, **options)
    budget = budget and 10 * budget
    met = wide.find(design, budget=budget)
    drawn = design.simulate(full.ranks, items=full.items, budget=budget, metrics=METRICS, rng=1)
    assert drawn.design == met.design
    assert drawn.replacement == met.replacement == met.design.with_replacement
    assert drawn.scored <= (budget or np.inf)
    assert drawn.scored == pytest.approx(met.scored, rel=0.1)
    if design.exact:
        drawn, met = (
            estimates_of(found, metrics.parse_all("NDCG@10"))["NDCG@10"].value
            for found in (drawn, met)
        )
        assert drawn == pytest.approx(met, abs=1e-12)
    else:
        for level in (1, 2):
            share = (met.ranks == level).mean()
            assert (drawn.ranks == level).mean() == pytest.approx(share, abs=0.035)


@pytest.mark.parametrize(("design", "budget"), ONE_EACH)
def test_an_interrupted_evaluation_comes_to_the_same_result(world, design, budget, tmp_path):
    calls = Counting(world)

    def failing(users, items):
        if len(calls.calls) == 3:
            raise InterruptedError
        return calls(users, items)

    options = {"batch": 2000, "checkpoint": tmp_path / "state.npz", "budget": budget}
    whole = world.find(design, scorer=world.scores, budget=budget)
    with pytest.raises(InterruptedError):
        world.find(design, scorer=failing, **options)
    scorer = Counting(world)
    same(world.find(design, scorer=scorer, **options), whole)
    assert scorer.asked < whole.scored
    # A finished one is read, not repeated: only the probe is asked for.
    scorer = Counting(world)
    same(world.find(design, scorer=scorer, **options), whole)
    assert scorer.asked <= 16


@pytest.mark.parametrize(
    ("design", "least"),
    [
        (Exact(), 900 * 300),
        (Fixed(), 600),
        (Fixed(20), 6300),
        (Certified(), 11 * 300),
        (Guided(), 11 * 300 + 2 * 899),
    ],
)
def test_a_budget_that_cannot_suffice_names_the_least_that_would(world, design, least):
    world = copy.copy(world)
    world.exclude = None
    with pytest.raises(BudgetError, match=rf"at least {least:,} scores"):
        world.find(design, budget=least - 1)
    if not isinstance(design, Certified):
        assert world.find(design, budget=least).scored == least
        return
    with pytest.raises(BudgetError, match=r"targets open; raise it"):
        world.find(design, budget=least)


def test_a_generator_gives_one_key_and_a_seed_the_numbers_it_gave(world):
    rng = np.random.default_rng(3)
    key = int(np.random.default_rng(3).integers(2**63))
    same(world.find("fixed", rng=rng), world.find("fixed", rng=key))
    assert rng.random() != np.random.default_rng(3).random()
    # The items that targets meet have been these since the first version.
    assert world.find(Fixed(20), rng=7).ranks[:10].tolist() == FIRST_RANKS


# -- the design that is taken by default ---------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "exact"),
        ({"budget": 270_000}, "exact"),
        ({"budget": 30_000}, "guided"),
        ({"guide": np.arange(900)}, "certified"),
        ({"scorer": "one by one"}, "certified"),
        ({"scorer": "one by one", "metrics": "AUC"}, "exact"),
        ({"scorer": "one by one", "budget": 270_000}, "guided"),
        ({"scorer": "one by one", "budget": 30_000, "metrics": ["MRR", "AUC"]}, "fixed"),
    ],
)
def test_whole_rows_are_ranked_in_full_and_other_scorers_as_far_as_needed(world, options, name):
    if "scorer" in options:
        options = options | {"scorer": world.scores}
    assert world.run(None, **options).design.name == name


# -- what comes out ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:K must be at most items")
@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    items=st.integers(2, 700),
    levels=st.sampled_from([None, 1, 3]),
    ties=st.sampled_from(["random", "optimistic", "pessimistic"]),
    k=st.sampled_from([1, 3, 10, 50]),
    share_seen=st.sampled_from([0.0, 0.1, 0.6]),
    guide=st.sampled_from([None, "noise", "factors"]),
)
def test_certified_metrics_equal_those_of_a_full_ranking(
    seed, items, levels, ties, k, share_seen, guide
):
    world = World(40, items, 3, seed, levels, share_seen)
    noise = np.random.default_rng(seed).normal(size=items)
    guide = {"noise": noise, "factors": (world.left, world.right)}.get(guide)
    try:
        metrics = [f"{name}@{k}" for name in ("Recall", "NDCG", "AP")]
        certified = world.run(
            "certified", metrics=metrics, run=Run(ties=ties), rng=seed, guide=guide
        )
        full = world.run("exact", metrics=metrics, run=Run(ties=ties), rng=seed)
    except InputError as problem:  # seen left a target alone
        assert "another candidate" in str(problem)  # noqa: PT017
        return
    for metric in metrics:
        assert certified[metric].value == pytest.approx(full[metric].value, abs=1e-12)
    top = full.ranks <= k
    assert np.array_equal(certified.ranks[top], full.ranks[top])
    assert (certified.ranks[~top] > k).all()
    assert (certified.ranks <= full.ranks).all()
    assert (full.ranks <= certified.highest).all()
    assert certified.scored <= full.scored
    assert certified.counts.total == 40


# -- checkpoints ---------------------------------------------------------------------------------


def test_a_checkpoint_of_another_evaluation_is_refused(world, tmp_path):
    path = tmp_path / "state.npz"
    world.find("fixed", checkpoint=path)
    with pytest.raises(CheckpointError, match="other targets, items, excluded pairs, design"):
        world.find("fixed", checkpoint=path, rng=1)
    path.write_bytes(b"nonsense")
    with pytest.raises(FileError, match="cannot read checkpoint"):
        world.find("fixed", checkpoint=path)


def test_a_finished_checkpoint_of_another_model_is_refused(world, tmp_path):
    path = tmp_path / "state.npz"
    world.find("certified", checkpoint=path)
    with pytest.raises(ScoreError, match="must be the same when asked for again"):
        world.find("certified", scorer=lambda *pairs: -world.scores(*pairs), checkpoint=path)


def test_a_certified_evaluation_goes_on_with_a_larger_budget(world, tmp_path):
    path = tmp_path / "state.npz"
    with pytest.raises(BudgetError, match="targets open"):
        world.find("certified", budget=12_000, checkpoint=path)
    same(world.find("certified", checkpoint=path), world.find("certified"))


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda scores: scores * np.nan, r"got 16 NaN .* first for user 0 and item"),
        (lambda scores: scores - np.inf, "scores of targets must be finite, got"),
        (
            lambda scores: scores + np.random.default_rng().normal(size=scores.shape),
            "must be the same when asked for again, got 1",
        ),
        (lambda scores: scores - scores.sum(), "no score may depend on the other items of a call"),
    ],
)
def test_bad_scores_are_refused(world, spoil, words):
    with pytest.raises(ScoreError, match=words):
        world.run("fixed", scorer=lambda *pairs: spoil(world.scores(*pairs)))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"design": "guide"}, DesignError, "did you mean guided"),
        ({"design": 3}, InputError, "design must be a name or a design"),
        (
            {"design": "certified", "metrics": "AUC"},
            DesignError,
            "must have a K .*'certified', got",
        ),
        ({"design": "guided", "metrics": "MRR"}, DesignError, "MRR@10, or use design='exact' or"),
        (
            {"design": None, "error": 0.1, "metrics": "MRR", "scorer": len},
            DesignError,
            "must have a K with design='guided', got MRR; write MRR@10, or leave error out and use",
        ),
        (
            {"budget": 700, "design": "guided"},
            BudgetError,
            "raise it, evaluate fewer targets, or use design='fixed'$",
        ),
        (
            {"budget": 700, "design": Fixed(99)},
            BudgetError,
            "raise it, evaluate fewer targets, or sample fewer items$",
        ),
        ({"budget": 500, "design": "fixed"}, BudgetError, "raise it, or evaluate fewer targets$"),
        ({"budget": 900.5}, InputError, "budget must be an integer"),
        ({"design": Fixed(899, replacement=False)}, DesignError, "sampled must be at most"),
        ({"error": 1.5, "scorer": len}, DesignError, "error must be a number in"),
        ({"scorer": (np.ones((2, 2)),)}, InputError, "pair of matrices"),
        ({"rng": -1}, InputError, "rng must be"),
    ],
)
def test_bad_arguments_are_refused(world, options, error, words):
    with pytest.raises(error, match=words):
        world.run(**options)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_budget_of_any_size_is_enough(world, design):
    small = World(users=40, items=60)
    found = [small.find(design, scorer=small.scores, budget=budget) for budget in (10**9, 10**30)]
    same(*found)
    simulated = [
        DESIGNS[design]().simulate([1, 50, 9], items=60, budget=budget)
        for budget in (10**9, 10**30)
    ]
    assert simulated[0].scored == simulated[1].scored


def _refuses_what_it_does_not_know(world):
    class Model:
        def score_all(self, users):
            return (world.left @ world.right.T)[users]

    weights = np.eye(world.items)
    yield "factors", (world.left, world.right), InputError
    yield "matrix", world.left @ world.right.T, InputError
    yield "item-item", (csr_array((len(world.left), world.items)), weights), InputError
    yield "function", world.scores, ScoreError
    yield "object", Model(), ScoreError


def test_swapped_targets_are_no_fault_of_the_scorer(world):
    users, items = world.targets
    for name, scorer, error in _refuses_what_it_does_not_know(world):
        given = {"targets": (items, users), "items": world.items, "metrics": "NDCG@10"}
        with pytest.raises(error, match=r"targets are \(users, items\), in this order") as told:
            evaluate(scorer, **given)
        assert "must take" not in str(told.value), name
    with pytest.raises(InputError, match=r"rows of exclude.* targets are \(users, items\)"):
        world.run(targets=(items, users))
    with pytest.raises(InputError, match=r"300 users of the scorer.* \(model 'B'\)"):
        evaluate({"A": world.scores, "B": (world.left, world.right)}, **given)


@pytest.mark.parametrize(("item", "design"), [(-5, "exact"), (-5, "certified"), (900, "fixed")])
def test_pairs_to_exclude_are_of_the_catalogue(world, item, design):
    starts = np.append(0, np.full(300, 3))
    exclude = csr_array((np.ones(3), np.array([1, item, 7]), starts), shape=(300, 900))
    words = f"exclude must hold items in 0..899, got {item} at position 2 of 3"
    with pytest.raises(InputError, match=words):
        world.run(design, scorer=world.scores, exclude=exclude)
    with pytest.raises(InputError, match=words):
        exact_ranks((world.left, world.right), world.targets, items=900, exclude=exclude)


def test_an_exact_evaluation_costs_a_full_ranking(world):
    whole = world.run("exact", exclude=None)
    assert whole.scored == 300 * 900 + 16
    assert whole.cost == (
        "exact design: 270,016 scores, 900.1 for each target, a full ranking and 16 scores asked "
        "for twice"
    )
    part = world.run("fixed", budget=27_000, exclude=None)
    assert part.cost.endswith("for each target, 9.895 % of a full ranking")


def test_bad_targets_are_refused(world):
    with pytest.raises(InputError, match="each item of a user once, got 1 repeated pairs"):
        world.run(targets=([0, 0], [3, 3]), exclude=None)
    seen = world.exclude.tolil()
    seen[5, world.targets[1][5]] = True
    with pytest.raises(InputError, match=r"got 1 that are, the first item \d+ of user 5"):
        world.run(exclude=seen.tocsr())
    everything = np.ones((300, 900), dtype=bool)
    everything[world.targets] = False
    with pytest.raises(InputError, match="another candidate, got 300 without"):
        world.run(exclude=csr_array(everything))


# -- within an error -----------------------------------------------------------------------------


def test_an_error_is_reached_at_less_cost_and_an_exact_one_needs_none():
    wide = World(users=1500, items=1200, seed=2)
    full = wide.run("exact", metrics="NDCG@10")
    heard = []
    how = unsample.Run(progress=lambda done, total, note="": heard.append((done, total, note)))
    options = {"scorer": wide.scores, "metrics": "NDCG@10", "run": how}
    found = {error: wide.run(None, error=error, **options) for error in (0.1, 0.3)}
    assert all(0 <= done <= total <= 1500 * 1200 for done, total, _ in heard)
    notes = [note for _, _, note in heard]
    assert any("open users, at most" in note and "scores more" in note for note in notes)
    assert any("NDCG@10 within" in note and "so far" in note for note in notes)
    heard.clear()
    certified = wide.run(None, **options)
    assert certified.reached is None
    # A bar tells how much of the work is done: once an eighth is, it is right within an eighth.
    work = np.array([(done / heard[-1][0], done / total) for done, total, _ in heard])
    assert np.abs(work[:, 0] - work[:, 1])[work[:, 0] > 1 / 8].max() < 1 / 8
    done, total, note = heard[-1]
    assert done == total == certified.scored - 1500 - 16
    assert note == "scores, 1,500 of 1,500 targets known"
    for error, each in found.items():
        assert each.design.error == error
        assert each.reached == (each.half_widths["NDCG@10"] <= error)
        low, high = each["NDCG@10"].interval(0.999, population=False)
        assert low < full["NDCG@10"].value < high
        assert each.to_dict()["reached"] == each.reached
    assert found[0.3].scored < found[0.1].scored < certified.scored
    # Factors are ranked in full, which is within any error.
    assert wide.run(None, metrics="NDCG@10", error=0.1).reached


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_a_budget_beside_an_error_is_a_hard_limit(world):
    with pytest.warns(UnsampleWarning, match="the error sought was not reached: .* within"):
        found = world.run(None, scorer=world.scores, error=0.01, budget=20_000)
    assert found.scored <= 20_000
    assert found.reached is False
