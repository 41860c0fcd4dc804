"""``unsample compare``: rank files of several models in, verdicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unsample.cli import options
from unsample.cli._words import CORRECTIONS
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.answers import Comparison


@result_verb
def compare_command(
    files: options.Files,
    items: options.Items = None,
    sampled: options.Sampled = None,
    metrics: options.Metrics = None,
    negatives: options.Negatives = "own",
    replacement: options.Replacement = True,
    candidates: options.Candidates = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    by: Annotated[
        str | None,
        options.option(
            "COLUMN",
            "The column that names the model, if one table holds all of them. [default: model]",
        ),
    ] = None,
    level: options.Level = 0.95,
    correction: Annotated[
        str,
        options.choice(
            "correction", CORRECTIONS, f"Correction for many pairs: {', '.join(CORRECTIONS)}."
        ),
    ] = "holm",
    against: Annotated[
        str | None,
        options.option(
            "MODEL",
            "Compare every other model with this one, or with the `best` (the highest estimate of "
            "each metric), or compare `all` pairs. [default: all for up to 100 models, else best]",
        ),
    ] = None,
    paired: Annotated[
        bool | None,
        options.option(
            None,
            "Compare user by user, or do not. [default: user by user where users match]",
            None,
            "--paired/--unpaired",
        ),
    ] = None,
    column: options.Columns = None,
    rows: options.Rows = None,
    ties: options.Ties = "random",
    rng: options.Rng = 0,
    print_sql: options.PrintSql = None,
) -> Comparison | str:
    """Compare models by their sampled ranks: which one is better, and how sure that is.

    Give a file for each model, which it is named by (or NAME=FILE), or one table of all of them.
    Models are compared user by user where there is a column `user`, or files have equally many
    rows.

    **Examples**

    `unsample compare ease.csv als.csv --items 3706 --sampled 99 -m NDCG@50`

    `unsample compare EASE=runs/7.csv ALS=runs/9.csv --items 3706 --sampled 99 --html models.html`

    `unsample compare runs.parquet --items 3706 --sampled 99 --candidates unseen --json`

    `unsample compare sweep.parquet --by run --items 3706 --sampled 99 --against baseline`
    """
    source: Any = files if print_sql else options.sources(files)
    read = options.reading(column, rows, ties, rng)
    if print_sql is not None:
        design = {"items": items, "sampled": sampled, "replacement": replacement, "rng": rng}
        return options.query(print_sql, files, read, by=by or "model", pair=True, **design)
    from unsample.answers import DEFAULT_METRICS, compare

    return compare(
        source,
        items=items,
        sampled=sampled,
        metrics=metrics or DEFAULT_METRICS,
        negatives=negatives,
        replacement=replacement,
        candidates=candidates,
        prior=options.prior_of(prior),
        kind=kind,
        by=by,
        read=read,
        level=level,
        correction=correction,
        against=against,
        paired=paired,
    )
