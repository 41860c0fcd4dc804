"""Targets that share their sampled items: counts by item, the error of AUC, and proved bounds."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import unsample
from tests.pools import Pool, World
from tests.readers import read_counts
from unsample.bounds import DirectMean, MeanLimits, extremes, probabilities_up_to
from unsample.counts import ItemCounts, RankCounts, Targets, shared_targets
from unsample.errors import (
    DesignError,
    FileError,
    InputError,
    RankError,
    ScoreError,
    UnsampleWarning,
)
from unsample.metrics import parse
from unsample.sampling import RankGrid, SamplingModel

METRICS = ["Recall@50", "AUC"]


def _same(one, other):
    mine, others = one.arrays(), other.arrays()
    return all(np.array_equal(mine[name], others[name]) for name in mine)


@pytest.fixture(scope="module")
def pool():
    return Pool.draw(World(effects=1.0), np.random.default_rng(0))


# -- counts by item ------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=30, deadline=None)
def test_counts_add_up_however_targets_are_parted(seed, cuts):
    rng = np.random.default_rng(seed)
    beats = rng.random((40, 12)) < rng.random((40, 1)) ** 2 * rng.random(12) ** 0.5
    edges = sorted({0, 40, *cuts})
    whole = ItemCounts.from_outcomes(beats)
    parts = [ItemCounts.from_outcomes(beats[a:b]) for a, b in itertools.pairwise(edges)]
    assume(all(part.known for part in parts))
    assert _same(ItemCounts.merge(parts), whole)
    assert _same(ItemCounts.from_arrays(whole.arrays(), "memory"), whole)
    unknown = ItemCounts.without_outcomes(12)
    assert not ItemCounts.merge([whole, unknown]).known


def test_wrong_counts_are_refused():
    beats = np.eye(3, dtype=bool)
    counts = ItemCounts.from_outcomes(beats, items=[5, 6, 7])
    with pytest.raises(InputError, match="row for each target"):
        ItemCounts.from_outcomes([True, False])
    with pytest.raises(InputError, match="different numbers"):
        ItemCounts.from_outcomes(beats, items=[5, 5, 7])
    with pytest.raises(DesignError, match="one draw of items"):
        ItemCounts.merge([counts, ItemCounts.from_outcomes(np.eye(4))])
    with pytest.raises(InputError, match="equally long"):
        replace(counts, rank=np.array([2, 2]))
    with pytest.raises(RankError, match="beaten target"):
        replace(counts, rank=np.ones(3, dtype=np.int64))
    fields = counts.arrays()
    for wrong, message in (
        ({"count": np.array([np.nan])}, "count"),
        ({"item": np.array([0.5, 1.0, 2.0])}, "item"),
        ({"sampled": np.array([3, 3])}, "sampled"),
    ):
        with pytest.raises(FileError, match=message):
            ItemCounts.from_arrays(fields | wrong, "a file")


# -- the error of a mean --------------------------------------------------------------------------


def test_the_error_of_auc_is_that_of_other_users_and_other_pools():
    """Of the pools of one catalogue, the mean of the squared errors is the variance of AUC."""
    rng = np.random.default_rng(5)
    items, sampled, targets = 40, 8, 30
    beats = rng.random((targets, items)) < rng.random(items)
    values, errors = [], []
    for _ in range(2000):
        drawn = rng.choice(items, sampled, replace=False)
        shared = ItemCounts.from_outcomes(beats[:, drawn])
        ranks = 1 + beats[:, drawn].sum(axis=1)
        counts = Targets(ranks, items, sampled, replacement=False, shared=shared).counts
        direct = DirectMean.of(parse("AUC"), counts)
        values.append(direct.value)
        errors.append(direct.error(population=False) ** 2)
    assert np.mean(values) == pytest.approx(1.0 - beats.mean(), abs=0.01)
    # What single targets vary by is in both parts: the error is on the safe side.
    assert np.var(values) < np.mean(errors) < 1.4 * np.var(values)
    unknown = replace(counts, shared=ItemCounts.without_outcomes(sampled))
    assert DirectMean.of(parse("AUC"), unknown).error() is None


# -- what can be proved --------------------------------------------------------------------------

ITEMS, SAMPLED = 9, 4


@pytest.mark.parametrize("alpha", [0.4, 0.2, 0.05])
@pytest.mark.parametrize("kind", ["one order", "own orders", "opposite orders"])
def test_proved_limits_hold_over_all_pools(kind, alpha):
    """Every pool is looked at: how many break the limits is known, not simulated."""
    rng = np.random.default_rng(7)
    ends, one, size = np.array([1, 2, 3]), np.arange(ITEMS - 1), 7
    distribution, grid = SamplingModel(ITEMS, SAMPLED, replacement=False), RankGrid.fine(ITEMS)
    groups = np.array([1, 2, 3, 4]), np.array([1, 2, 3, SAMPLED + 1])
    expected = extremes(partial(probabilities_up_to, distribution, *groups), grid)
    for _ in range(4):
        indices = rng.integers(0, ITEMS, size)
        orders = {
            "one order": [one] * size,
            "own orders": [rng.permutation(ITEMS - 1) for _ in range(size)],
            "opposite orders": [one if i % 2 else one[::-1] for i in range(size)],
        }[kind]
        mass = np.bincount(grid.locate(indices + 1), minlength=len(grid)) / size
        broken = []
        for pool in itertools.combinations(range(ITEMS - 1), SAMPLED):
            # The items before a target's index in its order beat it.
            beaten = [np.isin(orders[i][: indices[i]], pool).sum() for i in range(size)]
            parts = np.bincount(np.minimum(beaten, 3), minlength=4) / size
            # The targets are fixed here: nothing is allowed for their draw.
            limits = MeanLimits.of_shares(parts, *expected, 1e15)
            rows, most = limits.proved(alpha, ends)
            broken.append((rows @ mass > most + 1e-6).any())
        assert np.mean(broken) <= alpha


# -- answers -------------------------------------------------------------------------------------


def test_ranks_without_outcomes_have_bounds_and_say_what_to_record(pool):
    options = {"items": 600, "sampled": 60, "metrics": METRICS}
    shared = unsample.Negatives(replacement=False, shared=True)
    with pytest.warns(UnsampleWarning, match="record outcomes by item"):
        found = unsample.estimate(pool.ranks, negatives=shared, **options)
    alone = unsample.Negatives(replacement=False)
    own = unsample.estimate(pool.ranks, negatives=alone, **options)
    for name, entry in found.items():
        assert entry.source == "bounds"
        assert entry.interval() == entry.bounds()
        low, high = entry.interval()
        assert low < own[name].interval()[0] < own[name].interval()[1] < high
        assert np.ptp(entry.bounds()) > np.ptp(own[name].bounds())
    assert found["AUC"].value == own["AUC"].value
    models = {"A": pool.ranks, "B": pool.ranks}
    with pytest.warns(UnsampleWarning):
        both = unsample.compare(models, negatives=shared, **options)
    assert all(pair.probability is None and pair.winner is None for pair in both.differences)
    shared = ItemCounts.without_outcomes(60)
    with pytest.raises(DesignError, match="60 items that all targets share"):
        _ = Targets(pool.ranks, 600, np.where(pool.ranks > 5, 60, 70), shared=shared).counts


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("hard", "items must be drawn at random: those that a model chose"),
        ("popularity", "draw uniformly at random and rank again, or evaluate the model"),
        ("pop100", "where popular items are drawn more often"),
        ("uniform", "all methods assume that items are drawn uniformly at random: leave it out"),
    ],
)
def test_items_drawn_otherwise_are_refused_with_what_to_do(word, why, run):
    design = {"items": 50, "sampled": 9, "negatives": word}
    for call in (
        lambda: unsample.estimate([1, 2], **design),
        lambda: unsample.compare({"A": [1, 2], "B": [2, 1]}, **design),
        lambda: unsample.published({"HR@5": "0.50"}, users=100, **design),
    ):
        with pytest.raises(InputError, match=f"negatives must be .* got '{word}'; .*{why}"):
            call()
    options = ("--items=50", "--sampled=9", f"--negatives={word}")
    for call in (
        ("estimate", "ranks.csv"),
        ("compare", "a.csv", "b.csv"),
        ("published", "HR@5=0.50", "--users=100"),
        ("estimate", "ranks", "--print-sql=duckdb"),
    ):
        code, _, err = run(*call, *options)
        assert (code, "--negatives must be" in err, why in err) == (2, True, True)


def test_printed_numbers_of_shared_items_are_refused():
    shared, why = unsample.Negatives(shared=True), "got shared=True: the numbers do not tell"
    with pytest.raises(InputError, match=why):
        unsample.published({"HR@5": "0.50"}, items=50, sampled=9, users=9, negatives=shared)


@pytest.mark.parametrize("verb", ["estimate", "compare", "published"])
def test_help_says_how_items_must_have_been_drawn(verb, run):
    text = " ".join(run(verb, "--help")[1].split())
    described, _, options = text.partition("Options:")
    assert "uniformly at random" in described
    assert "Items drawn uniformly at random for each target" in options
    assert "as by popularity, are refused" in options


def test_strong_items_widen_the_interval_of_what_the_sample_shows():
    """A few items that beat many targets leave more open than items of each target's own."""
    widths = []
    for effects in (0.0, 3.0):
        drawn = Pool.draw(World(effects=effects), np.random.default_rng(0))
        found = unsample.estimate(drawn.targets(), metrics="Recall@100", protocol="unseen")
        own = RankCounts.from_ranks(drawn.ranks, items=600, sampled=60, replacement=False)
        alone = unsample.estimate(own, metrics="Recall@100", protocol="unseen")
        assert {found["Recall@100"].source, alone["Recall@100"].source} == {"prior"}
        both = (np.ptp(each["Recall@100"].interval()) for each in (found, alone))
        widths.append(next(both) / next(both))
    assert 0.95 < widths[0] < 1.3
    assert widths[1] > 1.5


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_scored_rows_tell_which_item_beats_which_target(pool):
    targets, sampled = pool.beats.shape
    table = {
        "user": np.repeat(np.arange(targets), sampled + 1),
        "item": np.column_stack([np.full(targets, -1), np.tile(pool.items, (targets, 1))]).ravel(),
        "score": np.column_stack([np.full(targets, 0.5), pool.beats]).ravel(),
        "target": np.tile(np.arange(sampled + 1) == 0, targets),
    }
    (counts,) = read_counts(table, items=600, replacement=False, shared=True).values()
    direct = pool.targets().counts
    assert counts.shared.known
    assert counts.shared.sampled == 60
    assert sorted(counts.shared.count) == sorted(direct.shared.count)
    found, expected = (unsample.estimate(each, metrics=METRICS) for each in (counts, direct))
    assert found["AUC"].source == "mean"
    for name in METRICS:
        assert found[name].interval() == pytest.approx(expected[name].interval())


def test_counts_of_pools_are_added_saved_and_weighed(pool, tmp_path):
    outcomes = ItemCounts.from_outcomes(
        pool.beats, items=pool.items, relevant=np.full(300, 2), position=np.zeros(300, dtype=int)
    )
    users = np.repeat(np.arange(150), 2)
    found = replace(pool.targets(), users=users, shared=outcomes).counts
    scores = np.linspace(1, 0, 61)
    weighed = found.for_metric(parse("Recall@50"))
    ours = weighed.shared.effects(scores, float(weighed.weight.sum()))[1]
    theirs = pool.targets().counts.shared.effects(scores, 300.0)[1]
    assert ours == pytest.approx(theirs)
    found.save(tmp_path / "counts.npz")
    assert RankCounts.load(tmp_path / "counts.npz") == found
    assert (
        RankCounts.merge([found, found]).shared.count.tolist() == (2 * found.shared.count).tolist()
    )
    with pytest.raises(DesignError, match="shared and of own items"):
        RankCounts.merge([found, replace(pool.targets(), shared=None).counts])


def test_scores_of_a_pool_are_targets_with_outcomes():
    rng = np.random.default_rng(4)
    own, others = rng.normal(size=300), rng.normal(size=(300, 60))
    found = shared_targets(own, others, items=600)
    beats = others > own[:, None]
    assert np.array_equal(found.ranks, 1 + beats.sum(axis=1))
    assert _same(found.counts.shared, ItemCounts.from_outcomes(beats))
    # Scores that do not depend on the target, and few different ones: one order for all.
    coarse, aims = np.round(2 * others[0]) / 2, np.round(2 * own) / 2
    worst = shared_targets(aims, coarse, items=600, ties="pessimistic").ranks
    assert np.array_equal(worst, 1 + (coarse >= aims[:, None]).sum(axis=1))
    users = np.repeat(np.arange(150), 2)
    assert shared_targets(own, others, items=600, users=users, filtered=False).counts.several
    for wrong, words in (
        ((own, others[:5]), "others must be one score for each item"),
        ((own, others * np.nan), "others must not be NaN"),
        (([], others), "own and others must hold scores, got 0"),
        ((0.5, others[0]), "own must be a list of one score for each target, got shape"),
        ((own, 0.5), "others must be one score for each item"),
    ):
        with pytest.raises(ScoreError, match=words):
            shared_targets(*wrong, items=600)
