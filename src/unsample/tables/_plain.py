"""Ranks in CSV files where there is no engine, as in a browser: ``rank``, ``user`` and a model."""

from __future__ import annotations

import csv
import os
from itertools import chain
from typing import Any

import numpy as np

from unsample._files import find_files
from unsample.errors import FileError
from unsample.evidence import Targets
from unsample.tables._layout import Asked, Columns, Layout
from unsample.tables._targets import targets_of


def read_ranks(source: Any, asked: Asked) -> dict[str, Targets]:
    """Return the targets of each model; what ranks must be is left to their counts."""
    paths = source if isinstance(source, list | tuple) else [source]
    rows: list[dict[str, str]] = []
    try:
        for file in chain(*(find_files(os.fspath(path)) for path in paths)):
            with file.open(encoding="utf-8-sig", newline="") as text:
                rows += csv.DictReader(text)
        found: Columns = {"rank": np.array([float(row["rank"]) for row in rows])}
        for role, column in (("user", "user"), ("model", asked.by)):
            if column is not None and (role == "model" or column in rows[0]):
                found[role] = np.array([row[column] for row in rows], dtype=np.str_)
    except (OSError, TypeError, LookupError, ValueError, csv.Error) as problem:
        raise FileError(
            f"{source} must be CSV with a column rank and numbers in it to be read without DuckDB, "
            f"got {type(problem).__name__}: {problem}; install duckdb for all other tables"
        ) from problem
    return targets_of(found, Layout("ranks", {}, asked))
