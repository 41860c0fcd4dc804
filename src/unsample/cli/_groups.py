"""What ``unsample estimate`` shows: estimates by group."""

from __future__ import annotations

import json
from dataclasses import dataclass

from unsample.answers import Estimates
from unsample.pages import Page, Sheet, page, paper, sheet


@dataclass(frozen=True)
class Groups:
    """Estimates for each value of a column, or a single one where there is none."""

    by: str | None
    results: dict[str, Estimates]

    @property
    def shown(self) -> Estimates | dict[str, Estimates]:
        """Return what tables and pages show."""
        return self.results[""] if self.by is None else self.results

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of all groups, each once."""
        return tuple(sorted({text for held in self.results.values() for text in held.warnings}))

    def to_json(self) -> str:
        """Return what ``--json`` prints."""
        if self.by is None:
            return self.results[""].to_json()
        groups = [{self.by: name, **held.to_dict()} for name, held in self.results.items()]
        return json.dumps({"by": self.by, "groups": groups}, indent=2, allow_nan=False)


@sheet.register
def _(result: Groups) -> Sheet:
    return sheet(result.shown)


@paper.register
def _(result: Groups) -> Sheet:
    return paper(result.shown)


@page.register
def _(result: Groups) -> Page:
    return page(result.shown)
