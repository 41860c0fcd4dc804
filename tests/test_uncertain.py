"""Every uncertain number: value, interval and probability come from one distribution."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unsample.bounds import MeanError
from unsample.errors import InputError
from unsample.metrics import Recall
from unsample.uncertainty import BetweenBounds, FromDraws, MeanWithError, MeanWithLimits, Uncertain

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


@cache
def every() -> dict[str, Uncertain]:
    """Return an uncertain number of each kind, and of kinds at their edges."""
    rng = np.random.default_rng(0)
    hits = (rng.random(200) < 0.1) * 1.0
    error = MeanError.of(hits, np.ones(200), Recall @ 5)
    return {
        "draws": FromDraws.of(rng.beta(2.0, 5.0, 4096), minimum=0.0, maximum=1.0),
        "few draws": FromDraws.of(rng.normal(size=30)),
        "equal draws": FromDraws.of(np.full(500, 0.25)),
        "steps": FromDraws.of(rng.poisson(1.0, 4096) / 60.0, minimum=0.0, maximum=1.0),
        "mean": MeanWithError(0.3, 0.05),
        "mean of few": MeanWithError(0.3, 0.05, 4.0, minimum=0.0, maximum=1.0),
        "known": MeanWithError(0.3, 0.0),
        "rare hits": MeanWithLimits(float(hits.mean()), error),
        "bounds": BetweenBounds(0.4, lambda level: (0.4 - level / 3.0, 0.4 + level / 2.0)),
    }


@pytest.mark.parametrize("name", every())
def test_intervals_hold_the_value_and_grow_with_the_level(name: str) -> None:
    number = every()[name]
    before = (number.value, number.value)
    for level in LEVELS:
        low, high = number.interval(level)
        assert low <= before[0] <= before[1] <= high
        assert number.interval(level) == (low, high)
        before = low, high
    assert number.interval() == number.interval(0.95)
    for level in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InputError, match="level"):
            number.interval(level)


@pytest.mark.parametrize("name", every())
def test_quantiles_grow_and_the_median_is_the_value(name: str) -> None:
    number = every()[name]
    quantiles = [number.quantile(each) for each in np.linspace(0.001, 0.999, 999).tolist()]
    assert (np.diff(quantiles) >= -1e-12).all()
    # Of draws the value is their median, up to half of the way from one draw to the next.
    assert number.quantile(0.5) == pytest.approx(number.value, abs=1e-9)


@pytest.mark.parametrize("name", every())
def test_an_interval_excludes_what_the_probability_excludes(name: str) -> None:
    number = every()[name]
    low, high = number.interval(0.9)
    if name == "bounds":
        assert math.isnan(number.probability_above(0.0))
        return
    width = max(high - low, 0.01)
    limits = np.linspace(low - width, high + width, 301).tolist()
    above = [number.probability_above(each) for each in limits]
    assert (np.diff(above) <= 1e-9).all()
    assert min(above) >= 0.0
    assert max(above) <= 1.0
    for level in LEVELS:
        ends = number.interval(level)
        for limit, probability in zip(limits, above, strict=True):
            if min(abs(limit - end) for end in ends) < 1e-6 * width:
                continue
            sure = max(probability, 1.0 - probability) > (1.0 + level) / 2.0
            assert sure == (limit < ends[0] or limit > ends[1]), (level, limit, probability)


# -- from draws -----------------------------------------------------------------------------------


def test_draws_of_a_normal_distribution_have_its_quantiles_also_beyond_them() -> None:
    scores = stats.norm.ppf((np.arange(4096) + 0.5) / 4096)
    number = FromDraws.of(3.0 + 2.0 * scores)
    for probability in (1e-5, 1e-4, 1e-3, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-4, 1 - 1e-5):
        expected = 3.0 + 2.0 * stats.norm.ppf(probability)
        assert number.quantile(probability) == pytest.approx(expected, abs=0.03)
        assert number.probability_above(expected) == pytest.approx(1.0 - probability, rel=0.02)
    assert number.probability_above(3.0 + 2.0 * 5.0) == pytest.approx(stats.norm.sf(5.0), rel=0.1)


def test_draws_in_any_order_are_the_same_number() -> None:
    draws = np.random.default_rng(1).gamma(2.0, size=500)
    one, other = FromDraws.of(draws), FromDraws.of(draws[::-1])
    assert one.value == other.value == float(np.median(draws))
    assert one.interval() == other.interval()


def test_draws_that_do_not_vary_leave_nothing_open() -> None:
    number = FromDraws.of(np.zeros(100), minimum=0.0, maximum=1.0)
    assert number.interval(0.999) == (0.0, 0.0)
    assert number.probability_above(0.0) == 0.5
    assert number.probability_above(-1e-9) == 1.0
    assert number.probability_above(1e-9) == 0.0


def test_ties_count_half() -> None:
    number = FromDraws.of(np.repeat([0.0, 1.0, 2.0], [25, 50, 25]))
    assert number.probability_above(1.0) == 0.5
    assert number.probability_above(0.5) == pytest.approx(0.75, abs=0.01)


def test_no_quantile_leaves_the_limits() -> None:
    number = FromDraws.of(np.linspace(0.0, 1.0, 200) ** 4, minimum=0.0, maximum=1.0)
    assert number.interval(0.9999) == (0.0, 1.0)
    assert FromDraws.of(np.full(9, 1.5), maximum=1.0).value == 1.0


@settings(max_examples=200)
@given(
    draws=st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=300),
    level=st.floats(0.01, 0.9999),
    limit=st.floats(-2e6, 2e6),
)
def test_intervals_and_probabilities_agree_for_any_draws(draws, level, limit) -> None:
    number = FromDraws.of(np.array(draws))
    low, high = number.interval(level)
    assert low <= high
    assert number.quantile(0.5) == pytest.approx(number.value, rel=1e-9, abs=1e-9)
    probability = number.probability_above(limit)
    assert 0.0 <= probability <= 1.0
    width = max(np.ptp(draws), 1e-30)
    if min(abs(limit - low), abs(limit - high)) > 1e-9 * max(width, abs(limit)):
        if limit < low:
            assert probability >= (1.0 + level) / 2.0 - 1e-9
        elif limit > high:
            assert probability <= (1.0 - level) / 2.0 + 1e-9
        else:
            assert (1.0 - level) / 2.0 - 1e-9 <= probability <= (1.0 + level) / 2.0 + 1e-9


@settings(max_examples=100)
@given(
    draws=st.lists(st.floats(-1e3, 1e3, width=32), min_size=5, max_size=200),
    scale=st.floats(0.01, 100.0),
    shift=st.floats(-100.0, 100.0),
)
def test_a_scale_and_its_sign_change_nothing_else(draws, scale, shift) -> None:
    plain = FromDraws.of(np.array(draws))
    moved = FromDraws.of(scale * np.array(draws) + shift)
    turned = FromDraws.of(-np.array(draws))
    low, high = plain.interval(0.9)
    room = 1e-9 * (1.0 + scale) * (1.0 + max(map(abs, draws))) + 1e-9
    assert moved.interval(0.9) == pytest.approx(
        (scale * low + shift, scale * high + shift), abs=room
    )
    assert turned.interval(0.9) == pytest.approx((-high, -low), abs=room)


# -- means and bounds -----------------------------------------------------------------------------


def test_a_mean_follows_students_distribution() -> None:
    few = MeanWithError(0.3, 0.05, 4.0)
    student = stats.t(4.0, loc=0.3, scale=0.05)
    assert few.interval(0.9) == pytest.approx(student.interval(0.9))
    assert few.probability_above(0.4) == pytest.approx(student.sf(0.4))
    assert MeanWithError(0.3, 0.05).interval(0.9) == pytest.approx(
        stats.norm(0.3, 0.05).interval(0.9)
    )
    known = MeanWithError(0.3, 0.0)
    assert known.interval(0.999) == (0.3, 0.3)
    assert [known.probability_above(each) for each in (0.2, 0.3, 0.4)] == [1.0, 0.5, 0.0]


def test_a_mean_with_limits_has_the_limits_of_its_error() -> None:
    number = every()["rare hits"]
    assert isinstance(number, MeanWithLimits)
    for level in LEVELS:
        assert number.interval(level) == pytest.approx(number.error.interval(number.value, level))
    low, high = number.interval(0.9)
    assert number.probability_above(low) == pytest.approx(0.95, abs=1e-6)
    assert number.probability_above(high) == pytest.approx(0.05, abs=1e-6)


def test_bounds_have_limits_at_each_level_and_no_probabilities() -> None:
    number = every()["bounds"]
    assert number.interval(0.9) == pytest.approx((0.1, 0.85))
    assert math.isnan(number.probability_above(0.0))


def test_the_mean_of_one_user_has_no_probability():
    """One user shows no variation: neither an interval nor a probability."""
    import unsample

    one = unsample.exact([3], items=100, metrics="MR")["MR"].like
    assert np.isnan(one.quantile(0.9))
    assert np.isnan(one.probability_above(2.0))
