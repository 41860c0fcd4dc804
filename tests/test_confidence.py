"""Bounds, intervals, shapes, and delta-method errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unsample
from tests import reference
from unsample import metrics
from unsample.confidence import SHAPES, Certainty, Shape, shape_for
from unsample.errors import InputError, RefutedWarning
from unsample.estimators import Observed, parse
from unsample.evidence import RankCounts
from unsample.law import Law

ITEMS, SAMPLED = 400, 30
NAMES = ("Recall@5", "Recall@40", "NDCG@20", "AP@10", "AUC")


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(3)
    mass = (np.arange(ITEMS) + 3.0) ** -0.8
    full = 1 + rng.choice(ITEMS, size=2000, p=mass / mass.sum())
    ranks = Law(ITEMS, SAMPLED).draw(full, rng=rng)
    return RankCounts.from_ranks(ranks, items=ITEMS, sampled=SAMPLED)


def _certainty(counts, shape, names=NAMES):
    cutoffs = [metrics.parse(name).cutoff(ITEMS) for name in names]
    return Certainty.of(counts, cutoffs, SHAPES[shape] if isinstance(shape, str) else shape)


# -- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [Shape(1.5, 0.5), Shape(1.0, 0.0, dents=True), Shape(math.inf, 0)]
)
def test_exponents_are_the_stated_ones_at_the_top_and_loosen_further_down(shape):
    low, high = shape.exponents(np.array([1e-6, 10.0, 1000.0]), blind_rank=20.0)
    assert low[0] == pytest.approx(-shape.fall)
    assert (low[1:] <= low[:-1]).all()
    assert math.isinf(high[0]) if shape.dents else high[0] == pytest.approx(shape.rise, abs=1e-6)
    assert (low <= high).all()


@pytest.mark.parametrize(
    ("shape", "candidates", "expected"),
    [
        (None, None, "depleted"),
        (None, "unseen", "power"),
        (None, "all", "depleted"),
        ("non-increasing", "all", "non-increasing"),
    ],
)
def test_what_was_seen_implies_a_shape(shape, candidates, expected):
    assert shape_for(shape, candidates) is SHAPES[expected]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape(-1.0, 0.5), "fall must be"),
        (lambda: Shape(1.0, math.nan), "rise must be"),
        (lambda: shape_for("pwer", None), "did you mean power"),
        (lambda: shape_for(None, "hidden"), "candidates must be one of unseen, all"),
    ],
)
def test_wrong_shapes_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_shapes_read_as_the_end_of_a_sentence():
    assert str(SHAPES["none"]) == "nothing about P(R)"
    assert str(SHAPES["power"]) == (
        "that P(R) near the top (rank 1 aside) falls no faster than R^-1.5 and rises no faster "
        "than R^0.5"
    )
    assert str(SHAPES["non-increasing"]) == "that P(R) never rises"


# -- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", ["none", "power", "non-increasing"])
def test_bounds_match_a_slow_program_on_every_rank(counts, name, shape):
    """The grid is coarse: it may widen the bounds, by little beside their width.

    Inside a bin that a shape leaves free, what the sample sees and what a metric weighs go to the
    ends of it separately. That costs most where a metric weighs every rank.
    """
    certainty = _certainty(counts, shape)
    metric = metrics.parse(name)
    low, high = certainty._both_sides(metric, SHAPES[shape], 0.95)
    ends = certainty.strata[0].evidence[0].ends
    expected = reference.metric_bounds(counts, ends, metric, SHAPES[shape], 0.05)
    width = expected[1] - expected[0]
    wider = (expected[0] - low) / width, (high - expected[1]) / width
    assert max(wider) <= (0.25 if name == "AUC" else 0.06)
    # Within bins that the shape limits P(R) is taken as even, which is right to a per cent.
    assert min(wider) >= (-1e-6 if shape == "none" else -0.02)


@given(st.integers(0, 2**32 - 1), st.sampled_from(NAMES), st.sampled_from([-1, 1]))
@settings(max_examples=30, deadline=None)
def test_affine_bounds_hold_for_every_distribution_of_the_shape(counts, seed, name, side):
    """The inequality behind an interval must hold for P(R) that the data never saw."""
    certainty = _certainty(counts, "power")
    metric = metrics.parse(name)
    bound = certainty.affine_bound(metric, side)
    mass = _random_mass(certainty, metric, np.random.default_rng(seed))
    ((part,), (solved,), (weights,)) = bound.strata[0].evidence, bound.solved, bound.weights
    claimed = -side * (solved.offset + solved.scores[0] @ (part.expected.mean @ mass))
    assert side * (claimed - weights @ mass) >= -1e-9


def _random_mass(certainty, metric, rng):
    (stratum,) = certainty.strata
    grid = stratum.grid
    middle = np.log((grid.low + grid.high) / 2.0)
    # The shape reaches further down for a large K.
    shape = stratum.reaching(certainty.shape, metric, 0.05)
    low, high = shape.exponents(np.exp((middle[1:] + middle[:-1]) / 2.0), 399 / SAMPLED)
    low, high = low.clip(-20.0), high.clip(max=20.0)
    # Exponents wander and stick to the limits, where the inequality is tight.
    place = (rng.random() + np.cumsum(rng.normal(0, 0.3, len(low)))).clip(0.0, 1.0)
    density = np.exp(
        np.concatenate([[0.0], np.cumsum((low + place * (high - low)) * np.diff(middle))])
    )
    mass = density * grid.width
    return mass / mass.sum()


def test_bounds_hold_intervals_and_both_nest_in_levels(counts):
    certainty = _certainty(counts, "power")
    for name in NAMES:
        metric = metrics.parse(name)
        outer = certainty.bounds(metric, 0.95)
        last = (math.inf, -math.inf)
        for level in (0.5, 0.8, 0.95, 0.99):
            low, high = certainty.interval(metric, level)
            assert low <= last[0]
            assert high >= last[1]
            last = (low, high)
            if level <= 0.95:
                assert outer[0] - 1e-9 <= low <= high <= outer[1] + 1e-9


def test_these_users_are_known_better_than_users_like_them(counts):
    certainty = _certainty(counts, "power")
    metric = metrics.parse("Recall@100")
    like, these = certainty.interval(metric), certainty.interval(metric, population=False)
    assert these[1] - these[0] < like[1] - like[0]


def test_an_assumption_narrows_and_a_refuted_one_is_dropped(counts):
    metric = metrics.parse("Recall@5")
    widths = [
        np.diff(_certainty(counts, shape).interval(metric))[0]
        for shape in ("none", "depleted", "power", Shape(1.0, 0.0))
    ]
    assert widths == sorted(widths, reverse=True)
    rising = RankCounts.from_ranks([15] * 500 + [16] * 500, items=ITEMS, sampled=SAMPLED)
    certainty = _certainty(rising, "non-increasing")
    assert not certainty.fits()
    assert certainty.interval(metric) == certainty.bounds(metric)


def test_data_that_fit_no_distribution_say_so():
    # Half the targets first and half last, nobody in between, but for a spread too narrow for
    # any mixture of binomials: every second rank is never seen.
    ranks = np.repeat(np.arange(1, 31, 2), 400)
    with pytest.warns(RefutedWarning, match="no distribution of global ranks"):
        result = unsample.estimate(ranks, items=ITEMS, sampled=2 * SAMPLED, metrics="Recall@40")
    assert result["Recall@40"].interval()[1] > 0.3


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["naive", "mle", "bv(gamma=0.01)"])
def test_the_delta_method_agrees_with_the_bootstrap(counts, method):
    names = ["Recall@5", "NDCG@40"]
    delta = unsample.estimate(counts, metrics=names, method=method)
    drawn = reference.bootstrap(counts, 400)
    batch = Observed.prepare(counts, resampled=drawn, cutoffs=[5, 40], candidates="unseen")
    spread = parse(method).evaluate(batch, metrics.parse_all(names)).values[1:].std(axis=0)
    for name, expected in zip(names, spread, strict=True):
        assert delta[name].standard_error == pytest.approx(expected, rel=0.1)
        assert 0 < delta[name].error.these <= delta[name].error.population


def test_equal_targets_of_one_user_count_as_one():
    ranks = np.random.default_rng(1).integers(1, 32, 300)
    alone = RankCounts.from_ranks(ranks, items=ITEMS, sampled=SAMPLED)
    thrice = RankCounts.from_ranks(
        np.repeat(ranks, 3), items=ITEMS, sampled=SAMPLED, users=np.repeat(np.arange(300), 3)
    )
    assert thrice.total == 900
    assert thrice.effective == pytest.approx(300)
    names = ["Recall@40"]
    one, two = (unsample.estimate(c, metrics=names) for c in (alone, thrice))
    assert one["Recall@40"].interval() == pytest.approx(two["Recall@40"].interval(), rel=0.01)
    with pytest.raises(InputError, match="one user for each of the 3 ranks"):
        RankCounts.from_ranks([1, 2, 3], items=10, sampled=3, users=[1, 2])


@pytest.mark.parametrize("ranks", [[50] * 500, [1] * 300 + [100] * 300, [7] * 60 + [93] * 900])
@pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")
def test_ends_never_pass_each_other(ranks):
    names = ["Recall@10", "Recall@100", "NDCG@500", "AUC"]
    result = unsample.estimate(ranks, items=1000, sampled=99, metrics=names)
    for entry in result.entries:
        for population in (True, False):
            low, high = entry.interval(population=population)
            assert low <= high
        low, high = entry.bounds()
        assert low <= high
