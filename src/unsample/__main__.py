"""The command ``unsample``: the verbs of the library, and those of the laboratory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unsample.cli import start

if TYPE_CHECKING:
    import typer


def application(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command; the laboratory is loaded unless ``words`` call a verb of the library."""
    from unsample.cli.app import VERBS, library_application

    app = library_application()
    if next((word for word in words if not word.startswith("-")), "") not in VERBS:
        from unsample.lab.cli import add_verbs

        add_verbs(app)
    return app


def main() -> None:
    """Run the command ``unsample``."""
    start(lambda: application(sys.argv[1:]))


if __name__ == "__main__":
    main()
