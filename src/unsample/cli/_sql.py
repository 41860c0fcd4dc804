"""``unsample sql``: the query that makes the counts inside a warehouse."""

from __future__ import annotations

from typing import Annotated

import typer

from unsample.cli._columns import Columns, parse_columns
from unsample.cli._manner import say
from unsample.tables.frames import DIALECTS, counts_query

__all__ = ["sql_command"]

_EPILOG = """
**Examples**

`unsample sql warehouse.scores --by model --column item`

`unsample sql "'scores.parquet'" --dialect duckdb | duckdb -csv | unsample estimate - --items 3706`
"""


def sql_command(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="What stands behind FROM: a table's name or an expression, used as it is.",
        ),
    ],
    rows: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="scores (columns `user`, `score`, `target`) or ranks (column `rank`).",
        ),
    ] = "scores",
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Count for each value of this column.")
    ] = None,
    column: Columns = None,
    dialect: Annotated[str, typer.Option(metavar="NAME", help=f"{', '.join(DIALECTS)}.")] = "ansi",
) -> None:
    """Print the SQL that turns TABLE into counts, which `unsample estimate` reads."""
    columns = parse_columns(column)
    say(counts_query(table, rows=rows, by=by, columns=columns, dialect=dialect))


sql_command.__doc__ = (sql_command.__doc__ or "") + "\n" + _EPILOG
