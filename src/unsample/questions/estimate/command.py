"""``unsample estimate``: a rank file in, full-catalogue metrics out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.cli import options
from unsample.cli.console import verb

if TYPE_CHECKING:
    from unsample.questions.estimate.result import Estimates


@verb(
    *options.RANKS,
    options.option(
        "--method",
        "METHOD",
        "Estimator, such as mle or bv(gamma=0.01); repeatable.",
        multiple=True,
        default=("auto",),
        words="unsample.estimators:REGISTRY",
    ),
    options.LEVEL,
    options.option("--by", "COLUMN", "Estimate for each value of this column, such as model."),
    *options.TABLES,
    options.PLOT,
    options.CHART,
    examples=(
        "unsample estimate ranks.csv --items 3706 --sampled 99",
        "unsample estimate runs.parquet --items 3706 --sampled 99 -m NDCG@10,HR@50 --by model",
        "unsample estimate 'runs/*.parquet' --items 3706 --sampled 99 --html ranks.html",
        "unsample estimate scores.parquet --items 3706 --column user=query",
        "zcat ranks.csv.gz | unsample estimate - --items 3706 --sampled 99 --method mle --json",
    ),
)
def estimate(
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    by: str | None,
    print_sql: str | None,
    **asked: Any,
) -> Estimates | dict[str, Estimates] | str:
    """Estimate full-catalogue metrics from the ranks in FILE.

    Each rank must be one among items that were drawn uniformly at random.

    FILE is CSV, TSV, Parquet, JSON lines or NPZ with a column rank (1 is the best), or with scored
    items (user, score, target); a quoted pattern of files, or a folder; - for standard input; or
    NAME=FILE for each of several models.
    """
    read = options.reading(asked)
    if print_sql is not None:
        return options.query(print_sql, files, read=read, asked=asked, by=by)
    from unsample.questions.estimate import ask

    result: Estimates | dict[str, Estimates] = ask.estimate(
        options.sources(files),
        metrics=metrics or None,
        by=by,
        negatives=options.drawn(asked),
        prior=options.prior(asked),
        read=read,
        **asked,
    )
    return result
