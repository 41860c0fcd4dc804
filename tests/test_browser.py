"""Pages in a real browser: they render without complaint, and answer to mouse and keyboard."""

from __future__ import annotations

import json
import re

import pytest

from tests import pages
from tests.browser import WIDE, Tab, chromium

pytest.importorskip("jinja2")
CURVES = "#metrics-at-k"


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
    """Return the lines of what the chart says about the place pointed at, or None."""
    return tab.run(
        f"(() => {{ const one = document.querySelector('{figure} .readout');"
        "return one.hidden ? null : one.innerText; })()"
    )


# -- rendering ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", pages.KINDS)
def test_pages_render_without_complaint_or_request(kind, visit):
    tab = visit(kind)
    assert tab.complaints == []
    assert [address.partition(":")[0] for address in tab.requests] == ["file"]
    charts = tab.run("document.querySelectorAll('figure.interactive').length")
    assert (charts >= 1) == (kind != "audit")  # which has tables alone
    drawn = paths(tab, ".canvas > svg path")
    assert len(drawn) > 5 * charts or not charts
    assert not [path for path in drawn if "NaN" in path or "Infinity" in path]
    scripts = tab.run("document.scripts.length")
    assert scripts == charts + 1  # its own, and the numbers of each chart


def test_complaints_are_seen(visit):
    """The tests above would notice: a script that was tampered with is refused, and said so."""
    broken = pages.page("plan").replace('"use strict";', '"use strict"; ', 1)
    assert any("Content Security Policy" in text for text in visit("plan", text=broken).complaints)


@pytest.mark.parametrize("kind", ["estimate", "compare", "plan"])
def test_pages_fit_any_width(kind, visit):
    tab = visit(kind)
    for width in (360, 800, 1600):
        tab.resize(width, 900)
        tab.run("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert tab.run("document.documentElement.scrollWidth") <= width
        outside = tab.run(
            """[...document.querySelectorAll('.canvas > svg text')].filter((text) => {
              const mine = text.getBoundingClientRect();
              const box = text.ownerSVGElement.getBoundingClientRect();
              return mine.left < box.left - 2 || mine.right > box.right + 14;
            }).map((text) => text.textContent)"""
        )
        assert outside == []


# -- curves ---------------------------------------------------------------------------------------


def test_pointing_at_a_curve_reads_its_numbers(visit):
    tab = visit("estimate")
    assert readout(tab, CURVES) is None
    tab.point_at(f"{CURVES} .canvas", 0.6, 0.5)
    said = readout(tab, CURVES)
    k = re.search(r"K = ([\d,]+)", said)[1]
    row = tab.run(
        f"""[...document.querySelectorAll('{CURVES}-numbers tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.textContent))
        .find((row) => row[0] === 'Recall' && row[1] === 'K = {k}')"""
    )
    for number in row[2:]:
        assert number in said
    assert tab.run(f"document.querySelectorAll('{CURVES} .dot').length") == 1
    tab.point_at("h1")
    assert readout(tab, CURVES) is None


def heights(path):
    """Return how far down each corner of a path is."""
    return [float(corner.split()[1]) for corner in path.strip("MZ").split("L")]


def test_curves_and_bands_stand_where_their_numbers_say(visit):
    tab = visit("estimate")
    view = json.loads(tab.run(f"document.querySelector('{CURVES} script').textContent"))["views"][0]
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


def test_a_curve_is_read_with_the_keyboard(visit):
    tab = visit("estimate")
    tab.run(f"document.querySelector('{CURVES} .canvas').focus()")
    last = pages.ITEMS  # beyond which an arrow stays
    for key, k in (("ArrowRight", 1), ("ArrowRight", 2), ("End", last), ("ArrowRight", last)):
        tab.press(key)
        assert f"K = {k}\n" in readout(tab, CURVES)
    tab.press("Escape")
    assert readout(tab, CURVES) is None


def toggle(tab, figure, label):
    """Click on the box with this label."""
    tab.run(
        f"""document.querySelectorAll('{figure} .toggle').forEach((one) =>
        one.classList.toggle('wanted', one.textContent.startsWith({json.dumps(label)})))"""
    )
    tab.click(f"{figure} .toggle.wanted")


@pytest.mark.parametrize("role", ["interval", "bounds"])
def test_bands_can_be_hidden(role, visit):
    tab = visit("estimate")
    band = f"{CURVES} .canvas > svg .band.{role}"
    line = f"{CURVES} .canvas > svg .line"
    assert len(paths(tab, band)) == 1
    toggle(tab, CURVES, f"show {role}")
    assert paths(tab, band) == []
    assert len(paths(tab, line)) == 1
    tab.point_at(f"{CURVES} .canvas")
    assert role not in readout(tab, CURVES)
    toggle(tab, CURVES, f"show {role}")
    assert len(paths(tab, band)) == 1


def middle_of_decades(tab, figure):
    """Return where the ticks 1, 10 and 100 stand."""
    return tab.run(
        f"""['1', '10', '100'].map((name) => Number(
        [...document.querySelectorAll('{figure} .canvas > svg text[text-anchor=middle]')]
        .find((text) => text.textContent === name)?.getAttribute('x')))"""
    )


def test_axes_can_be_made_linear(visit):
    tab = visit("estimate")
    one, ten, hundred = middle_of_decades(tab, CURVES)
    assert hundred - ten == pytest.approx(ten - one, abs=0.5)
    before = paths(tab, f"{CURVES} .line")
    toggle(tab, CURVES, "logarithmic K")
    assert paths(tab, f"{CURVES} .line") != before
    toggle(tab, CURVES, "logarithmic K")
    assert paths(tab, f"{CURVES} .line") == before
    toggle(tab, CURVES, "logarithmic height")
    assert paths(tab, f"{CURVES} .line") != before


def test_another_metric_can_be_chosen(visit):
    tab = visit("methods")
    label = f"document.querySelector('{CURVES} .canvas text[transform]').textContent"
    assert tab.run(label) == "Recall@K"
    tab.click(f"{CURVES} .choice label:nth-of-type(2) span")
    assert tab.run(label) == "NDCG@K"
    tab.run(f"document.querySelector('{CURVES} .choice input').focus()")
    tab.press("ArrowRight")
    assert tab.run(label) == "NDCG@K"
    tab.press("ArrowLeft")
    assert tab.run(label) == "Recall@K"


def test_a_model_can_be_taken_out_of_the_legend(visit):
    tab = visit("compare")
    lines = f"{CURVES} .canvas > svg .line"
    bands = f"{CURVES} .canvas > svg .band.interval"
    assert (len(paths(tab, lines)), len(paths(tab, bands))) == (3, 3)
    key = f"{CURVES} .keys li:first-child button"
    tab.click(key)
    assert (len(paths(tab, lines)), len(paths(tab, bands))) == (2, 2)
    assert tab.run(f"document.querySelector('{key}').getAttribute('aria-pressed')") == "false"
    tab.press(" ")  # it has the focus: the keyboard brings it back
    assert len(paths(tab, lines)) == 3


# -- intervals ------------------------------------------------------------------------------------


def test_differences_are_read_by_mouse_and_keyboard(visit):
    tab = visit("compare")
    result = pages.result("compare")
    first = result.differences[0]
    tab.run("document.querySelector('#differences .canvas').focus()")
    tab.press("ArrowDown")
    assert str(first) in readout(tab, "#differences").replace("\n", " ")
    tab.press("ArrowDown")
    assert result.differences[1].b in readout(tab, "#differences")
    tab.point_at("#differences .row-hit", 0.5, 0.5)
    assert str(first) in readout(tab, "#differences").replace("\n", " ")
    tab.point_at("h1")
    assert readout(tab, "#differences") is None


def test_points_stand_on_their_lines_and_zero_in_its_place(visit):
    tab = visit("compare")
    rows = tab.run(
        """[...document.querySelectorAll('#differences .canvas > svg .thick')].map((line) => {
          const numbers = line.getAttribute('d').match(/-?[\\d.]+/g).map(Number);
          return [numbers[0], numbers[2]];
        })"""
    )
    zero = float(paths(tab, "#differences .zero")[0].split()[0][1:])
    expected = [one for one in pages.result("compare").differences if one.metric == "Recall@100"]
    assert len(rows) == len(expected)
    for (left, right), one in zip(rows, expected, strict=True):
        assert (left > zero) == (one.low > 0)
        assert (right < zero) == (one.high < 0)
        # Pixels from zero are in proportion to the numbers.
        assert (left - zero) * one.high == pytest.approx((right - zero) * one.low, abs=0.2)


# -- tables ---------------------------------------------------------------------------------------


def test_tables_sort_by_click_and_by_keyboard(visit):
    tab = visit("methods")

    def column():
        return tab.run(
            "[...document.querySelectorAll('#estimates tbody tr')]"
            ".map((row) => Number(row.cells[2].dataset.key))"
        )

    before = column()
    assert before != sorted(before)
    head = "#estimates th:nth-child(3)"
    tab.click(f"{head} button")
    assert column() == sorted(before)
    assert tab.run(f"document.querySelector('{head}').getAttribute('aria-sort')") == "ascending"
    tab.press(" ")
    assert column() == sorted(before, reverse=True)
    assert tab.run(f"document.querySelector('{head}').getAttribute('aria-sort')") == "descending"
    tab.click("#estimates th:first-child button")
    names = tab.run("[...document.querySelectorAll('#estimates tbody th')].map((c) => c.innerText)")
    # Numbers in names count as numbers.
    assert names == sorted(names, key=lambda name: (name[0], int(name.partition("@")[2])))
    assert tab.run("document.querySelectorAll('#estimates [aria-sort]').length") == 1


# -- colours and paper ----------------------------------------------------------------------------


def ground(tab):
    found = tab.run("getComputedStyle(document.body).backgroundColor")
    return tuple(int(value) for value in re.findall(r"\d+", found)[:3])


def test_colours_follow_the_reader_and_the_switch(visit):
    tab = visit("estimate", scheme="dark")
    assert max(ground(tab)) < 60
    tab.click(".theme label:nth-of-type(2) span")
    assert min(ground(tab)) > 240
    tab.click(".theme label:nth-of-type(3) span")
    assert max(ground(tab)) < 60
    tab.page.emulate_media(color_scheme="light")
    assert max(ground(tab)) < 60  # what was chosen stays chosen
    tab.click(".theme label:nth-of-type(1) span")
    assert min(ground(tab)) > 240
    tab.click(".theme label:nth-of-type(3) span")
    tab.page.emulate_media(color_scheme="dark", media="print")
    assert min(ground(tab)) > 240  # paper is white


CONTRASTS = """(() => {
  const linear = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const rgba = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgba(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const owner = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !owner.getClientRects().length) continue;
    if (owner.closest("script, .hidden, .skip")) continue;
    const style = getComputedStyle(owner);
    const ink = rgba(owner.ownerSVGElement ? style.fill : style.color);
    const [low, high] = [light(ink), light(ground(owner))].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), walk.currentNode.data]);
  }
  return found;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["estimate", "compare"])
def test_every_text_can_be_read(kind, scheme, visit):
    measured = visit(kind, scheme=scheme).run(CONTRASTS)
    assert len(measured) > 100
    assert [one for one in measured if one[0] < 4.5] == []


def test_every_control_has_a_name(visit):
    tab = visit("compare")
    wanted = ("button", "checkbox", "radio", "image", "img", "table", "region")
    named = tab.names(*wanted)
    assert len(named["button"]) > 10
    assert len(named["checkbox"]) > 4
    assert named["radio"]
    for role, names in named.items():
        assert all(names), role
    charts = tab.run(
        "[...document.querySelectorAll('.canvas')].map((one) => one.getAttribute('aria-label'))"
    )
    assert all("arrow keys" in name for name in charts)


def test_every_control_is_reached_by_tab(visit):
    tab = visit("plan")
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wanted = tab.run("document.querySelectorAll('a, button, input, summary, [tabindex]').length")
    seen = set()
    for _ in range(int(wanted) + 2):
        tab.press("Tab")
        seen.add(
            tab.run(
                "[...document.querySelectorAll('*')].indexOf(document.activeElement)"
                " + document.activeElement.tagName"
            )
        )
    # Boxes that do not overflow may be skipped; every control must be there.
    tags = [re.sub(r"\d+", "", one) for one in seen]
    assert tags.count("BUTTON") == tab.run("document.querySelectorAll('button').length")
    boxes = tab.run("document.querySelectorAll('input[type=checkbox]').length")
    assert tags.count("INPUT") == boxes + 1  # and one for the colours, among which arrows choose
    assert tags.count("SUMMARY") == 1


def test_paper_shows_charts_and_no_controls(visit):
    tab = visit("estimate", scheme="dark")
    printed = tab.page.pdf(print_background=True, prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    pages_printed = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 1 <= pages_printed <= 8
    tab.page.emulate_media(media="print")
    assert tab.run("getComputedStyle(document.querySelector('.theme')).display") == "none"
    assert tab.run("getComputedStyle(document.querySelector('.toggle')).display") == "none"
    assert tab.run(f"document.querySelector('{CURVES} .canvas > svg').clientHeight") > 100
    assert tab.complaints == []


def test_without_script_the_numbers_are_there(visit):
    tab = visit("estimate", scripts=False)
    assert "All numbers stand in the tables" in tab.run("document.body.innerText")
    assert tab.run("document.querySelectorAll('.canvas, th button').length") == 0
    assert tab.run("document.querySelector('.theme').getClientRects().length") == 0
    entry = pages.result("estimate").entries[0]
    assert f"{entry.value:.4f}" in tab.run("document.querySelector('#estimates').innerText")
