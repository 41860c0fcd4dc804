import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.grid import RankGrid, mean_over


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


def test_bins_grow_with_the_logarithm_of_the_catalogue():
    small, large = (len(RankGrid.build(n, sampled=99)) for n in (10**5, 10**9))
    assert large < 2.5 * small


@given(low=st.integers(1, 1000), width=st.integers(1, 200), powers=st.integers(0, 5))
def test_mean_over_is_exact_for_quintics(low, width, powers):
    ranks = np.arange(low, low + width, dtype=float)
    got = mean_over(lambda x: x**powers, np.array([low]), np.array([low + width - 1]))
    assert got[0] == pytest.approx((ranks**powers).mean(), rel=1e-10)
