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
from unsample.errors import FileError, InputError, UnsampleWarning
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
        if entry.method == "naive":
            assert [str(cells[name]) for name in (*ends, "source")] == ["", "", ""]
            ends = {}
        for name, numbers in {"estimate": (entry.value,), **ends}.items():
            assert cells[name].value == numbers[0], "sorted by its first number"
            printed = [float(text) for text in str(cells[name]).split(" .. ")]
            assert printed == pytest.approx(numbers, abs=5.1e-5)


def test_the_sampled_metric_alone_has_no_interval():
    ranks = pages.sampled_ranks()
    design = {"items": pages.ITEMS, "sampled": pages.SAMPLED, "metrics": "Recall@5"}
    with pytest.warns(UnsampleWarning, match="do not report it"):
        result = unsample.estimate(ranks, method="naive", **design)
    shown = report.view_of(result)
    assert "95 % interval" not in shown.tables[0].with_ranges().columns
    assert not shown.notes
    value = result["Recall@5"].value
    assert result.sentence().startswith(f"Recall@5 is {value:.4f} among sampled items, ")


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
        columns = re.search(r"\\begin\{tabular\}\{((?:[lr]|p\{\d+pt\})+)\}", block)[1]
        align = re.sub(r"p\{\d+pt\}", "l", columns)
        rows = re.findall(r"^(.*) \\\\$", block, re.MULTILINE)
        assert {row.count("&") - row.count(r"\&") for row in rows} == {len(align) - 1}


def test_sentences_are_at_most_100_columns_wide():
    long = {"a " + "very " * 30 + "long name": pages.sampled_ranks(0.3), "B": pages.sampled_ranks()}
    result = unsample.compare(long, items=pages.ITEMS, sampled=pages.SAMPLED, metrics="Recall@50")
    tables, _, sentences = str(result).rpartition("\n\n")
    below = tables.rpartition("\n\n")[2].splitlines() + sentences.splitlines()
    assert len(below) > 4
    assert max(map(len, below)) <= 100
    assert result.sentences()[0] in " ".join(str(result).split())


def test_tables_of_notebooks_are_named_and_apart():
    text = report.as_notebook(pages.result("compare"))
    assert text.count("<p><b>") == text.count("<table") == 2
    assert "</table><table" not in text
    assert text.count("margin-bottom") == 2
    widths = re.findall(r'<td style="text-align:(\w+)', text)
    assert {*widths} == {"left", "right"}


def test_tables_say_what_to_cite_as_the_citation_file_does():
    for form in (report.as_latex, report.as_markdown):
        text = form(pages.result("exact")).replace("\\", "").replace("\n% ", " ")
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
    assert grouped.columns == ("group", "metric", "method", "estimate"), "there is no more room"
    assert len(grouped.rows) == 2 * len(held.methods) * len(held)
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


def points(text):
    """Return how many points wide a text is in the 10 point roman of LaTeX."""
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(fname=f"{matplotlib.get_data_path()}/fonts/ttf/cmr10.ttf")
    return TextPath((0, 0), f"l{text}l", size=10, prop=font).get_extents().width - 5.6


#: How wide letters are in each size of type, relative to 10 points.
SCALES = {"": 1.0, r"\small": 0.925, r"\footnotesize": 0.85}


def paper_width(block):
    """Return how many points wide a table for LaTeX is."""
    before = block.partition(r"\begin{tabular}")[0].splitlines()[-1]
    size = re.fullmatch(
        r"(\\small|\\footnotesize)?(?:\\setlength\{\\tabcolsep\}\{(\d)pt\})?", before
    )
    scale = SCALES[size[1] or ""] if size else 1.0
    gap = 2 * int(size[2] or 6) if size else 12
    columns = re.findall(r"[lr]|p\{\d+pt\}", re.search(r"\{tabular\}\{(.*)\}", block)[1])
    rows = re.findall(r"^(.*) \\\\$", block, re.MULTILINE)
    plain = [re.sub(r"\\text[a-z]+\{|[{}\\]", "", row).replace("$", "") for row in rows]
    cells = zip(*(row.split(" & ") for row in plain), strict=True)
    return sum(
        gap + (float(column[2:-3]) if column[0] == "p" else scale * max(map(points, texts)))
        for column, texts in zip(columns, cells, strict=True)
    )


@pytest.mark.parametrize("names", [("EASE", "itemKNN"), ("MultiVAE, dropout 0.5, seed 1", "EASE")])
def test_tables_fit_the_text_of_an_article(names):
    models = {name: pages.sampled_ranks(0.3 + 0.5 * at) for at, name in enumerate(names)}
    metrics = ["Recall@10", "NDCG@50", "Recall@50"]
    result = unsample.compare(models, items=pages.ITEMS, sampled=pages.SAMPLED, metrics=metrics)
    blocks = result.to_latex().split(r"\begin{table}")[1:]
    assert len(blocks) == 2
    for block in blocks:
        assert 250 < paper_width(block) <= 345.0


def test_names_beyond_latin_letters_come_with_how_to_set_them():
    assert "XeLaTeX" not in report.as_latex(pages.result("compare"))
    models = {"модель": pages.sampled_ranks(0.3), "模型": pages.sampled_ranks()}
    result = unsample.compare(models, items=pages.ITEMS, sampled=pages.SAMPLED, metrics="Recall@50")
    comments = result.to_latex().partition("\n\n")[0].replace("\n% ", " ")
    letters = comments.partition("The letters ")[2].partition(" need XeLaTeX or LuaLaTeX")[0]
    assert {*letters} == {*"модель模型"}


# -- a sentence for a paper -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in pages.KINDS if kind != "groups"])
def test_every_result_has_a_sentence_for_a_paper(kind):
    sentence = pages.result(kind).sentence()
    assert f"unsample {unsample.__version__}" in sentence
    assert sentence.endswith((".", ".)"))
    assert "\n" not in sentence
    assert html.escape(sentence, quote=False) in html.unescape(pages.page(kind)) or (
        sentence in html.unescape(pages.page(kind))
    )
    told = f"for a paper: {sentence}"
    assert told in " ".join(report.as_text(pages.result(kind), verbose=True).split())
    assert told not in " ".join(report.as_text(pages.result(kind)).split())


def test_the_sentence_names_method_sample_protocol_and_interval():
    result = pages.result("methods")
    first = result["Recall@5", "mle"]
    low, high = first.interval()
    assert result.sentence().startswith(f"Recall@5 is {first.value:.4f} [{low:.4f}, {high:.4f}]")
    for words in (
        "(95 % intervals)",
        "(method mle)",
        "1,500 users among 30 sampled items of 400",
        "for each target, uniformly at random, with replacement",
        "items that a user had seen were no candidates",
    ):
        assert words in result.sentence()
    assert "the protocol is not stated" in pages.result("estimate").sentence()
    assert "among all 400 items" in pages.result("exact").sentence()
    assert "HR@1 = 0.18 and HR@10 = 0.69" in pages.result("published").sentence()
    assert pages.result("evaluate").sentence().startswith("NDCG@10 is 0.0132 (exact) for these u")
    assert "(design certified)" in pages.result("evaluate").sentence()
    guided = pages.result("guided").sentence()
    assert "Recall@5 is 0.0350 (exact), Recall@50 is " in guided
    assert "(95 % intervals for these users)" in guided
    assert pages.result("compare").sentences()[0] in pages.result("compare").sentence()


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


@pytest.mark.parametrize("kind", ["estimate", "methods", "published", "exact"])
def test_p_of_r_is_in_every_form(kind, axes, tmp_path):
    result = pages.result(kind)
    data = result.to_dict()["P(R)"]
    assert data["from"][0] == 1
    assert data["to"][-1] == pages.ITEMS
    assert data["from"][1:] == [rank + 1 for rank in data["to"][:-1]]
    widths = [last - first + 1 for first, last in zip(data["from"], data["to"], strict=True)]
    for method, shares in data["share"].items():
        assert sum(shares) == pytest.approx(1.0)
        curve = result.distribution(method)
        assert shares[0] == pytest.approx(float(curve.pmf(1)))
        assert sum(shares[:9]) == pytest.approx(float(curve.cdf(data["to"][8])))
    (view,) = charts(kind)["ranks"]["views"]
    drawn = {one["name"]: one["y"] for one in view["series"]}
    for method, shares in data["share"].items():
        expected = [share / width for share, width in zip(shares, widths, strict=True)]
        assert drawn[method] == pytest.approx(expected, rel=1e-5)
    if kind == "exact":
        assert (data["low"], data["high"], view["bands"]) == (None, None, [])
    else:
        (band,) = view["bands"]
        assert band["low"] == pytest.approx(
            [low / width for low, width in zip(data["low"], widths, strict=True)], rel=1e-5
        )
    result.plot(ax=axes, chart="ranks")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("R", "P(R)", "log")
    first = next(iter(drawn.values()))
    assert axes.lines[-1].get_ydata()[0] == pytest.approx(list(drawn.values())[-1][0], rel=1e-4)
    assert axes.get_ylim()[0] < min(y for y in first if y > 0)


def test_the_interval_of_p_of_r_is_that_of_recall_at_1():
    result = pages.result("estimate")
    data = result.to_dict()["P(R)"]
    low, high = result.metric("Recall@1").interval()
    assert (data["low"][0], data["high"][0]) == pytest.approx((low, high), rel=0.02)


def test_charts_are_asked_for_by_name(axes):
    result = pages.result("estimate")
    assert result.plot(ax=axes, chart="curves", metric="NDCG").get_ylabel() == "NDCG@K"
    with pytest.raises(InputError, match=r"chart must be one of metrics, curves, ranks, got 'P'"):
        result.plot(chart="P")
    with pytest.raises(InputError, match=r"chart must be one of differences, models, got 'ranks'"):
        pages.result("compare").plot(chart="ranks")


def test_a_plot_is_as_high_as_its_rows_need():
    one = unsample.exact(pages.full_ranks(), items=pages.ITEMS, metrics="Recall@50").plot()
    several = pages.result("exact").plot()
    heights = [each.figure.get_size_inches()[1] for each in (one, several)]
    assert heights[0] < 2.0 < heights[1] < 4.0
    pytest.importorskip("matplotlib.pyplot").close("all")


def test_pictures_have_a_title_and_a_description(tmp_path):
    result = pages.result("compare")
    for name in ("a.svg", "b.svg", "a.png", "a.pdf"):
        result.plot(tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert '<svg role="img"' in text
    assert "<title>Differences between models</title>" in text
    description = html.unescape(re.search("<desc>(.*?)</desc>", text)[1])
    assert description.startswith("3 models, 1,500 users")
    assert "Thick line: 90 % interval." in description
    assert b"Differences between models" in (tmp_path / "a.png").read_bytes()
    assert b"Differences between models" in (tmp_path / "a.pdf").read_bytes()
    pictures = Path(__file__).parent.parent / "docs" / "pictures"
    for path in pictures.glob("*.svg"):
        drawn = path.read_text(encoding="utf-8")
        assert re.search(r'<svg role="img".*?<title>.+?</title><desc>.+?</desc>', drawn, re.DOTALL)


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
