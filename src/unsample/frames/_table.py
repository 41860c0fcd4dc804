"""A table in some engine, and how to name one of its rows in a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unsample._checks import import_extra
from unsample.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["ROW", "Part", "Table", "is_frame", "is_missing", "lazy_frame"]

#: The column that numbers the rows of a part, from 0, where its engine keeps their order.
ROW = "unsample_row_number"


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a table that have a place of their own (a file), numbered where possible."""

    name: str
    frame: nw.LazyFrame[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """A lazy frame, and what it is called.

    ``parts`` gives the same rows again, piece by piece, to find a bad one among them; it is asked
    only when there is one.
    """

    name: str
    frame: nw.LazyFrame[Any]
    parts: Callable[[], Iterator[Part]]
    error: type[InputError] = InputError

    @classmethod
    def from_native(cls, native: Any, name: str = "the frame") -> Table:
        """Wrap a data frame of any supported library."""
        frame = lazy_frame(native)
        return cls(name, frame, lambda: iter([Part(name, _numbered(native))]))


def is_frame(value: object) -> bool:
    """Return whether ``value`` is a table with named columns, without importing anything."""
    return any(hasattr(value, name) for name in ("columns", "column_names"))


def lazy_frame(native: Any) -> nw.LazyFrame[Any]:
    """Return a narwhals frame that computes nothing until it is collected."""
    nw = import_extra("narwhals", extra="frames", purpose="reading data frames")
    try:
        frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
    except TypeError as problem:
        raise InputError(
            "frame must be a data frame of pandas, Polars, PyArrow, DuckDB, PySpark or Dask, got "
            f"{type(native).__name__}; pass plain sequences of ranks to RankCounts.from_ranks"
        ) from problem
    except ImportError as problem:
        raise MissingExtraError(f"a frame of its kind cannot be read: {problem}") from problem
    return frame


def is_missing(value: Any) -> bool:
    """Return whether a value from a frame is null, in any spelling: None, NaN or NA."""
    if value is None:
        return True
    differs = value != value  # noqa: PLR0124 - NaN differs from itself, and NA refuses to say
    return bool(differs) if isinstance(differs, bool | np.bool_) else True


def _numbered(native: Any) -> nw.LazyFrame[Any]:
    import narwhals as nw

    frame = nw.from_native(native)
    if isinstance(frame, nw.DataFrame):
        return frame.with_row_index(ROW).lazy()
    if frame.implementation.is_polars():
        return nw.from_native(nw.to_native(frame).with_row_index(ROW))
    return frame
