"""One rule for ties: a target has one rank, whichever way its scores come in."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from itertools import combinations

import duckdb
import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

import unsample
from tests.readers import cells, read_counts, read_targets, sql
from unsample.counts import rank_with_ties
from unsample.designs import Certified, Fixed
from unsample.scoring import exact_ranks

USERS, ITEMS, SEED = 60, 25, 11
NAMED = {"items": ITEMS, "rng": SEED}
SCORES = np.random.default_rng(3).integers(0, 4, size=(USERS, ITEMS)).astype(np.float64)
#: One target for each user, and three for each user.
TARGETS = {
    each: (
        np.repeat(np.arange(USERS), each),
        (np.repeat(np.arange(USERS), each) + np.tile(7 * np.arange(each), USERS)) % ITEMS,
    )
    for each in (1, 3)
}


def table(each: int) -> pl.DataFrame:
    """Return the scored rows of every user and item, in no order."""
    user, item = (axis.reshape(-1) for axis in np.indices(SCORES.shape))
    frame = pl.DataFrame({"user": user, "item": item, "score": SCORES.reshape(-1)})
    wanted = set(zip(*(column.tolist() for column in TARGETS[each]), strict=True))
    pairs = zip(user.tolist(), item.tolist(), strict=True)
    marked = frame.with_columns(target=pl.Series([pair in wanted for pair in pairs]))
    return marked.sample(fraction=1.0, shuffle=True, seed=1)


def slowly(ties: str) -> list[int]:
    """Return the ranks of one target for each user, by nothing but loops."""
    ranks = []
    for user, target in zip(*TARGETS[1], strict=True):
        own = SCORES[user, target]
        better = sum(score > own for score in SCORES[user])
        equal = sum(score == own for score in SCORES[user]) - 1
        digest = hashlib.md5(f"{SEED}|{user}|{target}".encode()).hexdigest()
        position = int(int(digest[:13], 16) / 16**13 * (equal + 1))
        ranks.append(1 + better + {"random": position, "optimistic": 0, "pessimistic": equal}[ties])
    return ranks


def by_user(users, ranks) -> dict[str, list[int]]:
    """Return the ranks of each user, sorted."""
    found = defaultdict(list)
    for user, rank in sorted(zip(map(str, users), map(int, ranks), strict=True)):
        found[user].append(rank)
    return dict(found)


RULES = ["random", "optimistic", "pessimistic"]


def scorer(users, items):
    return SCORES[users, items]


#: A way into the library -> the ranks of targets, under a rule for ties.
DOORS = {
    "a full ranking": lambda targets, ties: exact_ranks(SCORES, targets, ties=ties, **NAMED).ranks,
    "a matrix": lambda targets, ties: _evaluated(SCORES, targets, ties, "exact"),
    "a function": lambda targets, ties: _evaluated(scorer, targets, ties, "exact"),
    "certified": lambda targets, ties: _evaluated(scorer, targets, ties, Certified(k=ITEMS)),
    "guided": lambda targets, ties: _evaluated(scorer, targets, ties, "guided", budget=10**6),
}
#: Ways that take one target for each user.
ALONE = {
    "all items sampled": lambda targets, ties: _evaluated(scorer, targets, ties, _ALL),
    "all items sampled from a matrix": lambda targets, ties: _evaluated(
        SCORES, targets, ties, _ALL
    ),
}
_ALL = Fixed(ITEMS - 1, replacement=False)


def _evaluated(given, targets, ties, design, **options):
    metrics = f"NDCG@{ITEMS}"
    options |= {"metrics": metrics, "design": design, "run": unsample.Run(ties=ties)}
    return unsample.evaluate(given, targets, **NAMED, **options).ranks


@pytest.mark.parametrize("ties", RULES)
@pytest.mark.parametrize("door", DOORS | ALONE)
def test_one_target_of_a_user_has_one_rank(door, ties):
    found = (DOORS | ALONE)[door](TARGETS[1], ties)
    assert found.tolist() == slowly(ties)


@pytest.mark.parametrize("ties", RULES)
def test_a_table_of_the_same_scores_gives_the_same_ranks(ties):
    frame, options = table(1), {"sampled": ITEMS - 1, "ties": ties, **NAMED}
    expected = slowly(ties)
    found = read_targets(frame, replacement=False, **options)
    assert by_user(found.users, found.ranks) == by_user(range(USERS), expected)
    wanted = {("", ITEMS - 1, ITEMS, rank): count for rank, count in Counter(expected).items()}
    # With replacement a query counts, as it would count a sample.
    for replacement in (False, True):
        assert cells(read_counts(frame, replacement=replacement, **options)) == wanted
    columns = {name: name for name in frame.columns}
    query = sql(rows="scores", columns=columns, ties=ties, table="frame", **NAMED)
    counted = unsample.estimate(duckdb.sql(query), metrics="Recall@5", prior=None).counts
    assert cells({"": counted}) == wanted


@pytest.mark.parametrize("ties", RULES)
@pytest.mark.parametrize("door", DOORS)
def test_targets_of_one_user_have_the_same_ranks_by_every_way(door, ties):
    targets = TARGETS[3]
    found = DOORS[door](targets, ties)
    full = exact_ranks(SCORES, targets, ties=ties, **NAMED).ranks
    assert np.array_equal(found, full)
    read = read_targets(table(3), replacement=False, ties=ties, **NAMED)
    assert by_user(read.users, read.ranks) == by_user(targets[0], full)
    assert all(len(set(ranks)) == 3 for ranks in by_user(targets[0], full).values())
    # So they are ranks in lists, which `exact` takes.
    unsample.exact(full, items=ITEMS, users=targets[0])


def test_targets_that_are_excluded_or_repeated_stand_alone():
    exclude = csr_array(([True, True], ([0, 0], [3, 4])), shape=(1, 6))
    scores, targets = np.zeros((1, 6)), ([0, 0, 0, 0, 0], [0, 1, 3, 4, 0])
    found = exact_ranks(scores, targets, items=6, exclude=exclude, ties="pessimistic")
    assert found.items.tolist() == [4, 4, 5, 5, 4]
    assert sorted(found.ranks[:2]) == [3, 4]
    assert found.ranks[2:4].tolist() == [5, 5]
    assert found.ranks[4] == found.ranks[0]


def test_any_order_of_targets_and_others_that_tie_is_equally_likely():
    lists, targets, others = 30_000, 2, 2
    size = targets + others
    users = np.repeat(np.arange(lists), targets)
    better, equal = np.zeros_like(users), np.full_like(users, size - 1)
    names = np.tile(np.arange(targets), lists)
    ranks = rank_with_ties(better, equal, "random", 0, users, names, runs=users)
    pairs = Counter(map(tuple, np.sort(ranks.reshape(lists, targets), axis=1).tolist()))
    every = list(combinations(range(1, size + 1), targets))
    assert chisquare([pairs[each] for each in every]).pvalue > 1e-3
    # None of the two is preferred.
    assert chisquare(np.bincount(ranks.reshape(lists, targets).argmin(axis=1))).pvalue > 1e-3


def test_a_sample_with_replacement_is_never_a_full_ranking():
    design = Fixed(ITEMS - 1, replacement=True)
    drawn = [_evaluated(given, TARGETS[1], "random", design) for given in (scorer, SCORES)]
    assert np.array_equal(*drawn)
    assert drawn[0].tolist() != slowly("random")


def test_a_generator_stands_for_one_seed_in_every_way():
    def ranks(way):
        options = {"items": ITEMS, "rng": np.random.default_rng(4)}
        return way(SCORES, TARGETS[1], **options).ranks

    assert np.array_equal(ranks(exact_ranks), ranks(unsample.evaluate))
