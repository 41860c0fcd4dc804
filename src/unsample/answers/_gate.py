"""`Gate`: whether a new model may take the place of a baseline, for pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gate:
    """Whether some model is worse than the baseline by more than a margin, and how sure that is."""

    metric: str
    baseline: str
    #: A share of the baseline's estimate.
    margin: float
    level: float
    #: The chance that each model is worse; None where one of the two is known by bounds alone.
    chances: Mapping[str, float | None]
    #: The models that are surely worse.
    worse: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Return whether any model is worse."""
        return bool(self.worse)

    def __str__(self) -> str:
        by = f" by more than {100 * self.margin:g} %" if self.margin else ""
        shown = self.worse or tuple(self.chances)
        found = {name: self.chances[name] for name in shown}
        chances = ", ".join(
            f"{name} {'known by bounds alone' if each is None else percent_of(each)}"
            for name, each in found.items()
        )
        rule = f"the gate closes at {100 * self.level:g} %"
        what = f"chance of a lower {self.metric} than {self.baseline}'s{by}"
        return f"Gate {'failed' if self.failed else 'passed'}: {what}: {chances}; {rule}."

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON output."""
        fields = {**vars(self), "chances": dict(self.chances), "worse": list(self.worse)}
        return {"failed": self.failed, "reason": str(self), **fields}


def percent_of(chance: float) -> str:
    """Return a chance in percent, as people read it."""
    return "more than 99 %" if chance > 0.995 else f"{100 * chance:.0f} %"
