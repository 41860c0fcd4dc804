"""Run what the documentation shows, and write down what it prints; ``--check`` compares instead.

A block ``console`` holds commands behind ``$`` with their output. A block ``python`` is run, and a
block ``text`` right after it is what it prints. Cells of the tutorial are run in one go. Nobody
copies output by hand, and ``make docs`` fails where a page says something else than its code.
Numbers with all their digits may differ in the last ones, as they do between processors.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import difflib
import io
import json
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from unsample.__main__ import main as run_command
from unsample.errors import UnsampleWarning

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
#: Pages that are written by hand; docs/tutorial.md is made from the notebook.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.stem != "tutorial"),
    ROOT / "docs" / "report" / "report.md",
]
#: Code that needs a library or a cluster: `make libraries` and the tests of its subject run it.
ELSEWHERE = ("libraries.md", "pyspark")
_FENCE = re.compile(r"^```(?P<language>[^`\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
#: Where the report takes a table of a page.
_COMMENT = re.compile(r"<!--.*?-->")
#: Numbers that are printed with all their digits, and those that are rounding and nothing else.
_LONG_NUMBER = re.compile(r"\d\.\d{9,}(?:e[-+]\d+)?|\d(?:\.\d+)?e-(?:1[3-9]|[2-9]\d)")


def alike(one: str, other: str) -> bool:
    """Return whether two outputs are the same but for the last digits of long numbers."""
    texts = [_LONG_NUMBER.sub("#", text) for text in (one, other)]
    numbers = [[float(found) for found in _LONG_NUMBER.findall(text)] for text in (one, other)]
    return texts[0] == texts[1] and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(*numbers, strict=True)
    )


def with_outputs(body: str, folder: Path) -> str:
    """Return a console block as it should read: each command, then what it prints."""
    written = []
    for part in filter(None, re.split(r"^(?=\$ )", body, flags=re.MULTILINE)):
        shown = re.match(r"\$ (?:.*\\\n)*.*\n", part)
        assert shown is not None, f"a console block must start with $, got {part!r}"
        written.append(shown[0] + print_of(shown[0][2:].replace("\\\n", " "), folder))
    return "".join(written)


def print_of(command: str, folder: Path) -> str:
    """Return what a command prints in a folder, output before warnings, as on a wide screen."""
    program, *arguments = shlex.split(command)
    assert program == "unsample", f"only unsample is run, got {command!r}"
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.dict(os.environ, {"COLUMNS": "100"}),
        mock.patch.object(sys, "argv", [program, *arguments]),
        contextlib.suppress(SystemExit),
    ):
        run_command()
    return _trimmed(out.getvalue() + err.getvalue())


def run_python(code: str, names: dict[str, object], page: str, folder: Path) -> str:
    """Run a block of Python among ``names`` in a folder, and return what it prints."""
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages
    return _trimmed(out.getvalue())


def _trimmed(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@contextlib.contextmanager
def sandbox() -> Iterator[Path]:
    """Yield an empty folder with the examples in it: pages may write where they run."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(ROOT / "examples", Path(name, "examples"))
        yield Path(name)


def _follows(between: str) -> bool:
    """Return whether nothing but a comment stands between the code and its output."""
    return _COMMENT.sub("", between).split() == ["```", "```text"]


def refreshed(text: str, page: str, folder: Path) -> str:
    """Return a page with the output that its commands and its code give now, block by block."""
    replacements: list[tuple[re.Match[str], str]] = []
    names: dict[str, object] = {}
    printed, after = "", -1
    for block in _FENCE.finditer(text):
        language, body = block["language"].strip(), block["body"]
        if language == "console":
            replacements.append((block, with_outputs(body, folder)))
        elif language == "text" and _follows(text[after : block.start("body")]):
            replacements.append((block, printed))
        elif language == "python" and ">>>" not in body:
            if any(word in page or word in body for word in ELSEWHERE):
                compile(body, page, "exec")
                continue
            printed, after = run_python(body, names, page, folder), block.end("body")
    for block, new in reversed(replacements):
        if not alike(block["body"], new):
            text = text[: block.start("body")] + new + text[block.end("body") :]
    return text


# -- the tutorial ----------------------------------------------------------------------------------


def refreshed_notebook(text: str) -> str:
    """Return the tutorial with what its cells show; pictures stay if the texts around them do."""
    import matplotlib as mpl

    mpl.use("Agg")
    notebook = json.loads(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code":
            fresh = _run_cell("".join(cell["source"]), names)
            if _without_pictures(fresh) != _without_pictures(cell["outputs"]):
                cell["outputs"] = fresh
            cell["execution_count"] = None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a cell shows: what it prints, and the value of its last expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - our own cells
        if last is not None:
            expression = ast.Expression(last.value)
            value = eval(compile(expression, "<cell>", "eval"), names)  # noqa: S307 - our own cells
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _shown(value)})
    return outputs


def _shown(value: Any) -> dict[str, str]:
    """Return a value as a notebook shows it: a plot, a table, or text."""
    if hasattr(value, "get_figure"):
        picture = io.BytesIO()
        figure = value.get_figure(root=True)
        plain = {"Software": None}
        figure.savefig(picture, format="png", dpi=110, bbox_inches="tight", metadata=plain)
        encoded = base64.b64encode(picture.getvalue()).decode("ascii")
        return {"image/png": encoded, "text/plain": type(value).__name__}
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return data


def _without_pictures(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown = [output.get("data", output) for output in outputs]
    return [{key: text for key, text in one.items() if key != "image/png"} for one in shown]


# -- all of it -------------------------------------------------------------------------------------


def main() -> int:
    """Refresh pages, all or those named; with ``--check``, show what differs and return 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages; all of them if none is named")
    parser.add_argument("--check", action="store_true", help="change nothing, fail on differences")
    asked = parser.parse_args()
    wrong = 0
    for page in [given.resolve() for given in asked.pages] or [*PAGES, NOTEBOOK]:
        before, start = page.read_text(encoding="utf-8"), time.perf_counter()
        with sandbox() as folder:
            is_notebook = page.suffix == ".ipynb"
            after = (
                refreshed_notebook(before) if is_notebook else refreshed(before, page.name, folder)
            )
        name, seconds = page.relative_to(ROOT), time.perf_counter() - start
        print(f"{'same   ' if after == before else 'changed'} {name} ({seconds:.1f} s)", flush=True)
        if after != before and asked.check:
            wrong += 1
            lines = (before.splitlines(), after.splitlines())
            print("\n".join(difflib.unified_diff(*lines, "written", "printed", lineterm="", n=1)))
        elif after != before:
            page.write_text(after, encoding="utf-8")
    if wrong:
        print(f"{wrong} pages differ: python tools/refresh_docs.py writes what is printed now")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
