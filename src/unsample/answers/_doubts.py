"""What is possible, but hardly meant: said beside the answer, which is right if it was meant."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from unsample.answers._notes import Note
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: Ranks before the last whose targets say how many to expect at the last, and how many make an
#: empty last rank no chance: exp(-10) is less than one in twenty thousand.
_BEFORE, _NEAREST, _NO_CHANCE = 10, 3, 10.0
#: How many metrics a note names.
_NAMED = 3


def doubts(counts: RankCounts, metrics: Iterable[Metric]) -> list[Note]:
    """Return what a reader should check of the design and of the metrics."""
    beyond = beyond_items(metrics, counts.largest_catalogue)
    return [*beyond, *_drawn_often(counts), *_one_less(counts)]


def beyond_items(metrics: Iterable[Metric], items: int) -> list[Note]:
    """Return a note about metrics whose K is beyond the catalogue."""
    beyond = [metric.name for metric in metrics if metric.k is not None and metric.k > items]
    names = ", ".join(beyond[:_NAMED]) + (", ..." if len(beyond) > _NAMED else "")
    text = (
        f"K must be at most items = {items:,} to cut anything off, got {names}: all items count; "
        "check items and K"
    )
    return [Note("beyond", text)] if beyond else []


def _drawn_often(counts: RankCounts) -> list[Note]:
    """Return a note if most targets have more draws than their catalogue has other items.

    It is no error: small relations of a knowledge graph are sampled so, and the law holds.
    """
    often = counts.sampled > counts.items - 1
    if 2.0 * counts.weight[often].sum() <= counts.weight.sum():
        return []
    where = int(np.argmax(often))
    text = (
        f"sampled must be less than items to save anything, got {counts.sampled[where]:,} draws "
        f"from {counts.items[where]:,} items; check items, the size of the whole catalogue, and if "
        "all its items were ranked give unsample.exact the ranks"
    )
    return [Note("drawn often", text)]


def _one_less(counts: RankCounts) -> list[Note]:
    """Return a note if nobody has the last rank, where as many should as have those before."""
    sampled = int(counts.sampled[0])
    if (counts.sampled != sampled).any() or (counts.low < counts.high).any() or counts.full.any():
        return []
    place = counts.low + _BEFORE - sampled - 1
    times = np.bincount(place[place >= 0], counts.count[place >= 0], minlength=_BEFORE + 1)
    before = times[max(_BEFORE - sampled, 0) : -1]
    nearest = float(before[-_NEAREST:].min())
    # Where numbers fall towards the end they may go on falling.
    expected = nearest * min(1.0, nearest / float(before.mean())) if nearest else 0.0
    if times[-1] or expected < _NO_CHANCE:
        return []
    text = (
        f"sampled counts the items drawn beside the target, got {sampled}, but none of "
        f"{counts.total:,} ranks is {sampled + 1}, where about {expected:.0f} should be: "
        f"{sampled - 1} negatives make {sampled} ranks; give sampled = {sampled - 1} if there were "
        "so many"
    )
    return [Note("one less", text)]
