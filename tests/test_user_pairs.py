"""Ranks of scores, ties by hash and counts of pairs, against slow references."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import unsample
from unsample import sampled_ranks
from unsample.counts import (
    ModelCounts,
    PairCounts,
    Targets,
    check_ties,
    rank_bin,
    rank_with_ties,
    size_on_grid,
    tie_position,
)
from unsample.errors import InputError, ScoreError


def targets(rng, users=40, size=160):
    cells = np.zeros((size, 5), dtype=np.int64)
    cells[:, 0] = 99
    cells[:, 1] = rng.choice([500, 700], size)
    cells[:, 2] = rng.integers(1, 12, size)
    cells[:, 3] = rng.integers(1, 4, size)
    return rng.integers(0, users, size), cells


def scored(cells):
    return np.log1p(cells[:, 2]) / cells[:, 3] + cells[:, 1] / 500


def totals(users, cells):
    return {user: scored(cells[users == user]).sum() for user in set(users.tolist())}


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
    with pytest.raises(InputError, match="did you mean optimistic"):
        check_ties("optimist")


def test_ties_are_hashes_of_the_names():
    users, items = np.array(["u1", "u2", 3], dtype=object), ["a", "b", "c"]
    better, tied = np.array([9, 2, 0]), np.array([5, 0, 1000])
    found = rank_with_ties(better, tied, "random", 7, users, items) - 1 - better
    for user, item, ties, position in zip(users, items, tied, found, strict=True):
        digest = hashlib.md5(f"7|{user}|{item}".encode()).hexdigest()
        assert position == int(int(digest[:13], 16) / 16**13 * (ties + 1)) * (ties > 0)
    many = np.floor(4 * tie_position(0, None, np.arange(20_000))).astype(int)
    assert np.abs(np.bincount(many) / 20_000 - 0.25).max() < 0.01


# -- models ---------------------------------------------------------------------------------------


def test_models_add_up_over_parts_of_the_users_and_in_files(tmp_path):
    rng = np.random.default_rng(5)
    ranks = rng.integers(1, 201, (2, 300))
    users = rng.integers(0, 120, (2, 300))

    def counted(kept):
        given = {
            name: Targets(ranks[at, kept[at]], 5000, 199, users=users[at, kept[at]])
            for at, name in enumerate("AB")
        }
        return ModelCounts.of_targets(given)

    parts = [counted(users < 50), counted(users >= 50)]
    added, whole = ModelCounts.merge(parts), counted(users >= 0)
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
    ranks = {"A": common, "B": np.roll(np.minimum(common + rng.integers(0, 9, 400), 60), -100)}
    users = {"A": np.arange(400), "B": np.arange(400) + 100}
    options = {"items": 600, "sampled": 60, "metrics": "AUC"}
    partly = unsample.compare(ranks, users=users, **options)
    apart = unsample.compare(ranks, users=users | {"B": users["B"] + 1000}, **options)
    assert partly.matched == "user"
    assert "A and B have 300 of 400 users in common" in partly.warnings[-1]
    near, far = (each.difference("A", "B", "AUC") for each in (partly, apart))
    assert near.high - near.low < 0.8 * (far.high - far.low)


# -- ranks of scores ------------------------------------------------------------------------------

#: Few values, so that ties are common, and the infinite ones among them.
SCORES = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])


@st.composite
def tied_scores(draw):
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    own = draw(arrays(float, rows, elements=SCORES))
    return own, draw(arrays(float, (rows, columns), elements=SCORES))


def best_and_worst(own, others):
    """Return the best and the worst rank of each target, by a loop."""
    return [
        (1 + sum(x > aim for x in row), 1 + sum(x >= aim for x in row))
        for aim, row in zip(own.tolist(), others.tolist(), strict=True)
    ]


@given(tied_scores(), st.integers(0, 99))
def test_ranks_are_those_of_a_loop(given_scores, seed):
    best, worst = zip(*best_and_worst(*given_scores), strict=True)
    assert sampled_ranks(*given_scores, ties="optimistic").tolist() == list(best)
    assert sampled_ranks(*given_scores, ties="pessimistic").tolist() == list(worst)
    drawn = sampled_ranks(*given_scores, rng=seed)
    assert drawn.dtype == np.int64
    assert ((np.array(best) <= drawn) & (drawn <= worst)).all()
    assert np.array_equal(drawn, sampled_ranks(*given_scores, rng=seed))


def test_arrays_tensors_and_lists_give_the_same():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    own, others = rng.normal(size=30).astype(np.float32), rng.normal(size=(30, 9))
    wanted = sampled_ranks(own, others)
    assert np.array_equal(sampled_ranks(own.tolist(), others.tolist()), wanted)
    tensors = torch.tensor(own, requires_grad=True), torch.as_tensor(others)
    assert np.array_equal(sampled_ranks(*tensors), wanted)


@pytest.mark.parametrize(
    ("own", "others", "message"),
    [
        ([[1.0]], [[1.0]], r"target_scores must be a list of one score .* got shape \(1, 1\)"),
        ([1.0, 2.0], [1.0, 2.0], r"a row for each of 2 targets, got shape \(2,\).*shared=True"),
        ([1.0], [[]], r"a row for each of 1 targets, got shape \(1, 0\)"),
        ([1.0, 2.0], [[1.0], [1.0, 2.0]], "negative_scores must be .* rows of one length"),
        ([np.nan], [[1.0]], "target_scores must not be NaN, got 1 of 1"),
        ([1.0, 1.0], [[1.0], [np.nan]], "negative_scores must not be NaN.*in row 1; -inf may"),
        (["a"], [[1.0]], "target_scores must be real numbers, got values of type <U1"),
    ],
)
def test_bad_scores_are_named(own, others, message):
    with pytest.raises(ScoreError, match=message):
        sampled_ranks(own, others)


def test_rounding_parts_keeps_the_catalogues_that_only_one_model_was_ranked_in_full(tmp_path):
    # Each part has few sizes of catalogues, and both together have many. Sizes then go onto a
    # grid, except where all items were compared: so it is for some targets of B, and none of A.
    items = np.concatenate([np.arange(2001, 2025), np.arange(3001, 3025)])
    users = np.arange(len(items))
    some_in_full = np.where(users % 5 == 0, items - 1, 99)

    def counted(rows):
        sampled = {"A": np.full(len(items), 99), "B": some_in_full}
        ranks = 1 + users % 7
        return ModelCounts.of_targets(
            {
                name: Targets(ranks[rows], items[rows], of_model[rows], users[rows])
                for name, of_model in sampled.items()
            }
        )

    parts = ModelCounts.merge([counted(users < 24), counted(users >= 24)])
    whole = counted(users >= 0)
    assert parts["B"] == whole["B"]
    assert parts.between["A", "B"] == whole.between["A", "B"]
    parts.save(tmp_path / "counts.npz")
    assert ModelCounts.load(tmp_path / "counts.npz")["B"] == whole["B"]


def test_parts_may_name_their_models_in_any_order(tmp_path):
    def counted(names, users):
        ranks = {"A": 1 + users % 7, "B": 2 + users % 5}
        design = {"items": 500, "sampled": 99, "users": users}
        return ModelCounts.of_targets({name: Targets(ranks[name], **design) for name in names})

    merged = ModelCounts.merge([counted("AB", np.arange(20)), counted("BA", np.arange(20, 40))])
    whole = counted("AB", np.arange(40))
    assert merged.between == whole.between
    merged.save(tmp_path / "counts.npz")
    assert ModelCounts.load(tmp_path / "counts.npz").between == whole.between
