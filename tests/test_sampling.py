"""P(r given R) against exact arithmetic, the bins of ranks, and distributions of ranks."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from unsample._checks import as_index
from unsample.errors import DesignError, InputError, RankError
from unsample.metrics import parse
from unsample.sampling import (
    RankDistribution,
    RankGrid,
    SamplingModel,
    bin_starts,
    bin_weights,
    draw_sampled_ranks,
)
from unsample.sampling._sampling_model import _h

SIZES = (2, 3, 10, 3706, 10**6, 10**9)
SAMPLES = (1, 2, 99, 999, 10**5 - 1)


def _telling_ranks(design: SamplingModel) -> list[int]:
    n = design.items
    middle = {n // 2, n // 1000, n // design.sampled, n - n // design.sampled}
    return sorted(r for r in {1, 2, n - 1, n} | middle if 1 <= r <= n)


def _telling_sampled_ranks(design: SamplingModel, rank: int) -> list[int]:
    mean = design.sampled * (rank - 1) / (design.items - 1)
    deviation = np.sqrt(mean + 1)
    near = {int(mean + shift * deviation) + 1 for shift in (-5, 0, 3, 8)}
    return sorted(r for r in {1, 2, design.sampled, design.n} | near if 1 <= r <= design.n)


DESIGNS = [
    SamplingModel(items, sampled, replacement)
    for items in SIZES
    for sampled in SAMPLES
    for replacement in (True, False)
    if replacement or sampled < items
]


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_pmf_has_ten_digits_everywhere(design):
    for rank in _telling_ranks(design):
        for r in _telling_sampled_ranks(design, rank):
            expected = reference.pmf(design, r, rank)
            got = float(design.pmf(r, rank))
            if expected < 1e-290:
                assert got <= 1e-280
            else:
                assert abs(got - expected) <= 1e-10 * expected, (rank, r)


@pytest.mark.parametrize("count", [0, 0.3, 1, 2, 7.5, 15.9, 16, 17, 20, 33, 100, 10**4, 10**9])
def test_the_small_part_of_a_factorial_has_all_digits(count):
    """h(c) = log c! - c log c + c, of which everything else is made."""
    with mpmath.workdps(40):
        c = mpmath.mpf(count)
        expected = float(mpmath.loggamma(c + 1) - (c * mpmath.log(c) if c else 0) + c)
    # Below 16 it is a difference of numbers up to 44; above, nothing cancels.
    digits = {"abs": 2e-14} if count < 16 else {"rel": 5e-16, "abs": 1e-15}
    assert float(_h(np.float64(count))) == pytest.approx(expected, **digits)


def test_ranks_that_cannot_be_have_probability_zero():
    for replacement in (True, False):
        design = SamplingModel(100, 9, replacement)
        assert np.isneginf(design.log_pmf([0, 11, 5, 5], [50, 50, 0, 101])).all()
        assert np.isfinite(design.log_pmf([1, 10, 1, 10], [50, 50, 1, 100])).all()
        assert np.isneginf(design.log_pmf([1, 2, 10], [100, 1, 1])).all()
    # Without replacement no more items can beat the target in the sample than do at all.
    alone = SamplingModel(100, 9, replacement=False)
    assert np.isneginf(alone.log_pmf([5, 6], [4, 98])).all()
    assert np.isfinite(alone.log_pmf([4, 8], [4, 98])).all()


@pytest.mark.parametrize("replacement", [True, False])
def test_ranks_out_of_reach_are_left_out_of_ranges(replacement):
    design = SamplingModel(60_000, 40_000, replacement)
    low = np.unique(np.geomspace(1, design.n, 60).astype(np.int64))
    high = np.append(low[1:] - 1, design.n)
    ranks = np.array([1.0, 2.0, 30.0, 1000.0, 29_999.0, 59_000.0, 60_000.0])
    singles = design.pmf(np.arange(1, design.n + 1)[:, None], ranks)
    expected = np.add.reduceat(singles, as_index(low - 1), axis=0)
    got = design.range_pmf(low, high, ranks)
    # The tails of scipy before 1.12 have ten digits.
    assert np.allclose(got, expected, rtol=1e-9, atol=1e-70)
    assert (got == 0).mean() > 0.5


@pytest.mark.parametrize(
    "design",
    [
        SamplingModel(800, 60),
        *(SamplingModel(800, sampled, replacement=False) for sampled in (60, 400, 650, 790)),
    ],
    ids=str,
)
def test_bins_average_the_distribution_over_their_ranks(design):
    """Without replacement P(r | R) has kinks where r = R and where the sample runs out."""
    grid = RankGrid.fine(800, sampled=design.sampled, cutoffs=[10, 150])
    dense = reference.matrix(design)
    r = np.arange(1, design.n + 1)
    got = design.matrix(r, r, grid)
    expected = np.add.reduceat(dense, as_index(grid.low - 1), axis=0) / grid.width[:, None]
    assert np.abs(got.T - expected).max() < 1e-7


@pytest.mark.parametrize("replacement", [True, False])
def test_draws_follow_the_distribution(replacement):
    design = SamplingModel(300, 40, replacement)
    draws = design.draw(np.full(200_000, 60), rng=3)
    observed = np.bincount(draws, minlength=design.n + 1)[1:]
    expected = 200_000 * design.pmf(np.arange(1, design.n + 1), 60)
    common = expected > 5
    chi_square = ((observed - expected)[common] ** 2 / expected[common]).sum()
    assert chi_square < common.sum() + 5 * np.sqrt(2 * common.sum())


def test_draws_may_lead_with_any_shape_and_differ_in_catalogue():
    drawn = draw_sampled_ranks([1, 5, 100], items=[3, 5, 1000], sampled=20, rng=0, size=(4, 2))
    assert drawn.shape == (4, 2, 3)
    assert (drawn[..., 0] == 1).all()
    assert (drawn[..., 1] == 21).all()
    with pytest.raises(DesignError, match="draw with replacement, which is the same"):
        draw_sampled_ranks([1], items=10**10, sampled=5, replacement=False)
    with pytest.raises(DesignError, match="items must be one number or one for each of the 2"):
        draw_sampled_ranks([1, 2], items=[5, 6, 7], sampled=5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"items": 1, "sampled": 1}, "items must be an integer of at least 2"),
        ({"items": 10, "sampled": 0}, "sampled must be an integer of at least 1"),
        ({"items": 10**12 + 1, "sampled": 3}, "at most 1000000000000"),
        ({"items": 10.5, "sampled": 3}, "items"),
        ({"items": True, "sampled": 3}, "items"),
        ({"items": 10, "sampled": 10, "replacement": False}, "at most items - 1 = 9"),
    ],
)
def test_impossible_designs_are_refused(arguments, words):
    with pytest.raises(DesignError, match=words):
        SamplingModel(**arguments)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([0, 1], r"ranks must be in 1\.\.items \(1 is the best\), got 0"),
        ([[5], [11]], r"ranks must be in 1\.\.items \(1 is the best\), got 11"),
        ([1.5], "ranks must be whole numbers"),
        ([math.nan], "ranks must be whole numbers"),
    ],
)
def test_only_ranks_of_the_catalogue_can_be_drawn_for(ranks, message):
    with pytest.raises(RankError, match=message):
        SamplingModel(10, 3).draw(ranks, rng=0)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("sampled", [1, 9, 59])
def test_ranks_beyond_a_catalogue_act_as_its_last(sampled, replacement):
    items, design = 60, SamplingModel(60, sampled, replacement)
    # Bins within the catalogue, across its end, and beyond it; three ranks are averaged exactly.
    grid = RankGrid(np.array([*range(1, 56, 3), 58, 70, 71]), 80)
    n = sampled + 1
    low = np.array([1, n // 2 + 1, n])
    high = np.array([1, n, n])
    found = design.matrix(low, high, grid, beyond="last")
    for row, (first, last) in enumerate(zip(low, high, strict=True)):
        for column, (start, end) in enumerate(zip(grid.low, grid.high, strict=True)):
            probabilities = [
                sum(design.pmf(r, min(rank, items)) for r in range(first, last + 1))
                for rank in range(start, end + 1)
            ]
            assert found[row, column] == pytest.approx(np.mean(probabilities), abs=1e-12)


# -- grids ----------------------------------------------------------------------------------


@given(
    items=st.integers(1, 10**7),
    sampled=st.integers(0, 2000),
    cutoffs=st.lists(st.integers(1, 10**7), max_size=5),
)
@pytest.mark.parametrize("build", [RankGrid.fine, RankGrid.coarse])
def test_bins_cover_every_rank_once_and_isolate_cutoffs(build, items, sampled, cutoffs):
    grid = build(items, sampled=sampled, cutoffs=cutoffs)
    assert grid.low[0] == 1
    assert grid.high[-1] == items
    assert (grid.low[1:] == grid.high[:-1] + 1).all()
    assert grid.width.sum() == items
    for k in cutoffs:
        if k <= items:
            assert grid.width[grid.locate(np.array([k]))[0]] == 1


# -- distributions --------------------------------------------------------------------------


@given(
    items=st.integers(2, 3000),
    seed=st.integers(0, 10**6),
    level=st.floats(0.001, 0.999),
)
def test_quantile_inverts_the_cdf(items, seed, level):
    grid = RankGrid(bin_starts(items, single=5, ratio=0.2), items)
    mass = np.random.default_rng(seed).dirichlet(np.full(len(grid), 0.3))
    distribution = RankDistribution(grid, mass)
    rank = int(distribution.quantile(level))
    assert distribution.cdf(rank) >= level - 1e-9
    assert rank == 1 or distribution.cdf(rank - 1) <= level + 1e-9


def test_pmf_and_cdf_tell_the_same():
    grid = RankGrid.coarse(700, sampled=9)
    mass = np.random.default_rng(0).dirichlet(np.ones(len(grid)))
    distribution = RankDistribution(grid, mass)
    ranks = np.arange(1, 701)
    assert np.allclose(np.repeat(mass / grid.width, grid.width), distribution.pmf(ranks))
    assert np.allclose(np.cumsum(distribution.pmf(ranks)), distribution.cdf(ranks))
    assert distribution.cdf(0) == 0.0
    assert distribution.cdf(10**9) == pytest.approx(1.0)
    assert distribution.pmf([0, 701]).tolist() == [0.0, 0.0]


def test_quantiles_of_signed_masses_are_where_the_cdf_first_gets():
    grid = reference.dense_grid(5)
    dips = RankDistribution(grid, np.array([0.5, 0.3, -0.2, 0.1, 0.3]))
    assert dips.quantile([0.5, 0.7, 0.8, 0.9, 1.0]).tolist() == [1, 2, 2, 5, 5]


def test_catalogues_smaller_than_the_grid_end_where_they_end():
    grid = RankGrid(bin_starts(100, single=10, ratio=0.4), 100)
    weights = bin_weights(parse("AUC"), grid, items=60)
    ranks = np.arange(1, 101)
    dense = np.where(ranks <= 60, (60 - ranks) / 59, 0.0)
    expected = np.add.reduceat(dense, as_index(grid.low - 1)) / grid.width
    assert np.allclose(weights, expected, atol=1e-12)


def test_ranks_and_levels_outside_are_refused():
    with pytest.raises(DesignError, match="items must be an integer of at least 1"):
        RankGrid.coarse(0)
    for ranks, words in (([1, 11], r"1\.\.10, got 1\.\.11"), ([0, 5], "got 0"), ([], "none")):
        with pytest.raises(InputError, match=words):
            RankDistribution.from_ranks(ranks, items=10)
    for level in ([0.5, -0.1], 1.5):
        with pytest.raises(InputError, match="level"):
            RankDistribution.from_ranks([1], items=10).quantile(level)
