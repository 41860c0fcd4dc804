"""How a round is computed: by single pairs or by products, on the processor or on a device."""

from __future__ import annotations

from functools import partial

from unsample.designs._device import DeviceScores
from unsample.designs._device_rounds import (
    WINDOWS_AT_ONCE,
    Certify,
    DeviceScan,
    by_products_on,
    can_scan,
    certify_fused,
)
from unsample.designs._scan import Scan
from unsample.designs._scorers import Scorer
from unsample.designs._tiles import ROWS, can_tile
from unsample.designs._windows import Advance, advance_in_order, by_products


def quickest_advance(scan: Scan, scorer: Scorer) -> Advance:
    """Return `Scan.advance`, or a faster function with the same results."""
    scores = scorer.score
    order = scan.orders.guide.order
    factors = scores.factors if isinstance(scores, DeviceScores) else scorer.factors
    if can_scan(scan):
        scan = DeviceScan.of(scan)
    if order is None or factors is None or not can_tile(factors):
        return scan.advance
    if isinstance(scores, DeviceScores):
        counts, rows = by_products_on(scores, order), WINDOWS_AT_ONCE
    else:
        counts, rows = by_products(factors, order), ROWS
    return partial(advance_in_order, scan, counts, rows=rows)


def fused_certify(scan: Scan) -> Certify | None:
    """Return a function that certifies all targets at once, if kernels can compare the factors.

    It never takes much longer than a full ranking. It does not keep to a budget.
    """
    if not isinstance(scan.score, DeviceScores):
        return None
    if not scan.score.fused:
        return None
    return partial(certify_fused, scan.score, scan.candidates, scan.orders.guide.order)
