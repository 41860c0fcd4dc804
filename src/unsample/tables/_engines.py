"""The engines that hold tables, DuckDB and Spark: both answer queries, and keep results.

No value of data is written into a query. The engine gets values as parameters, and the query names
the parameters. Otherwise data could be read as a part of the query, by rules that differ by engine.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from unsample._checks import import_extra
from unsample._files import temporary_folder
from unsample.errors import InputError
from unsample.tables._layout import Columns, as_names
from unsample.tables._sql import DIALECTS

#: Kinds of numpy's types that an engine has a type for: not complex numbers, nor records.
_TAKEN = frozenset("biufSUTOmM")
#: Bytes of the largest real number that engines have.
_LARGEST_REAL = 8


class DuckDB:
    """A database in memory that fetches nothing from elsewhere, and spills what does not fit."""

    dialect = DIALECTS["duckdb"]

    def __init__(self, stack: ExitStack) -> None:
        duckdb = import_extra("duckdb", extra="", purpose="reading tables")
        folder = stack.enter_context(temporary_folder())
        config = {
            "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2,
            "memory_limit": "2GB",
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self.failures: tuple[type[Exception], ...] = (duckdb.Error,)
        self.number = itertools.count()
        self.connection: Any = duckdb.connect(config=config)
        stack.callback(self.close)
        self.connection.execute("SET enable_progress_bar = false")

    def close(self) -> None:
        """Let go of the connection, which whoever looks at an error may hold."""
        self.connection.close()
        self.connection = None

    def ask(self, query: str) -> Columns:
        """Return the columns of a query's result."""
        columns = self.connection.execute(query).fetchnumpy()
        return {name: with_nulls(values) for name, values in columns.items()}

    def keep(self, query: str) -> str:
        """Store a query's result, and return its name."""
        name = f"kept_{next(self.number)}"
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
        return name

    def register(self, rows: Any) -> str:
        """Let queries read a frame or arrays, and return their name."""
        name = f"frame_{next(self.number)}"
        if isinstance(rows, Mapping):
            rows = {column: _checked_values(column, values) for column, values in rows.items()}
        self.connection.register(name, rows)
        return name

    def bind(self, value: str | list[str]) -> str:
        """Let queries use a value, and return what stands for it."""
        name = f"value_{next(self.number)}"
        self.connection.execute(f"SET VARIABLE {name} = $1", [value])
        return f"getvariable('{name}')"

    def kinds(self, rows: str) -> dict[str, str]:
        """Return what kind of values each column of some rows holds."""
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        return {str(name): kind_of(str(kind)) for name, kind, *_ in described}


class Spark:
    """A session of Spark."""

    dialect = DIALECTS["spark"]

    def __init__(self, session: Any) -> None:
        self.session = session
        self.values: dict[str, str] = {}

    def ask(self, query: str) -> Columns:
        """Return the columns of a query's result."""
        frame = self.session.sql(query, args=self.values)
        rows = frame.collect()
        return {
            name: np.array([row[column] for row in rows], dtype=object)
            for column, name in enumerate(frame.columns)
        }

    def keep(self, query: str) -> str:
        """Return what stands for a query's result."""
        return f"({query}) AS kept"

    def bind(self, value: str) -> str:
        """Let queries use a value, and return what stands for it."""
        name = f"value_{len(self.values)}"
        self.values[name] = value
        return f":{name}"


def _checked_values(column: str, values: Any) -> Any:
    """Return the values of a column as DuckDB takes them; refuse types that it does not have."""
    if values.dtype.kind not in _TAKEN:
        raise InputError(
            f"column {column!r} must hold numbers, names or dates, got values of type "
            f"{values.dtype}; convert it, or leave it out"
        )
    try:
        return _as_engine_takes(values)
    except UnicodeDecodeError as problem:
        raise InputError(
            f"column {column!r} must hold UTF-8 text, got bytes that are not ({problem.reason}); "
            "decode it first, such as numpy.char.decode(values, 'latin-1')"
        ) from problem


def _as_engine_takes(values: Any) -> Any:
    """Return an array as DuckDB registers it quickly, and gives it back without pandas.

    Of numpy's text it makes an enumeration, which only pandas could hold, or it takes none. Of
    objects it looks at some, and fails at the first text among numbers. Numbers must be in the
    order of bytes of this machine, and dates in units that it knows.
    """
    kind = values.dtype.kind
    if kind == "S":
        return np.char.decode(values, "utf-8").astype(object)
    if kind in "UT":
        return values.astype(object)
    if kind == "O":
        types = {*map(type, values.tolist())} - {type(None)}
        has_text_and_others = len({issubclass(kind, str) for kind in types}) > 1
        return as_names(values).astype(object) if has_text_and_others else values
    if kind == "M":
        return values.astype("datetime64[us]")
    if kind == "f" and values.dtype.itemsize > _LARGEST_REAL:
        return values.astype(np.float64)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))


def with_nulls(values: Any) -> Any:
    """Return an array in which what a mask hides is nothing."""
    if not np.ma.is_masked(values):
        return np.asarray(values)
    return np.where(np.ma.getmaskarray(values), None, values.data.astype(object))


def kind_of(dtype: str) -> str:
    """Return what a column of this type holds, or the type where it holds no value we take."""
    upper = dtype.upper()
    if upper.startswith(("VARCHAR", "ENUM", "STRING", "CHAR")):
        return "text"
    if upper.startswith(("DECIMAL", "DOUBLE", "FLOAT", "REAL")):
        return "real"
    return "whole" if "INT" in upper and "INTERVAL" not in upper else upper
