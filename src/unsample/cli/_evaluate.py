"""``unsample evaluate``: a recommender on a data set, exact and sampled side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from unsample._checks import check_choice
from unsample.cli._options import (
    AsJson,
    Metrics,
    Resamples,
    WithoutReplacement,
    print_warnings,
)
from unsample.datasets import PROTOCOLS
from unsample.estimation import DEFAULT_METRICS
from unsample.evaluation import DESIGNS, evaluate_ranks, rank_bundled, rank_trained
from unsample.recommenders import terminal_progress

__all__ = ["evaluate_command"]


def evaluate_command(
    dataset: Annotated[str, typer.Option(metavar="NAME", help="See `unsample datasets list`.")],
    recommender: Annotated[
        str, typer.Option(metavar="NAME", help="popularity, itemknn, als, ease, neumf, multivae.")
    ],
    design: Annotated[
        str,
        typer.Option(metavar="DESIGN", help="fixed: sample items for a target; exact: rank all."),
    ] = "fixed",
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Take the ranks that ship with the package.")
    ] = False,
    protocol: Annotated[
        str,
        typer.Option(metavar="NAME", help="everyday: training items excluded; paper: kept."),
    ] = "everyday",
    sampled: Annotated[int, typer.Option(metavar="S", help="Items sampled for each target.")] = 99,
    without_replacement: WithoutReplacement = False,
    metric: Metrics = None,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD", help="Estimator, repeatable. [default: naive, mle]"),
    ] = None,
    resamples: Resamples = 400,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of sampling and bootstrap.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Evaluate a recommender on a data set: exact metrics beside those of a sampled evaluation.

    **Examples**

    `unsample evaluate --dataset ml-1m --recommender ease --bundled`

    `unsample evaluate --dataset ml-1m --recommender als --design exact --json`
    """
    check_choice("design", design, DESIGNS)
    check_choice("protocol", protocol, PROTOCOLS)
    drawn = None if design == "exact" else sampled
    replacement = not without_replacement
    if bundled:
        targets = rank_bundled(
            dataset,
            recommender,
            protocol=protocol,
            sampled=drawn,
            replacement=replacement,
            rng=seed,
        )
    else:
        with terminal_progress(f"training {recommender} on {dataset}") as progress:
            targets = rank_trained(
                dataset,
                recommender,
                protocol=protocol,
                sampled=drawn,
                replacement=replacement,
                rng=seed,
                progress=progress,
            )
    result = evaluate_ranks(
        targets,
        metrics=metric or DEFAULT_METRICS,
        method=method or ("naive", "mle"),
        resamples=resamples,
        rng=seed,
    )
    if as_json:
        typer.echo(result.to_json())
        return
    typer.echo(str(result))
    print_warnings(result.warnings)
