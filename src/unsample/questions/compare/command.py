"""``unsample compare``: rank files of several models in, verdicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.cli import options
from unsample.cli.console import verb
from unsample.cli.options import flag, option
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.questions.compare.data_sets import Across
    from unsample.questions.compare.result import Comparison


@verb(
    *options.RANKS,
    option("--by", "COLUMN", "Column of the model, in one table of all.  [default: model]"),
    option("--across", "COLUMN", "Column of the data set: compare means over data sets."),
    options.VERDICTS,
    option("--baseline", "MODEL", "The model that --fail-if-worse compares with."),
    option(
        "--fail-if-worse",
        "METRIC",
        "Exit with 1 if a model is worse than the baseline with a probability of --level.",
        words="unsample.metrics:REGISTRY",
    ),
    option("--margin", "SHARE", "Worse by more than this share: 0.01.", type=float),
    flag("--fail-if-unknown", "With --fail-if-worse: exit with 1 also where that cannot be told."),
    flag("--on-each", "With --fail-if-worse and --across: worse on any data set, not in the mean."),
    *options.TABLES,
    options.PLOT,
    options.CHART,
    examples=(
        "unsample compare ease.csv als.csv --items 3706 --sampled 99 -m NDCG@50",
        "unsample compare EASE=ease.csv VAE=1.csv VAE=2.csv VAE=3.csv --items 3706 --sampled 99",
        "unsample compare runs.parquet --items 3706 --sampled 99 --protocol unseen --json",
        "unsample compare benchmark.parquet --across dataset --protocol unseen -m NDCG@10",
        "unsample compare old.csv new.csv --items 3706 --baseline old --fail-if-worse NDCG@10",
        "unsample compare all.csv --across dataset --baseline old --fail-if-worse HR@9 --on-each",
    ),
)
def compare(
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    by: str | None,
    baseline: str | None,
    fail_if_worse: str | None,
    margin: float | None,
    fail_if_unknown: bool,
    on_each: bool,
    print_sql: str | None,
    **asked: Any,
) -> Comparison | Across | str:
    """Compare models by their sampled ranks: which one is better, and how sure that is.

    Each rank must be one among items that were drawn uniformly at random.

    Give a FILE for each model, which it is named by (or NAME=FILE), or one table of all of them.
    Models are compared user by user where there is a column user, or files have equally many rows.
    A name that is given twice, or a column run, has several runs (training seeds).
    """
    read = options.reading(asked)
    if print_sql is not None:
        return options.query(
            print_sql, files, read=read, asked=asked, by=by or "model", compares=True
        )
    _check_gate(
        baseline,
        fail_if_worse,
        needs_gate={
            "--margin": margin is not None,
            "--fail-if-unknown": fail_if_unknown,
            "--on-each": on_each,
        },
    )
    if on_each and not asked["across"]:
        raise InputError("--on-each must be given with --across, got one data set")
    if fail_if_worse and fail_if_worse not in metrics:
        metrics = (*metrics, fail_if_worse)
    from unsample.questions.compare import ask

    call: Any = ask.compare  # the type of the result depends on across
    result = call(
        options.sources(files, runs=True),
        metrics=metrics or None,
        by=by,
        negatives=options.drawn(asked),
        prior=options.prior(asked),
        read=read,
        **asked,
    )
    if fail_if_worse:
        import dataclasses

        # Only a comparison on several data sets can be judged on each of them.
        on_each_data_set = {"each": True} if on_each else {}
        gate = result.gate(
            fail_if_worse,
            baseline=baseline,
            margin=margin or 0.0,
            fail_if_unknown=fail_if_unknown,
            **on_each_data_set,
        )
        result = dataclasses.replace(result, gated=gate)
    comparison: Comparison | Across = result
    return comparison


def _check_gate(
    baseline: str | None, fail_if_worse: str | None, *, needs_gate: dict[str, bool]
) -> None:
    """Refuse an option of the gate without the others that it needs."""
    if bool(fail_if_worse) != bool(baseline):
        raise InputError(
            "--baseline and --fail-if-worse must be given together: a model and a metric, got "
            + (f"--baseline {baseline}" if baseline else f"--fail-if-worse {fail_if_worse}")
        )
    for name, is_given in needs_gate.items():
        if is_given and not fail_if_worse:
            raise InputError(f"{name} must be left out without --fail-if-worse")
