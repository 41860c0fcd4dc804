"""``unsample evaluate``: a recommender on a data set, by any design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unsample.cli.console import progress_bar, result_verb
from unsample.cli.options import (
    Metrics,
    Replacement,
    Resamples,
    Rng,
    checked_place,
)
from unsample.errors import DesignError, InputError

if TYPE_CHECKING:
    from unsample.answers import Result


@result_verb
def evaluate_command(
    dataset: Annotated[str, typer.Option(metavar="NAME", help="See `unsample datasets list`.")],
    recommender: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="popularity, itemknn, als, ease, neumf, multivae; several are compared.",
        ),
    ],
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Take the ranks that ship with the package.")
    ] = False,
    candidates: Annotated[
        str,
        typer.Option(
            metavar="unseen|all",
            help="Whether training items are left out, or kept as in the paper.",
        ),
    ] = "unseen",
    design: Annotated[
        str,
        typer.Option(
            metavar="DESIGN",
            help=(
                "fixed: as many items for each target; adaptive: more for those near the top; "
                "certified: exact metrics@K from a part of the items; guided: popular items first, "
                "and a random part of the users near the top ranked in full; exact: rank all."
            ),
        ),
    ] = "fixed",
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="B", help="Scores that may be asked for in total, of all recommenders."
        ),
    ] = None,
    sampled: Annotated[
        int | None,
        typer.Option(metavar="S", help="Items sampled for each target by fixed. [default: 99]"),
    ] = None,
    replacement: Replacement = True,
    metrics: Metrics = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD", help="Estimator, repeatable. [default: of fixed, naive and auto]"
        ),
    ] = None,
    resamples: Resamples = 400,
    rng: Rng = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=checked_place,
            readable=False,
            help="Keep what is scored in this file, and continue from it.",
        ),
    ] = None,
) -> Result:
    """Evaluate a recommender on a data set, exactly or at a fraction of the cost.

    The exact metrics stand beside the estimates where they are known: for bundled ranks, and
    for the fixed design. Several recommenders are evaluated with the same draws, and compared.

    **Examples**

    `unsample evaluate --dataset ml-1m --recommender ease --bundled`

    `unsample evaluate --dataset citeulike-a --recommender ease --bundled --design adaptive
    --budget 2800000`

    `unsample evaluate --dataset ml-1m --recommender als --design exact --json`

    `unsample evaluate --dataset ml-1m --recommender ease --recommender als --bundled --design
    guided --budget 2400000`
    """
    if design != "fixed" and (sampled is not None or not replacement):
        raise DesignError(
            f"sampled and replacement must be left out with {design}; they belong to fixed"
        )
    if len(recommender) > 1 and method is not None and len(method) > 1:
        raise InputError(
            f"method must be one where recommenders are compared, got {', '.join(method)}"
        )
    from unsample.answers import DEFAULT_METRICS
    from unsample.designs import Fixed
    from unsample.lab._evaluate import evaluate, evaluate_together
    from unsample.lab.recommenders import check_extras

    if not bundled:
        for name in recommender:
            check_extras(name)
    chosen = Fixed(sampled, replacement) if design == Fixed.name else design
    with progress_bar(f"evaluating {', '.join(recommender)} on {dataset}") as progress:
        asked: dict[str, Any] = {
            "bundled": bundled,
            "candidates": candidates,
            "design": chosen,
            "budget": budget,
            "metrics": metrics or DEFAULT_METRICS,
            "resamples": resamples,
            "rng": rng,
            "checkpoint": checkpoint,
            "progress": progress,
        }
        if len(recommender) == 1:
            return evaluate(dataset, recommender[0], method=method, **asked)
        return evaluate_together(
            dataset, recommender, method=method[0] if method else None, **asked
        )
