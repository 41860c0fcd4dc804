"""Ranks in text without an engine, for the page in a browser, which has none.

Rows, columns and messages are the same as those of files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from unsample.errors import FileError, InputError
from unsample.tables._keys import is_key
from unsample.tables._layout import MODEL, Asked, Columns, checked, find_layout
from unsample.tables._sources import ENDINGS
from unsample.tables._text import DELIMITERS, check_width, checked_rows, find_header, separator_hint

#: What a reader of text puts in place of bytes that are not UTF-8.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def read_plain_text(name: str, text: str, *, asked: Asked) -> Columns:
    r"""Return the columns of a CSV or TSV text by role, one row for each target.

    Where there is a column ``model``, it names the model of each row.

    >>> asked = Asked(items=50, sampled=9)
    >>> found = read_plain_text("a.csv", "user,rank\nu1,3\nu2,1\n", asked=asked)
    >>> found["rank"].tolist(), found["user"].tolist()
    ([3.0, 1.0], ['u1', 'u2'])
    """
    label = repr(name)
    text = text.removeprefix("\ufeff")
    if not text.strip("\r\n"):
        raise FileError(f"{label} is empty; a table starts with the names of its columns")
    if _REPLACED in text:
        line = len(text[: text.index(_REPLACED)].splitlines()) or 1
        raise FileError(
            f"line {line} of {label} is not UTF-8 text; if the file is in Latin-1 (as of Windows), "
            "convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
        )
    first = text.lstrip().partition("\n")[0]
    kind = ENDINGS.get(PurePath(name).suffix.lower(), "tsv" if "\t" in first else "csv")
    if kind not in DELIMITERS:
        raise FileError(f"{label} must be a CSV or TSV file here, got {kind}; use the package")
    mark = DELIMITERS[kind]
    header = find_header(
        csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True), label
    )
    check_width(label, len(header.names))
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    line = 1
    for row in checked_rows(reader, label, width=len(header.names)):
        if row:
            rows.append(row)
            lines.append(line)
        line = reader.line_num + 1
    rows = rows[header.skip :]
    lines = lines[header.skip :]
    table = {
        column: np.array([row[place] or None for row in rows], dtype=object)
        for place, column in enumerate(header.names)
        if column
    }
    if MODEL in table:
        asked = replace(asked, by=MODEL)
    layout = find_layout(list(table), label, asked=asked, hint=separator_hint(header.names))
    if not rows:
        raise InputError(f"{label} has no rows")

    def find_line(cells: Mapping[str, Any]) -> str:
        matches = [
            line
            for place, line in enumerate(lines)
            if all(table[column][place] == cell for column, cell in cells.items())
        ]
        return f"line {matches[0]}" if matches else ""

    raw = {role: table[column] for role, column in layout.columns.items()}
    once = np.ones(len(rows), dtype=np.int64)
    columns = checked(raw, once, layout=layout, source=label, find_line=find_line)
    for column, cells in table.items():
        if is_key(column) and column not in layout.columns.values():
            values = sorted({cell or "" for cell in cells})
            if len(values) > 1:
                raise InputError(
                    f"column {column!r} of {label} must have one value here, got {values[0]!r} and "
                    f"{values[1]!r}; drop the rows of one at a time, or use the package, which "
                    "tells them apart"
                )
    return columns
