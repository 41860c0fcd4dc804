"""The error of a mean over users of whom a random part, the pilot, was ranked in full.

Of the others only sampled ranks are known. Every user's metric is guessed from the sampled rank, as
well as a method can. Chance aside, the mean of the guesses over all users is wrong by as much as it
is over the pilot. There the difference is known, and it is added. So the guess decides how narrow
the interval is, and never whether it holds (prediction-powered inference: Angelopoulos et al.
2023). The guess is trusted as far as lowers the variance most, from not at all to fully.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray
from unsample.confidence._limits import quantile, skewed
from unsample.confidence._means import MeanError, degrees_of_freedom, is_rare
from unsample.metrics import Metric

#: In a smaller pilot, or where fewer (effective) users make up the variance of what the guesses
#: miss, that variance is not known. Then only the pilot's own mean is used.
_FEW_USERS, _FEW_MISSED = 50, 10.0


@dataclass(frozen=True, kw_only=True)
class PilotError(MeanError):
    """Standard errors of a mean that a pilot corrects, and its intervals."""

    of_draw: ClassVar[bool] = True
    #: How far the guesses are trusted, from 0 to 1.
    trust: float
    #: The error of the pilot's own mean.
    alone: MeanError
    #: The standard error for these users alone.
    these: float
    #: The skewness of the mean of what the guesses miss.
    skewness: float

    @classmethod
    def of_pilot(
        cls, known: FloatArray, guessed: FloatArray, others: FloatArray, metric: Metric
    ) -> tuple[float, PilotError]:
        """Return the mean over all users, and its error.

        ``known`` and ``guessed`` are the values of the pilot's users, and ``others`` the guesses of
        all others.
        """
        pilot, rest = len(known), len(others)
        alone = MeanError.of(known, np.ones(pilot), metric)
        spread = float(np.var(np.concatenate([guessed, others])))
        trust = 0.0
        # Rare hits in the pilot tell no covariance.
        if spread > 0.0 and pilot >= _FEW_USERS and not is_rare(alone, float(known.mean())):
            covariance = float(np.cov(known, guessed)[0, 1])
            trust = min(max(covariance / (spread * (1.0 + pilot / rest)), 0.0), 1.0)
        left = known - trust * guessed
        if degrees_of_freedom(left - left.mean()) < _FEW_MISSED:
            trust, left = 0.0, known
        mean = trust * float(others.mean()) + float(left.mean())
        # The trust was learned from the pilot as well.
        varies = float(left.var(ddof=2 if trust > 0.0 else 1))
        of_rest = trust**2 * float(others.var(ddof=1)) / rest if rest > 1 else 0.0
        share = rest / (pilot + rest)
        return mean, cls(
            population=math.sqrt(varies / pilot + of_rest),
            # A few users whose guesses are far off may make up most of the variance.
            freedom=degrees_of_freedom(left - left.mean()),
            users=alone.users,
            most=alone.most,
            all_or_nothing=alone.all_or_nothing,
            trust=trust,
            alone=alone,
            these=share * math.sqrt(varies * (1.0 / pilot + 1.0 / rest)),
            skewness=_skewness(left) / math.sqrt(pilot),
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean for users like these."""
        if self.trust == 0.0:
            return self.alone.interval(value, level)
        return self._within(value, level, self.population)

    def of_these(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean of these users, over other pilots drawn from them."""
        if self.trust == 0.0:
            return self.alone.interval(value, level)
        return self._within(value, level, self.these)

    def _within(self, value: float, level: float, error: float) -> tuple[float, float]:
        far = quantile(level, self.freedom)
        low, high = (error * skewed(far, side * self.skewness) for side in (-1.0, 1.0))
        least = 0.0 if math.isfinite(self.most) else -math.inf
        return max(value - low, min(least, value)), min(value + high, max(self.most, value))


def _skewness(values: FloatArray) -> float:
    apart = values - values.mean()
    spread = math.sqrt(float((apart**2).mean()))
    return float((apart**3).mean()) / spread**3 if spread > 0.0 else 0.0
