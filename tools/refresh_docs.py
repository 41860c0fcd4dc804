"""Run what the documentation shows, and write down what it prints: ``make refresh-docs``.

A block ``console`` holds commands behind ``$`` with their output. A block ``python`` is run, and a
block ``text`` right after it is what it prints. Both are checked by ``tests/test_docs.py``, with
the functions below; nobody copies output by hand.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from unsample.cli import main as run_command

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
_FENCE = re.compile(r"^```(?P<language>[\w{} -]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and where its body stands."""

    language: str
    body: str
    start: int
    end: int


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [
        Block(found["language"].strip(), found["body"], found.start("body"), found.end("body"))
        for found in _FENCE.finditer(text)
    ]


def commands(body: str) -> list[str]:
    """Return the commands of a console block, lines that end in a backslash joined."""
    joined = body.replace("\\\n", " ")
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def outputs_of(block: Block, folder: Path) -> str:
    """Return a console block as it should read: each command, then what it prints."""
    parts = re.split(r"^(?=\$ )", block.body, flags=re.MULTILINE)
    written = []
    for part in filter(None, parts):
        shown = re.match(r"\$ (?:.*\\\n)*.*\n", part)
        assert shown is not None, f"a console block must start with $, got {part!r}"
        command = commands(shown[0])[0]
        # What runs for minutes, or on another system, is shown without its output.
        printed = "" if part == shown[0] else print_of(command, folder)
        written.append(shown[0] + printed)
    return "".join(written)


def print_of(command: str, folder: Path) -> str:
    """Return what a command prints in a folder, output before warnings, as on a wide screen."""
    program, *arguments = shlex.split(command)
    assert program == "unsample", f"only unsample is run, got {command!r}"
    out, err = io.StringIO(), io.StringIO()
    settings = {"NO_COLOR": "1", "COLUMNS": "100"}
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.dict(os.environ, settings),
        mock.patch.object(sys, "argv", [program, *arguments]),
        contextlib.suppress(SystemExit),
    ):
        run_command()
    lines = (out.getvalue() + err.getvalue()).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def run_python(code: str, names: dict[str, object], page: str) -> str:
    """Run a block of Python among ``names`` and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def with_output(text: str) -> Iterator[tuple[Block, Block | None]]:
    """Yield the Python blocks of a page, each with the text block right after it, if there is."""
    found = blocks(text)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language != "python":
            continue
        joined = after is not None and after.language == "text"
        between = text[block.end : after.start].strip("` \n") if joined and after else "no"
        yield block, after if between == "text" else None


def refreshed(text: str, page: str) -> str:
    """Return a page with the output that its commands and its code give now."""
    replacements: dict[tuple[int, int], str] = {}
    for block in blocks(text):
        if block.language == "console":
            replacements[block.start, block.end] = outputs_of(block, ROOT)
    printing = [pair for pair in with_output(text) if pair[1] is not None]
    names: dict[str, object] = {}
    for block, output in printing:
        assert output is not None
        replacements[output.start, output.end] = run_python(block.body, names, page)
    for (start, end), new in sorted(replacements.items(), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def main() -> None:
    """Refresh every page, and say which ones changed."""
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = refreshed(before, page.name)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"changed: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
