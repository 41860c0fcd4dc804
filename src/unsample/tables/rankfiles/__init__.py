"""Rank files: CSV, TSV, Parquet, JSON lines, NPZ, or standard input, to `RankCounts`.

A rank file has a column ``rank`` (1 is the best, among sampled + 1 items), or the columns
``better`` and ``tied`` (how many sampled items beat the target, how many tie with it), and may have

``count``
    how many targets a row stands for;
``sampled``, ``items``
    the design of the row, where designs differ;
``weight``
    how much a target counts (1/3 for each of three targets of a user);
``user``
    whose target it is: several targets of one user are not independent;
any other column
    to group by (``model``, ...).

A text file without a header is read as one rank a line. Files that `RankCounts.save` wrote are
recognised too.

Patterns and folders of files, Parquet, large text files and tables of scores (columns ``user``,
``score``, ``target``) are streamed by an engine of `unsample.tables.frames`; what remains is read here,
with the standard library and numpy alone.
"""

from unsample.tables.rankfiles._formats import FORMATS
from unsample.tables.rankfiles._read import read_counts, read_grouped_counts, read_targets

__all__ = ["FORMATS", "read_counts", "read_grouped_counts", "read_targets"]
