"""Results as plain text and as HTML for notebooks."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unsample.answers import Estimate, Estimates
    from unsample.answers.comparison import Comparison
    from unsample.lab.side_by_side import Evaluation

__all__ = [
    "aligned",
    "comparison_html",
    "comparison_table",
    "estimates_html",
    "estimates_table",
    "evaluation_table",
    "heading",
    "html_table",
    "printable",
]

_COLUMNS = ("metric", "method", "estimate", "95 % interval", "bounds", "health")


#: What a terminal obeys or cannot show: control characters but line ends and tabs, marks that turn
#: the direction of writing, line separators that are no line ends, and halves of characters.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Return text in which whatever a terminal would obey is spelt out: names come from files.

    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    return _UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def _one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def heading(result: Estimates) -> str:
    """Return one line that says what the estimates are based on."""
    counts = result.counts
    items, sampled = _span(counts.items), _span(counts.sampled)
    if not counts.replacement and bool((counts.sampled == counts.items - 1).all()):
        return f"{counts.total:,} targets ranked among all {items} items"
    how = "with" if counts.replacement else "without"
    return f"{counts.total:,} targets, {sampled} of {items} items sampled {how} replacement"


def cells(entry: Estimate) -> tuple[str, str, str, str, str, str]:
    """Return the cells of one estimate, in the order of the columns."""
    value = f"{entry.value:.4f}"
    interval, bounds = _limits(*entry.interval()), _limits(*entry.bounds())
    return entry.metric.name, entry.method, value, interval, bounds, health(entry)


def health(entry: Estimate) -> str:
    """Return in words whether the value may be relied on."""
    if not entry.credible:
        return "OUTSIDE its interval"
    health = "resolved" if entry.resolved else "NOT RESOLVED"
    return f"{health}, clipped" if entry.clipped else health


def explain_limits(result: Estimates) -> str:
    """Return what interval and bounds mean, and the assumption that separates them."""
    if result.certainty is None:
        return "interval: how far the values would move with other users like these (bootstrap)"
    text = f"interval: holds the true value, bias included, assuming {result.assumes}"
    if result.candidates is None and result.certainty.shape.dents:
        text += "\n          (not said whether seen items were excluded or kept: allows for either)"
    return text + "\nbounds:   hold it whatever P(R) is"


def _limits(low: float, high: float) -> str:
    return "none (nothing varies)" if math.isnan(low) else f"{low:.4f} .. {high:.4f}"


def estimates_table(result: Estimates, *, notes: bool = True) -> str:
    """Return an aligned table with a heading, and the warnings below unless ``notes`` is false."""
    table = aligned(_COLUMNS, [cells(entry) for entry in result.entries])
    below = [f"\nwarning: {printable(text)}" for text in result.warnings] if notes else []
    chosen = [f"{name}: {text}" for name, text in result.explanations.items() if text]
    return "\n".join([heading(result), "", table, "", explain_limits(result), *chosen, *below])


def evaluation_table(result: Evaluation) -> str:
    """Return exact values and estimates of the same targets side by side."""
    targets = result.targets
    lines = [
        (
            f"{_one_line(targets.recommender)} on {_one_line(targets.dataset)} "
            f"({targets.source} ranks), {targets.protocol} protocol"
        ),
        heading(result.exact if result.estimates is None else result.estimates),
    ]
    if targets.note:
        lines.append(f"note: {_one_line(targets.note)}")
    if result.estimates is None:
        return "\n".join([*lines, "", aligned(_COLUMNS, [cells(e) for e in result.exact.entries])])
    rows = []
    for entry in result.estimates.entries:
        truth = result.exact[entry.metric].value
        off = f"{entry.value / truth - 1:+.0%}" if truth > 0 else ""
        metric, method, value, *rest = cells(entry)
        rows.append((metric, f"{truth:.4f}", method, value, off, *rest))
    header = ("metric", "exact", "method", "estimate", "off by", *_COLUMNS[3:])
    table = aligned(header, rows)
    return "\n".join([*lines, "", table, "", explain_limits(result.estimates)])


def estimates_html(result: Estimates) -> str:
    """Return a table for notebooks; every text is escaped."""
    table = html_table(_COLUMNS, [cells(entry) for entry in result.entries])
    meaning = html.escape(explain_limits(result)).replace("\n", "<br>")
    notes = "".join(f"<p><b>Warning:</b> {html.escape(text)}</p>" for text in result.warnings)
    return f"<p>{html.escape(heading(result))}</p>{table}<p>{meaning}</p>{notes}"


_STANDINGS = ("metric", "model", "estimate", "95 % interval", "place", "best", "if alike")
_DIFFERENCES = ("metric", "a - b", "difference", "interval", "a better", "if alike", "p", "winner")


def comparison_table(result: Comparison, *, notes: bool = True) -> str:
    """Return the verdicts in words, then standings and differences as tables."""
    standings, differences = _comparison_rows(result)
    below = [f"\nwarning: {printable(text)}" for text in result.warnings] if notes else []
    return "\n".join(
        [
            _comparison_heading(result),
            "",
            *map(_one_line, result.sentences()),
            "",
            aligned(_standing_columns(result), standings),
            "",
            aligned(_DIFFERENCES, differences),
            *_rows_left_out(result),
            "",
            _COMPARISON_MEANING,
            *below,
        ]
    )


_COMPARISON_MEANING = (
    "best, a better: the chance, from the least to the most that agree with the data\n"
    "if alike:       the chance if sampling misleads about all models alike"
)


def comparison_html(result: Comparison) -> str:
    """Return verdicts and tables for notebooks; every text is escaped."""
    standings, differences = _comparison_rows(result)
    verdicts = "".join(f"<p>{html.escape(text)}</p>" for text in result.sentences())
    notes = "".join(f"<p><b>Warning:</b> {html.escape(text)}</p>" for text in result.warnings)
    meaning = html.escape(_COMPARISON_MEANING).replace("\n", "<br>")
    return (
        f"<p>{html.escape(_comparison_heading(result))}</p>{verdicts}"
        + html_table(_standing_columns(result), standings)
        + html_table(_DIFFERENCES, differences)
        + "".join(f"<p>{html.escape(text)}</p>" for text in _rows_left_out(result))
        + f"<p>{meaning}</p>{notes}"
    )


def _rows_left_out(result: Comparison) -> list[str]:
    shown = len(result.excerpt().models)
    if shown == len(result.models):
        return []
    count = f"{len(result.models):,} models"
    return [f"... the highest estimates of {count}; the JSON output and to_frame hold all of them"]


def _comparison_heading(result: Comparison) -> str:
    first = next(iter(result.estimates.values()))
    how = "user by user" if result.paired else "unpaired"
    return f"{len(result.models)} models, {heading(first)}, compared {how}"


def _standing_columns(result: Comparison) -> tuple[str, ...]:
    interval = f"{result.level:.0%} interval".replace("%", " %")
    return tuple(interval if name == "95 % interval" else name for name in _STANDINGS)


def _comparison_rows(result: Comparison) -> tuple[list[list[str]], list[list[str]]]:
    result = result.excerpt()
    standings = [
        [
            one.metric,
            one.model,
            f"{one.value:.4f}",
            _limits(one.low, one.high),
            str(one.place),
            f"{one.least:.0%} .. {one.most:.0%}",
            f"{one.if_alike:.0%}",
        ]
        for one in result.standings
    ]
    differences = [
        [
            one.metric,
            f"{one.a} - {one.b}",
            f"{one.value:+.4f}",
            f"{one.low:+.4f} .. {one.high:+.4f}",
            f"{one.least:.0%} .. {one.most:.0%}",
            f"{one.if_alike:.0%}",
            "<0.001" if one.p_value < 0.001 else f"{one.p_value:.3f}",
            one.winner or "cannot tell",
        ]
        for one in result.differences
    ]
    return standings, differences


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for notebooks; every text is escaped."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a rule below its header and every column as wide as it must be."""
    whole = [[_one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in whole) for column in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in whole
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _span(values: object) -> str:
    low, high = int(values.min()), int(values.max())  # type: ignore[attr-defined]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
