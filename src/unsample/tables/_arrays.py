"""Tables as arrays, with numpy alone: text, JSON lines and NPZ read batch by batch, and counted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import IO, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._archives import DAMAGED
from unsample._checks import BoolArray, IntArray, as_index, as_text_array
from unsample.errors import FileError, InputError
from unsample.evidence import beats_of, compare_lists, in_parts, numbered
from unsample.tables._gather import gathered
from unsample.tables._layout import (
    NAMES,
    POOLED,
    ROLES,
    TARGETS,
    ArrayValues,
    Columns,
    Layout,
    Request,
    Rule,
    check_same_roles,
    complaint,
    first_broken,
    is_missing,
    kind_of_values,
    user_complaint,
    warn_of_pooled_models,
    wrong_user,
)

#: Rows of text that are turned into arrays at a time.
_BATCH = 1 << 13
#: Records of JSON whose names are the columns; later ones may lack some, and add none.
_FIRST_RECORDS = 1 << 15
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
_FLAGS = {"true": 1, "false": 0}

#: Roles of scored rows that say something of the target.
_OF_TARGETS = ("items", "relevance", "pool")
#: Where a target's own row is.
_ROW = "row"

#: Some rows as they were read: the cells of each column, and the number of each row.
_Rows: TypeAlias = tuple[dict[str, Any], Sequence[int]]


@dataclass(frozen=True, eq=False)
class PlainFile:
    """A file that is being read.

    ``read`` gives the rows of some columns, once; ``unit`` is what the numbers of rows count, and
    ``hint`` says what is likely wrong where a column is missing.
    """

    name: str
    header: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[_Rows]]
    unit: str = "line"
    hint: str = ""


# -- formats -------------------------------------------------------------------------------------


def read_delimited(text: IO[str], delimiter: str, name: str) -> PlainFile:
    """Read text with a delimiter; the first row names the columns, unless it is one number."""
    batches = _delimited_rows(text, delimiter, name)
    start, lines = next(batches, ([], []))
    if not start:
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    header = [cell.strip() for cell in start[0]]
    if len(set(header)) != len(header):
        raise FileError(f"{name} has two columns of one name: {', '.join(header)}")
    if len(header) == 1 and header[0].lstrip("-").replace(".", "", 1).isdecimal():
        header = ["rank"]
    else:
        del start[0], lines[0]

    def read(columns: Sequence[str]) -> Iterator[_Rows]:
        places = {column: header.index(column) for column in columns}
        for rows, lines_of_rows in chain([(start, lines)] if start else [], batches):
            if {*map(len, rows)} != {len(header)}:
                at = next(at for at, row in enumerate(rows) if len(row) != len(header))
                raise FileError(
                    f"{name}, line {lines_of_rows[at]}: each row must have as many cells as the "
                    f"first, {len(header)}, got {len(rows[at])}: {', '.join(rows[at])[:60]}"
                )
            yield {c: [row[place] for row in rows] for c, place in places.items()}, lines_of_rows

    marks = [shown for mark, shown in _SEPARATORS.items() if len(header) == 1 and mark in header[0]]
    hint = f"the separator seems to be {marks[0]}; write commas, or tabs in a .tsv" if marks else ""
    return PlainFile(name, header, read, hint=hint)


def _delimited_rows(
    text: IO[str], delimiter: str, name: str
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Yield some rows that are not empty, and the lines they end in, until there are no more."""
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    before = -1
    while reader.line_num > before:
        before = reader.line_num
        rows, lines = [], []
        with failures_of(name):
            try:
                for row in islice(reader, _BATCH):
                    if row:
                        rows.append(row)
                        lines.append(reader.line_num)
            except csv.Error as problem:
                raise FileError(f"{name}, line {reader.line_num}: {problem}") from problem
        if rows:
            yield rows, lines


@contextmanager
def failures_of(name: str, kinds: tuple[type[BaseException], ...] = DAMAGED) -> Iterator[None]:
    """Say which file it is that cannot be read, and why, without the page an engine may write."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError as problem:
        raise FileError(
            f"{name} is not UTF-8 text; it may be truncated, compressed or of another format"
        ) from problem
    except kinds as problem:
        why = getattr(problem, "strerror", None) or str(problem).strip() or type(problem).__name__
        raise FileError(f"cannot read {name}: {why.splitlines()[0]}") from problem


def read_json_lines(text: IO[str], name: str) -> PlainFile:
    """Read one JSON object, or one rank, a line; a line ends with a line feed and nothing else."""
    records = _records(text, name)
    start = list(islice(records, _FIRST_RECORDS))
    batches = iter(lambda: list(islice(records, _BATCH)), [])
    if not start:
        raise FileError(f"{name} is empty; a table has an object in every line")
    header = dict.fromkeys(column for _, record in start for column in record)

    def read(columns: Sequence[str]) -> Iterator[_Rows]:
        for batch in chain([start], batches):
            late = [(c, line) for line, r in batch for c in r if c not in header and c in ROLES]
            if late:
                raise FileError(
                    f"column {late[0][0]!r} of {name} must be in all lines, got it first in line "
                    f"{late[0][1]}"
                )
            cells = {column: [record.get(column) for _, record in batch] for column in columns}
            yield cells, [line for line, _ in batch]

    return PlainFile(name, list(header), read)


def _records(text: IO[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with failures_of(name):
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as problem:
                raise FileError(f"{name}, line {number}: not JSON: {line[:60]!r}") from problem
            if isinstance(record, int | float) and not isinstance(record, bool):
                record = {"rank": record}
            if not isinstance(record, dict):
                raise FileError(f"{name}, line {number}: an object expected, got {line[:60]!r}")
            yield number, record


def read_named_arrays(arrays: dict[str, npt.NDArray[Any]], name: str) -> PlainFile:
    """Read arrays of a column each; a single value stands for all rows."""
    sizes = {values.size for values in arrays.values()} - {1} or {1}
    if len(sizes) > 1 or any(values.ndim > 1 for values in arrays.values()):
        shapes = ", ".join(f"{key} {values.shape}" for key, values in arrays.items())
        raise FileError(
            f"the arrays of {name} must be one-dimensional and equally long, or single values, got "
            f"{shapes}"
        )
    (size,) = sizes

    def read(columns: Sequence[str]) -> Iterator[_Rows]:
        if size:
            flat = {column: np.broadcast_to(arrays[column].reshape(-1), size) for column in columns}
            yield flat, range(1, size + 1)

    return PlainFile(name, list(arrays), read, unit="row")


# -- cells ----------------------------------------------------------------------------------------


class CellError(Exception):
    """A cell that is not a number: its position and its value."""


def converted(role: str, cells: Sequence[Any] | npt.NDArray[Any], source: str) -> npt.NDArray[Any]:
    """Return the cells of a role as an array; missing numbers are NaN, missing names empty."""
    if role in NAMES:
        return _as_names(cells, source)
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "iuf":
            return cells
        cells = cells.tolist()
    if role == "target":
        cells = [_FLAGS.get(str(cell).strip().lower(), cell) for cell in cells]
    try:
        # Exact for whole numbers of any size, which a detour through floats would not be.
        if set(map(type, cells)) in ({str}, {int}):
            return np.fromiter(map(int, cells), np.int64, len(cells))
    except (ValueError, OverflowError):
        pass
    return np.fromiter(map(_as_number, range(len(cells)), cells), np.float64, len(cells))


def _as_number(position: int, cell: Any) -> float:
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):
        return np.nan
    try:
        if not isinstance(cell, bool):
            return float(cell)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        pass
    raise CellError(position, cell)


def _as_names(values: Sequence[Any] | npt.NDArray[Any], source: str) -> npt.NDArray[np.str_]:
    """Return names as text, the same for the same names whatever type a table gives them."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu" and len(values):
            longest = max(len(str(values.min())), len(str(values.max())))
            return values.astype(f"U{longest}")
        values = values.tolist()
    if set(map(type, values)) != {str}:
        values = [_as_name(value) for value in values]
    return as_text_array(f"names in {source}", list(values), error=FileError)


def _as_name(value: Any) -> str:
    if is_missing(value):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# -- counting ------------------------------------------------------------------------------------


def compare_scores(columns: Columns, layout: Layout) -> Columns:
    """Compare each target with the user's other items: one row for each target, sorted by user.

    Users without a target have a row too, to be refused.
    """
    codes, first = _codes(columns, layout.users)
    size, is_target = len(first), columns["target"] == 1
    of_user = np.bincount(as_index(codes[is_target]), minlength=size)
    # The row of each target, users in order; any row of a user without one.
    rows = np.concatenate([np.flatnonzero(is_target), first[of_user == 0]])
    rows = rows[np.lexsort([rows, codes[rows]])]
    other = _others(columns, layout)
    better, tied, met = compare_lists(codes, columns["score"], rows, other)
    kept = [role for role in (*layout.users, "score", *_OF_TARGETS) if role in layout]
    return {role: columns[role][rows] for role in kept} | {
        _ROW: rows,
        TARGETS: of_user[codes[rows]],
        "sampled": met,
        "better": better,
        "tied": tied,
    }


def _others(columns: Columns, layout: Layout) -> BoolArray:
    """Tell the rows of other items. An item that is also a target of its user is not one."""
    is_target = columns["target"] == 1
    if "item" not in layout:
        return np.asarray(~is_target)
    pairs, _ = _combined(columns, [*layout.users, "item"])
    own = np.unique(pairs[is_target])
    other = ~is_target
    for rows in in_parts(len(pairs) if len(own) else 0):
        near = own[np.searchsorted(own, pairs[rows]).clip(max=len(own) - 1)]
        other[rows] &= near != pairs[rows]
    return np.asarray(other)


def outcomes_by_item(
    columns: Columns, targets: Columns, layout: Layout, ties: str, rng: np.random.Generator
) -> list[tuple[IntArray, IntArray, BoolArray]] | None:
    """Return for each pool its targets, its items, and which item beats which target.

    ``columns`` are scored rows, ``targets`` what `compare_scores` made of them. None where the
    items have no names, or not every target of a pool met all its items: then no two outcomes can
    be told to be of one item.
    """
    if "item" not in layout:
        return None
    codes, _ = _codes(columns, layout.users)
    pool = columns.get("pool", np.zeros(len(codes), dtype=np.int64))
    rows, found = targets[_ROW], []
    other = _others(columns, layout)
    for name in np.unique(pool):
        members = np.flatnonzero(pool[rows] == name)
        mine = np.flatnonzero(other & (pool == name))
        items, item = np.unique(columns["item"][mine], return_inverse=True)
        users, user = np.unique(codes[mine], return_inverse=True)
        if len(mine) != len(items) * len(users):
            return None
        scores = np.empty((len(users), len(items)))
        scores[user.reshape(-1), item.reshape(-1)] = columns["score"][mine]
        own = rows[members]
        met = scores[np.searchsorted(users, codes[own])]
        beats = beats_of(columns["score"][own], met, ties, rng)
        found.append((members, numbered(layout.text("item", items)), beats))
    return found


def check_users(users: Columns, layout: Layout, source: str) -> None:
    """Refuse the first user who has no target among other items."""
    wrong = wrong_user(ArrayValues(users), layout)
    if wrong.any():
        place = np.argmax(wrong)
        shown = {role: layout.text(role, values[place]) for role, values in users.items()}
        raise user_complaint(layout, source, shown)


def _codes(columns: Columns, roles: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return a number for each combination of some columns, and a row that has it."""
    codes, most = _combined(columns, roles)
    if len(roles) == 1:  # all from 0 on occur
        first = np.empty(most, dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        return codes, first
    _, first, numbered = np.unique(codes, return_index=True, return_inverse=True)
    return numbered.reshape(-1), first


def _combined(columns: Columns, roles: Sequence[str]) -> tuple[IntArray, int]:
    """Return a number for each combination of some columns, and how many there may be."""
    codes, most = np.zeros(len(columns[roles[0]]), dtype=np.int64), 1
    for role in roles:
        where = columns[role]
        if where.dtype.kind != "i":  # names that have no numbers yet
            where = np.unique(where, return_inverse=True)[1].reshape(-1)
        size = int(where.max()) + 1
        codes *= size
        codes += where
        most *= size
    return codes, most


def have_several(columns: Columns, layout: Layout) -> bool:
    """Return whether some user stands in the rows several times, or targets share their items."""
    if "pool" in columns:
        return True
    if "user" not in columns:
        return False
    codes, first = _codes(columns, layout.users)
    counted = "count" in columns and bool(
        (np.bincount(as_index(codes), columns["count"]) > 1).any()
    )
    return counted or len(first) < len(codes)


def with_design(columns: Columns, layout: Layout) -> Columns:
    """Return checked rows with whole numbers, the design of every row, and ranks as comparisons."""
    rest = as_comparisons(columns)
    for role, number in layout.request.design.items():
        rest.setdefault(role, np.broadcast_to(np.array(number), len(rest["better"])))
    for role in {"items", "sampled", "count"} & set(rest):
        rest[role] = rest[role].astype(np.int64, copy=False)
    return rest


def as_comparisons(columns: Columns) -> Columns:
    """Return ranks as how many items beat a target and how many tie with it, in whole numbers."""
    rest = dict(columns)
    if "rank" in rest:
        rank = rest.pop("rank")
        # The mean of two neighbouring ranks is a tie with one item.
        rest["better"], rest["tied"] = np.floor(rank) - 1, np.ceil(rank) - np.floor(rank)
    for role in {"better", "tied"} & set(rest):
        if rest[role].dtype.kind != "i":
            rest[role] = rest[role].astype(np.int64)
    return rest


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlainTable:
    """Rows of one file or several, opened one after the other."""

    name: str
    files: Iterable[PlainFile]
    request: Request

    def rows(self, *, one_by_one: bool, scored: bool = False) -> tuple[Layout, Iterator[Columns]]:
        """Return the targets: batch by batch, where they are counted and no user is met again.

        Rows that are ``scored``, or that name a pool of items, come as they are, item by item.
        """
        batches = self._batches()
        start = next(batches, None)
        if start is None:
            raise FileError(f"{self.name} has no rows; it must have one for each target")
        layout = start[0]
        found: Iterator[Columns] = chain([start[1]], (columns for _, columns in batches))
        if not (one_by_one or "user" in layout):
            return layout, (with_design(columns, layout) for columns in found)
        # Ranks become comparisons on the way: these are small whole numbers.
        columns, names = gathered(map(as_comparisons, found), self.name)
        layout = replace(layout, names=names)
        if layout.scores and (scored or "pool" in layout):
            return layout, iter([columns])
        return layout, iter([with_design(self._together(layout, columns), layout)])

    def records(self) -> Columns:
        """Return all rows as they are."""
        columns, _ = gathered((rows for _, rows in self._batches()), self.name, coded=False)
        if not columns:
            raise FileError(f"{self.name} has no rows")
        return columns

    def _together(self, layout: Layout, columns: Columns) -> Columns:
        if layout.scores:
            columns = compare_scores(columns, layout)
            check_users(columns, layout, self.name)
        elif POOLED in columns:
            models = len(np.unique(columns.pop(POOLED)))
            rows = np.bincount(columns["user"])
            warn_of_pooled_models(layout, self.name, rows.min(), rows.max(), models)
        return columns

    def _batches(self) -> Iterator[tuple[Layout, Columns]]:
        """Yield the rows of all files, checked, and the layout of their file."""
        first: tuple[str, Layout] | None = None
        for file in self.files:
            layout = Layout.find(file.header, file.name, self.request, file.hint)
            first = first or (file.name, layout)
            check_same_roles(*first, file.name, layout)
            for rows in file.read(list(dict.fromkeys(layout.read.values()))):
                yield layout, _checked_columns(rows, layout, file)


def _checked_columns(rows: _Rows, layout: Layout, file: PlainFile) -> Columns:
    cells, numbers = rows
    columns: Columns = {}

    def refuse(rule: Rule, position: int, value: Any) -> NoReturn:
        place = f" in {file.unit} {numbers[position]}"
        raise complaint(rule, layout, file.name, value, place) from None

    for role, column in layout.read.items():
        try:
            columns[role] = converted(role, cells[column], file.name)
        except CellError as problem:
            rule = Rule(role, kind_of_values(role), FileError, "correct or drop such rows")
            refuse(rule, *problem.args)
    broken = first_broken(layout.rules(), columns)
    if broken is not None:
        rule, position = broken
        refuse(rule, position, columns[rule.role][position])
    return columns
