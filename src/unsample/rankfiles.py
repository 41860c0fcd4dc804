"""Rank files: CSV, TSV, Parquet, JSON lines, NPZ, or standard input, to `RankCounts`.

A rank file has a column ``rank`` (1 is the best, among sampled + 1 items), or the columns
``better`` and ``tied`` (how many sampled items beat the target, how many tie with it), and may have

``count``
    how many targets a row stands for;
``sampled``, ``items``
    the design of the row, where designs differ;
``weight``
    how much a target counts (1/3 for each of three targets of a user);
``user``
    whose target it is: several targets of one user are not independent;
any other column
    to group by (``model``, ...).

A text file without a header is read as one rank a line. Files that `RankCounts.save` wrote are
recognised too.

Patterns and folders of files, Parquet, large text files and tables of scores (columns ``user``,
``score``, ``target``) are streamed by an engine of `unsample.frames`; what remains is read here,
with the standard library and numpy alone.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    Seed,
    as_integer_array,
    as_text_array,
    check_choice,
    import_extra,
    suggest,
)
from unsample._files import check_unpacked, is_file, names_in, read_arrays
from unsample.counts import RankCounts, Targets
from unsample.errors import DesignError, FileError, InputError
from unsample.frames import (
    SUFFIXES,
    compare_table,
    embedded_engine,
    expand_pattern,
    is_pattern,
    open_files,
)
from unsample.ties import Comparisons

__all__ = ["FORMATS", "read_counts", "read_grouped_counts", "read_targets"]

FORMATS = ("csv", "tsv", "jsonl", "parquet", "npz", "json")
STANDARD_INPUT = "-"
_PARQUET_MARK = b"PAR1"

_SUFFIXES = SUFFIXES | {".npz": "npz", ".json": "json"}
_NUMBER_COLUMNS = ("rank", "better", "tied", "count", "sampled", "items", "weight")
_USER = "user"
#: Text files from this size on are streamed by an engine, if one is installed.
_LARGE_TEXT = 1 << 25
#: Letters of a cell that may be a number.
_LONGEST_NUMBER = 400
#: Bytes that tell a format.
_START = 1 << 16


@dataclass(frozen=True)
class _Table:
    """Columns as read, and how to name the place of a row in messages."""

    source: str
    columns: Mapping[str, Sequence[Any]]
    place: Callable[[int], str]


@dataclass(frozen=True)
class _Request:
    """What is asked of the files: how they are written, and what their rows mean."""

    path: str
    by: str | None
    items: int | None
    sampled: int | None
    replacement: bool
    file_format: str | None
    engine: str | None
    columns: Mapping[str, str]
    rows: str | None
    ties: str
    rng: Seed

    @property
    def standard_input(self) -> bool:
        return self.path == STANDARD_INPUT

    @property
    def several(self) -> bool:
        """Whether the path stands for several files."""
        return not self.standard_input and is_pattern(self.path)

    def count(self, cells: Comparisons) -> RankCounts:
        return RankCounts.from_comparisons(
            cells, ties=self.ties, rng=self.rng, replacement=self.replacement
        )


def read_counts(
    path: str,
    *,
    items: int | None = None,
    sampled: int | None = None,
    replacement: bool = True,
    file_format: str | None = None,
    engine: str | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
) -> RankCounts:
    """Read rank files into counts; see `read_grouped_counts`."""
    groups = read_grouped_counts(
        path,
        by=None,
        items=items,
        sampled=sampled,
        replacement=replacement,
        file_format=file_format,
        engine=engine,
        columns=columns,
        rows=rows,
        ties=ties,
        rng=rng,
    )
    return groups[""]


def read_grouped_counts(
    path: str,
    *,
    by: str | None,
    items: int | None = None,
    sampled: int | None = None,
    replacement: bool = True,
    file_format: str | None = None,
    engine: str | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
) -> dict[str, RankCounts]:
    """Read rank files into counts by the values of the column ``by`` (one group for None).

    Parameters
    ----------
    path
        A file, ``-`` for standard input, a pattern such as ``runs/*.parquet``, or a folder.
    by
        The column to group by.
    items, sampled, replacement
        The design, where it is not in columns.
    file_format
        One of `FORMATS`; by default told by the name or the content.
    engine
        ``"duckdb"``, ``"polars"`` or ``"spark"``, to stream the files; chosen where needed.
    columns, rows, ties, rng
        As in `RankCounts.from_frame`.
    """
    request = _Request(
        path, by, items, sampled, replacement, file_format, engine, columns or {}, rows, ties, rng
    )
    asks_engine = bool(engine or columns or rows)
    if request.standard_input and asks_engine:
        raise InputError(
            "engine, columns and rows must be left out with standard input, which is read here; "
            "write it to a file"
        )
    if request.several and _all_saved(path):
        _refuse_options(repr(path), request)
        return {"": RankCounts.merge(RankCounts.load(file) for file in expand_pattern(path))}
    if asks_engine or _is_streamed(request):
        return _stream(request)
    return _read_here(request)


def read_targets(
    path: str,
    *,
    by: str | None = None,
    items: int | None = None,
    sampled: int | None = None,
    replacement: bool = True,
    file_format: str | None = None,
) -> dict[str, Targets | RankCounts]:
    """Read a rank file target by target, by the values of the column ``by``.

    Where a row stands for several targets, or only counts can be had (saved counts, tables of
    scores, patterns of files), counts are returned, which cannot be paired by user.
    """
    request = _Request(
        path, by, items, sampled, replacement, file_format, None, {}, None, "random", 0
    )
    if not request.several:
        table = _parse_file(request)
        if isinstance(table, _Table) and "rank" in table.columns and "count" not in table.columns:
            groups = _group_rows(table, by) if by in (None, *table.columns) else {}
            _require_columns(table, by)
            return {label: _targets(table, rows, request) for label, rows in groups.items()}
    return dict(
        read_grouped_counts(
            path,
            by=by,
            items=items,
            sampled=sampled,
            replacement=replacement,
            file_format=file_format,
        )
    )


def _targets(table: _Table, rows: npt.NDArray[np.int64], request: _Request) -> Targets:
    columns = {
        name: _numbers(table, name, rows) for name in _NUMBER_COLUMNS if name in table.columns
    }
    found = Targets(
        columns["rank"],
        _option_or_column(table, "items", request.items, columns.get("items")),
        _option_or_column(table, "sampled", request.sampled, columns.get("sampled")),
        columns.get("weight"),
        _users(table, rows),
        request.replacement,
    )
    _count_rows(table, rows, request)  # says what is wrong with the ranks, and where
    return found


def _parse_file(request: _Request) -> _Table | RankCounts:
    content, source = _read_bytes(request.path)
    if not content:
        raise FileError(f"{source} is empty; a rank file has a column named rank")
    kind = _format_of(request.path, content, request.file_format)
    return _PARSERS[kind](content, source, request.by)


def _read_here(request: _Request) -> dict[str, RankCounts]:
    table = _parse_file(request)
    if isinstance(table, RankCounts):
        _refuse_options(repr(request.path), request)
        return {"": table}
    if "score" in table.columns and "rank" not in table.columns and not request.standard_input:
        return _stream(request)
    _require_columns(table, request.by)
    groups = _group_rows(table, request.by)
    return {label: _count_rows(table, members, request) for label, members in groups.items()}


# -- files that an engine streams ----------------------------------------------------------------


def _is_streamed(request: _Request) -> bool:
    if request.several or (request.file_format == "parquet" and not request.standard_input):
        return True
    file = Path(request.path)
    if request.standard_input or not is_file(file):
        return False
    if request.file_format is None and _start_of(file).startswith(_PARQUET_MARK):
        return True
    text = (request.file_format or _SUFFIXES.get(file.suffix.lower())) in {"csv", "tsv"}
    return text and file.stat().st_size >= _LARGE_TEXT and embedded_engine() is not None


def _stream(request: _Request) -> dict[str, RankCounts]:
    kind = request.file_format
    if not request.several:
        if not is_file(Path(request.path)):
            _read_bytes(request.path)  # says what is wrong with it
        kind = _format_of(request.path, _start_of(Path(request.path)), kind)
    groups = compare_table(
        open_files(request.path, engine=request.engine, file_format=kind),
        by=request.by,
        items=request.items,
        sampled=request.sampled,
        columns=request.columns,
        rows=request.rows,
    )
    return {label: request.count(cells) for label, cells in groups.items()}


def _start_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_START)
    except OSError as problem:
        raise FileError(f"cannot read {str(file)!r}: {problem.strerror}") from problem


def _all_saved(pattern: str) -> bool:
    """Return whether all files that a pattern stands for hold saved counts."""
    suffixes = {Path(file).suffix.lower() for file in expand_pattern(pattern)}
    return suffixes <= {".npz", ".json"}


def _refuse_options(source: str, request: _Request) -> None:
    if any(option is not None for option in (request.by, request.items, request.sampled)):
        raise InputError(
            f"by, items and sampled must be left out with {source}, which holds saved counts "
            "and so knows its designs"
        )


# -- bytes and formats --------------------------------------------------------------------------


def _read_bytes(path: str) -> tuple[bytes, str]:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(path).read_bytes(), repr(path)
    except FileNotFoundError as problem:
        near = suggest(Path(path).name, names_in(Path(path).parent))
        raise FileError(f"no file {path!r}" + (f"; {near}" if near else "")) from problem
    except OSError as problem:
        raise FileError(f"cannot read {path!r}: {problem.strerror}") from problem


def _format_of(path: str, content: bytes, file_format: str | None) -> str:
    if file_format is not None:
        return check_choice("format", file_format, FORMATS)
    if content.startswith(_PARQUET_MARK):
        return "parquet"
    if content.startswith(b"PK\x03\x04"):
        return "npz"
    by_suffix = _SUFFIXES.get(Path(path).suffix.lower())
    if by_suffix is not None:
        return by_suffix
    first_line = content.lstrip().split(b"\n", 1)[0]
    if first_line.startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in first_line else "csv"


# -- parsers ------------------------------------------------------------------------------------


def _parse_delimited(delimiter: str) -> Callable[[bytes, str, str | None], _Table]:
    def parse(content: bytes, source: str, by: str | None) -> _Table:
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


def _delimited_table(rows: Iterator[tuple[int, list[str]]], source: str, by: str | None) -> _Table:
    first = next(rows, None)
    if first is None:
        raise FileError(f"{source} has no rows; a rank file has a column named rank")
    lines: list[int] = []
    header = [cell.strip() for cell in first[1]]
    wanted = _wanted(by)
    columns: dict[str, list[str]] = {name: [] for name in header}
    if len(header) == 1 and _is_number(header[0]):
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
    return _Table(source, dict(columns), lambda row: f"line {lines[row]}")


def _parse_jsonl(content: bytes, source: str, by: str | None) -> _Table:
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
    return _Table(source, columns, lambda row: f"line {lines[row]}")


def _parse_parquet(content: bytes, source: str, by: str | None) -> _Table:
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
    return _Table(source, columns, lambda row: f"row {row + 1}")


def _parse_npz(content: bytes, source: str, by: str | None) -> _Table | RankCounts:
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
    return _Table(source, {n: v.tolist() for n, v in flat.items()}, lambda row: f"row {row + 1}")


def _parse_json(content: bytes, source: str, by: str | None) -> RankCounts:
    return RankCounts.from_json(_decode(content, source), source)


_PARSERS: dict[str, Callable[[bytes, str, str | None], _Table | RankCounts]] = {
    "csv": _parse_delimited(","),
    "tsv": _parse_delimited("\t"),
    "jsonl": _parse_jsonl,
    "parquet": _parse_parquet,
    "npz": _parse_npz,
    "json": _parse_json,
}


def _wanted(by: str | None) -> list[str]:
    """Return the columns whose values are needed."""
    return list(dict.fromkeys(name for name in (*_NUMBER_COLUMNS, _USER, by) if name is not None))


def _decode(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise FileError(
            f"{source} is not UTF-8 text (byte {problem.start}); it may be truncated, compressed "
            "or of another format"
        ) from problem


# -- columns to counts --------------------------------------------------------------------------


def _require_columns(table: _Table, by: str | None) -> None:
    compared = "better" in table.columns and "rank" not in table.columns
    for name in (*(("better", "tied") if compared else ("rank",)), by):
        if name is not None and name not in table.columns:
            present = ", ".join(table.columns) or "none"
            near = suggest(name, table.columns)
            raise FileError(
                f"{table.source} has no column {name!r}; its columns are: {present}"
                + (f"; {near}" if near else "")
            )
    if _rows_of(table) == 0:
        raise FileError(f"{table.source} has a header but no rows")


def _rows_of(table: _Table) -> int:
    return len(table.columns["rank" if "rank" in table.columns else "better"])


def _group_rows(table: _Table, by: str | None) -> dict[str, npt.NDArray[np.int64]]:
    if by is None:
        return {"": np.arange(_rows_of(table))}
    groups: dict[str, list[int]] = {}
    for row, label in enumerate(table.columns[by]):
        groups.setdefault(str(label), []).append(row)
    return {label: np.array(rows) for label, rows in groups.items()}


def _count_rows(table: _Table, rows: npt.NDArray[np.int64], request: _Request) -> RankCounts:
    columns = {
        name: _numbers(table, name, rows) for name in _NUMBER_COLUMNS if name in table.columns
    }
    items = _option_or_column(table, "items", request.items, columns.get("items"))
    sampled = _option_or_column(table, "sampled", request.sampled, columns.get("sampled"))
    try:
        if "rank" not in columns:
            return request.count(_compared(columns, items, sampled))
        return RankCounts.from_ranks(
            columns["rank"],
            items=items,
            sampled=sampled,
            weights=columns.get("weight"),
            count=columns.get("count"),
            users=_users(table, rows),
            replacement=request.replacement,
        )
    except InputError as problem:
        hint = "" if {"items", "sampled"} & set(columns) else _MIXED_HINT
        raise type(problem)(f"{table.source}: {problem}{hint}") from problem


def _users(table: _Table, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any] | None:
    if _USER not in table.columns:
        return None
    values = table.columns[_USER]
    names = [str(values[row]) for row in rows]
    return as_text_array(f"users of {table.source}", names, error=FileError)


def _compared(columns: Mapping[str, Any], items: Any, sampled: Any) -> Comparisons:
    return Comparisons.of_targets(
        as_integer_array("better", columns["better"]),
        as_integer_array("tied", columns["tied"]),
        items=items,
        sampled=sampled,
        weights=columns.get("weight"),
        count=as_integer_array("count", columns["count"]) if "count" in columns else None,
    )


_MIXED_HINT = "; where designs differ by row, add columns sampled and items"


def _numbers(table: _Table, name: str, rows: npt.NDArray[np.int64]) -> Any:
    values = table.columns[name]
    try:
        cells = [values[row] for row in rows]
        # An array of texts makes every cell as long as the longest.
        if any(isinstance(cell, str) and len(cell) > _LONGEST_NUMBER for cell in cells):
            return _first_bad_number(table, name, rows)
        chosen = np.array(cells)
        # Exact for whole numbers of any size, which a detour through floats would not be.
        numbers = chosen if chosen.dtype.kind in "iuf" else _from_text(chosen)
    except (ValueError, TypeError, OverflowError):
        return _first_bad_number(table, name, rows)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        return _first_bad_number(table, name, rows)
    return numbers


def _from_text(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return values.astype(np.int64)
    except (ValueError, OverflowError):
        return values.astype(np.float64)


def _first_bad_number(table: _Table, name: str, rows: npt.NDArray[np.int64]) -> Any:
    for row in rows:
        value = table.columns[name][row]
        if not _is_number(value):
            raise FileError(
                f"{table.source}, {table.place(int(row))}: {name} must be a number, got {value!r}"
            )
    raise FileError(f"{table.source}: {name} must hold numbers of a common type")


def _option_or_column(
    table: _Table, name: str, option: int | None, column: npt.NDArray[Any] | None
) -> Any:
    if column is None and option is None:
        raise DesignError(
            f"{name} must be given: pass --{name}, or add a column {name!r} to {table.source}"
        )
    if column is None:
        return option
    if option is not None and (column != option).any():
        other = column[np.argmax(column != option)]
        raise DesignError(
            f"{name} is {option} by option but {other} in a row of {table.source}; give one of them"
        )
    return column


def _is_number(value: Any) -> bool:
    if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
        return False
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False
