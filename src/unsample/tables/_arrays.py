"""Tables as arrays, with numpy alone: text, JSON lines and NPZ read batch by batch, and counted."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, Seed, as_rng, as_text_array
from unsample._files import DAMAGED
from unsample.errors import FileError, RankError
from unsample.evidence import Comparisons, Targets, check_ties, rank_with_ties
from unsample.tables._layout import (
    LABEL,
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
    user_complaint,
    warn_of_pooled_models,
    wrong_user,
)

#: Rows that are turned into arrays at a time.
_BATCH = 1 << 15
_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
_FLAGS = {"true": 1.0, "false": 0.0, True: 1.0, False: 0.0}
#: An array of texts may waste so many times what they hold, if it is large at all.
_LARGEST_WASTE, _FEW_LETTERS = 100, 1 << 25


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


def read_delimited(stream: IO[bytes], delimiter: str, name: str) -> PlainFile:
    """Read text with a delimiter; the first row names the columns, unless it is one number."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    header: list[str] = []
    while not header and (start := _take(reader, 1, name)):
        header = [cell.strip() for cell in start[0]]
    if not header:
        raise FileError(f"{name} is empty; a table starts with the names of its columns")
    if len(set(header)) != len(header):
        raise FileError(f"{name} has two columns of one name: {', '.join(header)}")
    ranks_alone = len(header) == 1 and _is_number(header[0])

    def read(columns: Sequence[str]) -> Iterator[_Rows]:
        if ranks_alone:
            yield dict.fromkeys(columns, header), [reader.line_num]
        places = {column: names.index(column) for column in columns}
        before = reader.line_num
        while batch := _take(reader, _BATCH, name):
            lines: Sequence[int] = range(before + 1, reader.line_num + 1)
            if {len(row) for row in batch} != {len(header)} or len(lines) != len(batch):
                batch, lines = _whole_rows(batch, before, len(header), name)
            yield {c: [row[place] for row in batch] for c, place in places.items()}, lines
            before = reader.line_num

    names = ["rank"] if ranks_alone else header
    marks = [shown for mark, shown in _SEPARATORS.items() if len(names) == 1 and mark in names[0]]
    hint = f"the separator seems to be {marks[0]}; write commas, or tabs in a .tsv" if marks else ""
    return PlainFile(name, names, read, hint=hint)


def _take(reader: Any, size: int, name: str) -> list[list[str]]:
    with _failures_of(name):
        try:
            return list(islice(reader, size))
        except csv.Error as problem:
            raise FileError(f"{name}, line {reader.line_num}: {problem}") from problem


@contextmanager
def _failures_of(name: str) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except FileError:
        raise
    except UnicodeDecodeError as problem:
        raise FileError(
            f"{name} is not UTF-8 text; it may be truncated, compressed or of another format"
        ) from problem
    except DAMAGED as problem:
        raise FileError(f"cannot read {name}: {problem}") from problem


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole_rows(
    batch: list[list[str]], line: int, width: int, name: str
) -> tuple[list[list[str]], list[int]]:
    """Leave out empty lines, and count those that quoted cells go over."""
    lines = []
    for row in batch:
        line += 1 + sum(len(_LINE_END.findall(cell)) for cell in row)
        lines.append(line)
        if row and len(row) != width:
            raise FileError(
                f"{name}, line {line}: {width} cells expected, got {len(row)}: "
                f"{', '.join(row)[:60]}"
            )
    kept = [place for place, row in enumerate(batch) if row]
    return [batch[place] for place in kept], [lines[place] for place in kept]


def read_json_lines(stream: IO[bytes], name: str) -> PlainFile:
    """Read one JSON object, or one rank, a line; a line ends with a line feed and nothing else."""
    records = _records(stream, name)
    start = list(islice(records, _BATCH))
    header = dict.fromkeys(column for _, record in start for column in record)
    if not start:
        raise FileError(f"{name} is empty; a table has an object in every line")

    def read(columns: Sequence[str]) -> Iterator[_Rows]:
        batch = list(start)
        start.clear()
        while batch:
            cells = {column: [record.get(column) for _, record in batch] for column in columns}
            yield cells, [line for line, _ in batch]
            batch = list(islice(records, _BATCH))
            for line, record in batch:
                late = [column for column in record if column in ROLES and column not in header]
                if late:
                    raise FileError(
                        f"column {late[0]!r} of {name} must be in all lines, got it first in line "
                        f"{line}"
                    )

    return PlainFile(name, list(header), read)


def _records(stream: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while True:
        with _failures_of(name):
            lines = [line.decode("utf-8") for line in islice(stream, _BATCH)]
        if not lines:
            return
        lines[0] = lines[0].removeprefix("\ufeff")
        for text in lines:
            number += 1
            if text.strip():
                yield number, _record(text, name, number)


def _record(text: str, name: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{name}, line {number}: not JSON: {text[:60]!r}") from problem
    if isinstance(record, int | float) and not isinstance(record, bool):
        return {"rank": record}
    if not isinstance(record, dict):
        raise FileError(f"{name}, line {number}: an object expected, got {text[:60]!r}")
    return record


def read_named_arrays(arrays: dict[str, npt.NDArray[Any]], name: str) -> PlainFile:
    """Read arrays of a column each; a single value stands for all rows."""
    if any(values.ndim > 1 for values in arrays.values()):
        shapes = ", ".join(f"{key} {values.shape}" for key, values in arrays.items())
        raise FileError(f"the arrays of {name} must be one-dimensional, got {shapes}")
    sizes = {key: values.size for key, values in arrays.items()}
    several = {size for size in sizes.values() if size != 1} or {1}
    if len(several) > 1:
        shown = ", ".join(f"{key} {size:,}" for key, size in sizes.items())
        raise FileError(f"the arrays of {name} must be equally long, or single values, got {shown}")
    (rows,) = several

    def read(columns: Sequence[str]) -> Iterator[_Rows]:
        flat = {column: np.broadcast_to(arrays[column].reshape(-1), rows) for column in columns}
        if rows:
            yield flat, range(1, rows + 1)

    return PlainFile(name, list(arrays), read, unit="row")


# -- cells ----------------------------------------------------------------------------------------


class CellError(Exception):
    """A cell that is not what its column must hold."""

    def __init__(self, position: int, value: Any, rule: str) -> None:
        super().__init__()
        self.position, self.value, self.rule = position, value, rule


def converted(role: str, cells: Sequence[Any] | npt.NDArray[Any], source: str) -> npt.NDArray[Any]:
    """Return the cells of a role as an array; missing numbers are NaN, missing names empty."""
    if role in NAMES:
        return as_names(cells, source)
    return _as_flags(cells) if role == "target" else _as_numbers(cells)


def _as_numbers(cells: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "iuf":
            return cells
        cells = cells.tolist()
    kinds = set(map(type, cells))
    try:
        # Exact for whole numbers of any size, which a detour through floats would not be.
        if kinds in ({str}, {int}):
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
    raise CellError(position, cell, "numbers")


def _as_flags(cells: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flags = np.empty(len(cells))
    for position, cell in enumerate(cells.tolist() if isinstance(cells, np.ndarray) else cells):
        word = cell.strip().lower() if isinstance(cell, str) else cell
        try:
            flags[position] = _FLAGS[word] if word in _FLAGS else _as_number(position, word)
        except (CellError, TypeError):
            raise CellError(position, cell, "true or false (or 1 and 0)") from None
    return flags


def as_names(values: Sequence[Any] | npt.NDArray[Any], source: str) -> npt.NDArray[np.str_]:
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


def joined(batches: Sequence[Columns], source: str) -> Columns:
    """Return the rows of all batches, one after the other."""
    columns: Columns = {}
    for role in batches[0]:
        parts = [batch[role] for batch in batches]
        if parts[0].dtype.kind == "U":
            widest = max(part.itemsize for part in parts) * sum(map(len, parts))
            if widest > max(4 * _FEW_LETTERS, _LARGEST_WASTE * sum(part.nbytes for part in parts)):
                raise FileError(f"names in {source} must be of similar length; shorten the longest")
        columns[role] = np.concatenate(parts)
    return columns


# -- counting ------------------------------------------------------------------------------------


def compare_scores(columns: Columns, layout: Layout, source: str) -> Columns:
    """Compare each user's items with the user's target: one row for each user, by name."""
    codes, first = _codes(columns, [*layout.labels, "user"])
    size, is_target = len(first), columns["target"] == 1
    place = np.zeros(size, dtype=np.int64)
    place[codes[is_target]] = np.flatnonzero(is_target)
    aim = columns["score"][place[codes]]
    # This leaves out the target's own row, and a sampled item that is the target itself, as
    # `ranks_against` does.
    other = ~is_target
    if "item" in layout:
        other = columns["item"] != columns["item"][place[codes]]

    def count(chosen: BoolArray) -> IntArray:
        return np.bincount(codes[chosen], minlength=size)

    users = {role: columns[role][first] for role in [*layout.labels, "user"]}
    users |= {role: columns[role][place] for role in ("items", "weight") if role in layout}
    users[TARGETS] = count(is_target)
    users["sampled"] = count(other)
    users["better"] = count(other & (columns["score"] > aim))
    users["tied"] = count(other & (columns["score"] == aim))
    check_users(users, layout, source)
    return users


def check_users(users: Columns, layout: Layout, source: str) -> None:
    """Refuse the first user who has not one target among other items."""
    wrong = wrong_user(ArrayValues(users), layout.request.sampled)
    if wrong.any():
        names = [*layout.labels, "user"]
        order = np.lexsort([users[role] for role in reversed(names)])
        place = order[np.argmax(wrong[order])]
        raise user_complaint(layout, source, {role: users[role][place] for role in users})


def _codes(columns: Columns, roles: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return a number for each combination of some columns, and a row that has it."""
    codes = np.zeros(len(columns[roles[0]]), dtype=np.int64)
    for role in roles:
        names, where = np.unique(columns[role], return_inverse=True)
        codes = codes * len(names) + where.reshape(-1)
    _, first, numbered = np.unique(codes, return_index=True, return_inverse=True)
    return numbered.reshape(-1), first


def rows_of_users(columns: Columns) -> IntArray:
    """Return how many rows each user has."""
    return np.unique(columns["user"], return_counts=True)[1]


def summed(columns: Columns, layout: Layout) -> Columns:
    """Return rows with the sums that a cell of counts keeps.

    The squared weight is a target's weight times that of all targets of its user: the errors count
    users. Scored rows have one target for each user.
    """
    size = len(columns[LABEL if layout.labels else "better"])
    times = columns.get("count", np.ones(size, dtype=np.int64))
    each = columns.get("weight", np.ones(size))
    weight = times * each
    of_user = each
    if "user" in layout and not layout.scores:
        codes, _ = _codes(columns, [*layout.labels, "user"])
        of_user = np.bincount(codes, weight)[codes]
    sums = {"count": times, "weight": weight, "weight_squared": weight * of_user}
    return columns | sums


def with_design(columns: Columns, layout: Layout) -> Columns:
    """Return checked rows with whole numbers, the design of every row, and ranks as comparisons."""
    rest = dict(columns)
    if "rank" in rest:
        rest["better"] = rest.pop("rank") - 1
        rest["tied"] = np.zeros_like(rest["better"])
    given = {"items": layout.request.items, "sampled": layout.request.sampled}
    for role, number in given.items():
        rest.setdefault(role, np.broadcast_to(np.array(number), len(rest["better"])))
    for role in ("items", "sampled", "better", "tied", "count"):
        if role in rest:
            rest[role] = rest[role].astype(np.int64, copy=False)
    return rest


def by_label(columns: Columns, layout: Layout) -> dict[str, Columns]:
    """Return the rows of each value of the column to group by, sorted by it."""
    if not layout.labels:
        return {"": columns}
    order = np.argsort(columns[LABEL], kind="stable")
    names, starts = np.unique(columns[LABEL][order], return_index=True)
    return {
        str(name): {role: values[members] for role, values in columns.items()}
        for name, members in zip(names, np.split(order, starts[1:]), strict=True)
    }


def as_comparisons(columns: Columns) -> Comparisons:
    """Return rows with their sums as comparisons."""
    sums = ("count", "weight", "weight_squared")
    fields = ("sampled", "items", "better", "tied", *sums)
    return Comparisons(**{field: columns[field] for field in fields})


def as_targets(
    columns: Columns, layout: Layout, ties: str, rng: Seed, replacement: bool
) -> Targets:
    """Return rows as targets one by one, with ties broken in the order of the rows."""
    ranks = rank_with_ties(columns["better"], columns["tied"], check_ties(ties), as_rng(rng))
    between = ranks != np.floor(ranks)
    if between.any():
        raise RankError(
            "ties must be random, optimistic or pessimistic where ranks are counted: the "
            "realistic rank of some targets lies between two ranks, such as "
            f"{ranks[np.argmax(between)]}"
        )
    given = layout.request
    return Targets(
        ranks.astype(np.int64),
        columns["items"] if given.items is None else given.items,
        columns["sampled"] if given.sampled is None else given.sampled,
        columns.get("weight"),
        columns.get("user"),
        replacement,
    )


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlainTable:
    """Rows of one file or several, opened one after the other."""

    name: str
    files: Iterable[PlainFile]
    request: Request

    def cells(self) -> tuple[Layout, Iterator[Columns]]:
        """Return rows with their sums: batch by batch, where no user must be found again."""
        layout, batches = self._checked()
        if layout.scores or "user" in layout:
            batches = iter([self._joined(layout, batches)])
        else:
            batches = (with_design(columns, layout) for columns in batches)
        return layout, (summed(columns, layout) for columns in batches)

    def rows(self) -> tuple[Layout, Columns]:
        """Return all targets one by one."""
        layout, batches = self._checked()
        return layout, self._joined(layout, batches)

    def _joined(self, layout: Layout, batches: Iterator[Columns]) -> Columns:
        columns = joined(list(batches), self.name)
        if layout.scores:
            columns = compare_scores(columns, layout, self.name)
        elif POOLED in layout:
            models, rows = len(np.unique(columns.pop(POOLED))), rows_of_users(columns)
            warn_of_pooled_models(layout, self.name, rows.min(), rows.max(), models)
        return with_design(columns, layout)

    def _checked(self) -> tuple[Layout, Iterator[Columns]]:
        """Return the layout of the first file, and the rows of all of them, checked."""
        batches = self._batches()
        start = next(batches, None)
        if start is None:
            raise FileError(f"{self.name} has no rows")
        return start[0], chain([start[1]], (columns for _, columns in batches))

    def _batches(self) -> Iterator[tuple[Layout, Columns]]:
        first: tuple[str, Layout] | None = None
        for file in self.files:
            layout = Layout.find(
                file.header, file.name, self.request, error=FileError, hint=file.hint
            )
            if first is not None:
                check_same_roles(*first, file.name, layout)
            first = first or (file.name, layout)
            rules = layout.rules()
            for rows in file.read(list(dict.fromkeys(layout.read.values()))):
                yield layout, _checked_columns(rows, layout, rules, file)


def _checked_columns(
    rows: _Rows, layout: Layout, rules: Sequence[Rule], file: PlainFile
) -> Columns:
    cells, numbers = rows
    columns: Columns = {}
    for role, column in layout.read.items():
        try:
            columns[role] = converted(role, cells[column], file.name)
        except CellError as problem:
            rule = Rule(role, problem.rule, bool, FileError)
            place = f" in {file.unit} {numbers[problem.position]}"
            raise complaint(rule, layout, file.name, problem.value, place) from None
    broken = first_broken(rules, columns)
    if broken is not None:
        rule, position = broken
        place = f" in {file.unit} {numbers[position]}"
        raise complaint(rule, layout, file.name, columns[rule.role][position], place)
    return columns
