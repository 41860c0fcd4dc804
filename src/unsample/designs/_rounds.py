"""Which way the rounds of a design take: single pairs, or products, here or on a device."""

from __future__ import annotations

from functools import partial

from unsample._checks import IntArray
from unsample.designs._device import DeviceScores
from unsample.designs._device_rounds import (
    WINDOWS_AT_ONCE,
    Certify,
    DeviceScan,
    by_products_on,
    can_scan,
    certify_fused,
)
from unsample.designs._guides import GuidedOrders
from unsample.designs._scan import Scan
from unsample.designs._scorers import Score, Scorer
from unsample.designs._tiles import ROWS, can_tile
from unsample.designs._windows import Advance, advance_in_order, by_products


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


def is_fused(scores: Score | None) -> bool:
    """Return whether factors on a device are compared without writing a score."""
    return isinstance(scores, DeviceScores) and scores.fused


def fused_certify(scan: Scan) -> Certify | None:
    """Return what certifies targets all at once, where factors on a device are fused.

    It never takes much longer than a full ranking, and keeps to no budget.
    """
    if scan.listener is not None or not isinstance(scan.score, DeviceScores):
        return None
    if not scan.score.fused:
        return None
    return partial(certify_fused, scan.score, scan.candidates, _one_order(scan))


def _one_order(scan: Scan) -> IntArray | None:
    """Return the order in which all targets meet items; a listener wants single scores."""
    if scan.listener is not None or not isinstance(scan.guided, GuidedOrders):
        return None
    return scan.guided.guide.order
