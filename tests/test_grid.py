import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.errors import DesignError
from unsample.law import RankGrid, mean_over


@given(
    items=st.integers(1, 10**7),
    sampled=st.integers(0, 2000),
    cutoffs=st.lists(st.integers(1, 10**7), max_size=5),
)
def test_bins_cover_every_rank_once_and_isolate_cutoffs(items, sampled, cutoffs):
    grid = RankGrid.build(items, sampled=sampled, cutoffs=cutoffs)
    assert grid.low[0] == 1
    assert grid.high[-1] == items
    assert (grid.low[1:] == grid.high[:-1] + 1).all()
    assert grid.width.sum() == items
    for k in cutoffs:
        if k <= items:
            assert grid.width[grid.locate(np.array([k]))[0]] == 1


@pytest.mark.parametrize("items", [100, 5000, 10**6])
@pytest.mark.parametrize("sampled", [0, 1, 9, 999])
@pytest.mark.parametrize("options", [{}, {"single": 10, "ratio": 0.5}, {"blur": 0.01}])
def test_bins_are_as_wide_as_rank_and_sample_allow(items, sampled, options):
    grid = RankGrid.build(items, sampled=sampled, **options)
    single = min(options.get("single", 64), items)
    assert (grid.width[:single] == 1).all()
    # All but the last, which ends with the catalogue.
    low, width = grid.low[single:-1], grid.width[single:-1]
    allowed = options.get("ratio", 0.0125) * low
    if sampled:
        theta = (low - 1) / (items - 1)
        variance = np.maximum(theta * (1 - theta), 1 / sampled) / sampled
        error = options.get("blur", 0.2) * (items - 1) * np.sqrt(variance)
        allowed = np.minimum(allowed, error)
    assert (width == np.maximum(1, np.floor(allowed))).all()


def test_64_ranks_stand_alone_and_then_bins_begin():
    """Without a sample, as is the default, nothing but the rank says how wide they are."""
    grid = RankGrid.build(1000, ratio=0.5)
    assert grid.low.tolist() == [*range(1, 66), 97, 145, 217, 325, 487, 730]


def test_every_rank_is_found_in_its_bin():
    grid = RankGrid.build(500, single=4, ratio=0.4, cutoffs=[37, 500, 501, 0])
    bins = grid.locate(np.arange(1, 501))
    assert np.array_equal(np.bincount(bins), grid.width)
    assert (np.diff(bins) >= 0).all()
    assert grid.low[-1] == 500
    dense = RankGrid.dense(7)
    assert dense.low.tolist() == dense.high.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert len(dense) == dense.items == 7


def test_catalogues_of_one_item_and_none():
    assert RankGrid.build(1, sampled=5).low.tolist() == [1]
    with pytest.raises(DesignError, match="items must be an integer of at least 1"):
        RankGrid.build(0)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 9, 40])
@pytest.mark.parametrize("power", range(6))
def test_means_over_few_ranks_have_all_digits(width, power):
    low = np.array([1, 3])
    expected = [np.mean([float(r) ** power for r in range(x, x + width)]) for x in low]
    for one_by_one in (None, np.array([True, False]), np.array([False, False])):
        got = mean_over(lambda x: x**power, low, low + width - 1, one_by_one=one_by_one)
        assert got == pytest.approx(expected, rel=1e-13)


def test_functions_that_jump_are_averaged_rank_by_rank_where_asked():
    low, high = np.array([1, 5, 20]), np.array([4, 19, 60])
    jump = lambda x: np.stack([np.where(x > 30, 1.0, 0.0), x])  # noqa: E731
    got = mean_over(jump, low, high, one_by_one=np.array([False, True, True]))
    assert got == pytest.approx(np.array([[0, 0, 30 / 41], [2.5, 12, 40]]), rel=1e-13)


@given(low=st.integers(1, 1000), width=st.integers(1, 60), marked=st.booleans())
def test_functions_are_asked_only_where_they_are_averaged(low, width, marked):
    """What a function does before the first rank or after the last is of no account."""
    first, last = np.array([low]), np.array([low + width - 1])
    fenced = lambda x: np.where((x < first) | (x > last), np.nan, x)  # noqa: E731
    got = mean_over(fenced, first, last, one_by_one=np.array([marked]))
    assert got == pytest.approx((first + last) / 2.0, rel=1e-14)


def test_bins_grow_with_the_logarithm_of_the_catalogue():
    small, large = (len(RankGrid.build(n, sampled=99)) for n in (10**5, 10**9))
    assert large < 2.5 * small


@given(low=st.integers(1, 1000), width=st.integers(1, 200), powers=st.integers(0, 5))
def test_mean_over_is_exact_for_quintics(low, width, powers):
    ranks = np.arange(low, low + width, dtype=float)
    got = mean_over(lambda x: x**powers, np.array([low]), np.array([low + width - 1]))
    assert got[0] == pytest.approx((ranks**powers).mean(), rel=1e-10)
