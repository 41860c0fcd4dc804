"""How an audit reads: its sheet and its page."""

from __future__ import annotations

from unsample.answers import Audit, Finding
from unsample.show._html import Page, Part, page
from unsample.show._sheet import DASH, Columns, Number, Sheet, Table, p_value, sheet

#: What the law of drawing is called.
_LAWS = {
    "uniform": "drawn uniformly",
    "other": "not drawn uniformly",
    "unknown": "by which law cannot be told",
}
_COLUMNS: Columns[Finding] = {
    "question": lambda row: row.question,
    "answer": lambda row: row.answer,
    "statistic": lambda row: row.statistic,
    "value": lambda row: _figure(row.value),
    "expected": lambda row: _figure(row.expected),
    "p": lambda row: Number(DASH) if row.p_value is None else p_value(row.p_value),
}


def _figure(value: float | None) -> Number:
    if value is None:
        return Number(DASH)
    if 0.0 < value < 0.001:
        return Number("<0.001", value)
    return Number(f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}", value)


@sheet.register
def _(result: Audit) -> Sheet:
    low, high = result.sampled
    sampled = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    lists = "1 list" if result.targets == 1 else f"{result.targets:,} lists"
    what = f"{lists} of {sampled} negatives from {result.items:,} items"
    return Sheet(
        title=(f"{what}: {_LAWS[result.law]}",),
        tables=(Table.of(result.findings, _COLUMNS, "How negatives were drawn", "findings"),),
        notes=(
            "\n".join(f"{row.question}: {row.sentence}" for row in result.findings),
            "\n".join(filter(None, [result.advice, result.call])),
        ),
        warnings=result.warnings,
    )


@page.register
def _(result: Audit) -> Page:
    columns: Columns[Finding] = {**_COLUMNS, "what was found": lambda row: row.sentence}
    table = Table.of(result.findings, columns, "How negatives were drawn", "findings")
    return Page(
        verb="audit",
        title="How negatives were drawn",
        subtitle=sheet(result).title[0],
        warnings=result.warnings,
        headline=tuple(filter(None, [result.advice, result.call])),
        parts=(Part("questions", "Questions and answers", tables=(table,)),),
        about=result,
        words="audit",
        settings=(("Items", f"{result.items:,}"), ("Targets", f"{result.targets:,}")),
    )
