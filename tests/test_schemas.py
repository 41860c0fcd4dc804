"""What ``--json`` prints is what the schemas in the documentation say."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from unsample.lab.datasets import load_ranks
from unsample.law import draw_sampled_ranks

SCHEMAS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (Path(__file__).parent.parent / "docs" / "schemas").glob("*.json")
}
SMALL = ("--items", "400", "--sampled", "30", "-m", "Recall@50")
#: Schema -> the calls whose output it describes; files stand in the folder of the test.
CALLS = {
    "estimate": [
        ("estimate", "a.csv", *SMALL, "--resamples", "10"),
        ("estimate", "a.csv", *SMALL, "--candidates", "all", "--method", "naive", "--method", "bv"),
        ("estimate", "a.csv", *SMALL, "--resamples", "0"),
    ],
    "estimate-by": [("estimate", "both.csv", *SMALL, "--by", "model", "--resamples", "0")],
    "published": [
        ("published", "--items", "3706", "--sampled", "99", "--users", "6040", "HR@10=0.69")
    ],
    "compare": [
        ("compare", "a=a.csv", "b=b.csv", *SMALL),
        (
            *("published", "--items", "3706", "--users", "6040", "-m", "Recall@50"),
            *("A:99:HR@10=0.73", "B:100:HR@10=0.82,NDCG@10=0.59"),
        ),
    ],
    "plan": [("plan", "--items", "300", "--users", "400", "--repeats", "3")],
    "plan-compare": [
        (
            *("plan", "--items", "80", "--users", "150", "--repeats", "2", "-m", "Recall@5"),
            *("--compare", "60%", "--odds", "9"),
        )
    ],
    "audit": [
        ("audit", "negatives.csv", "--items", "60"),
        ("audit", "negatives.csv", "--items", "60", "--exclude", "train.csv"),
    ],
    "reproduce": [
        (
            *("reproduce", "--dataset", "ml-1m", "--recommender", "ease", "--recommender", "als"),
            *("--candidates", "all", "--estimator", "MLE", "--repeats", "2", "--workers", "1"),
        )
    ],
}
#: Verbs that write a page, too.
PAGES = ("estimate", "estimate-by", "published", "compare", "plan", "audit")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with rank files of two models, and the checked-in data sets."""
    truth = load_ranks("ml-1m", "ease").ranks[:500] % 400 + 1
    drawn = {
        name: draw_sampled_ranks(truth, items=400, sampled=30, rng=seed)
        for name, seed in (("a", 0), ("b", 1))
    }
    for name, ranks in drawn.items():
        text = "\n".join(["rank", *map(str, ranks)])
        (tmp_path / f"{name}.csv").write_text(text, encoding="ascii")
    rows = [f"{name},{rank}" for name, ranks in drawn.items() for rank in ranks]
    (tmp_path / "both.csv").write_text("\n".join(["model,rank", *rows]), encoding="ascii")
    lists = np.random.default_rng(0).integers(60, size=(2, 40, 8))
    for name, held in zip(("negatives", "train"), lists, strict=True):
        rows = [f"{user},{item}" for user, row in enumerate(held) for item in row]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,item", *rows]), encoding="ascii")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _validator(name):
    return jsonschema.Draft202012Validator(SCHEMAS[name])


def test_every_schema_is_a_schema_and_is_checked():
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert set(SCHEMAS) == set(CALLS)


def test_every_verb_that_prints_json_has_a_schema():
    from unsample.__main__ import application

    def with_json(command, path):
        for name, inner in getattr(command, "commands", {}).items():
            yield from with_json(inner, [*path, name])
        if any("--json" in option.opts for option in command.params):
            yield "-".join(path)

    assert set(with_json(application(whole=True), [])) <= set(SCHEMAS)


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name, calls in CALLS.items() for place in range(len(calls))],
)
def test_output_is_what_the_schema_says(run, folder, name, place):
    arguments = CALLS[name][place]
    with_page = place == 0 and name in PAGES
    if with_page:
        pytest.importorskip("jinja2")
        arguments += ("--html", "page.html")
    code, out, err = run(*arguments, "--json", "--quiet")
    assert (code, err) == (0, "")
    _validator(name).validate(json.loads(out))
    if with_page:
        assert 'class="interactive"' in (folder / "page.html").read_text(encoding="utf-8")


def test_a_schema_refuses_what_is_not_its_own(run, folder):
    """The schemas are tight: a missing key, a new one, or a value of another kind is found."""
    _, out, _ = run("estimate", "a.csv", *SMALL, "--resamples", "0", "--json", "--quiet")
    validator, whole = _validator("estimate"), json.loads(out)
    assert validator.is_valid(whole)
    for change in ({"users": "many"}, {"surprise": 1}, {"estimates": [{}]}):
        assert not validator.is_valid(whole | change)
    for key in whole:
        assert not validator.is_valid({name: value for name, value in whole.items() if name != key})
