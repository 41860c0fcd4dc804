"""The calculators of the web page: their answers are the library's, and everyone can use it.

Tests in a browser need a copy of Pyodide, and are not among the default ones: ``pytest -m web``.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import math
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

import unsample
from tests.browser import CONTRASTS, Tab, chromium
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


def test_one_model_is_estimated_and_several_are_compared():
    options = {"items": 400, "sampled": 30, "candidates": "unseen", "metrics": ["Recall@20"]}
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
        (("published", {**PAPER, "numbers": "0.71"}), "numbers must be such as HR@10 = 0.710"),
        (("published", {**PAPER, "items": "many"}), "items must be an integer of at least 2"),
        (("ranks", DRAWN, []), "files must be at least one table"),
        (("ranks", DRAWN, [["a.csv", ""]]), "a.csv must have a column rank, got none"),
        (("ranks", DRAWN, [["a.csv", "rank\n"]]), "got no row"),
        (("ranks", DRAWN, [["a.csv", "rank\nfirst"]]), "got 'first' in line 2"),
        (
            ("ranks", DRAWN, [["a.csv", "rank\n1"], ["a.tsv", "rank\n1"]]),
            "must differ in their names",
        ),
    ],
)
def test_what_is_wrong_is_said(call, text):
    assert text in ask(*call)["problem"]


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
    (source,) = re.findall(r'data-pyodide="(https://[^/]+)/.*"', page)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert f"connect-src 'self' {source};" in policy
    assert set(re.findall(r"https://[^ ;]+", policy)) == {source}
    names = {path.name for path in site.iterdir()}
    assert names >= {"worker.js", "page.js", "style.css", "calculators.py", "unsample.zip"}


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
@pytest.mark.parametrize(("calculator", "fields"), [("published", PAPER), ("plan", PLAN)])
def test_answers_are_those_of_python_elsewhere(tab, calculator, fields):
    go(tab, calculator, fields)
    assert same(numbers(tab), json.loads(ask(calculator, fields)["numbers"]))
    assert tab.run("document.querySelector('iframe').getAttribute('sandbox')") == "allow-scripts"
    tab.wait("parseFloat(document.querySelector('iframe').style.height) > 600", PATIENCE)
    assert tab.complaints == []


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
@pytest.mark.parametrize("calculator", ["published", "plan", "ranks"])
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
