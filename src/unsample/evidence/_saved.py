"""The fields of a saved file: written from counts, and checked before they become some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unsample._checks import as_integer_array, check_integer
from unsample.errors import FileError
from unsample.evidence._columns import FLOAT_FIELDS, INTEGER_FIELDS

if TYPE_CHECKING:
    from unsample.evidence._counts import RankCounts

_FORMAT = "unsample.RankCounts/1"


def as_fields(counts: RankCounts) -> dict[str, Any]:
    """Return what is saved of counts, every field as an array."""
    fields: dict[str, Any] = {
        "format": np.array(_FORMAT),
        "replacement": np.array(counts.replacement),
    }
    if counts.stop is not None:
        fields["stop"] = np.array(counts.stop)
    return fields | {f: getattr(counts, f) for f in (*INTEGER_FIELDS, *FLOAT_FIELDS)}


def checked_fields(fields: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the arguments of counts that ``fields`` were saved from; ``source`` names them."""
    marker = str(fields.get("format"))
    if marker != _FORMAT:
        raise FileError(
            f"{source} must hold {_FORMAT}, got {marker}; write it with RankCounts.save"
        )
    missing = {"replacement", *INTEGER_FIELDS, *FLOAT_FIELDS} - set(fields)
    if missing:
        raise FileError(f"{source} lacks {', '.join(sorted(missing))}")
    arrays: dict[str, Any] = {
        name: as_integer_array(name, fields[name], error=FileError).astype(np.int64)
        for name in INTEGER_FIELDS
    }
    try:
        arrays |= {name: np.asarray(fields[name], dtype=np.float64) for name in FLOAT_FIELDS}
    except (OverflowError, TypeError, ValueError) as problem:
        raise FileError(f"{source} must hold numbers as weights: {problem}") from problem
    if any(arrays[name].ndim != 1 for name in FLOAT_FIELDS):
        raise FileError(f"{source} must hold a list of weights")
    replacement = np.asarray(fields["replacement"])
    if replacement.shape != () or replacement.dtype != bool:
        raise FileError(f"{source} must say true or false for replacement, got {replacement}")
    stop = fields.get("stop")
    if stop is not None:
        stop = check_integer(f"stop in {source}", stop, minimum=1, error=FileError)
    return {**arrays, "replacement": bool(replacement), "stop": stop}
