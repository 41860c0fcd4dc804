"""From which K on the claim that one model is better than another is supported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unsample.metrics import Metric

if TYPE_CHECKING:
    from unsample.answers._comparison import Difference


@dataclass(frozen=True)
class Claim:
    """The claim that ``a`` is better than ``b`` on a metric, and from which K it is supported."""

    #: The metric without its K.
    metric: str
    a: str
    b: str
    #: The values of K that were compared.
    cutoffs: tuple[int, ...]
    #: The least K from which on ``a`` wins at every K; None if it does not win at the largest.
    supported_from: int | None

    def __str__(self) -> str:
        looked = f"K = {', '.join(map(str, self.cutoffs))}"
        if self.supported_from is None:
            return f"{self.metric}@K: {self.a} and {self.b} are not told apart (of {looked})"
        found = f"from K = {self.supported_from} on"
        return f"{self.metric}@K: {self.a} is better than {self.b} {found} (of {looked})"


def claims_of(metrics: Sequence[Metric], differences: Iterable[Difference]) -> tuple[Claim, ...]:
    """Return a claim for each pair of models and each metric that was compared at some K.

    The better model is the winner at the largest K or, without a winner, the higher estimate there.
    """
    known = {metric.name: metric for metric in metrics if metric.k is not None}
    ladders: dict[tuple[str, str, str], dict[int, Difference]] = {}
    for pair in differences:
        metric = known.get(pair.metric)
        if metric is not None and metric.k is not None:
            ladders.setdefault((metric.label, pair.a, pair.b), {})[metric.k] = pair
    found = []
    for (label, a, b), steps in ladders.items():
        top = steps[max(steps)]
        better, other = (a, b) if (top.winner or (a if top.value >= 0 else b)) == a else (b, a)
        won = {k: pair.winner == better for k, pair in steps.items()}
        cutoffs = tuple(sorted(steps))
        found.append(Claim(label, better, other, cutoffs, _from_on(won)))
    return tuple(found)


def _from_on(holds: dict[int, bool]) -> int | None:
    """Return the least K such that ``holds`` is true there and at all larger K."""
    least = None
    for k in sorted(holds, reverse=True):
        if not holds[k]:
            break
        least = k
    return least
