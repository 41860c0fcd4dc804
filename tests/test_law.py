import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from unsample.errors import DesignError, RankError
from unsample.law import Law, RankGrid, draw_sampled_ranks
from unsample.law import _law as sampling
from unsample.law._law import _h

SIZES = (2, 3, 10, 3706, 10**6, 10**9)
SAMPLES = (1, 2, 99, 999, 10**5 - 1)


def _telling_ranks(design: Law) -> list[int]:
    n = design.items
    middle = {n // 2, n // 1000, n // design.sampled, n - n // design.sampled}
    return sorted(r for r in {1, 2, n - 1, n} | middle if 1 <= r <= n)


def _telling_sampled_ranks(design: Law, rank: int) -> list[int]:
    mean = design.sampled * (rank - 1) / (design.items - 1)
    spread = np.sqrt(mean + 1)
    near = {int(mean + shift * spread) + 1 for shift in (-5, 0, 3, 8)}
    return sorted(r for r in {1, 2, design.sampled, design.n} | near if 1 <= r <= design.n)


DESIGNS = [
    Law(items, sampled, replacement)
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
    design = Law(items, sampled, replacement)
    rank = data.draw(st.integers(1, items - 1))
    r = np.arange(1, design.n + 1)
    here, below = design.pmf(r, rank), design.pmf(r, rank + 1)
    assert here.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.cumsum(here) >= np.cumsum(below) - 1e-12).all()


def test_end_points_are_certain():
    for replacement in (True, False):
        design = Law(1000, 50, replacement)
        assert design.pmf(1, 1) == 1.0
        assert design.pmf(design.n, 1000) == 1.0
        assert design.pmf(0, 5) == design.pmf(design.n + 1, 5) == design.pmf(1, 1001) == 0.0


def test_full_design_reads_the_rank_off():
    design = Law(7, 6, replacement=False)
    assert design.full
    r = np.arange(1, 8)
    assert np.allclose(design.pmf(r[:, None], r), np.eye(7), atol=1e-12)


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
        design = Law(100, 9, replacement)
        assert np.isneginf(design.log_pmf([0, 11, 5, 5], [50, 50, 0, 101])).all()
        assert np.isfinite(design.log_pmf([1, 10, 1, 10], [50, 50, 1, 100])).all()
        assert np.isneginf(design.log_pmf([1, 2, 10], [100, 1, 1])).all()
    # Without replacement no more items can beat the target in the sample than do at all.
    alone = Law(100, 9, replacement=False)
    assert np.isneginf(alone.log_pmf([5, 6], [4, 98])).all()
    assert np.isfinite(alone.log_pmf([4, 8], [4, 98])).all()


def test_only_a_sample_of_all_others_without_replacement_is_full():
    assert Law(7, 6, replacement=False).full
    assert not Law(7, 5, replacement=False).full
    assert not Law(7, 6).full
    assert Law(7, 8).n == 9


def test_a_full_design_puts_each_bin_where_its_ranks_are():
    design = Law(20, 19, replacement=False)
    grid = RankGrid(np.array([1, 2, 5, 11]), 20)
    low, high = np.array([1, 2, 8, 20]), np.array([1, 7, 19, 20])
    expected = [[1, 0, 0, 0], [0, 1, 0.5, 0], [0, 0, 0.5, 0.9], [0, 0, 0, 0.1]]
    assert np.allclose(design.matrix(low, high, grid), expected)


@pytest.mark.parametrize("sampled", [60, 160, 250, 290, 298])
def test_bins_are_averaged_over_bounds_that_many_samples_meet(sampled):
    """Without replacement P(r | R) has kinks where r = R and where the sample runs out."""
    design = Law(300, sampled, replacement=False)
    grid = RankGrid(np.array([1, 2, 3, 10, 50, 100, 180, 220, 250, 290, 299]), 300)
    ranks = np.arange(1, 301)
    r = np.arange(1, design.n + 1)
    dense = design.pmf(r[:, None], ranks)
    expected = np.add.reduceat(dense, grid.low - 1, axis=1) / grid.width
    narrow = (grid.width <= 50) & ((sampled > 150) | (grid.high > 300 - 60))
    assert np.abs(design.matrix(r, r, grid) - expected)[:, narrow].max() < 1e-9


@pytest.mark.parametrize("sampled", [200, 290, 297, 298])
def test_wide_bins_hold_all_probability_where_nearly_all_items_are_drawn(sampled):
    """Between two ranks the law has no meaning there: it summed to 0.5 in such bins."""
    design = Law(300, sampled, replacement=False)
    grid = RankGrid(np.array([1, 2, 20, 100, 200, 280]), 300)
    r = np.arange(1, design.n + 1)
    assert np.allclose(design.matrix(r, r, grid).sum(axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("sampled", [150, 210, 255, 298])
@pytest.mark.parametrize("inner", [[70, 231], [100, 201], [2, 80], [221, 300]])
def test_wide_bins_hold_all_probability_at_either_end(sampled, inner):
    """The law is looked at in true ranks near both ends, not only where the ends meet."""
    design = Law(300, sampled, replacement=False)
    r = np.arange(1, design.n + 1)
    matrix = design.matrix(r, r, RankGrid(np.array([1, *inner]), 300))
    assert np.allclose(matrix.sum(axis=0), 1.0, rtol=0, atol=1e-12)


@pytest.fixture
def looked_at(monkeypatch):
    """Return a list that gets the sampled ranks and ranks of every look at the law."""
    looks = []
    pmf = Law.pmf

    def counted(design, sampled_rank, rank):
        looks.append(np.broadcast(sampled_rank, rank))
        return pmf(design, sampled_rank, rank)

    monkeypatch.setattr(Law, "pmf", counted)
    return looks


def test_a_smooth_law_costs_three_looks_a_bin_however_wide(looked_at):
    items, each = 100_000, 50
    low = np.concatenate([np.arange(1, items // 2, each), [items // 2, items - 100]])
    grid = RankGrid(low, items)
    one = np.array([1])
    Law(items, 99, replacement=False).matrix(one, one, grid)
    # Only the narrow bins at the first ranks are visited rank by rank: two, or a few more.
    assert sum(look.size for look in looked_at) <= 3 * len(grid) + 5 * each


def test_only_sampled_ranks_in_reach_of_a_rank_are_looked_at(looked_at):
    design = Law(60_000, 40_000)
    low = np.arange(1, design.n + 1, 40)
    high = np.minimum(low + 39, design.n)
    for rank, spread in ((1, 0), (30_000, 100), (59_999, 1), (60_000, 0)):
        looked_at.clear()
        total = design.range_pmf(low, high, np.array([float(rank)])).sum()
        assert total == pytest.approx(1.0, rel=1e-12)
        # Twenty standard deviations and some hundred ranks to either side, and whole ranges.
        assert sum(look.size for look in looked_at) <= 40 * spread + 400


@pytest.mark.parametrize("rank", [1, 2, 5, 9, 10])
def test_many_draws_from_few_items_lose_no_probability(rank):
    design = Law(10, 10**5)
    low = np.arange(1, design.n + 1, 100)
    ranges = design.range_pmf(low, np.minimum(low + 99, design.n), np.array([float(rank)]))
    assert ranges.sum() == pytest.approx(1.0, rel=1e-11)


@pytest.mark.parametrize("replacement", [True, False])
def test_ranks_out_of_reach_are_left_out_of_ranges(replacement):
    design = Law(60_000, 40_000, replacement)
    low = np.unique(np.geomspace(1, design.n, 60).astype(np.int64))
    high = np.append(low[1:] - 1, design.n)
    ranks = np.array([1.0, 2.0, 30.0, 1000.0, 29_999.0, 59_000.0, 60_000.0])
    singles = design.pmf(np.arange(1, design.n + 1)[:, None], ranks)
    expected = np.add.reduceat(singles, low - 1, axis=0)
    got = design.range_pmf(low, high, ranks)
    assert np.allclose(got, expected, rtol=1e-12, atol=1e-70)
    assert (got == 0).mean() > 0.5


@pytest.mark.parametrize("block", [1, 7, 40, 10**6])
def test_ranges_add_up_in_blocks_of_any_size(block, monkeypatch):
    design = Law(500, 40)
    low, high = np.array([1, 4, 30]), np.array([3, 29, 41])
    ranks = np.array([1.0, 17.0, 250.5, 500.0])
    monkeypatch.setattr("unsample.law._law._BLOCK", block)
    singles = design.pmf(np.arange(1, 42)[:, None], ranks)
    expected = np.add.reduceat(singles, low - 1, axis=0)
    assert np.allclose(design.range_pmf(low, high, ranks), expected, rtol=1e-12)


def test_no_ranks_have_no_probabilities():
    assert Law(500, 40).range_pmf(np.array([1]), np.array([3]), np.array([])).shape == (1, 0)


@pytest.mark.parametrize("replacement", [True, False])
def test_fractional_ranks_lie_between_whole_ones(replacement):
    """Bins are averaged at fractional ranks: there the law is the smooth one through the others."""
    design = Law(400, 30, replacement)
    r = np.arange(1, design.n + 1)[:, None]
    whole = np.arange(100.0, 104.0)
    cubic = np.array([-1, 9, 9, -1]) / 16
    assert np.allclose(design.pmf(r, 101.5)[:, 0], design.pmf(r, whole) @ cubic, atol=1e-7)


@pytest.mark.parametrize("replacement", [True, False])
def test_bins_average_the_law_over_their_ranks(replacement):
    design = Law(2000, 99, replacement)
    grid = RankGrid.build(2000, sampled=99, cutoffs=[10, 150])
    dense = reference.matrix(design)
    r = np.arange(1, design.n + 1)
    got = design.matrix(r, r, grid)
    expected = np.add.reduceat(dense, grid.low - 1, axis=0) / grid.width[:, None]
    assert np.abs(got.T - expected).max() < 1e-7


def test_ranges_add_up():
    design = Law(500, 20)
    low, high = np.array([1, 2, 6]), np.array([1, 5, 21])
    ranks = np.array([1.0, 17.0, 500.0])
    singles = design.pmf(np.arange(1, 22)[:, None], ranks)
    expected = np.stack([singles[0], singles[1:5].sum(axis=0), singles[5:].sum(axis=0)])
    assert np.allclose(design.range_pmf(low, high, ranks), expected, rtol=1e-13)


def test_a_grid_beyond_the_catalogue_counts_as_impossible():
    grid = RankGrid.build(100, single=10, ratio=0.3)
    r = np.arange(1, 12)
    matrix = Law(60, 10).matrix(r, r, grid)
    inside = np.minimum(grid.high, 60) - grid.low + 1
    assert np.allclose(matrix.sum(axis=0), inside.clip(min=0) / grid.width)


@pytest.mark.parametrize("replacement", [True, False])
def test_draws_follow_the_law(replacement):
    design = Law(300, 40, replacement)
    draws = design.draw(np.full(200_000, 60), rng=3)
    observed = np.bincount(draws, minlength=design.n + 1)[1:]
    expected = 200_000 * design.pmf(np.arange(1, design.n + 1), 60)
    common = expected > 5
    chi_square = ((observed - expected)[common] ** 2 / expected[common]).sum()
    assert chi_square < common.sum() + 5 * np.sqrt(2 * common.sum())


def test_draws_may_lead_with_any_shape_and_differ_in_catalogue():
    drawn = draw_sampled_ranks([1, 5, 100], items=[3, 5, 1000], sampled=20, rng=0, size=(4, 2))
    assert drawn.shape == (4, 2, 3)
    assert drawn.dtype == np.int64
    assert (drawn[..., 0] == 1).all()
    assert (drawn[..., 1] == 21).all()
    assert drawn[..., 2].mean() == pytest.approx(1 + 20 * 99 / 999, abs=1.0)
    ends = draw_sampled_ranks([1, 50], items=50, sampled=20, replacement=False, rng=0)
    assert ends.tolist() == [1, 21]


def test_numbers_are_kept_as_python_has_them():
    design = Law(np.int64(10), 3.0, np.True_)
    assert (type(design.items), type(design.sampled)) == (int, int)
    assert design.replacement is True
    assert design == Law(10, 3)
    assert hash(design) == hash(Law(10, 3))
    assert Law(2, 1, replacement=False).full


def test_blind_rank_is_where_one_sampled_item_falls():
    assert Law(3706, 99).blind_rank == pytest.approx(3705 / 99)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"items": 1, "sampled": 1}, "items must be an integer of at least 2"),
        ({"items": 10, "sampled": 0}, "sampled must be an integer of at least 1"),
        ({"items": 10**12 + 1, "sampled": 3}, "at most 1000000000000"),
        ({"items": 10.5, "sampled": 3}, "items"),
        ({"items": True, "sampled": 3}, "items"),
        ({"items": 10, "sampled": 10, "replacement": False}, "at most items - 1 = 9"),
        ({"items": 10, "sampled": 3, "sampler": "popularity"}, "share of the"),
    ],
)
def test_impossible_designs_are_refused(arguments, words):
    with pytest.raises(DesignError, match=words):
        Law(**arguments)


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
        Law(10, 3).draw(ranks, rng=0)


def test_each_target_has_the_ranks_of_its_own_catalogue():
    with pytest.raises(RankError, match="got 9"):
        draw_sampled_ranks([9, 9], items=[10, 8], sampled=3)
    with pytest.raises(RankError, match="got 9"):
        draw_sampled_ranks(9, items=[10, 8], sampled=3)


def test_items_drawn_one_by_one_follow_the_law(monkeypatch):
    design, ranks = Law(40, 15, replacement=False), np.array([1, 9, 40])
    monkeypatch.setattr(sampling, "_MOST_TO_DRAW_FROM", 10)
    drawn = design.draw(ranks, rng=0, size=(20_000,))
    for column, rank in zip(drawn.T, ranks, strict=True):
        found = np.bincount(column, minlength=design.n + 1)[1:] / len(column)
        law = design.pmf(np.arange(1, design.n + 1), rank)
        assert found == pytest.approx(law, abs=5 * 0.5 / math.sqrt(len(column)))


@pytest.mark.parametrize("items", [10**9, 10**9 + 1, 10**12])
def test_catalogues_of_any_size_can_be_drawn_from_without_replacement(items):
    design = Law(items, 50, replacement=False)
    drawn = design.draw([1, items // 2, items], rng=0, size=(400,))
    assert drawn.mean(axis=0) == pytest.approx([1, 26, 51], abs=1.0)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("sampled", [1, 9, 59])
def test_ranks_beyond_a_catalogue_act_as_its_last(sampled, replacement):
    items, design = 60, Law(60, sampled, replacement)
    # Bins within the catalogue, across its end, and beyond it; three ranks are averaged exactly.
    grid = RankGrid(np.array([*range(1, 56, 3), 58, 70, 71]), 80)
    n = sampled + 1
    low = np.array([1, n // 2 + 1, n])
    high = np.array([1, n, n])
    found = design.matrix(low, high, grid, beyond="last")
    for row, (first, last) in enumerate(zip(low, high, strict=True)):
        for column, (start, end) in enumerate(zip(grid.low, grid.high, strict=True)):
            chances = [
                sum(design.pmf(r, min(rank, items)) for r in range(first, last + 1))
                for rank in range(start, end + 1)
            ]
            assert found[row, column] == pytest.approx(np.mean(chances), abs=1e-12)
    impossible = design.matrix(low, high, grid)
    reach = np.minimum(grid.high, items) - grid.low + 1
    impossible[high == n] += 1.0 - reach.clip(min=0) / grid.width
    assert (found == impossible).all()
