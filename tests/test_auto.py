"""`design="auto"`: exact, in whichever way; and what a budget of any size is spent on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.test_evaluate import METRICS, Counting, World
from unsample.answers import evaluate
from unsample.designs import Adaptive, Guided, Scorer, _auto
from unsample.errors import DesignError, ScoreError


@pytest.fixture(scope="module")
def world():
    return World(users=200, items=700)


@pytest.fixture(scope="module")
def full(world):
    return world.run("exact")


class Clock:
    """A clock that only a scorer moves: what is quick is settled, and nothing is timed."""

    def __init__(self, world, *, each=0.0, call=0.0, row=None):
        self.world, self.now, self.each, self.call, self.row = world, 0.0, each, call, row
        self.asked = 0

    def perf_counter(self):
        return self.now

    def score(self, users, items):
        self.now += self.call + self.each * items.size
        self.asked += items.size
        return self.world.scores(users, items)

    def score_all(self, users):
        self.now += self.row * len(users)
        return self.world.left[users] @ self.world.right.T

    @property
    def scorer(self):
        return Scorer(self.score, None if self.row is None else self.score_all)


def _same(found, full):
    for metric in METRICS:
        assert found[metric].value == pytest.approx(full[metric].value, abs=1e-12)
        assert found[metric].interval(population=False) == (found[metric].value,) * 2


@pytest.mark.parametrize(
    ("costs", "taken"),
    [
        ({"each": 1.0}, "certified"),
        ({"each": 1.0, "row": 1e4}, "certified"),
        ({"each": 1.0, "row": 10.0}, "exact"),
        ({"call": 1.0}, "exact"),
    ],
)
def test_the_quickest_way_is_taken_and_the_answer_is_that_of_a_full_ranking(
    world, full, costs, taken, monkeypatch
):
    clock = Clock(world, **costs)
    monkeypatch.setattr(_auto, "time", clock)
    found = world.run("auto", scorer=clock.scorer)
    assert found.design.name == taken
    _same(found, full)
    if "row" not in costs:
        assert clock.asked == found.scored
    spent = clock.now
    alone = []
    for design in ("exact", "certified"):
        clock = Clock(world, **costs)
        world.run(design, scorer=clock.scorer)
        alone.append(clock.now)
    assert spent < 1.2 * min(alone) or costs == {"call": 1.0}


@pytest.mark.parametrize("guide", [None, "reverse"])
def test_no_pair_is_asked_for_twice(world, full, guide, monkeypatch):
    scorer = Counting(world)
    clock = Clock(world, each=1.0)
    monkeypatch.setattr(_auto, "time", clock)

    def moving(users, items):
        clock.now += items.size
        return scorer(users, items)

    guide = None if guide is None else (-world.left, world.right)
    found = world.run("auto", scorer=moving, guide=guide)
    _same(found, full)
    users, items = scorer.pairs()
    own = items == world.targets[1][users]
    pairs = users[~own] * world.items + items[~own]
    assert len(np.unique(pairs)) == len(pairs)
    assert scorer.asked == found.scored
    assert found.scored <= 0.9 * 200 * 700


def test_exact_is_the_default_without_a_budget(world, full, tmp_path):
    _same(world.run(None), full)
    assert world.run(None).design.name == "exact"
    assert world.run(None, metrics="AUC").design.name == "exact"
    kept = world.run(None, scorer=world.scores, checkpoint=tmp_path / "state.npz")
    assert kept.design.name == "certified"
    _same(kept, full)
    with pytest.raises(DesignError, match="budget must be left out with design='auto'"):
        world.run("auto", budget=10_000)


def test_users_with_several_targets_keep_their_ties(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 30, size=(60, 300)).astype(float)
    pairs = np.unique(np.stack([rng.integers(60, size=150), rng.integers(300, size=150)]), axis=1)
    monkeypatch.setattr(_auto, "_SHORT", 0.0)
    options = {"items": 300, "metrics": ["NDCG@10", "AP@10", "HR@5"], "resamples": 0}
    scorer = Scorer(score_all=lambda users: scores[users])
    found, full = (
        evaluate(scorer, tuple(pairs), design=design, **options) for design in ("auto", "exact")
    )
    for metric in options["metrics"]:
        assert found[metric].value == pytest.approx(full[metric].value, abs=1e-12)


# -- a budget holds --------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [Guided(), Adaptive(), Adaptive(start=5, stop=2)])
def test_a_budget_is_spent_to_the_last_score_and_no_further(world, design):
    for budget in (8_001, 9_999, 12_345, 20_000, 31_234):
        scorer = Counting(world)
        found = world.find(design, scorer=scorer, budget=budget)
        assert scorer.asked == found.scored <= budget
        whole = (found.met == found.items - 1) | (found.lowest > 10)
        if isinstance(design, Adaptive):  # which grows by whole steps
            assert found.scored >= 0.99 * budget or (whole | (found.ranks > design.stop)).all()
        else:
            assert found.scored == budget or whole.all()
        users, items = scorer.pairs()
        own = items == world.targets[1][users]
        pairs = users[~own] * world.items + items[~own]
        assert len(np.unique(pairs)) == len(pairs)


@pytest.mark.parametrize("design", ["guided", "adaptive"])
def test_a_scorer_that_contradicts_itself_is_found_out_within_the_budget(world, design):
    rng, asked = np.random.default_rng(0), []

    def noisy(users, items):
        asked.append(items.size)
        return world.scores(users, items) + rng.normal(size=items.shape)

    with pytest.raises(ScoreError, match="must be the same when asked for again"):
        world.run(design, scorer=noisy, budget=20_000)
    assert sum(asked) <= 20_000


# -- a guide that is learned on the way ------------------------------------------------------------


@pytest.fixture(scope="module")
def popular():
    """Return a world in which some items are strong for everyone, and nothing is excluded."""
    world = World(users=500, items=300, seed=3)
    world.left[:, 0], world.right[:, 0] = 3.0, np.random.default_rng(0).normal(size=300) * 2
    order = np.argsort(-(world.left @ world.right.T), axis=1)
    places = np.floor(300 ** np.random.default_rng(1).random(500)).astype(int) - 1
    world.targets = np.arange(500), order[np.arange(500), places]
    world.exclude = None
    return world


@pytest.mark.parametrize(("design", "budget"), [("certified", None), ("guided", 25_000)])
def test_a_learned_guide_saves_scores_and_changes_no_answer(popular, design, budget):
    full = popular.run("exact")
    random = np.random.default_rng(0).random(300)
    learned, blind = (popular.run(design, budget=budget, guide=g) for g in (None, random))
    for found in (learned, blind):
        for metric in METRICS:
            low, high = found[metric].interval(0.9999, population=False)
            assert low - 1e-12 <= full[metric].value <= high + 1e-12
        assert (found.ranks <= full.ranks).all()
        assert (full.ranks <= found.highest).all()
    if budget is None:
        assert learned.scored < 0.9 * blind.scored
    else:
        assert learned.scored == blind.scored == budget
        widths = [np.ptp(found["NDCG@10"].interval(population=False)) for found in (learned, blind)]
        assert widths[0] < 0.8 * widths[1]


def test_a_lesson_is_the_same_however_it_is_cut(popular, tmp_path):
    whole = popular.run("guided", budget=25_000)
    for manner in ({"batch": 333}, {"batch": 500, "workers": 3}):
        cut = popular.run("guided", budget=25_000, **manner)
        assert np.array_equal(cut.ranks, whole.ranks)
        assert cut["NDCG@10"].value == whole["NDCG@10"].value
    for calls in (3, 6, 20):  # interrupted in the lesson, and after it
        path, left = tmp_path / f"{calls}.npz", [calls]

        def failing(users, items, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return popular.scores(users, items)

        options = {"budget": 25_000, "checkpoint": path, "batch": 500}
        with pytest.raises(KeyboardInterrupt):
            popular.run("guided", scorer=failing, **options)
        scorer = Counting(popular)
        again = popular.run("guided", scorer=scorer, **options)
        assert np.array_equal(again.ranks, whole.ranks)
        assert again["NDCG@10"].value == whole["NDCG@10"].value
        assert scorer.asked < whole.scored


def test_no_score_of_a_lesson_is_paid_twice(popular):
    scorer = Counting(popular)
    found = popular.run("guided", scorer=scorer, budget=25_000)
    users, items = scorer.pairs()
    own = items == popular.targets[1][users]
    pairs = users[~own] * popular.items + items[~own]
    assert len(np.unique(pairs)) == len(pairs)
    assert scorer.asked == found.scored == 25_000


def test_a_lesson_counts_what_beats_what(popular):
    from unsample.designs import Candidates
    from unsample.designs._learned import Lesson
    from unsample.designs._orders import target_keys

    candidates = Candidates.check(popular.targets, 300)
    lesson = Lesson.of(candidates, target_keys(0, *popular.targets), 0, 25_000, 6000)
    assert lesson.goal.sum() <= 2500
    assert (lesson.goal[lesson.teachers] >= lesson.lists.shape[1] - 1).all()
    scores = popular.left @ popular.right.T
    own = scores[np.arange(500), popular.targets[1]]
    for teacher, met in zip(lesson.teachers, lesson.lists, strict=True):
        others = met[met != popular.targets[1][teacher]]
        lesson.add(others[None, :], (scores[teacher, others] > own[teacher])[None, :])
    rate = (lesson.better + 2.0 * lesson.better.sum() / lesson.met.sum()) / (lesson.met + 2.0)
    assert (np.diff(rate[lesson.learned.guide.order]) <= 0).all()
    # Too little to learn from, or too little left.
    assert Lesson.of(candidates, lesson.keys, 0, 9000, 8900) is None
    assert Lesson.of(candidates, lesson.keys, 0, 7000, 0) is None
