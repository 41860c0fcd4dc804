"""``unsample plan``: how to evaluate, before anything is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unsample.answers.planning import plan
from unsample.cli._manner import say
from unsample.cli._options import AsJson, Html, checked_place, page_written
from unsample.errors import InputError
from unsample.tables import read_counts

__all__ = ["plan_command"]


def plan_command(
    items: Annotated[
        int, typer.Option(metavar="N", help="Items in the full catalogue, the target included.")
    ],
    users: Annotated[int, typer.Option(metavar="M", help="Targets to evaluate.")],
    k: Annotated[int, typer.Option(metavar="K", help="The K of the metric@K.")] = 10,
    metric: Annotated[
        str, typer.Option("--metric", "-m", metavar="NAME", help="Its family, such as Recall.")
    ] = "NDCG",
    precision: Annotated[
        float, typer.Option(metavar="SHARE", help="The error sought, relative to the metric.")
    ] = 0.05,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="B",
            help="Items that may be scored in total. [default: what the precision needs]",
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="A guess of Recall@K among all items. [default: 0.1; more in small catalogues]",
        ),
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Sampled ranks to learn P(R) from instead."),
    ] = None,
    sampled: Annotated[
        int | None, typer.Option(metavar="S", help="Items sampled for each target of the pilot.")
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="R", help="Simulated evaluations.")] = 200,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of the simulation.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            callback=checked_place,
            readable=False,
            help="Write a plot of error against cost.",
        ),
    ] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Plan an evaluation: the expected error of each design at the same cost.

    **Examples**

    `unsample plan --items 25815 --users 25677 --precision 0.02`

    `unsample plan --items 3706 --users 6040 --k 50 -m Recall --budget 600000 --plot plan.svg`
    """
    if sampled is not None and pilot is None:
        raise InputError("sampled must be left out without a pilot, whose sample size it is")
    counts = None if pilot is None else read_counts(pilot, items=items, sampled=sampled)[""]
    result = plan(
        items=items,
        users=users,
        k=k,
        metric=metric,
        precision=precision,
        budget=budget,
        recall=recall,
        pilot=counts,
        repeats=repeats,
        rng=seed,
    )
    if plot is not None:
        from unsample.pages import write_plot

        write_plot(result, plot)
    with page_written(result, html):
        say(result.to_json() if as_json else str(result))
