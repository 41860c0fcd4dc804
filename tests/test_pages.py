"""The page of any result: what it says, that it says it truly, and that nothing breaks out."""

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
from unsample import show as report
from unsample.errors import InputError, MissingExtraError, UnsampleWarning
from unsample.metrics import NDCG, Recall
from unsample.show._curves import AtManyK
from unsample.show._paper import CITATION

pytest.importorskip("jinja2")
VOID = {"meta", "input", "link", "br", "hr", "img"}


class Reader(HTMLParser):
    """Reads a page as a browser would, and notes tables, charts and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.charts: list[dict] = []
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
                self.charts.append(json.loads(data))
            else:
                self.scripts.append(data)
            return
        self.words.append(data)
        if self._cell is not None:
            self._cell[0] += data


def chart(kind, title):
    found = [one for one in Reader(pages.page(kind)).charts if one["title"] == title]
    assert len(found) == 1
    return found[0]


def text_of(kind):
    return " ".join(" ".join(Reader(pages.page(kind)).words).split())


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


def test_warnings_come_before_any_number():
    result = pages.result("methods")
    text = text_of("methods")
    assert result.warnings
    first_number = text.index("0.")
    for warning in result.warnings:
        assert 0 <= text.index(warning[:60]) < first_number


def test_the_page_says_what_its_words_mean_and_what_was_assumed():
    text = text_of("estimate")
    for part in (
        "whatever P(R) is",
        "95 % of data sets like those that the prior was learned from",
        "drawn uniformly among its candidates, with replacement",
        "not stated whether items that a user had seen were left out",
    ):
        assert part in text
    assert "were left out of the candidates" in text_of("methods")
    assert "whatever P(R) is" not in text_of("exact")


def test_a_page_leads_with_what_was_found():
    text = text_of("compare").replace(pages.EVIL, "")
    verdict = pages.result("compare").sentences()[0].replace(pages.EVIL, "")
    assert 0 <= text.index(verdict[:40]) < text.index("data sets like those that the prior")
    plan = text_of("plan")
    assert plan.index(pages.result("plan").recommendation) < plan.index("metric@K is certain")
    assert pages.result("evaluate").cost[1:] in text_of("evaluate")


# -- the numbers ----------------------------------------------------------------------------------


def test_the_table_holds_the_estimates():
    result = pages.result("methods")
    head, *rows = Reader(pages.page("methods")).tables["estimates"]
    names = [name for name, _ in head]
    assert len(rows) == len(result.entries)
    for row, entry in zip(rows, result.entries, strict=True):
        cells = dict(zip(names, row, strict=True))
        assert (cells["metric"][0], cells["method"][0]) == (entry.metric.name, entry.method)
        ends = {"95 % interval": entry.interval(), "bounds": entry.bounds()}
        for name, shown in {"estimate": (entry.value,), **ends}.items():
            assert float(cells[name][1]) == shown[0], "sorted by its first number"
            printed = [float(text) for text in cells[name][0].split(" .. ")]
            assert printed == pytest.approx(shown, abs=5.1e-5)


def test_curves_pass_through_the_estimates_and_their_limits():
    result = pages.result("methods")
    views = {one["name"]: one for one in chart("methods", "Metric@K at every K")["views"]}
    assert set(views) == {"Recall", "NDCG"}
    for entry in result.entries:
        view = views[entry.metric.family.name]
        place = view["x"].index(entry.metric.k)
        series = {one["name"]: one for one in view["series"]}
        assert series[entry.method]["y"][place] == pytest.approx(entry.value, rel=1e-4)
        bands = {one["role"]: one for one in view["bands"]}
        assert {role: band["name"] for role, band in bands.items()} == {
            "interval": "95 % interval",
            "bounds": "bounds",
        }
        limits = {"interval": entry.interval(), "bounds": entry.bounds()}
        for role, (low, high) in limits.items():
            # The curve's grid of K is finer than that of the estimate, so bounds may differ by
            # what the finer grid of evidence tells.
            near = {"rel": 1e-4} if role == "interval" else {"abs": 0.02}
            assert bands[role]["low"][place] == pytest.approx(low, **near)
            assert bands[role]["high"][place] == pytest.approx(high, **near)


def test_the_curve_of_the_posterior_passes_through_its_values():
    (view,) = (
        one for one in chart("estimate", "Metric@K at every K")["views"] if one["name"] == "Recall"
    )
    for name in ("Recall@5", "Recall@50"):
        entry = pages.result("estimate")[name]
        place = view["x"].index(entry.metric.k)
        assert view["series"][0]["y"][place] == pytest.approx(entry.value, rel=1e-5)


def test_without_a_prior_bounds_stand_once_and_are_marked():
    result = unsample.estimate(
        pages.sampled_ranks(),
        items=pages.ITEMS,
        sampled=pages.SAMPLED,
        metrics="Recall@50",
        prior=None,
    )
    intervals, curves, _ = Reader(report.as_html(result)).charts
    (row,) = intervals["views"][0]["rows"]
    assert row["interval"] == pytest.approx(result["Recall@50"].bounds(), rel=1e-5)
    assert (row["bounds"], row["health"]) == ([None, None], "unsure")
    assert [one["role"] for one in curves["views"][0]["bands"]] == ["bounds"]
    (cell,) = (str(cell) for cell in report.sheet(result).tables[0].brief.rows[0][2:])
    assert cell.endswith(" (bounds)")


def test_a_vague_value_is_a_range():
    with pytest.warns(UnsampleWarning, match="a range is shown"):
        result = unsample.published(
            {"HR@10": "0.690"}, items=3706, sampled=99, users=6040, metrics="NDCG@10"
        )
    (row,) = report.sheet(result).tables[0].brief.rows
    low, high = result["NDCG@10"].interval()
    assert list(map(str, row)) == ["NDCG@10", "\N{EN DASH}", f"{low:.4f} .. {high:.4f}"]
    reader = Reader(report.as_html(result))
    assert reader.charts[0]["views"][0]["rows"][0]["value"] is None


def test_guided_evaluations_name_both_intervals_these_users_first():
    result = pages.result("guided")
    table = report.sheet(result).tables[0].brief
    assert table.columns == ("metric", "estimate", "these users", "users like these")
    for entry, (*_, own, like) in zip(result.entries, table.rows, strict=True):
        low, high = entry.interval(population=False)
        assert str(own) == ("exact" if low == high else f"{low:.4f} .. {high:.4f}")
        assert str(like) == "{:.4f} .. {:.4f}".format(*entry.interval())


def test_a_withheld_chance_is_blank():
    few = {"A": [1, 2, 2, 9] * 5, "B": [1, 2, 3, 20] * 5}
    with pytest.warns(UnsampleWarning):
        result = unsample.compare(few, items=500, sampled=99, metrics="Recall@50")
    models, differences = report.sheet(result).tables
    assert {str(row[-1]) for row in models.rows} == {""}
    assert str(differences.rows[0][-2]) == ""
    assert all(str(row[3]).endswith(" (bounds)") for row in models.rows)


def test_intervals_of_several_results_end_at_what_a_metric_can_be():
    views = chart("compare", "Metric@K at every K")["views"]
    ends = [value for view in views for band in view["bands"] for value in band["high"]]
    assert {band["role"] for view in views for band in view["bands"]} == {"interval"}
    assert max(ends) <= 1.0


@pytest.mark.parametrize("kind", ["exact", "groups"])
def test_the_learned_distribution_is_one(kind):
    views = {view["name"]: view for view in chart(kind, "Metric@K at every K")["views"]}
    (mean,) = chart(kind, "Learned P(R)")["views"]
    widths = np.diff(mean["x"])
    assert widths.sum() == pages.ITEMS
    for shares, recall in zip(mean["series"], views["Recall"]["series"], strict=True):
        assert recall["y"][-1] == pytest.approx(1.0, abs=1e-5)
        assert np.cumsum(widths * shares["y"]) == pytest.approx(np.array(recall["y"]), abs=1e-5)


def test_numbers_stand_below_their_names_where_curves_have_different_methods():
    """Recall was not asked for, so that naive, which knows no P(R), has nothing to say about it."""
    result = unsample.estimate(
        pages.sampled_ranks(),
        items=pages.ITEMS,
        sampled=pages.SAMPLED,
        metrics="NDCG@50",
        method=["naive", "mle"],
    )
    head, *rows = Reader(report.as_html(result)).tables["metrics-at-k-numbers"]
    assert all(len(row) == len(head) for row in rows)
    naive = [name for name, _ in head].index("naive")
    shown = {(row[0][0], row[1][0]): row[naive][0] for row in rows}
    assert shown["NDCG", "K = 50"] == f"{result['NDCG@50'].value:.4f}"
    assert {text for (view, _), text in shown.items() if view == "Recall"} == {"\N{EN DASH}"}


@pytest.mark.parametrize("family", [Recall, NDCG])
def test_intervals_of_full_ranks_are_those_of_a_mean(family):
    ranks = pages.full_ranks()
    known = AtManyK(pages.result("exact"), np.array([3, 20, 100]))
    curve = known.curve(family)
    for place, k in enumerate(known.ks.tolist()):
        weights = (family @ k).weights(ranks, pages.ITEMS)
        error = 1.959964 * weights.std() / np.sqrt(len(ranks))
        assert curve.values["exact"][place] == pytest.approx(weights.mean())
        expected = [weights.mean() - error, weights.mean() + error]
        assert curve.limits["interval"][place] == pytest.approx(expected, rel=1e-5)


def test_groups_of_different_catalogues_share_an_axis():
    options = {"sampled": pages.SAMPLED, "metrics": "Recall@50", "method": "mle"}
    ranks = pages.sampled_ranks()
    groups = {str(items): unsample.estimate(ranks, items=items, **options) for items in (200, 400)}
    drawn = Reader(report.as_html(groups)).charts
    (view,) = next(held for held in drawn if held["title"].startswith("Metric@K"))["views"]
    small, large = view["series"]
    beyond = np.array(view["x"]) > 200
    assert all(value is None for value, out in zip(small["y"], beyond, strict=True) if out)
    assert None not in large["y"]


def test_differences_are_those_of_the_comparison():
    result = pages.result("compare")
    drawn = chart("compare", "Differences between models")
    for view in drawn["views"]:
        expected = [one for one in result.differences if one.metric == view["name"]]
        for row, one in zip(view["rows"], expected, strict=True):
            assert row["value"] == pytest.approx(one.value, rel=1e-5)
            assert row["interval"] == pytest.approx([one.low, one.high], rel=1e-5)
            assert (row["health"] == "sure") is (one.winner is not None)
    healths = {row["health"] for view in drawn["views"] for row in view["rows"]}
    assert "sure" in healths, "the example should show a winner"


# -- text, notebooks, LaTeX, Markdown -------------------------------------------------------------

FORMS = {
    "text": report.as_text,
    "notebook": report.as_notebook,
    "latex": report.as_latex,
    "markdown": report.as_markdown,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", pages.KINDS)
def test_every_form_holds_every_cell_note_and_warning(kind, form):
    def plain(text):
        """Return letters and digits alone: what is between them belongs to the form."""
        return re.sub(r"\\text[a-z]+|[^A-Za-z0-9]", "", html.unescape(text))

    shown = report.sheet(pages.result(kind))
    whole = plain(FORMS[form](shown))
    cells = [str(cell) for table in shown.tables for row in table.brief.rows for cell in row]
    notes = [line for note in shown.notes for line in note.splitlines()]
    for text in (*shown.title, *shown.verdicts, *cells, *notes, *shown.warnings):
        assert plain(text) in whole, text


def test_the_best_of_a_comparison_is_bold():
    result = pages.result("compare")
    best = {}
    for row in result.standings:
        best[row.metric] = max(row.value, best.get(row.metric, 0.0))
    for value in best.values():
        assert rf"\textbf{{{value:.4f}}}" in report.as_latex(result)
        assert f"**{value:.4f}**" in report.as_markdown(result)
    assert report.as_latex(result).count(r"\textbf") == len(best)


def test_names_cannot_break_out_of_latex_and_markdown():
    names = ("[1em]", "*", r"\input{/etc/passwd}", "a & b % c # $x$ ^ ~ _ {", "x | y\n`z` <b>")
    shown = report.Sheet((), (report.Table(names, (names,)),))
    latex = report.as_latex(shown)
    assert "{[}1em{]} & {*} & " in latex
    assert r"\input" not in latex
    assert not re.search(r"(?<!\\)[%#$]", latex)
    assert latex.count("&") - latex.count(r"\&") == 2 * (len(names) - 1)
    markdown = report.as_markdown(shown)
    assert r"x \| y \`z\` &lt;b&gt;" in markdown
    assert len(markdown.splitlines()) == 3


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [3, {}, {"a": 1}, None, [1, 2]])
def test_what_is_no_result_is_refused(wrong):
    with pytest.raises(InputError, match="result must be what estimate, exact"):
        report.as_html(wrong)


def test_without_jinja_the_error_names_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unsample\[report\]'"):
        report.as_html(pages.result("exact"))


# -- tables for papers -----------------------------------------------------------------------------


PAPER_FORMS = {"latex": report.as_latex, "markdown": report.as_markdown}


def plain(text):
    """Return a form without the marks that escape its brackets."""
    return re.sub(r"\{([\[\]*])\}|\\([\[\]*@_])", r"\1\2", text)


@pytest.mark.parametrize("form", PAPER_FORMS)
@pytest.mark.parametrize("kind", pages.KINDS)
def test_every_table_says_what_to_cite(kind, form):
    text = PAPER_FORMS[form](pages.result(kind))
    assert f"unsample {unsample.__version__}" in text
    assert "doi:10.1609/aaai.v35i5.16537" in text


def test_the_citation_is_that_of_the_citation_file():
    cff = (Path(__file__).parent.parent / "CITATION.cff").read_text(encoding="utf-8")
    family = re.findall(r"family-names: (\w+)", cff)
    assert [name for name in family if name in CITATION] == family
    (doi,) = re.findall(r"doi: (\S+)", cff)
    titles = re.findall(r"title: (On .+)", cff)
    assert doi in CITATION
    assert titles
    assert titles[0] in CITATION


@pytest.mark.parametrize("form", PAPER_FORMS)
def test_values_stand_with_their_intervals_in_one_cell(form):
    result = pages.result("methods")
    text = plain(PAPER_FORMS[form](result))
    for entry in result.entries:
        low, high = entry.interval()
        assert f"{entry.value:.4f} [{low:.4f}, {high:.4f}]" in text
    assert "in brackets: 95" in text
    assert f"method: {', '.join(result.methods)}" in text


@pytest.mark.parametrize("form", PAPER_FORMS)
def test_a_comparison_has_a_row_for_each_model_and_a_column_for_each_metric(form):
    result = pages.result("compare")
    shown = report.paper(result)
    models, differences = shown.tables
    assert models.columns == ("model", *(metric.name for metric in result.metrics))
    assert {str(row[0]) for row in models.rows} == set(result.models)
    assert len(differences.rows) == len(result.differences)
    text = plain(PAPER_FORMS[form](result))
    for row in result.standings:
        assert f"[{row.low:.4f}, {row.high:.4f}]" in text


def test_more_metrics_than_a_page_is_wide_have_rows_of_their_own():
    ranks = {"A": pages.sampled_ranks(0.3), "B": pages.sampled_ranks()}
    many = [f"Recall@{k}" for k in (5, 10, 20, 50, 100)]
    result = unsample.compare(ranks, items=pages.ITEMS, sampled=pages.SAMPLED, metrics=many)
    models, _ = report.paper(result).tables
    assert models.columns == ("metric", "model", "estimate")
    assert len(models.rows) == len(many) * 2
    alone = {name: result.estimates[name] for name in result.models}
    (table,) = report.paper(alone).tables
    assert table.columns[:2] == ("group", "metric")


def test_groups_are_rows_and_bounds_are_marked():
    held = pages.result("methods")
    (table,) = report.paper({"a": held, "b": held}).tables
    assert table.columns == ("group", "method", *held)
    assert len(table.rows) == 2 * len(held.methods)
    bounds = unsample.estimate(
        pages.sampled_ranks(), items=400, sampled=30, metrics="Recall@50", prior=None
    )
    ((_, cell),) = report.paper({"a": bounds}).tables[0].rows
    assert str(cell).endswith(" (bounds)")


# -- plots take axes and return them, and draw the numbers of their results ------------------------


PLOTS = {
    "plot_across": "across",
    "plot_comparison": "compare",
    "plot_distribution": "methods",
    "plot_estimates": "methods",
    "plot_metric_curve": "methods",
    "plot_plan": "plan",
}


def test_no_plot_escapes_these_tests():
    assert set(PLOTS) == {name for name in report.__all__ if name.startswith("plot_")}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_take_axes_and_return_them(name):
    figure = pytest.importorskip("matplotlib.figure")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    draw = getattr(report, name)
    parameter = inspect.signature(draw).parameters["ax"]
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    assert parameter.default is None
    axes = figure.Figure().subplots()
    assert draw(pages.result(PLOTS[name]), ax=axes) is axes
    assert axes.get_xlabel()
    assert axes.lines or axes.collections
    with pyplot.rc_context({"backend": "agg"}):
        pyplot.switch_backend("agg")
        fresh = draw(pages.result(PLOTS[name]))
        assert fresh is not axes
        pyplot.close(fresh.get_figure(root=True))


@pytest.mark.parametrize("draw", [report.plot_metric_curve, report.plot_estimates])
def test_legends_name_the_ranges(draw):
    figure = pytest.importorskip("matplotlib.figure")
    axes = draw(pages.result("methods"), ax=figure.Figure().subplots())
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {"95 % interval", "bounds"} <= shown


def test_plots_draw_the_numbers():
    figure = pytest.importorskip("matplotlib.figure")
    result = pages.result("compare")
    axes = report.plot_comparison(result, metric="NDCG@50", ax=figure.Figure().subplots())
    expected = [one for one in result.differences if one.metric == "NDCG@50"]
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("o", "s")]
    assert points == [one.value for one in expected]
    assert len(axes.get_yticklabels()) == len(expected)
    with pytest.raises(InputError, match="one that was compared"):
        report.plot_comparison(result, metric="Recall@3")
    evaluated = pages.result("evaluate")
    axes = report.plot_estimates(evaluated, ax=figure.Figure().subplots())
    assert axes.lines[-1].get_xdata()[0] == evaluated["NDCG@10"].value
    silent = unsample.estimate(
        pages.sampled_ranks(), items=400, sampled=30, metrics="Recall@50", method="naive"
    )
    with pytest.raises(InputError, match="gives P"):
        report.plot_distribution(silent)
