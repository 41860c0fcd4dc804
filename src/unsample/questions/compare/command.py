"""``unsample compare``: rank files of several models in, verdicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.cli import options
from unsample.cli.console import verb
from unsample.cli.options import option
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Across, Comparison


@verb(
    *options.RANKS,
    option("--by", "COLUMN", "Column of the model, in one table of all.  [default: model]"),
    option("--across", "COLUMN", "Column of the data set: compare means over data sets."),
    options.LEVEL,
    option("--baseline", "MODEL", "The model that --fail-if-worse compares with."),
    option(
        "--fail-if-worse",
        "METRIC",
        "Exit with 1 if a model is worse than the baseline, the chance being at least --level.",
        words="unsample.metrics:REGISTRY",
    ),
    option("--margin", "SHARE", "Worse by more than this share: 0.01.", type=float),
    *options.TABLES,
    options.PLOT,
    examples=(
        "unsample compare ease.csv als.csv --items 3706 --sampled 99 -m NDCG@50",
        "unsample compare EASE=ease.csv VAE=1.csv VAE=2.csv VAE=3.csv --items 3706 --sampled 99",
        "unsample compare runs.parquet --items 3706 --sampled 99 --candidates unseen --json",
        "unsample compare benchmark.parquet --across dataset --candidates unseen -m NDCG@10",
        "unsample compare old.csv new.csv --items 3706 --baseline old --fail-if-worse NDCG@10",
    ),
)
def compare(
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    by: str | None,
    baseline: str | None,
    fail_if_worse: str | None,
    margin: float | None,
    print_sql: str | None,
    **asked: Any,
) -> Comparison | Across | str:
    """Compare models by their sampled ranks: which one is better, and how sure that is.

    Give a FILE for each model, which it is named by (or NAME=FILE), or one table of all of them.
    Models are compared user by user where there is a column user, or files have equally many rows.
    A name that is given twice, or a column run, has several runs (training seeds).
    """
    read = options.reading(asked)
    if print_sql is not None:
        return options.query(print_sql, files, read, asked, by=by or "model", pair=True)
    if fail_if_worse and asked["across"]:
        raise InputError("--across must be left out with --fail-if-worse, for one data set")
    if bool(fail_if_worse) != bool(baseline):
        raise InputError(
            "--baseline and --fail-if-worse must be given together: a model and a metric, got "
            + (f"--baseline {baseline}" if baseline else f"--fail-if-worse {fail_if_worse}")
        )
    if margin is not None and not fail_if_worse:
        raise InputError(f"--margin must be left out without --fail-if-worse, got {margin:g}")
    if fail_if_worse and fail_if_worse not in metrics:
        metrics = (*metrics, fail_if_worse)
    from unsample import answers

    call: Any = answers.compare  # what it returns depends on across
    result = call(
        options.sources(files, runs=True),
        metrics=metrics or answers.DEFAULT_METRICS,
        by=by,
        read=read,
        **asked,
    )
    if fail_if_worse:
        import dataclasses

        gate = result.gate(fail_if_worse, baseline=baseline, margin=margin or 0.0)
        result = dataclasses.replace(result, gated=gate)
    found: Comparison | Across = result
    return found
