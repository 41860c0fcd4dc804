"""Pair counts and ties by hash, against slow references."""

import hashlib

import numpy as np
import pytest

import unsample
from unsample.errors import FileError, InputError
from unsample.evidence import (
    TIE_RULES,
    ModelCounts,
    PairCounts,
    Targets,
    check_ties,
    rank_bin,
    rank_with_ties,
    size_on_grid,
    tie_place,
    tie_seed,
)


def targets(rng, users=40, size=160):
    cells = np.stack(
        [
            np.full(size, 99),
            rng.choice([500, 700], size),
            rng.integers(1, 12, size),
            rng.integers(1, 4, size),
            np.zeros(size, dtype=np.int64),
        ],
        axis=1,
    )
    return rng.integers(0, users, size), cells


def scored(cells):
    return np.log1p(cells[:, 2]) / cells[:, 3] + cells[:, 1] / 500


def totals(users, cells):
    found = {}
    for user, cell in zip(users, cells, strict=True):
        found[user] = found.get(user, 0.0) + scored(cell[None])[0]
    return found


def test_inner_products_are_those_of_a_loop_over_users():
    rng = np.random.default_rng(0)
    one, two = targets(rng), targets(rng, users=60)
    own, other = totals(*one), totals(*two)
    within = PairCounts.of_users(*one)
    assert within.inner(scored(within.keys), scored(within.keys)) == pytest.approx(
        sum(total**2 for total in own.values())
    )
    between = PairCounts.of_users(*one, other=two)
    assert between.inner(scored(between.keys), scored(between.keys)) == pytest.approx(
        sum(total * other.get(user, 0.0) for user, total in own.items())
    )


def test_parts_add_up_and_files_hold_them():
    rng = np.random.default_rng(2)
    users, cells = targets(rng)
    part = users < 17
    parts = [PairCounts.of_users(users[p], cells[p]) for p in (part, ~part)]
    whole = PairCounts.of_users(users, cells)
    assert PairCounts.merge(parts) == whole
    assert PairCounts.from_arrays(whole.arrays(), "a file") == whole
    with pytest.raises(FileError, match="pairs of cells"):
        PairCounts.from_arrays(whole.arrays() | {"left": whole.left[1:]}, "a file")


def test_bins_are_those_that_a_query_makes():
    ranks = np.arange(1, 100_000)
    bins = rank_bin(ranks)
    assert (bins[:128] == ranks[:128]).all()
    assert (bins <= ranks).all()
    assert (rank_bin(bins) == bins).all()  # each bin is named by its first rank
    assert (np.diff(bins) >= 0).all()
    assert (ranks / bins).max() < np.exp(1 / 32)
    sizes = size_on_grid(ranks)
    assert (sizes[:1000] == ranks[:1000]).all()
    assert np.abs(np.log(sizes / ranks)).max() <= 1 / 512 + 1 / 2000
    assert (size_on_grid(sizes) == sizes).all()


def test_ranks_under_each_rule():
    better, equal = np.array([0, 3, 3]), np.array([0, 0, 2])
    assert rank_with_ties(better, equal, "optimistic", 0).tolist() == [1, 4, 4]
    assert rank_with_ties(better, equal, "pessimistic", 0).tolist() == [1, 4, 6]
    assert rank_with_ties(better, equal, "realistic", 0).tolist() == [1.0, 4.0, 5.0]
    drawn = np.array([rank_with_ties(better, equal, "random", seed) for seed in range(3000)])
    assert [set(column) for column in drawn.T] == [{1}, {4}, {4, 5, 6}]
    assert [check_ties(rule) for rule in TIE_RULES] == list(TIE_RULES)
    with pytest.raises(InputError, match="did you mean optimistic"):
        check_ties("optimist")


def test_ties_are_hashes_of_the_names():
    users, items = ["u1", "u2", 3], ["a", "b", "c"]
    tied = np.array([5, 0, 1000])
    found = tie_place(7, np.array(users, dtype=object), items, tied)
    for user, item, ties, place in zip(users, items, tied, found, strict=True):
        digest = hashlib.md5(f"7|{user}|{item}".encode()).hexdigest()
        assert place == int(int(digest[:13], 16) / 16**13 * (ties + 1)) * (ties > 0)
    many = tie_place(0, None, np.arange(20_000), np.full(20_000, 3))
    assert np.abs(np.bincount(many) / 20_000 - 0.25).max() < 0.01
    assert tie_seed(5) == 5
    assert tie_seed(np.random.default_rng(1)) == tie_seed(np.random.default_rng(1))


# -- models ---------------------------------------------------------------------------------------


def models(rng, users, size=300):
    """Return two models of the same users, with targets in orders of their own."""
    found = {}
    for name in "AB":
        order = rng.permutation(size)
        ranks = np.minimum(1 + users[order] % 7 + rng.integers(0, 140, size), 200)
        found[name] = Targets(ranks, 5000, 199, users=users[order])
    return found


def test_models_add_up_over_parts_of_the_users_and_in_files(tmp_path):
    rng = np.random.default_rng(5)
    users = rng.integers(0, 120, 300)
    given = models(rng, users)
    parts = [
        ModelCounts.of_targets(
            {
                name: Targets(each.ranks[some], 5000, 199, users=each.users[some])
                for name, each in given.items()
                for some in [(each.users < 50) == part]
            }
        )
        for part in (True, False)
    ]
    added, whole = ModelCounts.merge(parts), ModelCounts.of_targets(given)
    added.save(tmp_path / "models.npz")
    for found in (added, ModelCounts.load(tmp_path / "models.npz")):
        assert dict(found) == dict(whole)
        assert found.between == whole.between
        assert found["A"].users == whole["A"].users
        assert found["A"].clusters == whole["A"].clusters


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_users_of_one_model_alone_are_in_no_pair():
    rng = np.random.default_rng(6)
    common = rng.integers(1, 60, 400)
    ranks = {"A": common, "B": np.minimum(common + rng.integers(0, 9, 400), 60)}
    users = {"A": np.arange(400), "B": np.arange(400) + 100}
    options = {"items": 600, "sampled": 60, "metrics": "AUC"}
    ranks["B"] = np.concatenate([ranks["B"][100:], ranks["B"][:100]])  # the same for common users
    partly = unsample.compare(ranks, users=users, **options)
    apart = users | {"B": users["B"] + 1000}
    assert partly.matched == "user"
    assert "A and B have 300 of 400 users in common" in partly.warnings[-1]
    widths = [
        np.ptp([each.differences[0].low, each.differences[0].high])
        for each in (partly, unsample.compare(ranks, users=apart, **options))
    ]
    assert widths[0] < 0.8 * widths[1]
    targets = {n: Targets(ranks[n], 600, 60, users=users[n]) for n in ranks}
    counted = unsample.compare(ModelCounts.of_targets(targets), metrics="AUC")
    assert counted.warnings == partly.warnings
