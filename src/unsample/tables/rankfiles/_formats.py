"""Bytes to columns: which format it is, and a parser for each."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unsample._checks import check_choice, import_extra, suggest
from unsample._files import check_unpacked, names_in, read_arrays
from unsample.errors import FileError
from unsample.evidence import RankCounts
from unsample.tables.frames import SUFFIXES
from unsample.tables.rankfiles._request import STANDARD_INPUT
from unsample.tables.rankfiles._table import NUMBER_COLUMNS, USER, Table, is_number

__all__ = [
    "FORMATS",
    "PARQUET_MARK",
    "PARSERS",
    "SUFFIXES_OF_FORMATS",
    "format_of",
    "read_bytes",
    "start_of",
]

FORMATS = ("csv", "tsv", "jsonl", "parquet", "npz", "json")
PARQUET_MARK = b"PAR1"
SUFFIXES_OF_FORMATS = SUFFIXES | {".npz": "npz", ".json": "json"}
#: Bytes that tell a format.
_START = 1 << 16


def read_bytes(path: str) -> tuple[bytes, str]:
    """Return the content of a file, or of standard input, and what to call it."""
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(path).read_bytes(), repr(path)
    except FileNotFoundError as problem:
        near = suggest(Path(path).name, names_in(Path(path).parent))
        raise FileError(f"no file {path!r}" + (f"; {near}" if near else "")) from problem
    except OSError as problem:
        raise FileError(f"cannot read {path!r}: {problem.strerror}") from problem


def format_of(path: str, content: bytes, file_format: str | None) -> str:
    """Return the format asked for, or told by the content or the name."""
    if file_format is not None:
        return check_choice("format", file_format, FORMATS)
    if content.startswith(PARQUET_MARK):
        return "parquet"
    if content.startswith(b"PK\x03\x04"):
        return "npz"
    by_suffix = SUFFIXES_OF_FORMATS.get(Path(path).suffix.lower())
    if by_suffix is not None:
        return by_suffix
    first_line = content.lstrip().split(b"\n", 1)[0]
    if first_line.startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in first_line else "csv"


def start_of(file: Path) -> bytes:
    """Return as much of a file as tells its format."""
    try:
        with file.open("rb") as opened:
            return opened.read(_START)
    except OSError as problem:
        raise FileError(f"cannot read {str(file)!r}: {problem.strerror}") from problem


# -- parsers ------------------------------------------------------------------------------------


def _parse_delimited(delimiter: str) -> Callable[[bytes, str, str | None], Table]:
    def parse(content: bytes, source: str, by: str | None) -> Table:
        reader = csv.reader(
            io.StringIO(_decode(content, source), newline=""), delimiter=delimiter, strict=True
        )
        return _delimited_table(_rows(reader, source), source, by)

    return parse


def _rows(reader: Any, source: str) -> Iterator[tuple[int, list[str]]]:
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as problem:
        raise FileError(f"{source}, line {reader.line_num}: {problem}") from problem


def _delimited_table(rows: Iterator[tuple[int, list[str]]], source: str, by: str | None) -> Table:
    first = next(rows, None)
    if first is None:
        raise FileError(f"{source} has no rows; a rank file has a column named rank")
    lines: list[int] = []
    header = [cell.strip() for cell in first[1]]
    wanted = _wanted(by)
    columns: dict[str, list[str]] = {name: [] for name in header}
    if len(header) == 1 and is_number(header[0]):
        columns, header = {"rank": [header[0]]}, ["rank"]
        lines.append(first[0])
    if len(set(header)) != len(header):
        raise FileError(f"{source} has two columns of one name: {', '.join(header)}")
    kept = [(place, columns[name]) for place, name in enumerate(header) if name in wanted]
    for line, row in rows:
        if len(row) != len(header):
            raise FileError(
                f"{source}, line {line}: {len(header)} cells expected, got {len(row)}: "
                f"{', '.join(row)[:60]}"
            )
        lines.append(line)
        for place, values in kept:
            values.append(row[place])
    return Table(source, dict(columns), lambda row: f"line {lines[row]}")


def _parse_jsonl(content: bytes, source: str, by: str | None) -> Table:
    lines: list[int] = []
    records: list[dict[str, Any]] = []
    for number, text in enumerate(_decode(content, source).splitlines(), start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise FileError(f"{source}, line {number}: not JSON: {text[:60]!r}") from problem
        if isinstance(record, int | float) and not isinstance(record, bool):
            record = {"rank": record}
        if not isinstance(record, dict):
            raise FileError(f"{source}, line {number}: an object expected, got {text[:60]!r}")
        lines.append(number)
        records.append(record)
    names = dict.fromkeys(name for record in records for name in record)
    # Of the others the names alone are kept: a new one in every line would fill the memory.
    columns: dict[str, Sequence[Any]] = dict.fromkeys(names, ())
    columns |= {
        name: [record.get(name) for record in records] for name in _wanted(by) if name in names
    }
    return Table(source, columns, lambda row: f"line {lines[row]}")


def _parse_parquet(content: bytes, source: str, by: str | None) -> Table:
    parquet = import_extra("pyarrow.parquet", extra="frames", purpose="reading Parquet")
    arrow = import_extra("pyarrow", extra="frames", purpose="reading Parquet")
    wanted = _wanted(by)
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        present = file.schema_arrow.names
        rows = file.metadata.num_rows
        check_unpacked(source, len(content), 8 * rows * len(wanted), "count the rows first")
        frame = file.read(columns=[name for name in wanted if name in present])
        columns: dict[str, Sequence[Any]] = dict.fromkeys(present, ())
        columns |= {name: frame[name].to_pylist() for name in frame.column_names}
    except FileError:
        raise
    except (OSError, ValueError, arrow.ArrowException) as problem:
        raise FileError(f"cannot read {source} as Parquet: {problem}") from problem
    return Table(source, columns, lambda row: f"row {row + 1}")


def _parse_npz(content: bytes, source: str, by: str | None) -> Table | RankCounts:
    columns = read_arrays(io.BytesIO(content), source)
    if "format" in columns:
        return RankCounts.from_arrays(columns, source)
    flat = {name: np.atleast_1d(values) for name, values in columns.items()}
    if any(values.ndim != 1 for values in flat.values()):
        shapes = ", ".join(f"{name} {values.shape}" for name, values in flat.items())
        raise FileError(f"the arrays of {source} must be one-dimensional, got {shapes}")
    rows = len(flat.get("rank", ()))
    flat = {
        name: np.repeat(values, rows) if len(values) == 1 else values
        for name, values in flat.items()
    }
    wrong = [name for name, values in flat.items() if len(values) != rows]
    if wrong and rows:
        raise FileError(f"the arrays of {source} must be as long as rank ({rows}); not so: {wrong}")
    return Table(source, {n: v.tolist() for n, v in flat.items()}, lambda row: f"row {row + 1}")


def _parse_json(content: bytes, source: str, by: str | None) -> RankCounts:
    return RankCounts.from_json(_decode(content, source), source)


PARSERS: dict[str, Callable[[bytes, str, str | None], Table | RankCounts]] = {
    "csv": _parse_delimited(","),
    "tsv": _parse_delimited("\t"),
    "jsonl": _parse_jsonl,
    "parquet": _parse_parquet,
    "npz": _parse_npz,
    "json": _parse_json,
}


def _wanted(by: str | None) -> list[str]:
    """Return the columns whose values are needed."""
    return list(dict.fromkeys(name for name in (*NUMBER_COLUMNS, USER, by) if name is not None))


def _decode(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise FileError(
            f"{source} is not UTF-8 text (byte {problem.start}); it may be truncated, compressed "
            "or of another format"
        ) from problem
