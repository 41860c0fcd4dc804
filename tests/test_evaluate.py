"""`evaluate`: any scorer, four designs, the same answers however the work is done."""

from __future__ import annotations

import json
import runpy
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chi2

import unsample
from unsample.answers.evaluation import (
    DESIGNS,
    Adaptive,
    Certified,
    Exact,
    Fixed,
    evaluate,
    evaluate_known_ranks,
)
from unsample.designs.ranking import FactorScores, exact_ranks
from unsample.errors import (
    BudgetError,
    CheckpointError,
    DesignError,
    FileError,
    InputError,
    ScoreError,
    UnresolvedWarning,
)
from unsample.lab.datasets import load_ranks, names, synthetic
from unsample.law import Law

# Made-up ranks have shapes that no real ones have; that intervals say so is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")

METRICS = ["Recall@10", "NDCG@10", "AP@10", "NDCG@5", "Recall@1"]


class World:
    """A factor model with targets at all ranks, and seen items."""

    def __init__(self, users=300, items=900, dim=6, seed=0, levels=None, share_seen=0.05):
        rng = np.random.default_rng(seed)
        self.items = items
        self.left = rng.normal(size=(users, dim))
        self.right = rng.normal(size=(items, dim))
        if levels:  # whole numbers of few kinds: many ties, and no rounding
            self.left, self.right = (
                rng.integers(-levels, levels + 1, size=one.shape).astype(float)
                for one in (self.left, self.right)
            )
        order = np.argsort(-(self.left @ self.right.T), axis=1)
        places = np.floor(items ** rng.random(users)).astype(int) - 1
        self.targets = np.arange(users), order[np.arange(users), places]
        seen = rng.random((users, items)) < share_seen
        seen[self.targets] = False
        self.exclude = csr_array(seen)

    def scores(self, users, items):
        return np.einsum("id,ijd->ij", self.left[users], self.right[items])

    def run(self, design="adaptive", **options):
        settings = {
            "items": self.items,
            "exclude": self.exclude,
            "metrics": METRICS,
            "resamples": 0,
        }
        scorer = options.pop("scorer", (self.left, self.right))
        return evaluate(scorer, self.targets, design=design, **settings | options)


@pytest.fixture(scope="module")
def world():
    return World()


def same(first, second):
    for name in ("users", "targets", "ranks", "highest", "sampled", "items", "compared"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert [e.value for e in first.estimates.entries] == [e.value for e in second.estimates.entries]


# -- what comes out ------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("levels", [None, 1])
def test_exact_equals_the_ranks_of_the_ranking_room(levels, seen):
    world = World(levels=levels)
    found = world.run("exact", ties="optimistic", exclude=world.exclude if seen else None)
    ranks = exact_ranks(
        FactorScores(world.left, world.right),
        *world.targets,
        items=world.items,
        exclude=world.exclude if seen else None,
        ties="optimistic",
    )
    assert np.array_equal(found.ranks, ranks.ranks)
    assert np.array_equal(found.items, ranks.items)
    assert found.share == 1.0
    expected = unsample.exact(ranks.ranks, items=ranks.items, metrics=METRICS, resamples=0)
    for metric in METRICS:
        assert found[metric].value == pytest.approx(expected[metric].value, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    items=st.integers(2, 700),
    levels=st.sampled_from([None, 1, 3]),
    ties=st.sampled_from(["random", "optimistic", "pessimistic"]),
    k=st.sampled_from([1, 3, 10, 50]),
    share_seen=st.sampled_from([0.0, 0.1, 0.6]),
)
def test_certified_metrics_equal_those_of_a_full_ranking(seed, items, levels, ties, k, share_seen):
    world = World(40, items, 3, seed, levels, share_seen)
    try:
        metrics = [f"{name}@{k}" for name in ("Recall", "NDCG", "AP")]
        certified, full = (
            world.run(design, metrics=metrics, ties=ties, seed=seed)
            for design in ("certified", "exact")
        )
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


@pytest.mark.parametrize("dataset", names())
@pytest.mark.parametrize("protocol", ["everyday", "paper"])
def test_certified_is_exact_on_every_bundled_recommender(dataset, protocol):
    for recommender in ("ease", "als"):
        known = load_ranks(dataset, recommender, protocol=protocol)
        some = slice(None, None, 20)
        ranks, items = known.ranks[some], known.items[some]
        found = evaluate_known_ranks(
            ranks, items=items, design="certified", metrics=METRICS, resamples=0
        )
        expected = unsample.exact(ranks, items=items, metrics=METRICS, resamples=0)
        for metric in METRICS:
            assert found[metric].value == pytest.approx(expected[metric].value, abs=1e-12)


def test_certified_costs_little_more_than_the_law_of_its_stop():
    known = load_ranks("citeulike-a", "ease")
    found = evaluate_known_ranks(
        known.ranks, items=known.items, design="certified", metrics="NDCG@10", resamples=0
    )
    law = (np.minimum(1, 10 / known.ranks) * known.items).sum() / known.items.sum()
    assert 0.95 * law < found.share < 1.05 * law


def test_what_fills_a_batch_is_never_counted():
    # Scores that depend on where in a batch they stand, as those of matrix products may.
    def scores(users, items):
        return -(items % 97) + 1e-9 * np.arange(items.shape[1])

    pairs = np.arange(60), np.arange(60) * 7 % 500
    options = {"items": 500, "metrics": "Recall@10", "resamples": 0}
    found = evaluate(scores, pairs, design="certified", batch=3000, **options)
    alone = evaluate(scores, pairs, design="certified", batch=1, **options)
    assert np.array_equal(found.compared, alone.compared)
    assert (found.compared <= 499).all()
    assert (found.ranks <= 500).all()


def test_a_budget_is_kept_and_used(world):
    for budget in (7, 50, 200):
        found = world.run(Adaptive(budget=budget))
        assert 0.75 * budget < found.scored / 300 <= budget
    assert world.run("fixed", budget=37).scored == 37 * 300


def test_without_replacement_a_target_followed_to_its_end_is_known(world):
    found, full = world.run(Adaptive()), world.run("exact")
    known = found.sampled == found.items - 1
    assert known.any()
    assert np.array_equal(found.ranks[known], full.ranks[known])
    # Nothing beats the first, so it is followed to its end.
    assert known[full.ranks == 1].all()


@pytest.mark.parametrize("replacement", [True, False])
def test_sampled_ranks_follow_the_law_of_their_design(replacement):
    ranks = np.full(6000, 25)
    found = evaluate_known_ranks(
        ranks, items=np.full(6000, 400), design=Fixed(30, replacement), resamples=0
    )
    expected = 6000 * Law(400, 30, replacement).pmf(np.arange(1, 32), 25)
    times = np.bincount(found.ranks, minlength=32)[1:]
    kept = expected > 10
    statistic = ((times[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    assert statistic < chi2.ppf(0.9999, kept.sum() - 1)


def test_ties_broken_at_random_give_the_law_of_the_mean_rank():
    # Ten items, all alike: the target's rank is uniform, and so is what fixed sampling sees of it.
    users = np.arange(5000)
    found = evaluate(
        lambda users, items: np.zeros(items.shape),
        (users, users % 10),
        items=10,
        design=Fixed(4, replacement=False),
        metrics="Recall@5",
        resamples=0,
    )
    times = np.bincount(found.ranks, minlength=6)[1:]
    assert ((times - 1000) ** 2 / 1000).sum() < chi2.ppf(0.9999, 4)
    full = evaluate(
        lambda users, items: np.zeros(items.shape),
        (users, users % 10),
        items=10,
        design="exact",
        metrics="Recall@5",
        resamples=0,
    )
    times = np.bincount(full.ranks, minlength=11)[1:]
    assert ((times - 500) ** 2 / 500).sum() < chi2.ppf(0.9999, 9)


def test_adaptive_estimates_are_close_where_fixed_ones_of_the_same_cost_are_not():
    known = load_ranks("citeulike-a", "ease")
    truth = unsample.exact(known.ranks, items=known.items, metrics="NDCG@10", resamples=0)
    exact = truth["NDCG@10"].value
    options = {"items": known.items, "budget": 500, "metrics": "NDCG@10"}
    adaptive = evaluate_known_ranks(known.ranks, design="adaptive", **options)
    fixed = evaluate_known_ranks(known.ranks, design="fixed", method="mle", **options)
    assert adaptive.scored <= fixed.scored
    assert abs(adaptive["NDCG@10"].value / exact - 1) < 0.06
    assert abs(fixed["NDCG@10"].value / exact - 1) > 0.12
    low, high = adaptive["NDCG@10"].interval()
    assert low < exact < high
    assert adaptive["NDCG@10"].resolved
    assert not fixed["NDCG@10"].resolved


# -- however the work is done --------------------------------------------------------------------


@pytest.mark.parametrize("design", [*DESIGNS, Adaptive(replacement=True, cap=500)])
def test_batches_and_threads_change_nothing(world, design):
    first = world.run(design)
    same(first, world.run(design, batch=50))
    same(first, world.run(design, workers=3, batch=700))


def test_models_evaluated_with_one_seed_meet_the_same_items(world):
    met = []

    def listening(users, items):
        met.append({(u, i) for u, row in zip(users, items, strict=True) for i in row})
        return world.scores(users, items)

    world.run("fixed", scorer=listening)
    first = set.union(*met)
    met.clear()
    world.run("fixed", scorer=lambda users, items: -listening(users, items))
    assert set.union(*met) == first
    met.clear()
    world.run("fixed", scorer=listening, seed=1)
    assert set.union(*met) != first


def test_items_met_are_candidates_and_without_replacement_never_met_twice(world):
    met: dict[int, list[int]] = {}

    def listening(users, items):
        for user, row in zip(users.tolist(), items.tolist(), strict=True):
            met.setdefault(user, []).extend(row[1:])
            assert row[0] == world.targets[1][user]
        return world.scores(users, items)

    found = world.run("adaptive", scorer=listening)
    seen = world.exclude.toarray()
    for user, items in met.items():
        others = [item for item in items if item != world.targets[1][user]]
        # The probe asks twice for the first items of some users.
        assert found.compared[user] <= len(others) <= found.compared[user] + 64
        assert len(set(others)) == max(found.compared[user], len(set(others[:32])))
        assert not seen[user][others].any()


@pytest.mark.parametrize("design", ["adaptive", "certified", "exact"])
@pytest.mark.parametrize("calls", [3, 8])
def test_an_interrupted_evaluation_goes_on_to_the_same_result(world, tmp_path, design, calls):
    class CrashError(RuntimeError):
        pass

    left = [calls]

    def failing(users, items):
        if left[0] == 0:
            raise CrashError
        left[0] -= 1
        return world.scores(users, items)

    path = tmp_path / "state.npz"
    options = {"batch": 5000, "checkpoint": path}
    with pytest.raises(CrashError):
        world.run(design, scorer=failing, **options)
    assert path.exists()
    asked: list[int] = []

    def counting(users, items):
        asked.append(items.size)
        return world.scores(users, items)

    resumed = world.run(design, scorer=counting, **options)
    whole = world.run(design, scorer=world.scores)
    same(resumed, whole)
    assert sum(asked) < whole.asked
    # A finished one is read, not repeated: only the probe is asked for.
    asked.clear()
    same(world.run(design, scorer=counting, **options), whole)
    assert len(asked) == 2


def test_a_full_ranking_from_whole_rows_can_be_interrupted_too(world, tmp_path):
    class Rows:
        def __init__(self, rows):
            self.rows = rows

        def score(self, users, items):
            return world.scores(users, items)

        def score_all(self, users):
            self.rows -= len(users)
            if self.rows < 0:
                raise RuntimeError("out of rows")
            return world.left[users] @ world.right.T

    path = tmp_path / "state.npz"
    large = World(users=5000, items=900)
    world = large
    with pytest.raises(RuntimeError, match="out of rows"):
        large.run("exact", scorer=Rows(3000), checkpoint=path)
    same(large.run("exact", scorer=Rows(3000), checkpoint=path), large.run("exact"))


def test_a_checkpoint_of_another_evaluation_is_refused(world, tmp_path):
    path = tmp_path / "state.npz"
    world.run("certified", checkpoint=path)
    with pytest.raises(CheckpointError, match="other targets, items, excluded pairs, design"):
        world.run("certified", checkpoint=path, seed=1)
    with pytest.raises(CheckpointError, match="other scores"):
        world.run("certified", checkpoint=path, scorer=(-world.left, world.right))
    path.write_bytes(b"nonsense")
    with pytest.raises(FileError, match="cannot read checkpoint"):
        world.run("certified", checkpoint=path)


def test_a_certified_evaluation_goes_on_with_a_larger_budget(world, tmp_path):
    path = tmp_path / "state.npz"
    with pytest.raises(BudgetError, match="still open"):
        world.run("certified", budget=40, checkpoint=path)
    same(world.run("certified", checkpoint=path), world.run("certified"))


def test_progress_is_told(world):
    told = []
    world.run("adaptive", progress=lambda done, total, note="": told.append((done, total, note)))
    assert told
    assert all(done <= total == 300 for done, total, _ in told)


# -- any scorer ----------------------------------------------------------------------------------


def test_every_kind_of_scorer_gives_the_same(world):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = (
                torch.nn.Embedding.from_pretrained(torch.as_tensor(one))
                for one in (world.left, world.right)
            )
            self.dropout = torch.nn.Dropout(0.5)

        def forward(self, users, items):
            return (self.dropout(self.left(users)) * self.right(items)).sum(-1, keepdim=True)

    class Factors:
        user_factors, item_factors = world.left, world.right

    class Recommender:
        score = staticmethod(world.scores)

        @staticmethod
        def score_all(users):
            return world.left[users] @ world.right.T

    module = Module().train()
    kinds = [
        FactorScores(world.left, world.right),
        tuple(map(torch.as_tensor, (world.left, world.right))),
        module,
        Factors(),
        Recommender(),
        world.scores,
    ]
    for design in ("adaptive", "exact"):
        expected = world.run(design)
        for scorer in kinds:
            assert np.array_equal(world.run(design, scorer=scorer).ranks, expected.ranks)
    assert module.training, "the module is left in the mode in which it was found"
    assert module.dropout.training


def test_models_of_implicit_are_scorers():
    library = pytest.importorskip("implicit.cpu.als")
    data = synthetic(200, 150, pairs=3000, rng=0).matrix()
    model = library.AlternatingLeastSquares(factors=8, iterations=3, random_state=0, num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its advice on BLAS threads
        model.fit(data.astype(np.float32), show_progress=False)
    found = evaluate(model, {3: 5, 4: [6, 7]}, items=150, design="certified", resamples=0)
    assert len(found.ranks) == 3
    assert found.users.tolist() == [3, 4, 4]


def test_our_recommenders_are_scorers():
    from unsample.lab.datasets import leave_random_out
    from unsample.lab.recommenders import create

    split = leave_random_out(synthetic(300, 200, pairs=6000, rng=0), rng=0)
    model = create("ease").fit_split(split)
    options = {"items": 200, "exclude": split.train.matrix(), "resamples": 0}
    pairs = split.target_user, split.target_item
    full = evaluate(model, pairs, design="exact", **options)
    certified = evaluate(model, pairs, design="certified", **options)
    assert certified["NDCG@10"].value == pytest.approx(full["NDCG@10"].value, abs=1e-12)


def test_targets_may_be_a_dict_a_pair_or_a_matrix(world):
    users, items = world.targets
    expected = world.run("certified").ranks
    for targets in (
        dict(zip(users.tolist(), items.tolist(), strict=True)),
        [users, items],
        csr_array((np.ones(300), (users, items)), shape=(300, world.items)),
    ):
        found = evaluate(
            (world.left, world.right),
            targets,
            items=world.items,
            exclude=world.exclude,
            design="certified",
            resamples=0,
        )
        assert np.array_equal(found.ranks, expected)


def test_weights_say_how_targets_count(world):
    weights = np.where(np.arange(300) < 100, 1.0, 0.0)
    weighted = world.run("exact", weights=weights)
    ranks = weighted.ranks[:100]
    expected = unsample.exact(ranks, items=world.items, metrics="NDCG@10", resamples=0)
    assert weighted["NDCG@10"].value == pytest.approx(expected["NDCG@10"].value)


def test_the_result_prints_its_cost_and_becomes_json(world):
    found = world.run("certified", resamples=20)
    assert "certified design" in str(found)
    assert "of a full ranking" in str(found)
    shown = found.to_dict()
    assert shown["scored"] == found.scored == found.compared.sum()
    assert shown["share"] == found.share < 1
    assert '"design": "certified"' in found.to_json()


# -- bad input -----------------------------------------------------------------------------------


def noisy(world):
    rng = np.random.default_rng(0)
    return lambda users, items: world.scores(users, items) + rng.normal(size=items.shape)


def spoilt(world, value, at=slice(None)):
    def scores(users, items):
        result = world.scores(users, items)
        result[:, at] = value
        return result

    return scores


@pytest.mark.parametrize(
    ("scorer", "words"),
    [
        (lambda world: lambda users, items: world.scores(users, items)[:, 1:], "of shape"),
        (lambda world: spoilt(world, np.nan, 3), r"got 16 NaN .* first for user 0 and item"),
        (lambda world: spoilt(world, -np.inf, 0), "scores of targets must be finite, got"),
        (noisy, "must be the same when asked for again, got 5"),
        (lambda world: lambda users, items: items.astype(str), "must be real numbers"),
    ],
)
def test_bad_scores_are_refused(world, scorer, words):
    with pytest.raises(ScoreError, match=words):
        world.run("adaptive", scorer=scorer(world))


def test_infinite_scores_of_other_items_are_told_of(world):
    found = world.run(Fixed(20), scorer=spoilt(world, -np.inf, 2))
    assert any("scores were infinite, the first for user 0" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"design": "adaptiv"}, DesignError, "did you mean adaptive"),
        ({"design": 3}, InputError, "design must be a name or a design"),
        ({"design": Adaptive(cap=5)}, DesignError, "cap must be at least the largest K = 10"),
        ({"design": Certified(k=5)}, DesignError, "k must be at least the largest K"),
        ({"design": "certified", "metrics": "AUC"}, DesignError, "must have a K to be certified"),
        ({"design": "certified", "budget": 3}, BudgetError, "at least 10 items a target"),
        ({"design": "certified", "budget": 12}, BudgetError, "targets are still open; about"),
        ({"design": "exact", "budget": 12}, BudgetError, "to rank all candidates"),
        ({"design": "adaptive", "budget": 0}, DesignError, "budget must be an integer"),
        ({"design": Fixed(9), "budget": 9}, DesignError, "left out with sampled"),
        ({"design": Fixed(899, replacement=False)}, DesignError, "sampled must be at most"),
        ({"design": "exact", "method": "mle"}, DesignError, "method must be left out"),
        ({"ties": "realistic"}, InputError, "no whole number"),
        ({"ties": "fair"}, InputError, "ties must be one of"),
        ({"items": 1}, InputError, "items must be"),
        ({"items": 901, "exclude": None}, InputError, "number of rows of the item factors, 900"),
        ({"scorer": 5}, InputError, "scorer must be a callable"),
        ({"scorer": (np.ones((2, 2)),)}, InputError, "pair of factor matrices"),
        ({"seed": -1}, InputError, "seed must be"),
        ({"batch": 0}, InputError, "batch must be"),
    ],
)
def test_bad_arguments_are_refused(world, options, error, words):
    with pytest.raises(error, match=words):
        world.run(**{"design": "adaptive"} | options)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"start": 20, "cap": 10}, "start must be at most cap"),
        ({"growth": 1.0}, "growth must be"),
        ({"stop": 0}, "stop must be"),
        ({"replacement": True}, "cap or budget must be given with replacement"),
    ],
)
def test_bad_designs_are_refused(parameters, words):
    with pytest.raises(DesignError, match=words):
        Adaptive(**parameters)


def test_bad_targets_are_refused(world):
    def run(targets, seen=None):
        evaluate((world.left, world.right), targets, items=world.items, exclude=seen)

    with pytest.raises(InputError, match=r"targets must be in 0..899"):
        run(([0], [900]))
    with pytest.raises(InputError, match="targets must be a pair"):
        run("everything")
    with pytest.raises(InputError, match="at least one target"):
        run(([], []))
    seen = world.exclude.tolil()
    seen[5, world.targets[1][5]] = True
    with pytest.raises(InputError, match=r"got 1 that are, the first item \d+ of user 5"):
        run(world.targets, seen.tocsr())
    everything = np.ones((300, 900), dtype=bool)
    everything[world.targets] = False
    with pytest.raises(InputError, match="another candidate, got 300 without"):
        run(world.targets, csr_array(everything))


def test_a_sample_that_cannot_see_the_top_says_so(world):
    with pytest.warns(UnresolvedWarning, match="not resolved"):
        found = world.run(Fixed(10))
    assert not found["NDCG@10"].resolved
    assert any("not resolved" in text for text in found.warnings)


def test_exact_needs_no_parameters():
    assert Exact().with_replacement is False


# -- on a device ---------------------------------------------------------------------------------


def test_device_is_for_factors_ranked_in_full(world):
    pytest.importorskip("torch")
    for options in ({"design": "adaptive"}, {"design": "exact", "scorer": world.scores}):
        with pytest.raises(InputError, match="device must be left out"):
            world.run(device="cpu", **options)
    assert np.array_equal(world.run("exact", device="cpu").ranks, world.run("exact").ranks)


# -- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("design", ["adaptive", "certified"])
def test_the_command_evaluates_bundled_ranks_by_design(run, design):
    code, out, _ = run(
        "evaluate", "--dataset", "ml-1m", "--recommender", "ease", "--bundled", "--design", design,
        "-m", "NDCG@10", "--resamples", 20,
    )  # fmt: skip
    assert code == 0
    assert "ease on ml-1m (bundled ranks), everyday protocol" in out
    assert f"{design} design" in out


def test_the_command_keeps_to_a_budget(run):
    arguments = ["evaluate", "--dataset", "ml-1m", "--recommender", "ease", "--bundled", "--json"]
    code, out, _ = run(*arguments, "--design", "adaptive", "--budget", 60, "--resamples", 0)
    shown = json.loads(out)
    assert code == 0
    assert shown["scored"] <= 60 * 6040
    assert 0 < shown["share"] < 0.05
    code, out, _ = run(*arguments, "--budget", 30, "--resamples", 0)
    assert json.loads(out)["sampled"] == 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--design", "adaptive", "--sampled", 9), "sampled must be left out"),
        (("--design", "exact", "--budget", 9), "budget must be left out with exact"),
        (("--design", "certified", "--budget", 2), "budget must be at least 10"),
        (("--design", "adaptive", "--checkpoint", "x.npz"), "left out with bundled ranks"),
    ],
)
def test_the_command_refuses_what_does_not_fit_together(run, arguments, words):
    code, _, err = run(
        "evaluate", "--dataset", "ml-1m", "--recommender", "ease", "--bundled", *arguments
    )
    assert code == 2
    assert words in err


def test_the_command_goes_on_from_a_checkpoint(run, world, monkeypatch, tmp_path):
    asked = []

    def scores(users, items):
        asked.append(items.size)
        return world.scores(users, items)

    split = SimpleNamespace(
        target_user=world.targets[0],
        target_item=world.targets[1],
        train=SimpleNamespace(items=world.items),
    )
    trained = (scores, split, world.exclude)
    monkeypatch.setattr("unsample.lab.side_by_side._trained", lambda *_: trained)
    arguments = ["evaluate", "--dataset", "ml-1m", "--recommender", "ease", "--json"]
    arguments += ["--design", "certified", "--checkpoint", tmp_path / "state.npz"]
    first, spent = run(*arguments), sum(asked)
    second = run(*arguments)
    assert first == second
    assert first[0] == 0
    assert sum(asked) - spent < spent / 20  # the probe alone
    code, _, err = run(*arguments[:-1], tmp_path / "no" / "such.npz")
    assert code != 0
    assert "such.npz" in err


# -- the example ---------------------------------------------------------------------------------


def test_the_example_with_a_model_of_pytorch_runs(capsys):
    pytest.importorskip("torch")
    path = Path(__file__).parents[1] / "examples" / "evaluate_pytorch.py"
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    assert "certified design" in shown
    assert "NDCG@10" in shown
    share = float(shown.split("% of a full ranking")[0].split()[-1])
    assert share < 20
