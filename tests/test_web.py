"""The web page in a real browser: it answers as Python does natively, and everyone can use it.

These tests need a copy of Pyodide, and are not among the default ones: ``pytest -m web``.
"""

from __future__ import annotations

import functools
import http.server
import json
import math
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from tests.browser import Tab, chromium
from tests.test_browser import CONTRASTS
from unsample.show._calculators import Calculator

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import get_pyodide  # noqa: E402
import make_web  # noqa: E402

pytestmark = pytest.mark.web
#: Seconds: Python is loaded on machines that do other things as well.
PATIENCE = 600
WIDE, PHONE = (1280, 900), (390, 844)
PAPER = {
    "numbers": "HR@10 = 0.710, HR@1 = 0.226",
    "sampled": "99",
    "items": "3541",
    "users": "6040",
    "candidates": "unseen",
    "metrics": "",
}
PLAN = {"items": "500", "users": "400", "metrics": "NDCG@10", "precision": "10 %"}
RANKS = {"items": "3706", "sampled": "99", "metrics": "Recall@50", "candidates": "unseen"}


class Site(http.server.SimpleHTTPRequestHandler):
    """Serves a folder in silence, to pages of any origin."""

    def log_message(self, *_):
        pass

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()


@pytest.fixture
def serve():
    """Serve folders; return their addresses, and how to stop."""
    servers = []

    def call(folder):
        handler = functools.partial(Site, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://localhost:{server.server_port}/", server

    yield call
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def pyodide():
    place = get_pyodide.folder()
    if not get_pyodide.is_complete(place):
        pytest.skip(f"needs a copy of Pyodide in {place}; make web-test gets it")
    return place


@pytest.fixture(scope="module")
def site(pyodide, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "web"
    make_web.build(out, pyodide)
    return out


@pytest.fixture(scope="module")
def browser():
    """One profile for all pages: what a page keeps for the next time is there."""
    with chromium() as started:
        yield started.new_context()


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Site, directory=str(site))
    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def tab(browser, address):
    """One page for all tests that need Python: loading it takes longest."""
    held = Tab(browser, WIDE)
    held.page.goto(address + link("published", PAPER))
    held.wait("document.getElementById('loading').hidden", PATIENCE)
    held.wait("document.querySelector('.verdict-line')", PATIENCE)
    yield held
    held.page.close()


def link(calculator, fields):
    given = "&".join(f"{name}={value.replace('%', '%25')}" for name, value in fields.items())
    return f"#calculator={calculator}&{given}"


def go(tab, calculator, fields, wanted=".verdict-line"):
    """Follow a link inside the page, and wait for what comes of it."""
    tab.run("document.getElementById('said').replaceChildren()")
    tab.run(f"location.hash = {json.dumps(link(calculator, fields))}")
    tab.wait(f"document.querySelector('{wanted}')", PATIENCE)


def numbers(tab):
    """Return what the page offers as JSON to download."""
    tab.run(
        "window.saved = null; window.plainURL ??= URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; });"
        " return window.plainURL.call(URL, blob); };"
        "document.getElementById('save-numbers').click()"
    )
    tab.wait("window.saved", PATIENCE)
    return json.loads(tab.run("window.saved"))


def native(calculator, fields, files=()):
    held = Calculator()
    question = {"calculator": calculator, "fields": fields, "files": [str(file) for file in files]}
    return json.loads(held.answer(json.dumps(question)))["answer"], json.loads(held.numbers())


def same(mine, theirs):
    """Return whether plain values are equal, numbers to 1e-9."""
    if isinstance(mine, dict):
        return mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine)
    if isinstance(mine, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, float) or isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return mine == theirs


def without_steps(found):
    """Leave out how many steps a solver took, which may differ in the last digit of a sum."""
    if isinstance(found, dict):
        return {key: without_steps(value) for key, value in found.items() if key != "solver"}
    return [without_steps(each) for each in found] if isinstance(found, list) else found


# -- the same numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(("calculator", "fields"), [("published", PAPER), ("plan", PLAN)])
def test_answers_are_those_of_python_elsewhere(tab, calculator, fields):
    go(tab, calculator, fields)
    answer, expected = native(calculator, fields)
    assert tab.run("document.querySelector('.verdict-line').textContent") == answer["sentences"][0]
    assert same(without_steps(numbers(tab)), without_steps(expected))
    assert f"unsample {answer['command']}" in tab.run("document.querySelector('pre').textContent")
    assert tab.complaints == []


def test_dropped_ranks_are_estimated_and_reported(tab):
    ranks = ROOT / "examples" / "ranks.csv"
    tab.run(f"location.hash = {json.dumps(link('ranks', RANKS))}")
    tab.wait("!document.getElementById('ranks').hidden", PATIENCE)
    tab.page.set_input_files("#ranks-files", ranks)
    tab.wait("document.querySelector('iframe')", PATIENCE)
    answer, expected = native("ranks", RANKS, [ranks])
    assert tab.run("document.querySelector('.verdict-line').textContent") == answer["sentences"][0]
    assert same(without_steps(numbers(tab)), without_steps(expected))
    tab.wait("parseFloat(document.querySelector('iframe').style.height) > 600", PATIENCE)
    assert tab.run("document.querySelector('iframe').getAttribute('sandbox')") == "allow-scripts"
    assert "Content-Security-Policy" in tab.run("document.querySelector('iframe').srcdoc")
    assert tab.run("document.getElementById('save-report').download") == "unsample-ranks.html"
    assert tab.complaints == []


def test_several_files_are_compared(tab, tmp_path):
    lines = (ROOT / "examples" / "ranks.csv").read_text().split()
    (tmp_path / "one.csv").write_text("\n".join(lines[:400]))
    (tmp_path / "two.csv").write_text("\n".join([lines[0], *lines[-399:]]))
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    go_to = link("ranks", RANKS)
    tab.run(f"location.hash = {json.dumps(go_to)}")
    tab.wait("!document.body.classList.contains('busy')", PATIENCE)
    tab.page.set_input_files("#ranks-files", paths)
    tab.wait("document.querySelector('#differences')", PATIENCE)
    answer, expected = native("ranks", RANKS, paths)
    assert tab.run("document.querySelector('.verdict-line').textContent") == answer["sentences"][0]
    tab.wait("document.querySelector('iframe')", PATIENCE)
    assert same(without_steps(numbers(tab)), without_steps(expected))
    shown = tab.run("document.getElementById('ranks-files-chosen').textContent")
    assert shown == "one.csv, two.csv"


# -- asking ---------------------------------------------------------------------------------------


def test_a_link_carries_the_inputs(tab):
    go(tab, "published", {**PAPER, "items": "10000", "numbers": "HR@10 = 71.0 %"})
    for name, value in (("items", "10000"), ("numbers", "HR@10 = 71.0 %"), ("sampled", "99")):
        assert tab.run(f"document.getElementById('published-{name}').value") == value
    assert "items=10000" in tab.run("location.hash")
    assert "numbers=HR@10+=+71.0+%25&" in tab.run("location.hash")


def test_enter_asks_anew_and_the_link_follows(tab):
    go(tab, "published", PAPER)
    tab.run("document.getElementById('said').replaceChildren()")
    tab.run("(() => { const one = document.getElementById('published-items');"
            "one.value = '5000'; one.focus(); })()")  # fmt: skip
    tab.press("Enter")
    tab.wait("document.querySelector('.verdict-line')", PATIENCE)
    assert "on all 5,000 items" in tab.run("document.querySelector('.verdict-line').textContent")
    assert "items=5000" in tab.run("location.hash")


def test_what_is_wrong_stands_at_its_field(tab):
    go(tab, "published", {**PAPER, "items": "many"}, "main .problem")
    told = tab.run("document.querySelector('.field:has(#published-items) .problem').textContent")
    assert told.startswith("items must be an integer of at least 2")
    assert tab.run("document.activeElement.id") == "published-items"
    invalid = "document.getElementById('published-items').getAttribute('aria-invalid')"
    assert tab.run(invalid) == "true"
    assert tab.run("document.getElementById('report').hidden")
    go(tab, "published", PAPER)
    assert tab.run("document.querySelectorAll('main .problem').length") == 0
    assert tab.run(invalid) is None


def test_names_of_files_stay_text(tab, tmp_path):
    evil = tmp_path / "<img src=x onerror=alert(1)>.csv"
    shutil.copy(ROOT / "examples" / "ranks.csv", evil)
    tab.run(f"location.hash = {json.dumps(link('ranks', RANKS))}")
    tab.wait("!document.body.classList.contains('busy')", PATIENCE)
    tab.page.set_input_files("#ranks-files", evil)
    tab.wait("document.querySelector('.verdict-line')", PATIENCE)
    assert tab.run("document.querySelectorAll('img').length") == 0
    assert evil.name in tab.run("document.getElementById('ranks-files-chosen').textContent")
    tab.wait("document.querySelector('iframe')", PATIENCE)


# -- everyone -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("calculator", ["published", "plan", "ranks"])
def test_every_text_can_be_read(tab, calculator, scheme):
    tab.page.emulate_media(color_scheme=scheme)
    tab.run(f"location.hash = '#calculator={calculator}'")
    tab.wait(f"!document.getElementById('{calculator}').hidden", PATIENCE)
    measured = tab.run(CONTRASTS)
    tab.page.emulate_media(color_scheme="light")
    assert len(measured) > 20
    assert [one for one in measured if one[0] < 4.5] == []


@pytest.mark.parametrize("calculator", ["published", "plan", "ranks"])
def test_pages_fit_any_width(tab, calculator):
    tab.run(f"location.hash = '#calculator={calculator}'")
    tab.wait(f"!document.getElementById('{calculator}').hidden", PATIENCE)
    tab.wait("document.querySelector('.verdict-line')", PATIENCE)
    for width in (320, *(size[0] for size in (PHONE, WIDE)), 1600):
        tab.resize(width, 900)
        tab.run("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert tab.run("document.documentElement.scrollWidth") <= width
    tab.resize(*WIDE)


def test_every_control_has_a_name_and_answers_are_announced(tab):
    go(tab, "published", PAPER)
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    kinds = ("button", "textbox", "combobox", "link", "form", "navigation", "radio")
    for kind, names in tab.names(*kinds).items():
        assert names, kind
        assert all(names), kind
    assert tab.run("document.getElementById('answer').getAttribute('aria-live')") == "polite"
    assert tab.run("document.getElementById('answer').getAttribute('aria-busy')") == "false"


def test_every_control_is_reached_by_tab(tab):
    tab.run("location.hash = '#calculator=ranks'")
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tab.run("document.activeElement.blur()")
    seen = set()
    for _ in range(40):
        tab.press("Tab")
        seen.add(tab.run("document.activeElement.id"))
    wanted = tab.run("[...document.getElementById('ranks').elements].map((one) => one.id)")
    assert {name for name in wanted if name} <= seen


# -- without a network, and with a wrong one ------------------------------------------------------


def test_the_next_time_needs_no_network(browser, site, serve):
    address, server = serve(site)
    first = Tab(browser, WIDE)
    first.page.goto(address)
    first.wait("document.querySelector('.verdict-line')", PATIENCE)
    first.wait("navigator.serviceWorker.controller", PATIENCE)
    first.page.close()
    server.shutdown()
    server.server_close()
    again = Tab(browser, WIDE)
    again.page.goto(address)
    again.wait("document.querySelector('.verdict-line')", PATIENCE)
    again.page.close()


def test_a_file_that_was_tampered_with_is_refused(browser, site, serve, tmp_path):
    copy = tmp_path / "web"
    shutil.copytree(site, copy)
    with (copy / "pyodide" / "pyodide.asm.mjs").open("r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"  ")
    address, _ = serve(copy)
    tab = Tab(browser, WIDE)
    tab.page.goto(address)
    tab.wait("!document.getElementById('broken').hidden", PATIENCE)
    told = tab.run("document.getElementById('broken').textContent")
    assert "pyodide.asm.mjs is not the file that this page was made for" in told
    tab.page.close()


def test_python_may_come_from_another_origin(browser, pyodide, serve, tmp_path):
    """The page as it is built by default, with a server here in place of the CDN."""
    out = tmp_path / "web"
    make_web.build(out, None)
    made = json.loads((out / "files.json").read_text())
    away = [file for file in made["files"] if file["url"].startswith("https://")]
    assert len(away) == len(get_pyodide.pinned())
    elsewhere, _ = serve(pyodide)
    for file in away:
        file["url"] = elsewhere + file["name"]
    (out / "files.json").write_text(json.dumps(made))
    page = (out / "index.html").read_text()
    assert "connect-src 'self' https://cdn.jsdelivr.net;" in page
    (out / "index.html").write_text(page.replace("https://cdn.jsdelivr.net", elsewhere.rstrip("/")))
    address, _ = serve(out)
    tab = Tab(browser, WIDE)
    tab.page.goto(address)
    tab.wait("document.querySelector('.verdict-line')", PATIENCE)
    assert tab.complaints == []
    tab.page.close()


def test_nothing_can_be_sent_elsewhere(tab):
    """The policy is that of the worker, too: it was started by the page."""
    tried = "fetch('https://example.org/').then(() => 'sent', (problem) => problem.name)"
    assert tab.run(tried) == "TypeError"
    assert any("Content Security Policy" in text for text in tab.complaints)
