"""Tables of ranks or scores to evidence: one reader, whatever holds the rows.

A table is a file (CSV, TSV, JSON lines, Parquet, NPZ), standard input, a folder, a pattern or a
list of files, or a frame of pandas, Polars, PyArrow, DuckDB or Spark. The same rows give the
same counts, users, pairs and messages at every one of these doors.

Three kinds of rows are understood:

``ranks``
    one target a row: ``rank`` (1 is the best, among sampled + 1 items);
``comparisons``
    one target a row: how many sampled items are ``better`` than it, and how many are ``tied``;
``scores``
    one scored item a row: ``user``, ``score`` and ``target`` (true for the user's target, false
    for the items it is compared with), and possibly ``item``.

Further columns: ``user`` (whose target it is: metrics are those of users, and errors count them),
``sampled`` and ``items`` (the design of the row, where designs differ) and ``count`` (how many
targets a row of ranks or comparisons stands for).
Scored rows tell ``sampled`` by their number; all targets of a user stand in one list, and are
compared with the user's other items. A half rank is a tie of two places. A text file without a
header holds one rank a line. Files that `RankCounts.save` wrote are recognised too.

Engines count where the rows are, and only counts come back; plain files are read with numpy alone.
"""

from unsample.tables._layout import ROWS
from unsample.tables._read import (
    is_frame,
    is_table,
    read_counts,
    read_full_ranks,
    read_items,
    read_targets,
)

__all__ = [
    "ROWS",
    "is_frame",
    "is_table",
    "read_counts",
    "read_full_ranks",
    "read_items",
    "read_targets",
]
