"""Open sources as tables: files, frames and arrays in DuckDB, or a table of Spark."""

from __future__ import annotations

import csv
import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unsample._archives import DAMAGED, open_plain, read_arrays
from unsample._files import find_files, is_file, temporary_folder
from unsample.errors import FileError, InputError, UnsampleError
from unsample.tables._engines import DuckDB, Spark, kind_of, with_nulls
from unsample.tables._layout import NUMBER, Columns
from unsample.tables._lines import TextFile, refuse_unreadable
from unsample.tables._sql import COUNTS, DIALECTS
from unsample.tables._text import (
    DELIMITERS,
    Header,
    check_width,
    delimited,
    open_text,
    separator_hint,
)

#: Ending of a name -> its format; other names (``.txt``) leave it to the content.
ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
}  # fmt: skip
_MARKS = {b"PAR1": "parquet", b"PK\x03\x04": "npz", b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz"}
_BOM = b"\xef\xbb\xbf"
#: How an array begins that `numpy.save` wrote, without the name of a column.
_ONE_ARRAY = b"\x93NUMPY"
_LIST_OF_OBJECTS = re.compile(rb"\[\s*\{")
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
    #: The files of text that the rows come from.
    texts: tuple[TextFile, ...] = ()
    #: The columns of each part (a file, or the table of a model), by what messages call it.
    parts: Mapping[str, Collection[str]] = field(default_factory=dict)


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
        duck = DuckDB(stack)
        name = _named(sources)
        why = ""
        failures: tuple[type[Exception], ...] = (*DAMAGED, csv.Error, *duck.failures)
        try:
            tables = {
                model: _table(duck, source, wanted=wanted, stack=stack)
                for model, source in sources.items()
            }
            yield _together(duck, tables)
        except UnsampleError:
            raise
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
    parts = source if isinstance(source, list | tuple) else [source]
    return [os.fspath(path) for path in parts] if all(map(_is_path, parts)) else []


def _table(duck: DuckDB, source: Any, *, wanted: Wanted, stack: ExitStack) -> OpenedTable:
    """Return one source, of any kind but those of Spark, as a table."""
    if paths := _paths(source):
        try:
            return _of_files(duck, paths, wanted=wanted, stack=stack)
        except FileError as problem:
            is_list = not isinstance(source, str | os.PathLike)
            are_numbers = all(re.fullmatch(NUMBER, path) for path in paths)
            if not (is_list or are_numbers) or any(map(os.path.exists, paths)):
                raise
            raise FileError(
                f"{problem}; texts in a list are files, and ranks are numbers"
            ) from None
    if isinstance(source, Mapping):
        arrays = {str(key): with_nulls(each) for key, each in source.items()}
        return _of_arrays(duck, arrays, name="the table", wanted=wanted)
    if _is_arrow_stream(source):
        return _of_arrow_stream(duck, source, wanted=wanted)
    return _of_frame(duck, source, wanted=wanted)


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
    # A column that a table does not have is empty there; where it is asked for, that is refused.
    rows = " UNION ALL BY NAME ".join(
        f"SELECT *, {duck.bind(model)} AS {SOURCE_MODEL} FROM {table.rows}"
        for model, table in tables.items()
    )
    name = ", ".join(dict.fromkeys(table.name for table in tables.values()))
    hint = next((table.hint for table in tables.values() if table.hint), "")
    kinds = duck.kinds(f"({rows})")
    columns = [column for table in tables.values() for column in table.kinds]
    _check_kept(name, kinds, columns=columns)
    parts: dict[str, Collection[str]] = {}
    for model, table in tables.items():
        parts |= table.parts or {f"the table of {model}": table.kinds.keys()}
    return OpenedTable(
        name,
        duck,
        rows=f"({rows}) AS t",
        kinds=kinds,
        hint=hint,
        texts=tuple(text for table in tables.values() for text in table.texts),
        parts=parts,
    )


def _check_kept(name: str, kinds: Collection[str], *, columns: Iterable[str]) -> None:
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
    parts = {f"the frame of {model}": each.columns for model, each in sources.items()}
    return OpenedTable("the frame", Spark(frame.sparkSession), rows=view, kinds=kinds, parts=parts)


def _of_arrow_stream(duck: DuckDB, stream: Any, *, wanted: Wanted) -> OpenedTable:
    """Return what DuckDB reads of a stream, kept: it may not give its rows twice."""
    schema = stream.projected_schema if hasattr(stream, "projected_schema") else stream.schema
    there = ", ".join(map(duck.dialect.name, _read_of(schema.names, wanted)))
    rows = duck.keep(f"SELECT {there} FROM {duck.register(stream)}")
    kinds_read = duck.kinds(rows)
    kinds = {name: kinds_read.get(name, "") for name in schema.names}
    return OpenedTable("the table", duck, rows=rows, kinds=kinds)


def _read_of(columns: Sequence[Any], wanted: Wanted) -> list[Any]:
    """Return the columns of a frame that are read; all, where none seems to be wanted."""
    if len(set(columns)) != len(columns):
        listed = ", ".join(map(str, columns))
        raise InputError(f"the frame has two columns of one name: {listed}")
    return [column for column in columns if wanted(column)] or list(columns)


def _of_frame(duck: DuckDB, frame: Any, *, wanted: Wanted) -> OpenedTable:
    """Return a frame as a table; of its columns, those are read that may be asked for."""
    name = "the frame"
    lazy = hasattr(frame, "collect_schema")
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
        return _of_arrays(duck, arrays, name=name, wanted=wanted)
    _check_kept(name, kinds, columns=filter(wanted, map(str, columns)))
    if type(frame).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow"):
        # Others may not give their rows twice at a time.
        quoted_names = ", ".join(map(duck.dialect.name, there))
        rows = duck.keep(f"SELECT {quoted_names} FROM {rows}")
    kinds = {str(column): kinds.get(str(column), "") for column in columns}
    return OpenedTable(name, duck, rows=rows, kinds=kinds)


class _Stream:
    """A frame that shows DuckDB nothing but its Arrow stream, as often as it is asked for."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def _of_arrays(duck: DuckDB, arrays: Columns, *, name: str, wanted: Wanted) -> OpenedTable:
    """Return arrays as a table; those that `RankCounts.save` wrote are kept as they are."""
    if "format" in arrays:
        return OpenedTable(name, duck, rows="", kinds={}, saved=arrays)
    sizes = {values.size for values in arrays.values()} - {1} or {1}
    if len(sizes) > 1 or any(values.ndim > 1 for values in arrays.values()):
        shapes = ", ".join(f"{key} {values.shape}" for key, values in arrays.items())
        raise FileError(
            f"the arrays of {name} must be one-dimensional and equally long, or single values, "
            f"got {shapes}"
        )
    (size,) = sizes
    whole = {key: np.broadcast_to(values.reshape(-1), size) for key, values in arrays.items()}
    if size and whole:
        rows = duck.register({key: whole[key] for key in _read_of([*whole], wanted)})
        kinds_read = duck.kinds(rows)
        _check_kept(name, kinds_read, columns=filter(wanted, whole))
        kinds = {key: kinds_read.get(key, "") for key in whole}
        return OpenedTable(name, duck, rows=rows, kinds=kinds)
    raise InputError(f"{name} has no rows")


# -- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    """A file that can be read as it is."""

    path: Path
    #: What messages call it.
    name: str


def _of_files(
    duck: DuckDB, paths: Sequence[str], *, wanted: Wanted, stack: ExitStack
) -> OpenedTable:
    """Return files as one table; all must have one format."""
    files = [file for path in paths for file in _files_of(path, stack)]
    name = ", ".join(dict.fromkeys(file.name for file in files))
    file_of_format = {_format_of(file.path, file.name): file.name for file in files}
    if len(file_of_format) > 1:
        listed = " and ".join(f"{file} ({kind})" for kind, file in file_of_format.items())
        raise FileError(f"{name} must be files of one format, got {listed}; name fewer of them")
    (kind,) = file_of_format
    if kind == "npz":
        return _of_archive(duck, files, wanted=wanted)
    readable = [replace(file, path=_named_in_utf_8(file.path, stack)) for file in files]
    if kind == "parquet":
        return _of_parquet(duck, readable, name=name, wanted=wanted)
    failures: tuple[type[Exception], ...] = (UnicodeDecodeError, *duck.failures)
    texts = [TextFile(file.path, file.name, format=kind) for file in readable]
    try:
        if kind == "json":
            return _of_json_lines(duck, texts, name=name, wanted=wanted)
        return _of_delimited(duck, texts, name=name, wanted=wanted, stack=stack)
    except failures:
        # The engine tells of its own options.
        refuse_unreadable(texts)
        raise


def _of_archive(duck: DuckDB, files: Sequence[_File], *, wanted: Wanted) -> OpenedTable:
    """Return the arrays of an NPZ file as a table."""
    file = files[0]
    if len(files) > 1:
        raise FileError(f"{file.name} must be read by itself; add up RankCounts")
    with file.path.open("rb") as stream:
        arrays = read_arrays(stream, file.name)
    if "format" not in arrays:  # counts of many models are many arrays
        check_width(file.name, len(arrays))
    return _of_arrays(duck, arrays, name=file.name, wanted=wanted)


def _of_parquet(duck: DuckDB, files: Sequence[_File], *, name: str, wanted: Wanted) -> OpenedTable:
    """Return Parquet files as a table; folders such as ``model=A`` give a column."""
    listed = duck.bind(_patterns(files))
    schema = duck.ask(f"SELECT DISTINCT file_name, name FROM parquet_schema({listed})")
    columns = schema["name"].tolist()
    whole = (
        f"(SELECT * FROM read_parquet({listed}, hive_types_autocast = false, "
        "union_by_name = true)) AS t"
    )
    kinds = duck.kinds(whole)
    check_width(name, len(kinds))
    _check_kept(name, kinds, columns=filter(wanted, columns))
    of_files = zip(schema["file_name"].tolist(), columns, strict=True)
    return OpenedTable(
        name,
        duck,
        rows=whole,
        kinds=kinds,
        format="parquet",
        parts=_columns_by_file(files, of_files),
    )


def _of_json_lines(
    duck: DuckDB, texts: Sequence[TextFile], *, name: str, wanted: Wanted
) -> OpenedTable:
    """Return files with an object in each line as a table, all values as text."""
    listed = duck.bind(_patterns(texts))
    how = f"{listed}, format = 'newline_delimited'"
    keys = duck.ask(
        "SELECT DISTINCT filename, UNNEST(JSON_KEYS(json)) AS key "
        f"FROM read_json_objects({how}, filename = true)"
    )
    columns = sorted({*keys["key"].tolist()})
    if not columns:
        refuse_unreadable(texts)
        raise FileError(f"{name} is empty; a table has an object in every line")
    check_width(name, len(columns))
    of_small_letters = {column.casefold(): column for column in columns}
    _check_kept(name, of_small_letters.values(), columns=columns)
    types = ", ".join(f"{DIALECTS['duckdb'].name(key)}: 'VARCHAR'" for key in columns)
    rows = f"(SELECT * FROM read_json({how}, records = true, columns = {{{types}}})) AS t"
    of_files = zip(keys["filename"].tolist(), keys["key"].tolist(), strict=True)
    parts = _columns_by_file(texts, of_files)
    return _kept_text(duck, rows, name=name, wanted=wanted, texts=texts, parts=parts)


def _of_delimited(
    duck: DuckDB, texts: list[TextFile], *, name: str, wanted: Wanted, stack: ExitStack
) -> OpenedTable:
    """Return files of delimited text as a table, all values as text.

    Each of ``texts`` gets the names of its columns, in place.
    """
    mark = DELIMITERS[texts[0].format]
    #: Files with the same header are read by one call.
    files_of_header: dict[Header, list[TextFile]] = {}
    for place, text in enumerate(texts):
        header, plain = open_text(text.path, text.name, mark=mark, stack=stack)
        texts[place] = replace(text, columns=header.names)
        files_of_header.setdefault(header, []).append(replace(text, path=plain))
    calls: list[str] = []
    for header, files in files_of_header.items():
        rows = delimited(duck.bind(_patterns(files)), header, mark=mark)
        calls.append(f"SELECT * FROM {rows}")
    # A column that a file does not have is empty there; where it is asked for, that is refused.
    whole = f"({' UNION ALL BY NAME '.join(calls)}) AS t"
    parts = {text.name: text.columns for text in texts}
    hint = next(filter(None, (separator_hint(header.names) for header in files_of_header)), "")
    return _kept_text(duck, whole, name=name, wanted=wanted, texts=texts, parts=parts, hint=hint)


def _kept_text(
    duck: DuckDB,
    rows: str,
    *,
    name: str,
    wanted: Wanted,
    texts: Sequence[TextFile],
    parts: Mapping[str, Collection[str]],
    hint: str = "",
) -> OpenedTable:
    """Return rows of text as a table, kept: text takes long to read, and is read once."""
    kinds = duck.kinds(rows)
    check_width(name, len(kinds))
    columns = [column for part in parts.values() for column in part if column]
    _check_kept(name, kinds, columns=filter(wanted, columns))
    there = [duck.dialect.name(column) for column in kinds if wanted(column)]
    if there:
        rows = duck.keep(f"SELECT {', '.join(there)} FROM {rows}")
    return OpenedTable(
        name,
        duck,
        rows=rows,
        kinds=kinds,
        hint=hint,
        format=texts[0].format,
        texts=tuple(texts),
        parts=parts,
    )


def _columns_by_file(
    files: Sequence[_File | TextFile], columns: Iterable[tuple[str, str]]
) -> dict[str, set[str]]:
    """Return the columns of each file, from pairs of its path and a column."""
    name_of_path = {str(file.path): file.name for file in files}
    columns_of: dict[str, set[str]] = {file.name: set() for file in files}
    for path, column in columns:
        columns_of.setdefault(name_of_path.get(path, path), set()).add(column)
    return columns_of


def _patterns(files: Sequence[_File | TextFile]) -> list[str]:
    """Return the paths of files as the engine takes them, which reads every path as a pattern."""
    return [glob.escape(str(file.path)) for file in files]


def _files_of(path: str, stack: ExitStack) -> list[_File]:
    """Return the files that a path, a pattern or a folder stands for.

    What is compressed, or can be read only once, is written to a file.
    """
    if path == "-":
        if sys.stdin is None:
            raise FileError("standard input must be open to be read, got a closed one; give a file")
        return [_File(_spooled(sys.stdin.buffer, stack), "standard input")]
    files = []
    for file in find_files(path):
        readable = file
        packed = file.suffix.lower() in _MARKS.values()
        if packed or not is_file(file):
            suffix = file.with_suffix("").suffix if packed else ""
            with open_plain(file) as stream:
                readable = _spooled(stream, stack, suffix=suffix)
        files.append(_File(readable, repr(path if is_file(path) else str(file))))
    return files


def _spooled(stream: Any, stack: ExitStack, *, suffix: str = "") -> Path:
    """Return a file with the content of a stream, of the name ``table``."""
    folder = stack.enter_context(temporary_folder())
    path = Path(folder, f"table{suffix}")
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return path


def _named_in_utf_8(path: Path, stack: ExitStack) -> Path:
    """Return a path that the engine can be told: a link to a file whose name is not UTF-8.

    Its folders keep their names where they can, for ``model=A`` may be one of them.
    """
    plain = os.fsencode(path.absolute()).decode("utf-8", "backslashreplace")
    if plain == str(path.absolute()):
        return path
    folder = stack.enter_context(temporary_folder())
    link = Path(folder, *Path(plain).parts[1:])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(path.absolute())
    return link


def _format_of(path: Path, name: str) -> str:
    """Return the format of a file: its content tells, then its name."""
    with path.open("rb") as stream:
        start = stream.read(1 << 16)
    if not start.strip(b"\r\n"):
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    if start.startswith(_ONE_ARRAY):
        raise FileError(
            f"{name} must name its columns, got one array; save it by "
            "numpy.savez(path, rank=...), or pass the array itself in Python"
        )
    kind = next((kind for mark, kind in _MARKS.items() if start.startswith(mark)), "")
    if kind.startswith("."):
        raise FileError(
            f"{name} is compressed; give a file whose name ends in {kind}, or unpack it"
        )
    plain = start.removeprefix(_BOM).lstrip()
    first = plain.split(b"\n", 1)[0]
    of_objects = first[:1] == b"{" or _LIST_OF_OBJECTS.match(plain) is not None
    kind = kind or ENDINGS.get(path.suffix.lower(), "json" if of_objects else "")
    if kind == "json" and first[:1].isdigit():  # one rank a line
        kind = "csv"
    return kind or ("tsv" if b"\t" in first else "csv")
