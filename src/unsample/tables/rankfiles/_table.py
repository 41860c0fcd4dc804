"""Columns as they were read, before anything is known of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LONGEST_NUMBER", "NUMBER_COLUMNS", "USER", "Table", "is_number"]

NUMBER_COLUMNS = ("rank", "better", "tied", "count", "sampled", "items", "weight")
USER = "user"
#: Letters of a cell that may be a number.
LONGEST_NUMBER = 400


@dataclass(frozen=True)
class Table:
    """Columns as read, and how to name the place of a row in messages."""

    source: str
    columns: Mapping[str, Sequence[Any]]
    place: Callable[[int], str]


def is_number(value: Any) -> bool:
    """Return whether a cell is a finite number, or its text."""
    if isinstance(value, str) and len(value) > LONGEST_NUMBER:
        return False
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False
