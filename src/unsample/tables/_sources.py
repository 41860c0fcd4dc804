"""Open sources as tables: files, frames and arrays in DuckDB, or a table of Spark."""

from __future__ import annotations

import csv
import glob
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unsample._archives import DAMAGED, open_plain, read_arrays
from unsample._files import find_files, is_file, temporary_folder
from unsample.errors import FileError, InputError, UnsampleError
from unsample.tables._engines import DuckDB, Spark, kind_of, with_nulls
from unsample.tables._layout import Columns
from unsample.tables._sql import COUNTS, DIALECTS
from unsample.tables._text import DELIMITERS, Header, check_width, delimited, open_text

#: Ending of a name -> its format; other names (``.txt``) leave it to the content.
_ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
}  # fmt: skip
_MARKS = {b"PAR1": "parquet", b"PK\x03\x04": "npz", b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz"}
_BOM = b"\xef\xbb\xbf"
#: The column that names the model of each of several tables.
SOURCE_MODEL = "unsample_model"
_NO_SOURCE = (
    "source must be a path, a list of paths, a mapping of arrays, or a data frame of pandas, "
    "Polars, PyArrow, DuckDB or PySpark, got {}; pass plain sequences of ranks to unsample.estimate"
)

#: Whether a column of some name may be asked for.
Wanted: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True)
class OpenedTable:
    """Rows in an engine: what a query has after FROM, and the kind of each column."""

    name: str
    engine: DuckDB | Spark
    rows: str
    kinds: Mapping[str, str]
    #: The likely reason why a column is missing.
    hint: str = ""
    #: The format of files, such as "csv".
    format: str = ""
    #: Saved counts, where there are no rows.
    saved: Columns | None = None


def is_table(value: object) -> bool:
    """Return whether ``value`` stands for a table: paths, a frame, or a mapping of columns."""
    paths = value if isinstance(value, list | tuple) and value else [value]
    # The class is asked, because a lazy frame would have to find out to answer.
    frame = any(hasattr(type(value), name) for name in ("columns", "column_names"))
    return (
        frame or _is_arrow_stream(value) or isinstance(value, Mapping) or all(map(_is_path, paths))
    )


def _is_arrow_stream(value: object) -> bool:
    """Return whether ``value`` is a `Dataset`, `Scanner` or `RecordBatchReader` of PyArrow.

    It has a schema and no columns, and may give its rows only once.
    """
    kind = type(value)
    has_schema = hasattr(kind, "schema") or hasattr(kind, "projected_schema")
    has_columns = hasattr(kind, "columns") or hasattr(kind, "column_names")
    return kind.__module__.startswith("pyarrow.") and has_schema and not has_columns


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


@contextmanager
def opened(sources: Mapping[str, Any], wanted: Wanted) -> Iterator[OpenedTable]:
    """Give the table that sources stand for, of which columns that are ``wanted`` are read.

    Several sources are those of models, which a column then names. What cannot be read is refused
    in one line, whenever it is found out.
    """
    for source in sources.values():
        if not is_table(source) or type(source).__module__.startswith("dask"):
            raise InputError(_NO_SOURCE.format(type(source).__name__))
    with ExitStack() as stack:
        spark = [type(source).__module__.startswith("pyspark.") for source in sources.values()]
        if any(spark):
            if not all(spark):
                raise InputError("tables of models must all be in Spark, or none, got some")
            yield _of_spark(sources, stack)
            return
        duck, name, why = DuckDB(stack), _named(sources), ""
        failures: tuple[type[Exception], ...] = (*DAMAGED, csv.Error, *duck.failures)
        try:
            tables = {m: _table(duck, each, wanted, stack) for m, each in sources.items()}
            yield _together(duck, tables)
        except UnsampleError:
            raise
        except UnicodeDecodeError:
            why = f"{name} is not UTF-8 text; it may be truncated, compressed or of another format"
        except failures as failure:
            said = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
            why = f"cannot read {name}: {_in_one_line(said)}"
        # The engine's own error would keep its connection alive.
        if why:
            raise FileError(why)


def _named(sources: Mapping[str, Any]) -> str:
    """Return what sources are called in messages."""
    paths = [path for each in sources.values() for path in _paths(each)]
    return ", ".join(map(repr, paths)).replace("'-'", "standard input") or "the table"


def _paths(source: Any) -> list[str]:
    """Return the paths that a source is; none where it is something else."""
    held = source if isinstance(source, list | tuple) else [source]
    return [os.fspath(path) for path in held] if all(map(_is_path, held)) else []


def _table(duck: DuckDB, source: Any, wanted: Wanted, stack: ExitStack) -> OpenedTable:
    if paths := _paths(source):
        try:
            return _of_files(duck, paths, wanted, stack)
        except FileError as problem:
            if isinstance(source, str | os.PathLike) or any(map(os.path.exists, paths)):
                raise
            raise FileError(
                f"{problem}; texts in a list are files, and ranks are numbers"
            ) from None
    if isinstance(source, Mapping):
        arrays = {str(key): with_nulls(each) for key, each in source.items()}
        return _of_arrays(duck, "the table", arrays, wanted)
    if _is_arrow_stream(source):
        return _of_arrow_stream(duck, source, wanted)
    return _of_frame(duck, source, wanted)


def _together(duck: DuckDB, tables: Mapping[str, OpenedTable]) -> OpenedTable:
    """Return tables of models as one."""
    if set(tables) == {""}:
        return tables[""]
    for table in tables.values():
        if table.saved is not None or {*COUNTS} <= {*table.kinds}:
            raise InputError(
                f"{table.name} must hold ranks or scores to be compared, got counts; count all "
                "models in one table (by='model'), or load each: RankCounts.load"
            )
    # A column that a table does not have is empty there, and refused like any other empty cell.
    rows = " UNION ALL BY NAME ".join(
        f"SELECT *, {duck.bind(model)} AS {SOURCE_MODEL} FROM {table.rows}"
        for model, table in tables.items()
    )
    name = ", ".join(dict.fromkeys(table.name for table in tables.values()))
    hint = next((table.hint for table in tables.values() if table.hint), "")
    kinds = duck.kinds(f"({rows})")
    _check_kept(name, kinds, [column for table in tables.values() for column in table.kinds])
    return OpenedTable(name, duck, f"({rows}) AS t", kinds, hint)


def _check_kept(name: str, kinds: Collection[str], columns: Iterable[str]) -> None:
    """Refuse columns that the engine took for others, capital letters being small ones to it.

    It renames one of them, or makes them one, and what is asked for by name would not be there.
    """
    folded = {kind.casefold(): kind for kind in kinds}
    for column in columns:
        if column not in kinds and column.casefold() in folded:
            raise FileError(
                f"{name} has two columns of one name, {folded[column.casefold()]!r} and "
                f"{column!r}, capital letters being the same as small ones; rename one of them"
            )


def _in_one_line(failure: str) -> str:
    """Return what an engine says before it gives advice on its own options."""
    lines = []
    for line in failure.splitlines():
        if line.startswith(("Possible", "Try ", "LINE ", "  file =")):
            break
        lines.append(line.strip())
    return " ".join(filter(None, lines))[:300]


# -- frames and arrays ---------------------------------------------------------------------------


def _of_spark(sources: Mapping[str, Any], stack: ExitStack) -> OpenedTable:
    from pyspark.sql.functions import lit

    frame, *others = (
        each if set(sources) == {""} else each.withColumn(SOURCE_MODEL, lit(model))
        for model, each in sources.items()
    )
    for other in others:
        frame = frame.unionByName(other, allowMissingColumns=True)
    view = f"unsample_{os.urandom(8).hex()}"
    frame.createOrReplaceTempView(view)
    stack.callback(frame.sparkSession.catalog.dropTempView, view)
    kinds = {column: kind_of(kind) for column, kind in frame.dtypes}
    return OpenedTable("the frame", Spark(frame.sparkSession), view, kinds)


def _of_arrow_stream(duck: DuckDB, stream: Any, wanted: Wanted) -> OpenedTable:
    """Return what DuckDB reads of a stream, kept: it may not give its rows twice."""
    schema = stream.projected_schema if hasattr(stream, "projected_schema") else stream.schema
    there = ", ".join(map(duck.dialect.name, _read_of(schema.names, wanted)))
    rows = duck.keep(f"SELECT {there} FROM {duck.register(stream)}")
    found = duck.kinds(rows)
    return OpenedTable(
        "the table", duck, rows, {name: found.get(name, "") for name in schema.names}
    )


def _read_of(columns: Sequence[Any], wanted: Wanted) -> list[Any]:
    """Return the columns of a frame that are read; all, where none seems to be wanted."""
    if len(set(columns)) != len(columns):
        listed = ", ".join(map(str, columns))
        raise InputError(f"the frame has two columns of one name: {listed}")
    return [column for column in columns if wanted(column)] or list(columns)


def _of_frame(duck: DuckDB, frame: Any, wanted: Wanted) -> OpenedTable:
    name, lazy = "the frame", hasattr(frame, "collect_schema")
    columns = list(
        frame.collect_schema() if lazy else getattr(frame, "column_names", None) or frame.columns
    )
    there = _read_of(columns, wanted)
    if lazy:
        frame = frame.lazy().select(there).collect(engine="streaming")
    elif hasattr(frame, "iloc"):
        frame = frame[there]
    elif type(frame).__module__.startswith("pyarrow."):
        frame = frame.select(there)
    try:
        rows = duck.register(_Stream(frame))
        kinds = duck.kinds(rows)
    except Exception as problem:
        if not hasattr(frame, "iloc"):
            raise InputError(_NO_SOURCE.format(type(frame).__name__)) from problem
        # Arrow is not there, or takes no columns of several types.
        arrays = {str(each): frame[each].to_numpy() for each in there}
        return _of_arrays(duck, name, arrays, wanted)
    _check_kept(name, kinds, filter(wanted, map(str, columns)))
    if type(frame).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow"):
        # Others may not give their rows twice at a time.
        quoted_names = ", ".join(map(duck.dialect.name, there))
        rows = duck.keep(f"SELECT {quoted_names} FROM {rows}")
    kinds = {str(column): kinds.get(str(column), "") for column in columns}
    return OpenedTable(name, duck, rows, kinds)


class _Stream:
    """A frame that shows DuckDB nothing but its Arrow stream, as often as it is asked for."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def _of_arrays(duck: DuckDB, name: str, arrays: Columns, wanted: Wanted) -> OpenedTable:
    """Return arrays as a table; those that `RankCounts.save` wrote are kept as they are."""
    if "format" in arrays:
        return OpenedTable(name, duck, "", {}, saved=arrays)
    sizes = {values.size for values in arrays.values()} - {1} or {1}
    if len(sizes) > 1 or any(values.ndim > 1 for values in arrays.values()):
        shapes = ", ".join(f"{key} {values.shape}" for key, values in arrays.items())
        raise FileError(
            f"the arrays of {name} must be one-dimensional and equally long, or single values, "
            f"got {shapes}"
        )
    (size,) = sizes
    whole = {key: np.broadcast_to(each.reshape(-1), size) for key, each in arrays.items()}
    if size and whole:
        rows = duck.register({key: whole[key] for key in _read_of([*whole], wanted)})
        kinds = duck.kinds(rows)
        _check_kept(name, kinds, filter(wanted, whole))
        return OpenedTable(name, duck, rows, {key: kinds.get(key, "") for key in whole})
    raise InputError(f"{name} has no rows")


# -- files ---------------------------------------------------------------------------------------


def _of_files(duck: DuckDB, paths: Sequence[str], wanted: Wanted, stack: ExitStack) -> OpenedTable:
    """Return files as one table."""
    files = [file for path in paths for file in _files_of(path, stack)]
    name = ", ".join(dict.fromkeys(label for _, label in files))
    kinds: dict[str, str] = {}
    #: Files that one call reads: text with one header, or all others.
    alike: dict[Header, list[str]] = {}
    for path, label in files:
        kind = _format_of(path, label)
        kinds[kind] = label
        if kind == "npz":
            if len(files) > 1:
                raise FileError(f"{label} must be read by itself; add up RankCounts")
            with path.open("rb") as stream:
                arrays = read_arrays(stream, label)
            if "format" not in arrays:  # counts of many models are many arrays
                check_width(label, len(arrays))
            return _of_arrays(duck, label, arrays, wanted)
        header, readable = Header(), path
        if kind in DELIMITERS:
            header, readable = open_text(path, label, DELIMITERS[kind], stack)
        alike.setdefault(header, []).append(glob.escape(str(readable)))
    if len(kinds) > 1:
        found = " and ".join(f"{file} ({kind})" for kind, file in kinds.items())
        raise FileError(f"{name} must be files of one format, got {found}; name fewer of them")
    parts, hint, columns = [], "", list[str]()
    for header, patterns in alike.items():
        listed = duck.bind(patterns)
        if kind == "parquet":  # folders such as ``model=A`` give a column
            held = duck.ask(f"SELECT DISTINCT name FROM parquet_schema({listed})")
            columns += held["name"].tolist()
            rows = f"read_parquet({listed}, hive_types_autocast = false, union_by_name = true)"
        elif kind == "json":
            rows = _json_lines(duck, listed, name)
        else:
            columns += header.names
            rows, hint = delimited(listed, header, DELIMITERS[kind])
        parts.append(f"SELECT * FROM {rows}")
    # A column that a file does not have is empty there, and refused like any other empty cell.
    whole = f"({' UNION ALL BY NAME '.join(parts)}) AS t"
    found_kinds = duck.kinds(whole)
    check_width(name, len(found_kinds))
    _check_kept(name, found_kinds, filter(wanted, columns))
    if kind != "parquet":  # text takes long to read, and is read once
        there = [column for column in found_kinds if wanted(column)]
        if there:
            whole = duck.keep(f"SELECT {', '.join(map(duck.dialect.name, there))} FROM {whole}")
    return OpenedTable(name, duck, whole, found_kinds, hint, kind)


def _files_of(path: str, stack: ExitStack) -> list[tuple[Path, str]]:
    """Return the files that a path, a pattern or a folder stands for, and what to call them.

    What is compressed, or can be read only once, is written to a file.
    """
    if path == "-":
        return [(_spooled(sys.stdin.buffer, stack), "standard input")]
    found = []
    for file in find_files(path):
        readable, packed = file, file.suffix.lower() in _MARKS.values()
        if packed or not is_file(file):
            with open_plain(file) as stream:
                readable = _spooled(stream, stack, file.with_suffix("").suffix if packed else "")
        found.append((readable, repr(path if is_file(path) else str(file))))
    return found


def _spooled(stream: Any, stack: ExitStack, suffix: str = "") -> Path:
    folder = stack.enter_context(temporary_folder())
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
    kind = kind or _ENDINGS.get(path.suffix.lower(), "json" if first[:1] == b"{" else "")
    if kind == "json" and first[:1].isdigit():  # one rank a line
        kind = "csv"
    return kind or ("tsv" if b"\t" in first else "csv")


def _json_lines(duck: DuckDB, listed: str, name: str) -> str:
    """Read an object in each line, all values as text."""
    how = f"{listed}, format = 'newline_delimited'"
    keys = f"SELECT DISTINCT UNNEST(JSON_KEYS(json)) AS key FROM read_json_objects({how})"
    found = sorted(duck.ask(keys)["key"].tolist())
    if not found:
        raise FileError(f"{name} is empty; a table has an object in every line")
    check_width(name, len(found))
    _check_kept(name, {each.casefold(): each for each in found}.values(), found)
    columns = ", ".join(f"{DIALECTS['duckdb'].name(key)}: 'VARCHAR'" for key in found)
    return f"read_json({how}, records = true, columns = {{{columns}}})"
