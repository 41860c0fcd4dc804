"""Counts of ranks: what they keep, weigh, add and save, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.counts import RankCounts, Targets, rank_in_lists, variance_of_mean
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.metrics import parse
from unsample.sampling import SamplingModel


def _count(ranks, **options):
    return RankCounts.from_ranks(ranks, items=100, sampled=9, **options)


@given(ranks=st.lists(st.integers(1, 10), min_size=1, max_size=60))
def test_repeating_a_row_is_counting_it_so_often(ranks):
    values, times = np.unique(ranks, return_counts=True)
    assert _count(values, count=times) == _count(ranks)
    assert _count(ranks).effective == len(ranks)


def test_designs_by_target_stay_apart():
    counts = RankCounts.from_ranks([1, 1, 2, 2], items=[50, 60, 60, 60], sampled=[9, 9, 9, 19])
    groups = [(c.design.items, c.design.sampled, c.low.tolist()) for c in counts.by_design()]
    assert groups == [(50, 9, [1]), (60, 9, [1, 2]), (60, 19, [2])]
    assert (counts.largest_catalogue, counts.largest_sample, counts.total) == (60, 19, 4)


def test_cells_know_how_many_relevant_items_their_users_have():
    alone = _count([1, 2, 2, 5], users=["a", "b", "c", "d"])
    assert alone == _count([1, 2, 2, 5])
    assert alone.clusters is None
    shared = _count([1, 2, 2, 5], users=["a", "b", "a", "c"])
    assert (shared.users, shared.total, shared.several) == (3, 4, True)
    assert list(zip(shared.low, shared.relevant, shared.position, strict=True)) == [
        (1, 2, 0), (2, 1, 1), (2, 2, 0), (5, 1, 1),
    ]  # fmt: skip
    # Users of weight 2, 1 and 1.
    assert shared.effective == pytest.approx(4**2 / (2**2 + 1 + 1))
    filtered = Targets(np.array([1, 2, 3]), 100, 9, users=[7, 7, 8], filtered=True).counts
    assert filtered.relevant.tolist() == [1, 1, 1]
    assert filtered.effective_users == pytest.approx(9 / 5)
    assert filtered.users == 2
    with pytest.raises(InputError, match="users must hold one user for each of the 2"):
        _count([1, 2], users=["a"])


def test_merged_and_saved_counts_know_their_users(tmp_path):
    some = _count([1, 2, 2], users=["a", "a", "b"])
    both = RankCounts.merge([some, _count([3, 3])])
    assert (both.users, both.total) == (4, 5)
    weighed = both.for_metric(parse("Recall@2"))
    slow = [np.mean([1, 1]), 1.0, 0.0, 0.0]
    scores = (weighed.low <= 2).astype(float)
    assert weighed.weight @ scores / weighed.weight.sum() == pytest.approx(np.mean(slow))
    expected = np.var(slow, ddof=1) / 4
    assert variance_of_mean(weighed, scores) == pytest.approx(expected)
    both.save(tmp_path / "counts.npz")
    again = RankCounts.load(tmp_path / "counts.npz")
    assert again == both
    assert again.clusters == both.clusters
    assert variance_of_mean(again.for_metric(parse("Recall@2")), scores) == pytest.approx(expected)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(1, 5),
            st.sampled_from([7, 50, 10**9]),
            st.sampled_from([4, 6]),
            st.integers(1, 64),
        ),
        min_size=5,
        max_size=25,
    ),
    seed=st.integers(0, 2**16),
    parts=st.integers(1, 5),
)
def test_counts_depend_neither_on_the_order_nor_on_the_parts(rows, seed, parts):
    def count(table):
        ranks, items, sampled, times = np.transpose(table)
        return RankCounts.from_ranks(ranks, items=items, sampled=sampled, count=times)

    shuffled = np.random.default_rng(seed).permutation(rows)
    assert count(shuffled) == count(rows)
    pieces = [count(piece) for piece in np.array_split(shuffled, parts)]
    merged = RankCounts.merge(pieces)
    assert RankCounts.merge(pieces[::-1]) == merged
    for name in ("weight", "squared_weights"):
        assert getattr(merged, name).sum() == getattr(count(rows), name).sum()


@pytest.mark.parametrize("replacement", [False, True])
def test_lists_give_the_ranks_of_uniform_samples(replacement):
    # Three relevant items above 4, 10 and 11 of 17 others; 6 of these are in the list.
    above, items, sampled, size = np.array([4, 10, 11]), 20, 6, 40_000
    rng = np.random.default_rng(1)
    if replacement:
        drawn = rng.integers(0, 17, (size, sampled))
    else:
        drawn = np.argsort(rng.random((size, 17)), axis=1)[:, :sampled]
    better = (drawn[:, :, None] < above).sum(axis=1)
    user = np.repeat(np.arange(size), 3)
    ranks, sizes, positions = rank_in_lists(
        better.ravel(), user, np.tile([9.0, 5.0, 4.0], size),
        items=np.full(3 * size, items), sampled=np.full(3 * size, sampled),
        replacement=replacement, rng=2,
    )  # fmt: skip
    assert (sizes == sampled).all()
    ranks, positions = ranks.reshape(size, 3), positions.reshape(size, 3)
    assert (positions == [1, 2, 3]).all()
    for at in range(3):
        found = np.bincount(ranks[:, at], minlength=sampled + 2) / size
        # The slow way: drawn from the full list.
        full = np.full(size, above[at] + at + 1)
        drawn = SamplingModel(items, sampled, replacement).draw(full, rng=np.random.default_rng(5))
        expected = np.bincount(drawn, minlength=sampled + 2) / size
        assert np.abs(found - expected).max() < 0.01


def test_sampled_items_in_the_top_are_averaged_over_targets():
    assert _count([1]).blind_rank == pytest.approx(99 / 9)
    mixed = RankCounts.from_ranks([1, 1, 1], items=[100, 100, 51], sampled=[9, 9, 25])
    assert mixed.blind_rank == pytest.approx(3 / (9 / 99 + 9 / 99 + 25 / 50))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("items", 1, "items must be at least 2, got 1"),
        ("sampled", 0, "sampled must be at least 1, got 0"),
        ("sampled", 50, "at most items - 1 without replacement, got 50"),
        ("low", 0, "ranks must be at least 1"),
        ("low", 4, "low must not exceed high"),
        ("high", 11, r"ranks must be at most sampled \+ 1, got 11; these may be full"),
        ("count", -1, "counts must not be negative"),
    ],
)
def test_cells_that_cannot_be_are_refused(column, value, words):
    cells = {"sampled": 9, "items": 50, "low": 2, "high": 3, "count": 1}
    columns = {name: np.array([number, number]) for name, number in cells.items()}
    assert RankCounts(**columns, replacement=False).total == 2
    columns[column] = np.array([columns[column][0], value])
    with pytest.raises(InputError, match=words):
        RankCounts(**columns, replacement=False)


def test_columns_of_different_lengths_and_no_cells_are_refused():
    columns = dict.fromkeys(("sampled", "items", "low", "high", "count"), np.array([5, 5]))
    with pytest.raises(InputError, match="equally long"):
        RankCounts(**columns | {"count": np.array([5])})
    with pytest.raises(RankError, match="at least one cell"):
        RankCounts(**dict.fromkeys(columns, np.array([], dtype=np.int64)))
    with pytest.raises(InputError, match="at least one RankCounts"):
        RankCounts.merge([])
    with pytest.raises(DesignError, match="agree on replacement to be added"):
        RankCounts.merge([_count([1]), _count([1], replacement=False)])


@pytest.mark.parametrize("length", [0, 9, 11])
def test_histograms_hold_a_count_for_each_rank(length):
    design = SamplingModel(100, 9)
    assert RankCounts.from_histogram([2, 1] + [0] * 8, design) == _count([1, 1, 2])
    with pytest.raises(RankError, match=rf"sampled \+ 1 = 10 counts, got {length}"):
        RankCounts.from_histogram([2, 1, *[0] * 8, 0][:length], design)


def test_integers_of_every_width_are_counted_alike():
    ranks = np.random.default_rng(0).integers(1, 11, size=200_000)
    expected = _count(ranks)
    values, times = np.unique(ranks, return_counts=True)
    assert (expected.low.tolist(), expected.count.tolist()) == (values.tolist(), times.tolist())
    for dtype in (np.int8, np.uint64, np.float32):
        assert _count(ranks.astype(dtype)) == expected


@pytest.mark.parametrize(
    ("ranks", "options", "error", "words"),
    [
        ([], {}, RankError, "at least one rank"),
        ([1, 2, 0, 99], {}, RankError, "got 0 at position 3 of 4; ranks start at 1"),
        ([1, 10, 11, 0], {}, RankError, "got 11 at position 3 of 4; these may be full"),
        ([1] * 150_000 + [11], {}, RankError, "got 11 at position 150,001 of 150,001"),
        ([1.5], {}, RankError, "whole numbers, got 1.5 at position 1 of 1"),
        (["a"], {}, RankError, "integers"),
        ([1], {"sampled": 100, "replacement": False}, DesignError, "at most items - 1"),
        ([1, 2], {"items": [100]}, DesignError, "one number or 2"),
        ([1], {"count": -1}, InputError, "count must be an integer of at least 0"),
        ([1], {"count": 0}, InputError, "nothing to estimate from"),
        ([1], {"count": 2, "users": ["a"]}, InputError, "count must be left out with users"),
    ],
)
def test_bad_input_is_refused(ranks, options, error, words):
    with pytest.raises(error, match=words):
        RankCounts.from_ranks(ranks, **({"items": 100, "sampled": 9} | options))


def test_bad_paths_are_refused(tmp_path):
    (tmp_path / "a.npz").write_text("nonsense")
    with pytest.raises(FileError, match="cannot read counts"):
        RankCounts.load(tmp_path / "a.npz")
    with pytest.raises(FileError, match=r"must end in \.npz"):
        _count([1]).save(tmp_path / "counts.pkl")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("format", "unsample.RankCounts/2", "count the ranks again"),
        ("0_count", None, "lacks 'count'"),
        ("0_design", [0, 1], "design.* whole numbers from 1"),
        ("0_pairs_keys", [9, 100, 7, 2, 0], "must hold pairs of the cells that it counts"),
        ("0_pairs_left", [3], "left.* whole numbers from 0 to 0, got 3"),
        ("0_count", ["many"], "whole numbers, got <U4"),
    ],
)
def test_saved_fields_of_the_wrong_kind_are_refused(field, value, words, tmp_path):
    path = tmp_path / "counts.npz"
    _count([1, 1], users=[7, 7]).save(path)
    fields = {name: each for name, each in np.load(path).items() if name != field}
    np.savez(path, **fields, **({} if value is None else {field: value}))
    with pytest.raises(FileError, match=words):
        RankCounts.load(path)


def test_known_is_a_single_rank_among_all_candidates():
    design = SamplingModel(items=10, sampled=9, replacement=False)
    counts = RankCounts.from_ranges([1, 2], [1, 5], [3, 4], design)
    assert counts.full.tolist() == [True, True]
    assert counts.known.tolist() == [True, False]
    assert not RankCounts.from_ranks([1], items=10, sampled=9).known.any()
    assert not RankCounts.from_ranks([1], items=11, sampled=9, replacement=False).known.any()
