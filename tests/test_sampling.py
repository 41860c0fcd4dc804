import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from unsample.errors import DesignError
from unsample.grid import RankGrid
from unsample.sampling import Design

SIZES = (2, 3, 10, 3706, 10**6, 10**9)
SAMPLES = (1, 2, 99, 999, 10**5 - 1)


def _telling_ranks(design: Design) -> list[int]:
    n = design.items
    middle = {n // 2, n // 1000, n // design.sampled, n - n // design.sampled}
    return sorted(r for r in {1, 2, n - 1, n} | middle if 1 <= r <= n)


def _telling_sampled_ranks(design: Design, rank: int) -> list[int]:
    mean = design.sampled * (rank - 1) / (design.items - 1)
    spread = np.sqrt(mean + 1)
    near = {int(mean + shift * spread) + 1 for shift in (-5, 0, 3, 8)}
    return sorted(r for r in {1, 2, design.sampled, design.n} | near if 1 <= r <= design.n)


DESIGNS = [
    Design(items, sampled, replacement)
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


@given(
    items=st.integers(2, 200),
    sampled=st.integers(1, 60),
    replacement=st.booleans(),
    data=st.data(),
)
def test_pmf_is_a_distribution_that_moves_down_with_the_rank(items, sampled, replacement, data):
    if not replacement:
        sampled = min(sampled, items - 1)
    design = Design(items, sampled, replacement)
    rank = data.draw(st.integers(1, items - 1))
    r = np.arange(1, design.n + 1)
    here, below = design.pmf(r, rank), design.pmf(r, rank + 1)
    assert here.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.cumsum(here) >= np.cumsum(below) - 1e-12).all()


def test_end_points_are_certain():
    for replacement in (True, False):
        design = Design(1000, 50, replacement)
        assert design.pmf(1, 1) == 1.0
        assert design.pmf(design.n, 1000) == 1.0
        assert design.pmf(0, 5) == design.pmf(design.n + 1, 5) == design.pmf(1, 1001) == 0.0


def test_full_design_reads_the_rank_off():
    design = Design(7, 6, replacement=False)
    assert design.full
    r = np.arange(1, 8)
    assert np.allclose(design.pmf(r[:, None], r), np.eye(7), atol=1e-12)


@pytest.mark.parametrize("replacement", [True, False])
def test_bins_average_the_law_over_their_ranks(replacement):
    design = Design(2000, 99, replacement)
    grid = RankGrid.build(2000, sampled=99, cutoffs=[10, 150])
    dense = reference.matrix(design)
    r = np.arange(1, design.n + 1)
    got = design.matrix(r, r, grid)
    expected = np.add.reduceat(dense, grid.low - 1, axis=0) / grid.width[:, None]
    assert np.abs(got.T - expected).max() < 1e-7


def test_ranges_add_up():
    design = Design(500, 20)
    low, high = np.array([1, 2, 6]), np.array([1, 5, 21])
    ranks = np.array([1.0, 17.0, 500.0])
    singles = design.pmf(np.arange(1, 22)[:, None], ranks)
    expected = np.stack([singles[0], singles[1:5].sum(axis=0), singles[5:].sum(axis=0)])
    assert np.allclose(design.range_pmf(low, high, ranks), expected, rtol=1e-13)


def test_a_grid_beyond_the_catalogue_counts_as_impossible():
    grid = RankGrid.build(100, single=10, ratio=0.3)
    r = np.arange(1, 12)
    matrix = Design(60, 10).matrix(r, r, grid)
    inside = np.minimum(grid.high, 60) - grid.low + 1
    assert np.allclose(matrix.sum(axis=0), inside.clip(min=0) / grid.width)


@pytest.mark.parametrize("replacement", [True, False])
def test_draws_follow_the_law(replacement):
    design = Design(300, 40, replacement)
    draws = design.draw(np.full(200_000, 60), rng=3)
    observed = np.bincount(draws, minlength=design.n + 1)[1:]
    expected = 200_000 * design.pmf(np.arange(1, design.n + 1), 60)
    common = expected > 5
    chi_square = ((observed - expected)[common] ** 2 / expected[common]).sum()
    assert chi_square < common.sum() + 5 * np.sqrt(2 * common.sum())


def test_blind_rank_is_where_one_sampled_item_falls():
    assert Design(3706, 99).blind_rank == pytest.approx(3705 / 99)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"items": 1, "sampled": 1}, "items must be an integer of at least 2"),
        ({"items": 10, "sampled": 0}, "sampled must be an integer of at least 1"),
        ({"items": 10.5, "sampled": 3}, "items"),
        ({"items": True, "sampled": 3}, "items"),
        ({"items": 10, "sampled": 10, "replacement": False}, "at most items - 1 = 9"),
        ({"items": 10, "sampled": 3, "sampler": "popularity"}, "share of the"),
    ],
)
def test_impossible_designs_are_refused(arguments, words):
    with pytest.raises(DesignError, match=words):
        Design(**arguments)
