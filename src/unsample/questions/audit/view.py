"""What is shown of an audit."""

from __future__ import annotations

from dataclasses import replace

from unsample import __version__
from unsample.questions.audit.result import Audit, Finding
from unsample.report import Columns, Number, Part, Table, View

_COLUMNS: Columns[Finding] = {
    "question": lambda row: row.question,
    "answer": lambda row: row.answer,
    "p": lambda row: Number("<0.001" if row.p_value < 0.001 else f"{row.p_value:.3f}", row.p_value),
}


def view_of_audit(result: Audit) -> View:
    """Return the view of an audit."""
    low, high = result.sampled
    sampled = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    lists = "1 list" if result.targets == 1 else f"{result.targets:,} lists"
    what = f"{lists} of {sampled} negatives from {result.catalogue:,} items"
    table = Table.of(result.findings, _COLUMNS)
    return View(
        verb="audit",
        title="How negatives were drawn",
        about=(what,),
        parts=(Part("Questions", replace(table, caption="Drawn negatives", identity="findings")),),
        verdicts=(
            *(f"{row.question}: {row.sentence}" for row in result.findings),
            *filter(None, [result.advice, result.call]),
        ),
        sentence=" ".join(
            (
                *(row.sentence for row in result.findings),
                f"(Audit of {what}, unsample {__version__}.)",
            )
        ),
    )
