"""The calculators of the web page: their answers are the library's, and everyone can use it.

Tests in a browser need a copy of Pyodide, and are not among the default ones: ``pytest -m web``.
"""

from __future__ import annotations

import doctest
import functools
import http.server
import importlib.util
import inspect
import json
import math
import random
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

import unsample
from tests.browser import CONTRASTS, Tab, chromium
from tests.pages import EVIL
from unsample._rounding import rounded_down
from unsample.errors import UnsampleError
from unsample.report import as_html

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("calculators", ROOT / "web" / "calculators.py")
calculators = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(calculators)

DRAWN = {"sampled": "30", "items": "400", "protocol": "unseen"}
PAPER = {"numbers": "HR@10 = 0.71, HR@1 = 0.226", "users": "1,500", **DRAWN}


def ask(calculator, fields, files=()):
    question = {"calculator": calculator, "fields": fields, "files": list(files)}
    return json.loads(calculators.answer(json.dumps(question)))


def ranks(shape):
    full = np.ceil(400 * np.random.default_rng(3).beta(shape, 2.0, size=800)).clip(1, 400)
    return unsample.sampling.SamplingModel(400, 30).draw(full.astype(int), rng=5)


GOOD, BAD = ranks(0.3), ranks(1.5)


def alone(held):
    return "\n".join(["user,rank", *(f"u{at},{rank}" for at, rank in enumerate(held))])


def test_a_printed_number_is_that_of_published():
    result = unsample.published(
        {"HR@10": "0.71", "HR@1": "0.226"},
        items=400,
        sampled=30,
        users=1500,
        metrics=["HR@10", "HR@1"],
        protocol="unseen",
    )
    found = ask("published", PAPER)
    assert found == {"page": as_html(result), "numbers": result.to_json()}
    times = 0.71 / result["HR@10"].interval()[1]
    assert f"({rounded_down(times)} or more at 95 %, " in found["page"]
    percent = {**PAPER, "numbers": "HR@10 = 71 %; HR@1=22.6%"}
    assert ask("published", percent)["numbers"] == found["numbers"]


def test_a_plan_is_that_of_plan():
    found = ask("plan", {"items": "400", "users": "500", "budget": "20 000", "metrics": "NDCG@10"})
    assert found["numbers"] == unsample.plan(items=400, users=500, budget=20_000).to_json()


class Fields(HTMLParser):
    """What the fields of each form hold, and what stands in empty ones."""

    def __init__(self):
        super().__init__()
        self.form, self.values, self.placeholders = "", {}, {}
        self.area = ""
        self.feed((ROOT / "web" / "index.html").read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "form":
            self.form = found["id"]
            self.values[self.form], self.placeholders[self.form] = {}, {}
        elif tag == "input" and found.get("type") != "file":
            self.values[self.form][found["name"]] = found.get("value", "")
            if "placeholder" in found:
                self.placeholders[self.form][found["name"]] = found["placeholder"]
        elif tag == "textarea":
            self.area = found["name"]

    def handle_data(self, data):
        if self.area:
            self.values[self.form][self.area] = data.removeprefix("\n")
        self.area = ""


FIELDS = Fields()
#: Fields whose placeholder is the number that an empty one means; one more number is another.
DEFAULTS = {"error": "7 %", "recall": "0.12", "odds": "1"}


def test_an_empty_field_means_what_stands_in_it():
    """The guide's once said none, and meant odds of 10: 2.8 times as cheap, another design."""
    typed, stands = FIELDS.values["plan"], FIELDS.placeholders["plan"]
    assert {name for name, text in stands.items() if text[0].isdigit()} == set(DEFAULTS)
    empty = ask("plan", typed)["numbers"]
    assert empty == unsample.plan(items=3706, users=6040).to_json()
    for name, other in DEFAULTS.items():
        assert ask("plan", {**typed, name: stands[name]})["numbers"] == empty
        assert ask("plan", {**typed, name: other})["numbers"] != empty
    for name in stands.keys() - DEFAULTS.keys():
        assert stands[name] == "not set"
        assert inspect.signature(unsample.plan).parameters[name].default is None
    found = json.loads(empty)
    assert (found["difference"], found["odds"], found["error"]) == (None, 10.0, 0.05)
    page = ask("plan", typed)["page"]
    assert re.search(r"Odds of the guide</t[hd]>\s*<td[^>]*>10<", page)

    typed, stands = FIELDS.values["published"], FIELDS.placeholders["published"]
    assert stands == {"metrics": "those printed"}
    printed = ask("published", {**typed, "metrics": "HR@10, HR@1"})["numbers"]
    assert ask("published", typed)["numbers"] == printed
    assert FIELDS.placeholders["ranks"] == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20 000", 20_000),
        ("1,234,567.5", 1_234_567.5),
        ("6'040", 6040),
        ("5 %", 0.05),
        ("0.05", 0.05),
        ("0,05", "0,05"),
        ("1,5", "1,5"),
        ("0,125", "0,125"),
        ("1 2", "1 2"),
    ],
)
def test_numbers_are_read_as_they_are_meant_or_not_at_all(text, value):
    """A decimal comma was once taken out: odds of 1,5 were 15."""
    assert calculators.as_number(text) == value


def test_one_model_is_estimated_and_several_are_compared():
    options = {"items": 400, "sampled": 30, "protocol": "unseen", "metrics": ["Recall@20"]}
    fields, users = {**DRAWN, "metrics": "Recall@20"}, [f"u{at}" for at in range(800)]
    found = ask("ranks", fields, [["good.csv", alone(GOOD)]])
    assert found["numbers"] == unsample.estimate(GOOD, users=users, **options).to_json()
    both = {"good": GOOD, "bad": BAD}
    files = ask("ranks", fields, [["good.csv", alone(GOOD)], ["bad.csv", alone(BAD)]])
    rows = [f"{name},{u},{r}" for name in both for u, r in zip(users, both[name], strict=True)]
    column = "\n".join(["model,user,rank", *rows])
    assert files == ask("ranks", fields, [["both.csv", column]])
    expected = unsample.compare(both, users=dict.fromkeys(both, users), **options)
    assert files["numbers"] == expected.to_json()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("published", {**PAPER, "numbers": ""}), "numbers must be given, such as HR@10"),
        (
            ("published", {**PAPER, "numbers": "0.71"}),
            "numbers must be a metric and its value each, such as HR@10",
        ),
        (("published", {**PAPER, "items": "many"}), "items must be an integer of at least 2"),
        (("published", {**PAPER, "metrics": "NDCG10"}), "metrics: metric must be one of"),
        (("ranks", DRAWN, []), "files must be at least one table"),
        (("ranks", DRAWN, [["a.csv", ""]]), "'a.csv' is empty; a table starts with"),
        (("ranks", DRAWN, [["a.csv", "rank\n"]]), "'a.csv' has no rows"),
        (("ranks", DRAWN, [["a.csv", "rank\nfirst"]]), "got 'first' in 1 row (line 2)"),
        (
            ("ranks", DRAWN, [["a.csv", "Dataset,rank\none,1\none,3\ntwo,2"]]),
            "column 'Dataset' of 'a.csv' must have one value here, got 'one' and 'two'; drop the",
        ),
        (
            ("ranks", DRAWN, [["a.csv", "rank,seed,model\n1,1,A\n2,,A"]]),
            "column 'seed' of 'a.csv' must have one value here, got '' and '1'; drop the rows",
        ),
        (
            ("ranks", DRAWN, [["a.csv", "rank\n1"], ["a.tsv", "rank\n1"]]),
            "must differ in their names",
        ),
    ],
)
def test_what_is_wrong_is_said(call, text):
    assert text in ask(*call)["problem"]


# -- a pasted table -------------------------------------------------------------------------------

BOARD = {
    "EASE": {"HR@10": "0.710", "NDCG@10": "0.448"},
    "Pop": {"HR@10": "0.450"},
}
PASTED = "model,HR@10,NDCG@10\nEASE,0.710,0.448\nPop,0.450,-\n"
TABLE = {"table": PASTED, "users": "1,500", **DRAWN}


def test_examples_of_the_calculators_hold():
    assert doctest.testmod(calculators) == (0, 6)


@pytest.mark.parametrize(
    "text",
    [
        PASTED,
        "\ufeffModel, hr@10 ,NDCG@10\r\n\r\nEASE,0.710, 0.448\r\nPop,0.450,\r\n,,\r\n",
        '"model","HR@10","NDCG@10"\n"EASE","0.710","0.448"\n"Pop","0,450",\N{EM DASH}',
        "\tHR@10\tNDCG@10\t\nEASE\t0.710\t0.448\t\nPop\t0.450\t",
        'model\t"HR\n@10"\tNDCG@10\nEASE\t0,710\t0,448\nPop\t0,450\t\n',
        "model;HR@10;NDCG@10\nEASE;0,710;0,448\nPop;0,450;-",
        (
            "| model | HR@10 | NDCG@10 |\n|:--|--:|---|\n| EASE | **0.710** | *0.448* |\n"
            "| Pop | 0.450 | - |"
        ),
        "model | HR@10 | NDCG@10\n--- | --- | ---\nEASE | 0.710 | 0.448\nPop | 0.450 | \N{EN DASH}",
        (
            "+---+---+---+\n| | HR@10 | NDCG@10 |\n+---+---+---+\n| EASE | 0.710 | 0.448 |\n"
            "| Pop | 0.450 | |\n+---+---+---+"
        ),
        "model\tHR@10 (%)\tNDCG@10\nEASE\t71.0\t44.8%\nPop\t45.0 %\t",
        "NDCG@10;HR@10%;model\n44,8 %;71,0;EASE\n-;45,0;Pop",
        (
            "model,metric,value\nEASE,HR@10,0.710\nPop,HR@10 (%),45.0\nEASE,NDCG@10,0.448\n"
            "Pop,NDCG@10,-"
        ),
        (
            "dataset,model,items,sampled,users,HR@10,NDCG@10\nml,EASE,,30,1500,0.710,0.448\n"
            'ml,Pop,400,30,"1,500",0.450,'
        ),
    ],
)
def test_a_table_is_read_however_it_was_copied(text):
    found = calculators.read_pasted(text, TABLE).numbers
    assert {
        model: {name.upper().replace(" ", ""): value for name, value in numbers.items()}
        for model, numbers in found.items()
    } == BOARD


def test_the_table_that_stands_there_is_an_example():
    typed, stands = FIELDS.values["leaderboard"], FIELDS.placeholders["leaderboard"]
    assert stands == {"metrics": "those printed"}
    printed = ask("leaderboard", {**typed, "metrics": "HR@10, NDCG@10"})["numbers"]
    assert ask("leaderboard", typed)["numbers"] == printed
    assert json.loads(printed)["models"] == ["EASE", "NCF", "SASRec", "Pop"]


def test_a_pasted_table_is_that_of_published_without_what_a_browser_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    options = {"items": 400, "sampled": 30, "users": 1500, "protocol": "unseen"}
    result = unsample.published(BOARD, metrics=["HR@10", "NDCG@10"], **options)
    found = ask("leaderboard", TABLE)
    assert found == {"page": as_html(result), "numbers": result.to_json()}
    assert re.search(r"<th[^>]*>\s*(<button[^>]*>)?places", found["page"])
    columns = "model,items,sampled,users,HR@10,NDCG@10\nEASE,400,30,1500,.710,.448\nPop,,,,.450,"
    assert ask("leaderboard", {**TABLE, "table": columns}) == found
    alone = {"table": columns.rpartition("\n")[0], "protocol": "unseen", "metrics": "Recall@20"}
    places = json.loads(ask("leaderboard", alone)["numbers"])["standings"]
    assert [(row["model"], row["metric"]) for row in places] == [("EASE", "Recall@20")]


HEAD = "model,HR@10,NDCG@10\n"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("", "table must be given, such as two lines: model, HR@10 and below it EASE, 0.710"),
        (" \n\t", "table must be given"),
        ("|-|", "table, line 1: names of columns must stand here, with commas, tabs, semicolons"),
        (",,\n", "table, line 1: names of columns must stand here"),
        ("\nmodel HR@10\nA 0.7", "table, line 2: names of columns must stand here"),
        (HEAD, "table, line 1, column model: models must stand in the lines below, got none"),
        (HEAD + "-,-,-", "table, line 1, column model: models must stand in the lines below"),
        (
            "Method,HR@10\nA,0.7",
            "table, line 1, column Method: one column must be named model, got",
        ),
        ("model,Year (AD)\nA,0.7", "table, line 1, column Year (AD): metric must be"),
        ("HR@10,NDCG@10\n0.7,0.4", "table, line 1, column HR@10: one column must be named model"),
        ("model,items\nA,4", "table, line 1, column items: one column must be a metric such as"),
        ("model,NDGC@10\nA,.4", "line 1, column NDGC@10: metric must be one of"),
        ("model,NDCG10\nA,.4", "got 'NDCG10'; did you mean NDCG@10?; other columns may be model,"),
        ("model,,HR@10\nA,x,.4", "table, line 1, column 2: every column must have a name, got"),
        ("model,HR@10,HR@10\nA,.4,.4", "line 1, column HR@10: every column must have a name of"),
        ("model,HR@10,Recall@10\nA,.4,.4", "line 1, column Recall@10: it must be another metric"),
        (HEAD + "A,0.7", "table, line 2, column NDCG@10: 3 cells must stand here, one for each"),
        (HEAD + "\nA,0,710,0,448", "table, line 3, column 4: 3 cells must stand here, one for"),
        (HEAD + "-,0.7,0.4", "table, line 2, column model: the name of a model must stand here"),
        (HEAD + "A,.7,.4\nA,.7,.4", "table, line 3, column model: a model must have one row, got"),
        (
            HEAD + "".join(f"A{at},.7,.4\n" for at in range(101)),
            "table, line 102, column model: a table may have 100 models, got one more",
        ),
        (HEAD + "A,.7,.4\nB,,-", "table, line 3, column HR@10: a model must have some number"),
        (
            HEAD + "A,0.7*,",
            "table, line 2, column HR@10: a number must stand here as it is printed",
        ),
        (HEAD + "A,nan,", "such as 0.710, or nothing, got 'nan'"),
        (HEAD + "A,0_7,", "column HR@10: a number must stand here"),
        (HEAD + "A,0.7 0.4,", "column HR@10: a number must stand here"),
        (HEAD + "A,\u0661,", "column HR@10: a number must stand here"),
        (HEAD + "A,-0.1,", "column HR@10: a number must stand here"),
        (HEAD + "A,71.0,", "line 2, column HR@10: a number must be from 0 to 1, got 71.0; for per"),
        (HEAD + "A,710 %,", "line 2, column HR@10: a share must be from 0 to 100 %, got 710 %"),
        (HEAD + 'A,.7,.4\n"B",".7,.4', "table, line 3, column 2: quotation marks must enclose"),
        (HEAD + '"A" x,.7,.4', "table, line 2, column 1: quotation marks must enclose"),
        ("model,metric,value,AP@5\nA,HR@10,.4,.4", "line 1, column AP@5: all numbers must stand"),
        ("model,metric,value\nA,place,.4", "table, line 2, column metric: metric must be"),
        (
            "model,metric,value\nA,HR@10,.4\nA,Recall@10,.5",
            "table, line 3, column metric: a model must have Recall@10 once, got it a second time",
        ),
        ("model,metric,value\nA,HR@10,-", "line 2, column value: a model must have some number"),
        (
            "model,dataset,HR@10\nA,x,.4\nA2,y,.4",
            "column dataset: all rows must have one value here, got 'x' in line 2 and 'y'; paste",
        ),
        ("model,items,HR@10\nA,,.4\nB,401,.4", "line 3, column items: all rows must have one"),
        ("model,users,HR@10\nA,1.5,.4", "line 2, column users: a whole number must stand here"),
        ("model,users,HR@10\nA,0,.4", "column users: a whole number must stand here, got '0'"),
        ("model,items,HR@10\nA,20,.4", "sampled must be less than items, got 30 draws"),
        ("model,sampled,HR@10\nA,400,.4", "table, line 2 (A): sampled must be less than items"),
        ("model,HR@31\nB,.4", "table, line 2 (B): K of HR@31 must be at most sampled = 30"),
        ("model,Precision@10\nB,.4", "table, line 2 (B): Precision@10 must be between 0 and 0.1"),
        (
            "model,HR@1,HR@10\nA,.4,.5\nA: B,.5,.4",
            "table, line 3 (A: B): HR@1 = 0.5 and HR@10 = 0.4 contradict each other",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_said_with_its_line_and_column(table, text):
    said = ask("leaderboard", {**TABLE, "table": table})["problem"]
    assert text in said
    # The page marks the field whose name the message begins with.
    assert said.split()[0].strip(",") in {"table", "sampled"}
    assert not re.search(r"[{}\[\]]|\b(None|True|dict|mapping|tuple|pass)\b", said)


@pytest.mark.parametrize("name", ["sampled", "items", "users"])
def test_a_table_needs_the_fields_that_it_does_not_hold(name):
    assert ask("leaderboard", {**TABLE, name: " "})["problem"].startswith(f"{name} must be given")
    assert ask("leaderboard", {**TABLE, name: "few"})["problem"].startswith(f"{name} must be")
    assert ask("leaderboard", {**TABLE, "metrics": "HRR"})["problem"].startswith("metrics: ")
    column = f"model,{name},HR@10\nA,,.4"
    problem = ask("leaderboard", {**TABLE, name: "", "table": column})["problem"]
    assert problem.startswith(f"table, line 2, column {name}: a whole number must stand here")


def test_names_of_models_stay_text():
    names = [EVIL, "<img src=x onerror=alert(1)>", "__proto__", "=HYPERLINK(1)", "items", "a\x00b"]
    rows = [f'"{name}",0.{700 - at},0.44{at}' for at, name in enumerate(names)]
    found = ask("leaderboard", {**TABLE, "table": HEAD + "\n".join(rows)})
    assert json.loads(found["numbers"])["models"] == names
    assert not re.search(r"<img|<script>alert", found["page"])
    for name in names:
        table = f'model,HR@1,HR@10\n"{name}",.5,.4'
        problem = ask("leaderboard", {**TABLE, "table": table})["problem"]
        assert problem.startswith(f"table, line 2 ({name}): HR@1 = 0.5 and HR@10 = 0.4 contradict")


def test_no_text_breaks_the_reading_of_tables():
    draw = random.Random(7)
    said = set()
    parts = [
        *"\t|;,\n\"'\\-%*_ \r\x0b\u2028\u00a0",
        "model",
        "HR@10",
        "0.7",
        "7,1",
        "A",
        "---",
        "\r\n",
    ]
    for _ in range(3000):
        text = draw.choice(["", HEAD, "|model|HR@10|\n"]) + "".join(draw.choices(parts, k=12))
        try:
            assert all(calculators.read_pasted(text, TABLE).numbers.values())
        except UnsampleError as problem:
            said.add(str(problem).partition("line")[0])
    assert said == {"table, "}


# -- in a browser ---------------------------------------------------------------------------------

#: Seconds: Python is loaded on machines that do other things as well.
PATIENCE = 600
PLAN = {"items": "500", "users": "400", "metrics": "NDCG@10", "error": "10 %"}
RANKS = {**DRAWN, "metrics": "Recall@50"}


def tool(name, *options):
    """Run a tool, and return the last word that it prints."""
    command = [sys.executable, str(ROOT / "tools" / name), *map(str, options)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return ended.stdout.split()[-1]


def test_the_site_is_whole_and_may_fetch_from_one_place(tmp_path):
    site = Path(tool("make_web.py", "--out", tmp_path / "web"))
    page = (site / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"@[A-Z]+@", page)
    (source,) = re.findall(r'data-pyodide="(https://[^/]+/pyodide/v[^/]+/full/)"', page)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert f"connect-src 'self' {source};" in policy
    assert re.search(rf"script-src [^;]* {re.escape(source)};", policy)
    assert set(re.findall(r"https://[^ ;]+", policy)) == {source}
    names = {path.name for path in site.iterdir()}
    assert names >= {"worker.js", "page.js", "style.css", "calculators.py", "unsample.zip"}


def test_the_site_takes_the_place_of_a_site_and_of_nothing_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        tool("make_web.py", "--out", tmp_path)
    assert "--out must be new, empty, or a site made before" in refused.value.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"
    for _ in range(2):
        tool("make_web.py", "--out", tmp_path / "web")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder in silence."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    """One page for all tests that need Python: loading it takes longest."""
    out = tmp_path_factory.mktemp("site") / "web"
    site = tool("make_web.py", "--out", out, "--pyodide", tool("get_pyodide.py"))
    handler = functools.partial(Quiet, directory=site)
    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with chromium() as browser:
        held = Tab(browser, (1280, 900))
        held.page.goto(f"http://localhost:{server.server_port}/#{link('published', PAPER)}")
        held.wait("document.querySelector('iframe')", PATIENCE)
        yield held
    server.shutdown()
    server.server_close()


def link(calculator, fields):
    return urlencode({"calculator": calculator, **fields})


def go(tab, calculator, fields, wanted="iframe"):
    """Follow a link inside the page, and wait for what comes of it."""
    tab.run("document.querySelector('iframe')?.remove(); history.replaceState(null, '', '#')")
    tab.run(f"location.hash = {json.dumps(link(calculator, fields))}")
    tab.wait(f"document.querySelector('{wanted}')", PATIENCE)


def numbers(tab):
    """Return what the page offers as JSON to download."""
    with tab.page.expect_download() as download:
        tab.click("#save-numbers")
    return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


def same(mine, theirs):
    """Return whether plain values are equal, numbers to 1e-9."""
    if isinstance(mine, dict):
        return mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine)
    if isinstance(mine, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, float) or isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return mine == theirs


@pytest.mark.web
@pytest.mark.parametrize(
    ("calculator", "fields"), [("published", PAPER), ("leaderboard", TABLE), ("plan", PLAN)]
)
def test_answers_are_those_of_python_elsewhere(tab, calculator, fields):
    go(tab, calculator, fields)
    assert same(numbers(tab), json.loads(ask(calculator, fields)["numbers"]))
    assert tab.run("document.querySelector('iframe').getAttribute('sandbox')") == "allow-scripts"
    tab.wait("parseFloat(document.querySelector('iframe').style.height) > 600", PATIENCE)
    assert tab.complaints == []


@pytest.mark.web
def test_an_empty_field_means_what_stands_in_it_in_a_browser(tab):
    shown = FIELDS.values["plan"]
    go(tab, "plan", shown)
    empty = numbers(tab)
    for name in DEFAULTS:
        stands = tab.run(f"document.querySelector('#plan [name={name}]').placeholder")
        go(tab, "plan", {**shown, name: stands})
        assert same(numbers(tab), empty)


@pytest.mark.web
def test_dropped_ranks_are_estimated_and_several_files_compared(tab, tmp_path):
    texts = {"<img src=x onerror=alert(1)>.csv": alone(GOOD), "two.csv": alone(BAD)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for chosen in (["two.csv"], list(texts)):
        tab.run(f"location.hash = {json.dumps(link('ranks', RANKS))}")
        tab.wait("!document.getElementById('ranks').hidden", PATIENCE)
        tab.run("document.querySelector('iframe')?.remove()")
        tab.page.set_input_files("#ranks input[type=file]", [tmp_path / name for name in chosen])
        tab.wait("document.querySelector('iframe')", PATIENCE)
        expected = ask("ranks", RANKS, [[name, texts[name]] for name in chosen])
        assert same(numbers(tab), json.loads(expected["numbers"]))
        assert tab.run("document.getElementById('chosen').textContent") == ", ".join(chosen)
        assert tab.run("document.querySelectorAll('img').length") == 0
    assert tab.complaints == []


@pytest.mark.web
def test_what_is_wrong_stands_at_its_field(tab):
    go(tab, "published", {**PAPER, "items": "many"}, "form .problem")
    told = tab.run("document.querySelector('form .problem').textContent")
    assert told.startswith("items must be an integer of at least 2")
    assert tab.run("document.activeElement.name") == "items"
    assert tab.run("document.querySelectorAll('[aria-invalid]').length") == 1
    go(tab, "published", PAPER)
    assert tab.run("document.querySelectorAll('.problem:not(noscript *)').length") == 0


@pytest.mark.web
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("calculator", ["published", "leaderboard", "plan", "ranks"])
def test_everyone_can_read_and_use_it(tab, calculator, scheme):
    tab.page.emulate_media(color_scheme=scheme)
    tab.run(f"location.hash = '#calculator={calculator}'")
    tab.wait(f"!document.getElementById('{calculator}').hidden", PATIENCE)
    assert [one for one in tab.run(CONTRASTS) if one[0] < 4.5] == []
    for role, names in tab.names("button", "textbox", "combobox", "link", "form").items():
        assert all(names), role
    for width in (320, 800, 1600):
        tab.resize(width, 900)
        assert tab.run("document.documentElement.scrollWidth") <= width
    tab.page.emulate_media(color_scheme="light")
