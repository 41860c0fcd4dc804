"""What ``unsample estimate`` shows: estimates by group."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from unsample.answers import Estimates
from unsample.pages import Page, Sheet, page, paper, sheet

#: Of more groups than this the resolution is not searched for: it takes as long as the rest.
_RESOLVED_GROUPS = 5


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
    whole = sheet(result.shown)
    return replace(whole, notes=(*whole.notes, _resolutions(result)))


@paper.register
def _(result: Groups) -> Sheet:
    whole = paper(result.shown)
    return replace(whole, notes=(_resolutions(result), *whole.notes))


def _resolutions(result: Groups) -> str:
    few = dict(list(result.results.items())[:_RESOLVED_GROUPS])
    resolutions = [
        f"resolution{name and f' of {name}'}: {held.resolution()}" for name, held in few.items()
    ]
    if len(result.results) > len(few):
        resolutions.append(
            f"resolution of {len(result.results) - len(few)} more is not searched for: estimate "
            "them on their own to see it"
        )
    return "\n".join(resolutions)


@page.register
def _(result: Groups) -> Page:
    return page(result.shown)
