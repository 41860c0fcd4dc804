"""The application: verbs, version, and how errors reach a person."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from unsample import __version__
from unsample.cli._compare import compare_command
from unsample.cli._doctor import doctor_command
from unsample.cli._estimate import estimate_command
from unsample.cli._main import silence_output
from unsample.cli._manner import colours, complain, listening, say, tracebacks_wanted, with_manner
from unsample.cli._plan import plan_command
from unsample.cli._published import published_command
from unsample.errors import OutputError, UnsampleError
from unsample.lab.cli import _datasets
from unsample.lab.cli._evaluate import evaluate_command
from unsample.lab.cli._reproduce import reproduce_command
from unsample.pages._text import printable

__all__ = ["app", "run"]

app = typer.Typer(
    help="Full-catalogue recommendation metrics from sampled ranks, with honest intervals.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"unsample {__version__}")
        raise typer.Exit


@app.callback()
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


app.command("estimate")(with_manner(estimate_command))
app.command("compare")(with_manner(compare_command))
app.command("evaluate")(with_manner(evaluate_command))
app.command("plan")(with_manner(plan_command))
app.command("published")(with_manner(published_command))
app.command("reproduce")(with_manner(reproduce_command))
app.add_typer(_datasets.app, name="datasets")
app.command("doctor")(with_manner(doctor_command))


def run() -> None:
    """Run the command; an error made on purpose prints its message and no traceback."""
    with listening():
        try:
            app()
        except UnsampleError as problem:
            if tracebacks_wanted():
                typer.echo(printable("".join(traceback.format_exception(problem))), err=True)
            if isinstance(problem, OutputError):
                silence_output()
            complain(str(problem))
            sys.exit(problem.exit_code)
