"""Files as tables: one, a pattern of them, or a folder, streamed by an engine.

Files of text are read as text and turned into numbers by the query, so that every engine means the
same by the same file; a word among the numbers is then found again by its row.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unsample._checks import check_choice, suggest
from unsample._files import is_file, names_in
from unsample.errors import FileError
from unsample.tables.frames._engines import FileEngine, file_engine
from unsample.tables.frames._table import Part, Table

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["STREAMED_FORMATS", "SUFFIXES", "expand_pattern", "is_pattern", "open_files"]

#: Ending of a name -> the format that an engine streams.
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
STREAMED_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_TEXT = ("csv", "tsv")
#: Longer ones take seconds to understand, and no path is as long.
_LONGEST_PATTERN = 1024
#: Where engines may look beyond this machine: encrypted on the way, or stores they are set up for.
_SCHEMES = (
    "https", "s3", "s3a", "gs", "gcs", "r2", "az", "azure", "abfs", "abfss", "wasbs", "hdfs",
    "dbfs",
)  # fmt: skip
_WRITTEN = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "parquet": "Parquet"}


def is_pattern(path: str) -> bool:
    """Return whether a path stands for several files: a pattern, a folder or a remote address."""
    if is_file(path):
        return False  # a file may well have a bracket in its name
    return has_magic(path) or "://" in path or os.path.isdir(path)  # noqa: PTH112 - as is_file


def expand_pattern(pattern: str) -> list[str]:
    """Return the files that a pattern or a folder stands for, sorted; there must be one.

    A folder stands for all files below it; names that start with ``_`` or ``.`` are the marks and
    checksums of those who wrote it. Remote addresses are left to the engine.
    """
    if "://" in pattern:
        _check_address(pattern)
        return [pattern]
    if not is_pattern(pattern):
        found = [pattern]
    elif os.path.isdir(pattern):  # noqa: PTH112 - as is_file
        found = [str(path) for path in sorted(Path(pattern).rglob("*"))]
    else:
        found = _matches(pattern)
    files = [name for name in found if is_file(name) and Path(name).name[0] not in "._"]
    if not files:
        raise FileError(_nothing_found(pattern))
    return files


def _check_address(address: str) -> None:
    scheme = address.partition("://")[0].lower()
    if scheme not in _SCHEMES:
        hint = "give the path itself" if scheme == "file" else "fetch it first, and give the file"
        raise FileError(
            f"an address must begin with one of {', '.join(_SCHEMES)}, got {address!r}; {hint}"
        )


def _matches(pattern: str) -> list[str]:
    if len(pattern) > _LONGEST_PATTERN:
        raise FileError(
            f"a pattern of files must have at most {_LONGEST_PATTERN:,} letters, got "
            f"{len(pattern):,}; give their folder"
        )
    try:
        return sorted(glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob needs a root
    except (OSError, re.error) as problem:
        raise FileError(f"{pattern!r} must be a pattern of files: {problem}") from problem


def open_files(pattern: str, *, engine: str | None = None, file_format: str | None = None) -> Table:
    """Return the table that one file, a pattern, or a folder holds; nothing is read yet.

    Parameters
    ----------
    pattern
        ``runs/*.parquet``, ``runs/**/ranks.csv``, a folder, one file, or an address that the
        engine reads (``s3://...``).
    engine
        ``"duckdb"``, ``"polars"`` or ``"spark"``; by default the first of them that is installed
        and runs in this process.
    file_format
        ``"csv"``, ``"tsv"``, ``"jsonl"`` or ``"parquet"``; by default told by the names.
    """
    paths = expand_pattern(pattern)
    kind = _common_format(pattern, paths, file_format)
    reader = file_engine(engine)
    files = _Files(pattern, tuple(_File(path, kind, reader) for path in paths), reader)
    if kind in _TEXT and len(files.files) > 1:
        _require_one_kind_of_header(files)
    return Table(
        repr(pattern) if len(paths) > 1 else repr(paths[0]),
        files.files[0].schema,
        files.read,
        files.parts,
        error=FileError,
        text=kind in _TEXT,
        failures=reader.failures,
    )


@dataclass(frozen=True, eq=False)
class _File:
    path: str
    kind: str
    engine: FileEngine

    @cached_property
    def header(self) -> list[str] | None:
        """The names of a text file that has no header: a file of one rank a line."""
        if self.kind not in _TEXT or "://" in self.path:
            return None
        first = _first_line(self.path, "\t" if self.kind == "tsv" else ",")
        if not first:
            raise FileError(f"{self.path!r} is empty; a table starts with the names of its columns")
        if len(set(first)) != len(first):
            raise FileError(f"{self.path!r} has two columns of one name: {', '.join(first)}")
        return ["rank"] if len(first) == 1 and _is_number(first[0]) else None

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        import narwhals as nw

        try:
            native = self.engine.scan([self.path], self.kind, self.header)
            return dict(nw.from_native(native).collect_schema())
        except self.engine.failures as problem:
            raise FileError(_unreadable(self.path, self.kind, problem)) from problem

    def open_numbered(self) -> nw.LazyFrame[Any]:
        import narwhals as nw

        native = self.engine.number_rows(self.path, self.kind, self.header)
        frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
        return frame


@dataclass(frozen=True, eq=False)
class _Files:
    pattern: str
    files: tuple[_File, ...]
    engine: FileEngine

    def read(self, columns: Sequence[str]) -> nw.LazyFrame[Any]:
        """Return these columns of all files; numbers take the widest type among the files."""
        import narwhals as nw

        alike: dict[tuple[Any, ...], list[_File]] = {}
        for file in self.files:
            alike.setdefault((file.header is None, *file.schema.items()), []).append(file)
        wide = {
            name: _widest([files[0].schema[name] for files in alike.values()]) for name in columns
        }
        frames = []
        for files in alike.values():
            paths = [file.path for file in files]
            native = self.engine.scan(paths, files[0].kind, files[0].header)
            chosen = [
                nw.col(name) if wide[name] is None else nw.col(name).cast(wide[name])
                for name in columns
            ]
            frames.append(nw.from_native(native).lazy().select(*chosen))
        return frames[0] if len(frames) == 1 else nw.concat(frames, how="vertical")

    def parts(self) -> Iterator[Part]:
        """Give one file after the other."""
        for file in self.files:
            yield Part(repr(file.path), file.schema, file.open_numbered)


def _widest(types: Sequence[Any]) -> Any:
    """Return the type to which files with these types are cast, or None where they agree."""
    import narwhals as nw

    if len(set(types)) == 1 or not all(dtype.is_numeric() for dtype in types):
        return None
    return nw.Int64 if all(dtype.is_integer() for dtype in types) else nw.Float64


def _common_format(pattern: str, paths: Sequence[str], file_format: str | None) -> str:
    if file_format is not None:
        return check_choice("format", file_format, STREAMED_FORMATS)
    kinds = {SUFFIXES.get(Path(path).suffix.lower(), ""): path for path in paths}
    if len(kinds) > 1:
        raise FileError(
            f"{pattern!r} must match files of one format, got "
            + " and ".join(sorted(repr(path) for path in kinds.values()))
            + "; narrow the pattern, or say --format"
        )
    kind = next(iter(kinds))
    if not kind:
        raise FileError(
            f"the format of {paths[0]!r} must be told by its name (.csv, .tsv, .jsonl, .parquet), "
            "or by --format"
        )
    return kind


def _require_one_kind_of_header(files: _Files) -> None:
    bare = [file for file in files.files if file.header is not None]
    if bare and len(bare) < len(files.files):
        other = next(file for file in files.files if file.header is None)
        raise FileError(
            f"all files of {files.pattern!r} must have a header, or none, got a number in the "
            f"first line of {bare[0].path!r} but names in {other.path!r}"
        )


def _first_line(path: str, delimiter: str) -> list[str]:
    try:
        with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as file:
            return next(csv.reader(file, delimiter=delimiter), [])
    except OSError as problem:
        raise FileError(f"cannot read {path!r}: {problem.strerror}") from problem
    except csv.Error as problem:
        raise FileError(f"{path!r}, line 1: {problem}") from problem


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _nothing_found(pattern: str) -> str:
    text = f"no file matches {pattern!r}"
    folder = Path(pattern).parent
    if has_magic(str(folder)):
        return text
    if not os.path.isdir(folder):  # noqa: PTH112 - as is_file
        return f"{text}: there is no folder {str(folder)!r}"
    there = names_in(folder)
    near = suggest(Path(pattern).name, there)
    return f"{text}; {near}" if near else f"{text} ({len(there)} others are in {str(folder)!r})"


def _unreadable(path: str, kind: str, problem: Exception) -> str:
    return f"cannot read {path!r} as {_WRITTEN[kind]}: {str(problem).strip().splitlines()[0]}"
