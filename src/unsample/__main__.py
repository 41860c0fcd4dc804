"""The command ``unsample``: the verbs of the library, and ``reproduce`` of the laboratory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import click

#: The function of each verb, as ``module:name``.
VERBS = {
    "estimate": "unsample.questions.estimate.command:estimate",
    "compare": "unsample.questions.compare.command:compare",
    "published": "unsample.questions.published.command:published",
    "plan": "unsample.questions.plan.command:plan",
    "audit": "unsample.questions.audit.command:audit",
    "reproduce": "unsample.lab.command:reproduce",
}


def application() -> click.Group:
    """Return the command, which imports a verb when it is called."""
    from unsample.cli.verbs import LazyGroup

    return LazyGroup(VERBS)


def main() -> NoReturn:
    """Run the command ``unsample``."""
    try:
        from unsample.cli.console import run

        command = application()
        run(lambda: command.main(prog_name="unsample", standalone_mode=False))
    except KeyboardInterrupt:  # while it is loaded, or on its way out
        sys.exit(130)


if __name__ == "__main__":
    main()
