"""``unsample audit``: negatives in, how they were drawn out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.answers import Audit


@result_verb
def audit_command(
    negatives: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            callback=options.checked_source,
            help="CSV, TSV, Parquet, JSON lines or NPZ with columns `user` and `item` (numbers "
            "from 0), and possibly `target` (true in the row of the target); or `-` for standard "
            "input.",
        ),
    ],
    items: options.RequiredItems,
    popularity: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=options.checked_source,
            help="How often items occur in training: a column `item`, and `count` unless rows are "
            "to be counted. [default: counted in --exclude]",
        ),
    ] = None,
    probabilities: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=options.checked_source,
            help="The chances that are stated, to see whether the draws agree: how often each item "
            "occurs, columns `item` and `count`.",
        ),
    ] = None,
    exponent: options.Exponent = 1.0,
    exclude: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=options.checked_source,
            help="Items that users have seen: columns `user`, `item`.",
        ),
    ] = None,
    column: options.Columns = None,
    level: Annotated[
        float,
        typer.Option(
            metavar="SHARE", callback=options.checked_level, help="Of the tests together."
        ),
    ] = 0.95,
    rng: options.Rng = 0,
) -> Audit:
    """Find out how the negatives in FILE were drawn.

    **Examples**

    `unsample audit negatives.csv --items 3706`

    `unsample audit negatives.parquet --items 3706 --exclude train.csv --html audit.html`

    `unsample audit negatives.csv --items 3706 --popularity counts.csv --column item=movie --json`
    """
    columns = options.named(column, "column", "ROLE=NAME, such as item=movie")
    from unsample.answers import audit
    from unsample.cli._groups import chances_of
    from unsample.tables import read_item_counts

    counts = None
    if popularity is not None:
        named = {role: name for role, name in columns.items() if role == "item"}
        counts = read_item_counts(popularity, items=items, columns=named)
    return audit(
        negatives,
        items=items,
        popularity=counts,
        probabilities=chances_of(probabilities, exponent, items),
        exclude=exclude,
        columns=columns,
        level=level,
        rng=rng,
    )
