"""``unsample plan``: how to evaluate, before anything is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from unsample.cli import options
from unsample.cli.console import result_verb
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Plan


@result_verb
def plan_command(
    items: options.RequiredItems,
    users: Annotated[int, options.option("M", "Users to evaluate.")],
    targets: Annotated[
        int | None, options.option("T", "Targets of all users. [default: one for each user]")
    ] = None,
    metrics: Annotated[
        str,
        options.option(
            "METRIC", "The metric that matters.", options.checked_metrics, "--metrics", "-m"
        ),
    ] = "NDCG@10",
    error: Annotated[
        float | None,
        options.option(
            "SHARE",
            "Half the width of the interval sought, relative to the metric. [default: 0.05]",
        ),
    ] = None,
    difference: Annotated[
        str | None,
        options.option(
            "DIFFERENCE",
            "Instead of --error: the difference of two models to tell apart, as 0.01 or 5%.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        options.option(
            "B", "Scores that may be asked for in total. [default: what each design needs]"
        ),
    ] = None,
    recall: Annotated[
        float | None,
        options.option(
            "SHARE",
            "A guess of Recall@K on the full catalogue. [default: 0.1; more in small catalogues]",
        ),
    ] = None,
    pilot: Annotated[
        str | None, options.table("Sampled ranks to learn P(R) from, instead of a guess.")
    ] = None,
    sampled: Annotated[
        int | None, options.option("S", "Items sampled for each target, in the file of --pilot.")
    ] = None,
    level: options.Level = 0.95,
    candidates: options.Candidates = None,
    odds: Annotated[
        float | None,
        options.option(
            "ODDS", "How good a guide there is: 1 is a random order. [default: there is no guide]"
        ),
    ] = None,
    rng: options.Rng = 0,
    plot: options.Plot = None,
) -> Plan:
    """Plan an evaluation: what each design costs, and how sure the metric would be.

    **Examples**

    `unsample plan --items 25815 --users 25677 --error 0.02`

    `unsample plan --items 3706 --users 6040 -m Recall@50 --budget 600000 --plot plan.svg`

    `unsample plan --items 3706 --users 6040 --difference 20% --odds 19`
    """
    if sampled is not None and pilot is None:
        raise InputError(
            f"sampled is the sample size of the file of pilot, got {sampled} without such a file; "
            "leave it out"
        )
    from unsample.answers import plan
    from unsample.show import write_plot
    from unsample.tables import read_counts

    result = plan(
        items=items,
        users=users,
        targets=targets,
        metrics=metrics,
        error=error,
        difference=difference,
        budget=budget,
        recall=recall,
        pilot=None if pilot is None else read_counts(pilot, items=items, sampled=sampled)[""],
        odds=odds,
        level=level,
        candidates=candidates,
        rng=rng,
    )
    if plot is not None:
        write_plot(result, plot)
    return result
