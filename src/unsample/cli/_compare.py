"""``unsample compare``: rank files of several models in, verdicts out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

from unsample.cli import options
from unsample.cli.console import result_verb
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Across, Comparison


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
    baseline: Annotated[
        str | None, options.option("MODEL", "The model that --fail-if-worse compares with.")
    ] = None,
    fail_if_worse: Annotated[
        str | None,
        options.option(
            "METRIC",
            "Exit with 1 if a model is worse than the baseline, the chance being at least --level.",
            options.checked_metrics,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        options.option("SHARE", "Worse by more than this share of the baseline, such as 0.01."),
    ] = None,
    across: Annotated[
        str | None,
        options.option(
            "COLUMN", "The column that names the data set: compare means over data sets, too."
        ),
    ] = None,
    column: options.Columns = None,
    rows: options.Rows = None,
    ties: options.Ties = "random",
    rng: options.Rng = 0,
    print_sql: options.PrintSql = None,
) -> Comparison | Across | str:
    """Compare models by their sampled ranks: which one is better, and how sure that is.

    Give a file for each model, which it is named by (or NAME=FILE), or one table of all of them.
    Models are compared user by user where there is a column `user`, or files have equally many
    rows. A name that is given twice, or a column `run`, has several runs (training seeds).

    **Examples**

    `unsample compare ease.csv als.csv --items 3706 --sampled 99 -m NDCG@50`

    `unsample compare EASE=runs/7.csv ALS=runs/9.csv --items 3706 --sampled 99 --html models.html`

    `unsample compare runs.parquet --items 3706 --sampled 99 --candidates unseen --json`

    `unsample compare EASE=ease.csv VAE=vae-1.csv VAE=vae-2.csv VAE=vae-3.csv --items 3706
    --sampled 99`

    `unsample compare base.csv new.csv --items 3706 --sampled 99 --baseline base --fail-if-worse
    NDCG@10 --margin 0.01`

    `unsample compare benchmark.parquet --across dataset --candidates unseen -m NDCG@10`
    """
    source: Any = files if print_sql else options.sources(files, runs=True)
    read = options.reading(column, rows, ties, rng)
    if print_sql is not None:
        design = {"items": items, "sampled": sampled, "replacement": replacement, "rng": rng}
        return options.query(print_sql, files, read, by=by or "model", pair=True, **design)
    if fail_if_worse and across:
        raise InputError("across must be left out with fail_if_worse: a gate is for one data set")
    if bool(fail_if_worse) != bool(baseline):
        raise InputError(
            "baseline and fail_if_worse must be given together: a model and a metric, got "
            + (f"baseline {baseline}" if baseline else f"fail_if_worse {fail_if_worse}")
        )
    if margin is not None and not fail_if_worse:
        raise InputError(f"margin must be left out without fail_if_worse METRIC, got {margin:g}")
    from unsample.answers import DEFAULT_METRICS, compare

    if fail_if_worse and fail_if_worse not in (metrics or ()):
        metrics = [*(metrics or ()), fail_if_worse]
    call: Any = compare  # what it returns depends on across
    result = call(
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
        across=across,
    )
    if fail_if_worse and baseline:
        gate = result.gate(fail_if_worse, baseline=baseline, margin=margin or 0.0)
        result = dataclasses.replace(result, gated=gate)
    found: Comparison | Across = result
    return found
