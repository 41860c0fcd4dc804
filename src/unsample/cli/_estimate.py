"""``unsample estimate``: a rank file in, full-catalogue metrics out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unsample.cli import options
from unsample.cli._words import DEFAULT_METHOD
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.answers import Estimates


@result_verb
def estimate_command(
    files: options.Files,
    items: options.Items = None,
    sampled: options.Sampled = None,
    metrics: options.Metrics = None,
    method: options.Methods = None,
    negatives: options.Negatives = "own",
    replacement: options.Replacement = True,
    candidates: options.Candidates = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    by: Annotated[
        str | None, options.option("COLUMN", "Estimate for each value of this column.")
    ] = None,
    column: options.Columns = None,
    rows: options.Rows = None,
    ties: options.Ties = "random",
    rng: options.Rng = 0,
    print_sql: options.PrintSql = None,
) -> Estimates | dict[str, Estimates] | str:
    """Estimate full-catalogue metrics from the ranks in FILE.

    **Examples**

    `unsample estimate ranks.csv --items 3706 --sampled 99`

    `unsample estimate runs.parquet --items 3706 --sampled 99 -m NDCG@10 -m HR@50 --by model`

    `unsample estimate ranks.csv --items 3706 --sampled 99 --html ranks.html`

    `unsample estimate 'runs/*.parquet' --items 3706 --sampled 99 --by model`

    `unsample estimate scores.parquet --items 3706 --column user=query`

    `zcat ranks.csv.gz | unsample estimate - --items 3706 --sampled 99 --method mle --json`
    """
    source: Any = files if print_sql else options.sources(files)
    read = options.reading(column, rows, ties, rng)
    if print_sql is not None:
        design = {"items": items, "sampled": sampled, "replacement": replacement, "rng": rng}
        pair = "user" in (read.columns or {})
        return options.query(print_sql, files, read, by=by, pair=pair, **design)
    from unsample.answers import DEFAULT_METRICS, estimate

    found: Estimates | dict[str, Estimates] = estimate(
        source,
        items=items,
        sampled=sampled,
        metrics=metrics or DEFAULT_METRICS,
        method=method or DEFAULT_METHOD,
        negatives=negatives,
        replacement=replacement,
        candidates=candidates,
        prior=options.prior_of(prior),
        kind=kind,
        by=by,
        read=read,
    )
    return found
