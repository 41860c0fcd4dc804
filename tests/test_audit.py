"""`audit`: what it counts, what it says, what it refuses, and that it is not easily alarmed."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import unsample
from tests.draws import DEFECTS, Sampler, audits
from unsample.confidence import DrawnLists, holm
from unsample.errors import InputError, UnsampleWarning
from unsample.evidence import ListCounts, Negatives, overlaps
from unsample.evidence._negatives import _target_keys


def _table(lists, targets=None):
    rows = [(f"u{user}", item, 0) for user, row in enumerate(lists) for item in row]
    if targets is not None:
        rows += [(f"u{user}", item, 1) for user, item in enumerate(targets)]
    return rows


# -- counting ------------------------------------------------------------------------------------


def test_pairs_of_lists_and_items_need_64_bits():
    """Numpy's own whole numbers have 32 in a browser, where `make web-test` runs this."""
    items = 2**31 - 1
    drawn = [np.array([0, items - 5]), np.array([3]), np.array([items - 4])]
    negatives = Negatives.of_lists(drawn, items=items, targets=np.array([1, 2, 3]))
    whole = slice(0, 3)
    expected = [0, items - 5, items + 3, 3 * items - 4]
    assert negatives.keys(whole).tolist() == expected
    assert _target_keys(negatives, whole).tolist() == [1, items + 2, 2 * items + 3]


def test_lists_are_counted_as_loops_count_them(monkeypatch):
    monkeypatch.setattr("unsample.evidence._negatives._BLOCK", 50)
    rng = np.random.default_rng(0)
    lists = [rng.integers(30, size=rng.integers(5, 12)) for _ in range(40)]
    lists += [lists[3][::-1], lists[5]]
    targets = rng.integers(30, size=len(lists))
    seen = rng.random((len(lists), 30)) < 0.2
    held = replace(
        Negatives.of_lists(lists, items=30, targets=targets),
        exclude=scipy.sparse.csr_array(seen * 1.0),
    )
    found = ListCounts.of(held)
    assert found.repeats.tolist() == [len(row) - len(set(row.tolist())) for row in lists]
    assert found.pairs.tolist() == [
        sum(a == b for i, a in enumerate(row) for b in row[:i]) for row in lists
    ]
    assert found.seen.tolist() == [int(seen[t, row].sum()) for t, row in enumerate(lists)]
    assert found.targets.tolist() == [
        int((row == target).sum()) for row, target in zip(lists, targets, strict=True)
    ]
    assert found.same[-2:].tolist() == [3, 5]
    every = np.concatenate(lists)
    assert (held.count() == np.bincount(every, minlength=30)).all()
    once = np.concatenate(lists[:-2])
    assert (held.count(found.first) == np.bincount(once, minlength=30)).all()
    shared = overlaps(held, np.array([0, 1]), np.array([2, 3]))
    assert shared[1, 0] == len(set(lists[1].tolist()) & set(lists[2].tolist()))


@pytest.mark.parametrize("replacement", [True, False])
def test_moments_of_coincidences_are_those_of_simulation(replacement):
    rng = np.random.default_rng(1)
    values = []
    for _ in range(2000):
        rows = [rng.choice(12, 5, replace=replacement) for _ in range(6)]
        held = Negatives.of_lists(np.array(rows), items=12)
        counts = ListCounts.of(held)
        lists = DrawnLists.of(held, counts, np.ones(6, bool), seen_out=False, targets_out=False)
        tested = lists.uniformity
        assert tested.value == pytest.approx(lists.coincidences)
        values.append(tested.value)
    assert tested.expected == pytest.approx(15 * 25 / 12)
    error = np.std(values) / np.sqrt(len(values))
    assert np.mean(values) == pytest.approx(tested.expected, abs=4 * error)
    alone = 25 / 12 * ((11 / 12) if replacement else (7 / 12) * (7 / 11))
    assert np.var(values) == pytest.approx(15 * alone, rel=0.12)


def test_holm_corrects_step_by_step():
    assert holm([0.01, 0.04, 0.02]) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


# -- good and bad negatives ----------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("seen", [True, False])
def test_good_negatives_are_not_accused(replacement, seen):
    sampler = Sampler(lists=100, sampled=20, items=300, replacement=replacement, seen=seen)
    found = [sampler.wrong(result) for result in audits(sampler, 25, seed=0)]
    assert sum(map(bool, found)) <= 3


@pytest.mark.parametrize("defect", DEFECTS)
def test_bad_negatives_are_found_out(defect):
    make, question, answer = DEFECTS[defect]
    result = unsample.audit(**make(np.random.default_rng(0)))
    assert result[question].answer == answer
    assert result.warnings
    assert result[question].sentence in str(result)


@pytest.mark.parametrize("replacement", [True, False])
def test_the_exponent_of_popularity_is_found(replacement):
    sampler = Sampler(replacement=replacement, seen=True, exponent=0.75)
    (result,) = audits(sampler, 1, seed=4)
    found = result["popularity"]
    assert result.law == "popularity"
    assert found.low < 0.75 < found.high
    assert found.high - found.low < 0.1
    assert result.call is None
    assert "how many items do" in result.advice


@pytest.mark.parametrize("replacement", [True, False])
def test_stated_probabilities_are_held_against_the_draws(replacement):
    sampler = Sampler(replacement=replacement, seen=True, exponent=0.75)
    given = sampler.draw(np.random.default_rng(1))
    right = given.pop("popularity") ** 0.75
    good = unsample.audit(**given, probabilities=right / right.sum())
    assert (good.law, good["probabilities"].answer) == ("stated", "fit")
    assert "probabilities given" in str(good)
    assert good.call is None
    wrong = right**1.2
    bad = unsample.audit(**given, probabilities=wrong / wrong.sum())
    assert (bad.law == "stated", bad["probabilities"].answer) == (False, "contradicted")
    assert "off by" in bad["probabilities"].sentence


def test_draws_of_items_without_popularity_are_no_law_of_it():
    rng = np.random.default_rng(0)
    popularity = np.floor(10 * rng.pareto(1.2, 400))
    chance = (popularity + 1.0) / (popularity + 1.0).sum()
    lists = rng.choice(400, (300, 30), p=chance)
    result = unsample.audit(lists, items=400, popularity=popularity)
    assert result.law == "other"
    assert "items without popularity" in result["popularity"].sentence


# -- the call that fits --------------------------------------------------------------------------


def test_the_call_says_what_was_found():
    rng = np.random.default_rng(0)
    sampler = Sampler(seen=True, replacement=False)
    result = unsample.audit(**sampler.draw(rng))
    assert result.call == (
        "unsample.estimate(ranks, items=600 - seen, sampled=30, replacement=False, "
        'candidates="unseen")'
    )
    seen = scipy.sparse.csr_array((rng.random((300, 600)) < 0.1) * 1.0)
    rows = rng.integers(600, size=(300, 30))
    kept = unsample.audit(rows, items=600, exclude=seen)
    assert kept["seen items"].answer == "kept"
    assert kept.call == 'unsample.estimate(ranks, items=600, sampled=30, candidates="all")'
    ragged = unsample.audit([row[: 20 + t % 9] for t, row in enumerate(rows)], items=600)
    assert ragged["sizes"].answer == "different"
    assert "sampled=sizes" in ragged.call
    assert ragged.sampled == (20, 28)
    single = unsample.audit(rows[:1], items=600)
    assert (single.law, single["uniform"].answer) == ("unknown", "cannot tell")


def test_items_that_users_have_seen_are_suspected_where_they_are_not_given():
    given = Sampler(seen=True).draw(np.random.default_rng(0))
    del given["exclude"]
    result = unsample.audit(**given)
    assert (result.law, result["popularity"].answer) == ("other", "avoided")
    assert "give exclude" in result["popularity"].sentence
    assert result.advice.startswith("Give exclude")


@pytest.mark.realdata
def test_published_negatives_of_ml_1m_are_uniform_but_for_their_targets():
    """156 lists hold their own target, as is known of this file."""
    from unsample.lab.datasets import leave_published_out

    split = leave_published_out("ml-1m", download=False)
    train = split.train.matrix()
    given = {"items": train.shape[1], "users": split.target_user, "targets": split.target_item}
    result = unsample.audit(split.negatives, exclude=train, **given)
    answers = {finding.question: finding.answer for finding in result.findings}
    assert result.law == "uniform"
    assert result["targets"].value == 156
    assert abs(result["popularity"].value) < 0.002
    assert answers["replacement"] == "without"
    assert answers["seen items"] == "left out"
    assert [each.question for each in result.findings if each.concern] == ["targets"]
    popularity = np.asarray(train.sum(axis=0)).reshape(-1)
    blind = unsample.audit(split.negatives, items=train.shape[1], popularity=popularity)
    assert blind["popularity"].answer == "avoided"
    assert blind["popularity"].value == pytest.approx(-0.028, abs=0.002)


def test_items_that_are_never_drawn_may_be_no_candidates():
    result = unsample.audit(np.random.default_rng(0).integers(300, size=(300, 30)), items=600)
    assert (result.law, result["uniform"].answer) == ("other", "among some")
    assert "300 seem to be candidates" in result["never drawn"].sentence
    assert result.call is None
    assert "items=300" in result.advice


def test_one_negative_for_each_target_is_enough_to_audit():
    rng = np.random.default_rng(0)
    good = unsample.audit(rng.integers(50, size=(2000, 1)), items=50)
    assert (good.law, good["shared lists"].answer) == ("uniform", "own")
    assert not good.warnings
    bad = unsample.audit(rng.integers(50, size=(2000, 2)).max(axis=1, keepdims=True), items=50)
    assert (bad.law, bad["item numbers"].answer) == ("other", "high")


def test_lists_of_all_candidates_need_no_estimate():
    targets = np.arange(12) % 5
    lists = [np.delete(np.arange(40), target) for target in targets]
    result = unsample.audit(lists, items=40, targets=targets)
    assert result["uniform"].sentence.startswith("Each list holds all")
    assert result.call == "unsample.exact(ranks, items=40)"
    assert not result.warnings


@pytest.mark.parametrize("how", ["own", "seen", "one pool", "batches", "by user", "ragged"])
def test_the_call_can_be_made(how):
    rng = np.random.default_rng(0)
    given = {
        "own": Sampler().draw,
        "seen": Sampler(seen=True, replacement=False).draw,
        "one pool": DEFECTS["one pool"][0],
        "batches": DEFECTS["batches"][0],
        "by user": DEFECTS["a list for each user"][0],
        "ragged": lambda rng: {
            "negatives": [rng.integers(600, size=20 + t % 9) for t in range(300)],
            "items": 600,
        },
    }[how](rng)
    result = unsample.audit(**given)
    seen = np.zeros(300, dtype=int)
    if "exclude" in given:
        seen = np.diff(given["exclude"].indptr)
    names = {
        "unsample": unsample,
        "ranks": rng.integers(1, 20, size=300),
        "seen": seen,
        "sizes": [len(row) for row in given["negatives"]],
        "pools": [str(np.sort(row)) for row in given["negatives"]],
        "users": given.get("users"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)  # one pool leaves intervals wide
        found = eval(result.call, names)
    assert isinstance(found, unsample.Estimates)
    assert (how in ("own", "seen", "ragged")) == (found.counts.pools is None)


def test_findings_are_found_by_their_question():
    result = unsample.audit(np.arange(20).reshape(4, 5), items=20)
    assert "sizes" in result
    assert "colour" not in result
    assert result["sizes"].certain
    with pytest.raises(KeyError, match="there are sizes, replacement"):
        result["colour"]


def test_same_seed_same_numbers():
    lists = np.random.default_rng(0).integers(500, size=(3000, 10))
    assert unsample.audit(lists, items=500).to_dict() == unsample.audit(lists, items=500).to_dict()


# -- doors ---------------------------------------------------------------------------------------


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
    frame = polars.DataFrame(_table(lists, targets), ["user", "film", "target"], orient="row")
    seen = polars.DataFrame(_table(train), ["user", "film", "target"], orient="row")
    named = {"item": "film"}
    assert unsample.audit(frame, items=80, exclude=seen, columns=named).to_dict() == expected
    frame.write_csv(tmp_path / "negatives.csv")
    seen.drop("target").write_csv(tmp_path / "train.csv")
    code, out, _ = run(
        "audit", tmp_path / "negatives.csv", "--items", 80, "--exclude", tmp_path / "train.csv",
        "--column", "item=film", "--json", "-q",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected))
    numbered = frame.with_columns(user=polars.col("user").str.slice(1).cast(polars.Int64))
    by_row = unsample.audit(
        numbered, items=80, exclude=scipy.sparse.csr_array(matrix), columns=named
    )
    assert by_row.to_dict() == expected
    with pytest.raises(InputError, match="rows of exclude where that is a matrix"):
        unsample.audit(frame, items=80, exclude=scipy.sparse.csr_array(matrix), columns=named)
    code, out, _ = run(
        "audit", tmp_path / "negatives.csv", "--items", 80, "--popularity",
        tmp_path / "train.csv", "--column", "item=film", "--json", "-q",
    )  # fmt: skip
    assert "popularity" in [row["question"] for row in json.loads(out)["findings"]]


def test_lists_of_one_user_stand_together_by_the_users_given():
    rng = np.random.default_rng(0)
    users = np.repeat(["a", "b", "c", "d", "e", "f"], 4)
    own = {name: rng.integers(200, size=20) for name in "abcdef"}
    result = unsample.audit([own[name] for name in users], items=200, users=users)
    assert result["shared lists"].answer == "by user"
    assert "pools=users" in result.call


# -- bad input -----------------------------------------------------------------------------------

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
        (LISTS, {"users": [1]}, "user of each of the 4 lists"),
        (LISTS, {"popularity": [1.0]}, r"each of the 20 items, got shape \(1,\)"),
        (LISTS, {"popularity": [-1.0] * 20}, "at least 0, got -1.0 for item 0"),
        (LISTS, {"popularity": np.zeros(20)}, "zeros alone"),
        (LISTS, {"popularity": ["a"] * 20}, "popularity must be numbers"),
        (LISTS, {"probabilities": [1.0]}, r"each of the 20 items, got shape \(1,\)"),
        (LISTS, {"probabilities": [0.04] * 20}, "sum to 1, got 0.8; divide them by their sum"),
        (LISTS, {"probabilities": [-1.0] + [0.1] * 19}, "at least 0, got -1.0 for item 0"),
        (LISTS, {"probabilities": ["a"] * 20}, "probabilities must be numbers"),
        (
            LISTS,
            {"probabilities": [0.0] * 3 + [1 / 17] * 17},
            "got 0 for item 0, drawn 1 times \\(3 such items\\)",
        ),
        (LISTS, {"exclude": np.zeros((4, 20))}, "sparse matrix of users x items"),
        (LISTS, {"exclude": scipy.sparse.csr_array((4, 19))}, "20 columns"),
        (LISTS, {"exclude": scipy.sparse.csr_array((3, 20))}, "rows of exclude, 0 to 2"),
        (LISTS, {"level": 2}, "level"),
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


def test_tables_name_users_by_themselves(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": [1, 1, 2], "item": [3, 4, 5]})
    with pytest.raises(InputError, match="targets must be a column 'target'"):
        unsample.audit(frame, items=9, targets=[1, 2])
    with pytest.raises(InputError, match="exclude must name users of negatives"):
        unsample.audit(frame, items=9, exclude=pandas.DataFrame({"user": [7], "item": [1]}))
