"""What a prior is learned from: the rank sets of a bank, as histories."""

from __future__ import annotations

from collections.abc import Iterable

from unsample.lab.bank._bank import RankSet
from unsample.prior import History


def histories(sets: Iterable[RankSet]) -> list[History]:
    """Return the histories of complete data sets; those of one family share a weight."""
    kept = [each for each in sets if not each.partial]
    known = {(each.kind, each.family, each.dataset) for each in kept}
    families = [(kind, family) for kind, family, _ in known]
    share = {(kind, name): 1.0 / families.count((kind, family)) for kind, family, name in known}
    return [
        History(each.grid, each.counts, each.dataset, each.kind, share[each.kind, each.dataset])
        for each in kept
    ]
