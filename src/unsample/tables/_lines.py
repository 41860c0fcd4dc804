"""Lines of text files: where a value stands, and which line cannot be read.

The engine reads files and knows no lines. Python reads a file again, up to the line that is looked
for, and only when there is something to tell.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unsample.errors import FileError
from unsample.tables._text import DELIMITERS, checked_rows

_BLOCK = 1 << 20
_LINE_END = re.compile(rb"\r\n?|\n")
#: How text in UTF-16 begins, which programs of Windows write.
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OTHER_FORMAT = "it may be truncated, compressed or of another format"


@dataclass(frozen=True)
class TextFile:
    """A file of text: where it can be read, what messages call it, and what it holds."""

    path: Path
    name: str
    #: ``"csv"``, ``"tsv"`` or ``"json"``.
    format: str
    #: The names of its columns, where the format has them once.
    columns: tuple[str, ...] = ()


def find_lines(texts: Sequence[TextFile], cells: Mapping[str, Any], *, most: int = 1) -> list[str]:
    """Return the lines of the first rows that have these cells, such as ``line 5``.

    A cell without a value is None. Of several files the name is added: ``line 5 of 'b.csv'``.
    """
    wanted = {column: None if cell == "" else cell for column, cell in cells.items()}
    lines: list[str] = []
    for text in texts:
        # What cannot be read is not what is looked for here.
        with suppress(csv.Error, OSError, ValueError):
            for line, row in _rows(text):
                if all(row.get(column) == cell for column, cell in wanted.items()):
                    lines.append(f"line {line}" + (f" of {text.name}" if len(texts) > 1 else ""))
                    if len(lines) == most:
                        return lines
    return lines


def refuse_unreadable(texts: Sequence[TextFile]) -> None:
    """Refuse the first line that cannot be read, with its number; there may be none."""
    for text in texts:
        _refuse_other_encodings(text)
        if text.format == "json":
            _refuse_other_lines(text)
            continue
        for _ in _delimited_rows(text, strict=True):
            pass


def _rows(text: TextFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the rows of a file, each with the line that it begins in."""
    if text.format != "json":
        yield from _delimited_rows(text)
        return
    with text.path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                row = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
                yield number, {key: _as_cell(value) for key, value in row.items()}


def _as_cell(value: object) -> object:
    """Return a value of JSON as the engine reads it."""
    return str(value).lower() if isinstance(value, bool) else (value or None)


def _delimited_rows(
    text: TextFile, *, strict: bool = False
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the rows of delimited text; if ``strict``, refuse those with too few or many cells."""
    names = text.columns
    with text.path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=DELIMITERS[text.format], strict=True)
        rows: Any = checked_rows(reader, text.name, width=len(names)) if strict else reader
        line = 1
        is_first = True
        for row in rows:
            # A file of ranks alone has no names in its first line.
            is_header = is_first and tuple(cell.strip() for cell in row) == names
            if row and not is_header:
                yield line, {name: cell or None for name, cell in zip(names, row, strict=False)}
            is_first = is_first and not row
            line = reader.line_num + 1


def _refuse_other_encodings(text: TextFile) -> None:
    """Refuse text that is not UTF-8, and say how to convert it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines_before = 0
    with text.path.open("rb") as stream:
        while True:
            block = stream.read(_BLOCK)
            if not lines_before and block.startswith(_UTF_16):
                raise FileError(
                    f"{text.name} must be UTF-8 text, got UTF-16; convert it: "
                    "iconv -f UTF-16 -t UTF-8 FILE > NEW"
                )
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as problem:
                if b"\0" in problem.object:
                    raise FileError(f"{text.name} is not UTF-8 text; {_OTHER_FORMAT}") from None
                before = problem.object[: problem.start]
                line = lines_before + len(_LINE_END.findall(before)) + 1
                raise FileError(
                    f"line {line} of {text.name} is not UTF-8 text, got the byte "
                    f"0x{problem.object[problem.start]:02X}; if the file is in Latin-1 (as of "
                    "Windows), convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW; otherwise "
                    f"{_OTHER_FORMAT}"
                ) from None
            if not block:
                return
            lines_before += len(_LINE_END.findall(block))


def _refuse_other_lines(text: TextFile) -> None:
    """Refuse lines that are not objects of JSON."""
    with text.path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                is_list = line.lstrip().startswith("[")
                hint = (
                    "write each object of the list in a line of its own (in pandas: "
                    "to_json(path, orient='records', lines=True))"
                    if is_list
                    else "correct or drop such lines"
                )
                got = line.strip()
                raise FileError(
                    f"line {number} of {text.name} must be an object of JSON, such as "
                    f'{{"rank": 3}}, got {got[:60] + "..." * (len(got) > 60)}; {hint}'
                )
