"""A result as a `Sheet`: the lines, tables and notes that text, notebooks, LaTeX and Markdown show.

`sheet` makes one of any result, by its type; other rooms register their own types with
``sheet.register``. What a sheet looks like is decided in `unsample.pages._render`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from unsample.answers import (
    Comparison,
    Difference,
    Estimate,
    Estimates,
    Evaluation,
    Plan,
    Published,
    percent,
)
from unsample.errors import InputError

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
    """Cells below names of columns; ``identity`` is the table's name on a page."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    identity: str = ""

    @classmethod
    def of(
        cls, rows: Iterable[Row], columns: Columns[Row], caption: str = "", identity: str = ""
    ) -> Table:
        """Return the table whose columns are these functions of the rows."""
        cells = tuple(tuple(column(row) for column in columns.values()) for row in rows)
        return cls(tuple(columns), cells, caption, identity)

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
        notes=(_limits_explained(next(iter(groups.values()))),),
        warnings=tuple(dict.fromkeys(text for held in groups.values() for text in held.warnings)),
    )


def check_groups(result: Mapping[Any, Any]) -> dict[str, Estimates]:
    """Return estimates by the name of their group, if that is what a mapping holds."""
    if not result or not all(isinstance(held, Estimates) for held in result.values()):
        raise InputError(not_a_result(result))
    return {str(name): held for name, held in result.items()}


def estimates_table(
    results: Mapping[str, Estimates],
    caption: str = "",
    *,
    standard_errors: bool = False,
    brackets: bool = False,
) -> Table:
    """Return all estimates, by group where these have names.

    With ``brackets``, intervals stand behind their values.
    """
    columns: dict[str, Callable[[_Row], Cell]] = {
        "group": lambda row: row.group,
        "metric": lambda row: row.entry.metric.name,
        "method": lambda row: row.entry.method,
        "estimate": lambda row: number(row.entry.value),
        "95 % interval": lambda row: span_of(*row.entry.interval()),
        "guaranteed": lambda row: span_of(*row.entry.interval(kind="guaranteed")),
        "bounds": lambda row: span_of(*row.entry.bounds()),
        "standard error": lambda row: number(row.entry.standard_error),
        "health": lambda row: health(row.entry),
    }
    rows = [_Row(group, entry) for group, held in results.items() for entry in held.entries]
    if brackets:
        columns["estimate"] = lambda row: within(number(row.entry.value), *row.entry.interval())
        del columns["95 % interval"]
    if list(results) == [""]:
        del columns["group"]
    if all(row.entry.calibrated is None for row in rows):
        del columns["guaranteed"]
    if not standard_errors:
        del columns["standard error"]
    return Table.of(rows, columns, caption, "estimates")


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
    if counts.shared is not None:
        unknown = "" if counts.shared.known else " (which item beats which target is not known)"
        return f"{what}, {sampled} of {items} items shared by all targets{unknown}"
    if not counts.replacement and bool((counts.sampled == counts.items - 1).all()):
        return f"{what} ranked among all {items} items"
    how = "with" if counts.replacement else "without"
    return f"{what}, {sampled} of {items} items sampled {how} replacement"


def is_sound(entry: Estimate) -> bool:
    """Return whether nothing speaks against the value."""
    return entry.resolved and entry.credible and not entry.clipped


def health(entry: Estimate) -> str:
    """Return in words whether the value may be relied on."""
    text = "resolved" if entry.resolved else "NOT RESOLVED"
    if not entry.credible:
        text = "OUTSIDE its interval"
    return f"{text}, clipped" if entry.clipped else text


def _limits_explained(result: Estimates) -> str:
    """Return what interval and bounds mean, and what the methods chose."""
    chosen = [f"{name}: {text}" for name, text in result.explanations.items() if text]
    if result.certainty is None:
        text = "interval: how far the values would move with other users like these"
        if result.drawn:
            text += ", and other draws of those ranked in full; it assumes nothing"
        return "\n".join([text, *chosen])
    lines, name = [], "interval"
    if result.calibrated is not None:
        name = "guaranteed"
        lines.append(
            "interval:   holds the true value for 95 % of data sets like those that the prior was "
            "learned from"
        )
    gap = " " * (len(name) + 2)
    lines.append(f"{name}: holds it, bias included, assuming {result.assumes}")
    if result.candidates is None and result.certainty.shape.dents:
        lines.append(f"{gap}(candidates not given: allows for unseen items only, and for all)")
    lines.append(f"{'bounds:':{len(gap)}}hold it whatever P(R) is")
    return "\n".join([*lines, *chosen])


# --- comparisons -------------------------------------------------------------------------------


@sheet.register
def _(result: Comparison) -> Sheet:
    shown = result.excerpt()
    standings: dict[str, Callable[[Any], Cell]] = {
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "estimate": lambda row: number(row.value, best=row.value == highest[row.metric]),
        f"{100 * result.level:g} % interval": lambda row: span_of(row.low, row.high),
        "best": lambda row: chances(row.least, row.most),
        "chance": lambda row: chances(row.chance, row.chance),
    }
    highest = highest_values(shown)
    models = f"{len(result.models)} models"
    first, *others = comparison_title(shown)
    return Sheet(
        title=(f"{models}, {first}", *others),
        verdicts=result.sentences(),
        tables=(
            Table.of(shown.standings, standings, "Models", "standing-table"),
            differences_table(shown, is_learned(result)),
        ),
        notes=comparison_notes(result, shown),
        warnings=result.warnings,
    )


def comparison_notes(
    result: Comparison, shown: Comparison, *, ranges: bool = True
) -> tuple[str, ...]:
    """Return what the columns mean, without ``ranges`` not those of ranges of chances."""
    learned = is_learned(result)
    agrees, chance = "the data", "if sampling misleads about all models alike"
    if learned:
        agrees += " and the shape"
        chance = "by data sets like those that the prior was learned from; a winner rests on it"
    explained = {"chance": f"the chance {chance}"}
    if ranges:
        words = f"the chance, from the least to the most that agree with {agrees}"
        explained = {"best, a better": words} | explained
    if learned:
        explained["guaranteed, p"] = "by the shape alone; if that suffices, a winner is proven"
    notes = ["\n".join(f"{name + ':':<16}{text}" for name, text in explained.items())]
    if shown is not result:
        left_out = (
            f"... the highest estimates of {len(result.models):,} models; the JSON output and "
            "to_frame hold all of them"
        )
        notes.insert(0, left_out)
    if result.scored:
        each = ", ".join(f"{name} {scored:,}" for name, scored in shown.scored.items())
        notes.append(f"scores: {each}; {sum(result.scored.values()):,} in all")
    if any(isinstance(held, Published) for held in result.estimates.values()):
        notes.insert(0, "\n".join(map(str, shown.claims)))
    return tuple(notes)


def differences_table(shown: Comparison, learned: bool, *, brackets: bool = False) -> Table:
    """Return the differences of models; with ``brackets``, intervals stand behind them."""
    columns: dict[str, Callable[[Difference], Cell]] = {
        "metric": lambda row: row.metric,
        "a - b": lambda row: f"{row.a} - {row.b}",
        "difference": difference,
        "interval": lambda row: span_of(row.low, row.high, "+"),
        "a better": lambda row: chances(row.least, row.most),
        "chance": lambda row: chances(row.chance, row.chance),
        "p": lambda row: p_value(row.p_value),
        "winner": lambda row: _winner(row, learned),
    }
    if learned:  # A winner then rests on the chance: what the shape alone gives stands behind it.
        columns["guaranteed"] = columns.pop("interval")
        columns["a better"], columns["p"] = columns.pop("a better"), columns.pop("p")
    if brackets:
        columns["difference"] = lambda row: within(difference(row), row.low, row.high, "+")
        for name in ("interval", "guaranteed", "a better"):
            columns.pop(name, None)
    return Table.of(shown.differences, columns, "Differences", "difference-table")


def is_learned(result: Comparison) -> bool:
    """Return whether all models have intervals that other data sets taught."""
    return all(held.calibrated is not None for held in result.estimates.values())


def highest_values(shown: Comparison) -> dict[str, float]:
    """Return the highest estimate of each metric."""
    return {row.metric: row.value for row in sorted(shown.standings, key=lambda row: row.value)}


def comparison_title(shown: Comparison) -> tuple[str, ...]:
    """Return by what models are compared; of each model where that comes from a paper."""
    held = shown.estimates
    if any(isinstance(each, Published) for each in held.values()):
        first = "compared by printed numbers"
        return (first, *(f"{name}: {'; '.join(sheet(each).title)}" for name, each in held.items()))
    return (f"{heading(next(iter(held.values())))}, compared {shown.pairing}",)


def _winner(pair: Difference, learned: bool) -> str:
    """Return the winner, and whether that is proven, where it need not be."""
    if pair.winner is None:
        return "cannot tell"
    return f"{pair.winner}, proven" if learned and pair.proven else pair.winner


def chances(least: float, most: float) -> Number:
    """Return a chance in per cent, or the least and the most that it may be."""
    low, high = f"{100 * least:.0f}", f"{100 * most:.0f}"
    return Number(f"{low} %" if low == high else f"{low} to {high} %", least)


# --- plans -------------------------------------------------------------------------------------


@sheet.register
def _(result: Plan) -> Sheet:
    columns: Columns[Any] = {
        "design": lambda row: row.name,
        "scores": lambda row: _whole(row.cost),
        "of all": lambda row: _percent(row.cost / result.full),
        "interval": lambda row: Number(f"± {_percent(row.half_width / result.value)}"),
        "tells apart": lambda row: number(row.smallest_difference),
        "setting": lambda row: row.setting,
    }
    what = f"{result.users:,} users, {result.items:,} items"
    if result.targets > result.users:
        what = f"{result.targets:,} targets of {what}"
    level = f"{100 * result.level:g} %"
    caption = "Designs at the same cost" if result.allowed else "Designs at the cost they need"
    legend = (
        f"interval:    for {result.metric} of these users ranked in full, at {level}, relative to "
        "it\n"
        "tells apart: the smallest difference between two models, unpaired; costs are of one model"
    )
    return Sheet(
        title=(f"{what}, {result.metric} about {result.value:.4f}", f"guess: {result.guess}"),
        tables=(Table.of(result.outcomes, columns, caption, "design-table"),),
        notes=(legend, result.recommendation),
        warnings=result.warnings,
    )


def _whole(value: float) -> Number:
    return Number(f"{value:,.0f}", value)


def _percent(share: float) -> Number:
    return Number(DASH) if math.isnan(share) else Number(percent(share), share)


def number(value: float, *, best: bool = False) -> Number:
    """Return a metric to four decimals, or to three digits where these would be lost."""
    return Number(_digits(value, value), value, best) if math.isfinite(value) else Number(DASH)


def p_value(value: float) -> Number:
    """Return a p-value to three decimals, however small it is."""
    return Number("<0.001" if value < 0.001 else f"{value:.3f}", value)


def _digits(value: float, scale: float, sign: str = "") -> str:
    """Return a value with the digits that numbers of this scale need."""
    return f"{value:{sign}.3g}" if 1e-6 < abs(scale) < 1e-3 else f"{value:{sign}.4f}"


def difference(row: Difference) -> Number:
    """Return a difference with its sign, and the digits that its interval needs."""
    return Number(_digits(row.value, max(abs(row.low), abs(row.high)), "+"), row.value)


def within(value: Number, low: float, high: float, sign: str = "", *, mark: str = "") -> Number:
    """Return a value with its interval in brackets behind it, where it has one, and a mark."""
    scale = max(abs(low), abs(high))
    ends = ", ".join(_digits(end, scale, sign) for end in (low, high))
    return replace(value, after=("" if math.isnan(low) else f" [{ends}]") + mark)


def span_of(low: float, high: float, sign: str = "") -> Cell:
    """Return the two ends of an interval."""
    if math.isnan(low):
        return "none (nothing varies)"
    scale = max(abs(low), abs(high))
    return Number(f"{_digits(low, scale, sign)} .. {_digits(high, scale, sign)}", low)


def _span(values: Any) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
