"""Any file or frame into evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unsample._checks import Seed
from unsample.evidence import RankCounts
from unsample.tables.frames import compare_frame, is_frame

__all__ = ["is_frame", "read_counts"]


def read_counts(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    by: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
    replacement: bool = True,
) -> dict[str, RankCounts]:
    """Count the ranks in a data frame, inside the engine that holds it.

    Parameters
    ----------
    source
        A frame of pandas, Polars (eager or lazy), PyArrow, DuckDB, PySpark or Dask. Its rows are
        targets with a column ``rank``; or targets with ``better`` and ``tied`` (how many sampled
        items beat them and tie with them); or scored items with ``user``, ``score`` and ``target``
        (true in the one row of a user that is the target), and possibly ``item``. Further columns:
        ``items``, ``weight``, and ``sampled``, ``count`` (targets).
    items, sampled
        The design, where it is not a column. Scored rows tell ``sampled`` by their number.
    columns
        Columns that have other names: ``{"rank": "position"}``.
    rows
        ``"ranks"``, ``"comparisons"`` or ``"scores"``, where the columns would allow several.
    by
        A column (a model, a run) whose values are counted apart; without it the key is ``""``.
    ties, rng
        The tie rule for scored rows and its seed. The counts depend neither on the engine nor on
        the order or the partitions of the rows.
    replacement
        Whether the same item may be sampled twice for a target.
    """
    groups = compare_frame(source, by=by, items=items, sampled=sampled, columns=columns, rows=rows)
    return {
        label: RankCounts.from_comparisons(cells, ties=ties, rng=rng, replacement=replacement)
        for label, cells in groups.items()
    }
