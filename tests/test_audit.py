"""`audit`: what it counts, what it says, what it refuses, and that it is not easily alarmed."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse

import unsample
from tests.draws import DEFECTS, Sampler, audits
from unsample.answers import _audit
from unsample.errors import InputError, UnsampleWarning


def _lists(rows, items, **known):
    return _audit._read(rows, items, known.get("targets"), known.get("exclude"), None)


# -- counting ------------------------------------------------------------------------------------


def test_lists_are_counted_as_loops_count_them():
    rng = np.random.default_rng(0)
    rows = [rng.integers(30, size=rng.integers(5, 12)) for _ in range(40)]
    rows += [rows[3][::-1], rows[5]]
    targets = rng.integers(30, size=len(rows))
    seen = rng.random((len(rows), 30)) < 0.2
    found = _lists(rows, 30, targets=targets, exclude=scipy.sparse.csr_array(3.0 * seen))
    assert found.sizes.tolist() == [len(row) for row in rows]
    assert (found.counts == np.bincount(np.concatenate(rows), minlength=30)).all()
    equal = [sum(a == b for i, a in enumerate(row) for b in row[:i]) for row in rows]
    assert found.pairs.tolist() == equal
    assert found.among(found.seen).tolist() == [
        int(seen[t, row].sum()) for t, row in enumerate(rows)
    ]
    own = [int((row == target).sum()) for row, target in zip(rows, targets, strict=True)]
    assert found.among(found.own).tolist() == own
    between = [
        np.equal.outer(a, b).mean() * len(a) * len(b) for i, a in enumerate(rows) for b in rows[:i]
    ]
    pairs = [len(a) * len(b) for i, a in enumerate(rows) for b in rows[:i]]
    assert found.coincidences() == pytest.approx(sum(between) / sum(pairs))
    once = found.distinct()
    assert (len(once.sizes), found.shared().value) == (40, 2.0)
    assert once.uniform().value == pytest.approx(once.coincidences() * _pairs_of(once.sizes))


def _pairs_of(sizes):
    return (sizes.sum() ** 2 - (sizes**2).sum()) / 2


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("lists", "sampled", "items"), [(6, 5, 12), (3, 5, 12), (10, 8, 40)])
def test_moments_of_coincidences_are_those_of_simulation(
    replacement, lists, sampled, items, monkeypatch
):
    given, right = [], _audit.two_sided
    monkeypatch.setattr(_audit, "two_sided", lambda *a: given.append(a) or right(*a))
    rng = np.random.default_rng(1)
    tested = [
        _lists([rng.choice(items, sampled, replace=replacement) for _ in range(lists)], items)
        for _ in range(1500)
    ]
    p_values = np.array([each.uniform().p_value for each in tested])
    values = np.array([row[0] for row in given])
    # Lists with replacement that happen to have no repeats are taken for those without.
    _, mean, variance, third = max(given, key=lambda row: row[2])
    assert mean == pytest.approx(lists * (lists - 1) / 2 * sampled**2 / items)
    error = np.sqrt(variance / len(values))
    assert values.mean() == pytest.approx(mean, abs=4 * error)
    assert values.var() == pytest.approx(variance, rel=0.12)
    skew = ((values - mean) ** 3).mean() / variance**1.5
    assert skew == pytest.approx(third / variance**1.5, abs=0.3)
    assert (p_values < 0.05).mean() < 0.055


def test_gamma_law_lies_between_those_of_poisson_and_chi_square():
    from scipy import stats

    few = 2.0 * stats.poisson.sf(9, 3.0)
    assert _audit.two_sided(10.0, 3.0, 3.0, 3.0) == pytest.approx(few, rel=0.4)
    many = 2.0 * stats.chi2.sf(130.5, 100)
    assert _audit.two_sided(131.0, 100.0, 200.0, 800.0) == pytest.approx(many, rel=0.01)


# -- good and bad negatives ----------------------------------------------------------------------


def _accused(sampler, trials=40):
    return sum(bool(sampler.wrong(result)) for result in audits(sampler, trials, seed=0))


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("seen", [True, False])
def test_good_negatives_are_not_accused(replacement, seen, monkeypatch):
    sampler = Sampler(lists=100, sampled=20, items=300, replacement=replacement, seen=seen)
    assert _accused(sampler) <= 5
    right = _audit.two_sided
    monkeypatch.setattr(_audit, "two_sided", lambda v, m, var, t: right(v, m, 0.2 * var, t))
    assert _accused(sampler) > 5


@pytest.mark.parametrize("defect", DEFECTS)
def test_bad_negatives_are_found_out(defect):
    make, question, answer = DEFECTS[defect]
    result = unsample.audit(**make(np.random.default_rng(0)))
    assert result[question].answer == answer
    assert result[question].sentence in result.warnings
    assert result[question].sentence in str(result)
    if answer == "no":
        assert (result.law, result.call) == ("other", None)
        assert "unsample.evaluate" in result.advice


def test_what_differs_is_named():
    rng = np.random.default_rng(0)
    low = unsample.audit(**DEFECTS["lower half"][0](rng))
    assert "mean item number is 15" in low["uniform"].sentence
    assert "give exclude" in low.advice
    popular = unsample.audit(**Sampler(seen=True, exponent=0.75).draw(rng))
    assert "the mean popularity is" in popular["uniform"].sentence
    assert "give exclude" not in popular.advice
    rare = unsample.audit(**DEFECTS["a catalogue that is too large"][0](rng))
    assert "40 items were never drawn instead of 0" in rare["uniform"].sentence
    assert "are no candidates" in rare.advice


def test_few_draws_cannot_tell():
    rng = np.random.default_rng(0)
    one = unsample.audit(rng.integers(600, size=(1, 30)), items=600)
    assert (one.law, one["uniform"].answer) == ("unknown", "cannot tell")
    good = unsample.audit(rng.integers(50, size=(2000, 1)), items=50)
    assert good.law == "uniform"
    assert not good.warnings
    bad = unsample.audit(rng.integers(50, size=(2000, 2)).max(axis=1, keepdims=True), items=50)
    assert bad.law == "other"
    targets = np.arange(12) % 5
    whole = [np.delete(np.arange(40), target) for target in targets]
    assert not unsample.audit(whole, items=40, targets=targets).warnings
    assert unsample.audit(whole, items=40).law == "unknown"


@pytest.mark.realdata
def test_published_negatives_of_ml_1m_are_uniform_but_for_their_targets():
    """156 lists hold their own target, as is known of this file."""
    from unsample.lab.datasets import leave_published_out

    split = leave_published_out("ml-1m")
    train = split.train.matrix()
    result = unsample.audit(
        split.negatives, items=train.shape[1], targets=split.target_item,
        exclude=train[split.target_user],
    )  # fmt: skip
    assert (result.law, result["targets"].value) == ("uniform", 156)
    assert result["replacement"].answer == "without"
    assert result["seen items"].answer == "left out"
    assert [each.question for each in result.findings if each.concern] == ["targets"]


# -- the call that fits --------------------------------------------------------------------------


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
        (_kept, 'items=600, sampled=30, candidates="all"'),
        (
            Sampler(seen=True, replacement=False).draw,
            'items=600 - seen, sampled=30, replacement=False, candidates="unseen"',
        ),
        (
            DEFECTS["one list"][0],
            'items=600, sampled=30, replacement=False, negatives="shared"',
        ),
        (DEFECTS["batches"][0], "items=600, sampled=30, replacement=False, pools=pools"),
    ],
)
def test_the_call_can_be_made(make, options):
    rng = np.random.default_rng(0)
    given = make(rng)
    result = unsample.audit(**given)
    if "one list" not in str(result):  # which may be too short to tell
        assert result.call == f"unsample.estimate(ranks, {options})"
    names = {
        "unsample": unsample,
        "ranks": rng.integers(1, 20, size=300),
        "seen": np.diff(given["exclude"].indptr) if "exclude" in given else None,
        "sizes": [len(row) for row in given["negatives"]],
        "pools": [str(np.sort(row)) for row in given["negatives"]],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)  # one list leaves intervals wide
        assert isinstance(eval(result.call, names), unsample.Estimates)


# -- doors and bad input -------------------------------------------------------------------------


def _table(lists, targets=None):
    rows = [(f"u{user:02}", item, 0) for user, row in enumerate(lists) for item in row]
    return rows + [(f"u{user:02}", item, 1) for user, item in enumerate(targets or ())]


def test_tables_and_arrays_give_the_same(tmp_path, run):
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    lists, targets = rng.integers(80, size=(60, 9)), rng.integers(80, size=60)
    train = rng.integers(80, size=(60, 7))
    matrix = np.zeros((60, 80))
    matrix[np.arange(60)[:, None], train] = 1.0
    expected = unsample.audit(
        lists, items=80, targets=targets, exclude=scipy.sparse.csr_array(matrix)
    ).to_dict()
    columns = ["user", "film", "target"]
    frame = polars.DataFrame(_table(lists, targets.tolist()), columns, orient="row")
    seen = polars.DataFrame(_table(train), columns, orient="row").drop("target")
    named = {"item": "film"}
    assert unsample.audit(frame, items=80, exclude=seen, columns=named).to_dict() == expected
    frame.write_csv(tmp_path / "negatives.csv")
    seen.write_csv(tmp_path / "train.csv")
    code, out, _ = run(
        "audit", tmp_path / "negatives.csv", "--items", 80, "--exclude", tmp_path / "train.csv",
        "--column", "item=film", "--json", "-q",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected))
    for options, message in (
        ({"targets": targets}, "targets must be a column 'target'"),
        ({"exclude": scipy.sparse.csr_array(matrix)}, "exclude must be a table of user and item"),
        ({"exclude": {"user": ["x"], "film": [1]}}, "must name users .* such as 'u00'; .* is 'x'"),
    ):
        with pytest.raises(InputError, match=message):
            unsample.audit(frame, items=80, columns=named, **options)


LISTS = np.arange(20).reshape(4, 5)


@pytest.mark.parametrize(
    ("negatives", "options", "message"),
    [
        (LISTS - 1, {}, r"in 0\.\.19 \(20 items\), got -1 at position 1 of 20 \(1 such"),
        (LISTS + 1, {}, r"got 20 at position 20 of 20 .* subtract 1 if yours start at 1"),
        (LISTS + 0.5, {}, "whole numbers, got 0.5 at position 1"),
        (np.where(LISTS == 7, np.nan, LISTS), {}, "whole numbers, got nan at position 8"),
        (LISTS.astype(str), {}, "negatives must be integers, got values of type <U"),
        ([[1, 2], ["a"]], {}, "list 1 of negatives must be integers"),
        ([1, 2, 3], {}, "got one list of 3 values"),
        (np.zeros((2, 2, 2), int), {}, r"got an array of shape \(2, 2, 2\)"),
        (np.zeros((0, 5), int), {}, "at least one item, got none"),
        (5.0, {}, "got float"),
        (LISTS, {"items": 1}, "items must be an integer of at least 2"),
        (LISTS, {"targets": [1]}, "target of each of the 4 lists, got 1"),
        (LISTS, {"targets": [1, 2, 3, 20]}, "targets must hold item numbers"),
        (LISTS, {"exclude": np.zeros((4, 20))}, "sparse matrix of users x items"),
        (LISTS, {"exclude": scipy.sparse.csr_array((4, 19))}, "20 columns"),
        (
            LISTS,
            {"exclude": scipy.sparse.csr_array((3, 20))},
            r"each of the 4 lists, got 3; .*users",
        ),
    ],
)
def test_bad_input_gets_one_message(negatives, options, message):
    with pytest.raises(InputError, match=message):
        unsample.audit(negatives, **{"items": 20} | options)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("user,item\na,20\n", (), "item numbers from 0 to 19 (items - 1), got 20 in line 2"),
        ("user,item\na,-1\n", (), "got -1 in line 2; items are numbered from 0"),
        ("user,item\na,film\n", (), "column 'item' of"),
        ("user,item\na,\n", (), "got no value in line 2"),
        ("user,film\na,1\n", (), "has no column 'item'"),
        ("user,item\na,1\n", ("--column", "score=x"), "one of user, item, target"),
    ],
)
def test_bad_tables_get_one_message(text, options, message, tmp_path, run):
    path = tmp_path / "negatives.csv"
    path.write_text(text)
    code, out, err = run("audit", path, "--items", 20, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_findings_are_found_by_their_question():
    result = unsample.audit(LISTS, items=20)
    with pytest.raises(KeyError, match="there are uniform, replacement"):
        result["colour"]
