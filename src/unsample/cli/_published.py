"""``unsample published``: numbers of a paper in, full-catalogue metrics out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli._words import DEFAULT_METHOD
from unsample.cli.console import result_verb

if TYPE_CHECKING:
    from unsample.answers import Published


@result_verb
def published_command(
    numbers: Annotated[
        list[str],
        typer.Argument(
            metavar="METRIC=VALUE...",
            help="Sampled metrics as printed, with all their digits: HR@10=0.690 is known to "
            "within 0.0005. Without @K a metric looks at all sampled items.",
        ),
    ],
    items: options.RequiredItems,
    sampled: options.RequiredSampled,
    users: Annotated[
        int, typer.Option(metavar="M", help="Targets that the printed means are taken over.")
    ],
    metrics: options.Metrics = None,
    replacement: options.Replacement = True,
    sampler: options.Sampler = "uniform",
    candidates: options.Candidates = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    shape: options.Shape = None,
    method: options.Method = DEFAULT_METHOD,
    percent: Annotated[bool, typer.Option("--percent", help="The values are percentages.")] = False,
    decimals: Annotated[
        int | None,
        typer.Option(metavar="D", help="Decimals that are printed. [default: those given]"),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="R", help="Runs that the numbers are means of.")] = 1,
) -> Published:
    """Estimate full-catalogue metrics from what a paper prints.

    **Examples**

    `unsample published --items 3706 --sampled 99 --users 6040 HR@1=0.180 HR@10=0.690 NDCG@10=0.412`

    `unsample published --items 3706 --sampled 99 --users 6040 HR@10=69.0 --percent -m HR@50 --json`
    """
    given = options.named(numbers, "a number", "METRIC=VALUE, such as HR@10=0.69")
    from unsample.answers import DEFAULT_METRICS, published

    return published(
        given,
        items=items,
        sampled=sampled,
        users=users,
        runs=runs,
        metrics=metrics or DEFAULT_METRICS,
        replacement=replacement,
        sampler=sampler,
        candidates=candidates,
        prior=options.prior_of(prior),
        kind=kind,
        shape=shape,
        method=method,
        percent=percent,
        decimals=decimals,
    )
