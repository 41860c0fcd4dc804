"""The user's own interactions, from CSV, TSV or Parquet."""

from __future__ import annotations

import csv
import io
import lzma
import math
import zlib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, as_text_array, check_integer, import_extra, suggest
from unsample._files import check_unpacked, open_plain
from unsample.errors import DatasetError, FileError, InputError
from unsample.lab.datasets._files import COMPRESSIONS
from unsample.lab.datasets._interactions import Interactions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")
_LARGEST = np.iinfo(np.int64).max


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
    moment = "a number or a date (YYYY-MM-DDThh:mm:ss)"
    return Interactions.from_pairs(
        users,
        items,
        users=len(user_ids),
        items=len(item_ids),
        rating=None if rating is None else table.converted("rating", _finite, "a finite number"),
        time=None if time is None else table.converted("time", _seconds, moment),
        name=path.name if name is None else name,
        user_ids=user_ids,
        item_ids=item_ids,
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """The chosen columns by role; ``lines`` says where the rows stand, for text files."""

    path: Path
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int] | None = None

    def converted(self, role: str, convert: Callable[[Any], Any], rule: str) -> list[Any]:
        """Return a column with each value converted, each distinct value once."""
        known: dict[Any, Any] = {}
        for row, value in enumerate(self.columns[role]):
            try:
                if value not in known:
                    known[value] = convert(value)
            except (TypeError, ValueError, OverflowError) as problem:
                where = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
                raise FileError(
                    f"{str(self.path)!r}, {where}: the {role} must be {rule}, got {value!r}"
                ) from problem
        return [known[value] for value in self.columns[role]]


# -- reading ----------------------------------------------------------------------------------


def _read_text(path: Path, chosen: dict[str, str | int], separator: str | None) -> _Table:
    if separator is None:
        plain = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
        separator = _SEPARATORS.get(plain.suffix.lower())
        if separator is None:
            raise FileError(
                f"path must end in .csv, .tsv or .parquet, got {str(path)!r}; "
                "pass separator= for other text files"
            )
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
    has_header = any(isinstance(column, str) for column in chosen.values())
    records, lines = [], []
    width, pick = 0, None
    try:
        for record in filter(None, reader):
            if pick is None:
                width = len(record)
                if has_header:
                    pick = itemgetter(*_places(path, chosen, record))
                    continue
                most = width - 1
                places = (check_integer(r, at, minimum=0, maximum=most) for r, at in chosen.items())
                pick = itemgetter(*places)
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


def _places(path: Path, chosen: dict[str, str | int], names: list[str]) -> list[int]:
    """Return where the chosen columns stand among the names of all columns."""
    for role, column in chosen.items():
        if not isinstance(column, str):
            raise InputError(f"{role} must be the name of a column, got {column!r}")
        if column not in names:
            hint = suggest(column, names) or f"say which column it is with {role}="
            raise FileError(
                f"{str(path)!r} must have a column {column!r} for the {role}, got the columns "
                f"{', '.join(names)}; {hint}"
            )
    return [names.index(str(column)) for column in chosen.values()]


def _read_parquet(path: Path, chosen: dict[str, str | int]) -> _Table:
    parquet = import_extra("pyarrow.parquet", extra="frames", purpose="reading Parquet")
    arrow = import_extra("pyarrow", extra="frames", purpose="reading Parquet")
    try:
        about = parquet.read_metadata(path)
        unpacked = 8 * about.num_rows * len(chosen)
        hint = "write it as text, or in parts"
        check_unpacked(repr(str(path)), path.stat().st_size, unpacked, hint)
        _places(path, chosen, about.schema.to_arrow_schema().names)
        table = parquet.read_table(path, columns=list(chosen.values()))
        columns = {role: table[name] for role, name in chosen.items()}
        for role, column in columns.items():
            if arrow.types.is_timestamp(column.type):  # nanoseconds are too fine for Python
                columns[role] = column.cast(arrow.timestamp("us"), safe=False)
        return _Table(path, {role: column.to_pylist() for role, column in columns.items()})
    except (OSError, UnicodeError, arrow.ArrowException) as problem:
        raise FileError(f"cannot read {str(path)!r}: {problem}") from problem


# -- converting -------------------------------------------------------------------------------


def _numbered(table: _Table, role: str) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct ids in order, and each row's position among them."""
    column = table.converted(role, _id, "an integer or a string that is not empty")
    ids = _in_order(list(dict.fromkeys(column)))
    place = {str(value): number for number, value in enumerate(ids.tolist())}
    return ids, np.fromiter(map(place.__getitem__, column), np.int64, len(column))


def _id(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
        raise ValueError("neither an integer nor a text")
    return str(value)


def _in_order(texts: list[str]) -> npt.NDArray[Any]:
    """Return integers in order if every text is one as Python prints it ('7', not '07')."""
    try:
        numbers = [int(text) for text in texts]
        if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
            return np.array(sorted(numbers), dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return as_text_array("ids", sorted(texts), error=FileError)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _seconds(value: Any) -> int:
    """Return a number as it is (rounded down), a date as seconds since 1970, by default in UTC."""
    if isinstance(value, str) and not value.isdecimal():
        try:
            value = float(value)
        except ValueError:
            value = datetime.fromisoformat(value)
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime.combine(value, time_of_day.min)
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    seconds = int(value) if isinstance(value, str) else math.floor(value)
    if abs(seconds) > _LARGEST:
        raise OverflowError("no 64-bit number holds it")
    return seconds
