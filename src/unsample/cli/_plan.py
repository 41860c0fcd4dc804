"""``unsample plan``: how to evaluate, before anything is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unsample.cli import options
from unsample.cli.console import result_verb
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Plan, PowerPlan


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
        int | None,
        typer.Option(
            metavar="S", help="Items sampled for each target of the pilot, or the models."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIFFERENCE|NAME=FILE",
            help="Two models to be told apart: a difference of the metric, as 0.01 or 5%; or "
            "twice, a name and a file of sampled ranks. Designs are then planned by their power.",
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            metavar="LEVEL", callback=options.checked_level, help="With compare: level of verdicts."
        ),
    ] = 0.95,
    power: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="With compare: how often verdicts name the better model."
        ),
    ] = 0.8,
    candidates: options.Candidates = None,
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
) -> Plan | PowerPlan:
    """Plan an evaluation: the expected error of each design at the same cost.

    With --compare, plan how to tell two models apart: the power of each design.

    **Examples**

    `unsample plan --items 25815 --users 25677 --precision 0.02`

    `unsample plan --items 3706 --users 6040 -m Recall@50 --budget 600000 --plot plan.svg`

    `unsample plan --items 3706 --users 6040 --compare 5% --odds 19`

    `unsample plan --items 3706 --users 6040 --compare ease=ease.csv --compare als=als.csv
    --sampled 99`
    """
    named = [each for each in compare or () if "=" in each]
    if sampled is not None and pilot is None and not named:
        raise InputError("sampled must be left out without a pilot, whose sample size it is")
    if compare and len(compare) != (2 if named else 1):
        raise InputError(
            f"compare must be one difference, or NAME=FILE twice, got {len(compare)} values"
        )
    files = options.named(named, "compare", "NAME=FILE, or a difference such as 0.01 or 5%")
    for source in files.values():
        options.check_source(source)
    from unsample.answers import plan
    from unsample.pages import write_plot
    from unsample.tables import read_counts, read_targets

    told: Any = compare[0] if compare else None
    models = {
        name: read_targets(path, items=items, sampled=sampled)[""] for name, path in files.items()
    }
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
        compare=models or told,
        level=level,
        power=power,
        candidates=candidates,
        repeats=repeats,
        rng=rng,
    )
    if plot is not None:
        write_plot(result, plot)
    return result
