"""The user's own interactions, from CSV, TSV or Parquet."""

from __future__ import annotations

import csv
import io
import lzma
import math
import zlib
from array import array
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    FloatArray,
    IntArray,
    as_integer_array,
    as_text_array,
    check_integer,
    import_extra,
    suggest,
)
from unsample._files import check_unpacked, open_plain
from unsample.errors import DatasetError, FileError, InputError
from unsample.lab.datasets._files import COMPRESSIONS
from unsample.lab.datasets._interactions import Interactions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")


def load_file(
    path: str | os.PathLike[str],
    *,
    user: str | int = "user",
    item: str | int = "item",
    rating: str | int | None = None,
    time: str | int | None = None,
    separator: str | None = None,
    name: str | None = None,
) -> Interactions:
    r"""Load interactions from a CSV, TSV or Parquet file; text may be compressed (.gz, .xz).

    Parameters
    ----------
    path
        The file. ``.csv``, ``.tsv`` and ``.parquet`` tell the format; others need ``separator``.
    user, item, rating, time
        The columns by name, or by position (from 0) in a text file without a header line. Users
        and items are integers or strings; times are numbers or dates such as 2024-05-31T12:00:00.
    separator
        The character between the columns of a text file.
    name
        What to call the data; by default the name of the file.

    Ids become 0, 1, ... in the order of their values; ``user_ids`` and ``item_ids`` of the result
    tell the former ones. Repeated pairs are merged and counted in ``merged``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = path.write_text("user,item\nanna,tea\nbob,tea\nanna,milk\n")
    >>> load_file(path)
    Interactions(mine.csv, 2 users, 2 items, 3 pairs)
    >>> load_file(path).item_ids
    array(['milk', 'tea'], dtype='<U4')
    """
    path = Path(path)
    wanted = {"user": user, "item": item, "rating": rating, "time": time}
    chosen = {role: column for role, column in wanted.items() if column is not None}
    is_parquet = path.suffix.lower() in _PARQUET
    table = _read_parquet(path, chosen) if is_parquet else _read_text(path, chosen, separator)
    if not len(table.columns["user"]):
        raise DatasetError(f"{str(path)!r} must hold at least one row, got none")
    user_ids, users = _numbered(table, "user")
    item_ids, items = _numbered(table, "item")
    return Interactions.from_pairs(
        users,
        items,
        users=len(user_ids),
        items=len(item_ids),
        rating=None if rating is None else _ratings(table),
        time=None if time is None else _times(table),
        name=path.name if name is None else name,
        user_ids=user_ids,
        item_ids=item_ids,
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """The chosen columns by role; ``lines`` says where the rows stand, for text files."""

    path: Path
    columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]]
    lines: Sequence[int] | None = None

    def refuse(self, role: str, row: int, rule: str) -> NoReturn:
        where = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        value = self.columns[role][row]
        raise FileError(f"{str(self.path)!r}, {where}: the {role} must be {rule}, got {value!r}")


# -- reading ----------------------------------------------------------------------------------


def _read_text(path: Path, chosen: dict[str, str | int], separator: str | None) -> _Table:
    separator = _separator(path) if separator is None else separator
    if not isinstance(separator, str) or len(separator) != 1:
        raise InputError(f"separator must be one character, got {separator!r}")
    try:
        with io.TextIOWrapper(open_plain(path), encoding="utf-8-sig", newline="") as stream:
            return _read_records(path, stream, chosen, separator)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as problem:
        raise FileError(f"cannot read {str(path)!r}: {problem}") from problem


def _read_records(
    path: Path, stream: Iterable[str], chosen: dict[str, str | int], separator: str
) -> _Table:
    reader = csv.reader(stream, delimiter=separator, skipinitialspace=True, strict=True)
    records, lines = [], array("q")
    width, pick = 0, None
    try:
        for record in reader:
            if not record:
                continue
            if pick is None:
                width, pick = len(record), itemgetter(*_positions(path, chosen, record))
                if _has_header(chosen):
                    continue
            if len(record) != width:
                rule = f"must have {width} columns as the first line has"
                got = separator.join(record)
                raise FileError(f"{str(path)!r}, line {reader.line_num}: {rule}, got {got!r}")
            records.append(pick(record))
            lines.append(reader.line_num)
    except csv.Error as problem:
        raise FileError(f"{str(path)!r}, line {reader.line_num}: {problem}") from problem
    columns = list(zip(*records, strict=True)) or [()] * len(chosen)
    return _Table(path, dict(zip(chosen, columns, strict=True)), lines)


def _separator(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _SEPARATORS:
        raise FileError(
            f"path must end in .csv, .tsv or .parquet, got {str(path)!r}; "
            "pass separator= for other text files"
        )
    return _SEPARATORS[suffixes[-1]]


def _has_header(chosen: dict[str, str | int]) -> bool:
    return any(isinstance(column, str) for column in chosen.values())


def _positions(path: Path, chosen: dict[str, str | int], first: list[str]) -> list[int]:
    """Return where the chosen columns stand, given the first line of the file."""
    if not _has_header(chosen):
        for role, column in chosen.items():
            check_integer(role, column, minimum=0, maximum=len(first) - 1)
        return [int(column) for column in chosen.values()]
    for role, column in chosen.items():
        if not isinstance(column, str):
            raise InputError(f"{role} must be a name as the other columns are, got {column!r}")
        _check_present(path, role, column, first)
    return [first.index(str(column)) for column in chosen.values()]


def _check_present(path: Path, role: str, column: str, present: list[str]) -> None:
    if column not in present:
        hint = suggest(column, present) or f"say which column it is with {role}="
        raise FileError(
            f"{str(path)!r} must have a column {column!r} for the {role}, got the columns "
            f"{', '.join(present)}; {hint}"
        )


def _read_parquet(path: Path, chosen: dict[str, str | int]) -> _Table:
    parquet = import_extra("pyarrow.parquet", extra="frames", purpose="reading Parquet")
    arrow = import_extra("pyarrow", extra="frames", purpose="reading Parquet")
    try:
        about = parquet.read_metadata(path)
        present = about.schema.to_arrow_schema().names
        check_unpacked(
            repr(str(path)),
            path.stat().st_size,
            8 * about.num_rows * len(chosen),
            "write it as text, or in parts",
        )
        for role, column in chosen.items():
            if not isinstance(column, str):
                raise InputError(f"{role} must be the name of a column, got {column!r}")
            _check_present(path, role, column, present)
        table = parquet.read_table(path, columns=list(chosen.values()))
        return _Table(
            path, {role: _present(path, role, table[name]) for role, name in chosen.items()}
        )
    except (OSError, UnicodeError, arrow.ArrowException) as problem:
        raise FileError(f"cannot read {str(path)!r}: {problem}") from problem


def _present(path: Path, role: str, values: Any) -> npt.NDArray[Any]:
    """Return a column of Parquet in which no value is missing."""
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy()))
        raise FileError(f"{str(path)!r}, row {row}: the {role} must not be missing")
    array: npt.NDArray[Any] = values.to_numpy()
    return array


# -- converting -------------------------------------------------------------------------------


def _numbered(table: _Table, role: str) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct ids in order, and each row's position among them."""
    column = table.columns[role]
    if isinstance(column, np.ndarray) and column.dtype != object:
        values = as_integer_array(role, column, error=FileError)
        distinct, position = np.unique(values, return_inverse=True)
        return distinct, position.reshape(-1)
    # A dictionary numbers a million strings several times faster than sorting them all.
    seen = dict.fromkeys(column)
    for odd in (value for value in seen if not isinstance(value, str) or not value.strip()):
        table.refuse(role, list(column).index(odd), "an integer or a string that is not empty")
    ids = _in_order(list(seen))
    place = {str(value): number for number, value in enumerate(ids.tolist())}
    return ids, np.fromiter(map(place.__getitem__, column), np.int64, len(column))


def _in_order(texts: list[str]) -> npt.NDArray[Any]:
    """Return integers in order if every text is one as Python prints it ('7', not '07')."""
    try:
        numbers = [int(text) for text in texts]
        if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
            return np.array(sorted(numbers), dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return as_text_array("ids", sorted(texts), error=FileError)


def _ratings(table: _Table) -> FloatArray:
    ratings = _converted(table, "rating", float, np.float64, "a number")
    bad = ~np.isfinite(ratings)
    if bad.any():
        table.refuse("rating", int(np.argmax(bad)), "a finite number")
    return ratings


def _times(table: _Table) -> IntArray:
    column = table.columns["time"]
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return column.astype("datetime64[s]").astype(np.int64)
    return _converted(table, "time", _seconds, np.int64, "a number or a date (YYYY-MM-DDThh:mm:ss)")


def _seconds(value: Any) -> int:
    """Return a number as it is (rounded down), a date as seconds since 1970, by default in UTC."""
    if not isinstance(value, str):
        return math.floor(float(value)) if isinstance(value, float) else int(value)
    if value.isdecimal():
        return int(value)
    try:
        return math.floor(float(value))
    except ValueError:
        moment = datetime.fromisoformat(value)
        return math.floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _converted(
    table: _Table, role: str, convert: Callable[[Any], Any], kind: type[np.generic], rule: str
) -> npt.NDArray[Any]:
    column = table.columns[role]
    try:
        return np.fromiter(map(convert, column), kind, len(column))
    except (TypeError, ValueError, OverflowError):
        bad = (row for row, value in enumerate(column) if not _converts(value, convert, kind))
        table.refuse(role, next(bad), rule)


def _converts(value: object, convert: Callable[[Any], Any], kind: type[np.generic]) -> bool:
    try:
        kind(convert(value))
    except (TypeError, ValueError, OverflowError):
        return False
    return True
