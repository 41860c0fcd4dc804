import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.evidence import RankCounts, Targets
from unsample.evidence._ties import Comparisons
from unsample.law import Law

ranks_of_ten = st.lists(st.integers(1, 10), min_size=1, max_size=60)


def _count(ranks, **options):
    return RankCounts.from_ranks(ranks, items=100, sampled=9, **options)


@given(ranks=ranks_of_ten, seed=st.integers(0, 10**6))
def test_order_does_not_matter(ranks, seed):
    shuffled = np.random.default_rng(seed).permutation(ranks)
    assert _count(ranks) == _count(shuffled)


@given(first=ranks_of_ten, second=ranks_of_ten, third=ranks_of_ten)
def test_addition_is_counting_together(first, second, third):
    a, b, c = _count(first), _count(second), _count(third)
    assert a + b == b + a == _count(first + second)
    assert (a + b) + c == a + (b + c)


@given(ranks=ranks_of_ten)
def test_repeating_a_row_is_counting_it_so_often(ranks):
    values, times = np.unique(ranks, return_counts=True)
    assert _count(values, count=times) == _count(ranks)
    doubled = _count(ranks, weights=np.full(len(ranks), 2.0))
    assert np.allclose(doubled.weight, 2 * _count(ranks).weight)
    assert doubled.effective == pytest.approx(len(ranks))


def test_designs_by_target_stay_apart():
    counts = RankCounts.from_ranks([1, 1, 2, 2], items=[50, 60, 60, 60], sampled=[9, 9, 9, 19])
    groups = [(c.design.items, c.design.sampled, c.low.tolist()) for c in counts.by_design()]
    assert groups == [(50, 9, [1]), (60, 9, [1, 2]), (60, 19, [2])]
    assert (counts.largest_catalogue, counts.largest_sample, counts.total) == (60, 19, 4)


def test_effective_number_of_targets_under_weights():
    assert _count([1, 2, 3], weights=[1.0, 1.0, 0.0]).effective == pytest.approx(2.0)


def test_targets_of_one_user_inform_no_more_than_one():
    alone = _count([1, 2, 2, 5], users=["a", "b", "c", "d"])
    assert alone == _count([1, 2, 2, 5])
    shared = _count([1, 2, 2, 5], users=["a", "b", "a", "c"])
    assert shared.weight.tolist() == alone.weight.tolist()
    assert shared.weight_squared.tolist() == [2.0, 3.0, 1.0]
    # Users of weight 2, 1 and 1.
    assert shared.effective == pytest.approx(4**2 / (2**2 + 1 + 1))
    weighted = _count([1, 2, 3], users=[7, 7, 8], weights=[1.0, 2.0, 3.0], count=[1, 2, 1])
    assert weighted.effective == pytest.approx(8**2 / (5**2 + 3**2))
    for users in (["a"], [["a", "b"]]):
        with pytest.raises(InputError, match="users must hold one user for each of the 2"):
            _count([1, 2], users=users)


def test_sampled_items_in_the_top_are_averaged_over_targets():
    assert _count([1]).sampled_in_top == pytest.approx(9 / 99)
    mixed = RankCounts.from_ranks([1, 1, 1], items=[100, 100, 51], sampled=[9, 9, 25])
    assert mixed.sampled_in_top == pytest.approx((9 / 99 + 9 / 99 + 25 / 50) / 3)


def test_streams_go_on_under_the_design_so_far_or_the_one_given():
    one = _count([1, 3])
    assert one.update([3]) == _count([1, 3, 3])
    assert one.update([]) is one
    mixed = one.update([2], items=50, sampled=4, weights=[0.5])
    assert list(zip(mixed.sampled, mixed.items, mixed.low, mixed.weight, strict=True)) == [
        (4, 50, 2, 0.5),
        (9, 100, 1, 1.0),
        (9, 100, 3, 1.0),
    ]
    assert mixed.update([2], items=50, sampled=4).total == 4
    with pytest.raises(DesignError, match="items must be given"):
        mixed.update([1], sampled=4)
    with pytest.raises(DesignError, match="sampled must be given"):
        mixed.update([1], items=50)
    without = _count([1], replacement=False)
    assert without.update([2]) == _count([1, 2], replacement=False)


def test_the_smallest_designs_are_counted():
    for options in ({}, {"weights": [1.0, 2.0]}, {"count": [1, 2]}):
        tiny = RankCounts.from_ranks([1, 2], items=2, sampled=1, replacement=False, **options)
        assert tiny.low.tolist() == [1, 2]
    several = RankCounts.from_ranks([1, 2], items=[2, 3], sampled=[1, 2], replacement=False)
    assert several.total == 2


def test_rows_that_stand_for_no_target_are_allowed():
    counts = _count([1, 2], count=[0, 3])
    assert counts.total == 3
    drawn = counts.resample(50, rng=0)
    assert (drawn[:, 0] == 0).all()
    assert (drawn[:, 1] == 3).all()


def test_targets_are_counted_as_their_ranks_are():
    assert Targets(np.array([1, 2, 2]), 100, 9).counts == _count([1, 2, 2])
    columns = {"weights": [1.0, 2.0, 3.0], "users": ["a", "a", "b"], "replacement": False}
    assert Targets(np.array([1, 2, 2]), 100, 9, **columns).counts == _count([1, 2, 2], **columns)


def test_comparisons_are_counted_under_a_tie_rule():
    comparisons = Comparisons.of_targets([0, 4], [3, 0], items=100, sampled=9)
    best = RankCounts.from_comparisons(comparisons, ties="optimistic")
    assert best == _count([1, 5])
    worst = RankCounts.from_comparisons(comparisons, ties="pessimistic", replacement=False)
    assert worst == _count([4, 5], replacement=False)
    many = Comparisons.of_targets([0], [3], items=100, sampled=9, count=[500])
    assert RankCounts.from_comparisons(many) == RankCounts.from_comparisons(many, rng=0)
    assert RankCounts.from_comparisons(many) != RankCounts.from_comparisons(many, rng=1)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("items", 1, "items must be at least 2, got 1"),
        ("sampled", 0, "sampled must be at least 1, got 0"),
        ("sampled", 50, "at most items - 1 without replacement, got 50"),
        ("low", 0, "ranks must be at least 1"),
        ("low", 4, "low must not exceed high"),
        ("high", 11, r"ranks must be at most sampled \+ 1, got 11; a rank among"),
        ("count", -1, "counts must not be negative"),
        ("weight", -0.5, "weights must be finite and not negative, got -0.5"),
        ("weight", np.inf, "weights must be finite"),
        ("weight_squared", np.nan, "weights must be finite"),
    ],
)
def test_cells_that_cannot_be_are_refused(column, value, words):
    cells = {"sampled": 9, "items": 50, "low": 2, "high": 3, "count": 1}
    columns = {name: np.array([number, number]) for name, number in cells.items()}
    columns |= {"weight": np.ones(2), "weight_squared": np.ones(2)}
    assert RankCounts(**columns, replacement=False).total == 2
    columns[column] = np.array([columns[column][0], value])
    with pytest.raises(InputError, match=words):
        RankCounts(**columns, replacement=False)


@pytest.mark.parametrize(
    ("weight", "squared"),
    [(0.5, 0.0), (1e-200, 0.0), (1.0, 1e-101), (1.0, 1e101), (1e-101, 1e-202), (1e101, 1e202)],
)
def test_cells_of_weights_too_light_or_too_heavy_are_refused(weight, squared):
    """Also where the weights come squared and summed, as in a file."""
    two = np.array([2, 2])
    cells = [9 * two, 50 * two, two, two, two]
    assert RankCounts(*cells, np.array([2.0, 0.0]), np.array([2.0, 0.0])).effective == 2.0
    with pytest.raises(InputError, match=r"must be 0 or between 1e-100 and 1e.*multiply all"):
        RankCounts(*cells, np.array([2.0, weight]), np.array([2.0, squared]))


def test_columns_of_different_lengths_and_no_cells_are_refused():
    columns = dict.fromkeys(("sampled", "items", "low", "high", "count"), np.array([5, 5]))
    with pytest.raises(InputError, match="equally long"):
        RankCounts(**columns, weight=np.ones(2), weight_squared=np.ones(1))
    empty = dict.fromkeys(columns, np.array([], dtype=np.int64))
    with pytest.raises(RankError, match="at least one cell"):
        RankCounts(**empty, weight=np.ones(0), weight_squared=np.ones(0))
    with pytest.raises(InputError, match="at least one RankCounts"):
        RankCounts.merge([])


@pytest.mark.parametrize("replacement", [True, False])
def test_one_part_is_the_whole(replacement):
    part = _count([1, 2, 2], replacement=replacement)
    assert RankCounts.merge([part]) == part


def test_every_rank_of_many_is_counted_once():
    ranks = np.random.default_rng(0).integers(1, 11, size=200_000)
    values, times = np.unique(ranks, return_counts=True)
    counts = _count(ranks)
    assert counts.low.tolist() == values.tolist()
    assert counts.count.tolist() == times.tolist()


@pytest.mark.parametrize("length", [0, 9, 11])
def test_histograms_hold_a_count_for_each_rank(length):
    design = Law(100, 9)
    assert RankCounts.from_histogram([2, 1] + [0] * 8, design) == _count([1, 1, 2])
    with pytest.raises(RankError, match=rf"sampled \+ 1 = 10 counts, got {length}"):
        RankCounts.from_histogram([2, 1, *[0] * 8, 0][:length], design)


def test_a_bad_rank_is_found_wherever_it_stands():
    ranks = np.ones(200_000, dtype=np.int64)
    ranks[150_000] = 11
    with pytest.raises(RankError, match="got 11 at position 150000; these may be full"):
        _count(ranks)


def test_published_hit_rates_are_counts_of_ranges():
    design = Law(1000, 99)
    counts = RankCounts.from_ranges([1, 2, 11], [1, 10, 100], [20, 50, 30], design)
    assert counts.total == 100
    merged = _count([1, 2, 3, 10]).merge_ranks([1, 3])
    assert list(zip(merged.low, merged.high, merged.count, strict=True)) == [
        (1, 1, 1),
        (2, 3, 2),
        (4, 10, 1),
    ]
    with pytest.raises(RankError, match="must not cut"):
        merged.merge_ranks([2])


def test_resamples_keep_total_mean_and_variance():
    rng = np.random.default_rng(0)
    counts = _count(rng.integers(1, 11, size=500))
    drawn = counts.resample(4000, rng=1)
    assert (drawn.sum(axis=1) == 500).all()
    assert np.allclose(drawn.mean(axis=0), counts.weight, rtol=0.02)
    share = counts.weight / 500
    assert np.allclose(drawn.var(axis=0), 500 * share * (1 - share), rtol=0.15)
    assert (counts.resample(5, rng=7) == counts.resample(5, rng=7)).all()


def test_weighted_resamples_have_the_variance_of_the_weights():
    rng = np.random.default_rng(0)
    ranks, weights = rng.integers(1, 11, size=2000), rng.exponential(size=2000)
    counts = _count(ranks, weights=weights)
    drawn = counts.resample(4000, rng=1)
    in_first = np.where(ranks == 1, weights, 0.0)
    direct = [in_first[rng.integers(0, 2000, 2000)].sum() for _ in range(2000)]
    assert drawn[:, 0].std() == pytest.approx(np.std(direct), rel=0.1)


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_saving_and_loading_keeps_everything(tmp_path, ending):
    counts = RankCounts.from_ranks(
        [1, 2, 3], items=[50, 60, 60], sampled=9, weights=[0.5, 1 / 3, 2.0], replacement=False
    )
    path = tmp_path / f"counts.{ending}"
    counts.save(path)
    assert RankCounts.load(path) == counts
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_integers_of_every_width_are_counted_alike():
    ranks = np.random.default_rng(0).integers(1, 11, size=200_000)
    expected = _count(ranks)
    for dtype in (np.int8, np.uint8, np.int32, np.uint64, np.float32, np.float64):
        assert _count(ranks.astype(dtype)) == expected


@pytest.mark.parametrize(
    ("ranks", "options", "error", "words"),
    [
        ([], {}, RankError, "at least one rank"),
        ([0, 1], {}, RankError, "got 0 at position 0; ranks start at 1"),
        ([1, 11], {}, RankError, "got 11 at position 1"),
        ([1.5], {}, RankError, "whole numbers, got 1.5 at position 0"),
        ([np.nan], {}, RankError, "whole numbers, got nan"),
        (["a"], {}, RankError, "integers"),
        ([[1]], {}, RankError, "one-dimensional"),
        ([1], {"items": 1}, DesignError, "items"),
        ([1], {"sampled": 0}, DesignError, "sampled"),
        ([1], {"sampled": 100, "replacement": False}, DesignError, "at most items - 1"),
        ([1, 2], {"items": [100]}, DesignError, "one number or 2"),
        ([1, 2], {"items": [100, 1]}, DesignError, "items must be at least 2"),
        ([1, 12], {"items": [100, 100]}, RankError, "at most sampled"),
        ([1, 2], {"weights": [1.0, -1.0]}, InputError, r"not negative, got -1\.0 at position 1"),
        ([1], {"weights": [np.nan]}, InputError, "finite"),
        ([1], {"weights": [1.0, 2.0]}, InputError, "one a rank"),
        ([1], {"weights": [0.0]}, InputError, "all be zero"),
        ([1], {"weights": ["heavy"]}, InputError, "weights must be numbers"),
        ([1, 2], {"weights": [[1.0], [1.0, 2.0]]}, InputError, "weights must be numbers"),
        ([1], {"weights": [10**400]}, InputError, "weights must be numbers"),
        ([1], {"count": [-1]}, InputError, "not be negative"),
        ([1], {"count": -1}, InputError, "count must be an integer of at least 0"),
        ([1], {"count": 0}, InputError, "nothing to estimate from"),
    ],
)
def test_bad_input_is_refused(ranks, options, error, words):
    with pytest.raises(error, match=words):
        RankCounts.from_ranks(ranks, **({"items": 100, "sampled": 9} | options))


def test_counts_with_and_without_replacement_do_not_add():
    with pytest.raises(DesignError, match="replacement"):
        _count([1]) + _count([1], replacement=False)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "[1]", "JSON object"),
        ("a.json", "{}", "must hold unsample.RankCounts"),
        ("a.json", json.dumps({"format": "unsample.RankCounts/1"}), "lacks count"),
        ("a.npz", "nonsense", "cannot read rank counts"),
        ("missing.npz", None, "cannot read rank counts"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=words):
        RankCounts.load(tmp_path / name)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "counts.npz"
    _count([1, 2, 3]).save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileError, match="cannot read"):
        RankCounts.load(path)


def test_unwritable_places_are_refused(tmp_path):
    with pytest.raises(FileError, match="cannot write"):
        _count([1]).save(tmp_path / "no" / "such" / "folder.npz")
    with pytest.raises(FileError, match=r"\.npz or \.json"):
        _count([1]).save(tmp_path / "counts.pkl")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("replacement", [True], "true or false"),
        ("replacement", 1, "true or false"),
        ("weight", 1.0, "a list of weights"),
        ("weight_squared", [[1.0]], "a list of weights"),
        ("weight", ["heavy"], "numbers as weights"),
    ],
)
def test_saved_fields_of_the_wrong_kind_are_refused(tmp_path, field, value, words):
    path = tmp_path / "counts.json"
    _count([1]).save(path)
    fields = json.loads(path.read_text()) | {field: value}
    with pytest.raises(FileError, match=words):
        RankCounts.from_arrays(fields, "the file")


def test_weights_may_be_as_light_and_as_heavy_as_said():
    for weight in (1e-100, 1e100):
        assert _count([1, 5], weights=[weight, weight]).effective == pytest.approx(2.0)
    for weight in (1e-310, 1e-160, 0.99e-100, 1.01e100, 1e155, 1e300):
        for users in (None, ["a", "a"]):
            with pytest.raises(InputError, match="between 1e-100 and 1e"):
                _count([1, 5], weights=[1.0, weight], users=users)


def test_ranks_that_nobody_has_count_for_nothing():
    counts = RankCounts.from_ranks([1, 2, 3], items=100, sampled=9, count=[2, 0, 1])
    assert counts.total == 3
    assert counts.resample(50, rng=0)[:, counts.low == 2].max() == 0


def test_resamples_are_one_or_more_and_hold_as_many_targets():
    with pytest.raises(InputError, match="size must be"):
        _count([1, 2]).resample(0)
    assert _count([1]).resample(1, rng=0).tolist() == [[1.0]]
    assert _count([1]).resample(3, rng=0).tolist() == [[1.0]] * 3
    assert (_count([1, 2, 2, 9]).resample(20, rng=0).sum(axis=1) == 4).all()


def test_resamples_of_what_is_worth_less_than_a_target_are_not_empty():
    """A cell's squares count what its users have in other cells: it may be worth a tenth."""
    one = np.array([1])
    part = RankCounts(9 * one, 50 * one, one, one, one, 1.0 * one, 10.0 * one)
    assert part.effective == pytest.approx(0.1)
    assert (part.resample(20, rng=0) > 0).all()


def test_the_first_rank_out_of_range_is_named():
    for wrong, ranks in ((0, [1, 2, 0, 99]), (11, [1, 10, 11, 0])):
        with pytest.raises(RankError, match=f"got {wrong}"):
            _count(ranks)


def test_cells_are_taken_to_be_sampled_with_replacement_and_say_their_spans():
    one = np.array([1])
    cells = RankCounts(9 * one, 50 * one, one, one, one, 1.0 * one, 1.0 * one)
    assert cells.replacement
    both = cells + _count([1])
    assert "items=50..100" in repr(both)


def test_counts_accumulate_over_a_stream():
    batches = [[1, 2], [], [2, 10], [3]]
    counts = RankCounts.from_ranks(batches[0], items=50, sampled=9)
    for batch in batches[1:]:
        counts = counts.update(batch)
    whole = RankCounts.from_ranks([1, 2, 2, 10, 3], items=50, sampled=9)
    assert counts == whole
    parts = [RankCounts.from_ranks(b, items=50, sampled=9) for b in batches if b]
    assert RankCounts.merge(parts) == whole
    mixed = counts.update([20], sampled=19)
    assert mixed.total == 6
    with pytest.raises(DesignError, match="sampled must be given"):
        mixed.update([1])
    with pytest.raises(InputError, match="at least one"):
        RankCounts.merge([])
    with pytest.raises(DesignError, match="agree on replacement"):
        whole + RankCounts.from_ranks([1], items=50, sampled=9, replacement=False)
