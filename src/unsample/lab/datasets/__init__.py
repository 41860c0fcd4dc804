"""Public data sets of interactions, splits, and bundled ranks.

Set ``UNSAMPLE_DATA`` to a folder with the original files (``NAME/FILE``, plain, ``.xz`` or
``.gz``); ``python -m unsample.lab data`` says where to get them.
"""

from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import at_hand, load
from unsample.lab.datasets._ranks import (
    CANDIDATES,
    ExactRanks,
    load_ranks,
    read_rank_file,
    write_rank_file,
)
from unsample.lab.datasets._registry import names, record
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
    "leave_random_out",
    "load",
    "load_ranks",
    "names",
    "read_rank_file",
    "record",
    "standard_split",
    "write_rank_file",
]
