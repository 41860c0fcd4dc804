"""A result as a paper shows it: one cell for a value and its interval, and what to cite.

`paper` makes a `Sheet` of any result, as `sheet` does, with tables narrow enough for a column of
text. LaTeX and Markdown are rendered from it; what it leaves out stands in the printed tables.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from unsample import __version__
from unsample.answers import (
    DEFAULT_LEVEL,
    Comparison,
    Estimates,
    Result,
    Standing,
)
from unsample.show._comparison import comparison_notes, differences_table, standing
from unsample.show._sheet import (
    Columns,
    Number,
    Sheet,
    Table,
    check_groups,
    estimates_table,
    mark_of,
    sheet,
    with_interval,
    within,
)

#: Wider tables leave the page: then each metric has rows of its own.
_MOST_METRICS = 4
#: As in CITATION.cff.
CITATION = (
    "R. Jin, D. Li, B. Mudrak, J. Gao and Z. Liu: On Estimating Recommendation Evaluation Metrics "
    "under Sampling. AAAI 2021, doi:10.1609/aaai.v35i5.16537"
)


@functools.singledispatch
def paper(result: object) -> Sheet:
    """Return what a paper shows of a result; it takes what `sheet` takes."""
    shown = sheet(result)
    return cited(shown) if isinstance(result, Result) else shown


def cited(shown: Sheet) -> Sheet:
    """Return a sheet that ends with what to cite."""
    return replace(shown, notes=(*shown.notes, f"made with unsample {__version__}; {CITATION}"))


@paper.register
def _(result: Estimates) -> Sheet:
    table = estimates_table({"": result}, brackets=True)
    return _estimates_sheet(sheet(result), table, [result])


@paper.register
def _(result: Mapping) -> Sheet:  # type: ignore[type-arg]
    groups = check_groups(result)
    entries = [
        (name, method, [held[metric.name, method] for metric in held.metrics])
        for name, held in groups.items()
        for method in held.methods
    ]
    names = [metric.name for metric in next(iter(groups.values())).metrics]
    if len(names) > _MOST_METRICS or any(len(row) != len(names) for _, _, row in entries):
        table = estimates_table(groups, brackets=True)
        return _estimates_sheet(sheet(groups), table, groups.values())
    columns: dict[str, Any] = {"group": lambda row: row[0], "method": lambda row: row[1]}
    if len({method for _, method, _ in entries}) == 1:
        del columns["method"]
    for place, name in enumerate(names):
        columns[name] = lambda row, place=place: with_interval(row[2][place])
    table = Table.of(entries, columns, "", "estimates")
    return _estimates_sheet(sheet(groups), table, groups.values())


def _estimates_sheet(shown: Sheet, table: Table, held: Iterable[Estimates]) -> Sheet:
    """Return the sheet with this table, and with what its cells are."""
    methods = dict.fromkeys(method for each in held for method in each.methods)
    made = _made(methods, DEFAULT_LEVEL)
    return cited(replace(shown, tables=(table,), notes=(made, *shown.notes)))


def _made(methods: Iterable[str], level: float) -> str:
    return f"method: {', '.join(methods)}; in brackets: {100 * level:g} % interval"


@paper.register
def _(result: Comparison) -> Sheet:
    shown = result.excerpt()
    methods = dict.fromkeys(m for held in result.estimates.values() for m in held.methods)
    made = f"{_made(methods, result.level)}; best values are bold"
    return cited(
        replace(
            sheet(result),
            tables=(_models_table(shown), differences_table(shown, brackets=True)),
            notes=(made, *comparison_notes(result, shown)),
        )
    )


def _models_table(shown: Comparison) -> Table:
    """Return a row for each model, those with the highest first metric first."""

    def cell(row: Standing) -> Number:
        return within(standing(shown, row), row.low, row.high, mark=mark_of(row.source))

    # Of very many models, each metric shows those with its own highest estimates.
    whole = len(shown.models) * len(shown.metrics) == len(shown.standings)
    if len(shown.metrics) > _MOST_METRICS or not whole:
        long: Columns[Standing] = {
            "metric": lambda row: row.metric,
            "model": lambda row: row.model,
            "estimate": cell,
        }
        return Table.of(shown.standings, long, "Models", "standing-table")
    found = {(row.metric, row.model): row for row in shown.standings}
    order = [row.model for row in shown.standings if row.metric == shown.metrics[0].name]
    columns: dict[str, Any] = {"model": lambda model: model}
    for metric in shown.metrics:
        columns[metric.name] = lambda model, name=metric.name: cell(found[name, model])
    return Table.of(order, columns, "Models", "standing-table")
