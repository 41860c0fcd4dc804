"""``unsample plan``: how to evaluate, before anything is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli.console import result_verb
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Plan


@result_verb
def plan_command(
    items: options.RequiredItems,
    users: Annotated[int, typer.Option(metavar="M", help="Users to evaluate.")],
    targets: Annotated[
        int | None,
        typer.Option(metavar="T", help="Targets of all users. [default: one for each user]"),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            "-m",
            metavar="METRIC",
            callback=options.checked_metrics,
            help="The metric that matters.",
        ),
    ] = "NDCG@10",
    precision: Annotated[
        float, typer.Option(metavar="SHARE", help="The error sought, relative to the metric.")
    ] = 0.05,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="B",
            help="Scores that may be asked for in total. [default: what the precision needs]",
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
        typer.Option(
            metavar="FILE",
            callback=options.checked_source,
            help="Sampled ranks to learn P(R) from instead.",
        ),
    ] = None,
    sampled: Annotated[
        int | None, typer.Option(metavar="S", help="Items sampled for each target of the pilot.")
    ] = None,
    odds: Annotated[
        float | None,
        typer.Option(
            metavar="ODDS",
            help="How good a guide there is: 1 is a random order. [default: there is none]",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="R", help="Simulated evaluations.")] = 100,
    rng: options.Rng = 0,
    plot: options.Plot = None,
) -> Plan:
    """Plan an evaluation: the expected error of each design at the same cost.

    **Examples**

    `unsample plan --items 25815 --users 25677 --precision 0.02`

    `unsample plan --items 3706 --users 6040 -m Recall@50 --budget 600000 --plot plan.svg`
    """
    if sampled is not None and pilot is None:
        raise InputError("sampled must be left out without a pilot, whose sample size it is")
    from unsample.answers import plan
    from unsample.pages import write_plot
    from unsample.tables import read_counts

    result = plan(
        items=items,
        users=users,
        targets=targets,
        metrics=metrics,
        precision=precision,
        budget=budget,
        recall=recall,
        pilot=None if pilot is None else read_counts(pilot, items=items, sampled=sampled)[""],
        odds=odds,
        repeats=repeats,
        rng=rng,
    )
    if plot is not None:
        write_plot(result, plot)
    return result
