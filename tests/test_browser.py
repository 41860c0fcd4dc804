"""Pages in a real browser: they render without complaint, and answer to mouse and keyboard."""

from __future__ import annotations

import json
import re

import pytest

from tests import pages
from tests.browser import CONTRASTS, WIDE, Tab, chromium

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
    place = view["x"].index(int(re.search(r"K = (\d+)", said)[1]))
    bands = [band[side][place] for band in view["bands"] for side in ("low", "high")]
    for number in (view["series"][0]["y"][place], *bands):
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
