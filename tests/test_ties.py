import numpy as np
import pytest

from unsample.errors import InputError, RankError
from unsample.evidence import TIE_RULES, Comparisons, RankCounts, check_ties, rank_with_ties


def _of(better, tied, **options):
    return Comparisons.of_targets(better, tied, **({"items": 50, "sampled": 9} | options))


def _rows(comparisons):
    names = ("sampled", "items", "better", "tied", "count", "weight", "weight_squared")
    return list(zip(*(getattr(comparisons, name).tolist() for name in names), strict=True))


def test_ranks_under_each_rule():
    better, equal = np.array([0, 3, 3]), np.array([0, 0, 2])
    rng = np.random.default_rng(0)
    assert rank_with_ties(better, equal, "optimistic", rng).tolist() == [1, 4, 4]
    assert rank_with_ties(better, equal, "pessimistic", rng).tolist() == [1, 4, 6]
    assert rank_with_ties(better, equal, "realistic", rng).tolist() == [1.0, 4.0, 5.0]
    drawn = np.array([rank_with_ties(better, equal, "random", rng) for _ in range(3000)])
    assert [set(column) for column in drawn.T] == [{1}, {4}, {4, 5, 6}]
    assert np.allclose(np.bincount(drawn[:, 2])[4:] / 3000, 1 / 3, atol=0.04)


def test_a_rule_that_is_none_gets_a_suggestion():
    assert [check_ties(rule) for rule in TIE_RULES] == list(TIE_RULES)
    with pytest.raises(InputError, match="did you mean optimistic"):
        check_ties("optimist")


def test_equal_keys_are_merged_and_rows_sorted():
    comparisons = _of(
        [2, 1, 2, 1, 2], [0, 4, 0, 3, 0], items=[50, 50, 50, 50, 40], weights=[1, 2, 3, 4, 5]
    )
    assert _rows(comparisons) == [
        (9, 40, 2, 0, 1, 5.0, 25.0),
        (9, 50, 1, 3, 1, 4.0, 16.0),
        (9, 50, 1, 4, 1, 2.0, 4.0),
        (9, 50, 2, 0, 2, 4.0, 10.0),
    ]
    assert len(comparisons) == 4


def test_a_row_may_stand_for_several_targets():
    assert _rows(_of([2], [1], weights=[0.5], count=[3])) == [(9, 50, 2, 1, 3, 1.5, 0.75)]


def test_parts_merge_to_the_whole():
    better, tied = np.array([0, 1, 1, 5]), np.array([1, 0, 0, 2])
    sampled = np.array([9, 9, 9, 19])
    whole = _of(better, tied, sampled=sampled)
    parts = [_of(better[[i]], tied[[i]], sampled=sampled[[i]]) for i in (3, 1, 0, 2)]
    assert _rows(Comparisons.merge(parts)) == _rows(whole)


def test_no_rows_are_fine():
    empty = _of([], [])
    assert len(empty) == 0
    assert all(len(column) == 0 for column in empty.ranked().values())


@pytest.mark.parametrize("name", ["better", "tied", "count"])
def test_negative_numbers_are_refused(name):
    columns = {"better": [0, 1], "tied": [0, 1], "count": [1, 1]} | {name: [1, -2]}
    with pytest.raises(RankError, match=f"{name} must not be negative, got -2"):
        _of(**columns)


def test_weights_are_finite_and_their_squares_stay_so():
    assert np.isfinite(_of([2], [0], weights=[1e100]).weight_squared).all()
    for wrong in (1.01e100, -1.01e100, np.inf, np.nan):
        with pytest.raises(InputError, match=r"weights must be finite, and at most 1e\+100"):
            _of([2, 2], [0, 1], weights=[1.0, wrong])


@pytest.mark.parametrize("name", ["better", "tied", "count", "items", "sampled"])
def test_numbers_are_at_most_what_a_catalogue_may_hold(name):
    columns = {"better": [0, 1], "tied": [0, 1], "items": [9, 9]} | {name: [2, 10**12]}
    assert getattr(_of(**columns), name).max() == 10**12
    columns[name] = [2, 10**12 + 1]
    with pytest.raises(RankError, match=f"{name} must be at most 1000000000000, got 1000000000001"):
        _of(**columns)


def test_columns_of_different_lengths_are_refused():
    one, two = np.ones(1, dtype=np.int64), np.ones(2, dtype=np.int64)
    with pytest.raises(InputError, match="equally long"):
        Comparisons(one, one, one, one, one, np.ones(1), np.ones(2))
    with pytest.raises(InputError, match="equally long"):
        Comparisons(two, two, two, two, one, np.ones(2), np.ones(2))


def test_plain_rules_keep_the_sums_with_their_rows():
    comparisons = _of([3, 0], [2, 0], weights=[0.5, 2.0])
    columns = {k: v.tolist() for k, v in comparisons.ranked("pessimistic").items()}
    assert columns == {
        "rank": [1, 6],
        "sampled": [9, 9],
        "items": [50, 50],
        "count": [1, 1],
        "weight": [2.0, 0.5],
        "weight_squared": [4.0, 0.25],
    }
    assert comparisons.ranked("optimistic")["rank"].tolist() == [1, 4]
    assert comparisons.ranked("realistic")["rank"].tolist() == [1, 5]


def test_realistic_ranks_between_two_ranks_cannot_be_counted():
    with pytest.raises(RankError, match=r"such as 5\.5"):
        _of([0, 4], [2, 1]).ranked("realistic")


# Few targets with many ties are placed one by one, many targets with few ties all at once; the
# middle row is where the two ways meet.
@pytest.mark.parametrize(("count", "tied"), [(3, 40), (4, 4), (5, 4), (900, 2)])
def test_random_places_are_uniform_and_lose_nothing(count, tied):
    comparisons = _of([7, 7], [tied, 0], sampled=60, count=[count, 2], weights=[0.5, 3.0])
    seen = np.zeros(61)
    runs = 400
    for seed in range(runs):
        drawn = comparisons.ranked("random", seed)
        assert drawn["count"].sum() == count + 2
        assert drawn["weight"].sum() == pytest.approx(0.5 * count + 6.0)
        assert drawn["weight_squared"].sum() == pytest.approx(0.25 * count + 18.0)
        assert drawn["rank"].min() >= 8
        assert drawn["rank"].max() <= 8 + tied
        assert (drawn["count"] > 0).all()
        assert set(drawn["sampled"]) == {60}
        assert set(drawn["items"]) == {50}
        np.add.at(seen, drawn["rank"], drawn["count"])
    seen[8] -= 2 * runs  # the two targets without a tie
    expected = runs * count / (tied + 1)
    assert np.abs(seen[8 : 9 + tied] - expected).max() < 5 * np.sqrt(expected)


def test_random_ranks_follow_from_the_seed_alone():
    comparisons = _of([0, 2, 5], [4, 4, 1], sampled=19, count=[2, 30, 7])
    one, two, other = (comparisons.ranked("random", seed) for seed in (3, 3, 4))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not all(np.array_equal(one[name], other[name]) for name in one)


def test_ranks_are_drawn_with_the_seed_that_counts_are():
    """No seed given is the same seed here and there."""
    comparisons = _of([0], [4], count=[3000])
    counts = RankCounts.from_comparisons(comparisons)
    assert comparisons.ranked()["count"].tolist() == counts.count.tolist()
    assert counts != RankCounts.from_comparisons(comparisons, rng=1)


def test_more_random_places_than_fit_are_refused(monkeypatch):
    """Five targets with seven ties need five draws, a hundred with five ties need five, too."""
    monkeypatch.setattr("unsample.evidence._ties._MOST_PLACES", 10)
    assert _of([0, 1], [7, 5], count=[5, 100]).ranked()["count"].sum() == 105
    more = _of([0, 1], [7, 6], count=[5, 100])
    with pytest.raises(RankError, match=r"optimistic or pessimistic where more than 10 .* got 11"):
        more.ranked()
    assert more.ranked("pessimistic")["rank"].tolist() == [8, 8]
