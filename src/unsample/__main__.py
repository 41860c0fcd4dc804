"""The command ``unsample``: the verbs of the library, and those of the laboratory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unsample.cli import start

if TYPE_CHECKING:
    from unsample.cli.app import Verbs


def application(*, whole: bool = False) -> Verbs:
    """Return the command; verbs are loaded when they are called, or here if the ``whole`` is."""
    from unsample.cli.app import command_of, library_verbs
    from unsample.lab.cli import laboratory_verbs

    command = command_of(library_verbs() | laboratory_verbs())
    if whole:
        command.load_all()
    return command


def main() -> None:
    """Run the command ``unsample``."""
    start(application)


if __name__ == "__main__":
    main()
