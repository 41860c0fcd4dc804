"""The application: the verbs of the library, and the version."""

from __future__ import annotations

from typing import Annotated

import typer

from unsample import __version__
from unsample.cli._audit import audit_command
from unsample.cli._compare import compare_command
from unsample.cli._doctor import doctor_command
from unsample.cli._estimate import estimate_command
from unsample.cli._learn import learn_command
from unsample.cli._plan import plan_command
from unsample.cli._published import published_command
from unsample.cli.console import colours, console_verb, result_verb, say

#: The verbs that need nothing from the laboratory.
VERBS = {
    "estimate": result_verb(estimate_command),
    "compare": result_verb(compare_command),
    "published": result_verb(published_command),
    "plan": result_verb(plan_command),
    "audit": result_verb(audit_command),
    "learn": console_verb(learn_command),
    "doctor": console_verb(doctor_command),
}


def library_application() -> typer.Typer:
    """Return the command with the verbs of the library; others may be added."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name, verb in VERBS.items():
        app.command(name)(verb)
    return app


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
