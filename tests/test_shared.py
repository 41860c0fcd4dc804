"""Targets that share their sampled items: counts by item, the variance of means, proved limits."""

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from unsample.confidence import (
    SHAPES,
    Certainty,
    DrawnPart,
    MeanLimits,
    OverBins,
    difference_part,
    items_part,
)
from unsample.confidence._items import smoothed
from unsample.confidence._shared import PooledError, PooledLimits, proved_rows

import unsample
from tests.pools import Batch, World, draw, measure, told, truth, verdicts
from unsample.errors import (
    DesignError,
    FileError,
    InputError,
    RankError,
    ScoreError,
    UnsampleWarning,
)
from unsample.evidence import (
    ItemCounts,
    RankCounts,
    Targets,
    shared_targets,
)
from unsample.law import Law, RankGrid
from unsample.metrics import parse
from unsample.tables import read_counts


def _outcomes(rng, targets=60, sampled=12):
    """Return outcomes in which some items are strong."""
    chance = rng.random((targets, 1)) ** 2 * rng.random(sampled) ** 0.5
    return rng.random((targets, sampled)) < chance


def _scores(rng, sampled=12):
    return np.concatenate([[0.0], np.cumsum(rng.normal(size=sampled))])


def _jackknife(values_without):
    """Return the jackknife's variance from the mean without each item."""
    n = len(values_without)
    return (n - 1) / n * ((values_without - values_without.mean()) ** 2).sum()


def _means_without(beats, scores):
    """Return the mean score without each item: ranks counted afresh from all other columns."""
    found = []
    for item in range(beats.shape[1]):
        ranks = 1 + np.delete(beats, item, axis=1).sum(axis=1)
        found.append(scores[ranks - 1].mean())
    return np.array(found)


def _counts(beats):
    """Return the counts of targets with these outcomes."""
    shared, ranks = ItemCounts.from_outcomes(beats), 1 + beats.sum(axis=1)
    return Targets(ranks, 100, beats.shape[1], replacement=False, shared=shared).counts


def _same(one, other):
    mine, others = one.arrays(), other.arrays()
    return all(np.array_equal(mine[name], others[name]) for name in mine)


def _slow_part(beats, scores):
    """Return the variance of the items alone, for one version of the scores."""
    whole = _jackknife(_means_without(beats, scores))
    twice = sum(_jackknife(_means_without(row[None, :], scores) / len(beats)) for row in beats)
    return max(whole - twice, 0.0)


# -- counts by item ------------------------------------------------------------------------------


def test_the_items_part_is_the_jackknife_over_the_columns():
    rng = np.random.default_rng(1)
    for _ in range(5):
        beats, scores = _outcomes(rng), _scores(rng)
        counts = _counts(beats)
        expected = max(_slow_part(beats, each) for each in (scores, smoothed(scores)))
        part = items_part(counts, scores)
        assert part.variance == pytest.approx(expected, rel=1e-9, abs=1e-15)
        assert part.drawn == beats.shape[1]
        assert items_part(counts, scores, left=0.3).variance == pytest.approx(0.3 * expected)


def test_the_part_of_a_difference_is_the_jackknife_of_the_difference():
    rng = np.random.default_rng(2)
    items = rng.permutation(100)[:12]
    a, b = _outcomes(rng), _outcomes(rng)
    scores, others = _scores(rng), _scores(rng)
    order = rng.permutation(12)
    first = ItemCounts.from_outcomes(a, items=items)
    second = ItemCounts.from_outcomes(b[:, order], items=items[order])
    expected = max(
        _jackknife(_means_without(a, x) - _means_without(b, y))
        for x, y in ((scores, others), (smoothed(scores), smoothed(others)))
    )
    part = difference_part((first, scores, 60.0), (second, others, 60.0))
    assert part.variance == pytest.approx(expected)
    assert difference_part((first, scores, 1.0), (first, scores, 1.0)).variance == 0.0


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=30, deadline=None)
def test_counts_add_up_however_targets_are_parted(seed, cuts):
    rng = np.random.default_rng(seed)
    beats = _outcomes(rng, targets=40)
    edges = sorted({0, 40, *cuts})
    whole = ItemCounts.from_outcomes(beats)
    parts = [ItemCounts.from_outcomes(beats[a:b]) for a, b in itertools.pairwise(edges)]
    assume(all(part.known for part in parts))
    assert _same(ItemCounts.merge(parts), whole)
    assert _same(ItemCounts.from_arrays(whole.arrays(), "memory"), whole)
    unknown = ItemCounts.without_outcomes(12)
    assert not ItemCounts.merge([whole, unknown]).known


def test_items_that_beat_nobody_count_as_items():
    beats = np.zeros((10, 5), dtype=bool)
    beats[:4, 0] = True
    scores = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    part = items_part(_counts(beats), scores)
    assert part.drawn == 5
    # One item makes up all of the variance.
    assert part.effective == pytest.approx((0.8**2 + 4 * 0.2**2) ** 2 / (0.8**4 + 4 * 0.2**4))
    assert not PooledError(0.0, part).trusted
    assert not ItemCounts.from_outcomes(np.zeros((3, 4))).known


def test_smoothed_scores_keep_their_ends_and_constants():
    rng = np.random.default_rng(4)
    scores = _scores(rng)
    smooth = smoothed(scores)
    assert (smooth[0], smooth[-1]) == pytest.approx((scores[0], scores[-1]))
    assert smoothed(np.ones(9)).tolist() == [1.0] * 9
    # One step after rank 4 is spread over the steps after ranks 2 to 6.
    step = np.repeat([1.0, 0.0], [4, 5])
    assert np.diff(smoothed(step)) == pytest.approx([0, -0.2, -0.2, -0.2, -0.2, -0.2, 0, 0])


def test_wrong_counts_are_refused():
    beats = np.eye(3, dtype=bool)
    counts = ItemCounts.from_outcomes(beats, items=[5, 6, 7])
    with pytest.raises(InputError, match="row for each target"):
        ItemCounts.from_outcomes([True, False])
    with pytest.raises(InputError, match="different numbers"):
        ItemCounts.from_outcomes(beats, items=[5, 5, 7])
    with pytest.raises(DesignError, match="one draw of items"):
        ItemCounts.merge([counts, ItemCounts.from_outcomes(np.eye(4))])
    other = ItemCounts.from_outcomes(np.eye(4)), np.arange(5.0), 3.0
    with pytest.raises(InputError, match="the same items"):
        difference_part((counts, np.arange(4.0), 3.0), other)
    other = ItemCounts.from_outcomes(beats), np.arange(4.0), 3.0
    with pytest.raises(InputError, match="number the shared items"):
        difference_part((counts, *other[1:]), other)
    with pytest.raises(InputError, match="at most sampled"):
        ItemCounts.merge([counts, other[0]])
    with pytest.raises(InputError, match="equally long"):
        replace(counts, rank=np.array([2, 2]))
    with pytest.raises(RankError, match="beaten target"):
        replace(counts, rank=np.ones(3, dtype=np.int64))
    with pytest.raises(RankError, match="at most sampled"):
        replace(counts, rank=np.full(3, 5))
    fields = counts.arrays()
    for wrong, message in (
        ({"count": np.array([np.nan])}, "count"),
        ({"item": np.array([0.5, 1.0, 2.0])}, "item"),
        ({"sampled": np.asarray(1.5)}, "the number of its shared items"),
    ):
        with pytest.raises(FileError, match=message):
            ItemCounts.from_arrays(fields | wrong, "a file")


# -- errors of means -----------------------------------------------------------------------------


def test_the_variance_of_a_mean_of_ranks_is_that_of_drawing_pools():
    """With many targets and pools drawn anew, the estimate is right on average for AUC."""
    rng = np.random.default_rng(5)
    items, sampled, targets = 40, 8, 30
    chance = rng.random(items)
    beats = rng.random((targets, items)) < chance
    scores = 1.0 - np.arange(sampled + 1) / sampled
    values, estimates = [], []
    for _ in range(3000):
        pool = rng.choice(items, sampled, replace=False)
        part = items_part(_counts(beats[:, pool]), scores, left=1 - sampled / (items - 1))
        values.append(1.0 - beats[:, pool].mean())
        estimates.append(part.variance)
    # What single targets vary by is taken off, so that it falls short by about that.
    alone = (beats.mean(axis=1) * (1 - beats.mean(axis=1))).mean() / sampled / targets
    assert np.mean(estimates) == pytest.approx(np.var(values) - 0.8 * alone, rel=0.1)


def test_reach_is_that_of_t_and_grows_on_the_skewed_side():
    many = PooledError(1.0, DrawnPart(0.0, 0.0, 100.0, 300))
    assert many.reach(0.95, 1) == pytest.approx(1.96, abs=1e-3)
    assert many.standard_error(0.95, 1) == pytest.approx(1.0, abs=1e-3)
    few = PooledError(0.0, DrawnPart(1.0, -0.5, 4.0, 300))
    assert few.trusted
    assert few.freedom == pytest.approx(2 / (1 / 4 - 1 / 300))
    assert few.reach(0.95, -1) > few.reach(0.95, 1) > 1.96
    assert PooledError(0.0, DrawnPart(0.0, 0.0, 0.0, 300)).reach(0.95, 1) == 0.0
    # So many numbers all alike in size have no more degrees of freedom than numbers less one.
    assert DrawnPart(1.0, 0.0, 10.0, 10).freedom == 9.0


def test_limits_of_pooled_shares_are_wider_than_those_of_independent_targets():
    world = World(effects=1.0, sampled=60, targets=300, items=600)
    (batches,) = draw(world, np.random.default_rng(6))
    counts = told(world, batches[60]).counts
    sample = Certainty.of(counts, [50], SHAPES["power"])
    low, high = sample.part.region(0.05)
    (pooled,) = sample._estimating(sample.shape_in_use(), 0.95).evidence
    wide_low, wide_high = pooled.region(0.05)
    assert (wide_low <= low + 1e-12).all()
    assert (wide_high >= high - 1e-12).all()
    nothing = PooledLimits.of(
        sample.part, [PooledError(0.1, DrawnPart(1.0, 0.0, 1.0, 60))] * len(sample.part.ends)
    )
    assert nothing.region(0.05)[0].max() == 0.0
    assert nothing.region(0.05)[1].min() == 1.0


# -- what can be proved --------------------------------------------------------------------------

ITEMS, SAMPLED = 9, 4


def _all_shares(orders, places, ends):
    """Return the shares of targets with r <= end for every pool that can be drawn.

    ``orders`` holds for each target the other items from best to worst, of which those before its
    place beat it.
    """
    found = []
    for pool in itertools.combinations(range(ITEMS - 1), SAMPLED):
        beaten = [
            np.isin(order[:place], pool).sum() for order, place in zip(orders, places, strict=True)
        ]
        found.append([(1 + np.array(beaten) <= end).mean() for end in ends])
    return np.array(found)


@functools.cache
def _expected(*ends):
    """Return P(group | bin) of groups of sampled ranks that end there, and the bins."""
    law, grid = Law(ITEMS, SAMPLED, replacement=False), RankGrid.fine(ITEMS)
    starts = np.array([1, *(end + 1 for end in ends)])
    return law.matrix(starts, np.array([*ends, SAMPLED + 1]), grid), grid


def _part(places, shares, ends):
    expected, grid = _expected(*ends.tolist())
    observed = np.diff(np.concatenate([[0.0], shares, [1.0]]))
    # The targets are fixed here: nothing is allowed for their draw.
    part = MeanLimits.of_shares(SAMPLED, ends, observed, OverBins(*[expected] * 3), 1e15)
    mass = np.array(
        [
            ((places + 1 >= a) & (places + 1 <= b)).mean()
            for a, b in zip(grid.low, grid.high, strict=True)
        ]
    )
    return part, mass


@pytest.mark.parametrize("alpha", [0.4, 0.2, 0.05])
@pytest.mark.parametrize("kind", ["one order", "own orders", "opposite orders"])
def test_proved_limits_hold_over_all_pools(kind, alpha):
    """Every pool is looked at: how many break the limits is known, not simulated."""
    rng = np.random.default_rng(7)
    ends = np.array([1, 2, 3])
    one = np.arange(ITEMS - 1)
    for _ in range(4):
        size = 7
        places = rng.integers(0, ITEMS, size)
        orders = {
            "one order": [one] * size,
            "own orders": [rng.permutation(ITEMS - 1) for _ in range(size)],
            "opposite orders": [one if i % 2 else one[::-1] for i in range(size)],
        }[kind]
        every = _all_shares(orders, places, ends)
        rows_broken, single_broken = [], np.zeros((len(every), 6), dtype=bool)
        for number, shares in enumerate(every):
            part, mass = _part(places, shares, ends)
            rows = proved_rows(part, alpha, at_once=True)
            low, high = rows.region(alpha)
            values = rows.features @ rows.expected.mean @ mass
            rows_broken.append((values < low - 1e-6).any() or (values > high + 1e-6).any())
            single = proved_rows(part, alpha, at_once=False)
            single_broken[number] = single.expected.mean @ mass < single.low - 1e-6
        assert np.mean(rows_broken) <= alpha
        assert (single_broken.mean(axis=0) <= alpha / 2).all()


def test_a_sum_of_rows_with_fixed_multipliers_needs_one_error():
    """What a program makes of single rows holds for each sum of them that is fixed beforehand."""
    rng = np.random.default_rng(8)
    ends, alpha = np.array([1, 2, 3]), 0.4
    one = np.arange(ITEMS - 1)
    for _ in range(8):
        places = rng.integers(0, ITEMS, 7)
        multipliers = rng.random(6) * (rng.random(6) < 0.6)
        broken = []
        for shares in _all_shares([one] * 7, places, ends):
            part, mass = _part(places, shares, ends)
            rows = proved_rows(part, alpha, at_once=False)
            missing = multipliers @ (rows.expected.mean @ mass - rows.low)
            broken.append(missing < -1e-6)
        assert np.mean(broken) <= alpha / 2


def test_proved_limits_are_attained_nearly_where_one_order_holds_for_all():
    """Targets of one rank that all meet the same items are unbeaten together, or none is."""
    chance = float(Law(ITEMS, SAMPLED, replacement=False).pmf(1, 3))  # two items beat the target
    part, mass = _part(np.full(7, 2), np.ones(3), np.array([1, 2, 3]))
    for tail, broken in ((1.02 * chance, True), (0.98 * chance, False)):
        # Of the error, a tenth is kept for the draw of targets.
        rows = proved_rows(part, 2.0 * tail / 0.9, at_once=False)
        # A pool that leaves all unbeaten has that chance, and breaks the row from there on.
        assert (float(rows.expected.mean[0] @ mass) < rows.low[0] - 1e-6) == broken


# -- the world of the promises -------------------------------------------------------------------


def test_targets_of_the_world_stand_where_the_law_says():
    world = World(effects=1.0, sampled=99, targets=400, items=100)
    (batches,) = draw(world, np.random.default_rng(9))
    ranks = batches[99].beats.sum(axis=1) + 1
    # All other items are in the pool, so that ranks are known.
    recall = (ranks <= 10).mean()
    assert recall == pytest.approx(truth(world, parse("Recall@10")), abs=0.08)


@pytest.mark.parametrize("effects", [1.0, np.inf])
def test_intervals_of_shared_pools_hold_the_truth_in_a_few_trials(effects):
    world = World(effects=effects, sampled=60, targets=300, items=600)
    for name, rows in measure(world, ["Recall@50", "AUC"], 8, 10).items():
        value = truth(world, parse(name))
        held = (rows[:, 0] <= value) & (value <= rows[:, 1])
        assert held.sum() >= 6, name
        assert (rows[:, 0] <= rows[:, 1]).all()


def test_ranks_without_outcomes_have_bounds_only():
    world = World(effects=1.0, sampled=60, targets=300, items=600)
    (batches,) = draw(world, np.random.default_rng(11))
    counts = told(world, batches[60], known=False).counts
    certainty = Certainty.of(counts, [50], SHAPES["power"])
    metric = parse("Recall@50")
    assert certainty.side(metric, 1, 0.95) is None
    assert certainty.interval(metric) == certainty.bounds(metric)


def test_equal_models_are_rarely_told_apart():
    """Two of each here; tests/test_validity_pools.py has hundreds."""
    for known in (True, False):
        world = World(effects=2.0, sampled=60, targets=300, items=600)
        wrong = verdicts(world, ["Recall@50", "AUC"], 2, 12, known=known)
        assert max(wrong.values()) <= 0.25


# -- doors ---------------------------------------------------------------------------------------


def _scored(world, seed=0):
    """Return scored rows of a world whose pool is shared by all, and its outcomes."""
    (batches,) = draw(world, np.random.default_rng(seed))
    beats, items = batches[world.sampled].beats, batches[world.sampled].items
    targets = len(beats)
    frame = pl.DataFrame(
        {
            "user": np.repeat(np.arange(targets), world.sampled + 1),
            "item": np.column_stack([np.full(targets, -1), np.tile(items, (targets, 1))]).ravel(),
            "score": np.column_stack([np.full(targets, 0.5), beats]).ravel(),
            "target": np.tile(np.arange(world.sampled + 1) == 0, targets),
        }
    )
    return frame, batches[world.sampled]


WORLD = World(effects=1.0, sampled=60, targets=300, items=600)
OPTIONS = {"items": 600, "replacement": False, "metrics": ["Recall@50", "AUC"]}


@pytest.mark.parametrize("kind", ["polars", "pandas", "csv"])
def test_scored_rows_tell_which_item_beats_which_target(kind, tmp_path):
    frame, batches = _scored(WORLD)
    direct = told(WORLD, batches).counts
    source = frame.sample(fraction=1.0, shuffle=True, seed=3)
    if kind == "pandas":
        source = source.to_pandas()
    if kind == "csv":
        source.write_csv(tmp_path / "scores.csv")
        source = str(tmp_path / "scores.csv")
    (counts,) = read_counts(source, items=600, replacement=False, negatives="shared").values()
    assert counts.shared.known
    assert counts.shared.sampled == 60
    assert sorted(counts.shared.count) == sorted(direct.shared.count)
    scores = np.linspace(1, 0, 61) ** 3
    ours, theirs = (items_part(each, scores).variance for each in (counts, direct))
    assert ours == pytest.approx(theirs)
    found, expected = (unsample.estimate(each, **_given(OPTIONS)) for each in (counts, direct))
    for name in OPTIONS["metrics"]:
        assert found[name].interval() == pytest.approx(expected[name].interval())
    assert found.to_dict()["negatives"] == "shared"
    assert "60 of 600 items shared by all targets" in str(found)


def _given(options):
    return {name: value for name, value in options.items() if name == "metrics"}


def test_one_pool_without_outcomes_says_what_to_record():
    _, batches = _scored(WORLD)
    ranks = told(WORLD, batches, shared=False).ranks
    with pytest.warns(UnsampleWarning, match="record outcomes by item"):
        found = unsample.estimate(ranks, sampled=60, negatives="shared", **OPTIONS)
    own = unsample.estimate(ranks, sampled=60, **OPTIONS)
    for name in OPTIONS["metrics"]:
        low, high = found[name].interval()
        assert low < own[name].interval()[0] < own[name].interval()[1] < high
        assert math.isnan(found[name].standard_error)
        assert found[name].bounds()[0] <= low
    with pytest.raises(InputError, match="negatives must be one of own, shared"):
        unsample.estimate(ranks, sampled=60, negatives="common", **OPTIONS)
    shared = ItemCounts.without_outcomes(60)
    with pytest.raises(DesignError, match="60 items that all targets share"):
        _ = Targets(ranks, 600, np.where(ranks > 5, 60, 70), shared=shared).counts


def test_errors_of_methods_include_the_items(monkeypatch):
    _, batches = _scored(World(effects=3.0, sampled=60, targets=300, items=600))
    shared = told(WORLD, batches).counts
    own = told(WORLD, batches, shared=False).counts
    names = {"metrics": ["Recall@50"], "method": "mle"}
    with_items = unsample.estimate(shared, **names)["Recall@50"].standard_error
    without = unsample.estimate(own, **names)["Recall@50"].standard_error
    assert with_items > 1.5 * without


@pytest.mark.filterwarnings("ignore:targets share their sampled items")
def test_models_on_one_pool_profit_from_it():
    _, batches = _scored(World(effects=3.0, sampled=60, targets=300, items=600))
    first = told(WORLD, batches)
    # The same outcomes but for a few: what the items do to both cancels.
    beats = batches.beats.copy()
    beats[:40, :30] |= np.random.default_rng(0).random((40, 30)) < 0.5
    second = told(WORLD, Batch(batches.items, beats))
    options = {"metrics": "AUC", "method": "mle", "candidates": "unseen"}
    both = unsample.compare({"A": first, "B": second}, **options)
    pair = both.difference("A", "B", "AUC")
    entry = both.estimates["A"]["AUC"]
    assert np.ptp(entry.interval()) > 2 * (pair.high - pair.low)
    assert pair.winner == "A"
    unknown = ItemCounts.without_outcomes(60)
    alone = unsample.compare(
        {"A": replace(first, shared=unknown), "B": replace(second, shared=unknown)}, **options
    )
    assert alone.difference("A", "B", "AUC").winner is None
    other = told(WORLD, Batch(batches.items + 1000, beats))
    assert unsample.compare({"A": first, "B": other}, **options).winner("AUC") is None


def test_counts_of_pools_are_added_saved_and_weighed(tmp_path):
    users = np.repeat(np.arange(150), 2)
    _, batches = _scored(WORLD)
    beats, items = batches.beats, batches.items
    outcomes = ItemCounts.from_outcomes(
        beats, items=items, relevant=np.full(300, 2), place=np.zeros(300, dtype=int)
    )
    found = replace(told(WORLD, batches), users=users, shared=outcomes).counts
    recall = found.for_metric(parse("Recall@50"))
    scores = np.linspace(1, 0, 61)
    plain = items_part(told(WORLD, batches).counts, scores).variance
    assert items_part(recall, scores).variance == pytest.approx(plain, rel=1e-9)
    found.save(tmp_path / "counts.npz")
    again = RankCounts.load(tmp_path / "counts.npz")
    assert again == found
    assert again.shared.arrays().keys() == found.shared.arrays().keys()
    assert (found + found).shared.count.tolist() == (2 * found.shared.count).tolist()
    with pytest.raises(DesignError, match="shared and of own items"):
        _ = found + told(WORLD, batches, shared=False).counts


def test_scores_of_a_pool_are_targets_with_outcomes():
    rng = np.random.default_rng(4)
    own, others = rng.normal(size=300), rng.normal(size=(300, 60))
    found = shared_targets(own, others, items=600)
    beats = others > own[:, None]
    assert np.array_equal(found.ranks, 1 + beats.sum(axis=1))
    assert _same(found.counts.shared, ItemCounts.from_outcomes(beats))
    # Scores that do not depend on the target, and few different ones: one order for all.
    coarse = np.round(2 * others[0]) / 2
    aims = np.round(2 * own) / 2
    best, worst, drawn = (
        shared_targets(aims, coarse, items=600, ties=rule).ranks
        for rule in ("optimistic", "pessimistic", "random")
    )
    above, tied = (coarse > aims[:, None]).sum(axis=1), (coarse == aims[:, None]).sum(axis=1)
    assert np.array_equal(best, 1 + above)
    assert np.array_equal(worst, 1 + above + tied)
    assert ((best <= drawn) & (drawn <= worst)).all()
    place = (drawn - best)[tied > 0] / tied[tied > 0]
    assert place.mean() == pytest.approx(0.5, abs=0.06)
    users = np.repeat(np.arange(150), 2)
    several = shared_targets(own, others, items=600, users=users, filtered=False).counts
    assert several.several
    for wrong, words in (
        ((own, others[:5]), "others must be one score for each item"),
        ((own, others * np.nan), "others must not be NaN"),
        (([], others), "own and others must hold scores, got 0"),
    ):
        with pytest.raises(ScoreError, match=words):
            shared_targets(*wrong, items=600)
