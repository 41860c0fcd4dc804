"""How an estimate is shown beside the numbers of another library."""

from __future__ import annotations

from unsample.answers import Estimate


def with_ends(name: str, found: Estimate, level: float) -> dict[str, float]:
    """Return an estimate and the ends of its interval, under the name of the sampled number."""
    low, high = found.interval(level)
    return {f"{name}_full": float(found.value), f"{name}_low": low, f"{name}_high": high}
