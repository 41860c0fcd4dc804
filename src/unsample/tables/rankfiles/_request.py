"""What is asked of rank files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unsample._checks import Seed
from unsample.evidence import Comparisons, RankCounts
from unsample.tables.frames import is_pattern

__all__ = ["STANDARD_INPUT", "Request"]

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Request:
    """What is asked of the files: how they are written, and what their rows mean."""

    path: str
    by: str | None
    items: int | None
    sampled: int | None
    replacement: bool
    file_format: str | None
    engine: str | None
    columns: Mapping[str, str]
    rows: str | None
    ties: str
    rng: Seed

    @property
    def standard_input(self) -> bool:
        """Whether standard input is to be read."""
        return self.path == STANDARD_INPUT

    @property
    def several(self) -> bool:
        """Whether the path stands for several files."""
        return not self.standard_input and is_pattern(self.path)

    def count(self, cells: Comparisons) -> RankCounts:
        """Count comparisons under the tie rule asked for."""
        return RankCounts.from_comparisons(
            cells, ties=self.ties, rng=self.rng, replacement=self.replacement
        )
