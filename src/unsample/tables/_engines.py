"""The engines that hold tables, DuckDB and Spark: both answer queries, and keep results."""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import ExitStack
from typing import Any

import numpy as np

from unsample._checks import import_extra
from unsample.tables._layout import Columns
from unsample.tables._sql import DIALECTS


class DuckDB:
    """A database in memory that fetches nothing from elsewhere, and spills what does not fit."""

    dialect = DIALECTS["duckdb"]

    def __init__(self, stack: ExitStack) -> None:
        duckdb = import_extra("duckdb", extra="all", purpose="reading tables")
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="unsample-"))
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
        found = self.connection.execute(query).fetchnumpy()
        return {name: _with_nulls(each) for name, each in found.items()}

    def keep(self, query: str) -> str:
        """Store a query's result, and return its name."""
        name = f"kept_{next(self.number)}"
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
        return name

    def register(self, rows: Any) -> str:
        """Let queries read a frame or arrays, and return their name."""
        name = f"frame_{next(self.number)}"
        self.connection.register(name, rows)
        return name

    def kinds(self, rows: str) -> dict[str, str]:
        """Return what kind of values each column of some rows holds."""
        found = self.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        return {str(name): kind_of(str(kind)) for name, kind, *_ in found}


class Spark:
    """A session of Spark."""

    dialect = DIALECTS["spark"]

    def __init__(self, session: Any) -> None:
        self.session = session

    def ask(self, query: str) -> Columns:
        """Return the columns of a query's result."""
        found = self.session.sql(query)
        rows = found.collect()
        return {
            name: np.array([row[place] for row in rows], dtype=object)
            for place, name in enumerate(found.columns)
        }

    def keep(self, query: str) -> str:
        """Return what stands for a query's result."""
        return f"({query}) AS kept"


def _with_nulls(values: Any) -> Any:
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
