"""A comparison together with what would tell apart the models that it does not."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from unsample.answers import Comparison, Needed, Remedy, remedies
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
            first, second = self.comparison.by_estimate(metric)[:2]
            if self.comparison.difference(first, second, metric).winner is None:
                found.append(self.comparison.needed(first, second, metric))
        return tuple(each for each in found if each is not None)

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """Return, for each of these metrics, how many full ranks and scores would do it."""
        return tuple(remedies(self.comparison, guided=True))

    def to_json(self) -> str:
        """Return what ``--json`` prints."""
        needed = [asdict(each) for each in self.needed]
        scores = [asdict(each) for each in self.remedies]
        found = {**self.comparison.to_dict(), "needed": needed, "remedies": scores}
        return json.dumps(found, indent=2, allow_nan=False)


@sheet.register
def _(result: Advised) -> Sheet:
    whole = sheet(result.comparison)
    lines = [f"needed: {each}" for each in (*result.needed, *result.remedies)] or [
        "needed: nothing more for the two best, or too little is known to say"
    ]
    # The sentence of every comparison stands in these lines.
    notes = [each for each in whole.notes if not each.startswith("needed: ")]
    return replace(whole, notes=(*notes, "\n".join(lines)))


@page.register
def _(result: Advised) -> Page:
    return page(result.comparison)
