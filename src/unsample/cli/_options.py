"""Options that several verbs share, so that they read and behave alike."""

from __future__ import annotations

from typing import Annotated

import typer

from unsample.cli._manner import log
from unsample.estimation import DEFAULT_METRICS

__all__ = [
    "AsJson",
    "Metrics",
    "Resamples",
    "SeenItems",
    "WithoutReplacement",
    "print_warnings",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help=f"Metric, repeatable. [default: {', '.join(DEFAULT_METRICS)}]",
    ),
]
Resamples = Annotated[
    int, typer.Option(metavar="B", help="Bootstrap samples behind the intervals.")
]
SeenItems = Annotated[
    str | None,
    typer.Option(
        "--seen",
        metavar="excluded|kept",
        help="Whether items a user has seen were excluded from the candidates or kept among "
        "them. [default: not said, intervals allow for either]",
    ),
]
WithoutReplacement = Annotated[
    bool, typer.Option("--without-replacement", help="No item was sampled twice for a target.")
]


def print_warnings(texts: tuple[str, ...]) -> None:
    """Print warnings to standard error, out of the way of a pipe."""
    for text in texts:
        log.warning("%s", text)
