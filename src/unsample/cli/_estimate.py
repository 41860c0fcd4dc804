"""``unsample estimate``: a rank file in, full-catalogue metrics out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli._words import DEFAULT_METHOD, ROWS, TIE_RULES
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.cli._groups import Groups


@result_verb
def estimate_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            callback=options.checked_source,
            help="CSV, TSV, Parquet, JSON lines or NPZ with a column `rank` (1 is the best), or "
            "with scored items (`user`, `score`, `target`); a quoted pattern of files, or a "
            "folder; or `-` for standard input.",
        ),
    ],
    items: options.Items = None,
    sampled: options.Sampled = None,
    metrics: options.Metrics = None,
    method: options.Methods = None,
    filtered: options.Filtered = False,
    negatives: options.Negatives = "own",
    replacement: options.Replacement = True,
    sampler: options.Sampler = "uniform",
    candidates: options.Candidates = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    shape: options.Shape = None,
    by: Annotated[
        str | None, options.option("COLUMN", "Estimate for each value of this column.")
    ] = None,
    column: options.Columns = None,
    rows: Annotated[
        str | None,
        options.choice(
            "rows", ROWS, f"What a row holds: {', '.join(ROWS)}. [default: by the columns]", "KIND"
        ),
    ] = None,
    ties: Annotated[
        str,
        options.choice(
            "ties", TIE_RULES, f"Rank of a target with ties: {', '.join(TIE_RULES)}.", "RULE"
        ),
    ] = "random",
    rng: options.Rng = 0,
) -> Groups:
    """Estimate full-catalogue metrics from the ranks in FILE.

    **Examples**

    `unsample estimate ranks.csv --items 3706 --sampled 99`

    `unsample estimate runs.parquet --items 3706 --sampled 99 -m NDCG@10 -m HR@50 --by model`

    `unsample estimate ranks.csv --items 3706 --sampled 99 --html ranks.html`

    `unsample estimate 'runs/*.parquet' --items 3706 --sampled 99 --by model`

    `unsample estimate scores.parquet --items 3706 --column user=query`

    `zcat ranks.csv.gz | unsample estimate - --items 3706 --sampled 99 --method mle --json`
    """
    columns = options.named(column, "column", "ROLE=NAME, such as rank=position")
    from unsample.answers import DEFAULT_METRICS, estimate
    from unsample.cli._groups import Groups
    from unsample.tables import Read, read_counts

    groups = read_counts(
        file,
        items=items,
        sampled=sampled,
        read=Read(columns, rows, ties, rng),
        by=by,
        replacement=replacement,
        filtered=filtered,
        negatives=negatives,
    )
    results = {
        name: estimate(
            counts,
            metrics=metrics or DEFAULT_METRICS,
            method=method or DEFAULT_METHOD,
            sampler=sampler,
            candidates=candidates,
            prior=options.prior_of(prior),
            kind=kind,
            shape=shape,
        )
        for name, counts in groups.items()
    }
    results = {name: replace(held, filtered=filtered) for name, held in results.items()}
    return Groups(by, results)
