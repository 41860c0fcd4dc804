"""A result as a `Sheet`: the lines, tables and notes that text, notebooks, LaTeX and Markdown show.

`sheet` makes one of any result, by its type; other rooms register their own types with
``sheet.register``. What a sheet looks like is decided in `unsample.show._render`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from unsample.answers import (
    Estimate,
    Estimates,
    Evaluation,
    Published,
    PublishedEstimate,
)
from unsample.errors import InputError

#: What intervals mean, by where they come from.
_INTERVALS = {
    "prior": "interval: holds the true value for 95 % of data sets like those that the prior was "
    "learned from",
    "mean": "interval: that of an unbiased mean over users",
    "bounds": "bounds: hold the true value whatever P(R) is",
}
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
Row = TypeVar("Row")


@dataclass(frozen=True)
class Number:
    """A number as it is shown, and its value, by which columns are sorted."""

    text: str
    value: float | None = None
    #: Whether it is the best of its column and metric, which papers set in bold.
    best: bool = False
    #: What stands behind it and is never bold, such as its interval.
    after: str = ""

    def __str__(self) -> str:
        return self.text + self.after


#: What stands in a table: words, flush left, or a number, flush right.
Cell: TypeAlias = str | Number
Columns: TypeAlias = Mapping[str, Callable[[Row], Cell]]


@dataclass(frozen=True)
class Table:
    """Cells below names of columns; ``identity`` is the table's name on a page.

    Columns named in ``details`` stand on pages, and in text only where more is asked for.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    identity: str = ""
    details: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rows: Iterable[Row], columns: Columns[Row], caption: str = "", identity: str = ""
    ) -> Table:
        """Return the table whose columns are these functions of the rows."""
        cells = tuple(tuple(column(row) for column in columns.values()) for row in rows)
        return cls(tuple(columns), cells, caption, identity)

    @property
    def brief(self) -> Table:
        """Return the table without its details."""
        kept = [place for place, name in enumerate(self.columns) if name not in self.details]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in kept), rows=rows)

    @property
    def align(self) -> tuple[str, ...]:
        """Return ``"l"`` for each column of words and ``"r"`` for each column of numbers."""
        first = self.rows[0] if self.rows else ("",) * len(self.columns)
        return tuple("r" if isinstance(cell, Number) else "l" for cell in first)


@dataclass(frozen=True)
class Sheet:
    """What a result says, in the order in which it says it."""

    title: tuple[str, ...]
    tables: tuple[Table, ...]
    #: Paragraphs below the tables; their lines stay lines.
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    #: What a person would write into a paper; above the tables.
    verdicts: tuple[str, ...] = ()


@functools.singledispatch
def sheet(result: object) -> Sheet:
    """Return what a result says as lines, tables and notes.

    It takes what `estimate`, `exact`, `evaluate`, `compare`, `published`, `plan` and `audit`
    return, or a mapping of names to estimates.
    """
    raise InputError(not_a_result(result))


def not_a_result(result: object) -> str:
    """Return the message for what no page can show."""
    return (
        "result must be what estimate, exact, compare, evaluate, published, plan or audit return, "
        f"or a mapping of names to estimates, got {type(result).__name__}"
    )


@sheet.register
def _(result: Sheet) -> Sheet:
    return result


# --- estimates ---------------------------------------------------------------------------------


@sheet.register
def _(result: Estimates) -> Sheet:
    return _groups_sheet({"": result})


@sheet.register
def _(result: Published) -> Sheet:
    printed = f"from {', '.join(map(str, result.numbers))}"
    return replace(sheet.dispatch(Estimates)(result), title=(printed, heading(result)))


@sheet.register
def _(result: Evaluation) -> Sheet:
    return replace(sheet.dispatch(Estimates)(result), title=(result.cost, heading(result)))


@sheet.register
def _(result: Mapping) -> Sheet:  # type: ignore[type-arg]
    return _groups_sheet(check_groups(result))


def _groups_sheet(groups: Mapping[str, Estimates]) -> Sheet:
    return Sheet(
        title=tuple(f"{name and f'{name}: '}{heading(held)}" for name, held in groups.items()),
        tables=(estimates_table(groups),),
        notes=(_intervals_explained(groups.values()),),
        warnings=tuple(dict.fromkeys(text for held in groups.values() for text in held.warnings)),
    )


def check_groups(result: Mapping[Any, Any]) -> dict[str, Estimates]:
    """Return estimates by the name of their group, if that is what a mapping holds."""
    if not result or not all(isinstance(held, Estimates) for held in result.values()):
        raise InputError(not_a_result(result))
    return {str(name): held for name, held in result.items()}


def estimates_table(
    results: Mapping[str, Estimates], caption: str = "", *, brackets: bool = False
) -> Table:
    """Return all estimates, by group where these have names.

    With ``brackets``, intervals stand behind their values.
    """
    rows = [_Row(group, entry) for group, held in results.items() for entry in held.entries]
    columns: dict[str, Callable[[_Row], Cell]] = {
        "group": lambda row: row.group,
        "metric": lambda row: row.entry.metric.name,
        "method": lambda row: row.entry.method,
        "estimate": lambda row: value_of(row.entry),
        "95 % interval": lambda row: interval_of(row.entry),
        "bounds": lambda row: span_of(*row.entry.bounds()),
    }
    if any(has_both(held) for held in results.values()):
        del columns["95 % interval"], columns["bounds"]
        columns["these users"] = lambda row: interval_of(row.entry, population=False)
        columns["users like these"] = lambda row: interval_of(row.entry)
    if all(is_exact(row.entry) for row in rows):
        columns.pop("bounds", None)
    if brackets:
        kept = ("group", "metric", "method")
        columns = {name: columns[name] for name in kept} | {
            "estimate": lambda row: with_interval(row.entry)
        }
    if list(results) == [""]:
        del columns["group"]
    if len({row.entry.method for row in rows}) == 1:
        del columns["method"]
    return replace(Table.of(rows, columns, caption, "estimates"), details=("bounds",))


class _Row(NamedTuple):
    group: str
    entry: Estimate


def heading(result: Estimates) -> str:
    """Return one line that says what the estimates are based on."""
    counts = result.counts
    items, sampled = _span(counts.items), _span(counts.sampled)
    what = f"{counts.total:,} targets"
    if counts.users != counts.total:
        each = "target, other relevant items left out" if result.filtered else "user"
        what += f" of {counts.users:,} users (metrics for each {each})"
    if not counts.replacement and bool((counts.sampled == counts.items - 1).all()):
        return f"{what} ranked among all {items} items"
    how = f"sampled {'with' if counts.replacement else 'without'} replacement"
    if counts.shared is not None:
        unknown = "" if counts.shared.known else " (which item beats which target is not known)"
        how = f"shared by all targets{unknown}"
    stated = f"candidates {result.candidates or 'not stated'}"
    return f"{what}, {sampled} of {items} items {how}, {stated}"


def is_exact(entry: Estimate) -> bool:
    """Return whether the value is known for these users, so that nothing was estimated."""
    return entry.interval(population=False) == (entry.value, entry.value)


def has_both(result: Estimates) -> bool:
    """Return whether an evaluation knows of these users more than of users like these."""
    return isinstance(result, Evaluation) and result.design.guided


def point_of(entry: Estimate) -> float:
    """Return the value, or NaN where it says less than its interval does."""
    vague = isinstance(entry, PublishedEstimate) and entry.vague
    return math.nan if vague else entry.value


def value_of(entry: Estimate) -> Number:
    """Return the value, or a dash where its interval says more."""
    return number(point_of(entry))


def interval_of(entry: Estimate, *, population: bool = True) -> Cell:
    """Return the interval, and a word where it is the bounds."""
    if not population and is_exact(entry):
        return "exact"
    return span_of(*entry.interval(population=population), after=mark_of(entry.source))


def mark_of(source: str) -> str:
    """Return what stands behind an interval: a word where it is the bounds."""
    return " (bounds)" if source == "bounds" else ""


def with_interval(entry: Estimate) -> Number:
    """Return the value with its interval in brackets behind it."""
    return within(value_of(entry), *entry.interval(), mark=mark_of(entry.source))


def _intervals_explained(results: Iterable[Estimates]) -> str:
    """Return what the intervals mean, in a line."""
    held = list(results)
    entries = [entry for result in held for entry in result.entries]
    if any(map(has_both, held)):
        return (
            "95 % intervals: where a full ranking of these users would land, and where users like "
            "these would"
        )
    if all(map(is_exact, entries)):
        return "interval: how far the values would move with other users like these"
    sources = {entry.source for entry in entries}
    if "prior" in sources:
        sources -= {"mean"}
    return "; ".join(text for source, text in _INTERVALS.items() if source in sources)


# --- numbers -----------------------------------------------------------------------------------


def number(value: float, *, best: bool = False) -> Number:
    """Return a metric to four decimals, or to three digits where these would be lost."""
    return Number(digits(value, value), value, best) if math.isfinite(value) else Number(DASH)


def p_value(value: float) -> Number:
    """Return a p-value to three decimals, however small it is."""
    return Number("<0.001" if value < 0.001 else f"{value:.3f}", value)


def digits(value: float, scale: float, sign: str = "") -> str:
    """Return a value with the digits that numbers of this scale need."""
    return f"{value:{sign}.3g}" if 1e-6 < abs(scale) < 1e-3 else f"{value:{sign}.4f}"


def within(value: Number, low: float, high: float, sign: str = "", *, mark: str = "") -> Number:
    """Return a value with its interval in brackets behind it, where it has one, and a mark."""
    scale = max(abs(low), abs(high))
    ends = ", ".join(digits(end, scale, sign) for end in (low, high))
    return replace(value, after=("" if math.isnan(low) else f" [{ends}]") + mark)


def span_of(low: float, high: float, sign: str = "", *, after: str = "") -> Cell:
    """Return the two ends of an interval, and what stands behind them."""
    if math.isnan(low):
        return "none (nothing varies)"
    scale = max(abs(low), abs(high))
    text = f"{digits(low, scale, sign)} .. {digits(high, scale, sign)}"
    return Number(text, low, after=after)


def _span(values: Any) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
