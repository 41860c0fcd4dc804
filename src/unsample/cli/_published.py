"""``unsample published``: numbers of a paper in, full-catalogue metrics out."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from unsample.answers import DEFAULT_METRICS
from unsample.answers.publication import published
from unsample.cli._manner import say
from unsample.cli._options import (
    AsJson,
    CandidateItems,
    Html,
    Metrics,
    WithoutReplacement,
    page_written,
    print_warnings,
)
from unsample.errors import InputError, UnsampleWarning
from unsample.pages._text import estimates_table

__all__ = ["published_command"]


def published_command(
    numbers: Annotated[
        list[str],
        typer.Argument(
            metavar="METRIC=VALUE...",
            help="Sampled metrics as printed, with all their digits: HR@10=0.690 is known to "
            "within 0.0005. Without @K a metric looks at all sampled items.",
        ),
    ],
    items: Annotated[
        int, typer.Option(metavar="N", help="Items in the full catalogue, the target included.")
    ],
    sampled: Annotated[
        int,
        typer.Option(metavar="S", help="Items sampled for each target, without it (99, not 100)."),
    ],
    users: Annotated[
        int, typer.Option(metavar="M", help="Targets that the printed means are taken over.")
    ],
    metric: Metrics = None,
    without_replacement: WithoutReplacement = False,
    candidates: CandidateItems = None,
    percent: Annotated[bool, typer.Option("--percent", help="The values are percentages.")] = False,
    decimals: Annotated[
        int | None,
        typer.Option(metavar="D", help="Decimals that are printed. [default: those given]"),
    ] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Estimate full-catalogue metrics from what a paper prints.

    **Examples**

    `unsample published --items 3706 --sampled 99 --users 6040 HR@1=0.180 HR@10=0.690 NDCG@10=0.412`

    `unsample published --items 3706 --sampled 99 --users 6040 HR@10=69.0 --percent -m HR@50 --json`
    """
    with warnings.catch_warnings():
        # They stand in the result, and are printed with it.
        warnings.simplefilter("ignore", UnsampleWarning)
        result = published(
            _split(numbers),
            items=items,
            sampled=sampled,
            users=users,
            metrics=metric or DEFAULT_METRICS,
            replacement=not without_replacement,
            candidates=candidates,
            percent=percent,
            decimals=decimals,
        )
    with page_written(result, html):
        if as_json:
            say(result.to_json())
            return
        say(f"from {', '.join(map(str, result.numbers))}")
        say(estimates_table(result, notes=False))
        print_warnings(result.warnings)


def _split(numbers: list[str]) -> dict[str, str]:
    """Return names and values of texts such as HR@10=0.69."""
    found: dict[str, str] = {}
    for text in numbers:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(
                f"a number must be given as METRIC=VALUE, such as HR@10=0.69, got {text!r}"
            )
        if name in found:
            raise InputError(f"numbers must give each metric once, got {name} twice")
        found[name] = value
    return found
