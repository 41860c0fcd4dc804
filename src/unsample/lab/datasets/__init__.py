"""Public data sets of interactions, splits, bundled ranks, and a synthetic generator.

Set ``UNSAMPLE_DATA`` to a folder with local copies (``NAME/original/FILE``, plain, ``.xz`` or
``.gz``), and ``UNSAMPLE_CACHE`` to the folder of downloads.
"""

from unsample.lab.datasets._bundled import CANDIDATES, ExactRanks, bundled_ranks, load_ranks
from unsample.lab.datasets._files import fetch
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import at_hand, load
from unsample.lab.datasets._registry import Record, names, record
from unsample.lab.datasets._splits import (
    Split,
    leave_published_out,
    leave_random_out,
    standard_split,
)
from unsample.lab.datasets._synthetic import synthetic

__all__ = [
    "CANDIDATES",
    "ExactRanks",
    "Interactions",
    "Record",
    "Split",
    "at_hand",
    "bundled_ranks",
    "fetch",
    "leave_published_out",
    "leave_random_out",
    "load",
    "load_ranks",
    "names",
    "record",
    "standard_split",
    "synthetic",
]
