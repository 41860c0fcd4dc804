"""``unsample audit``: negatives in, how they were drawn out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from unsample.cli import options
from unsample.cli.console import verb

if TYPE_CHECKING:
    from unsample.questions.audit.result import Audit


@verb(
    click.Argument(["negatives"], metavar="FILE", type=options.SOURCE),
    options.items("Items in the catalogue that negatives were drawn from.", required=True),
    options.option(
        "--exclude",
        "FILE",
        "Items that users have seen: columns user and item.",
        type=options.SOURCE,
    ),
    options.COLUMN,
    examples=(
        "unsample audit negatives.csv --items 3706",
        "unsample audit negatives.parquet --items 3706 --exclude train.csv --html audit.html",
    ),
)
def audit(negatives: str, items: int, exclude: str | None, column: tuple[str, ...]) -> Audit:
    """Find out how the negatives in FILE were drawn.

    FILE is CSV, TSV, Parquet, JSON lines or NPZ, or - for standard input, with columns user and
    item (numbers from 0), and possibly target (true in the row of the target).
    """
    columns = options.named(column, "--column", form="ROLE=NAME, such as item=movie")
    from unsample.questions.audit import ask

    return ask.audit(negatives, items=items, exclude=exclude, columns=columns)
