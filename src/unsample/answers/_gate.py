"""`Gate`: whether a new model may take the place of a baseline, for pipelines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unsample.answers._verdicts import Difference, strictest
from unsample.bounds import holm


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

    @classmethod
    def of(
        cls, pairs: Mapping[str, Difference], baseline: float, margin: float, level: float
    ) -> Gate:
        """Return the gate for the difference of each model from the baseline, and its value.

        Chances are corrected for the number of these models alone.
        """
        lost = -margin * baseline
        chances = {model: pair.below(lost) for model, pair in pairs.items()}
        doubts = holm([1.0 if math.isnan(each) else 1.0 - each for each in chances.values()])
        end = strictest(level, len(doubts))
        worse = tuple(
            model
            for (model, pair), doubt in zip(pairs.items(), doubts, strict=True)
            if doubt <= 1.0 - level or (math.isnan(chances[model]) and pair.interval(end)[1] < lost)
        )
        known = {model: None if math.isnan(each) else each for model, each in chances.items()}
        first = next(iter(pairs.values()))
        return cls(first.metric, first.b, margin, level, known, worse)

    @property
    def failed(self) -> bool:
        """Return whether any model is worse."""
        return bool(self.worse)

    def __str__(self) -> str:
        by = f" by more than {100 * self.margin:g} %" if self.margin else ""
        shown = self.worse or tuple(self.chances)
        chances = ", ".join(f"{name} {_rounded_down(self.chances[name])}" for name in shown)
        rule = f"the gate closes at {100 * self.level:g} %"
        rule += f" for {len(self.chances)} models together" if len(self.chances) > 1 else ""
        what = f"chance of a lower {self.metric} than {self.baseline}'s{by}"
        return f"Gate {'failed' if self.failed else 'passed'}: {what}: {chances}; {rule}."

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON output."""
        fields = {**vars(self), "chances": dict(self.chances), "worse": list(self.worse)}
        return {"failed": self.failed, "reason": str(self), **fields}


def _rounded_down(chance: float | None) -> str:
    """Return a chance in percent, never rounded up to the level that it does not reach."""
    if chance is None:
        return "known by bounds alone"
    return "more than 99 %" if chance > 0.995 else f"{math.floor(1000.0 * chance) / 10.0:g} %"
