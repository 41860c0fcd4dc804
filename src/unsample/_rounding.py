"""Numbers in sentences: a lower limit is rounded down and an upper one up, so that both hold."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

_SIGNIFICANT = 2


def rounded(value: float, digits: int = _SIGNIFICANT) -> str:
    """Return a number with this number of significant digits, never with an exponent.

    >>> rounded(9.04), rounded(126.0), rounded(0.0126)
    ('9', '130', '0.013')
    """
    return _significant(value, digits, rule=ROUND_HALF_EVEN)


def rounded_down(value: float, digits: int = _SIGNIFICANT) -> str:
    """Return a lower limit, which is never more than the number.

    >>> rounded_down(5.39), rounded_down(1.0), rounded_down(1299.0)
    ('5.3', '1', '1200')
    """
    return _significant(value, digits, rule=ROUND_FLOOR)


def rounded_up(value: float, digits: int = _SIGNIFICANT) -> str:
    """Return an upper limit, which is never less than the number.

    >>> rounded_up(5.31), rounded_up(1.0), rounded_up(0.01201)
    ('5.4', '1', '0.013')
    """
    return _significant(value, digits, rule=ROUND_CEILING)


def limits_as_text(low: float, high: float, decimals: int) -> str:
    """Return a range that includes both limits, with this number of decimals.

    >>> limits_as_text(0.26649, 0.47703, decimals=3)
    '0.266 .. 0.478'
    """
    down = _to_power(_decimal(low), -decimals, rule=ROUND_FLOOR)
    up = _to_power(_decimal(high), -decimals, rule=ROUND_CEILING)
    return f"{down:.{decimals}f} .. {up:.{decimals}f}"


def percent(share: float) -> str:
    """Return a share in percent, with more digits if it is small."""
    return f"{100.0 * share:.{_decimals(share)}f} %"


def percent_at_most(share: float) -> str:
    """Return a share in percent as an upper limit.

    >>> percent(0.05013), percent_at_most(0.05013), percent_at_most(0.05)
    ('5.0 %', '5.1 %', '5.0 %')
    """
    if not math.isfinite(share):
        return percent(share)
    decimals = _decimals(share)
    return f"{_to_power(100 * _decimal(share), -decimals, rule=ROUND_CEILING):.{decimals}f} %"


def _decimals(share: float) -> int:
    return 1 if abs(share) >= 0.001 or share == 0.0 else 3


def _decimal(value: float) -> Decimal:
    # The shortest text of a float is the number that is meant: 5.3 is not 5.2999.
    return Decimal(repr(float(value)))


def _significant(value: float, digits: int, rule: str) -> str:
    if not math.isfinite(value):
        return str(float(value))
    number = _decimal(value)
    return f"{_to_power(number, number.adjusted() - digits + 1, rule=rule).normalize():f}"


def _to_power(value: Decimal, power: int, rule: str) -> Decimal:
    """Return a value rounded to a multiple of 10 to this power.

    >>> _to_power(Decimal("1299"), 2, ROUND_FLOOR)
    Decimal('1.2E+3')
    """
    return value.scaleb(-power).to_integral_value(rule).scaleb(power)
