"""What results say: as text, tables for papers, pages and plots, and that nothing breaks out."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path

import pytest

import unsample
from tests import pages
from unsample import report
from unsample.errors import FileError, InputError
from unsample.report._writers import CITATION

pytest.importorskip("jinja2")


def charts(kind_or_text):
    """Return the charts of a page by name, as its script reads them."""
    text = pages.page(kind_or_text) if kind_or_text in pages.KINDS else kind_or_text
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    return {chart["identity"]: chart for chart in map(json.loads, found)}


# -- the page -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", pages.KINDS)
def test_a_page_is_whole_small_and_needs_nothing_else(kind):
    text = pages.page(kind)
    assert text.startswith("<!DOCTYPE html>")
    assert len(text.encode()) < 1_000_000
    assert not re.search(r"<[^>]+ (?:src|srcset|data|action|style|on[a-z]+)=", text)
    assert all(link.startswith("#") for link in re.findall(r'href="(.*?)"', text))
    identities = re.findall(r' id="(.*?)"', text)
    assert len(identities) == len(set(identities))
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    assert policy.startswith("default-src 'none'")
    for tag in ("style", "script"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert "url(" not in inner
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy.replace("&#43;", "+")


def test_a_page_leads_with_warnings_and_with_what_was_found():
    for kind in ("methods", "compare", "plan"):
        text = html.unescape(pages.page(kind))
        shown = report.view_of(pages.result(kind))
        leading = [text.index(line[:30]) for line in (*shown.warnings, *shown.verdicts)]
        assert leading == sorted(leading)
        assert max(leading) < text.index("<table")


def test_tables_hold_the_estimates_their_intervals_and_bounds():
    table = report.view_of(pages.result("methods")).tables[0].with_ranges()
    for row, entry in zip(table.rows, pages.result("methods").entries, strict=True):
        cells = dict(zip(table.columns, row, strict=True))
        assert (cells["metric"], cells["method"]) == (entry.metric.name, entry.method)
        ends = {"95 % interval": entry.interval(), "bounds": entry.bounds()}
        for name, numbers in {"estimate": (entry.value,), **ends}.items():
            assert cells[name].value == numbers[0], "sorted by its first number"
            printed = [float(text) for text in str(cells[name]).split(" .. ")]
            assert printed == pytest.approx(numbers, abs=5.1e-5)


@pytest.mark.parametrize("kind", ["estimate", "published"])
def test_curves_pass_through_the_estimates_and_their_limits(kind):
    result = pages.result(kind)
    views = {view["name"]: view for view in charts(kind)["curves"]["views"]}
    assert set(views) == {"Recall", "NDCG"}
    for entry in result.entries:
        view = views[entry.metric.family.name]
        index = view["x"].index(entry.metric.k)
        (curve,) = view["series"]
        assert curve["y"][index] == pytest.approx(entry.value, rel=1e-4)
        bands = {one["role"]: (one["low"][index], one["high"][index]) for one in view["bands"]}
        assert bands["interval"] == pytest.approx(entry.interval(), rel=1e-4)
        assert bands["bounds"] == pytest.approx(entry.bounds(), abs=1e-5)


def test_charts_hold_the_numbers_of_their_tables():
    result = pages.result("compare")
    drawn = charts("compare")["differences-chart"]
    assert [view["name"] for view in drawn["views"]] == [metric.name for metric in result.metrics]
    rows = [row for view in drawn["views"] for row in view["rows"]]
    for row, pair in zip(rows, result.differences, strict=True):
        first = pair if pair.value >= 0 else pair.reversed()
        assert row["label"] == f"{first.a} - {first.b}"
        assert row["value"] == pytest.approx(first.value, rel=1e-5)
        assert row["interval"] == pytest.approx([first.low, first.high], rel=1e-5)
        assert row["sure"] is (pair.winner is not None)
    across = pages.result("across")
    (first, *_) = charts("across")["means-chart"]["views"][0]["rows"]
    values = [each.estimates["good"]["Recall@100"].value for each in across.comparisons.values()]
    assert first["marks"] == pytest.approx(values, rel=1e-5)


# -- what tables say ------------------------------------------------------------------------------


def test_without_a_prior_bounds_stand_once_and_are_marked():
    options = {"items": pages.ITEMS, "sampled": pages.SAMPLED, "metrics": "Recall@50"}
    result = unsample.estimate(pages.sampled_ranks(), prior=None, **options)
    (row,) = report.view_of(result).tables[0].with_ranges().brief.rows
    assert str(row[-1]).endswith(" (bounds)")
    drawn = charts(report.as_html(result))
    (row,) = drawn["metrics-chart"]["views"][0]["rows"]
    assert row["interval"] == pytest.approx(result["Recall@50"].bounds(), rel=1e-5)
    assert (row["wider"], row["sure"]) == ([None, None], False)
    assert [one["role"] for one in drawn["curves"]["views"][0]["bands"]] == ["bounds"]
    assert "In brackets: 95 % interval. Bounds hold whatever" in report.as_markdown(result)


def test_guided_evaluations_name_both_intervals_these_users_first():
    result = pages.result("guided")
    table = report.view_of(result).tables[0].with_ranges().brief
    assert table.columns == ("metric", "estimate", "95 % interval", "users like these")
    for entry, (*_, own, like) in zip(result.entries, table.rows, strict=True):
        low, high = entry.interval(population=False)
        assert str(own) == ("exact" if low == high else f"{low:.4f} .. {high:.4f}")
        assert str(like) == "{:.4f} .. {:.4f}".format(*entry.interval())


def test_a_probability_is_withheld_where_bounds_are_all_that_is_known():
    few = {"A": [1, 2, 2, 9] * 5, "B": [1, 2, 3, 20] * 5}
    result = unsample.compare(few, items=500, sampled=99, metrics="Recall@50", prior=None)
    models, differences = (table.with_ranges().brief for table in report.view_of(result).tables)
    assert {*map(str, models.cells("best")), *map(str, differences.cells("probability"))} == {""}
    assert all(text.endswith(" (bounds)") for text in map(str, models.cells("95 % interval")))


def test_numbers_that_cannot_vary_or_are_small_or_groups_that_differ():
    one = unsample.exact([3], items=9, metrics="MR")
    assert "nothing varies" in str(one)
    small = unsample.exact([1] + [900] * 4000, items=999, metrics="Recall@5")
    assert "0.00025" in str(small)
    text = report.as_text({"a": one, "b": small})
    assert text.startswith("a: 1 user ranked among all 9 items\nb: 4,001 users")


# -- text, notebooks, LaTeX, Markdown -------------------------------------------------------------


@pytest.mark.parametrize("kind", pages.KINDS)
def test_every_form_holds_every_number_sentence_and_warning(kind):
    def plain(text):
        """Return letters and digits alone: what is between them belongs to the form."""
        return re.sub(r"\\text[a-z]+|[^A-Za-z0-9]", "", html.unescape(text))

    shown = report.view_of(pages.result(kind))
    for form in (report.as_text, report.as_notebook, report.as_latex, report.as_markdown):
        whole = plain(form(pages.result(kind)))
        screen = form in (report.as_text, report.as_notebook)
        tables = [table.with_ranges().brief if screen else table.narrow for table in shown.tables]
        cells = [str(cell) for table in tables for row in table.rows for cell in row]
        for text in (*shown.about, *cells, *shown.verdicts, *shown.warnings):
            assert plain(text) in whole, text


@pytest.mark.parametrize("kind", pages.KINDS)
def test_latex_can_be_pasted(kind):
    text = report.as_latex(pages.result(kind))
    outside = re.sub(r"\\begin\{table\}.*?\\end\{table\}", "", text, flags=re.DOTALL)
    assert all(line.startswith("%") for line in outside.split("\n") if line)
    labels = re.findall(r"\\label\{(.+)\}", text)
    assert len(labels) == len(set(labels)) == len(report.view_of(pages.result(kind)).tables)
    for note in re.findall(r"\\footnotesize (.*)", text):
        assert len(note) <= 200
    for caption in re.findall(r"\\caption\{(.*)\}", text):
        assert caption.endswith(").")
    for block in text.split(r"\begin{table}")[1:]:
        align = re.search(r"\\begin\{tabular\}\{([lr]+)\}", block)[1]
        rows = re.findall(r"^(.*) \\\\$", block, re.MULTILINE)
        assert {row.count("&") - row.count(r"\&") for row in rows} == {len(align) - 1}


def test_tables_say_what_to_cite_as_the_citation_file_does():
    for form in (report.as_latex, report.as_markdown):
        text = form(pages.result("exact")).replace("\\", "")
        assert f"unsample {unsample.__version__}; cite {CITATION}" in text
    cff = (Path(__file__).parent.parent / "CITATION.cff").read_text(encoding="utf-8")
    family = re.findall(r"family-names: (\w+)", cff)
    assert [name for name in family if name in CITATION] == family
    (doi,) = re.findall(r"doi: (\S+)", cff)
    titles = re.findall(r"title: (On .+)", cff)
    assert doi in CITATION
    assert titles[0] in CITATION


def test_only_what_is_told_apart_is_bold():
    result = pages.result("compare")
    best = [row.value for row in result.standings if result.winner(row.metric) == row.model]
    assert best
    for value in best:
        assert rf"\textbf{{{value:.4f}}}" in report.as_latex(result)
        assert f"**{value:.4f}**" in report.as_markdown(result)
    told = sum(pair.winner is not None for pair in result.differences)
    assert report.as_latex(result).count(r"\textbf") == len(best) + told
    assert r"\textbf" not in report.as_latex(pages.result("together"))


def test_papers_have_a_column_for_each_metric():
    held = pages.result("methods")
    assert report.view_of(held).tables[0].narrow.columns == ("method", *held)
    grouped = report.view_of({"a": held, "b": held}).tables[0].narrow
    assert grouped.columns == ("group", "method", *held)
    assert len(grouped.rows) == 2 * len(held.methods)
    result = pages.result("compare")
    models = report.view_of(result).tables[0].narrow
    assert models.columns == ("model", *(metric.name for metric in result.metrics))


def test_names_cannot_break_out_of_latex_and_markdown():
    names = ("[1em]", "*", r"\input{/etc/passwd}", "a & b % c # $x$ ^ ~ _ {", "x | y\n`z` <b>")
    table = report.Table(names, (names,))
    latex = report.table_latex(table, names[2])
    assert "{[}1em{]} & {*} & " in latex
    assert r"\input" not in latex
    assert not re.search(r"(?<!\\)[%#$]", latex)
    assert latex.count("&") - latex.count(r"\&") == 2 * (len(names) - 1)
    markdown = report.table_markdown(table, "")
    assert r"x \| y \`z\` &lt;b&gt;" in markdown
    assert len(markdown.splitlines()) == 3


# -- plots ----------------------------------------------------------------------------------------


@pytest.fixture
def axes():
    return pytest.importorskip("matplotlib.figure").Figure().subplots()


@pytest.mark.parametrize("kind", ["methods", "compare", "across"])
def test_plots_take_axes_and_return_them(kind, axes):
    result = pages.result(kind)
    assert report.plot(result, ax=axes) is axes
    assert axes.get_xlabel()
    assert axes.get_legend().get_texts()


def test_a_curve_has_its_bands_and_the_truth_beside_it(axes):
    result, ranks = pages.result("estimate"), pages.full_ranks()
    result.plot_curve(largest=100, full_ranks=ranks, ax=axes)
    names = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {"95 % interval", "bounds", "auto", "exact"} <= names
    lines = {line.get_label(): line for line in axes.lines}
    ks = lines["exact"].get_xdata()
    assert ks[-1] == 100
    assert lines["exact"].get_ydata() == pytest.approx([(ranks <= k).mean() for k in ks])
    assert lines["auto"].get_ydata()[-1] == result.metric("Recall@100").value


def test_what_cannot_be_shown_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"one of Recall@100, NDCG@50, got 'Recall@3'"):
        report.plot(pages.result("compare"), metric="Recall@3")
    with pytest.raises(InputError, match="naive gives no P"):
        pages.result("methods").plot_curve()  # the first is naive
    with pytest.raises(InputError, match="must have a chart"):
        report.write_plot(pages.result("audit"), tmp_path / "plot.svg")
    with pytest.raises(FileError, match=r"path must end in \.svg, \.pdf or \.png, got"):
        report.write_plot(pages.result("compare"), tmp_path / "plot.gif")
    with pytest.raises(
        FileError, match=r"path must end in \.html or \.htm, got .*; such as 'a.html'"
    ):
        pages.result("compare").to_html(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="result must be what estimate, exact"):
        report.as_html({"a": 1})
