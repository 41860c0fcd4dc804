"""How an audit reads: its sheet, its page and its chart."""

from __future__ import annotations

import numpy as np

from unsample.answers import Audit, Finding, Profile
from unsample.pages._charts import Band, Guide, LineChart, LineView, Series, style
from unsample.pages._html import Page, Part, page
from unsample.pages._sheet import DASH, Cell, Columns, Number, Sheet, Table, p_value, sheet

#: What the law of drawing is called.
_LAWS = {
    "uniform": "drawn uniformly",
    "stated": "drawn with the probabilities given",
    "popularity": "drawn by popularity",
    "other": "not drawn uniformly",
    "unknown": "by which law cannot be told",
}
#: Smaller figures need no digits.
_LEAST = 0.001


@sheet.register
def _(result: Audit) -> Sheet:
    columns: Columns[Finding] = {
        "question": lambda row: row.question,
        "answer": lambda row: row.answer,
        "statistic": lambda row: row.statistic,
        "value": lambda row: _figure(row.value),
        "expected": lambda row: _figure(row.expected),
        "p": lambda row: Number(DASH) if row.p_value is None else p_value(row.p_value),
    }
    sentences = [f"{row.question}: {row.sentence}" for row in result.findings]
    low, high = result.sampled
    sampled = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    lists = "1 list" if result.targets == 1 else f"{result.targets:,} lists"
    what = f"{lists} of {sampled} negatives from {result.items:,} items"
    return Sheet(
        title=(f"{what}: {_LAWS[result.law]}",),
        tables=(Table.of(result.findings, columns, "How negatives were drawn", "findings"),),
        notes=(
            "\n".join(sentences),
            f"p: corrected for {result.tests} tests (Holm); no p: counted, or nothing to test",
            "\n".join(filter(None, [result.advice, result.call])),
        ),
        warnings=result.warnings,
    )


def _figure(value: float | None) -> Cell:
    if value is None:
        return Number(DASH)
    text = f"{value:,.0f}" if abs(value) >= 1000.0 or value == int(value) else f"{value:.4g}"
    if 0.0 < value < _LEAST:
        text = f"<{_LEAST:g}"
    return Number(text, value)


@page.register
def _(result: Audit) -> Page:
    said = sheet(result)
    columns: Columns[Finding] = {
        "question": lambda row: row.question,
        "what was found": lambda row: row.sentence,
    }
    words = Table.of(result.findings, columns, "The findings in words", "sentences")
    return Page(
        verb="audit",
        title=f"How {result.draws:,} negatives were drawn",
        subtitle=said.title[0],
        warnings=said.warnings,
        headline=tuple(filter(None, [result.advice, result.call])),
        parts=(
            Part("questions", "Questions and answers", tables=(*said.tables, words)),
            Part("items-drawn", "Which items were drawn", charts=(profile_chart(result),)),
        ),
        about=result,
        words="audit",
        level=result.level,
        settings=(
            ("Items", f"{result.items:,}"),
            ("Targets", f"{result.targets:,}"),
            ("Negatives", f"{result.draws:,}"),
            ("Level", f"{100 * result.level:g} %"),
            ("Tests", f"{result.tests}, corrected by Holm's steps"),
        ),
    )


def profile_chart(result: Audit) -> LineChart:
    """Return how often groups of items were drawn, relative to equal chances."""
    return LineChart(
        identity="draws-by-group",
        title="Draws relative to equal chances",
        caption="1 is what equal chances give; the band holds what chance alone does to them.",
        x_label="share of the items, in per cent",
        views=tuple(_view(profile) for profile in result.profiles),
        log_x=False,
    )


def _view(profile: Profile) -> LineView:
    groups = profile.groups
    ratio = np.array([group.ratio for group in groups])
    noise = np.array([group.noise for group in groups])
    return LineView(
        f"along {profile.along}",
        "draws over expected draws",
        tuple(group.place for group in groups),
        tuple(f"{group.place:.3g} %" for group in groups),
        (Series("draws", style(0), ratio, marked=True),),
        bands=(Band("interval", "chance", 1.0 - noise, 1.0 + noise),),
        guides=(Guide("y", 1.0, "equal chances"),),
    )
