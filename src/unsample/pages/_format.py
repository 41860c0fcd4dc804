"""Numbers as text: one place decides on digits, signs and what a missing value looks like."""

from __future__ import annotations

import math

__all__ = ["DASH", "UNIT", "count", "is_number", "percent", "scaled", "signed", "spread"]

DASH = "–"  # noqa: RUF001 - an en dash is what a typesetter puts for "none"
#: The paper prints every metric times 1000.
UNIT = 1000


def is_number(value: float | None) -> bool:
    """Return whether there is a finite number to show."""
    return value is not None and math.isfinite(value)


def scaled(value: float | None) -> str:
    """Return a metric times 1000 with two digits, as the paper prints it."""
    return DASH if value is None or not is_number(value) else _plain(f"{UNIT * value:.2f}")


def signed(value: float | None) -> str:
    """Return a difference of metrics times 1000 with its sign."""
    return DASH if value is None or not is_number(value) else _plain(f"{UNIT * value:+.2f}")


def spread(mean: float | None, std: float | None) -> str:
    """Return mean ± standard deviation, or what there is of it."""
    if not is_number(mean) or not is_number(std):
        return scaled(mean)
    return f"{scaled(mean)} ± {scaled(std)}"


def percent(share: float | None) -> str:
    """Return a share in percent with two significant digits."""
    if share is None or not is_number(share):
        return DASH
    points = 100 * share
    return f"{points:.0f} %" if abs(points) >= 9.95 else f"{points:.1f} %"


def count(value: float | None) -> str:
    """Return a whole number with separators."""
    return DASH if value is None or not is_number(value) else f"{value:,.0f}"


def _plain(text: str) -> str:
    """Return the text with a true minus sign, and zero without any sign."""
    if not text.strip("+-0."):
        return text.lstrip("+-")
    return text.replace("-", "−")  # noqa: RUF001 - lines up with the plus sign
