"""Slips in the formula of a printed metric, and the signs of them.

Papers compute NDCG and MRR with code of their own. If ranks count from 0 in one line and from 1 in
the next, every discount moves by one rank, and the numbers belong to a metric that the paper does
not name. There are three signs of this: no ranks give the numbers, evenly spread ranks give more,
or another formula makes the numbers far likelier.
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

#: A slip is named if it makes the numbers so many times as likely. Right formulas reach this for
#: hardly any model, which the tests of promises count.
_FAR_LIKELIER = 1000.0
#: Fits curves to the printed numbers, as if they were numbers of these metrics.
Fit = Callable[[Sequence[Metric]], FittedNumbers]


@dataclass(frozen=True)
class Slip:
    """A formula that may have been computed in place of a metric's own."""

    #: The metric that is printed, and the family that has the other formula.
    printed: str
    family: MetricFamily
    #: The other formula and the right one, in words.
    formula: str

    def made(self, metric: Metric) -> Metric:
        """Return the metric that was computed in place of this one, if this slip was made."""
        concerned = (metric.family.single or metric.family.name) == self.printed
        return self.family(metric.k) if concerned else metric

    def concerned(self, paper: Paper) -> list[str]:
        """Return the names of the printed metrics that the slip would change."""
        return [
            number.name for number in paper.numbers if self.made(number.metric) is not number.metric
        ]

    def corrected(self, paper: Paper) -> Paper:
        """Return the same numbers, as numbers of the metrics that the slip computes."""
        numbers = [replace(number, metric=self.made(number.metric)) for number in paper.numbers]
        return Paper(paper.sampling, users=paper.users, numbers=tuple(numbers))

    def explains(self, paper: Paper) -> bool:
        """Return whether ranks may give the numbers if this slip was made."""
        if not self.concerned(paper):
            return False
        corrected = self.corrected(paper)
        return corrected.consistent and not corrected.below_even()

    def __str__(self) -> str:
        has_name_here = self.family.name in _metrics.REGISTRY
        return f"{self.formula} ({self.family.name} here)" if has_name_here else self.formula


SLIPS = (
    Slip(
        printed="NDCG",
        family=_metrics.custom("NDCG-later", lambda ranks: 1.0 / np.log2(ranks + 2.0)),
        formula="1/log2(r + 2) in place of 1/log2(r + 1)",
    ),
    Slip(
        printed="NDCG",
        family=_metrics.custom("NDCG-natural", lambda ranks: 1.0 / np.log(ranks + 1.0)),
        formula="1/ln(r + 1) in place of 1/log2(r + 1)",
    ),
    Slip(
        printed="NDCG",
        family=_metrics.REGISTRY["NDCG(ideal=k)"],
        formula="the ideal of K relevant items in place of one",
    ),
    Slip(
        printed="AP",
        family=_metrics.custom("MRR-later", lambda ranks: 1.0 / (ranks + 1.0)),
        formula="1/(r + 1) in place of 1/r",
    ),
)


def explained(paper: Paper) -> str:
    """Return which slips would explain numbers that no ranks give, to end a message with."""
    fitting = [str(slip) for slip in SLIPS if slip.explains(paper)]
    return f"; for the rank r, {' or '.join(fitting)} would explain them" if fitting else ""


def on_slips(paper: Paper, fit: Fit | None, *, even: bool) -> list[Note]:
    """Return a note if a printed metric was probably computed by another formula.

    Parameters
    ----------
    paper
        The printed numbers.
    fit
        Fits curves to the numbers, so that other formulas can be compared by their evidence; None
        without a prior.
    even
        Whether numbers are compared with what evenly spread ranks give.
    """
    low = paper.below_even() if even else []
    slip = None if fit is None else _likeliest(paper, fit)
    why = f"makes these numbers over {_FAR_LIKELIER:,.0f} times as likely"
    if low and slip is None:
        slip = next((candidate for candidate in SLIPS if candidate.explains(paper)), None)
        why = "would explain it"
    if not low and slip is None:
        return []
    names = [number.name for number, _ in low] if slip is None else slip.concerned(paper)
    text = f"{' and '.join(names)} may be computed otherwise"
    if low:
        number, of_even_ranks = low[0]
        text = (
            f"{number} is low: if ranks were spread evenly between the printed hit rates it would "
            f"be {rounded_down(of_even_ranks, 3)}, and models put more targets at the top"
        )
    if slip is not None:
        text += f"; {slip} {why}"
    text += f"; check the formula, in which r = 1 is the best rank, or leave {', '.join(names)} out"
    if low:
        text += "; if items that users had seen were ranked too, pass protocol='all'"
    return [Note("slip", text)]


def _likeliest(paper: Paper, fit: Fit) -> Slip | None:
    """Return the slip that makes the numbers far likelier than the right formula, if one does."""
    possible = [
        slip for slip in SLIPS if slip.concerned(paper) and slip.corrected(paper).consistent
    ]
    if not possible:
        return None
    evidence = [fit(slip.corrected(paper).metrics).log_evidence for slip in possible]
    best = int(np.argmax(evidence))
    gain = evidence[best] - fit(paper.metrics).log_evidence
    return possible[best] if gain > math.log(_FAR_LIKELIER) else None
