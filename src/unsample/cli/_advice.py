"""A comparison together with what would tell apart the models that it does not."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from unsample.answers import Comparison, Needed
from unsample.pages import Page, Sheet, page, sheet


@dataclass(frozen=True)
class Advised:
    """What ``unsample compare --needed`` shows."""

    comparison: Comparison

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of the comparison."""
        return self.comparison.warnings

    @cached_property
    def needed(self) -> tuple[Needed, ...]:
        """Return, for each metric without a winner, what would tell the two best apart."""
        found = []
        for metric in self.comparison.metrics:
            rows = [row for row in self.comparison.standings if row.metric == metric.name]
            first, second = sorted(rows, key=lambda row: -row.value)[:2]
            if self.comparison.difference(first.model, second.model, metric).winner is None:
                found.append(self.comparison.needed(first.model, second.model, metric))
        return tuple(each for each in found if each is not None)

    def to_json(self) -> str:
        """Return what ``--json`` prints."""
        needed = [asdict(each) for each in self.needed]
        return json.dumps(
            {**self.comparison.to_dict(), "needed": needed}, indent=2, allow_nan=False
        )


@sheet.register
def _(result: Advised) -> Sheet:
    whole = sheet(result.comparison)
    lines = [f"needed: {each}" for each in result.needed] or [
        "needed: nothing more for the two best, or too little is known to say"
    ]
    return replace(whole, notes=(*whole.notes, "\n".join(lines)))


@page.register
def _(result: Advised) -> Page:
    return page(result.comparison)
