"""Public data sets of interactions, splits, and a synthetic generator.

Set ``UNSAMPLE_DATA`` to a folder with local copies (``NAME/original/FILE``, plain, ``.xz`` or
``.gz``), and ``UNSAMPLE_CACHE`` to the folder of downloads.
"""

from unsample.datasets._download import fetch
from unsample.datasets._interactions import Interactions
from unsample.datasets._load import DatasetInfo, FileInfo, info, load
from unsample.datasets._registry import names
from unsample.datasets._splits import (
    Split,
    leave_latest_out,
    leave_published_out,
    leave_random_out,
)
from unsample.datasets._synthetic import synthetic
from unsample.datasets._tables import load_file

__all__ = [
    "DatasetInfo",
    "FileInfo",
    "Interactions",
    "Split",
    "fetch",
    "info",
    "leave_latest_out",
    "leave_published_out",
    "leave_random_out",
    "load",
    "load_file",
    "names",
    "synthetic",
]
