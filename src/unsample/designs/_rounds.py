"""Which way the rounds of a design take: single pairs, or products, here or on a device."""

from __future__ import annotations

from functools import partial

from unsample._checks import IntArray
from unsample.designs._device import DeviceScores
from unsample.designs._device_rounds import WINDOWS_AT_ONCE, DeviceScan, by_products_on, can_scan
from unsample.designs._guides import GuidedOrders
from unsample.designs._scan import Scan
from unsample.designs._scorers import Scorer
from unsample.designs._tiles import ROWS, can_tile
from unsample.designs._windows import Advance, advance_in_order, by_products

#: By how much a pair of a round takes longer than one of a full ranking on a device, where that is
#: fused or not, and rounds are products or single pairs. On an H200, products that are compared
#: and added up took 18 times as long as fused ones; the others are guesses. Only time hangs on it.
_DEARER = {(True, True): 18.0, (True, False): 200.0, (False, True): 2.0, (False, False): 20.0}


def quickest_advance(scan: Scan, scorer: Scorer) -> Advance:
    """Return `Scan.advance`, or what does the same in another way where that is quicker."""
    scores, factors = scorer.score, scorer.factors
    if isinstance(scores, DeviceScores):
        factors = scores.factors
    order = _one_order(scan)
    if can_scan(scan):
        scan = DeviceScan.of(scan)
    if order is None or factors is None or not can_tile(factors):
        return scan.advance
    if isinstance(scores, DeviceScores):
        counts, rows = by_products_on(scores, order), WINDOWS_AT_ONCE
    else:
        counts, rows = by_products(factors, order), ROWS
    return partial(advance_in_order, scan, counts, rows=rows)


def times_dearer(scan: Scan, scorer: Scorer) -> float | None:
    """Return how much longer a pair of a round takes than one of a full ranking of factors.

    None where full rankings are made by nothing quicker.
    """
    if not isinstance(scorer.score, DeviceScores):
        return None
    return _DEARER[scorer.score.fused, _one_order(scan) is not None]


def whole_rows(scorer: Scorer) -> Scorer:
    """Return the scorer that ranks in full, where another one scores single pairs on a device."""
    if not isinstance(scorer.score, DeviceScores):
        return scorer
    factors = scorer.score.factors
    return Scorer(score_all=factors, factors=factors)


def _one_order(scan: Scan) -> IntArray | None:
    """Return the order in which all targets meet items; whoever listens wants single scores."""
    if scan.listener is not None or not isinstance(scan.guided, GuidedOrders):
        return None
    return scan.guided.guide.order
