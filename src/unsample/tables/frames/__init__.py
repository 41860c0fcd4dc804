"""Tables of ranks or scores to counts, inside whatever engine holds them.

One code path (through narwhals) for pandas, Polars eager and lazy, PyArrow, DuckDB, Spark and Dask:
the engine groups and adds, and only the groups come back. `unsample.tables.read_counts` is the
front door; this room knows columns and engines, and nothing of estimates.
"""

from unsample.tables.frames._compare import compare_frame, compare_table
from unsample.tables.frames._engines import ENGINES, embedded_engine, spark_session
from unsample.tables.frames._files import SUFFIXES, expand_pattern, is_pattern, open_files
from unsample.tables.frames._layout import ROWS, Layout
from unsample.tables.frames._sql import DIALECTS, counts_query
from unsample.tables.frames._table import Table, is_frame

__all__ = [
    "DIALECTS",
    "ENGINES",
    "ROWS",
    "SUFFIXES",
    "Layout",
    "Table",
    "compare_frame",
    "compare_table",
    "counts_query",
    "embedded_engine",
    "expand_pattern",
    "is_frame",
    "is_pattern",
    "open_files",
    "spark_session",
]
