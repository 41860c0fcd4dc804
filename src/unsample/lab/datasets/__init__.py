"""Public data sets of interactions, splits, and bundled ranks.

Set ``UNSAMPLE_DATA`` to a folder with local copies (``NAME/original/FILE``, plain, ``.xz`` or
``.gz``); what is missing is downloaded into it.
"""

from unsample.lab.datasets._downloads import fetch
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import at_hand, load
from unsample.lab.datasets._ranks import (
    CANDIDATES,
    ExactRanks,
    check_ranks,
    load_ranks,
    read_rank_file,
    write_rank_file,
)
from unsample.lab.datasets._records import names, record
from unsample.lab.datasets._splits import (
    Split,
    leave_random_out,
    standard_split,
)

__all__ = [
    "CANDIDATES",
    "ExactRanks",
    "Interactions",
    "Split",
    "at_hand",
    "check_ranks",
    "fetch",
    "leave_random_out",
    "load",
    "load_ranks",
    "names",
    "read_rank_file",
    "record",
    "standard_split",
    "write_rank_file",
]
