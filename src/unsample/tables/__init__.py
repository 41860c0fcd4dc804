"""Tables of ranks, scores or draws, from files and data frames of any engine."""

from typing import Any

from unsample.evidence import RankCounts
from unsample.tables.frames import is_frame

__all__ = ["is_frame", "read_counts"]


def read_counts(source: Any, *, by: str | None = None, **options: Any) -> dict[str, RankCounts]:
    """Return the counts of a frame, by group."""
    return RankCounts.from_frame_by(source, by, **options)
