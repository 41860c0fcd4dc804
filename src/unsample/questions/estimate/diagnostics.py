"""Notes on an estimate: arguments that are probably slips, and limits of what data can tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from unsample.bounds import Bounds
from unsample.counts import RankCounts
from unsample.estimators import Fit
from unsample.metrics import Metric
from unsample.posterior import Cloud
from unsample.questions.estimate.result import BOUNDS, Estimate
from unsample.report import Note

#: How many metrics a note names.
_NAMED = 3
#: The ranks before the last one tell how many targets to expect there: so many ranks ...
_BEFORE = 10
#: ... of which these, the last, have the smallest numbers if numbers fall towards the end.
_NEAREST = 3
#: If so many targets are expected, an empty last rank is no accident: exp(-10) is less than one in
#: twenty thousand.
_NO_ACCIDENT = 10.0
_REFUTED = (
    "no distribution of global ranks fits these sampled ranks: items, sampled, or how items were "
    "drawn or ties broken is not as stated, and no estimate can be trusted"
)
_SHARED = (
    "targets share their sampled items, and it is not known which item beats which target: the "
    "intervals are bounds, which allow for any dependence, and are wide; record outcomes by item "
    "(rows of user, item, score, target), or draw items for each target"
)
_FEW_ITEMS = (
    "fewer than four of the shared items make up most of the error of {metrics}, so that nothing "
    "tells how large it is: the intervals are bounds, which allow for any dependence; draw a "
    "larger part, or ask for a larger K"
)
_UNLIKE = (
    "these sampled ranks are unlike those of the data sets that the prior was learned from: check "
    "items, sampled, ties and how items were drawn; if all is as stated, the intervals are a guess"
)


def beyond_items(metrics: Iterable[Metric], items: int) -> list[Note]:
    """Return a note about metrics whose K is beyond the catalogue."""
    beyond = [metric.name for metric in metrics if metric.k is not None and metric.k > items]
    if not beyond:
        return []
    names = ", ".join(beyond[:_NAMED])
    if len(beyond) > _NAMED:
        names += ", ..."
    text = (
        f"K must be at most items = {items:,} to cut anything off, got {names}: all items count; "
        "check items and K"
    )
    return [Note("beyond", text)]


def drawn_often(counts: RankCounts) -> list[Note]:
    """Return a note if most targets have more draws than their catalogue has other items.

    It is no error: small relations of a knowledge graph are sampled so, and the distribution holds.
    """
    often = counts.sampled > counts.largest - 1
    if 2.0 * counts.weight[often].sum() <= counts.weight.sum():
        return []
    first = int(np.argmax(often))
    text = (
        f"sampled must be less than items to save anything, got {counts.sampled[first]:,} draws "
        f"from {counts.largest[first]:,} items; check items, the size of the whole catalogue, and "
        "if all its items were ranked give unsample.exact the ranks"
    )
    return [Note("drawn often", text)]


def one_less(counts: RankCounts) -> list[Note]:
    """Return a note if nobody has the last rank, but many have the ranks before it.

    Then 99 negatives may have been counted as 100 items: among 100 items there are 100 ranks.
    """
    sampled = int(counts.sampled[0])
    if (counts.sampled != sampled).any() or (counts.low < counts.high).any() or counts.full.any():
        return []
    ranks = range(max(sampled + 1 - _BEFORE, 1), sampled + 2)
    *before, last = (int(counts.count[counts.low == rank].sum()) for rank in ranks)
    nearest = min(before[-_NEAREST:])
    # If numbers fall towards the end, they may go on falling.
    fall = min(1.0, nearest * len(before) / max(sum(before), 1))
    expected = nearest * fall
    if last or expected < _NO_ACCIDENT:
        return []
    text = (
        f"sampled counts the items drawn beside the target, got {sampled}, but none of "
        f"{counts.total:,} ranks is {sampled + 1}, where about {expected:.0f} should be: "
        f"{sampled - 1} negatives make {sampled} ranks; give sampled = {sampled - 1} if there were "
        "so many"
    )
    return [Note("one less", text)]


def on_fits(fits: Mapping[str, Fit], metrics: Sequence[Metric]) -> list[Note]:
    """Return notes on methods of papers that did not converge, or left a metric's range."""
    notes = []
    for name, fit in fits.items():
        if not fit.certificate.usable:
            text = (
                f"{name} did not converge on the data ({fit.certificate}): do not rely on its "
                "values, and use another method, for instance auto"
            )
            notes.append(Note("unconverged", text))
        moved = [
            f"{metric.name} = {fit.unclipped[0, index]:.6g}"
            for index, metric in enumerate(metrics)
            if fit.clipped[index]
        ]
        if moved:
            text = (
                f"{name} gave {', '.join(moved)}, outside the metric's range, and was clipped "
                "into it: the method is linear in the counts and too noisy for these data; use "
                "auto or mle"
            )
            notes.append(Note("clipped", text))
    return notes


def outside(entry: Estimate) -> list[Note]:
    """Return a note if a value is outside its bounds, which shows that the method is wrong."""
    low, high = entry.limits
    if low - 1e-9 <= entry.value <= high + 1e-9 or entry.method == "naive":
        return []
    text = (
        f"{entry.method} gives {entry.metric} = {entry.value:.4g}, outside the bounds {low:.4g} .. "
        f"{high:.4g}, which hold whatever P(R) is: do not rely on it"
    )
    return [Note("outside", text)]


def on_likeness(bounds: Bounds, cloud: Cloud | None, *, entries: Sequence[Estimate]) -> list[Note]:
    """Return notes if the data contradict what was stated of them, and why intervals are bounds."""
    if not bounds.feasible:
        return [Note("refuted", _REFUTED)]
    if cloud is None:
        return []
    if cloud.blind:
        return [Note("shared", _SHARED)]
    notes = [Note("unlike", _UNLIKE)] if cloud.fitted.unlike else []
    by_bounds = dict.fromkeys(entry.metric.name for entry in entries if entry.source == BOUNDS)
    if by_bounds and cloud.fitted.cells.items is not None:
        notes.append(Note("few items", _FEW_ITEMS.format(metrics=", ".join(by_bounds))))
    return notes
