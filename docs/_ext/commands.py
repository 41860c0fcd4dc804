"""The section of the command: ``{commands}`` writes what ``--help`` of every verb prints."""

from __future__ import annotations

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from unsample.__main__ import application


class Commands(Directive):
    """Writes a section for every verb."""

    def run(self) -> list[nodes.Node]:
        """Return a heading and the help of each verb, as on a terminal of 100 columns."""
        group = application()
        context = click.Context(
            group, info_name="unsample", max_content_width=100, terminal_width=100
        )
        sections: list[nodes.Node] = []
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            inner = click.Context(command, context, info_name=name)
            text = command.get_help(inner)
            section = nodes.section(ids=[f"unsample-{name}"], names=[f"unsample {name}"])
            section += nodes.title(text=f"unsample {name}")
            section += nodes.literal_block(text, text, language="text")
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
