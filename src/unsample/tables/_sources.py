"""What a source stands for: files, frames and arrays in DuckDB, or a table of Spark."""

from __future__ import annotations

import csv
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import DAMAGED, open_plain, read_arrays
from unsample._files import find_files, is_file
from unsample.errors import FileError, InputError, UnsampleError
from unsample.tables._engines import DuckDB, Spark, kind_of
from unsample.tables._layout import Columns
from unsample.tables._sql import COUNTS, DIALECTS, quoted

#: Ending of a name -> its format; other names (``.txt``) leave it to the content.
_ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
}  # fmt: skip
_MARKS = {b"PAR1": "parquet", b"PK\x03\x04": "npz", b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz"}
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BOM = b"\xef\xbb\xbf"
#: The column that names the model of each of several tables.
SOURCE_MODEL = "unsample_model"
_NO_SOURCE = (
    "source must be a path, a list of paths, a mapping of arrays, or a data frame of pandas, "
    "Polars, PyArrow, DuckDB or PySpark, got {}; pass plain sequences of ranks to unsample.estimate"
)


@dataclass(frozen=True)
class Table:
    """Rows in an engine: what can stand behind FROM, and the kind of each column."""

    name: str
    engine: DuckDB | Spark
    rows: str
    kinds: Mapping[str, str]
    #: What a missing column may come from.
    hint: str = ""
    #: Counts that were saved in place of rows.
    saved: Columns | None = None


def is_table(value: object) -> bool:
    """Return whether ``value`` stands for a table: paths, a frame, or a mapping of columns."""
    paths = value if isinstance(value, list | tuple) and value else [value]
    # The class is asked, because a lazy frame would have to find out to answer.
    frame = any(hasattr(type(value), name) for name in ("columns", "column_names"))
    return frame or isinstance(value, Mapping) or all(map(_is_path, paths))


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


@contextmanager
def opened(sources: Mapping[str, Any], wanted: Sequence[str]) -> Iterator[Table]:
    """Give the table that sources stand for, of which the columns that are ``wanted`` are read.

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


def _table(duck: DuckDB, source: Any, wanted: Sequence[str], stack: ExitStack) -> Table:
    if paths := _paths(source):
        return _of_files(duck, paths, wanted, stack)
    if isinstance(source, Mapping):
        arrays = {str(key): np.asarray(each) for key, each in source.items()}
        return _of_arrays(duck, "the table", arrays)
    return _of_frame(duck, source, wanted)


def _together(duck: DuckDB, tables: Mapping[str, Table]) -> Table:
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
        f"SELECT *, {quoted(model)} AS {SOURCE_MODEL} FROM {table.rows}"
        for model, table in tables.items()
    )
    name = ", ".join(dict.fromkeys(table.name for table in tables.values()))
    hint = next((table.hint for table in tables.values() if table.hint), "")
    return Table(name, duck, f"({rows}) AS t", duck.kinds(f"({rows})"), hint)


def _in_one_line(failure: str) -> str:
    """Return what an engine says before it gives advice on its own options."""
    lines = []
    for line in failure.splitlines():
        if line.startswith(("Possible", "Try ", "LINE ", "  file =")):
            break
        lines.append(line.strip())
    return " ".join(filter(None, lines))[:300]


# -- frames and arrays ---------------------------------------------------------------------------


def _of_spark(sources: Mapping[str, Any], stack: ExitStack) -> Table:
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
    return Table("the frame", Spark(frame.sparkSession), view, kinds)


def _of_frame(duck: DuckDB, frame: Any, wanted: Sequence[str]) -> Table:
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
    try:
        rows = duck.register(_Stream(frame))
        kinds = duck.kinds(rows)
    except Exception as problem:
        if not hasattr(frame, "iloc"):
            raise InputError(_NO_SOURCE.format(type(frame).__name__)) from problem
        # Arrow is not there, or takes no columns of several types.
        return _of_arrays(duck, name, {str(each): frame[each].to_numpy() for each in there})
    if type(frame).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow"):
        # Others may not give their rows twice at a time.
        quoted_names = ", ".join(map(duck.dialect.name, there))
        rows = duck.keep(f"SELECT {quoted_names} FROM {rows}")
    kinds = {str(column): kinds.get(str(column), "") for column in columns}
    return Table(name, duck, rows, kinds)


class _Stream:
    """A frame that shows DuckDB nothing but its Arrow stream, as often as it is asked for."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def _of_arrays(duck: DuckDB, name: str, arrays: Columns) -> Table:
    """Return arrays as a table; those that `RankCounts.save` wrote are kept as they are."""
    if "format" in arrays:
        return Table(name, duck, "", {}, saved=arrays)
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
        rows = duck.register({key: np.ascontiguousarray(each) for key, each in whole.items()})
        return Table(name, duck, rows, duck.kinds(rows))
    raise InputError(f"{name} has no rows")


# -- files ---------------------------------------------------------------------------------------


def _of_files(duck: DuckDB, paths: Sequence[str], wanted: Sequence[str], stack: ExitStack) -> Table:
    """Return files as one table."""
    files = [file for path in paths for file in _files_of(path, stack)]
    name = ", ".join(dict.fromkeys(label for _, label in files))
    kinds: dict[str, str] = {}
    #: Files that one call reads: text with one header, or all others.
    alike: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for path, label in files:
        kind = _format_of(path, label)
        kinds[kind] = label
        if kind == "npz":
            if len(files) > 1:
                raise FileError(f"{label} must be read by itself; add up RankCounts")
            with path.open("rb") as stream:
                return _of_arrays(duck, label, read_arrays(stream, label))
        header = _header(path, label, kind) if kind in _DELIMITERS else ((), 0)
        alike.setdefault(header, []).append(quoted(glob.escape(str(path))))
    if len(kinds) > 1:
        found = " and ".join(f"{file} ({kind})" for kind, file in kinds.items())
        raise FileError(f"{name} must be files of one format, got {found}; name fewer of them")
    parts, hint = [], ""
    for (names, skip), places in alike.items():
        listed = f"[{', '.join(places)}]"
        if kind == "parquet":  # folders such as ``model=A`` give a column
            rows = f"read_parquet({listed}, hive_types_autocast = false, union_by_name = true)"
        elif kind == "json":
            rows = _json_lines(duck, listed, name)
        else:
            rows, hint = _delimited(listed, names, skip, _DELIMITERS[kind])
        parts.append(f"SELECT * FROM {rows}")
    # A column that a file does not have is empty there, and refused like any other empty cell.
    whole = f"({' UNION ALL BY NAME '.join(parts)}) AS t"
    found_kinds = duck.kinds(whole)
    if kind != "parquet":  # text takes long to read, and is read once
        there = [column for column in found_kinds if column in wanted]
        if there:
            whole = duck.keep(f"SELECT {', '.join(map(duck.dialect.name, there))} FROM {whole}")
    return Table(name, duck, whole, found_kinds, hint)


def _files_of(path: str, stack: ExitStack) -> list[tuple[Path, str]]:
    """Return the files that a path, a pattern or a folder stands for, and what to call them.

    What is compressed, or can be read only once, is written to a file.
    """
    if path == "-":
        return [(_spooled(sys.stdin.buffer, stack), "standard input")]
    found = []
    for file in find_files(path):
        place, packed = file, file.suffix.lower() in _MARKS.values()
        if packed or not is_file(file):
            with open_plain(file) as stream:
                place = _spooled(stream, stack, file.with_suffix("").suffix if packed else "")
        found.append((place, repr(path if is_file(path) else str(file))))
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
    kind = kind or _ENDINGS.get(path.suffix.lower(), "json" if first[:1] == b"{" else "")
    if kind == "json" and first[:1].isdigit():  # one rank a line
        kind = "csv"
    return kind or ("tsv" if b"\t" in first else "csv")


def _header(path: Path, name: str, kind: str) -> tuple[tuple[str, ...], int]:
    """Return the names of the columns, and how many lines they take.

    A number alone in the first line is a rank, and no name.
    """
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=_DELIMITERS[kind], strict=True)
        names = tuple(cell.strip() for cell in next(filter(None, reader)))
        skip = reader.line_num
    if len(set(names)) != len(names):
        raise FileError(f"{name} has two columns of one name: {', '.join(names)}")
    alone = len(names) == 1 and names[0].lstrip("-").replace(".", "", 1).isdecimal()
    return (("rank",), 0) if alone else (names, skip)


def _delimited(listed: str, names: Sequence[str], skip: int, mark: str) -> tuple[str, str]:
    """Read text, all cells as text; and say what seems to separate cells, if it does not."""
    marks = [shown for mark, shown in _SEPARATORS.items() if mark in names[0]]
    hint = f"the separator seems to be {marks[0]}; write commas, or tabs in a .tsv" if marks else ""
    columns = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(len(names)))
    named = enumerate(map(DIALECTS["duckdb"].name, names))
    # An empty line is no row.
    filled = " WHERE c0 IS NOT NULL" if len(names) == 1 else ""
    return (
        f"(SELECT {', '.join(f'c{n} AS {column}' for n, column in named)} FROM read_csv("
        f"{listed}, columns = {{{columns}}}, auto_detect = false, header = false, "
        f"skip = {skip}, delim = '{mark}', quote = '\"', escape = '\"', "
        f"nullstr = '', strict_mode = true){filled})"
    ), hint


def _json_lines(duck: DuckDB, listed: str, name: str) -> str:
    """Read an object in each line, all values as text."""
    how = f"{listed}, format = 'newline_delimited'"
    keys = f"SELECT DISTINCT UNNEST(JSON_KEYS(json)) AS key FROM read_json_objects({how})"
    found = sorted(duck.ask(keys)["key"].tolist())
    if not found:
        raise FileError(f"{name} is empty; a table has an object in every line")
    columns = ", ".join(f"{DIALECTS['duckdb'].name(key)}: 'VARCHAR'" for key in found)
    return f"read_json({how}, records = true, columns = {{{columns}}})"
