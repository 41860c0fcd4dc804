"""The application: the verbs of the library, and the version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from unsample import __version__
from unsample.cli._lazy import Verb, Verbs, group_of
from unsample.cli.console import colours, say

__all__ = ["Verb", "Verbs", "command_of", "library_verbs"]

_VERBS = {
    "estimate": "Estimate full-catalogue metrics from the ranks in FILE.",
    "compare": "Compare models by their sampled ranks: which one is better, and how sure that is.",
    "published": "Estimate full-catalogue metrics from the numbers in a paper.",
    "plan": "Plan an evaluation: what each design costs, and how sure the metric would be.",
    "audit": "Find out how the negatives in FILE were drawn.",
}


def library_verbs() -> dict[str, Verb]:
    """Return the verbs of the library, none of them loaded."""
    return {
        name: Verb(name, f"unsample.cli._{name}:{name}_command", sentence)
        for name, sentence in _VERBS.items()
    }


def command_of(verbs: Mapping[str, Any]) -> Verbs:
    """Return the command with these verbs."""
    return group_of("unsample", verbs, _options, completion=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"unsample {__version__}")
        raise typer.Exit


def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Full-catalogue recommendation metrics from sampled ranks, with honest intervals."""
    context.color = colours()
