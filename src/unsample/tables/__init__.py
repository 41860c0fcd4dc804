"""Count tables of ranks or scores, by one query, whatever holds the rows.

A table is a file (CSV, TSV, JSON lines, Parquet, NPZ), standard input, a folder, a pattern or a
list of files, a frame of pandas, Polars, PyArrow, DuckDB or Spark, or a mapping of arrays. The same
rows give the same counts and messages in every one of these forms.

Two kinds of rows are understood:

``ranks``
    one target a row: ``rank`` (1 is the best, among sampled + 1 items);
``scores``
    one scored item a row: ``user``, ``score`` and ``target`` (true for the user's target, false
    for the items it is compared with), and possibly ``item``.

Further columns: ``user`` (whose target it is: metrics are those of users, and errors count them),
``sampled`` and ``items`` (the design of the row, where designs differ). All targets of a user's
scored rows stand in one list, and are compared with the user's other items. Where models are
compared, ``run`` names the training run of a model. A text file without a header holds one rank in
each line. Files that `RankCounts.save` wrote are recognised too, and so are tables of counts that
the query of `sql` gave.
"""

from unsample.tables._keys import (
    is_key,
)
from unsample.tables._layout import (
    MODEL,
    ROWS,
    RUN_OF,
    Asked,
    Read,
)
from unsample.tables._plain_text import (
    read_plain_text,
)
from unsample.tables._read import (
    read_counts,
    read_data_sets,
    read_full_ranks,
    read_models,
    read_pairs,
    read_seen,
    read_targets,
    sql_of_files,
)
from unsample.tables._sources import (
    is_table,
)
from unsample.tables._sql import (
    sql,
)
from unsample.tables._text_cells import (
    read_cells,
)

__all__ = [
    "MODEL",
    "ROWS",
    "RUN_OF",
    "Asked",
    "Read",
    "is_key",
    "is_table",
    "read_cells",
    "read_counts",
    "read_data_sets",
    "read_full_ranks",
    "read_models",
    "read_pairs",
    "read_plain_text",
    "read_seen",
    "read_targets",
    "sql",
    "sql_of_files",
]
