"""``unsample audit``: negatives in, how they were drawn out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.answers import Audit

_HELP = (
    "A table with columns `user` and `item` (numbers from 0), and possibly `target` (true in the "
    "row of the target): CSV, TSV, Parquet, JSON lines or NPZ; or `-` for standard input."
)


@result_verb
def audit_command(
    negatives: Annotated[
        str, typer.Argument(metavar="FILE", callback=options.checked_source, help=_HELP)
    ],
    items: options.RequiredItems,
    exclude: Annotated[
        str | None, options.table("Items that users have seen: columns `user` and `item`.")
    ] = None,
    column: options.Columns = None,
) -> Audit:
    """Find out how the negatives in FILE were drawn.

    **Examples**

    `unsample audit negatives.csv --items 3706`

    `unsample audit negatives.parquet --items 3706 --exclude train.csv --html audit.html`
    """
    columns = options.named(column, "column", "ROLE=NAME, such as item=movie")
    from unsample.answers import audit

    return audit(negatives, items=items, exclude=exclude, columns=columns)
