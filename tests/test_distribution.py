import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.errors import InputError
from unsample.law import RankDistribution, RankGrid, bin_weights
from unsample.metrics import parse


@given(
    items=st.integers(2, 3000),
    seed=st.integers(0, 10**6),
    level=st.floats(0.001, 0.999),
)
def test_quantile_inverts_the_cdf(items, seed, level):
    grid = RankGrid.build(items, single=5, ratio=0.2)
    mass = np.random.default_rng(seed).dirichlet(np.full(len(grid), 0.3))
    distribution = RankDistribution(grid, mass)
    rank = int(distribution.quantile(level))
    assert distribution.cdf(rank) >= level - 1e-9
    assert rank == 1 or distribution.cdf(rank - 1) <= level + 1e-9


def test_dense_pmf_and_cdf_tell_the_same():
    grid = RankGrid.build(700, sampled=9)
    mass = np.random.default_rng(0).dirichlet(np.ones(len(grid)))
    distribution = RankDistribution(grid, mass)
    ranks = np.arange(1, 701)
    assert np.allclose(distribution.dense(), distribution.pmf(ranks))
    assert np.allclose(np.cumsum(distribution.dense()), distribution.cdf(ranks))
    assert distribution.cdf(0) == 0.0
    assert distribution.cdf(10**9) == pytest.approx(1.0)
    assert distribution.pmf([0, 701]).tolist() == [0.0, 0.0]


def test_empirical_ranks_keep_their_metrics(full_ranks):
    distribution = RankDistribution.from_ranks(full_ranks, items=400)
    expected = np.where(full_ranks <= 100, 1 / np.log2(full_ranks + 1), 0).mean()
    assert distribution.expect("NDCG@100") == pytest.approx(expected, rel=1e-12)


def test_levels_that_a_rank_just_reaches_give_that_rank():
    grid = RankGrid.build(1000, single=5, ratio=0.3)
    even = RankDistribution(grid, grid.width / 1000)
    ranks = np.arange(1, 1001)
    assert even.quantile(ranks / 1000).tolist() == ranks.tolist()
    assert even.quantile(0.0) == 1
    steps = RankDistribution.from_ranks([3, 3, 50, 900], items=1000)
    levels = [0.0, 0.01, 0.5, 0.500001, 0.75, 0.76, 1.0]
    assert steps.quantile(levels).tolist() == [1, 3, 3, 50, 50, 900, 900]


def test_the_first_bin_may_be_wide():
    even = RankDistribution(RankGrid(np.array([1, 5]), 10), np.array([0.4, 0.6]))
    ranks = np.arange(1, 11)
    assert even.cdf(ranks) == pytest.approx(ranks / 10)
    assert even.quantile(ranks / 10).tolist() == ranks.tolist()
    steep = RankDistribution(RankGrid(np.array([1, 5]), 10), np.array([0.88, 0.12]))
    assert steep.cdf(ranks) == pytest.approx(np.cumsum(steep.dense()))
    assert RankDistribution(RankGrid(np.array([1]), 4), np.ones(1)).cdf(3) == pytest.approx(0.75)


@pytest.mark.parametrize("total", [1 - 1e-9, 1 - 1e-11, 1 + 1e-11])
def test_all_levels_are_reached_where_masses_sum_to_one_but_for_rounding(total):
    grid = RankGrid(np.array([1, 2, 5]), 10)
    distribution = RankDistribution(grid, total * np.array([0.3, 0.2, 0.5]))
    assert distribution.quantile([0.3 * total, 1.0]).tolist() == [1, 10]
    nothing_last = RankDistribution(grid, total * np.array([0.3, 0.7, 0.0]))
    assert 4 <= nothing_last.quantile(1.0) <= 10


def test_quantiles_of_signed_masses_are_where_the_cdf_first_gets():
    grid = RankGrid.dense(5)
    dips = RankDistribution(grid, np.array([0.5, 0.3, -0.2, 0.1, 0.3]))
    assert dips.quantile([0.5, 0.7, 0.8, 0.9, 1.0]).tolist() == [1, 2, 2, 5, 5]


def test_cdf_takes_ranks_between_and_beyond():
    distribution = RankDistribution.from_ranks([1, 2, 2, 40], items=100)
    assert distribution.cdf([-3, 0, 0.9, 1, 1.9, 2, 39.9, 40, 100, 101]).tolist() == [
        0, 0, 0, 0.25, 0.25, 0.75, 0.75, 1, 1, 1,
    ]  # fmt: skip
    assert distribution.pmf([0, 1, 2, 3, 40, 100]).tolist() == [0, 0.25, 0.5, 0, 0.25, 0]
    assert distribution.items == 100


def test_catalogues_smaller_than_the_grid_end_where_they_end():
    grid = RankGrid.build(100, single=10, ratio=0.4)
    weights = bin_weights(parse("AUC"), grid, items=60)
    ranks = np.arange(1, 101)
    dense = np.where(ranks <= 60, (60 - ranks) / 59, 0.0)
    expected = np.add.reduceat(dense, grid.low - 1) / grid.width
    assert np.allclose(weights, expected, atol=1e-12)


def test_only_catalogues_that_fit_are_written_out():
    one_more = RankGrid.build(10**8 + 1, sampled=9)
    with pytest.raises(InputError, match="at most 100000000"):
        RankDistribution(one_more, one_more.width / (10**8 + 1)).dense()


def test_the_last_rank_is_a_rank():
    last = RankDistribution.from_ranks([10, 10, 3], items=10)
    assert last.pmf([3, 10]) == pytest.approx([1 / 3, 2 / 3])


def test_refusals():
    for ranks in ([11], [1, 11], [0, 5]):
        with pytest.raises(InputError, match=r"1\.\.10"):
            RankDistribution.from_ranks(ranks, items=10)
    with pytest.raises(InputError, match="level"):
        RankDistribution.from_ranks([1], items=10).quantile([0.5, -0.1])
    with pytest.raises(InputError, match="none"):
        RankDistribution.from_ranks([], items=10)
    huge = RankGrid.build(10**9, sampled=9)
    with pytest.raises(InputError, match="every rank"):
        RankDistribution(huge, huge.width / 10**9).dense()
    with pytest.raises(InputError, match="level"):
        RankDistribution.from_ranks([1], items=10).quantile(1.5)
