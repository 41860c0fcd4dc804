"""Slips in the formula of a printed metric: which there are, and what shows them.

Papers compute NDCG and MRR with code of their own. Where a rank counts from 0 in one line and from
1 in the next, every discount moves by a place, and the numbers are those of a metric that the paper
does not name. Three things show it: no ranks give the numbers, ranks that are spread evenly give
more, or another formula makes the numbers far likelier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample import metrics as _metrics
from unsample._rounding import rounded_down
from unsample.metrics import Metric, MetricFamily
from unsample.posterior import FittedNumbers
from unsample.questions.published.paper_numbers import Paper
from unsample.report import Note

#: How many times as likely a slip must make the numbers before it is named. Right formulas reach
#: this for hardly any model, which the tests of promises count.
_FAR_LIKELIER = 1000.0
#: Fits curves to the printed numbers, taken for those of these metrics.
Fit = Callable[[Sequence[Metric]], FittedNumbers]


@dataclass(frozen=True)
class Slip:
    """A formula that may have been computed in place of a metric's own."""

    #: The metric that is printed, and the family that has the other formula.
    printed: str
    family: MetricFamily
    #: What is in the place of what.
    formula: str

    def made(self, metric: Metric) -> Metric:
        """Return the metric that the numbers are of, if this slip was made."""
        concerned = (metric.family.single or metric.family.name) == self.printed
        return self.family(metric.k) if concerned else metric

    def concerned(self, paper: Paper) -> list[str]:
        """Return the printed metrics that are others with this slip."""
        return [each.name for each in paper.numbers if self.made(each.metric) is not each.metric]

    def corrected(self, paper: Paper) -> Paper:
        """Return the same numbers, taken for those of the metrics that were computed."""
        numbers = [replace(each, metric=self.made(each.metric)) for each in paper.numbers]
        return Paper(paper.sampling, paper.users, tuple(numbers))

    def explains(self, paper: Paper) -> bool:
        """Return whether ranks may give the numbers if this slip was made."""
        if not self.concerned(paper):
            return False
        corrected = self.corrected(paper)
        return corrected.consistent and not corrected.below_even()

    def __str__(self) -> str:
        known = self.family.name in _metrics.REGISTRY
        return self.formula + (f" ({self.family.name} here)" if known else "")


SLIPS = (
    Slip(
        "NDCG",
        _metrics.custom("NDCG-later", lambda ranks: 1.0 / np.log2(ranks + 2.0)),
        "1/log2(r + 2) in place of 1/log2(r + 1)",
    ),
    Slip(
        "NDCG",
        _metrics.custom("NDCG-natural", lambda ranks: 1.0 / np.log(ranks + 1.0)),
        "1/ln(r + 1) in place of 1/log2(r + 1)",
    ),
    Slip(
        "NDCG",
        _metrics.REGISTRY["NDCG(ideal=k)"],
        "the ideal of K relevant items in place of one",
    ),
    Slip(
        "AP",
        _metrics.custom("MRR-later", lambda ranks: 1.0 / (ranks + 1.0)),
        "1/(r + 1) in place of 1/r",
    ),
)


def explained(paper: Paper) -> str:
    """Return which slips would explain numbers that no ranks give, to end a message with."""
    fitting = [str(slip) for slip in SLIPS if slip.explains(paper)]
    return f"; for the rank r, {' or '.join(fitting)} would explain them" if fitting else ""


def on_slips(paper: Paper, fit: Fit | None, *, even: bool) -> list[Note]:
    """Return a note if the formula of a printed metric is hardly its own.

    Numbers are compared with those of ``even`` ranks if this is wanted, and by the evidence with
    those of other formulas if there is a prior, and so a ``fit``.
    """
    low = paper.below_even() if even else []
    slip = None if fit is None else _likeliest(paper, fit)
    why = f"makes these numbers over {_FAR_LIKELIER:,.0f} times as likely"
    if low and slip is None:
        slip, why = next((each for each in SLIPS if each.explains(paper)), None), "would explain it"
    if not low and slip is None:
        return []
    names = [number.name for number, _ in low] if slip is None else slip.concerned(paper)
    text = f"{' and '.join(names)} may be computed otherwise"
    if low:
        number, least = low[0]
        text = (
            f"{number} is low: if ranks were spread evenly between the printed hit rates it would "
            f"be {rounded_down(least, 3)}, and models put more targets at the top"
        )
    text += "" if slip is None else f"; {slip} {why}"
    text += f"; check the formula, in which r = 1 is the best rank, or leave {', '.join(names)} out"
    text += "; if items that users had seen were ranked too, pass protocol='all'" if low else ""
    return [Note("slip", text)]


def _likeliest(paper: Paper, fit: Fit) -> Slip | None:
    """Return the slip that makes the numbers far likelier than they are, if one does."""
    some = [slip for slip in SLIPS if slip.concerned(paper) and slip.corrected(paper).consistent]
    if not some:
        return None
    found = [fit(slip.corrected(paper).metrics).log_evidence for slip in some]
    best = int(np.argmax(found))
    far = found[best] - fit(paper.metrics).log_evidence > math.log(_FAR_LIKELIER)
    return some[best] if far else None
