import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.counts import RankCounts
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.sampling import Design

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


def test_published_hit_rates_are_counts_of_ranges():
    design = Design(1000, 99)
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
        ([1], {"weights": [-1.0]}, InputError, "not negative"),
        ([1], {"weights": [np.nan]}, InputError, "finite"),
        ([1], {"weights": [1.0, 2.0]}, InputError, "one a rank"),
        ([1], {"weights": [0.0]}, InputError, "all be zero"),
        ([1], {"count": [-1]}, InputError, "not be negative"),
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
