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
        options.table(
            "How often items occur in training: a column `item`, and a column `count` unless each "
            "row counts as one. [default: counted in --exclude]"
        ),
    ] = None,
    probabilities: Annotated[
        str | None,
        options.table(
            "Stated chances, to test whether the draws agree with them: columns `item` and `count`."
        ),
    ] = None,
    exponent: options.Exponent = 1.0,
    exclude: Annotated[
        str | None,
        options.table("Items that users have seen: columns `user` and `item`."),
    ] = None,
    column: options.Columns = None,
    level: Annotated[
        float, options.option("LEVEL", "Level of all tests together.", options.checked_level)
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
