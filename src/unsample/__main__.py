"""The command ``unsample``: the verbs of the library, and ``reproduce`` of the laboratory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unsample.cli import start

if TYPE_CHECKING:
    from unsample.cli.app import Verbs


def application(*, whole: bool = False) -> Verbs:
    """Return the command; verbs are loaded when they are called, or here if the ``whole`` is."""
    from unsample.cli.app import Verb, command_of, library_verbs

    sentence = "Reproduce every table and figure of the paper, and check its claims."
    reproduce = Verb("reproduce", "unsample.lab.cli:reproduce_command", sentence)
    command = command_of(library_verbs() | {"reproduce": reproduce})
    if whole:
        command.load_all()
    return command


def main() -> None:
    """Run the command ``unsample``."""
    start(application)


if __name__ == "__main__":
    main()
