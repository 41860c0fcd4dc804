"""Run what the documentation shows, and write down what it prints: ``tools/refresh_docs.py``.

A block ``console`` holds commands behind ``$`` with their output. A block ``python`` is run, and a
block ``text`` right after it is what it prints. Both are checked by ``tests/test_docs.py``, with
the functions below; nobody copies output by hand. Numbers with all their digits may differ in the
last ones, as they do between processors.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from unsample.__main__ import main as run_command
from unsample.errors import UnsampleWarning

ROOT = Path(__file__).parent.parent
#: Pages that are written; the tutorial is made from its notebook.
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if page.stem != "tutorial")
_FENCE = re.compile(r"^```(?P<language>[\w{} -]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

#: Numbers that are printed with all their digits, and those that are rounding and nothing else.
_LONG_NUMBER = re.compile(r"\d\.\d{9,}(?:e[-+]\d+)?|\d(?:\.\d+)?e-(?:1[3-9]|[2-9]\d)")


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


def alike(one: str, other: str) -> bool:
    """Return whether two outputs are the same but for the last digits of long numbers."""
    texts = [_LONG_NUMBER.sub("#", text) for text in (one, other)]
    numbers = [[float(found) for found in _LONG_NUMBER.findall(text)] for text in (one, other)]
    return texts[0] == texts[1] and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(*numbers, strict=True)
    )


def outputs_of(block: Block, folder: Path) -> str:
    """Return a console block as it should read: each command, then what it prints."""
    written = []
    for part in filter(None, re.split(r"^(?=\$ )", block.body, flags=re.MULTILINE)):
        shown = re.match(r"\$ (?:.*\\\n)*.*\n", part)
        assert shown is not None, f"a console block must start with $, got {part!r}"
        written.append(shown[0] + print_of(commands(shown[0])[0], folder))
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


def run_python(code: str, names: dict[str, object], page: str, folder: Path) -> str:
    """Run a block of Python among ``names`` in a folder, and return what it prints."""
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@contextlib.contextmanager
def sandbox() -> Iterator[Path]:
    """Yield an empty folder with the examples in it: pages may write where they run."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(ROOT / "examples", Path(name, "examples"))
        yield Path(name)


def with_output(text: str) -> Iterator[tuple[Block, Block | None]]:
    """Yield the Python blocks of a page, each with the text block right after it, if there is."""
    found = blocks(text)
    for place, block in enumerate(found):
        if block.language != "python":
            continue
        after = found[place + 1] if place + 1 < len(found) else None
        between = text[block.end : after.start].split() if after else []
        yield block, after if between == ["```", "```text"] else None


def refreshed(text: str, page: str, folder: Path) -> str:
    """Return a page with the output that its commands and its code give now."""
    replacements: dict[tuple[int, int], str] = {}
    pairs = list(with_output(text))
    names: dict[str, object] = {}
    if any(output is not None for _, output in pairs):
        for block, output in pairs:
            printed = run_python(block.body, names, page, folder)
            if output is not None:
                replacements[output.start, output.end] = printed
    for block in blocks(text):
        if block.language == "console":
            replacements[block.start, block.end] = outputs_of(block, folder)
    for (start, end), new in sorted(replacements.items(), reverse=True):
        if not alike(text[start:end], new):
            text = text[:start] + new + text[end:]
    return text


def main() -> None:
    """Refresh every page, and say which ones changed."""
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        with sandbox() as folder:
            after = refreshed(before, page.name, folder)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"changed: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
