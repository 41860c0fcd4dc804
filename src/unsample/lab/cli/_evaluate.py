"""``unsample evaluate``: a recommender on a data set, by any design."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unsample._checks import check_choice
from unsample.answers import DEFAULT_METRICS
from unsample.answers.evaluation import DESIGNS, Evaluated
from unsample.cli.console import progress_bar
from unsample.cli.options import Methods, Metrics, Replacement, Resamples, Rng, checked_place
from unsample.errors import DesignError
from unsample.lab.datasets import PROTOCOLS
from unsample.lab.side_by_side import (
    DEFAULT_METHODS,
    Evaluation,
    evaluate_bundled,
    evaluate_ranks,
    evaluate_trained,
    rank_bundled,
    rank_trained,
)

__all__ = ["evaluate_command"]

#: Designs that score a part of the items, look, and go on.
_IN_ROUNDS = ("adaptive", "certified")


def evaluate_command(
    dataset: Annotated[str, typer.Option(metavar="NAME", help="See `unsample datasets list`.")],
    recommender: Annotated[
        str, typer.Option(metavar="NAME", help="popularity, itemknn, als, ease, neumf, multivae.")
    ],
    design: Annotated[
        str,
        typer.Option(
            metavar="DESIGN",
            help=(
                "fixed: as many items for each target; adaptive: more for those near the top; "
                "certified: exact metrics@K from a part of the items; exact: rank all."
            ),
        ),
    ] = "fixed",
    budget: Annotated[
        int | None,
        typer.Option(metavar="ITEMS", help="Items to score for a target, in the mean."),
    ] = None,
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Take the ranks that ship with the package.")
    ] = False,
    protocol: Annotated[
        str,
        typer.Option(metavar="NAME", help="everyday: training items excluded; paper: kept."),
    ] = "everyday",
    sampled: Annotated[
        int | None,
        typer.Option(metavar="S", help="Items sampled for each target by fixed. [default: 99]"),
    ] = None,
    replacement: Replacement = True,
    metrics: Metrics = None,
    method: Methods = None,
    resamples: Resamples = 400,
    rng: Rng = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            callback=checked_place,
            readable=False,
            help="Keep what is scored in this file, and go on from it (adaptive, certified).",
        ),
    ] = None,
) -> Evaluation | Evaluated:
    """Evaluate a recommender on a data set, exactly or at a fraction of the cost.

    The fixed design shows the exact metrics beside those of the sample.

    **Examples**

    `unsample evaluate --dataset ml-1m --recommender ease --bundled`

    `unsample evaluate --dataset citeulike-a --recommender ease --bundled --design adaptive
    --budget 500`

    `unsample evaluate --dataset ml-1m --recommender als --design exact --json`
    """
    check_choice("design", design, DESIGNS)
    check_choice("protocol", protocol, PROTOCOLS)
    if sampled is not None and (design != "fixed" or budget is not None):
        raise DesignError(
            f"sampled must be left out with {design} or a budget, got {sampled}; say --budget"
        )
    if budget is not None and design == "exact":
        raise DesignError(f"budget must be left out with exact, which ranks all, got {budget}")
    if checkpoint is not None and (bundled or design not in _IN_ROUNDS):
        what = "bundled ranks" if bundled else f"the design {design}"
        raise DesignError(
            f"checkpoint must be left out with {what}, got {str(checkpoint)!r}: it keeps what "
            f"{' and '.join(_IN_ROUNDS)} designs have scored of a trained recommender"
        )
    with progress_bar(f"evaluating {recommender} on {dataset}") as progress:
        if design in _IN_ROUNDS:
            evaluate_it = (
                evaluate_bundled
                if bundled
                else partial(evaluate_trained, checkpoint=checkpoint, progress=progress)
            )
            return evaluate_it(
                dataset,
                recommender,
                design=design,
                budget=budget,
                protocol=protocol,
                metrics=metrics or DEFAULT_METRICS,
                method=method,
                resamples=resamples,
                seed=rng,
            )
        rank_it = rank_bundled if bundled else partial(rank_trained, progress=progress)
        targets = rank_it(
            dataset,
            recommender,
            protocol=protocol,
            sampled=_fixed_sample(design, sampled, budget),
            replacement=replacement,
            rng=rng,
        )
    return evaluate_ranks(
        targets,
        metrics=metrics or DEFAULT_METRICS,
        method=method or DEFAULT_METHODS,
        resamples=resamples,
        rng=rng,
    )


def _fixed_sample(design: str, sampled: int | None, budget: int | None) -> int | None:
    if design == "exact":
        return None
    return next(value for value in (sampled, budget, 99) if value is not None)
