"""`audit`: what it counts, what it says, and what it refuses."""

import warnings

import numpy as np
import pytest
import scipy.sparse

import unsample
from tests.draws import DEFECTS, Sampler
from unsample.errors import InputError, UnsampleWarning
from unsample.questions.audit import ask as _audit


def test_lists_are_counted_as_loops_count_them():
    rng = np.random.default_rng(0)
    rows = [rng.integers(30, size=rng.integers(5, 12)) for _ in range(40)]
    rows += [rows[3][::-1], rows[5]]
    seen = rng.random((len(rows), 30)) < 0.2
    found = _audit._read_arrays(rows, 30, exclude=scipy.sparse.csr_array(3.0 * seen))
    assert found.sizes.tolist() == [len(row) for row in rows]
    assert (found.counts == np.bincount(np.concatenate(rows), minlength=30)).all()
    equal = [sum(a == b for i, a in enumerate(row) for b in row[:i]) for row in rows]
    assert found.pairs.tolist() == equal
    kept = sum(int(seen[t, row].sum()) for t, row in enumerate(rows))
    assert found.left_out().value == kept
    assert (len(found.distinct().sizes), found.shared().value) == (40, 2.0)
    pairs = [(a, b) for i, a in enumerate(rows) for b in rows[:i]]
    between = sum(int(np.equal.outer(a, b).sum()) for a, b in pairs)
    assert found.coincidences() == pytest.approx(between / sum(len(a) * len(b) for a, b in pairs))
    alone = _audit._read_arrays(rows, 30, exclude=None)
    assert alone.uniform().value == pytest.approx(between)


@pytest.mark.parametrize("defect", DEFECTS)
def test_bad_negatives_are_found_out(defect):
    make, question, answer = DEFECTS[defect]
    result = unsample.audit(**make(np.random.default_rng(0)))
    assert result[question].answer == answer
    assert result[question].sentence in " ".join(str(result).split())
    if answer == "no":
        assert result.call is None
        assert "unsample.evaluate" in result.advice
    if defect == "a catalogue that is too large":
        assert "40 items were never drawn instead of 0" in result["uniform"].sentence


def test_few_draws_cannot_tell():
    rng = np.random.default_rng(0)
    one = unsample.audit(rng.integers(600, size=(1, 30)), items=600)
    good = unsample.audit(rng.integers(50, size=(2000, 1)), items=50)
    bad = unsample.audit(rng.integers(50, size=(2000, 2)).max(axis=1, keepdims=True), items=50)
    whole = [np.delete(np.arange(40), target) for target in np.arange(12) % 5]
    every = unsample.audit(whole, items=40)
    answers = [each["uniform"].answer for each in (one, good, bad, every)]
    assert answers == ["cannot tell", "yes", "no", "cannot tell"]
    assert good["shared lists"].answer == "own"


def _ragged(rng):
    return {"negatives": [rng.integers(600, size=20 + t % 9) for t in range(300)], "items": 600}


def _kept(rng):
    seen = scipy.sparse.csr_array((rng.random((300, 600)) < 0.1) * 1.0)
    return {"negatives": rng.integers(600, size=(300, 30)), "items": 600, "exclude": seen}


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (Sampler().draw, "items=600, sampled=30"),
        (_ragged, "items=600, sampled=sizes"),
        (_kept, 'items=600, sampled=30, protocol="all"'),
        (
            Sampler(seen=True, replacement=False).draw,
            "items=600 - seen, sampled=30, protocol='unseen', negatives=unsample.Negatives("
            "replacement=False)".replace("'", '"'),
        ),
        (
            DEFECTS["one list"][0],
            "items=600, sampled=30, negatives=unsample.Negatives(shared=True)",
        ),
        (
            DEFECTS["batches"][0],
            "items=600, sampled=30, negatives=unsample.Negatives(replacement=False, shared=True)",
        ),
    ],
)
def test_the_call_can_be_made(make, options):
    rng = np.random.default_rng(0)
    given = make(rng)
    result = unsample.audit(**given)
    assert result.call == f"unsample.estimate(ranks, {options})"
    names = {
        "unsample": unsample,
        "ranks": rng.integers(1, 20, size=300),
        "seen": np.diff(given["exclude"].indptr) if "exclude" in given else None,
        "sizes": [len(row) for row in given["negatives"]],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)  # one list leaves intervals wide
        assert isinstance(eval(result.call, names), unsample.Estimates)


def test_tables_and_arrays_give_the_same():
    rng = np.random.default_rng(0)
    lists, targets, train = (rng.integers(80, size=(60, width)) for width in (9, 1, 7))
    seen = np.zeros((60, 80))
    seen[np.arange(60)[:, None], train] = 1.0
    matrix = scipy.sparse.csr_array(seen)
    expected = unsample.audit(lists, items=80, exclude=matrix).to_dict()

    def table(items, flags):
        users = [f"u{user:02}" for user in range(60) for _ in items[0]]
        return {"user": users, "film": items.ravel(), "target": np.tile(flags, 60)}

    shown = table(np.hstack([lists, targets]), [0] * 9 + [1])
    given = {"items": 80, "columns": {"item": "film"}}
    assert unsample.audit(shown, exclude=table(train, [0] * 7), **given).to_dict() == expected
    for exclude, message in (
        (matrix, "exclude must be a table of user and item"),
        ({"user": ["x"], "film": [1]}, "must name users .* such as 'u00'; .* is 'x'"),
    ):
        with pytest.raises(InputError, match=message):
            unsample.audit(shown, exclude=exclude, **given)


LISTS = np.arange(20).reshape(4, 5)


@pytest.mark.parametrize(
    ("negatives", "options", "message"),
    [
        (LISTS + 1, {}, "got 20; subtract 1 if yours start at 1"),
        ({"user": ["a"], "item": [20]}, {}, r"from 0 to 19 \(items - 1\), got 20 in 1 row"),
        ({"user": ["a"], "item": [None]}, {}, "got no value in 1 row"),
        ({"user": ["a"], "film": [1]}, {}, "has no column 'item'"),
        (LISTS + 0.5, {}, "whole numbers, got 0.5 at position 1"),
        ([1, 2, 3], {}, "got a list whose rows are no lists"),
        (np.zeros((0, 5), int), {}, "at least one item, got none"),
        (LISTS, {"exclude": np.zeros((4, 20))}, "sparse matrix of users x items"),
        (LISTS, {"exclude": scipy.sparse.csr_array((3, 20))}, "got 3; .* exclude.users"),
    ],
)
def test_bad_input_gets_one_message(negatives, options, message):
    with pytest.raises(InputError, match=message):
        unsample.audit(negatives, **{"items": 20} | options)
