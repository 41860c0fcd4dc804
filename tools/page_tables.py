"""Put tables and pictures that a tool makes into the pages that show them, or compare them.

A table named ``bench`` stands between the lines ``<!-- table: bench -->`` and
``<!-- end of table -->`` of a page.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from unsample.report import picture_of

BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_NO_BREAK = "\N{NO-BREAK SPACE}"
_NUMBER = re.compile(r"-?\d+\.\d+|-?\d+")
#: Coordinates in points; processors round estimates differently.
_SAME_PLACE = 0.1


def as_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; columns of numbers are flush right, and their cells do not break.

    >>> print(as_table(["model", "HR@10"], [["A", "0.69"]]), end="")
    | model | HR@10 |
    | --- | ---: |
    | A | 0.69 |
    """
    cells = [list(row) for row in rows]
    numbers = [all(re.match(r"[-+±\d]|$", row[at]) for row in cells) for at in range(len(columns))]
    sides = ["---:" if are_numbers else "---" for are_numbers in numbers]
    for row in cells:
        for at, are_numbers in enumerate(numbers):
            if are_numbers:
                row[at] = row[at].replace(" ", _NO_BREAK)
    lines = [" | ".join(row) for row in (columns, sides, *cells)]
    return "".join(f"| {line} |\n" for line in lines)


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with these tables in their places; others stay as they are.

    >>> print(filled("<!-- table: a -->\\nold\\n<!-- end of table -->", {"a": "new\\n"}))
    <!-- table: a -->
    new
    <!-- end of table -->
    """
    return BLOCK.sub(lambda block: _filled(block, tables), page)


def _filled(block: re.Match[str], tables: Mapping[str, str]) -> str:
    opening, name, closing = block.groups()
    return f"{opening}{tables[name]}{closing}" if name in tables else block[0]


def write_page(page: Path, tables: Mapping[str, str], *, check: bool) -> bool:
    """Put tables into a page, and return whether it was so before; with ``check`` only compare.

    Every table must have its place in the page.
    """
    before = page.read_text(encoding="utf-8")
    missing = sorted(tables.keys() - {name for _, name, _ in BLOCK.findall(before)})
    if missing:
        raise SystemExit(f"{page.name} has no place for {', '.join(missing)}")
    after = filled(before, tables)
    if check and after != before:
        lines = before.splitlines(), after.splitlines()
        print("\n".join(difflib.unified_diff(*lines, "written", "made", lineterm="", n=0)))
    elif after != before:
        page.write_text(after, encoding="utf-8")
    return _said(page, same=after == before)


def write_picture(path: Path, figure: Figure, *, title: str, text: str, check: bool) -> bool:
    """Save a picture with its title and its description, and return whether it was so before.

    With ``check`` it is only compared.
    """
    with mpl.rc_context({"svg.hashsalt": "unsample"}):
        content = picture_of(figure, "svg", described=(title, text), bbox_inches=None)
    drawn = content.decode("utf-8")
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    same = looks_the_same(before, drawn)
    if not check and not same:
        path.write_text(drawn, encoding="utf-8")
    return _said(path, same=same)


def looks_the_same(one: str, other: str) -> bool:
    """Return whether two drawings have the same parts at the same places.

    >>> looks_the_same("<path d='M 1.00 2'/>", "<path d='M 1.01 2'/>")
    True
    >>> looks_the_same("<path d='M 1.00 2'/>", "<path d='M 3.00 2'/>")
    False
    """
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    places = [np.array(_NUMBER.findall(text), dtype=float) for text in (one, other)]
    return bool(np.allclose(*places, rtol=0, atol=_SAME_PLACE))


def _said(path: Path, *, same: bool) -> bool:
    print(f"{'same   ' if same else 'changed'} {path.name}", flush=True)
    return same
