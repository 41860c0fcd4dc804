"""Options that several verbs share, so that they read and behave alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unsample._files import check_writable
from unsample.answers import DEFAULT_METRICS
from unsample.cli._manner import log
from unsample.errors import FileError

if TYPE_CHECKING:
    from unsample.pages import Result

__all__ = [
    "AsJson",
    "CandidateItems",
    "CatalogueSize",
    "Html",
    "Metrics",
    "Resamples",
    "SampleSize",
    "WithoutReplacement",
    "checked_place",
    "page_written",
    "print_warnings",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def checked_place(out: Path | None) -> Path | None:
    """Return the name of a file to write, if it can be written."""
    if out is not None:
        check_writable(out)
    return out


Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="OUT",
        callback=checked_place,
        readable=False,
        help="Write the result as one interactive page, too.",
    ),
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
CandidateItems = Annotated[
    str | None,
    typer.Option(
        "--candidates",
        metavar="unseen|all",
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


@contextmanager
def page_written(result: Result, out: Path | None, *, title: str | None = None) -> Iterator[None]:
    """Write the page of a result where one was asked for, around printing the result.

    A page that cannot be written is an error only when the result has been printed: it may have
    taken hours.
    """
    problem = None
    if out is not None:
        from unsample.pages import write_html

        try:
            write_html(result, out, title=title)
        except FileError as caught:
            problem = caught
    yield
    if problem is not None:
        raise problem
