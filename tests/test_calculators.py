"""The calculators of the web page, before any browser: words, fields, the command's numbers."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

import unsample
from unsample.errors import InputError
from unsample.show import as_html
from unsample.show._calculators import Calculator, Fields

ROOM = {"sampled": "30", "items": "400", "candidates": "unseen"}
PAPER = {"numbers": "HR@10 = 0.71, HR@1 = 0.226", "users": "1500", **ROOM}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two models on the same users, and both in one file."""
    folder, rng = tmp_path_factory.mktemp("ranks"), np.random.default_rng(3)
    law, rows = unsample.law.Law(400, 30), []
    for name, shape in (("good", 0.3), ("bad", 1.5)):
        full = np.ceil(400 * rng.beta(shape, 2.0, size=800)).astype(int).clip(1, 400)
        ranks = law.draw(full, rng=5)
        lines = [f"{user},{rank}" for user, rank in enumerate(ranks)]
        (folder / f"{name}.csv").write_text("user,rank\n" + "\n".join(lines))
        rows += [f"{name},{line}" for line in lines]
    (folder / "both.csv").write_text("model,user,rank\n" + "\n".join(rows))
    return folder


def ask(calculator, files=(), **fields):
    held = Calculator()
    question = {"calculator": calculator, "fields": fields, "files": [str(file) for file in files]}
    return held, json.loads(held.answer(json.dumps(question)))


def answer(*given, **fields):
    held, found = ask(*given, **fields)
    assert "error" not in found, found
    return held, found["answer"]


# -- answers --------------------------------------------------------------------------------------


def test_a_printed_number_is_answered_with_the_numbers_of_published():
    held, found = answer("published", **PAPER)
    result = unsample.published(
        {"HR@10": "0.71", "HR@1": "0.226"},
        items=400,
        sampled=30,
        users=1500,
        metrics=["HR@10", "HR@1"],
        candidates="unseen",
    )
    assert held.numbers() == result.to_json()
    assert held.report() == as_html(result)
    entry = result["HR@10"]
    low, high = entry.interval()
    first = found["sentences"][0]
    assert first.startswith("HR@10 = 0.71 was measured against 30 sampled items; on all 400 items")
    for value in (entry.value, low, high):
        assert f"{value:.4f}" in first
    assert [row[0] for row in found["terms"]] == ["95 % interval", "bounds"]
    rows = found["chart"]["views"][0]["rows"]
    assert [row["label"] for row in rows] == [
        "HR@10, as printed",
        "HR@10, all items",
        "HR@1, as printed",
        "HR@1, all items",
    ]
    assert rows[0]["value"] == 0.71
    assert rows[1]["value"] == pytest.approx(entry.value, rel=1e-5)


def test_other_metrics_than_the_printed_ones_may_be_asked_for():
    _, found = answer("published", **PAPER, metrics="NDCG@20 Recall@50, AP(norm=min)@10")
    assert found["sentences"][0].startswith("On all 400 items NDCG@20 is about")
    labels = [row["label"] for row in found["chart"]["views"][0]["rows"]]
    assert labels[:2] == ["HR@10, as printed", "HR@1, as printed"]
    assert len(labels) == 5


def test_how_much_too_high_is_said_only_where_it_is_certain():
    _, found = answer("published", **PAPER)
    high = float(found["terms"][0][1].split(" to ")[1])
    assert f"at least {0.71 / high:.2g} times too high" in " ".join(found["sentences"])
    whole = {**PAPER, "sampled": "399", "numbers": "HR@10 = 0.710"}
    assert "too high" not in " ".join(answer("published", **whole)[1]["sentences"])


def test_a_plan_is_that_of_the_command():
    given = {"items": "400", "users": "500", "budget": "20,000"}
    held, found = answer("plan", **given, metrics="NDCG@10", error="5 %")
    result = unsample.plan(items=400, users=500, budget=20_000, error=0.05)
    assert held.numbers() == result.to_json()
    assert found["sentences"] == [result.recommendation]
    assert found["chart"]["kind"] == "lines"


def test_one_file_is_estimated_and_several_are_compared(files):
    held, found = answer("ranks", [files / "good.csv"], **ROOM, metrics="Recall@20")
    result = json.loads(held.numbers())
    assert result["estimates"][0]["metric"] == "Recall@20"
    assert f"{result['estimates'][0]['value']:.4f}" in found["sentences"][0]
    two, several = answer("ranks", [files / "bad.csv", files / "good.csv"], **ROOM)
    one, column = answer("ranks", [files / "both.csv"], **ROOM, by="model")
    assert several["sentences"] == column["sentences"]
    assert two.numbers() == one.numbers()
    assert several["chart"]["identity"] == "differences"
    assert "good" in several["sentences"][0]


def test_the_command_that_is_shown_gives_the_same(files, run):
    for calculator, chosen, fields in (
        ("published", [], PAPER),
        ("plan", [], {"items": "400", "users": "500", "difference": "80 %"}),
        ("ranks", [files / "good.csv"], {**ROOM, "metrics": "Recall@20"}),
        ("ranks", [files / "both.csv"], {**ROOM, "by": "model"}),
        ("ranks", [files / "good.csv", files / "bad.csv"], ROOM),
    ):
        held, found = answer(calculator, chosen, **fields)
        code, out, _ = run(*shlex.split(found["command"]), "--json")
        assert code == 0
        printed, mine = json.loads(out), json.loads(held.numbers())
        assert printed in (mine, {**mine, "group": None}), found["command"]


# -- refusals -------------------------------------------------------------------------------------

WRONG = {
    "published": [
        ({"numbers": ""}, "numbers", "numbers must be given"),
        ({"numbers": "0.71"}, "numbers", "numbers must be such as HR@10 = 0.71"),
        ({"numbers": "HR@10 = 0.7, HR@10 = 0.8"}, "numbers", "each metric once"),
        ({"numbers": "HR@10 = 71 %, HR@1 = 0.2"}, "numbers", "all have a % sign or none"),
        ({"numbers": "foo@10 = 0.7"}, "numbers", "metric must be one of"),
        ({"numbers": "HR@10 = high"}, "numbers", "HR@10 must be a number as printed"),
        ({"numbers": "HR@1 = 0.9, HR@10 = 0.3"}, "numbers", "contradict each other"),
        ({"numbers": "HR@200 = 0.9"}, "numbers", "K of HR@200 must be at most sampled"),
        ({"items": "many"}, "items", "items must be an integer of at least 2"),
        ({"items": "-3706"}, "items", "items must be an integer of at least 2"),
        ({"sampled": "4000"}, "sampled", "sampled must be at most items"),
        ({"users": "6e3"}, "users", "users must be an integer"),
        ({"candidates": "some"}, "candidates", "candidates must be one of unseen, all"),
        ({"metrics": "Recal@10"}, "metrics", "did you mean Recall"),
    ],
    "plan": [
        ({"items": ""}, "items", "items must be given"),
        ({"error": "150 %"}, "error", "error must be a number in (0, 1)"),
        ({"error": "small"}, "error", "got 'small'"),
        ({"budget": "10"}, "budget", "budget must be an integer of at least 1000"),
        ({"odds": "-1"}, "odds", "odds must be a finite number greater than 0"),
        ({"metrics": "NDCG@10, NDCG@20"}, "metrics", "metrics must be one metric to plan for"),
        ({"difference": "much"}, "difference", "difference must be a finite number greater than 0"),
        ({"difference": "5 %", "error": "5 %"}, "error", "error must be left out"),
    ],
}


@pytest.mark.parametrize(
    ("calculator", "wrong", "field", "text"),
    [(name, *case) for name, cases in WRONG.items() for case in cases],
)
def test_what_is_wrong_is_said_at_its_field(calculator, wrong, field, text):
    right = {"published": PAPER, "plan": {"items": "400", "users": "500"}}[calculator]
    _, found = ask(calculator, **{**right, **wrong})
    assert found["error"]["field"] == field
    assert text in found["error"]["message"]
    assert "\n" not in found["error"]["message"]


def test_files_that_are_wrong_say_so(files, tmp_path):
    good, both = files / "good.csv", files / "both.csv"
    other = tmp_path / "good.csv"
    other.write_text(good.read_text())
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "words.csv").write_text("user,place\n1,2\n")
    for chosen, fields, field, text in (
        ([], ROOM, "files", "files must be at least one table"),
        ([tmp_path / "empty.csv"], ROOM, "files", "empty"),
        ([tmp_path / "words.csv"], ROOM, "files", "rank"),
        ([good, other], ROOM, "files", "files must differ in their names"),
        ([good, both], {**ROOM, "by": "model"}, "files", "has no column"),
        ([good], {**ROOM, "sampled": "5"}, "files", "from 1 to 6"),
        ([good], {**ROOM, "items": ""}, "items", "items"),
        ([good], {**ROOM, "metrics": "foo"}, "metrics", "metric must be one of"),
    ):
        _, found = ask("ranks", chosen, **fields)
        assert found["error"]["field"] == field, found
        assert text in found["error"]["message"]


# -- what is typed --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["3706", "3,706", "3 706", "3'706", "3_706", " 3\u202f706 "])
def test_thousands_may_be_set_apart(text):
    assert Fields({"items": text}).whole("items", "") == 3706


def test_numbers_are_read_as_papers_print_them():
    assert Fields({"numbers": "HR@10 = 0.710; NDCG@10: 0.4,MRR 0.3"}).numbers() == (
        {"HR@10": "0.710", "NDCG@10": "0.4", "MRR": "0.3"},
        False,
    )
    assert Fields({"numbers": "HR@10=71.0 %,\nHR@1 22.6%"}).numbers() == (
        {"HR@10": "71.0", "HR@1": "22.6"},
        True,
    )
    bracketed = {"numbers": "NDCG(gain=exp)@10 = 0.4, AP(norm=min)@5=0.1"}
    assert Fields(bracketed).numbers()[0] == {"NDCG(gain=exp)@10": "0.4", "AP(norm=min)@5": "0.1"}
    for wrong in ("HR@10 = 0.7 0.8", "= 0.7", "HR@10 =", "HR@10", "%"):
        with pytest.raises(InputError, match="such as"):
            Fields({"numbers": wrong}).numbers()
