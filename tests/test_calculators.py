"""The calculators of the web page without a browser: their answers are the library's."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import unsample
from unsample.show import as_html

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("calculators", ROOT / "web" / "calculators.py")
calculators = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(calculators)

DRAWN = {"sampled": "30", "items": "400", "candidates": "unseen"}
PAPER = {"numbers": "HR@10 = 0.71, HR@1 = 0.226", "users": "1,500", **DRAWN}


def ask(calculator, fields, files=()):
    question = {"calculator": calculator, "fields": fields, "files": list(files)}
    return json.loads(calculators.answer(json.dumps(question)))


def ranks(shape):
    full = np.ceil(400 * np.random.default_rng(3).beta(shape, 2.0, size=800)).clip(1, 400)
    return unsample.law.Law(400, 30).draw(full.astype(int), rng=5)


GOOD, BAD = ranks(0.3), ranks(1.5)


def table(**models):
    rows = [f"{name},u{at},{r}" for name, held in models.items() for at, r in enumerate(held)]
    return "\n".join(["model,user,rank", *rows])


def alone(held):
    return "\n".join(["user;rank", *(f"u{at};{rank}" for at, rank in enumerate(held))])


def test_a_printed_number_is_that_of_published():
    result = unsample.published(
        {"HR@10": "0.71", "HR@1": "0.226"},
        items=400,
        sampled=30,
        users=1500,
        metrics=["HR@10", "HR@1"],
        candidates="unseen",
    )
    found = ask("published", PAPER)
    assert found == {"page": as_html(result), "numbers": result.to_json()}
    high = result["HR@10"].interval()[1]
    assert f"HR@10 = 0.71 is at least {0.71 / high:.2g} times as high" in found["page"]
    percent = {**PAPER, "numbers": "HR@10 = 71 %; HR@1=22.6%"}
    assert ask("published", percent)["numbers"] == found["numbers"]


def test_a_plan_is_that_of_plan():
    found = ask("plan", {"items": "400", "users": "500", "budget": "20 000", "metrics": "NDCG@10"})
    assert found["numbers"] == unsample.plan(items=400, users=500, budget=20_000).to_json()
    difference = ask("plan", {"items": "400", "users": "500", "difference": "80 %"})
    expected = unsample.plan(items=400, users=500, difference="80 %")
    assert difference["numbers"] == expected.to_json()


def test_one_model_is_estimated_and_several_are_compared():
    options = {"items": 400, "sampled": 30, "candidates": "unseen", "metrics": ["Recall@20"]}
    fields, users = {**DRAWN, "metrics": "Recall@20"}, [f"u{at}" for at in range(800)]
    found = ask("ranks", fields, [["good.csv", alone(GOOD)]])
    assert found["numbers"] == unsample.estimate(GOOD, users=users, **options).to_json()
    files = ask("ranks", fields, [["good.csv", alone(GOOD)], ["bad.csv", alone(BAD)]])
    column = ask("ranks", fields, [["both.csv", table(good=GOOD, bad=BAD)]])
    assert files == column
    both = dict.fromkeys(("good", "bad"), users)
    expected = unsample.compare({"good": GOOD, "bad": BAD}, users=both, **options)
    assert files["numbers"] == expected.to_json()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"numbers": ""}, "numbers must be given, such as HR@10"),
        ({"numbers": "0.71"}, "numbers must be such as HR@10 = 0.710"),
        ({"items": "many"}, "items must be an integer of at least 2"),
        ({"metrics": "Recal@10"}, "did you mean Recall"),
    ],
)
def test_what_is_wrong_is_said(wrong, text):
    assert text in ask("published", {**PAPER, **wrong})["problem"]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ([], "files must be at least one table"),
        ([["a.csv", ""]], "a.csv must have a column rank, got none"),
        ([["a.csv", "rank\n"]], "got no row"),
        ([["a.csv", "rank\nfirst"]], "got 'first' in line 2"),
        ([["a.csv", "rank\n1"], ["a.tsv", "rank\n1"]], "files must differ in their names"),
    ],
)
def test_files_that_are_wrong_say_so(files, text):
    assert text in ask("ranks", DRAWN, files)["problem"]
