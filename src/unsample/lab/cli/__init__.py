"""The verbs of the laboratory."""

from __future__ import annotations

import typer

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of the laboratory to the command."""
    from unsample.cli.console import console_verb, result_verb
    from unsample.lab.cli import _datasets
    from unsample.lab.cli._evaluate import evaluate_command
    from unsample.lab.cli._reproduce import reproduce_command

    app.command("evaluate")(result_verb(evaluate_command))
    app.command("reproduce")(console_verb(reproduce_command))
    app.add_typer(_datasets.app, name="datasets")
