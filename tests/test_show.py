"""What results say: as text, tables for papers, pages and plots, and that nothing breaks out."""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import unsample
from tests import pages
from unsample import show
from unsample.errors import FileError, InputError, MissingExtraError, UnsampleWarning
from unsample.show._curves import curves_chart
from unsample.show._write import CITATION

pytest.importorskip("jinja2")
VOID = {"meta", "input", "link", "br", "hr", "img"}


class Reader(HTMLParser):
    """Reads a page as a browser would, and notes tables, charts and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.charts: dict[str, dict] = {}
        self.tables: dict[str, list[list[tuple[str, str | None]]]] = {}
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._table = self._cell = self._script = None
        self.feed(text)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.attributes.append((tag, found))
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self._table = self.tables.setdefault(found.get("id") or "", [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th"):
            self._cell = ["", found.get("data-key")]
        elif tag == "script":
            self._script = found

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self._table[-1].append(tuple(self._cell))
            self._cell = None
        elif tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            if self._script.get("type") == "application/json":
                chart = json.loads(data)
                self.charts[chart["identity"]] = chart
            else:
                self.scripts.append(data)
            return
        self.words.append(data)
        if self._cell is not None:
            self._cell[0] += data


def bounds_alone():
    options = {"items": pages.ITEMS, "sampled": pages.SAMPLED, "metrics": "Recall@50"}
    return unsample.estimate(pages.sampled_ranks(), prior=None, **options)


# -- the page -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", pages.KINDS)
def test_a_page_is_whole_small_and_needs_nothing_else(kind):
    text = pages.page(kind)
    reader = Reader(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(text.encode()) < 1_000_000
    assert len(reader.scripts) == 1
    for tag, attributes in reader.attributes:
        assert not {"src", "srcset", "data", "action"} & attributes.keys(), tag
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    identities = [attributes["id"] for _, attributes in reader.attributes if "id" in attributes]
    assert len(identities) == len(set(identities))
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    assert policy.startswith("default-src 'none'")
    for tag in ("style", "script"):
        inner = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy.replace("&#43;", "+")


def test_a_page_leads_with_warnings_and_with_what_was_found():
    for kind in ("methods", "compare", "plan"):
        text = " ".join(" ".join(Reader(pages.page(kind)).words).split())
        shown = show.sheet(pages.result(kind))
        leading = [text.index(line[:30]) for line in (*shown.warnings, *shown.verdicts)]
        assert leading == sorted(leading)
        assert max(leading) < text.index(shown.parts[0].table.caption)


def test_the_table_of_a_page_holds_the_estimates():
    result = pages.result("methods")
    head, *rows = Reader(pages.page("methods")).tables["metrics"]
    names = [name for name, _ in head]
    for row, entry in zip(rows, result.entries, strict=True):
        cells = dict(zip(names, row, strict=True))
        assert (cells["metric"][0], cells["method"][0]) == (entry.metric.name, entry.method)
        ends = {"95 % interval": entry.interval(), "bounds": entry.bounds()}
        for name, numbers in {"estimate": (entry.value,), **ends}.items():
            assert float(cells[name][1]) == numbers[0], "sorted by its first number"
            printed = [float(text) for text in cells[name][0].split(" .. ")]
            assert printed == pytest.approx(numbers, abs=5.1e-5)


@pytest.mark.parametrize("kind", ["estimate", "methods", "published"])
def test_curves_pass_through_the_estimates_and_their_limits(kind):
    result = pages.result(kind)
    views = {view["name"]: view for view in Reader(pages.page(kind)).charts["curves"]["views"]}
    assert set(views) == {"Recall", "NDCG"}
    for entry in result.entries:
        view = views[entry.metric.family.name]
        place = view["x"].index(entry.metric.k)
        series = {one["name"]: one["y"][place] for one in view["series"]}
        if entry.method in result.distributions:
            assert series[entry.method] == pytest.approx(entry.value, rel=1e-4)
        bands = {one["role"]: (one["low"][place], one["high"][place]) for one in view["bands"]}
        assert bands["interval"] == pytest.approx(entry.interval(), rel=1e-4)
        assert bands["bounds"] == pytest.approx(entry.bounds(), abs=1e-5)


def test_curves_of_several_results_end_with_their_catalogue():
    ranks = pages.sampled_ranks()
    small, large = (
        unsample.estimate(ranks, items=items, sampled=pages.SAMPLED, metrics="Recall@9")
        for items in (400, 4000)
    )
    (view,) = curves_chart({"small": small, "large": large}).views
    known = [np.isfinite(one.y).sum() for one in view.series]
    assert known[0] < known[1] == len(view.x)
    assert view.bands == ()


def test_charts_hold_the_numbers_of_their_tables():
    result = pages.result("compare")
    drawn = Reader(pages.page("compare")).charts["differences-chart"]
    assert [view["name"] for view in drawn["views"]] == [metric.name for metric in result.metrics]
    rows = [row for view in drawn["views"] for row in view["rows"]]
    for row, pair in zip(rows, result.differences, strict=True):
        first = pair if pair.value >= 0 else pair.reversed()
        assert row["label"] == f"{first.a} - {first.b}"
        assert row["value"] == pytest.approx(first.value, rel=1e-5)
        assert row["interval"] == pytest.approx([first.low, first.high], rel=1e-5)
        assert row["sure"] is (pair.winner is not None)
    across = pages.result("across")
    (first, *_) = Reader(pages.page("across")).charts["means-chart"]["views"][0]["rows"]
    values = [each.estimates["good"]["Recall@100"].value for each in across.comparisons.values()]
    assert first["marks"] == pytest.approx(values, rel=1e-5)


# -- what tables say ------------------------------------------------------------------------------


def test_the_default_table_has_no_more_than_it_must():
    text = show.as_text(pages.result("estimate")).splitlines()
    assert text[0] == "1,500 users, 30 of 400 items sampled, candidates not stated"
    assert re.split(r"\s\s+", text[2]) == ["metric", "estimate", "95 % interval"]
    assert text[-1].startswith("interval: holds the true value for 95 % of data sets")
    more = show.as_text(pages.result("estimate"), verbose=True)
    for word in ("bounds", "source", "prior", "auto", "with replacement"):
        assert word in more


def test_without_a_prior_bounds_stand_once_and_are_marked():
    result = bounds_alone()
    (row,) = show.sheet(result).tables[0].spread().brief.rows
    assert str(row[-1]).endswith(" (bounds)")
    charts = Reader(show.as_html(result)).charts
    (row,) = charts["metrics-chart"]["views"][0]["rows"]
    assert row["interval"] == pytest.approx(result["Recall@50"].bounds(), rel=1e-5)
    assert (row["wider"], row["sure"]) == ([None, None], False)
    assert [one["role"] for one in charts["curves"]["views"][0]["bands"]] == ["bounds"]
    assert "In brackets: 95 % interval. Bounds hold whatever" in show.as_markdown(result)


def test_a_vague_value_is_a_range():
    with pytest.warns(UnsampleWarning, match="a range is shown"):
        result = unsample.published(
            {"HR@10": "0.690"}, items=3706, sampled=99, users=6040, metrics="NDCG@10"
        )
    (row,) = show.sheet(result).tables[0].spread().brief.rows
    low, high = result["NDCG@10"].interval()
    assert list(map(str, row)) == ["NDCG@10", "\N{EN DASH}", f"{low:.4f} .. {high:.4f}"]
    assert (
        Reader(show.as_html(result)).charts["metrics-chart"]["views"][0]["rows"][0]["value"] is None
    )


def test_guided_evaluations_name_both_intervals_these_users_first():
    result = pages.result("guided")
    table = show.sheet(result).tables[0].spread().brief
    assert table.columns == ("metric", "estimate", "95 % interval", "users like these")
    for entry, (*_, own, like) in zip(result.entries, table.rows, strict=True):
        low, high = entry.interval(population=False)
        assert str(own) == ("exact" if low == high else f"{low:.4f} .. {high:.4f}")
        assert str(like) == "{:.4f} .. {:.4f}".format(*entry.interval())


def test_a_chance_is_withheld_where_bounds_are_all_that_is_known():
    few = {"A": [1, 2, 2, 9] * 5, "B": [1, 2, 3, 20] * 5}
    with pytest.warns(UnsampleWarning):
        result = unsample.compare(few, items=500, sampled=99, metrics="Recall@50")
    models, differences = (table.spread().brief for table in show.sheet(result).tables)
    assert {*map(str, models.cells("best")), *map(str, differences.cells("chance"))} == {""}
    assert all(text.endswith(" (bounds)") for text in map(str, models.cells("95 % interval")))


def test_the_higher_model_comes_first_and_is_told_apart_or_not():
    for kind in ("compare", "together"):
        result = pages.result(kind)
        table = show.sheet(result).tables[1].spread()
        assert all(text.startswith("+") for text in map(str, table.cells("difference")))
        told = ["yes" if pair.winner else "" for pair in result.differences]
        assert table.cells("told apart") == told


def test_numbers_that_cannot_vary_or_are_small_or_groups_that_differ():
    one = unsample.exact([3], items=9, metrics="MR")
    assert "nothing varies" in str(one)
    small = unsample.exact([1] + [900] * 4000, items=999, metrics="Recall@5")
    assert "0.00025" in str(small)
    text = show.as_text({"a": one, "b": small})
    assert text.startswith("a: 1 user ranked among all 9 items\nb: 4,001 users")


# -- text, notebooks, LaTeX, Markdown -------------------------------------------------------------

PAPER = {"latex": show.as_latex, "markdown": show.as_markdown}


@pytest.mark.parametrize("kind", pages.KINDS)
def test_every_form_holds_every_number_sentence_and_warning(kind):
    def plain(text):
        """Return letters and digits alone: what is between them belongs to the form."""
        return re.sub(r"\\text[a-z]+|[^A-Za-z0-9]", "", html.unescape(text))

    shown = show.sheet(pages.result(kind))
    for form in (show.as_text, show.as_notebook, show.as_latex, show.as_markdown):
        whole = plain(form(pages.result(kind)))
        screen = form in (show.as_text, show.as_notebook)
        tables = [table.spread().brief if screen else table.narrow for table in shown.tables]
        cells = [str(cell) for table in tables for row in table.rows for cell in row]
        for text in (*shown.about, *cells, *shown.verdicts, *shown.warnings):
            assert plain(text) in whole, text


@pytest.mark.parametrize("kind", pages.KINDS)
def test_latex_can_be_pasted(kind):
    text = show.as_latex(pages.result(kind))
    outside = re.sub(r"\\begin\{table\}.*?\\end\{table\}", "", text, flags=re.DOTALL)
    assert all(line.startswith("%") for line in outside.split("\n") if line)
    labels = re.findall(r"\\label\{(.+)\}", text)
    assert len(labels) == len(set(labels)) == len(show.sheet(pages.result(kind)).tables)
    for note in re.findall(r"\\footnotesize (.*)", text):
        assert len(note) <= 200
    for caption in re.findall(r"\\caption\{(.*)\}", text):
        assert caption.endswith(").")
    for block in text.split(r"\begin{table}")[1:]:
        align = re.search(r"\\begin\{tabular\}\{([lr]+)\}", block)[1]
        rows = re.findall(r"^(.*) \\\\$", block, re.MULTILINE)
        assert {row.count("&") - row.count(r"\&") for row in rows} == {len(align) - 1}


@pytest.mark.parametrize("form", PAPER)
@pytest.mark.parametrize("kind", ["estimate", "compare", "plan"])
def test_tables_say_what_to_cite(kind, form):
    text = PAPER[form](pages.result(kind)).replace("\\", "")
    assert f"unsample {unsample.__version__}" in text
    assert CITATION in text


def test_the_citation_is_that_of_the_citation_file():
    cff = (Path(__file__).parent.parent / "CITATION.cff").read_text(encoding="utf-8")
    family = re.findall(r"family-names: (\w+)", cff)
    assert [name for name in family if name in CITATION] == family
    (doi,) = re.findall(r"doi: (\S+)", cff)
    titles = re.findall(r"title: (On .+)", cff)
    assert doi in CITATION
    assert titles
    assert titles[0] in CITATION


def test_only_what_is_told_apart_is_bold():
    result = pages.result("compare")
    best = [row.value for row in result.standings if result.winner(row.metric) == row.model]
    assert best
    for value in best:
        assert rf"\textbf{{{value:.4f}}}" in show.as_latex(result)
        assert f"**{value:.4f}**" in show.as_markdown(result)
    told = sum(pair.winner is not None for pair in result.differences)
    assert show.as_latex(result).count(r"\textbf") == len(best) + told
    assert r"\textbf" not in show.as_latex(pages.result("together"))


def test_papers_have_a_column_for_each_metric_unless_there_are_many():
    held = pages.result("methods")
    assert show.sheet(held).tables[0].narrow.columns == ("method", *held)
    grouped = show.sheet({"a": held, "b": held}).tables[0].narrow
    assert grouped.columns == ("group", "method", *held)
    assert len(grouped.rows) == 2 * len(held.methods)
    result = pages.result("compare")
    models = show.sheet(result).tables[0].narrow
    assert models.columns == ("model", *(metric.name for metric in result.metrics))
    many = [f"Recall@{k}" for k in (5, 10, 20, 50, 100)]
    ranks = {"A": pages.sampled_ranks(0.3), "B": pages.sampled_ranks()}
    wide = unsample.compare(ranks, items=pages.ITEMS, sampled=pages.SAMPLED, metrics=many)
    assert show.sheet(wide).tables[0].narrow.columns == ("metric", "model", "estimate", "best")


def test_names_cannot_break_out_of_latex_and_markdown():
    names = ("[1em]", "*", r"\input{/etc/passwd}", "a & b % c # $x$ ^ ~ _ {", "x | y\n`z` <b>")
    table = show.Table(names, (names,))
    latex = show.table_latex(table, names[2])
    assert "{[}1em{]} & {*} & " in latex
    assert r"\input" not in latex
    assert not re.search(r"(?<!\\)[%#$]", latex)
    assert latex.count("&") - latex.count(r"\&") == 2 * (len(names) - 1)
    markdown = show.table_markdown(table, "")
    assert r"x \| y \`z\` &lt;b&gt;" in markdown
    assert len(markdown.splitlines()) == 3


@pytest.mark.parametrize("wrong", [3, {}, {"a": 1}, None, [1, 2]])
def test_what_is_no_result_is_refused(wrong):
    with pytest.raises(InputError, match="result must be what estimate, exact"):
        show.as_html(wrong)


def test_without_jinja_the_error_names_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unsample\[report\]'"):
        show.as_html(pages.result("exact"))


# -- plots take axes and return them, and draw the numbers of their results ------------------------

PLOTS = {
    "plot_across": "across",
    "plot_comparison": "compare",
    "plot_distribution": "methods",
    "plot_estimates": "methods",
    "plot_metric_curve": "methods",
}


def test_no_plot_escapes_these_tests():
    assert set(PLOTS) == {name for name in show.__all__ if name.startswith("plot_")}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_take_axes_and_return_them(name, tmp_path):
    figure = pytest.importorskip("matplotlib.figure")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    draw = getattr(show, name)
    assert inspect.signature(draw).parameters["ax"].kind is inspect.Parameter.KEYWORD_ONLY
    axes = figure.Figure().subplots()
    assert draw(pages.result(PLOTS[name]), ax=axes) is axes
    assert axes.get_xlabel()
    assert axes.lines or axes.collections
    assert axes.get_legend().get_texts()
    with pyplot.rc_context({"backend": "agg"}):
        pyplot.switch_backend("agg")
        fresh = draw(pages.result(PLOTS[name]))
        assert fresh is not axes
        show.write_plot(pages.result(PLOTS[name]), tmp_path / "plot.svg")
        assert "<svg" in (tmp_path / "plot.svg").read_text()
        pyplot.close("all")


def test_plots_draw_the_numbers():
    figure = pytest.importorskip("matplotlib.figure")
    result = pages.result("compare")
    axes = show.plot_comparison(result, metric="NDCG@50", ax=figure.Figure().subplots())
    expected = [abs(one.value) for one in result.differences if one.metric == "NDCG@50"]
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("o", "s")]
    assert points == expected
    assert len(axes.get_yticklabels()) == len(expected)
    held, ranks = pages.result("exact"), pages.full_ranks()
    axes = show.plot_metric_curve(held, full_ranks=ranks, ax=figure.Figure().subplots())
    curve, exact = (line.get_ydata() for line in axes.lines)
    assert curve == pytest.approx(exact)
    shown = {
        text.get_text()
        for text in show.plot_metric_curve(pages.result("methods"), ax=figure.Figure().subplots())
        .get_legend()
        .get_texts()
    }
    assert {"95 % interval", "bounds"} <= shown


def test_what_cannot_be_plotted_is_refused(tmp_path):
    with pytest.raises(InputError, match="one that was compared"):
        show.plot_comparison(pages.result("compare"), metric="Recall@3")
    options = {"items": 400, "sampled": 30, "metrics": "Recall@50", "method": "naive"}
    with pytest.raises(InputError, match="gives P"):
        show.plot_distribution(unsample.estimate(pages.sampled_ranks(), **options))
    with pytest.raises(InputError, match="must have a chart"):
        show.write_plot(pages.result("audit"), tmp_path / "plot.svg")
    with pytest.raises(FileError, match="ending of the plot's name"):
        show.write_plot(pages.result("compare"), tmp_path / "plot.gif")
