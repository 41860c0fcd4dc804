"""A table in some engine, and how to name one of its rows in a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unsample.errors import InputError

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["ROW", "Part", "Table", "fetch", "first_row", "is_frame", "is_missing", "lazy_frame"]

#: The column that numbers the rows of a part, from 0, where its engine keeps their order.
ROW = "unsample_row_number"


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a table that have a place of their own (a file).

    ``open_numbered`` gives them with a column `ROW`, where the engine keeps their order.
    """

    name: str
    schema: Mapping[str, Any]
    open_numbered: Callable[[], nw.LazyFrame[Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that an engine can be asked for, and what they are called in messages.

    Attributes
    ----------
    name
        How messages call the table.
    schema
        Its columns and their types; those of the first file, where there are several.
    read
        Gives a lazy frame with some of the columns.
    parts
        Gives the same rows piece by piece; asked to compare the types of files, and to find a bad
        row again.
    error
        What is raised when a column or all rows are missing.
    text
        Whether all values are text, to be read as numbers.
    failures
        What the engine raises when it meets values that it cannot read.
    """

    name: str
    schema: Mapping[str, Any]
    read: Callable[[Sequence[str]], nw.LazyFrame[Any]]
    parts: Callable[[], Iterator[Part]]
    error: type[InputError] = InputError
    text: bool = False
    failures: tuple[type[Exception], ...] = ()

    @classmethod
    def from_native(cls, native: Any, name: str = "the frame") -> Table:
        """Wrap a data frame of any supported library."""
        frame = lazy_frame(native)
        schema = frame.collect_schema()
        return cls(
            name,
            schema,
            lambda columns: frame.select(*columns),
            lambda: iter([Part(name, schema, lambda: _number_rows(native))]),
        )


def is_frame(value: object) -> bool:
    """Return whether ``value`` is a table with named columns, without importing anything."""
    # The class is asked, because a lazy frame would have to find out to answer.
    return any(hasattr(type(value), name) for name in ("columns", "column_names"))


def is_missing(value: Any) -> bool:
    """Return whether a value from a frame is null, in any spelling: None, NaN or NA."""
    if value is None:
        return True
    differs = value != value  # noqa: PLR0124 - NaN differs from itself, and NA refuses to say
    return bool(differs) if isinstance(differs, bool | np.bool_) else True


def lazy_frame(native: Any) -> nw.LazyFrame[Any]:
    """Return a narwhals frame that computes nothing until it is collected."""
    import narwhals as nw

    try:
        frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
        frame.collect_schema()
    except TypeError as problem:
        raise InputError(
            "frame must be a data frame of pandas, Polars, PyArrow, DuckDB, PySpark or Dask, got "
            f"{type(native).__name__}; pass plain sequences of ranks to RankCounts.from_ranks"
        ) from problem
    except nw.exceptions.DuplicateError as problem:
        raise InputError(f"the columns of frame must have different names: {problem}") from problem
    return frame


def fetch(query: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
    """Run a query in its engine and return its few rows, as a list for each column."""
    if query.implementation.is_duckdb():
        # DuckDB hands rows over itself; the way through Arrow would need another library.
        relation = query.to_native()
        rows = relation.fetchall()
        return {name: [row[place] for row in rows] for place, name in enumerate(relation.columns)}
    streaming: dict[str, Any] = {"engine": "streaming"} if query.implementation.is_polars() else {}
    result = query.collect(**streaming)
    return {name: result[name].to_list() for name in result.columns}


def first_row(query: nw.LazyFrame[Any]) -> dict[str, Any] | None:
    """Return one row of a query's result, or None if it has none."""
    columns = fetch(query.head(1))
    return {name: values[0] for name, values in columns.items() if values} or None


def _number_rows(native: Any) -> nw.LazyFrame[Any]:
    import narwhals as nw

    frame = nw.from_native(native)
    lazy: nw.LazyFrame[Any] = frame.lazy()
    if isinstance(frame, nw.DataFrame):
        lazy = frame.with_row_index(ROW).lazy()
    elif lazy.implementation.is_polars():
        lazy = nw.from_native(lazy.to_native().with_row_index(ROW))
    return lazy
