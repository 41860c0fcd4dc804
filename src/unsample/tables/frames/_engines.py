"""What reads files: Polars, DuckDB and Spark, each behind the same few functions."""

from __future__ import annotations

import glob
import importlib.util
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unsample._checks import check_choice, import_extra
from unsample.errors import MissingExtraError
from unsample.tables.frames._table import ROW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ENGINES", "FileEngine", "embedded_engine", "file_engine", "spark_session"]

_DELIMITERS = {"csv": ",", "tsv": "\t"}
#: Any of these says that somebody has configured Spark, and nothing is to be assumed.
_SPARK_CONFIGURATION = (
    "MASTER",
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "SPARK_REMOTE",
)


class FileEngine(ABC):
    """Opens files of one format and one schema as a native lazy frame."""

    @abstractmethod
    def scan(self, paths: Sequence[str], kind: str, header: Sequence[str] | None) -> Any:
        """Return a frame over ``paths``; text files give text, named by their ``header``.

        A header of None means that the names stand in the first line of each file.
        """

    def number_rows(self, path: str, kind: str, header: Sequence[str] | None) -> Any:
        """Return a frame over one file, with a column `ROW` if the engine keeps rows in order."""
        return self.scan([path], kind, header)

    @property
    @abstractmethod
    def failures(self) -> tuple[type[Exception], ...]:
        """Return what the engine raises when it cannot read a file."""


class PolarsEngine(FileEngine):
    """Polars, whose streaming engine holds a few batches of rows at a time."""

    def __init__(self) -> None:
        self._polars = import_extra("polars", extra="frames", purpose="the engine polars")

    def scan(self, paths: Sequence[str], kind: str, header: Sequence[str] | None) -> Any:
        """Return a Polars LazyFrame."""
        if kind == "parquet":
            named = _folders_name_columns(paths)
            return self._polars.scan_parquet(list(paths), hive_partitioning=named, glob=False)
        if kind == "jsonl":
            return self._polars.scan_ndjson(list(paths), infer_schema_length=None)
        return self._polars.scan_csv(
            list(paths),
            separator=_DELIMITERS[kind],
            has_header=header is None,
            new_columns=header,
            infer_schema=False,
            glob=False,
        )

    def number_rows(self, path: str, kind: str, header: Sequence[str] | None) -> Any:
        """Return a Polars LazyFrame with numbered rows."""
        return self.scan([path], kind, header).with_row_index(ROW)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Return what Polars raises."""
        errors = self._polars.exceptions
        # Some damaged files make it panic, which is not even an Exception.
        return (*_wrapped(), errors.PolarsError, errors.PanicException, OSError)


class DuckDBEngine(FileEngine):
    """DuckDB, in memory and in this process; it spills to disk what does not fit."""

    def __init__(self) -> None:
        self._duckdb = import_extra("duckdb", extra="frames", purpose="the engine duckdb")
        self._connection = self._duckdb.connect(config={"temp_directory": tempfile.gettempdir()})
        self._connection.execute("SET enable_progress_bar = false")

    def scan(self, paths: Sequence[str], kind: str, header: Sequence[str] | None) -> Any:
        """Return a DuckDB relation."""
        # It takes every name for a pattern; these are names of files that were found.
        places = [path if "://" in path else glob.escape(path) for path in paths]
        if kind == "parquet":
            named = _folders_name_columns(paths)
            return self._connection.read_parquet(places, hive_partitioning=named)
        if kind == "jsonl":
            return self._connection.read_json(places, format="newline_delimited")
        return self._connection.read_csv(
            places,
            sep=_DELIMITERS[kind],
            header=header is None,
            names=header,
            all_varchar=True,
            quotechar='"',
            escapechar='"',
        )

    def number_rows(self, path: str, kind: str, header: Sequence[str] | None) -> Any:
        """Return a DuckDB relation with numbered rows."""
        return self.scan([path], kind, header).project(f"*, row_number() OVER () - 1 AS {ROW}")

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Return what DuckDB raises."""
        # Names of columns that are no text fail on their way into Python.
        return (*_wrapped(), self._duckdb.Error, RuntimeError, UnicodeError)


class SparkEngine(FileEngine):
    """The Spark session that is there, or a local one."""

    def __init__(self) -> None:
        self._session = spark_session()

    def scan(self, paths: Sequence[str], kind: str, header: Sequence[str] | None) -> Any:
        """Return a Spark DataFrame."""
        # Found here, so lying here: Spark would look in the folder and the store it was set up for.
        places = [path if "://" in path else f"file://{Path(path).absolute()}" for path in paths]
        if kind == "parquet":
            return self._session.read.parquet(*places)
        if kind == "jsonl":
            return self._session.read.json(places)
        frame = self._session.read.csv(
            places, sep=_DELIMITERS[kind], header=header is None, escape='"'
        )
        return frame if header is None else frame.toDF(*header)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Return what Spark raises."""
        errors = import_extra("pyspark.errors", extra="spark", purpose="the engine spark")
        return (*_wrapped(), errors.PySparkException)


def _wrapped() -> tuple[type[Exception], ...]:
    """Return what narwhals makes of an engine's own errors."""
    from narwhals.exceptions import NarwhalsError

    return (NarwhalsError,)


def _folders_name_columns(paths: Sequence[str]) -> bool:
    """Return whether the files lie in folders such as ``model=A``."""
    return any("=" in folder for folder in Path(paths[0]).parts[:-1])


_ENGINES: dict[str, type[FileEngine]] = {
    "duckdb": DuckDBEngine,
    "polars": PolarsEngine,
    "spark": SparkEngine,
}
ENGINES = tuple(_ENGINES)
#: Those that read files in this process, the one that needs least memory first.
_EMBEDDED = ("duckdb", "polars")


def embedded_engine() -> str | None:
    """Return the name of the first engine that is installed and runs in this process."""
    return next((name for name in _EMBEDDED if importlib.util.find_spec(name)), None)


def file_engine(name: str | None = None) -> FileEngine:
    """Return the engine of that name; by default the embedded one."""
    chosen = embedded_engine() if name is None else check_choice("engine", name, ENGINES)
    if chosen is None:
        raise MissingExtraError(
            f"reading such files needs {' or '.join(_EMBEDDED)}, and none is installed; "
            "install them with: pip install 'unsample[frames]'"
        )
    return _ENGINES[chosen]()


def spark_session() -> SparkSession:
    """Return the active Spark session, or start one.

    The master and everything else come from Spark's usual configuration (``spark-submit``,
    ``PYSPARK_SUBMIT_ARGS``, ``SPARK_CONF_DIR``, ``SPARK_REMOTE``); without any, Spark runs in
    local mode on all processors.
    """
    sql = import_extra("pyspark.sql", extra="spark", purpose="the engine spark")
    active: SparkSession | None = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    if "SPARK_REMOTE" not in os.environ:
        _require_java()
    # Workers must run this interpreter: another one on the path may lack numpy, or differ.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("unsample")
    if not any(name in os.environ for name in _SPARK_CONFIGURATION):
        # A local session talks to itself only, whatever the machine's name resolves to.
        builder = builder.master("local[*]")
        for name in ("spark.driver.bindAddress", "spark.driver.host"):
            builder = builder.config(name, "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
    session: SparkSession = builder.getOrCreate()
    return session


def _require_java() -> None:
    from shutil import which

    home = os.environ.get("JAVA_HOME")
    if not (which("java") or (home and (Path(home) / "bin" / "java").exists())):
        raise MissingExtraError(
            "the engine spark needs Java 17 or newer, and no java command is on the path; install "
            "a Java runtime and set JAVA_HOME (Debian: apt install openjdk-17-jre-headless)"
        )
