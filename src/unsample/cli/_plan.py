"""``unsample plan``: how to evaluate, before anything is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unsample.cli import options
from unsample.cli.console import result_verb
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Plan, PowerPlan


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
    precision: Annotated[
        float, options.option("SHARE", "The error sought, relative to the metric.")
    ] = 0.05,
    budget: Annotated[
        int | None,
        options.option(
            "B", "Scores that may be asked for in total. [default: what the precision needs]"
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
        int | None,
        options.option("S", "Items sampled for each target, in the files of --pilot or --compare."),
    ] = None,
    compare: Annotated[
        list[str] | None,
        options.option(
            "DIFFERENCE|NAME=FILE",
            "Plan how to tell two models apart. Give the difference of the metric, as 0.01 or 5%; "
            "or give --compare twice, each time a name and a file of sampled ranks.",
        ),
    ] = None,
    level: Annotated[
        float, options.option("LEVEL", "With --compare: level of verdicts.", options.checked_level)
    ] = 0.95,
    power: Annotated[
        float,
        options.option("SHARE", "With --compare: how often the better model should be named."),
    ] = 0.8,
    candidates: options.Candidates = None,
    odds: Annotated[
        float | None,
        options.option(
            "ODDS", "How good a guide there is: 1 is a random order. [default: there is no guide]"
        ),
    ] = None,
    repeats: Annotated[int, options.option("R", "Simulated evaluations for each error.")] = 100,
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
        raise InputError(
            f"sampled is the sample size of the files of pilot or compare, got {sampled} without "
            "such a file; leave it out"
        )
    if compare and len(compare) != (2 if named else 1):
        raise InputError(
            f"compare must be one difference, or NAME=FILE for two models, got {', '.join(compare)}"
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
