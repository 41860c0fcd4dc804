import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.distribution import RankDistribution
from unsample.errors import InputError
from unsample.grid import RankGrid


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


def test_refusals():
    with pytest.raises(InputError, match=r"1\.\.10"):
        RankDistribution.from_ranks([11], items=10)
    with pytest.raises(InputError, match="none"):
        RankDistribution.from_ranks([], items=10)
    huge = RankGrid.build(10**9, sampled=9)
    with pytest.raises(InputError, match="every rank"):
        RankDistribution(huge, huge.width / 10**9).dense()
    with pytest.raises(InputError, match="level"):
        RankDistribution.from_ranks([1], items=10).quantile(1.5)
