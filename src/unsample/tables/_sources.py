"""What a source stands for: files and frames in DuckDB, Spark's own tables, or plain arrays."""

from __future__ import annotations

import csv
import glob
import json
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
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
from unsample.tables._layout import Columns, as_names
from unsample.tables._sql import DIALECTS

#: Ending of a name -> its format; other names (``.txt``) leave it to the content.
_ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
}  # fmt: skip
_MARKS = {b"PAR1": "parquet", b"PK\x03\x04": "npz", b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz"}
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
_BOM = b"\xef\xbb\xbf"
#: The column that names the model of each of several files.
FILE_MODEL = "unsample_model"
_NO_SOURCE = (
    "source must be a path, a list of paths, a mapping of arrays, or a data frame of pandas, "
    "Polars, PyArrow, DuckDB or PySpark, got {}; pass plain sequences of ranks to unsample.estimate"
)


@dataclass(frozen=True)
class Part:
    """Rows that have a place of their own: a file, a frame, or arrays."""

    name: str
    #: The kind of each column, and what can stand behind FROM; or the columns themselves.
    kinds: Mapping[str, str]
    rows: str = ""
    arrays: Columns = field(default_factory=dict)
    #: The lines of a text's rows, which it refuses with a message if they cannot be read.
    lines: Callable[[], Iterator[int]] | None = None
    hint: str = ""

    def place(self, row: int) -> str:
        """Return where a row is, counted from 0."""
        if self.lines is None:
            return f" in row {row + 1}"
        return f" in line {next(islice(self.lines(), row, None))}"


@dataclass(frozen=True)
class Table:
    """The parts of a table, and the engine that counts them; None for arrays."""

    name: str
    parts: Sequence[Part]
    engine: DuckDB | Spark | None = None
    #: All rows, where the engine has one name for them; and whether reading them twice is slow.
    whole: str | None = None
    slow: bool = False

    def only(self, column: str, value: str) -> Table:
        """Return the rows that have this value in a column."""
        if self.engine is None:
            (part,) = self.parts
            mine = as_names(part.arrays[column]) == value
            return replace(
                self, parts=[replace(part, arrays={n: v[mine] for n, v in part.arrays.items()})]
            )
        name, text = self.engine.dialect.name(column), value.replace("'", "''")
        real = "real" in {part.kinds[column] for part in self.parts}
        as_text = f"CAST({name} AS {self.engine.dialect.text}) = '{text}'"
        where = f"WHERE {f'{name} = {text}' if real else as_text}"
        parts = [replace(p, rows=f"(SELECT * FROM {p.rows} {where})") for p in self.parts]
        whole = self.whole and f"(SELECT * FROM {self.whole} {where}) AS t"
        return replace(self, parts=parts, whole=whole)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say what is wrong with a file that the engine cannot read."""
        problem = ""
        failures: tuple[type[Exception], ...] = self.engine.failures if self.engine else ()
        try:
            yield
        except failures as failure:
            problem = str(failure).strip().splitlines()[0]
        if problem:
            # The engine's own error would keep its connection alive.
            for part in self.parts:
                deque(part.lines() if part.lines else (), 0)
            raise FileError(f"cannot read {self.name}: {problem}")


def is_table(value: object) -> bool:
    """Return whether ``value`` stands for a table: paths, a frame, or a mapping of columns."""
    paths = value if isinstance(value, list | tuple) and value else [value]
    # The class is asked, because a lazy frame would have to find out to answer.
    frame = any(hasattr(type(value), name) for name in ("columns", "column_names"))
    return frame or isinstance(value, Mapping) or all(map(_is_path, paths))


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def open_source(source: Any, wanted: Sequence[str], stack: ExitStack) -> Table:
    """Return the table that a source stands for; of frames, the columns that are ``wanted``.

    What must be cleaned up after reading goes onto the ``stack``.
    """
    if isinstance(source, Mapping) and source and all(map(_is_path, source.values())):
        return _open_models(source, wanted, stack)
    if isinstance(source, Mapping):
        return _of_arrays("the table", {str(key): np.asarray(each) for key, each in source.items()})
    if not is_table(source) or type(source).__module__.startswith("dask"):
        raise InputError(_NO_SOURCE.format(type(source).__name__))
    if type(source).__module__.startswith("pyspark."):
        view, kinds = f"unsample_{os.urandom(8).hex()}", {c: _kind(t) for c, t in source.dtypes}
        source.createOrReplaceTempView(view)
        stack.callback(source.sparkSession.catalog.dropTempView, view)
        part = Part("the frame", kinds, view)
        return Table(part.name, [part], Spark(source.sparkSession), view)
    if _is_path(source) or isinstance(source, list | tuple):
        paths = [source] if _is_path(source) else source
        return _open_files([os.fspath(path) for path in paths], wanted, stack)
    return _open_frame(source, wanted, stack)


def _of_arrays(name: str, arrays: Columns, lines: Any = None) -> Table:
    sizes = {values.size for values in arrays.values()} - {1} or {1}
    if "format" not in arrays:  # these are saved counts
        if len(sizes) > 1 or any(values.ndim > 1 for values in arrays.values()):
            shapes = ", ".join(f"{key} {values.shape}" for key, values in arrays.items())
            raise FileError(
                f"the arrays of {name} must be one-dimensional and equally long, or single values, "
                f"got {shapes}"
            )
        (size,) = sizes
        arrays = {key: np.broadcast_to(each.reshape(-1), size) for key, each in arrays.items()}
    return Table(name, [Part(name, dict.fromkeys(arrays, ""), arrays=arrays, lines=lines)])


def in_engine(table: Table, stack: ExitStack) -> Table:
    """Return arrays as a table of DuckDB."""
    duck, (part,) = DuckDB(stack), table.parts
    duck.connection.register("frame", {k: np.ascontiguousarray(v) for k, v in part.arrays.items()})
    return Table(table.name, [Part(part.name, duck.kinds("frame"), "frame")], duck, "frame")


# -- engines -------------------------------------------------------------------------------------


class DuckDB:
    """A database in memory that fetches nothing from elsewhere, and spills what does not fit."""

    dialect = DIALECTS["duckdb"]

    def __init__(self, stack: ExitStack) -> None:
        duckdb = import_extra("duckdb", extra="all", purpose="reading tables")
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="unsample-"))
        config = {
            "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2,
            "memory_limit": "2GB",
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self.failures: tuple[type[Exception], ...] = (duckdb.Error,)
        self.connection: Any = duckdb.connect(config=config)
        stack.callback(self.close)
        self.connection.execute("SET enable_progress_bar = false")

    def close(self) -> None:
        """Let go of the connection, which whoever looks at an error may hold."""
        self.connection.close()
        self.connection = None

    def ask(self, query: str, values: Sequence[Any] = ()) -> Columns:
        """Return the columns of a query's result."""
        found = self.connection.execute(query, list(values)).fetchnumpy()
        return {name: _with_nulls(each) for name, each in found.items()}

    def keep(self, name: str, query: str) -> str:
        """Store a query's result, and return its name."""
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE kept_{name} AS {query}")
        return f"kept_{name}"

    def kinds(self, rows: str) -> dict[str, str]:
        """Return what kind of values each column of some rows holds."""
        found = self.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        return {str(name): _kind(str(kind)) for name, kind, *_ in found}


class Spark:
    """A session of Spark."""

    dialect, failures = DIALECTS["spark"], ()

    def __init__(self, session: Any) -> None:
        self.session = session

    def ask(self, query: str) -> Columns:
        """Return the columns of a query's result."""
        found = self.session.sql(query)
        rows = found.collect()
        return {
            name: np.array([row[place] for row in rows], dtype=object)
            for place, name in enumerate(found.columns)
        }

    def keep(self, name: str, query: str) -> str:
        """Return what stands for a query's result."""
        return f"({query}) AS {name}"


def _with_nulls(values: Any) -> Any:
    if not np.ma.is_masked(values):
        return np.asarray(values)
    return np.where(np.ma.getmaskarray(values), None, values.data.astype(object))


def _kind(dtype: str) -> str:
    """Return what a column of this type holds, or the type where it holds no value we take."""
    upper = dtype.upper()
    if upper.endswith("]") or upper.startswith("ARRAY"):
        return "list"
    if upper.startswith(("VARCHAR", "ENUM", "STRING", "CHAR")):
        return "text"
    if upper.startswith(("DECIMAL", "DOUBLE", "FLOAT", "REAL")):
        return "real"
    return "whole" if "INT" in upper and "INTERVAL" not in upper else upper


def _open_frame(frame: Any, wanted: Sequence[str], stack: ExitStack) -> Table:
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
    duck = DuckDB(stack)
    try:
        duck.connection.register("frame", _Stream(frame))
        kinds = duck.kinds("frame")
    except Exception as problem:
        if not hasattr(frame, "iloc"):
            raise InputError(_NO_SOURCE.format(type(frame).__name__)) from problem
        # Arrow is not there, or takes no columns of several types.
        return _of_arrays(name, {str(column): frame[column].to_numpy() for column in there})
    kinds = {str(column): kinds.get(str(column), "") for column in columns}
    # Others may not give their rows twice at a time.
    slow = type(frame).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow")
    return Table(name, [Part(name, kinds, "frame")], duck, "frame", slow)


class _Stream:
    """A frame that shows DuckDB nothing but its Arrow stream, as often as it is asked for."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


# -- files ---------------------------------------------------------------------------------------


def _open_files(paths: Sequence[str], wanted: Sequence[str], stack: ExitStack) -> Table:
    files = [file for path in paths for file in _files_of(path, stack)]
    name = files[0][1] if len(files) == 1 else ", ".join(map(repr, paths))
    kinds = {_format_of(*file): file[1] for file in files}
    if len(kinds) > 1:
        found = " and ".join(f"{file} ({kind})" for kind, file in kinds.items())
        raise FileError(f"{name} must be files of one format, got {found}; name fewer of them")
    (kind,) = kinds
    if kind == "npz":
        if len(files) > 1:
            raise FileError(f"{name} must be one NPZ file, got {len(files)}; add up RankCounts")
        with files[0][0].open("rb") as stream:
            return _of_arrays(name, read_arrays(stream, name))
    if kind in ("csv", "tsv") and find_spec("duckdb") is None:  # as in a browser
        return _Delimited(*files[0], kind).as_arrays()
    duck = DuckDB(stack)
    if kind == "parquet":
        return _parquet(duck, name, files)
    if kind == "jsonl":
        parts = [_json_lines(duck, *file, wanted, stack) for file in files]
    else:
        parts = [_Delimited(*file, kind).part() for file in files]
    return Table(name, parts, duck, slow=True)


def _open_models(files: Mapping[str, Any], wanted: Sequence[str], stack: ExitStack) -> Table:
    """Return the files of several models as one table, in which a column names the models."""
    tables = {name: _open_files([os.fspath(path)], wanted, stack) for name, path in files.items()}
    parts = []
    for name, table in tables.items():
        if table.engine is None:
            raise FileError(f"{table.name} must be read by itself, for no engine reads it")
        label = name.replace("'", "''")
        for part in table.parts:
            rows = f"(SELECT *, '{label}' AS {FILE_MODEL} FROM {part.rows})"
            parts.append(replace(part, rows=rows, kinds={**part.kinds, FILE_MODEL: "text"}))
    return Table(", ".join(files), parts, table.engine, slow=table.slow)


def _files_of(path: str, stack: ExitStack) -> list[tuple[Path, str]]:
    """Return the files that a path, a pattern or a folder stands for, and what to call them.

    What is compressed, or can be read only once, is written to a file.
    """
    if path == "-":
        return [(_spooled(sys.stdin.buffer, stack), "standard input")]
    found = []
    for file in find_files(path):
        label, place = repr(path if is_file(path) else str(file)), file
        packed = file.suffix.lower() in _MARKS.values()
        if packed or not is_file(file):
            with _failures_of(label), open_plain(file) as stream:
                place = _spooled(stream, stack, file.with_suffix("").suffix if packed else "")
        found.append((place, label))
    return found


def _spooled(stream: Any, stack: ExitStack, suffix: str = "") -> Path:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="unsample-"))
    path = Path(folder, f"table{suffix}")
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return path


def _format_of(path: Path, name: str) -> str:
    """Return the format of a file: its content tells, then its name."""
    with path.open("rb") as stream:
        start = stream.read(1 << 16)
    if not start.strip(b"\r\n"):
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    kind = next((kind for mark, kind in _MARKS.items() if start.startswith(mark)), "")
    if kind.startswith("."):
        raise FileError(
            f"{name} is compressed; give a file whose name ends in {kind}, or unpack it"
        )
    first = start.removeprefix(_BOM).lstrip().split(b"\n", 1)[0]
    kind = kind or _ENDINGS.get(path.suffix.lower(), "jsonl" if first[:1] == b"{" else "")
    if kind == "jsonl" and first[:1].isdigit():  # one rank a line
        kind = "csv"
    return kind or ("tsv" if b"\t" in first else "csv")


@contextmanager
def _failures_of(name: str, *kinds: type[Exception]) -> Iterator[None]:
    """Say which file it is that cannot be read, and why, without the page an engine may write."""
    failures: tuple[type[Exception], ...] = (*DAMAGED, *kinds)
    try:
        yield
    except UnsampleError:
        raise
    except UnicodeDecodeError:
        raise FileError(
            f"{name} is not UTF-8 text; it may be truncated, compressed or of another format"
        ) from None
    except failures as problem:
        why = getattr(problem, "strerror", None) or str(problem).strip() or type(problem).__name__
        raise FileError(f"cannot read {name}: {why.splitlines()[0]}") from None


def _literal(path: Path) -> str:
    """Write a path for DuckDB, which takes every name for a pattern."""
    return "'" + glob.escape(str(path)).replace("'", "''") + "'"


def _parquet(duck: DuckDB, name: str, files: Sequence[tuple[Path, str]]) -> Table:
    # Folders such as ``model=A`` give a column.
    hive = str(any("=" in folder for folder in files[0][0].parts[:-1])).lower()

    def rows(*paths: Path) -> str:
        places = ", ".join(map(_literal, paths))
        return f"read_parquet([{places}], hive_partitioning = {hive}, union_by_name = true)"

    parts = []
    for path, label in files:
        with _failures_of(f"{label} as Parquet", *duck.failures):
            parts.append(Part(label, duck.kinds(rows(path)), rows(path)))
    return Table(name, parts, duck, rows(*(path for path, _ in files)))


class _Delimited:
    """A file of text with a delimiter: its header, and its rows with their lines."""

    def __init__(self, path: Path, name: str, kind: str) -> None:
        self.path, self.name, self.delimiter = path, name, "\t" if kind == "tsv" else ","
        self.header: list[str] = []
        row, self.skip = next(self._all_rows(), ([], 0))
        header = [cell.strip() for cell in row]
        if len(set(header)) != len(header):
            raise FileError(f"{name} has two columns of one name: {', '.join(header)}")
        # One number alone is no name.
        if len(header) == 1 and header[0].lstrip("-").replace(".", "", 1).isdecimal():
            header, self.skip = ["rank"], 0
        self.header = header

    def _all_rows(self) -> Iterator[tuple[list[str], int]]:
        """Yield rows that are not empty, and the lines they end in; refuse those of other sizes."""
        with _failures_of(self.name), self.path.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=True)
            try:
                for row in filter(None, reader):
                    if self.header and len(row) != len(self.header):
                        raise FileError(
                            f"{self.name}, line {reader.line_num}: each row must have as many "
                            f"cells as the first, {len(self.header)}, got {len(row)}: "
                            f"{', '.join(row)[:60]}"
                        )
                    yield row, reader.line_num
            except csv.Error as problem:
                raise FileError(f"{self.name}, line {reader.line_num}: {problem}") from None

    def lines(self) -> Iterator[int]:
        return (line for _, line in self._all_rows() if line > self.skip)

    def as_arrays(self) -> Table:
        """Read a small file without an engine."""
        rows = [row for row, line in self._all_rows() if line > self.skip]
        cells = np.array(rows, dtype=object).reshape(-1, len(self.header)).T
        return _of_arrays(self.name, dict(zip(self.header, cells, strict=True)), self.lines)

    def part(self) -> Part:
        """Let DuckDB read all cells as text."""
        found = [shown for mark, shown in _SEPARATORS.items() if mark in self.header[0]]
        hint = (
            f"the separator seems to be {found[0]}; write commas, or tabs in a .tsv"
            if found
            else ""
        )
        columns = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(len(self.header)))
        named = enumerate(map(DIALECTS["duckdb"].name, self.header))
        # An empty line is no row.
        filled = " WHERE c0 IS NOT NULL" if len(self.header) == 1 else ""
        rows = (
            f"(SELECT {', '.join(f'c{n} AS {column}' for n, column in named)} FROM read_csv("
            f"{_literal(self.path)}, columns = {{{columns}}}, auto_detect = false, header = false, "
            f"skip = {self.skip}, delim = '{self.delimiter}', quote = '\"', escape = '\"', "
            f"nullstr = '', strict_mode = true){filled})"
        )
        return Part(
            self.name, dict.fromkeys(self.header, "text"), rows, lines=self.lines, hint=hint
        )


def _json_lines(
    duck: DuckDB, path: Path, name: str, wanted: Sequence[str], stack: ExitStack
) -> Part:
    """Let DuckDB read an object in each line, all values as text."""
    with path.open("rb") as stream:
        if stream.read(len(_BOM)) == _BOM:
            path = _spooled(stream, stack)
    records = partial(_records, path, name)
    how = f"{_literal(path)}, format = 'newline_delimited'"
    keys = f"SELECT DISTINCT UNNEST(JSON_KEYS(json)) AS key FROM read_json_objects({how})"
    try:
        found = duck.ask(keys)["key"].tolist()
    except duck.failures:
        deque(records(), 0)
        raise FileError(
            f"{name} holds text that is not Unicode, such as half a character"
        ) from None
    header = list(dict.fromkeys([*next(records(), (0, {}))[1], *sorted(found)]))
    if not header:
        raise FileError(f"{name} is empty; a table has an object in every line")
    taken = [key for key in header if key in wanted] or header[:1]
    columns = ", ".join(f"{DIALECTS['duckdb'].name(key)}: 'VARCHAR'" for key in taken)
    rows = f"read_json({how}, records = true, columns = {{{columns}}})"
    return Part(
        name, dict.fromkeys(header, "text"), rows, lines=lambda: (line for line, _ in records())
    )


def _records(path: Path, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of JSON lines with their lines, and refuse what is none."""
    with _failures_of(name), path.open(encoding="utf-8", newline="\n") as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                raise FileError(f"{name}, line {number}: not JSON: {line[:60]!r}") from None
            if not isinstance(record, dict):
                raise FileError(f"{name}, line {number}: an object expected, got {line[:60]!r}")
            yield number, record
