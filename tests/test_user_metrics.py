"""Metrics of users with several relevant items: slow references, and what libraries say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import unsample
from tests import user_metrics as slow

KEPT = json.loads((Path(__file__).parent / "data" / "library_metrics.json").read_text())
LIBRARIES = sorted(KEPT["libraries"])
PROBLEM = KEPT["problem"]
#: Below, at and beyond the number of relevant items, and beyond the list.
SOME = (1, 2, 3, 5, 12, 40)
pytestmark = pytest.mark.filterwarnings("ignore:K must be at most items")


def near(numbers):
    return pytest.approx(numbers, rel=0, abs=1e-12)


@st.composite
def problems(draw):
    """Make a few users with lists of one length each, of which at least one item is irrelevant."""
    users = []
    for _ in range(draw(st.integers(1, 6))):
        items = draw(st.integers(2, 15))
        few = st.lists(st.integers(1, items), min_size=1, max_size=min(5, items - 1), unique=True)
        ranks = draw(few)
        grades = draw(st.lists(st.integers(1, 4), min_size=len(ranks), max_size=len(ranks)))
        users.append((ranks, items, grades))
    return users


# -- the references themselves ---------------------------------------------------------------------


def whose_is_which():
    """Return library -> its metric -> ours, as the page has it."""
    text = (Path(__file__).parents[1] / "docs" / "libraries.md").read_text()
    table = text.partition("## Whose metric is which")[2].partition("\n\nSame name")[0]
    _, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]
    return {
        "trec" if library == "ir_measures" else library.casefold(): dict(
            re.findall(r"`([^`]+)` = `([^`]+)`", pairs)
        )
        for library, pairs in rows
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_references_are_what_libraries_say(library):
    ours, checked = whose_is_which()[library], set()
    for theirs, number in KEPT["libraries"][library]["values"].items():
        graded, (name, _, k) = theirs.startswith("graded "), theirs.partition("@")
        asked = name.removeprefix("graded ") + ("@K" if k else "")
        # LensKit divides by the length of a list that is shorter than K.
        if asked not in ours or ((library, asked) == ("lenskit", "Precision@K") and int(k) > 10):
            continue
        checked.add(asked)
        lists = [
            slow.listed(ranks, PROBLEM["items"], row if graded else None)
            for ranks, row in zip(PROBLEM["ranks"], PROBLEM["relevance"], strict=True)
        ]
        # Some numbers are rounded, or of single precision.
        room = 1e-5 if "exp-log2" in theirs else 1e-6 if library == "torchmetrics" else 1e-12
        wanted = slow.mean(ours[asked].replace("@K", f"@{k}"), lists)
        assert wanted == pytest.approx(number, rel=0, abs=room), theirs
    assert checked == set(ours)


# -- ours ------------------------------------------------------------------------------------------


@given(problem=problems(), seed=st.integers(0, 99), graded=st.booleans())
@settings(max_examples=90)
def test_exact_is_the_mean_over_users(problem, seed, graded):
    ranks, items, grades = zip(*problem, strict=True)
    lists = [
        slow.listed(row, size, of if graded else None)
        for row, size, of in zip(ranks, items, grades, strict=True)
    ]
    names = [*slow.names(SOME), *(f"{name}@3" for name in slow.ALIASES)]
    wanted = {name: slow.mean(name, lists) for name in names}
    sizes = [len(row) for row in ranks]
    # Users have names that are no numbers, and come in no order.
    order = np.random.default_rng(seed).permutation(sum(sizes))
    users = np.repeat([f"u{number}" for number in range(len(ranks))], sizes)
    found = unsample.exact(
        np.concatenate(ranks)[order], items=np.repeat(items, sizes)[order], users=users[order],
        metrics=names, relevance=np.concatenate(grades)[order] if graded else None,
    )  # fmt: skip
    assert {name: found[name].value for name in names} == near(wanted)


# -- by a scorer -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scored():
    """Scores, what is seen and what is held out."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 25))
    seen = rng.random(scores.shape) < 0.2
    held = {}
    for user in rng.permutation(30)[:25].tolist():
        held[user] = rng.choice(np.flatnonzero(~seen[user]), rng.integers(1, 6), False).tolist()
    return scores, seen, held


def check(scored, lists, targets=None, **options):
    """Check that a full and a certified evaluation find the metrics of the lists."""
    scores, seen, held = scored
    pairs = np.array([(user, item) for user, items in held.items() for item in items]).T
    targets = tuple(pairs) if targets is None else targets
    for design in ("exact", "certified"):
        names = [name for name in slow.names(SOME) if design == "exact" or "@" in name]
        found = unsample.evaluate(
            lambda users, items: scores[users, items], targets, items=25, metrics=names,
            exclude=sparse.csr_array(seen), design=design, **options,
        )  # fmt: skip
        wanted = {name: slow.mean(name, lists) for name in names}
        assert {name: found[name].value for name in names} == near(wanted), design


def test_a_scorer_is_evaluated_user_by_user(scored):
    scores, seen, held = scored
    grades = {(user, item): 1 + (user + item) % 4 for user, of in held.items() for item in of}
    orders = {user: [i for i in np.argsort(-scores[user]) if not seen[user, i]] for user in held}
    graded = [[grades.get((user, item), 0) for item in orders[user]] for user in held]
    plain = [[float(grade > 0) for grade in row] for row in graded]
    check(scored, plain)
    matrix = np.zeros_like(seen)
    matrix[tuple(np.transpose(list(grades)))] = True
    check(scored, plain, sparse.csr_array(matrix))
    given = (*np.transpose(list(grades)), np.array(list(grades.values())))
    check(scored, graded, given)


def test_filtered_targets_do_not_compete_and_count_one_by_one(scored):
    scores, seen, held = scored
    lists = []
    for user, items in held.items():
        for item in items:
            others = [o for o in range(25) if not seen[user, o] and o not in items]
            rank = 1 + sum(scores[user, o] > scores[user, item] for o in others)
            lists.append(slow.listed([rank], len(others) + 1))
    check(scored, lists, filtered=True)
