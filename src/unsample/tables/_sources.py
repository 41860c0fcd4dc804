"""What a source stands for: files and frames as tables of DuckDB, Spark's own, or plain arrays."""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import DAMAGED, open_plain, read_arrays
from unsample._checks import import_extra
from unsample._files import find_files, is_file
from unsample.errors import FileError, InputError, UnsampleError
from unsample.tables._sql import DIALECTS, Dialect

#: Ending of a name -> its format; other names (``.txt``) leave it to the content.
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}
_MARKS = {b"PAR1": "parquet", b"PK\x03\x04": "npz"}
_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz"}
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
_MEMORY = "2GB"
_NO_SOURCE = (
    "source must be a path, a list of paths, a mapping of arrays, or a data frame of pandas, "
    "Polars, PyArrow, DuckDB or PySpark, got {}; pass plain sequences of ranks to unsample.estimate"
)


@dataclass(frozen=True)
class Part:
    """Rows that have a place of their own: a file, or a frame."""

    name: str
    #: What can stand behind FROM, and the kind of each column.
    rows: str
    kinds: Mapping[str, str]
    #: Where the n-th row is, for messages; None where rows have no order.
    place: Callable[[int], str] | None = "row {}".format
    hint: str = ""
    #: Raise an error that says what is wrong with it, if something is.
    examine: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Arrays:
    """An array for each column."""

    name: str
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows that an engine can be asked for."""

    name: str
    parts: Sequence[Part]
    #: All rows, where the engine has one name for them; and whether reading them twice is slow.
    whole: str | None
    slow: bool
    dialect: Dialect
    ask: Callable[[str], dict[str, Any]]
    #: Store the result of a query, and return its name.
    keep: Callable[[str, str], str]
    failures: tuple[type[BaseException], ...] = ()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say what is wrong with a file that the engine cannot read."""
        problem = ""
        try:
            yield
        except self.failures as failure:
            problem = str(failure).strip().splitlines()[0]
        if problem:
            # The engine's own error would keep its connection alive.
            for part in self.parts:
                part.examine()
            raise FileError(f"cannot read {self.name}: {problem}")


def is_frame(value: object) -> bool:
    """Return whether ``value`` is a table with named columns, without importing anything."""
    # The class is asked, because a lazy frame would have to find out to answer.
    return any(hasattr(type(value), name) for name in ("columns", "column_names"))


def is_table(value: object) -> bool:
    """Return whether ``value`` stands for a table: paths, a frame, or a mapping of columns."""
    if isinstance(value, Mapping):
        return True
    paths = value if isinstance(value, list | tuple) and value else [value]
    return all(isinstance(path, str | os.PathLike) for path in paths) or is_frame(value)


def open_source(source: Any, wanted: Sequence[str], stack: ExitStack) -> Table | Arrays:
    """Return the table that a source stands for.

    What must be cleaned up after reading goes onto the ``stack``. Of frames, only the columns that
    are ``wanted`` are taken.
    """
    if isinstance(source, Mapping):
        return Arrays("the table", {str(name): np.asarray(each) for name, each in source.items()})
    paths = list(source) if isinstance(source, list | tuple) else [source]
    if paths and all(isinstance(path, str | os.PathLike) for path in paths):
        return _open_files([os.fspath(path) for path in paths], wanted, stack)
    if type(source).__module__.startswith("pyspark."):
        return _open_spark(source, stack)
    if not is_frame(source) or type(source).__module__.startswith("dask"):
        raise InputError(_NO_SOURCE.format(type(source).__name__))
    return _open_frame(source, wanted, stack)


# -- engines -------------------------------------------------------------------------------------


class _DuckDB:
    """A database in memory that fetches nothing from elsewhere, and spills what does not fit."""

    def __init__(self, stack: ExitStack) -> None:
        duckdb = import_extra("duckdb", extra="all", purpose="reading tables")
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="unsample-"))
        config = {
            "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2,
            "memory_limit": _MEMORY,
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self.failure, self.connection = duckdb.Error, duckdb.connect(config=config)
        stack.callback(self.close)
        self.connection.execute("SET enable_progress_bar = false")

    def close(self) -> None:
        """Let go of the connection, which whoever looks at an error may hold."""
        self.connection.close()
        self.connection = None

    def ask(self, query: str) -> dict[str, Any]:
        found = self.connection.execute(query).fetchnumpy()
        return {name: _with_nulls(values) for name, values in found.items()}

    def keep(self, name: str, query: str) -> str:
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE kept_{name} AS {query}")
        return f"kept_{name}"

    def kinds(self, rows: str) -> dict[str, str]:
        """Return what kind of values each column of some rows holds."""
        found = self.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        return {str(name): _kind(str(kind)) for name, kind, *_ in found}

    def table(self, name: str, parts: Sequence[Part], whole: str | None, slow: bool) -> Table:
        engine = DIALECTS["duckdb"], self.ask, self.keep, (self.failure,)
        return Table(name, parts, whole, slow, *engine)


def _with_nulls(values: Any) -> Any:
    """Return an array with None in place of what is masked."""
    if not np.ma.is_masked(values):
        return np.asarray(values)
    plain = np.asarray(values.data).astype(object)
    plain[np.ma.getmaskarray(values)] = None
    return plain


def _kind(dtype: str) -> str:
    """Return what a column of this type holds, or the type where it holds no value we take."""
    upper = dtype.upper()
    if upper.endswith("]") or upper.startswith("ARRAY"):
        return "list"
    if upper.startswith(("VARCHAR", "ENUM", "STRING", "CHAR")):
        return "text"
    if upper.startswith(("DECIMAL", "DOUBLE", "FLOAT", "REAL")):
        return "real"
    whole = "INT" in upper and "INTERVAL" not in upper
    return "whole" if whole else "flag" if upper == "BOOLEAN" else dtype


def _open_frame(frame: Any, wanted: Sequence[str], stack: ExitStack) -> Table | Arrays:
    name, lazy = "the frame", hasattr(frame, "collect_schema")
    columns = list(
        frame.collect_schema() if lazy else getattr(frame, "column_names", None) or frame.columns
    )
    if len(set(columns)) != len(columns):
        raise InputError(f"{name} has two columns of one name: {', '.join(map(str, columns))}")
    there = [column for column in columns if column in wanted] or columns
    if lazy:
        frame = frame.lazy().select(there).collect(engine="streaming")
    elif hasattr(frame, "iloc"):
        frame = frame[there]
    duck = _DuckDB(stack)
    try:
        duck.connection.register("frame", _Stream(frame))
        kinds = duck.kinds("frame")
    except Exception as problem:
        if not hasattr(frame, "iloc"):
            raise InputError(_NO_SOURCE.format(type(frame).__name__)) from problem
        # Arrow is not there, or takes no columns of several types.
        return Arrays(name, {str(column): frame[column].to_numpy() for column in frame.columns})
    kinds = {str(column): kinds.get(str(column), "") for column in columns}
    # Others may not give their rows twice at a time.
    slow = type(frame).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow")
    return duck.table(name, [Part(name, "frame", kinds)], "frame", slow)


class _Stream:
    """A frame that shows DuckDB nothing but its Arrow stream, as often as it is asked for."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def _open_spark(frame: Any, stack: ExitStack) -> Table:
    session, view = frame.sparkSession, f"unsample_{os.urandom(8).hex()}"
    frame.createOrReplaceTempView(view)
    stack.callback(session.catalog.dropTempView, view)

    def ask(query: str) -> dict[str, Any]:
        found = session.sql(query)
        rows = found.collect()
        return {
            name: np.array([row[place] for row in rows], dtype=object)
            for place, name in enumerate(found.columns)
        }

    def keep(name: str, query: str) -> str:
        session.sql(query).createOrReplaceTempView(f"{view}_{name}")
        stack.callback(session.catalog.dropTempView, f"{view}_{name}")
        return f"{view}_{name}"

    name, kinds = "the frame", {column: _kind(dtype) for column, dtype in frame.dtypes}
    part = Part(name, view, kinds, place=None)
    return Table(name, [part], view, False, DIALECTS["spark"], ask, keep)


# -- files ---------------------------------------------------------------------------------------


def _open_files(paths: Sequence[str], wanted: Sequence[str], stack: ExitStack) -> Table | Arrays:
    files = [file for path in paths for file in _files_of(path, stack)]
    name = files[0][1] if len(files) == 1 else ", ".join(map(repr, paths))
    kinds = {_format_of(*file): file[1] for file in files}
    if len(kinds) > 1:
        found = " and ".join(f"{file} ({kind})" for kind, file in kinds.items())
        raise FileError(f"{name} must be files of one format, got {found}; name fewer of them")
    (kind,) = kinds
    if kind == "npz" and len(files) > 1:
        raise FileError(f"{name} must be one NPZ file, got {len(files)}; add up their RankCounts")
    if kind == "npz":
        with files[0][0].open("rb") as stream:
            return Arrays(name, read_arrays(stream, name))
    if kind != "parquet" and find_spec("duckdb") is None:  # as in a browser
        return _read_slowly(*files[0], kind)
    duck = _DuckDB(stack)
    if kind == "parquet":
        return _parquet(duck, name, files)
    if kind == "jsonl":
        parts = [_json_lines(duck, path, label, wanted) for path, label in files]
    else:
        parts = [_delimited(path, label, kind) for path, label in files]
    return duck.table(name, parts, None, slow=True)


def _files_of(path: str, stack: ExitStack) -> list[tuple[Path, str]]:
    """Return the files that a path, a pattern or a folder stands for, and what to call them.

    What is compressed, or can be read only once, is written to a file.
    """
    if path == "-":
        return [(_spooled(sys.stdin.buffer, stack), "standard input")]
    found = []
    for file in find_files(path):
        label = repr(path if is_file(path) else str(file))
        packed = file.suffix.lower() in _PACKED.values()
        if packed or not is_file(file):
            with failures_of(label), open_plain(file) as stream:
                start = file.with_suffix("").suffix if packed else ""
                found.append((_spooled(stream, stack, start), label))
        else:
            found.append((file, label))
    return found


def _spooled(stream: Any, stack: ExitStack, suffix: str = "") -> Path:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unsample-")))
    path /= f"table{suffix}"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return path


def _format_of(path: Path, name: str) -> str:
    """Return the format of a file: its content tells, then its name."""
    with path.open("rb") as stream:
        start = stream.read(1 << 16)
    if not start.strip(b"\r\n"):
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    for mark, kind in _MARKS.items():
        if start.startswith(mark):
            return kind
    for mark, ending in _PACKED.items():
        if start.startswith(mark):
            raise FileError(
                f"{name} is compressed; give a file whose name ends in {ending}, or unpack it"
            )
    by_name = SUFFIXES.get(path.suffix.lower())
    first = start.lstrip().removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    if by_name is None and first.startswith(b"{"):
        return "jsonl"
    return by_name or ("tsv" if b"\t" in first else "csv")


@contextmanager
def failures_of(name: str, *kinds: type[BaseException]) -> Iterator[None]:
    """Say which file it is that cannot be read, and why, without the page an engine may write."""
    try:
        yield
    except UnsampleError:
        raise
    except UnicodeDecodeError:
        raise FileError(
            f"{name} is not UTF-8 text; it may be truncated, compressed or of another format"
        ) from None
    except Exception as problem:
        if not isinstance(problem, (*DAMAGED, *kinds)):
            raise
        why = getattr(problem, "strerror", None) or str(problem).strip() or type(problem).__name__
        raise FileError(f"cannot read {name}: {why.splitlines()[0]}") from None


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _parquet(duck: _DuckDB, name: str, files: Sequence[tuple[Path, str]]) -> Table:
    # Folders such as ``model=A`` give a column.
    hive = str(any("=" in folder for folder in files[0][0].parts[:-1])).lower()

    def rows(paths: Sequence[Path]) -> str:
        # It takes every name for a pattern; these are names of files that were found.
        places = ", ".join(_literal(glob.escape(str(path))) for path in paths)
        return f"read_parquet([{places}], hive_partitioning = {hive}, union_by_name = true)"

    parts = []
    for path, label in files:
        with failures_of(f"{label} as Parquet", duck.failure):
            parts.append(Part(label, rows([path]), duck.kinds(rows([path]))))
    return duck.table(name, parts, rows([path for path, _ in files]), slow=False)


def _read_slowly(path: Path, name: str, kind: str) -> Arrays:
    """Read a small file of text without an engine."""
    if kind == "jsonl":
        records = [r if isinstance(r, dict) else {"rank": r} for _, r in _records(path, name)]
        header = list(dict.fromkeys(key for record in records for key in record))
        rows: list[list[Any]] = [[record.get(key) for key in header] for record in records]
    else:
        delimiter = "\t" if kind == "tsv" else ","
        header, skip = _header(path, name, delimiter)
        with failures_of(name), _text(path) as text:
            found = _rows(text, delimiter, name, len(header))
            rows = [list(row) for row, line in found if line > skip]
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    arrays = {
        key: np.array(cells, dtype=object) for key, cells in zip(header, columns, strict=True)
    }
    return Arrays(name, arrays)


def _text(path: Path) -> io.TextIOWrapper:
    return path.open(encoding="utf-8-sig", newline="")


def _delimited(path: Path, name: str, kind: str) -> Part:
    """Read text with a delimiter, all cells as text."""
    delimiter = "\t" if kind == "tsv" else ","
    header, skip = _header(path, name, delimiter)

    def lines() -> Iterator[int]:
        with failures_of(name), _text(path) as text:
            rows = _rows(text, delimiter, name, len(header))
            yield from (line for _, line in rows if line > skip)

    marks = [shown for mark, shown in _SEPARATORS.items() if len(header) == 1 and mark in header[0]]
    hint = f"the separator seems to be {marks[0]}; write commas, or tabs in a .tsv" if marks else ""
    rows, kinds = _scan(path, header, delimiter, skip), dict.fromkeys(header, "text")
    return Part(name, rows, kinds, partial(_nth_line, lines), hint, partial(deque, lines(), 0))


def _header(path: Path, name: str, delimiter: str) -> tuple[list[str], int]:
    """Return the names of the columns, and the line they end in; one number alone is no name."""
    with failures_of(name), _text(path) as text:
        header, skip = next(((row, line) for row, line in _rows(text, delimiter, name)), ([], 0))
    header = [cell.strip() for cell in header]
    if not header:
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    if len(set(header)) != len(header):
        raise FileError(f"{name} has two columns of one name: {', '.join(header)}")
    named = not (len(header) == 1 and header[0].lstrip("-").replace(".", "", 1).isdecimal())
    return (header, skip) if named else (["rank"], 0)


def _scan(path: Path, header: Sequence[str], delimiter: str, skip: int) -> str:
    """Return the rows of a text file, all cells as text."""
    columns = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(len(header)))
    name = DIALECTS["duckdb"].name
    shown = ", ".join(f"c{n} AS {name(column)}" for n, column in enumerate(header))
    # An empty line is no row.
    filled = " WHERE c0 IS NOT NULL" if len(header) == 1 else ""
    return (
        f"(SELECT {shown} FROM read_csv({_literal(glob.escape(str(path)))}, "
        f"columns = {{{columns}}}, auto_detect = false, header = false, skip = {skip}, "
        f"delim = '{delimiter}', quote = '\"', escape = '\"', nullstr = '', "
        f"strict_mode = true){filled})"
    )


def _nth_line(lines: Callable[[], Iterator[int]], number: int) -> str:
    return f"line {next(islice(lines(), number - 1, None))}"


def _rows(
    text: io.TextIOWrapper, delimiter: str, name: str, size: int | None = None
) -> Iterator[tuple[list[str], int]]:
    """Yield rows that are not empty, and the lines they end in; refuse those of another size."""
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row and size not in (None, len(row)):
                raise FileError(
                    f"{name}, line {reader.line_num}: each row must have as many cells as the "
                    f"first, {size}, got {len(row)}: {', '.join(row)[:60]}"
                )
            if row:
                yield row, reader.line_num
    except csv.Error as problem:
        raise FileError(f"{name}, line {reader.line_num}: {problem}") from None


def _json_lines(duck: _DuckDB, path: Path, name: str, wanted: Sequence[str]) -> Part:
    """Read one JSON object, or one rank, a line; a line ends with a line feed and nothing else."""
    lines = (
        f"(SELECT line FROM read_csv({_literal(glob.escape(str(path)))}, auto_detect = false, "
        "columns = {'line': 'VARCHAR'}, header = false, delim = '\x01', quote = '', escape = '', "
        "nullstr = '', strict_mode = false) WHERE TRIM(line, ' \t\r\ufeff') <> '')"
    )
    kinds = "CASE WHEN JSON_VALID(line) THEN JSON_TYPE(line) ELSE 'none' END"
    try:
        found = duck.ask(f"SELECT DISTINCT {kinds} AS kind FROM {lines}")["kind"]
        broken = set(found) - {"OBJECT", "BIGINT", "UBIGINT", "DOUBLE"}
    except duck.failure:
        found, broken = np.array([]), {"none"}
    if broken:
        deque(_records(path, name), 0)
        raise FileError(f"{name} holds text that is not Unicode, such as half a character")
    if not len(found):
        raise FileError(f"{name} is empty; a table has an object in every line")
    objects = f"FROM {lines} WHERE JSON_TYPE(line) = 'OBJECT'"
    keys = f"SELECT DISTINCT UNNEST(JSON_KEYS(line)) AS name {objects}"
    header = [str(key) for key in duck.ask(keys)["name"]] if "OBJECT" in found else ["rank"]

    def pointer(key: str) -> str:
        return _literal("/" + key.replace("~", "~0").replace("/", "~1"))

    taken = [key for key in header if key in wanted]
    columns = {key: f"JSON_EXTRACT_STRING(line, {pointer(key)})" for key in taken or header[:1]}
    if {*found} - {"OBJECT"}:
        columns["rank"] = (
            f"CASE WHEN JSON_TYPE(line) = 'OBJECT' THEN {columns['rank']} ELSE line END"
        )
    shown = ", ".join(f'{v} AS "{k.replace(chr(34), chr(34) * 2)}"' for k, v in columns.items())

    def numbers() -> Iterator[int]:
        return (number for number, _ in _records(path, name))

    kinds_of, place = dict.fromkeys(header, "text"), partial(_nth_line, numbers)
    return Part(
        name, f"(SELECT {shown} FROM {lines})", kinds_of, place, "", partial(deque, numbers(), 0)
    )


def _records(path: Path, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the records of JSON lines with their lines, and refuse what is none."""
    with failures_of(name), path.open(encoding="utf-8-sig", newline="\n") as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                raise FileError(f"{name}, line {number}: not JSON: {line[:60]!r}") from None
            if isinstance(record, bool) or not isinstance(record, dict | int | float):
                raise FileError(f"{name}, line {number}: an object expected, got {line[:60]!r}")
            yield number, record
