"""The group of verbs, each of which is imported when it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from unsample import __version__
from unsample._rules import suggest

#: The key of a context under which the words of the command are.
LINE = "unsample.line"


class LazyGroup(click.Group):
    """Verbs by name, each with its function as ``module:function``."""

    def __init__(self, functions: Mapping[str, str]) -> None:
        super().__init__(
            "unsample",
            help="Full-catalogue recommendation metrics from sampled ranks, with honest intervals.",
            no_args_is_help=True,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        click.version_option(__version__, message="unsample %(version)s")(self)
        self.functions = functions

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words of the command, which results name."""
        ctx.meta[LINE] = tuple(args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        return list(self.functions)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb, or say which one may be meant."""
        if cmd_name in self.functions:
            module, _, name = self.functions[cmd_name].partition(":")
            command: click.Command = getattr(importlib.import_module(module), name)
            return command
        if not ctx.resilient_parsing:  # a line that is being completed is nobody's call yet
            near = suggest(cmd_name, self.functions)
            ctx.fail(f"there is no verb {cmd_name!r}{f' ({near})' if near else ''}")
        return None
