"""``unsample estimate``: a rank file in, full-catalogue metrics out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli._words import DEFAULT_METHOD, ERRORS, ROWS, TIE_RULES
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.cli._groups import Groups


def _check_chances(source: str) -> None:
    if source != "probability":  # a column of the table
        options.check_source(source)


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
    probabilities: Annotated[
        str | None,
        options.option(
            "FILE",
            "For items that were not sampled uniformly: how often each occurs, columns `item` and "
            "`count`; or the word `probability`, if a column of the table has the chance of each "
            "row's item.",
            options.checked(_check_chances),
        ),
    ] = None,
    exponent: options.Exponent = 1.0,
    strata: Annotated[
        list[str] | None,
        options.option(
            "NAME=SIZE",
            "For items sampled by stratum (column `stratum`): its number of items, `all` if all of "
            "them were taken, or `rest`. Repeat for each stratum.",
        ),
    ] = None,
    exclude: Annotated[
        str | None,
        options.table("Items that could not be sampled: columns `user` and `item`."),
    ] = None,
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
    errors: Annotated[
        str,
        options.choice("errors", ERRORS, f"How standard errors are found: {', '.join(ERRORS)}."),
    ] = "bootstrap",
    resamples: options.Resamples = 400,
    rng: options.Rng = 0,
) -> Groups:
    """Estimate full-catalogue metrics from the ranks in FILE.

    **Examples**

    `unsample estimate ranks.csv --items 3706 --sampled 99`

    `unsample estimate runs.parquet --items 3706 --sampled 99 -m NDCG@10 -m HR@50 --by model`

    `unsample estimate ranks.csv --items 3706 --sampled 99 --html ranks.html`

    `unsample estimate 'runs/*.parquet' --items 3706 --sampled 99 --by model`

    `unsample estimate scores.parquet --items 3706 --column user=query`

    `unsample estimate scores.csv --items 3706 --probabilities counts.csv --exponent 0.75`

    `zcat ranks.csv.gz | unsample estimate - --items 3706 --sampled 99 --method mle --json`
    """
    columns = options.named(column, "column", "ROLE=NAME, such as rank=position")
    sizes = _strata(strata)
    from unsample.answers import DEFAULT_METRICS, estimate
    from unsample.cli._groups import Groups, chances_of
    from unsample.tables import read_counts

    if probabilities is not None or strata:
        return Groups(
            None,
            {
                "": estimate(
                    file,
                    items=items,
                    metrics=metrics or DEFAULT_METRICS,
                    probabilities=chances_of(probabilities, exponent, items),
                    strata=sizes,
                    exclude=exclude,
                    replacement=replacement,
                    candidates=candidates,
                    shape=shape,
                    rng=rng,
                )
            },
        )
    groups = read_counts(
        file,
        items=items,
        sampled=sampled,
        columns=columns,
        rows=rows,
        by=by,
        ties=ties,
        rng=rng,
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
            errors=errors,
            resamples=resamples,
            rng=rng,
        )
        for name, counts in groups.items()
    }
    results = {name: replace(held, filtered=filtered) for name, held in results.items()}
    return Groups(by, results)


def _strata(given: list[str] | None) -> dict[str, int | str] | None:
    named = options.named(given, "strata", "NAME=SIZE, such as random=3000 or list=all")
    return {name: int(kind) if kind.isdecimal() else kind for name, kind in named.items()} or None
