"""What estimators are given: counts on a grid, known ranks set apart, cells pooled."""

import numpy as np
import pytest

from tests import reference
from unsample.errors import InputError, RankError
from unsample.estimators import Observed, _observed
from unsample.evidence import DesignCells, RankCounts
from unsample.law import Law, RankGrid, bin_weights
from unsample.metrics import AUC, NDCG, Recall
from unsample.prior._seen import _condensed_ranges


@pytest.fixture
def partly_known() -> RankCounts:
    """Three targets of known rank in two catalogues, and four sampled ones."""
    full = RankCounts.from_ranks(
        [2, 7, 7], items=[20, 20, 30], sampled=[19, 19, 29], replacement=False
    )
    return full + RankCounts.from_ranks([1, 1, 4, 6], items=30, sampled=5, replacement=False)


def test_known_ranks_are_set_apart(partly_known):
    rows = [partly_known.weight, [0.0, 0.0, 0.0, 1.0, 2.0, 1.0], [1.0, 0, 0, 0, 0, 0]]
    observed = Observed.prepare(partly_known, histograms=np.array(rows), cutoffs=[5])
    # Cells stand by sample size: three sampled ones, then ranks 2 and 7 of 20, and 7 of 30.
    assert observed.known.tolist() == [False] * 3 + [True] * 3
    assert observed.known_share == pytest.approx([3 / 7, 1.0, 0.0])
    mass = observed.known_mass()
    assert mass[0, observed.grid.locate(np.array([2, 7]))] == pytest.approx([1 / 7, 2 / 7])
    assert mass.sum(axis=1) == pytest.approx(observed.known_share)
    known = observed.shares @ observed.known_weights([Recall @ 5, AUC()])
    assert known[:, 0] == pytest.approx([1 / 7, 1 / 4, 0.0])
    auc = [(18 / 19 + 13 / 19 + 23 / 29) / 7, (18 / 19 + 2 * 13 / 19 + 23 / 29) / 4, 0.0]
    assert known[:, 1] == pytest.approx(auc)
    rest = observed.unknown_part()
    assert rest.counts.low.tolist() == [1, 4, 6]
    assert rest.shares == pytest.approx(np.array([[0.5, 0.25, 0.25], [1 / 3] * 3, [1, 0, 0]]))
    assert rest.unknown_part() is rest


def test_weights_are_averaged_over_catalogues_where_they_depend_on_them():
    counts = RankCounts.from_ranks([1, 2, 3], items=[50, 80, 80], sampled=5)
    observed = Observed.prepare(counts, cutoffs=[10])
    grid = observed.grid
    ndcg, auc = observed.bin_weights([NDCG @ 10, AUC()]).T
    assert ndcg == pytest.approx(bin_weights(NDCG @ 10, grid, grid.items))
    expected = (bin_weights(AUC(), grid, 50) + 2 * bin_weights(AUC(), grid, 80)) / 3
    assert auc == pytest.approx(expected)


def test_empty_histograms_are_refused():
    counts = RankCounts.from_ranks([1, 2], items=50, sampled=5)
    with pytest.raises(InputError, match="got an empty one"):
        Observed.prepare(counts, histograms=np.array([[1.0, 1.0], [0.0, 0.0]]))


def test_ranks_that_no_global_rank_gives_are_refused_by_name():
    """Of 3 items, 1000 draws give the target rank 1, about 501, or 1001; rank 2 is out of reach."""
    design = Law(3, 1000)
    counts = RankCounts.from_ranges([1, 2, 501], [1, 2, 501], [5, 1, 4], design)
    # One histogram that holds it is enough.
    observed = Observed.prepare(counts, histograms=np.array([[5.0, 0.0, 5.0], [5.0, 1.0, 4.0]]))
    with pytest.raises(RankError, match=r"got 2 among 1001 where 1000 of 3 items are sampled"):
        _ = observed.likelihood
    nobody = RankCounts.from_ranges([1, 2, 501], [1, 2, 501], [5, 0, 4], design)
    assert Observed.prepare(nobody).likelihood.shape == (3, 3)


@pytest.mark.parametrize(
    ("sampled", "replacement", "equal_to"),
    [(99, True, 99), (500, False, 1001), (900, False, 9081), (999, False, 0)],
)
def test_the_grid_is_as_fine_as_the_sample_is_sharp(sampled, replacement, equal_to):
    """Without replacement the variance of a rank falls by the share of items not sampled."""
    counts = RankCounts.from_ranks([1, 5], items=1000, sampled=sampled, replacement=replacement)
    grid = Observed.prepare(counts).grid
    assert np.array_equal(grid.low, RankGrid.fine(1000, sampled=equal_to).low)


# -- pools ----------------------------------------------------------------------------------


def test_pools_compare_a_histogram_with_its_expectation():
    counts = RankCounts.from_ranks([1, 1, 3, 2], items=[20, 30, 30, 30], sampled=[4, 4, 4, 2])
    observed = Observed.prepare(counts, grid=reference.dense_grid(30))
    (_, small), (matrix, large) = observed.pools("mes")
    assert small == pytest.approx(np.array([[0, 0.25, 0]]))
    r, ranks = np.arange(1, 6), np.arange(1, 31)
    assert large == pytest.approx(np.array([[0.5, 0, 0.25, 0, 0]]))
    # Beyond the catalogue of 20, a rank acts as its last one, where every draw beats the target.
    by_20 = Law(20, 4).pmf(r[:, None], np.minimum(ranks, 20))
    by_30 = Law(30, 4).pmf(r[:, None], ranks)
    assert matrix == pytest.approx((by_20 + 2 * by_30) / 3, abs=1e-12)
    assert matrix.sum(axis=0) == pytest.approx(np.ones(30))


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("sampled", [20, 99])
def test_a_few_catalogue_sizes_stand_for_many(sampled, replacement):
    """Where P(r | R) is smooth in the size: above the last ranks of the smallest catalogue."""
    items = 2500 + np.random.default_rng(0).integers(0, 600, size=4000)
    ranks = 1 + np.arange(4000) % (sampled + 1)
    counts = RankCounts.from_ranks(ranks, items=items, sampled=sampled, replacement=replacement)
    observed = Observed.prepare(counts)
    every, grid = np.arange(1, sampled + 2), observed.grid
    sizes, where = np.unique(counts.items, return_inverse=True)
    weights = np.bincount(where.reshape(-1), counts.weight)
    exact = sum(
        weight * Law(int(size), sampled, replacement).matrix(every, every, grid, beyond="last")
        for size, weight in zip(sizes, weights / weights.sum(), strict=True)
    )
    matrix, _ = observed.pool(sampled, every, every, grid)
    assert matrix.sum(axis=0) == pytest.approx(1.0)
    top = grid.high < 0.75 * sizes.min()
    assert np.abs(matrix - exact)[:, top].sum(axis=0).max() < 5e-4
    # Each of a few sizes has an end of its own, where all of them would make a slope.
    assert np.abs(matrix - exact).sum(axis=0).max() < 0.5


# -- condensed ------------------------------------------------------------------------------


def _cells(design, low, high=None):
    low = np.asarray(low)
    return DesignCells(design, low, low if high is None else np.asarray(high), slice(0, len(low)))


@pytest.mark.parametrize("n", [3, 10, 31, 100, 3000])
def test_sampled_ranks_stand_together_within_half_a_standard_error(n):
    low, high = _condensed_ranges(*np.array([[1, n], [1, n]]), n)
    assert low[0] == 1
    assert high[-1] == n
    assert (low[1:] == high[:-1] + 1).all()
    assert (low[:10] == np.arange(1, min(n, 10) + 1)).all()
    # The angle arcsin(sqrt(theta)) has the standard error 1/(2 sqrt(n)) everywhere.
    angle = np.arcsin(np.sqrt(np.append(low - 1, n) / n))
    wide = high > low
    assert (np.diff(angle)[wide] <= 2 * 0.25 / np.sqrt(n)).all()
    if n >= 100:
        assert np.median(np.diff(angle)[low > 30]) == pytest.approx(0.25 / np.sqrt(n), rel=0.3)


def _range_of(low, high, cells):
    """Return the condensed ranges of cells, and in which of them each cell is."""
    ranges = np.unique(np.stack([low, high]), axis=1)
    found = _condensed_ranges(*ranges, 10)
    at = _observed._places(*found, cells)
    return list(zip(found[0][at].tolist(), found[1][at].tolist(), strict=True))


def test_ranges_as_they_came_are_kept():
    cells = _cells(Law(50, 9), [1, 4], [3, 10])
    assert _range_of(cells.low, cells.high, cells) == [(1, 3), (4, 10)]
    # A single rank inside a range, or at its start, is a cell of its own.
    for low, high in (([1, 2], [3, 2]), ([1, 2, 2, 6], [1, 2, 4, 6])):
        mixed = _cells(Law(50, 9), low, high)
        assert _range_of(mixed.low, mixed.high, mixed) == list(zip(low, high, strict=True))


@pytest.mark.parametrize("all_ranks", [2000, 5])
@pytest.mark.parametrize(
    "ranges",
    [
        [(1, 1), (2, 4), (5, 10)],
        [(1, 10)],
        [(1, 1), (2, 4), (4, 10)],
        [(1, 3), (2, 2), (4, 10)],
        [(1, 2), (1, 5), (6, 10)],
        [(1, 4), (3, 10)],
    ],
    ids=["apart", "one", "touching", "inside", "together", "all over"],
)
def test_ranges_of_sampled_ranks_have_the_probability_of_their_parts(
    ranges, all_ranks, monkeypatch
):
    monkeypatch.setattr(_observed, "_ALL_RANKS", all_ranks)
    design = Law(40, 9)
    low, high = np.array(ranges).T
    grid = RankGrid(np.array([1, 2, 3, *range(6, 50, 5)]), 50)
    got = _observed._expected(design, low, high, grid)
    ranks = np.minimum(np.arange(1, 51), 40)
    singles = design.pmf(np.arange(1, 11)[:, None], ranks)
    for row, (first, last) in enumerate(zip(low, high, strict=True)):
        dense = singles[first - 1 : last].sum(axis=0)
        expected = np.add.reduceat(dense, grid.low - 1) / grid.width
        # Bins of five ranks are averaged at three points.
        assert got[row] == pytest.approx(expected, abs=1e-6)
