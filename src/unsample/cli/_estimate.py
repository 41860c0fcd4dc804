"""``unsample estimate``: a rank file in, full-catalogue metrics out."""

from __future__ import annotations

import json
import warnings
from typing import Annotated

import typer

from unsample.answers import estimation
from unsample.answers.estimation import DEFAULT_METHOD, DEFAULT_METRICS, Estimates
from unsample.cli._columns import Columns, parse_columns
from unsample.cli._manner import say
from unsample.cli._options import (
    AsJson,
    CandidateItems,
    CatalogueSize,
    Html,
    Metrics,
    Resamples,
    SampleSize,
    WithoutReplacement,
    page_written,
    print_warnings,
)
from unsample.errors import UnsampleWarning
from unsample.evidence import TIE_RULES, RankCounts
from unsample.pages._text import estimates_table
from unsample.tables import ROWS, read_counts

__all__ = ["estimate_command"]

_EPILOG = """
**Examples**

`unsample estimate ranks.csv --items 3706 --sampled 99`

`unsample estimate runs.parquet --items 3706 --sampled 99 -m NDCG@10 -m HR@50 --by model`

`unsample estimate ranks.csv --items 3706 --sampled 99 --html ranks.html`

`unsample estimate 'runs/*.parquet' --items 3706 --sampled 99 --by model`

`unsample estimate scores.parquet --items 3706 --column user=query`

`zcat ranks.csv.gz | unsample estimate - --items 3706 --sampled 99 --method "bv(gamma=0.01)" --json`
"""


def estimate_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, JSON lines or NPZ with a column `rank` (1 is the best), or "
            "with scored items (`user`, `score`, `target`); a quoted pattern of files, or a "
            "folder; or `-` for standard input.",
        ),
    ],
    items: CatalogueSize = None,
    sampled: SampleSize = None,
    metric: Metrics = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD",
            help="Estimator, repeatable, such as mle or bv(gamma=0.01). [default: auto]",
        ),
    ] = None,
    without_replacement: WithoutReplacement = False,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How items were drawn; only uniform can be estimated from."
        ),
    ] = "uniform",
    candidates: CandidateItems = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Estimate for each value of this column."),
    ] = None,
    column: Columns = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="KIND", help=f"{', '.join(ROWS)}. [default: by the columns]"),
    ] = None,
    ties: Annotated[
        str,
        typer.Option(metavar="RULE", help=f"Rank of a target with ties: {', '.join(TIE_RULES)}."),
    ] = "random",
    resamples: Resamples = 400,
    seed: Annotated[
        int, typer.Option(metavar="SEED", help="Seed of the bootstrap and of ties.")
    ] = 0,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Estimate full-catalogue metrics from the ranks in FILE."""
    groups = read_counts(
        file,
        by=by,
        items=items,
        sampled=sampled,
        replacement=not without_replacement,
        columns=parse_columns(column),
        rows=rows,
        ties=ties,
        rng=seed,
    )

    def run(counts: RankCounts) -> Estimates:
        with warnings.catch_warnings():
            # They stand in the result, and are printed with it.
            warnings.simplefilter("ignore", UnsampleWarning)
            return estimation.estimate(
                counts,
                metrics=metric or DEFAULT_METRICS,
                method=method or DEFAULT_METHOD,
                sampler=sampler,
                candidates=candidates,
                resamples=resamples,
                rng=seed,
            )

    results = {label: run(counts) for label, counts in groups.items()}
    with page_written(results[""] if by is None else results, html):
        if as_json:
            say(_as_json(results, by))
        else:
            _print_tables(results, by)


estimate_command.__doc__ = (estimate_command.__doc__ or "") + "\n" + _EPILOG


def _as_json(results: dict[str, Estimates], by: str | None) -> str:
    if by is None:
        return results[""].to_json()
    groups = [{by: label, **result.to_dict()} for label, result in results.items()]
    return json.dumps({"by": by, "groups": groups}, indent=2, allow_nan=False)


def _print_tables(results: dict[str, Estimates], by: str | None) -> None:
    said: set[str] = set()
    for position, (label, result) in enumerate(results.items()):
        if position:
            say()
        if by is not None:
            say(f"{by} = {label}", bold=True)
        say(estimates_table(result, notes=False))
        say(f"resolution: {result.resolution()}")
        said.update(result.warnings)
    print_warnings(tuple(sorted(said)))
