"""How a comparison reads: its sheet, its page and its chart of differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unsample.answers import Comparison, Difference, Published, Standing
from unsample.show._charts import IntervalChart, IntervalRow, estimates_chart, views_of
from unsample.show._html import Page, Part, curve_parts, page, settings_of
from unsample.show._sheet import (
    MINUS,
    Cell,
    Columns,
    Number,
    Sheet,
    Table,
    digits,
    heading,
    mark_of,
    number,
    point_of,
    sheet,
    span_of,
    within,
)

#: Models whose curves are drawn.
_MOST_CURVES = 12


@sheet.register
def _(result: Comparison) -> Sheet:
    shown = result.excerpt()
    standings: Columns[Standing] = {
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "estimate": lambda row: standing(shown, row),
        f"{100 * result.level:g} % interval": lambda row: span_of(
            row.low, row.high, after=mark_of(row.source)
        ),
        "best": lambda row: chance(row.chance),
    }
    first, *others = comparison_title(shown)
    return Sheet(
        title=(f"{len(result.models)} models, {runs_in_words(shown)}{first}", *others),
        verdicts=result.sentences(),
        tables=(
            Table.of(shown.standings, standings, "Models", "standing-table"),
            differences_table(shown),
        ),
        notes=comparison_notes(result, shown),
        warnings=result.warnings,
    )


def standing(shown: Comparison, row: Standing) -> Number:
    """Return a model's value; the highest of its metric is the best."""
    value = point_of(shown.estimates[row.model][row.metric])
    highest = max(each.value for each in shown.standings if each.metric == row.metric)
    return number(value, best=row.value == highest)


def comparison_notes(result: Comparison, shown: Comparison) -> tuple[str, ...]:
    """Return what the columns mean, and what the tables leave out."""
    sure = f"{100 * result.level:g} %, corrected for the pairs (holm)"
    text = "best: the chance of being the best; chance: that a is better than b; a winner has"
    notes = [f"{text} {sure}"]
    if result.runs and set(result.runs.values()) == {1}:
        notes[0] += "; one run of each model: training chance is not in it"
    if shown is not result:
        left_out = (
            f"... the highest estimates of {len(result.models):,} models; the JSON output and "
            "to_frame hold all of them"
        )
        notes.insert(0, left_out)
    if result.scored:
        each = ", ".join(f"{name} {scored:,}" for name, scored in shown.scored.items())
        notes.append(f"scores: {each}; {sum(result.scored.values()):,} in all")
    return tuple(notes)


def differences_table(shown: Comparison, *, brackets: bool = False) -> Table:
    """Return the differences of models; with ``brackets``, intervals stand behind them."""
    columns: dict[str, Callable[[Difference], Cell]] = {
        "metric": lambda row: row.metric,
        "a - b": lambda row: f"{row.a} - {row.b}",
        "difference": difference,
        f"{shown.level_of_both:g} % interval": lambda row: span_of(row.low, row.high, "+"),
        "chance": lambda row: chance(row.chance),
        "winner": lambda row: row.winner or "cannot tell",
    }
    if brackets:
        columns["difference"] = lambda row: within(difference(row), row.low, row.high, "+")
        del columns[f"{shown.level_of_both:g} % interval"]
    return Table.of(shown.differences, columns, "Differences", "difference-table")


def comparison_title(shown: Comparison) -> tuple[str, ...]:
    """Return by what models are compared; of each model where that comes from a paper."""
    held = shown.estimates
    if any(isinstance(each, Published) for each in held.values()):
        first = "compared by printed numbers"
        return (first, *(f"{name}: {'; '.join(sheet(each).title)}" for name, each in held.items()))
    return (f"{heading(next(iter(held.values())))}, compared {shown.pairing}",)


def runs_in_words(shown: Comparison) -> str:
    """Return how many runs models have, in front of what each of them is based on."""
    counts = [shown.runs.get(name, 1) for name in shown.models]
    if set(counts) == {1}:
        return ""
    each = str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"
    return f"{each} runs of each, a run of "


def chance(value: float | None) -> Number:
    """Return a chance in per cent, or nothing where it is withheld."""
    if value is None:
        return Number("")
    if not 0.005 <= value <= 0.995:
        return Number("<1 %" if value < 0.5 else ">99 %", value)
    return Number(f"{100 * value:.0f} %", value)


def difference(row: Difference) -> Number:
    """Return a difference with its sign, and the digits that its interval needs."""
    return Number(digits(row.value, max(abs(row.low), abs(row.high)), "+"), row.value)


@page.register
def _(result: Comparison) -> Page:
    said, shown = sheet(result), result.excerpt()
    first = next(iter(result.estimates.values()))
    models = estimates_chart(shown.estimates, result.level, highest_first=True)
    caption = models.caption
    if result.paired:
        caption += (
            " Intervals that overlap may still belong to models that are told apart, for "
            "differences are taken user by user."
        )
    models = replace(models, title="Each model by itself", caption=caption)
    # More curves no eye can follow, and each needs linear programs at every K.
    highest = dict.fromkeys(row.model for row in shown.standings)
    alone = [name for name in highest if result.runs.get(name, 1) == 1]
    curves = {name: shown.estimates[name] for name in alone[:_MOST_CURVES]}
    settings = {
        "Models": f"{len(result.models):,}; in tables and charts: {', '.join(shown.models)}",
        "Runs": ", ".join(f"{name} {count}" for name, count in result.runs.items()),
        "Compared": result.pairing,
        "Curves": ", ".join(curves),
        "Level": f"{100 * result.level:g} %",
    }
    standings, differences = said.tables
    return Page(
        verb="compare",
        title=f"Which of {len(result.models)} models is truly better?",
        subtitle="; ".join(comparison_title(shown)),
        warnings=result.warnings,
        headline=said.verdicts,
        parts=(
            Part("verdicts", "Differences", (differences_chart(result),), (differences,)),
            Part("standings", "Models", (models,), (standings,)),
            *(curve_parts(curves, result.level) if curves else ()),
        ),
        about=first,
        words="comparison",
        level=result.level,
        settings=(*settings.items(), *settings_of(first)),
    )


def differences_chart(result: Comparison) -> IntervalChart:
    """Return the differences of models with their intervals, a view for each metric."""
    rows: dict[str, list[IntervalRow]] = {}
    for held in result.excerpt().differences:
        name, mark = f"{held.a} {MINUS} {held.b}", "sure" if held.winner else "unsure"
        row = IntervalRow(name, held.value, (held.low, held.high), note=str(held), health=mark)
        rows.setdefault(held.metric, []).append(row)
    caption = (
        f"Each line holds the true difference at {result.level_of_both:g} %, chance and the bias "
        "of sampling included. A line that crosses zero leaves open which model is better."
    )
    return IntervalChart(
        identity="differences",
        title="Differences between models",
        caption=caption,
        x_label="difference on the full catalogue",
        views=views_of(rows),
        zero=True,
        sure="told apart",
        unsure="cannot be told apart",
    )
