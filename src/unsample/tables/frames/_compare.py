"""From a table to comparisons: one query, in the table's own engine.

Bad values are looked for among the groups that come back, which are few; only when there is one
is the table asked again for the row it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import LARGEST_CATALOGUE, BoolArray, check_integer
from unsample.errors import DesignError, FileError, InputError
from unsample.evidence import Comparisons
from unsample.tables.frames._layout import LABEL, Layout
from unsample.tables.frames._queries import (
    BAD,
    TARGETS,
    cells_of_ranks,
    cells_of_users,
    users_of_scores,
)
from unsample.tables.frames._refuse import refuse_row, refuse_user, refuse_words
from unsample.tables.frames._roles import check_types, read_roles
from unsample.tables.frames._table import Table, fetch, is_missing

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["compare_frame", "compare_table"]


#: What can be added up without leaving 64 bits.
_MOST_TARGETS = 2.0**62


def compare_frame(
    frame: Any,
    *,
    by: str | None = None,
    items: int | None = None,
    sampled: int | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
) -> dict[str, Comparisons]:
    """Return the comparisons in a data frame, for each value of the column ``by``."""
    return compare_table(
        Table.from_native(frame), by=by, items=items, sampled=sampled, columns=columns, rows=rows
    )


def compare_table(
    table: Table,
    *,
    by: str | None = None,
    items: int | None = None,
    sampled: int | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
) -> dict[str, Comparisons]:
    """Return the comparisons in a table, for each value of the column ``by``.

    Without ``by`` there is one group, called ``""``. Labels are sorted.
    """
    layout = Layout.find(
        list(table.schema), table.name, rows=rows, columns=columns, by=by, error=table.error
    )
    layout.check_design(items, sampled, table.name)
    design = {
        "items": _check_design_number("items", items, minimum=2),
        "sampled": _check_design_number("sampled", sampled, minimum=1),
    }
    check_types(table, layout)
    count = _cells_of_scores if layout.rows == "scores" else _cells_of_ranks
    try:
        return _by_label(count(table, layout, design), layout)
    except table.failures as problem:  # also while a bad row is looked for
        raise FileError(f"cannot read {table.name}: {_first_line(problem)}") from problem


def _check_design_number(name: str, value: int | None, minimum: int) -> int | None:
    if value is None:
        return None
    return check_integer(name, value, minimum=minimum, maximum=LARGEST_CATALOGUE, error=DesignError)


_Cells = dict[str, npt.NDArray[Any]]


def _cells_of_ranks(table: Table, layout: Layout, design: Mapping[str, int | None]) -> _Cells:
    cells = _collect(table, layout, cells_of_ranks(read_roles(table, layout), layout))
    _require_rows(cells, table)
    _require_labels(cells, table, layout)
    cells = _with_designs(cells, table, layout, design)
    for name in (n for n in ("count", "weight") if n in layout):
        if cells[f"{BAD}_{name}"].any():
            refuse_row(table, layout, name)
    _check_places(cells, table, layout)
    if layout.rows == "ranks":
        cells["better"] = cells["rank"] - 1
        cells["tied"] = np.zeros_like(cells["better"])
    return cells


def _cells_of_scores(table: Table, layout: Layout, design: Mapping[str, int | None]) -> _Cells:
    users = users_of_scores(read_roles(table, layout), layout)
    cells = _collect(table, layout, cells_of_users(users, layout))
    _require_rows(cells, table)
    _require_labels(cells, table, layout)
    if cells[BAD].any():
        _refuse_scores(table, layout)
    for wrong in (cells[TARGETS] != 1, cells["sampled"] < 1):
        if wrong.any():
            refuse_user(table, layout, users)
    if design["sampled"] is not None and (cells["sampled"] != design["sampled"]).any():
        refuse_user(table, layout, users, sampled=design["sampled"])
    return _with_designs(cells, table, layout, {**design, "sampled": None})


def _refuse_scores(table: Table, layout: Layout) -> None:
    for role in ("user", "item", "target", "score", "weight"):
        if role in layout:
            refuse_row(table, layout, role, required=False)
    raise InputError(f"{table.name} has rows that cannot be ranked")  # pragma: no cover


def _require_rows(cells: _Cells, table: Table) -> None:
    if not len(cells["count"]):
        raise table.error(f"{table.name} has no rows")


def _require_labels(cells: _Cells, table: Table, layout: Layout) -> None:
    if layout.by is not None and any(map(is_missing, cells[LABEL])):
        refuse_row(table, layout, LABEL)


def _with_designs(
    cells: _Cells, table: Table, layout: Layout, design: Mapping[str, int | None]
) -> _Cells:
    """Put the design into every cell, from its column or the number given; both must agree."""
    for name, number in design.items():
        if name not in cells:
            assert number is not None  # Layout.check_design has seen to it
            cells[name] = np.full(len(cells["count"]), number, dtype=np.int64)
        smallest = 2 if name == "items" else 1
        if not _is_whole(cells[name], smallest, LARGEST_CATALOGUE).all():
            refuse_row(table, layout, name)
        cells[name] = cells[name].astype(np.int64)
        differs = cells[name] != number if number is not None else np.zeros(0, dtype=bool)
        if differs.any():
            raise DesignError(
                f"{name} is {number} by argument but {cells[name][np.argmax(differs)]} in column "
                f"{layout.column(name)!r} of {table.name}; give one of them"
            )
    return cells


def _check_places(cells: _Cells, table: Table, layout: Layout) -> None:
    """Refuse ranks (or comparisons) that cannot come from the design of their row."""
    others = cells["sampled"]
    if layout.rows == "ranks":
        good = {"rank": _is_whole(cells["rank"], 1, others + 1)}
    else:
        good = {name: _is_whole(cells[name], 0, others) for name in ("better", "tied")}
        if all(column.all() for column in good.values()):
            good["tied"] = _is_whole(cells["better"] + cells["tied"], 0, others)
    for role, column in good.items():
        if not column.all():
            refuse_row(table, layout, role, sampled=int(others[np.argmin(column)]))
        cells[role] = cells[role].astype(np.int64)


def _is_whole(values: npt.NDArray[Any], low: int, high: int | npt.NDArray[np.int64]) -> BoolArray:
    with np.errstate(invalid="ignore"):
        return np.asarray((values == np.floor(values)) & (values >= low) & (values <= high))


def _by_label(cells: _Cells, layout: Layout) -> dict[str, Comparisons]:
    fields = ("sampled", "items", "better", "tied", "count", "weight", "weight_squared")
    if layout.by is None:
        return {"": Comparisons(**{field: cells[field] for field in fields})}
    labels = np.array([str(label) for label in cells[LABEL]], dtype=object)
    order = np.argsort(labels, kind="stable")
    names, starts = np.unique(labels[order], return_index=True)
    return {
        str(name): Comparisons(**{field: cells[field][members] for field in fields})
        for name, members in zip(names, np.split(order, starts[1:]), strict=True)
    }


def _collect(table: Table, layout: Layout, query: nw.LazyFrame[Any]) -> _Cells:
    """Run a query and return its columns: numbers as arrays, nulls as NaN."""
    try:
        columns = fetch(query)
    except table.failures as problem:
        if table.text:
            refuse_words(table, layout)
        raise FileError(f"cannot read {table.name}: {_first_line(problem)}") from problem
    cells = {name: _as_array(values, name) for name, values in columns.items()}
    count = cells["count"]
    if len(count) and not (np.abs(count[~np.isnan(count)]) < _MOST_TARGETS).all():
        refuse_row(table, layout, "count", required=False)
        raise FileError(f"{table.name} must count fewer than 2^62 targets, got more")
    cells["count"] = np.where(np.isnan(count), 0, count).astype(np.int64) if len(count) else count
    for name in ("weight", "weight_squared"):
        cells.setdefault(name, cells["count"].astype(np.float64))
        cells[name] = cells[name].astype(np.float64)
    return cells


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def _as_array(values: list[Any], name: str) -> npt.NDArray[Any]:
    if name == LABEL:
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    plain = [_as_number(value) for value in values]
    whole = all(isinstance(number, int) and abs(number) < 2**63 for number in plain)
    return np.array(plain, dtype=np.int64 if whole else np.float64)


def _as_number(value: Any) -> int | float:
    """Return a plain number: engines add up in wider types (decimals) and have several nulls."""
    if is_missing(value):
        return np.nan
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return int(value) if isinstance(value, int) else float(value)
