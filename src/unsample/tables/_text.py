"""Delimited text: its header, and rows that all readers of CSV read alike.

DuckDB reads text many times faster than Python does, and both agree on text as programs write it.
They differ on line breaks in the names of columns, line ends of several kinds, empty lines before
the names, and quotes in the middle of cells: there DuckDB reads other rows, or leaves some out,
without a message. So a quick test of the bytes shows whether a text is plain. Python reads a text
that is not plain, and writes it again with every cell in quotes, before DuckDB reads it.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from unsample._files import temporary_folder
from unsample.errors import FileError
from unsample.tables._sql import DIALECTS

#: Format -> what separates its cells.
DELIMITERS = {"csv": ",", "tsv": "\t"}
#: What may separate cells by mistake, and what it is called.
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
_BOM = b"\xef\xbb\xbf"
#: DuckDB takes seconds for this number of columns, and far longer for more.
MAX_COLUMNS = 10_000
#: The names of the columns take no more letters than this.
_LONGEST_HEADER = 1 << 20
#: Bytes that are looked at together.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Header:
    """The names of the columns of a text, the lines before its rows, and what ends its lines."""

    names: tuple[str, ...] = ()
    skip: int = 0
    end: str = "\n"


def check_width(name: str, columns: int) -> None:
    """Refuse a file with so many columns that no engine reads it in reasonable time."""
    if columns > MAX_COLUMNS:
        raise FileError(
            f"{name} must have at most {MAX_COLUMNS:,} columns, got {columns:,}; keep those that "
            "are needed, one row for each target"
        )


def open_text(path: Path, name: str, *, mark: str, stack: ExitStack) -> tuple[Header, Path]:
    """Return the header of a text, and a file with the same rows that DuckDB reads correctly."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(_beginning(text, name), delimiter=mark, strict=True)
        header = find_header(reader, name)
        lines = reader.line_num
    check_width(name, len(header.names))
    end = _line_end(path, mark, columns=len(header.names)) if lines == 1 else ""
    if end:
        return replace(header, end=end), path
    folder = stack.enter_context(temporary_folder())
    plain = Path(folder, f"table{path.suffix}")
    _write_plain(path, plain, name=name, mark=mark, header=header)
    return Header(header.names), plain


def find_header(rows: Iterable[list[str]], name: str) -> Header:
    """Return the names of the columns, which stand in the first row that is not empty.

    A number alone in the first line is a rank, and no name:

    >>> find_header([[], ["rank", " user "]], "a.csv").names, find_header([["7"]], "b.csv").names
    (('rank', 'user'), ('rank',))
    """
    names = tuple(cell.strip() for cell in next(filter(None, rows), ()))
    if not any(names):
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    if len(names) == 1 and names[0].lstrip("-").replace(".", "", 1).isdecimal():
        return Header(("rank",), 0)
    named = [column for column in names if column]
    if len({*named}) != len(named):
        raise FileError(f"{name} has two columns of one name: {', '.join(named)}")
    return Header(names, 1)


def _beginning(text: TextIO, name: str) -> Iterator[str]:
    """Give the lines of a text until the names of its columns should have come."""
    left = _LONGEST_HEADER
    while line := text.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise FileError(
                f"the names of the columns of {name} must take at most {_LONGEST_HEADER:,} "
                "letters, got more; write the names in the first line, and a line for each row"
            )
        yield line


def _line_end(path: Path, mark: str, *, columns: int) -> str:
    """Return what ends the lines of a text, or nothing if readers may differ on it.

    The names are known to be in the first line. Readers agree if all lines end alike, a text of one
    column has no separators, and quotes are at the ends of cells, or doubled.
    """
    separator = mark.encode()
    ends = {"\r": 0, "\n": 0, "\r\n": 0}
    with path.open("rb") as stream:
        first = stream.readline(4 * _LONGEST_HEADER)
        if first.startswith(_BOM) and b'"' in first:
            return ""
        stream.seek(0)
        while block := stream.read(_BLOCK):
            rest = stream.readline(_BLOCK)
            block += rest
            if len(rest) == _BLOCK or (columns == 1 and separator in block):
                return ""
            for end in ends:
                ends[end] += block.count(end.encode())
            if not _quotes_are_plain(block, separator):
                return ""
    if ends["\r"] != ends["\r\n"] or ends["\r"] not in (0, ends["\n"]):
        return ""
    return "\r\n" if ends["\r"] else "\n"


def _quotes_are_plain(lines: bytes, separator: bytes) -> bool:
    """Return whether quotes stand at the ends of cells.

    Of quotes in a row that begin or end a cell, all but one are doubled.
    """
    if b'"' not in lines:
        return True
    letters = np.frombuffer(b"\n" + lines + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    apart = np.diff(quotes) > 1
    first = quotes[np.r_[True, apart]]
    last = quotes[np.r_[apart, True]]
    between_cells = np.zeros(256, dtype=bool)
    between_cells[[ord("\r"), ord("\n"), *separator]] = True
    begins = between_cells[letters[first - 1]]
    ends = between_cells[letters[last + 1]]
    odd = (last - first) % 2 == 0
    return bool(((begins & ends) | ((begins | ends) & odd)).all())


def checked_rows(rows: Any, name: str, *, width: int) -> Iterator[list[str]]:
    """Give the rows of a reader of the csv module, and refuse those with too few or many cells."""
    try:
        for row in rows:
            # A separator at the end of a line is common, and says nothing.
            if row and (len(row) < width or any(row[width:])):
                quotes = ", or put cells that hold a separator into quotes"
                raise FileError(
                    f"line {rows.line_num} of {name} must have as many cells as there are "
                    f"columns, {width}, got {len(row)}; correct or drop such lines"
                    + (quotes if len(row) > width else "")
                )
            yield row
    except csv.Error as problem:
        raise FileError(f"cannot read line {rows.line_num} of {name}: {problem}") from problem


def _write_plain(path: Path, plain: Path, *, name: str, mark: str, header: Header) -> None:
    """Write the rows of a text, every cell in quotes, and nothing before them."""
    width = len(header.names)
    with (
        path.open(encoding="utf-8-sig", newline="") as text,
        plain.open("w", encoding="utf-8", newline="") as file,
    ):
        reader = csv.reader(text, delimiter=mark, strict=True)
        writer = csv.writer(file, delimiter=mark, quoting=csv.QUOTE_ALL, lineterminator="\n")
        rows = filter(None, checked_rows(reader, name, width=width))
        for row in itertools.islice(rows, header.skip, None):
            writer.writerow(row[:width])


def separator_hint(names: Sequence[str]) -> str:
    """Return what seems to separate cells, if another sign than expected does; else nothing.

    >>> separator_hint(["user;rank"])
    "the separator seems to be ';'; write commas, or tabs in a .tsv"
    """
    marks = [shown for sign, shown in _SEPARATORS.items() if sign in names[0]]
    return f"the separator seems to be {marks[0]}; write commas, or tabs in a .tsv" if marks else ""


def delimited(listed: str, header: Header, *, mark: str) -> str:
    """Return how DuckDB reads text, all cells as text."""
    names = header.names
    columns = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(len(names)))
    # Told of "\\r\\n", DuckDB takes no rows at all; left alone, it finds them.
    end = r"new_line = '\n', " if header.end == "\n" else ""
    # With one column, an empty line is no row, and empty quotes are a row without a value.
    filled = " WHERE c0 IS NOT NULL" if len(names) == 1 else ""
    return (
        f"(SELECT {_selected(names)} FROM read_csv({listed}, columns = {{{columns}}}, "
        f"auto_detect = false, header = false, skip = {header.skip}, delim = '{mark}', "
        f"{end}"
        "quote = '\"', escape = '\"', nullstr = '', "
        f"allow_quoted_nulls = {str(len(names) > 1).lower()}, strict_mode = true){filled})"
    )


def as_text(files: str, mark: str) -> str:
    """Return how DuckDB reads files by itself, every cell as text: it would guess types else.

    Users who are called 1e5 and 100000 would be one number, and one user.
    """
    return (
        f"read_csv({files}, all_varchar = true, header = true, skip = 0, delim = '{mark}', "
        "quote = '\"', escape = '\"', nullstr = '', union_by_name = true)"
    )


def _selected(names: Sequence[str]) -> str:
    quoted = map(DIALECTS["duckdb"].name, names)
    # Some programs number the rows in a column without a name, which nobody can ask for.
    return ", ".join(f"c{n} AS {column}" for n, column in enumerate(quoted) if names[n])
