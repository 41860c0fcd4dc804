"""The page of the command, made from what ``--help`` says: it cannot go stale.

``{commands}`` writes every verb: its usage, what it does, its arguments and options, its examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles

from unsample.__main__ import application

_EXAMPLES = "**Examples**"


def verbs(command: Any, path: str = "unsample") -> Iterator[tuple[str, Any]]:
    """Yield each verb with its full name, groups before what they hold."""
    for name, inner in getattr(command, "commands", {}).items():
        yield f"{path} {name}", inner
        yield from verbs(inner, f"{path} {name}")


def describe(name: str, command: Any) -> str:
    """Return the section of one verb as Markdown."""
    text, _, examples = (command.help or "").partition(_EXAMPLES)
    shown = "\n".join(" ".join(one.split()) for one in re.findall(r"`([^`]+)`", examples))
    parts = [f"### {name}", text.strip()]
    if not hasattr(command, "commands"):
        parts.append(f"```text\n{usage(name, command)}\n```")
        parts.append(table(command))
    if shown:
        parts.append(f"```text\n{shown}\n```")
    return "\n\n".join(parts)


def usage(name: str, command: Any) -> str:
    """Return how the verb is called."""
    arguments = [one for one in command.params if not _is_option(one)]
    return " ".join([name, "[OPTIONS]", *(one.metavar or one.name.upper() for one in arguments)])


def table(command: Any) -> str:
    """Return arguments and options as a table."""
    rows = ["| | |", "| --- | --- |"]
    for one in command.params:
        names = (
            ", ".join(f"`{text}`" for text in (*one.opts, *one.secondary_opts))
            if _is_option(one)
            else ""
        )
        takes = f"`{one.metavar}`" if one.metavar else ""
        required = "Required." if one.required and _is_option(one) else ""
        label = " ".join(filter(None, [names, takes]))
        text = " ".join(filter(None, [_sentence(one.help), required, _default(one)]))
        rows.append("| {} | {} |".format(*(part.replace("|", "\\|") for part in (label, text))))
    return "\n".join(rows)


def _is_option(parameter: Any) -> bool:
    return parameter.opts[0].startswith("-")


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _default(option: Any) -> str:
    """Return the default where it says something that the help does not."""
    value = option.default
    said = "[default:" in (option.help or "")
    if said or value is None or isinstance(value, bool) or callable(value) or option.required:
        return ""
    return f"[default: {value}]"


class Commands(Directive):
    """Writes a section for every verb."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, parsed as Markdown."""
        root = application(whole=True)
        lines = "\n\n".join(describe(name, command) for name, command in verbs(root)).split("\n")
        holder = nodes.section()
        holder.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, source="--help"), holder)
        return holder.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
