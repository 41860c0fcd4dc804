"""`Gate`: whether a new model may take the place of a baseline, for pipelines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unsample._checks import check_flag, check_real
from unsample.questions.compare.differences import Difference
from unsample.uncertainty import holm, strictest, two_sided


@dataclass(frozen=True)
class Gate:
    """Whether some model is worse than the baseline by more than a margin, and how sure that is.

    >>> from unsample.questions.compare.differences import verdicts
    >>> from unsample.uncertainty import MeanWithError
    >>> change = MeanWithError(-0.03, error=0.01)
    >>> (pair,) = verdicts("HR@10", [("new", "old", change)], level=0.95)
    >>> Gate.of({"new": pair}, 0.4, margin=0.0, level=0.95).verdict
    'failed'
    >>> gate = Gate.of({"new": pair}, 0.4, margin=0.1, level=0.95)     # 10 % of 0.4 is 0.04
    >>> gate.verdict, round(gate.probabilities["new"], 3)
    ('passed', 0.159)
    """

    metric: str
    baseline: str
    #: A share of the baseline's estimate.
    margin: float
    level: float
    #: The probability that each model is worse; None if it or the baseline has only bounds.
    probabilities: Mapping[str, float | None]
    #: The models that are significantly worse.
    worse: tuple[str, ...]
    #: The models that cannot be judged: their bounds allow for both, or they were not evaluated.
    unknown: tuple[str, ...]
    #: The models that were not evaluated, or not where the baseline was.
    missing: tuple[str, ...] = ()
    #: Whether the gate also fails if a model cannot be judged (``--fail-if-unknown``).
    fail_if_unknown: bool = False

    @classmethod
    def of(
        cls,
        pairs: Mapping[str, Difference],
        baseline: float | Mapping[str, float],
        *,
        margin: float,
        level: float,
        missing: Sequence[str] = (),
        fail_if_unknown: bool = False,
    ) -> Gate:
        """Return the gate for the difference of each model from the baseline.

        Parameters
        ----------
        pairs
            The difference of each model from the baseline. Probabilities are corrected for the
            number of these differences.
        baseline
            The baseline's estimate: one number, or one for each difference, as on several data
            sets.
        margin
            How much worse a model may be, as a share of the baseline's estimate.
        level
            The probability from which a model counts as worse.
        missing
            Models that were not evaluated where the baseline was, or the other way round.
        fail_if_unknown
            Whether the gate also fails if a model cannot be judged.
        """
        values = baseline if isinstance(baseline, Mapping) else dict.fromkeys(pairs, baseline)
        limits = {name: -margin * values[name] for name in pairs}
        probabilities = {name: pair.below(limits[name]) for name, pair in pairs.items()}
        by_bounds = {name for name, worse in probabilities.items() if math.isnan(worse)}
        p_values = holm(
            [
                1.0 if name in by_bounds else 1.0 - probability
                for name, probability in probabilities.items()
            ]
        )
        level_of_bounds = two_sided(strictest(level, len(p_values)))
        worse: list[str] = []
        unknown: list[str] = []
        for (name, pair), p_value in zip(pairs.items(), p_values, strict=True):
            low, high = pair.interval(level_of_bounds)
            if p_value <= 1.0 - level or (name in by_bounds and high < limits[name]):
                worse.append(name)
            elif name in by_bounds and low < limits[name]:
                unknown.append(name)
        first = next(iter(pairs.values()))
        shown = {
            name: None if name in by_bounds else probability
            for name, probability in probabilities.items()
        }
        return cls(
            metric=first.metric,
            baseline=first.b,
            margin=margin,
            level=level,
            probabilities=shown | dict.fromkeys(missing),
            worse=tuple(worse),
            unknown=(*unknown, *missing),
            missing=tuple(missing),
            fail_if_unknown=check_flag("fail_if_unknown", fail_if_unknown),
        )

    @property
    def failed(self) -> bool:
        """Return whether a model is worse, or unknown if the gate fails for that too."""
        return bool(self.worse) or (self.fail_if_unknown and bool(self.unknown))

    @property
    def verdict(self) -> str:
        """Return ``"failed"``, ``"unknown"`` or ``"passed"``; unknown never counts as passed."""
        if self.worse:
            return "failed"
        return "unknown" if self.unknown else "passed"

    def __str__(self) -> str:
        margin = f" by more than {100 * self.margin:g} %" if self.margin else ""
        what = f"probability of a lower {self.metric} than {self.baseline}'s{margin}"
        shown = self.worse or self.unknown or tuple(self.probabilities)
        listed = ", ".join(f"{name} {self._in_words(name)}" for name in shown)
        rule = f"the gate closes at {100 * self.level:g} %"
        differences = len(self.probabilities) - len(self.missing)
        if differences > 1:
            rule += f" for {differences} differences together"
        if self.unknown and self.fail_if_unknown:
            rule += ", and where it cannot tell"
        return f"Gate {_WORDS[self.verdict]}: {what}: {listed}; {rule}."

    def _in_words(self, name: str) -> str:
        """Return the probability that a model is worse, in words."""
        if name in self.missing:
            return "not evaluated"
        return _rounded_down(self.probabilities[name])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON output."""
        fields = {
            **vars(self),
            "probabilities": dict(self.probabilities),
            "worse": list(self.worse),
            "unknown": list(self.unknown),
            "missing": list(self.missing),
        }
        return {"failed": self.failed, "verdict": self.verdict, "reason": str(self), **fields}


_WORDS = {"failed": "failed", "unknown": "cannot tell", "passed": "passed"}


def as_margin(margin: float) -> float:
    """Return a margin as a share of the baseline's estimate."""
    return check_real("margin", margin, low=0.0, high=1.0, open_high=True, hint="0.01 is 1 %")


def _rounded_down(probability: float | None) -> str:
    """Return a probability in percent, never rounded up to the level that it does not reach."""
    if probability is None:
        return "known by bounds alone"
    if probability > 0.995:
        return "more than 99 %"
    return f"{math.floor(1000.0 * probability) / 10.0:g} %"
