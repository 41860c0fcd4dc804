"""What an evaluation came to: ranks of the targets, and metrics read off or estimated from them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.answers._estimate import DEFAULT_METHOD, estimate_counts, exact
from unsample.answers._result import Estimates
from unsample.designs.ranking import (
    Orders,
    Tally,
    keyed_rank,
)
from unsample.designs.running._designs import Adaptive, Design
from unsample.designs.running._law import merged_sizes
from unsample.designs.running._run import Run
from unsample.errors import DesignError, UnresolvedWarning
from unsample.estimators import Estimator
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: How many targets may speak for the others on the top K.
_SPEAKERS = 30
#: Under an adaptive design the data decide, so EM may stop earlier than on fixed samples.
ADAPTIVE_METHOD = "mle(iterations=30)"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The rank of each target, ``low..high`` among ``sampled + 1`` items of ``others + 1``."""

    design: Design
    low: IntArray
    high: IntArray
    sampled: IntArray
    others: IntArray

    @classmethod
    def read(cls, run: Run, tally: Tally) -> Outcome:
        """Read ranks off what was counted."""
        others = run.others
        if not run.design.exact:
            ranks = 1 + tally.beaten(run.ties)
            return cls(run.design, ranks, ranks, tally.scored, others)
        place = Orders(others, run.scan.keys).tie_place(np.arange(len(others)))
        ranks = keyed_rank(tally.better, tally.equal, run.ties, place)
        known = tally.scored == others
        # Beaten K times, a target is beyond K; how far beyond, nobody looked.
        low = np.where(known, ranks, 1 + run.beaten(tally))
        return cls(run.design, low, np.where(known, ranks, others + 1), others, others)

    def estimates(
        self,
        metrics: tuple[Metric, ...],
        method: str | Estimator | Iterable[str | Estimator] | None,
        weights: npt.ArrayLike | None,
        *,
        candidates: str | None,
        resamples: int,
        rng: int,
    ) -> Estimates:
        """Return the metrics: plain ones of known ranks, estimates of sampled ones."""
        if self.design.exact:
            return self._plain(metrics, method, weights, resamples, rng)
        counts = RankCounts.from_ranks(
            self.low,
            items=self.others + 1,
            sampled=self.sampled,
            weights=weights,
            replacement=self.design.with_replacement,
        )
        replacement = self.design.with_replacement
        sizes = merged_sizes(self.others + 1, self.sampled, replacement=replacement)
        merged = RankCounts.from_ranks(
            self.low, items=sizes, sampled=self.sampled, weights=weights, replacement=replacement
        )
        stop = self.design.stop if isinstance(self.design, Adaptive) else None
        default = DEFAULT_METHOD if stop is None else ADAPTIVE_METHOD
        found = estimate_counts(
            replace(merged, stop=stop),
            metrics=metrics,
            method=default if method is None else method,
            candidates=candidates,
            resamples=resamples,
            rng=rng,
        )
        # Which metrics are resolved is judged here, by the sizes that samples grew to.
        notes = [note for note in found.notes if not isinstance(note, UnresolvedWarning)]
        resolved = {metric: self._resolves(metric) for metric in metrics}
        if not all(resolved.values()):
            notes.append(UnresolvedWarning(self._unresolved(resolved)))
        for note in notes:
            warnings.warn(note, stacklevel=4)
        entries = tuple(replace(one, resolved=resolved[one.metric]) for one in found.entries)
        return replace(found, entries=entries, counts=counts, notes=tuple(notes))

    def _plain(
        self,
        metrics: tuple[Metric, ...],
        method: str | Estimator | Iterable[str | Estimator] | None,
        weights: npt.ArrayLike | None,
        resamples: int,
        rng: int,
    ) -> Estimates:
        if method is not None:
            raise DesignError(
                f"method must be left out with design={self.design.name!r}, whose ranks need no "
                f"estimating, got {method!s}"
            )
        # Metrics@K do not tell the ranks beyond K apart: the last one stands for all of them.
        found = exact(
            self.high,
            items=self.others + 1,
            metrics=metrics,
            weights=weights,
            resamples=resamples,
            rng=rng,
        )
        if np.array_equal(self.low, self.high):
            return found
        weight = np.ones(len(self.low)) if weights is None else np.asarray(weights, dtype=float)
        counts = RankCounts(
            sampled=self.sampled,
            items=self.others + 1,
            low=self.low,
            high=self.high,
            count=np.ones(len(self.low), dtype=np.int64),
            weight=weight,
            weight_squared=weight**2,
            replacement=False,
        )
        return replace(found, counts=counts, distributions={})

    def _resolves(self, metric: Metric) -> bool:
        """Return whether enough targets met enough items to tell the top K from the rest.

        Enough items: on average one of those met falls into the top K (the rule of
        `unsample.confidence`). Enough targets: all that may be in the top K, for no one left
        alone after being beaten needs to be looked at; or at least some dozens of them, which
        speak for those that were left behind by lot.
        """
        reach = metric.cutoff(int(self.others.max()) + 1) * self.sampled / self.others
        enough = reach >= 1.0 - 1e-12
        if np.count_nonzero(enough) >= _SPEAKERS:
            return True
        stop = self.design.stop if isinstance(self.design, Adaptive) else np.inf
        return bool(enough[self.low - 1 < stop].all())

    def _unresolved(self, resolved: dict[Metric, bool]) -> str:
        names = [metric.name for metric, enough in resolved.items() if not enough]
        are = "is" if len(names) == 1 else "are"
        return (
            f"{', '.join(names)} {are} not resolved: too few of the targets that may be in the "
            "top K met as many items as it takes to meet one of it, so the value rests on the "
            "method's assumption about the top ranks; raise the budget or the cap, or certify"
        )
