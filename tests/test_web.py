"""The web page in a real browser: it answers as Python does natively, and everyone can use it.

These tests need a copy of Pyodide, and are not among the default ones: ``pytest -m web``.
"""

from __future__ import annotations

import functools
import http.server
import json
import math
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.browser import CONTRASTS, Tab, chromium
from tests.test_calculators import ask

ROOT = Path(__file__).resolve().parent.parent
#: Seconds: Python is loaded on machines that do other things as well.
PATIENCE = 600
PAPER = {
    "numbers": "HR@10 = 0.710, HR@1 = 0.226",
    "sampled": "99",
    "items": "3541",
    "users": "6040",
    "candidates": "unseen",
    "metrics": "",
}
PLAN = {"items": "500", "users": "400", "metrics": "NDCG@10", "error": "10 %"}
RANKS = {"items": "3706", "sampled": "99", "metrics": "Recall@50", "candidates": "unseen"}
EXAMPLE = (ROOT / "examples" / "ranks.csv").read_text(encoding="utf-8")


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
    lines = EXAMPLE.split()
    texts = {
        "<img src=x onerror=alert(1)>.csv": "\n".join(lines[:400]),
        "two.csv": "\n".join([lines[0], *lines[-399:]]),
    }
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
def test_a_link_carries_the_inputs_and_follows_them(tab):
    go(tab, "published", {**PAPER, "items": "10000", "numbers": "HR@10 = 71.0 %"})
    field = "document.getElementById('published').elements."
    for name, value in (("items", "10000"), ("numbers", "HR@10 = 71.0 %"), ("sampled", "99")):
        assert tab.run(f"{field}{name}.value") == value
    tab.run(f"(() => {{ const one = {field}items; one.value = '5000'; one.focus(); }})()")
    tab.press("Enter")
    tab.wait("location.hash.includes('items=5000')", PATIENCE)
    tab.wait("document.querySelector('iframe')?.srcdoc.includes('5,000 items')", PATIENCE)


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


@pytest.mark.web
def test_nothing_can_be_sent_elsewhere(tab):
    """The policy is that of the worker, too: it was started by the page."""
    tried = "fetch('https://example.org/').then(() => 'sent', (problem) => problem.name)"
    assert tab.run(tried) == "TypeError"
    assert any("Content Security Policy" in text for text in tab.complaints)
