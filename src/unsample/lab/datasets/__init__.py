"""Public data sets of interactions, splits, and a synthetic generator.

Set ``UNSAMPLE_DATA`` to a folder with local copies (``NAME/original/FILE``, plain, ``.xz`` or
``.gz``), and ``UNSAMPLE_CACHE`` to the folder of downloads.
"""

from unsample.lab.datasets._bundled import CANDIDATES, ExactRanks, bundled_ranks, load_ranks
from unsample.lab.datasets._files import fetch
from unsample.lab.datasets._interactions import Interactions
from unsample.lab.datasets._load import DatasetInfo, FileInfo, info, load
from unsample.lab.datasets._registry import names
from unsample.lab.datasets._splits import (
    Split,
    leave_latest_out,
    leave_published_out,
    leave_random_out,
    standard_split,
)
from unsample.lab.datasets._synthetic import synthetic

__all__ = [
    "CANDIDATES",
    "DatasetInfo",
    "ExactRanks",
    "FileInfo",
    "Interactions",
    "Split",
    "bundled_ranks",
    "fetch",
    "info",
    "leave_latest_out",
    "leave_published_out",
    "leave_random_out",
    "load",
    "load_ranks",
    "names",
    "standard_split",
    "synthetic",
]
