"""Pages in a real browser: they render without complaint, and answer to mouse and keyboard."""

from __future__ import annotations

import json
import mimetypes
import re
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests import pages
from tests.browser import CONTRASTS, WIDE, Tab, chromium
from tests.test_web import calculators, tool

pytest.importorskip("jinja2")
CURVES, PAIRS = "#curves", "#differences-chart"


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a kind (or a changed one) in a tab of its own."""
    tabs = []

    def call(kind, *, text=None, scheme="light", scripts=True):
        path = tmp_path / f"{kind}.html"
        path.write_text(text or pages.page(kind), encoding="utf-8")
        tab = Tab(browser, WIDE, color_scheme=scheme, java_script_enabled=scripts)
        tabs.append(tab)
        tab.page.goto(path.as_uri())
        return tab

    yield call
    for tab in tabs:
        tab.page.close()


def paths(tab, selector):
    return tab.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((p) => p.getAttribute('d'))"
    )


def readout(tab, figure):
    """Return what the chart says about the place pointed at, or None."""
    return tab.run(
        f"(() => {{ const one = document.querySelector('{figure} .readout');"
        "return one.hidden ? null : one.innerText; })()"
    )


@pytest.mark.parametrize("kind", pages.KINDS)
def test_pages_render_without_complaint_or_request_at_any_width(kind, visit):
    tab = visit(kind)
    charts = tab.run("document.querySelectorAll('figure.interactive').length")
    assert (charts >= 1) == (kind not in ("plan", "audit"))  # which have tables alone
    drawn = paths(tab, ".canvas > svg path")
    assert len(drawn) > 5 * charts or not charts
    assert not [path for path in drawn if "NaN" in path or "Infinity" in path]
    assert tab.run("document.scripts.length") == charts + 1  # its own, and numbers of charts
    for width in (360, 800, 1600):
        tab.resize(width, 900)
        tab.run("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.complaints == []
    assert [address.partition(":")[0] for address in tab.requests] == ["file"]


@pytest.mark.parametrize("kind", ["estimate", "compare", "published", "groups"])
def test_on_phones_the_interval_is_in_sight(kind, visit):
    """It stands below its number, and its own column, out of sight to the right, is gone."""
    tab = visit(kind)
    below = "[...document.querySelectorAll(':not(.cards) > tbody .under')].map((c) => c.innerText)"
    wide = tab.run("[...document.querySelectorAll('td.aside:not(.words)')].map((c) => c.innerText)")
    assert wide
    widths = tab.run("[...document.querySelectorAll('.under')].map((c) => c.offsetWidth)")
    assert {*widths} == {0}
    tab.resize(390, 900)
    cards = "[...document.querySelectorAll('.cards td.aside:not(.words)')]"
    assert sorted([*tab.run(below), *tab.run(f"{cards}.map((c) => c.innerText)")]) == sorted(wide)
    # Nothing of a card is out of sight.
    widths = "document.querySelectorAll('.cards')].map((c) => c.scrollWidth - c.clientWidth)"
    assert not any(tab.run(f"[...{widths}"))
    if tab.run("document.querySelector('.sortable.cards') !== null"):
        right = max(tab.run(f"{cards}.map((c) => c.getBoundingClientRect().right)"))
        assert right <= tab.run("document.querySelector('.scroll').getBoundingClientRect().right")
        return
    # The first table of each page; pairs of very long names are wider.
    ends = "[...document.querySelector('.sortable').querySelectorAll('.under')]"
    right = max(tab.run(f"{ends}.map((c) => c.getBoundingClientRect().right)"))
    assert right <= tab.run("document.querySelector('.scroll').getBoundingClientRect().right")


def test_long_names_keep_their_words(visit):
    name = "MultiVAE with a dropout of 0.5, 600 hidden units, seed 1"
    text = pages.page("compare").replace("less good", name)
    tab = visit("compare", text=text)
    cells = f"[...document.querySelectorAll('#models td')].filter((c) => c.innerText === '{name}')"
    lines = f"{cells}.map((c) => c.clientHeight / parseFloat(getComputedStyle(c).lineHeight))"
    assert max(tab.run(lines)) < 3


def test_complaints_are_seen(visit):
    """The test above would notice: a script that was tampered with is refused, and said so."""
    broken = pages.page("plan").replace('"use strict";', '"use strict"; ', 1)
    assert any("Content Security Policy" in text for text in visit("plan", text=broken).complaints)


# -- curves ---------------------------------------------------------------------------------------


def view_of(tab, figure):
    return json.loads(tab.run(f"document.querySelector('{figure} script').textContent"))["views"][0]


def heights(path):
    """Return how far down each corner of a path is."""
    return [float(corner.split()[1]) for corner in path.strip("MZ").split("L")]


def test_curves_and_bands_stand_where_their_numbers_say(visit):
    tab = visit("estimate")
    view = view_of(tab, CURVES)
    (line,) = (heights(path) for path in paths(tab, f"{CURVES} .canvas > svg .line"))
    values = view["series"][0]["y"]
    scale = (line[-1] - line[0]) / (values[-1] - values[0])

    def expected(numbers):
        return pytest.approx([line[0] + scale * (one - values[0]) for one in numbers], abs=0.2)

    assert scale < 0
    assert line == expected(values)
    for band in view["bands"]:
        (drawn,) = paths(tab, f"{CURVES} .canvas > svg .band.{band['role']}")
        assert heights(drawn) == expected(band["high"] + band["low"][::-1])


def test_a_curve_is_read_by_mouse_and_keyboard(visit):
    tab = visit("estimate")
    view = view_of(tab, CURVES)
    assert readout(tab, CURVES) is None
    tab.point_at(f"{CURVES} .canvas", 0.6, 0.5)
    said = readout(tab, CURVES)
    index = view["x"].index(int(re.search(r"K = (\d+)", said)[1]))
    bands = [band[side][index] for band in view["bands"] for side in ("low", "high")]
    for number in (view["series"][0]["y"][index], *bands):
        assert f"{number:.4f}" in said
    tab.point_at("h1")
    assert readout(tab, CURVES) is None
    tab.run(f"document.querySelector('{CURVES} .canvas').focus()")
    last = pages.ITEMS  # beyond which an arrow stays
    for key, k in (("ArrowRight", 1), ("ArrowRight", 2), ("End", last), ("ArrowRight", last)):
        tab.press(key)
        assert f"K = {k}\n" in readout(tab, CURVES)
    tab.press("Escape")
    assert readout(tab, CURVES) is None


# -- intervals and tables -------------------------------------------------------------------------


def test_differences_are_read_by_mouse_and_keyboard(visit):
    tab = visit("compare")
    first, second = view_of(tab, PAIRS)["rows"][:2]
    tab.run(f"document.querySelector('{PAIRS} .canvas').focus()")
    for row in (first, second):
        tab.press("ArrowDown")
        said = readout(tab, PAIRS)
        assert row["label"] in said
        assert f"+{row['value']:.4f}" in said
    tab.point_at(f"{PAIRS} .row-hit", 0.5, 0.5)
    assert first["label"] in readout(tab, PAIRS)
    tab.point_at("h1")
    assert readout(tab, PAIRS) is None


def test_tables_sort_by_click_and_by_keyboard(visit):
    tab = visit("methods")
    rows = "[...document.querySelectorAll('#metrics tbody tr')]"

    def column():
        return tab.run(f"{rows}.map((row) => Number(row.cells[2].dataset.key))")

    before = column()
    assert before != sorted(before)
    head = "#metrics th:nth-child(3)"
    tab.click(f"{head} button")
    assert column() == sorted(before)
    assert tab.run(f"document.querySelector('{head}').getAttribute('aria-sort')") == "ascending"
    tab.press(" ")
    assert column() == sorted(before, reverse=True)
    tab.click("#metrics th:first-child button")
    names = tab.run(f"{rows}.map((row) => row.cells[0].innerText)")
    # Numbers in names count as numbers.
    assert names == sorted(names, key=lambda name: (name[0], int(name.partition("@")[2])))
    assert tab.run("document.querySelectorAll('#metrics [aria-sort]').length") == 1


# -- everyone -------------------------------------------------------------------------------------


def ground(tab):
    found = tab.run("getComputedStyle(document.body).backgroundColor")
    return tuple(int(value) for value in re.findall(r"\d+", found)[:3])


def test_colours_follow_the_reader_and_the_switch(visit):
    tab = visit("estimate", scheme="dark")
    assert max(ground(tab)) < 60
    tab.click(".theme label:nth-of-type(2) span")
    assert min(ground(tab)) > 240
    tab.click(".theme label:nth-of-type(3) span")
    tab.page.emulate_media(color_scheme="light")
    assert max(ground(tab)) < 60  # what was chosen stays chosen
    tab.page.emulate_media(color_scheme="dark", media="print")
    assert min(ground(tab)) > 240  # paper is white


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["estimate", "compare"])
def test_every_text_can_be_read(kind, scheme, visit):
    measured = visit(kind, scheme=scheme).run(CONTRASTS)
    assert len(measured) > 50
    assert [one for one in measured if one[0] < 4.5] == []


def test_every_control_has_a_name_and_none_is_kept_from_the_keyboard(visit):
    tab = visit("compare")
    for role, names in tab.names("button", "checkbox", "radio", "img", "table", "region").items():
        assert all(names), role
    assert tab.run("document.querySelectorAll('[tabindex=\"-1\"]').length") == 0


def test_without_script_the_numbers_are_there(visit):
    tab = visit("estimate", scripts=False)
    assert "The results stand in the tables" in tab.run("document.body.innerText")
    assert tab.run("document.querySelectorAll('.canvas, th button').length") == 0
    entry = pages.result("estimate").entries[0]
    assert f"{entry.value:.4f}" in tab.run("document.querySelector('#metrics').innerText")


# -- the page with the calculators ----------------------------------------------------------------

#: In place of Pyodide: the same Python answers, outside of the browser.
WORKER = """self.onmessage = async ({ data }) => {
  if (data.start) self.page = data.start;
  if (data.start) return self.postMessage({ ready: true });
  const answer = await fetch(new URL("answer", self.page), { method: "POST", body: data.ask });
  self.postMessage({ answer: await answer.text() });
};"""
ADDRESS = "http://unsample.test/"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Path(tool("make_web.py", "--out", tmp_path_factory.mktemp("site") / "web"))


@pytest.fixture
def calculator(browser, site):
    """The page with a calculator open, and fields typed into it by its link."""
    tabs = []

    def serve(route):
        name = urlsplit(route.request.url).path.strip("/") or "index.html"
        if name == "answer":
            route.fulfill(body=calculators.answer(route.request.post_data))
        elif name == "worker.js":
            route.fulfill(body=WORKER, content_type="text/javascript")
        else:
            kind = mimetypes.guess_type(name)[0]
            route.fulfill(body=(site / name).read_bytes(), content_type=kind)

    def call(name, fields, scheme="light"):
        tab = Tab(browser, WIDE, color_scheme=scheme)
        tabs.append(tab)
        tab.page.route(f"{ADDRESS}**", serve)
        tab.page.goto(f"{ADDRESS}#{urlencode({'calculator': name, **fields})}")
        return tab

    yield call
    for tab in tabs:
        tab.page.close()


def paste(tab, text):
    """Put a text in place of what stands in the table, and calculate."""
    tab.run("document.querySelectorAll('iframe, form .problem').forEach((one) => one.remove())")
    tab.page.locator("#leaderboard textarea").fill(text)
    tab.click("#leaderboard button")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_is_pasted_and_its_models_get_places(calculator, scheme):
    tab = calculator("leaderboard", {}, scheme)
    tab.wait("document.querySelector('iframe')", 60)
    assert [one for one in tab.run(CONTRASTS) if one[0] < 4.5] == []
    names = tab.names("textbox", "combobox", "button", "form")
    assert all(map(all, names.values()))
    assert names["textbox"][0].startswith("Paste a table of models")
    for width in (320, 400, 1280):
        tab.resize(width, 900)
        assert tab.run("document.documentElement.scrollWidth") <= width

    # By keyboard alone: the table, then the fields, then the button.
    tab.page.locator("#leaderboard textarea").focus()
    order = []
    for _ in range(7):
        order.append(tab.run("document.activeElement.name || document.activeElement.type"))
        tab.press("Tab")
    assert order == ["table", "sampled", "items", "users", "protocol", "metrics", "submit"]

    evil = "<img src=x onerror=alert(1)>"
    paste(tab, f"\tHR@10\tNDCG@10\n{evil}\t0.824\t0.590\nPop\t0.450\t\n")
    tab.wait("document.querySelector('iframe')", 60)
    shown = tab.page.frame_locator("iframe").locator("#leaderboard tbody")
    rows = [row.split("\t") for row in shown.inner_text().split("\n") if "HR@10" in row]
    assert [(row[1], row[2], row[-1]) for row in rows] == [
        (evil, "0.824", "1"),
        ("Pop", "0.450", "2"),
    ]
    assert tab.run("document.querySelectorAll('img').length") == 0

    # The link holds the table: another reader sees the same.
    link = tab.run("location.hash")
    tab.run("history.replaceState(null, '', '#calculator=plan')")
    tab.run("document.querySelector('#leaderboard textarea').value = ''")
    tab.run(f"location.hash = {json.dumps(link)}")
    tab.wait("document.querySelector('#leaderboard textarea').value", 60)
    held = tab.run("document.querySelector('#leaderboard textarea').value")
    assert held == f"\tHR@10\tNDCG@10\n{evil}\t0.824\t0.590\nPop\t0.450\t\n"

    paste(tab, f"| model | HR@10 |\n|---|---|\n| {evil} | 0,7x |")
    tab.wait("document.querySelector('form .problem')", 60)
    told = tab.run("document.querySelector('form .problem').textContent")
    assert told.startswith("table, line 3, column HR@10: a number must stand here")
    assert tab.run("document.activeElement.name") == "table"
    assert tab.run("document.querySelectorAll('[aria-invalid]').length") == 1
    assert [one for one in tab.run(CONTRASTS) if one[0] < 4.5] == []
    assert tab.complaints == []


def test_a_text_too_long_for_a_link_is_read_all_the_same(calculator):
    tab = calculator("leaderboard", {})
    tab.wait("document.querySelector('iframe')", 60)
    long = "'model,HR@10\\n' + 'A,0.71\\n'.repeat(20000)"
    tab.run(f"document.querySelector('#leaderboard textarea').value = {long}; 0")
    tab.click("#leaderboard button")
    tab.wait("document.querySelector('form .problem')", 60)
    told = tab.run("document.querySelector('form .problem').textContent")
    assert told.startswith("table, line 3, column model: a model must have one row")
    assert tab.run("location.hash") == "#calculator=leaderboard"
    assert tab.complaints == []
