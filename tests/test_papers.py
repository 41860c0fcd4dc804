"""Tables for papers: what stands in LaTeX and Markdown, and what frames of comparisons hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unsample
from tests import pages
from unsample import pages as report
from unsample.pages._paper import CITATION

FORMS = {"latex": report.as_latex, "markdown": report.as_markdown}


def plain(text):
    """Return a form without the marks that escape its brackets."""
    return re.sub(r"\{([\[\]*])\}|\\([\[\]*@_])", r"\1\2", text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", pages.KINDS)
def test_every_table_says_what_to_cite(kind, form):
    text = FORMS[form](pages.result(kind))
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


@pytest.mark.parametrize("form", FORMS)
def test_values_stand_with_their_intervals_in_one_cell(form):
    result = pages.result("methods")
    text = plain(FORMS[form](result))
    for entry in result.entries:
        low, high = entry.interval()
        assert f"{entry.value:.4f} [{low:.4f}, {high:.4f}]" in text
    assert "in brackets: 95" in text
    assert f"method: {', '.join(result.methods)}" in text


@pytest.mark.parametrize("form", FORMS)
def test_a_comparison_has_a_row_for_each_model_and_a_column_for_each_metric(form):
    result = pages.result("compare")
    shown = report.paper(result)
    models, differences = shown.tables
    assert models.columns == ("model", *(metric.name for metric in result.metrics))
    assert {str(row[0]) for row in models.rows} == set(result.models)
    assert len(differences.rows) == len(result.differences)
    text = plain(FORMS[form](result))
    for row in result.standings:
        assert f"[{row.low:.4f}, {row.high:.4f}]" in text
    assert "best, a better" not in text


def test_more_metrics_than_a_page_is_wide_have_rows_of_their_own():
    ranks = {"A": [1, 2, 2, 9] * 50, "B": [1, 2, 3, 20] * 50}
    many = [f"Recall@{k}" for k in (5, 10, 20, 50, 100)]
    result = unsample.compare(ranks, items=500, sampled=99, metrics=many, prior=None, method="mle")
    models, _ = report.paper(result).tables
    assert models.columns == ("metric", "model", "estimate")
    assert len(models.rows) == len(many) * 2
    alone = {name: result.estimates[name] for name in result.models}
    (table,) = report.paper(alone).tables
    assert table.columns[:2] == ("group", "metric")


def test_groups_are_rows_and_doubted_values_are_marked():
    held = pages.result("methods")
    (table,) = report.paper({"a": held, "b": held}).tables
    assert table.columns == ("group", "method", *held)
    assert len(table.rows) == 2 * len(held.methods)
    marked = sum(str(cell).endswith(" *") for row in table.rows for cell in row)
    assert marked == 2 * sum(entry.credible is False or not entry.resolved or entry.clipped
                             for entry in held.entries)  # fmt: skip
    assert "* the sample does not settle" in plain(report.as_markdown({"a": held, "b": held}))


def test_frames_of_a_comparison():
    result = pages.result("compare")
    pairs = result.to_frame("pandas")
    assert list(pairs["p_value"]) == [round(pair.p_value, 6) for pair in result.differences]
    assert list(pairs["value"]) == [pair.value for pair in result.differences]
