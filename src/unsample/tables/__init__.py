"""Tables of ranks, scores or draws, from files and data frames of any engine."""

from typing import Any

from unsample.evidence import RankCounts, Targets
from unsample.tables.frames import is_frame

__all__ = ["is_frame", "read_counts", "read_targets"]


def read_counts(source: Any, *, by: str | None = None, **options: Any) -> dict[str, RankCounts]:
    """Return the counts of a frame, by group."""
    return RankCounts.from_frame_by(source, by, **options)


def read_targets(
    source: Any, *, by: str | None = None, items: Any, sampled: Any, replacement: bool = True
) -> dict[str, Targets]:
    """Return the targets of a frame, by group."""
    import narwhals as nw

    frame = nw.from_native(source)
    groups = {"": frame}
    if by is not None:
        groups = {str(key[0]): part for key, part in frame.group_by(by)}
    return {
        name: Targets(
            part["rank"].to_numpy(),
            items,
            sampled,
            users=part["user"].to_numpy() if "user" in part.columns else None,
            replacement=replacement,
        )
        for name, part in groups.items()
    }
