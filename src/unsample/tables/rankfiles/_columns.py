"""Columns to counts and targets: checking every value, and naming the place of a bad one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import as_integer_array, as_text_array, suggest
from unsample.errors import DesignError, FileError, InputError
from unsample.evidence import Comparisons, RankCounts, Targets
from unsample.tables.rankfiles._request import Request
from unsample.tables.rankfiles._table import LONGEST_NUMBER, NUMBER_COLUMNS, USER, Table, is_number

__all__ = ["count_rows", "group_rows", "require_columns", "targets_of"]

_MIXED_HINT = "; where designs differ by row, add columns sampled and items"


def require_columns(table: Table, by: str | None) -> None:
    """Refuse a table that lacks its ranks, the column to group by, or rows."""
    compared = "better" in table.columns and "rank" not in table.columns
    for name in (*(("better", "tied") if compared else ("rank",)), by):
        if name is not None and name not in table.columns:
            present = ", ".join(table.columns) or "none"
            near = suggest(name, table.columns)
            raise FileError(
                f"{table.source} has no column {name!r}; its columns are: {present}"
                + (f"; {near}" if near else "")
            )
    if _rows_of(table) == 0:
        raise FileError(f"{table.source} has a header but no rows")


def _rows_of(table: Table) -> int:
    return len(table.columns["rank" if "rank" in table.columns else "better"])


def group_rows(table: Table, by: str | None) -> dict[str, npt.NDArray[np.int64]]:
    """Return the rows of each value of a column; all of them for None."""
    if by is None:
        return {"": np.arange(_rows_of(table))}
    groups: dict[str, list[int]] = {}
    for row, label in enumerate(table.columns[by]):
        groups.setdefault(str(label), []).append(row)
    return {label: np.array(rows) for label, rows in groups.items()}


def count_rows(table: Table, rows: npt.NDArray[np.int64], request: Request) -> RankCounts:
    """Count some rows of a table."""
    return _counted(table, rows, _numbers_of(table, rows), request)


def targets_of(table: Table, rows: npt.NDArray[np.int64], request: Request) -> Targets:
    """Return some rows of a table as targets, checked like those that are counted."""
    columns = _numbers_of(table, rows)
    found = Targets(
        columns["rank"],
        _option_or_column(table, "items", request.items, columns.get("items")),
        _option_or_column(table, "sampled", request.sampled, columns.get("sampled")),
        columns.get("weight"),
        _users(table, rows),
        request.replacement,
    )
    _counted(table, rows, columns, request)  # says what is wrong with the ranks, and where
    return found


def _numbers_of(table: Table, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    present = (name for name in NUMBER_COLUMNS if name in table.columns)
    return {name: _numbers(table, name, rows) for name in present}


def _counted(
    table: Table, rows: npt.NDArray[np.int64], columns: dict[str, Any], request: Request
) -> RankCounts:
    items = _option_or_column(table, "items", request.items, columns.get("items"))
    sampled = _option_or_column(table, "sampled", request.sampled, columns.get("sampled"))
    try:
        if "rank" not in columns:
            return request.count(_compared(columns, items, sampled))
        return RankCounts.from_ranks(
            columns["rank"],
            items=items,
            sampled=sampled,
            weights=columns.get("weight"),
            count=columns.get("count"),
            users=_users(table, rows),
            replacement=request.replacement,
        )
    except InputError as problem:
        hint = "" if {"items", "sampled"} & set(columns) else _MIXED_HINT
        raise type(problem)(f"{table.source}: {problem}{hint}") from problem


def _users(table: Table, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any] | None:
    if USER not in table.columns:
        return None
    values = table.columns[USER]
    names = [str(values[row]) for row in rows]
    return as_text_array(f"users of {table.source}", names, error=FileError)


def _compared(columns: Mapping[str, Any], items: Any, sampled: Any) -> Comparisons:
    return Comparisons.of_targets(
        as_integer_array("better", columns["better"]),
        as_integer_array("tied", columns["tied"]),
        items=items,
        sampled=sampled,
        weights=columns.get("weight"),
        count=as_integer_array("count", columns["count"]) if "count" in columns else None,
    )


def _numbers(table: Table, name: str, rows: npt.NDArray[np.int64]) -> Any:
    values = table.columns[name]
    try:
        cells = [values[row] for row in rows]
        # An array of texts makes every cell as long as the longest.
        if any(isinstance(cell, str) and len(cell) > LONGEST_NUMBER for cell in cells):
            return _first_bad_number(table, name, rows)
        chosen = np.array(cells)
        # Exact for whole numbers of any size, which a detour through floats would not be.
        numbers = chosen if chosen.dtype.kind in "iuf" else _from_text(chosen)
    except (ValueError, TypeError, OverflowError):
        return _first_bad_number(table, name, rows)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        return _first_bad_number(table, name, rows)
    return numbers


def _from_text(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return values.astype(np.int64)
    except (ValueError, OverflowError):
        return values.astype(np.float64)


def _first_bad_number(table: Table, name: str, rows: npt.NDArray[np.int64]) -> Any:
    for row in rows:
        value = table.columns[name][row]
        if not is_number(value):
            raise FileError(
                f"{table.source}, {table.place(int(row))}: {name} must be a number, got {value!r}"
            )
    raise FileError(f"{table.source}: {name} must hold numbers of a common type")


def _option_or_column(
    table: Table, name: str, option: int | None, column: npt.NDArray[Any] | None
) -> Any:
    if column is None and option is None:
        raise DesignError(
            f"{name} must be given: pass --{name}, or add a column {name!r} to {table.source}"
        )
    if column is None:
        return option
    if option is not None and (column != option).any():
        other = column[np.argmax(column != option)]
        raise DesignError(
            f"{name} is {option} by option but {other} in a row of {table.source}; give one of them"
        )
    return column
