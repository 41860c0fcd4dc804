"""Options that several verbs share, so that they read and behave alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli._manner import log
from unsample.estimation import DEFAULT_METRICS

if TYPE_CHECKING:
    from unsample.report import Result

__all__ = [
    "AsJson",
    "CatalogueSize",
    "Html",
    "Metrics",
    "Resamples",
    "SampleSize",
    "SeenItems",
    "WithoutReplacement",
    "print_warnings",
    "write_page",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="OUT", help="Write the result as one interactive page, too."),
]
CatalogueSize = Annotated[
    int | None,
    typer.Option("--items", metavar="N", help="Items in the full catalogue, the target included."),
]
SampleSize = Annotated[
    int | None,
    typer.Option(
        "--sampled",
        metavar="S",
        help="Items sampled for each target, without it (99, not 100).",
    ),
]
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


def write_page(result: Result, out: Path | None, *, title: str | None = None) -> None:
    """Write the page of a result where one was asked for."""
    if out is None:
        return
    from unsample.report import write_html

    write_html(result, out, title=title)
