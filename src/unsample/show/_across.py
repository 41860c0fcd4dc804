"""How a comparison on several data sets reads: its sheet, its page and its chart of means."""

from __future__ import annotations

from collections.abc import Callable

from unsample.answers import LIKE, THESE, Across, Comparison, Difference, MeanStanding
from unsample.show._charts import IntervalChart, IntervalRow, views_of
from unsample.show._comparison import chance, difference
from unsample.show._html import Page, Part, page
from unsample.show._sheet import (
    DASH,
    Cell,
    Columns,
    Number,
    Sheet,
    Table,
    mark_of,
    number,
    sheet,
    span_of,
    within,
)


@sheet.register
def _(result: Across) -> Sheet:
    sets = ", ".join(result.comparisons)
    both = f"{len(result.models)} models on {len(result.comparisons)} data sets ({sets})"
    means: Columns[MeanStanding] = {
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "mean": lambda row: number(row.value, best=row.value == _highest(result, row.metric)),
        THESE: lambda row: span_of(row.low, row.high),
        LIKE: lambda row: span_of(row.like_low, row.like_high),
        "best": lambda row: chance(row.chance),
        "best on": lambda row: Number(f"{row.best_on:.1f}", row.best_on),
        "mean place": lambda row: Number(
            f"{row.place:.2f} [{row.place_low:.1f}, {row.place_high:.1f}]", row.place
        ),
    }
    pairs: Columns[tuple[Difference, Difference]] = {
        "metric": lambda row: row[0].metric,
        "a - b": lambda row: f"{row[0].a} - {row[0].b}",
        "difference": lambda row: difference(row[0]),
        **_columns(THESE, 0),
        **_columns(LIKE, 1),
    }
    sure = f"{100 * result.level:g} %"
    note = (
        f"intervals of means hold at {sure}; best: the chance of the highest mean on {THESE}; best "
        f"on: so many of them, to be expected; mean place: with its interval on {LIKE}; a winner "
        f"has {sure}, corrected for the pairs (holm)"
    )
    rows = list(zip(result.differences, result.like, strict=True))
    return Sheet(
        title=(both,),
        verdicts=result.sentences(),
        tables=(
            _cells(result),
            Table.of(result.standings, means, "Means over data sets", "means-table"),
            Table.of(rows, pairs, "Differences of means", "difference-table"),
        ),
        notes=(note,),
        warnings=result.warnings,
    )


def _highest(result: Across, metric: str) -> float:
    return max(row.value for row in result.standings if row.metric == metric)


def _columns(name: str, at: int) -> dict[str, Callable[[tuple[Difference, Difference]], Cell]]:
    """Return interval, chance and winner of differences, for one meaning of the mean."""
    return {
        name: lambda row: span_of(row[at].low, row[at].high, "+"),
        f"chance{' ' * at}": lambda row: chance(row[at].chance),
        f"winner{' ' * at}": lambda row: row[at].winner or "cannot tell",
    }


def _cells(result: Across) -> Table:
    """Return the estimates with their intervals, models below each other, a column a data set."""
    rows = [(metric.name, model) for metric in result.metrics for model in result.models]

    def cell(held: Comparison, metric: str, model: str) -> Cell:
        row = next((r for r in held.standings if (r.metric, r.model) == (metric, model)), None)
        if row is None:
            return Number(DASH)
        return within(number(row.value), row.low, row.high, mark=mark_of(row.source))

    columns: dict[str, Callable[[tuple[str, str]], Cell]] = {
        "metric": lambda row: row[0],
        "model": lambda row: row[1],
    }
    for name, held in result.comparisons.items():
        columns[name] = lambda row, held=held: cell(held, *row)  # type: ignore[misc]
    return Table.of(rows, columns, "Models on each data set", "cells-table")


@page.register
def _(result: Across) -> Page:
    said = sheet(result)
    cells, means, pairs = said.tables
    return Page(
        verb="compare",
        title=f"Which of {len(result.models)} models is better over {len(result.whole)} data sets?",
        subtitle="; ".join(said.title),
        warnings=result.warnings,
        headline=said.verdicts,
        parts=(
            Part("over", "Means over data sets", (means_chart(result),), (means, pairs)),
            Part("cells", "Each data set", (), (cells,)),
        ),
        about=None,
        words="comparison",
        level=result.level,
        settings=(
            ("Data sets", ", ".join(result.comparisons)),
            ("Means are over", ", ".join(result.whole)),
            ("Level", f"{100 * result.level:g} %"),
        ),
    )


def means_chart(result: Across) -> IntervalChart:
    """Return the means with both intervals, and what they are means of as small marks."""
    rows: dict[str, list[IntervalRow]] = {}
    for row in result.standings:
        held = [result.comparisons[name].estimates[row.model] for name in result.whole]
        marks = tuple(each[row.metric].value for each in held)
        wide = (row.like_low, row.like_high)
        found = IntervalRow(row.model, row.value, (row.low, row.high), wide, marks=marks)
        rows.setdefault(row.metric, []).append(found)
    return IntervalChart(
        identity="means",
        title="Means over data sets",
        caption=f"Small marks: data sets. Thick line: the mean on {THESE}. Thin line: on {LIKE}.",
        x_label="mean of the metric over data sets",
        views=views_of(rows),
        sure=f"mean on {THESE}",
        wider=LIKE,
    )
