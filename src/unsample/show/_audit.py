"""What an audit says."""

from __future__ import annotations

from dataclasses import replace

from unsample.answers import Audit, Finding
from unsample.show._sheet import Part, Sheet, sheet
from unsample.show._table import DASH, Columns, Number, Table

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
    "p": lambda row: _p_value(row.p_value),
}


def _figure(value: float | None) -> Number:
    if value is None:
        return Number(DASH)
    if 0.0 < value < 0.001:
        return Number("<0.001", value)
    return Number(f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}", value)


def _p_value(value: float | None) -> Number:
    if value is None:
        return Number(DASH)
    return Number("<0.001" if value < 0.001 else f"{value:.3f}", value)


@sheet.register
def _(result: Audit) -> Sheet:
    low, high = result.sampled
    sampled = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    lists = "1 list" if result.targets == 1 else f"{result.targets:,} lists"
    what = f"{lists} of {sampled} negatives from {result.items:,} items"
    table = Table.of(result.findings, _COLUMNS)
    return Sheet(
        verb="audit",
        title="How negatives were drawn",
        about=(f"{what}: {_LAWS[result.law]}",),
        parts=(Part("Questions", replace(table, caption="Drawn negatives", identity="findings")),),
        verdicts=(
            *(f"{row.question}: {row.sentence}" for row in result.findings),
            *filter(None, [result.advice, result.call]),
        ),
        warnings=result.warnings,
    )
