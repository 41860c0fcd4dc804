"""Checks of single values, and texts for people: what the command needs before it loads numpy."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
import re
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from unsample._gone import gone
from unsample.errors import GoneError, InputError, MissingExtraError

#: Ranks beyond this are not distinguished by float64 arithmetic on rank products.
LARGEST_CATALOGUE = 10**12
#: What a terminal obeys or cannot show: control characters except line ends and tabs, marks that
#: change the direction of writing, other line separators, and half characters.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def check_integer(
    name: str,
    value: object,
    *,
    minimum: int,
    maximum: int | None = None,
    hint: str = "",
    error: type[InputError] = InputError,
) -> int:
    """Return ``value`` as an int between ``minimum`` and ``maximum``, or say what is wrong."""
    number = _whole_number(value)
    if number is None or number < minimum or (maximum is not None and number > maximum):
        rule = f"an integer of at least {minimum}"
        if maximum is not None:
            rule += f" and at most {maximum}"
        raise error(message(name, rule, value, hint))
    return number


def check_real(
    name: str,
    value: object,
    *,
    low: float,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    hint: str = "",
    error: type[InputError] = InputError,
) -> float:
    """Return ``value`` as a finite float inside the stated range, or say what is wrong."""
    number = _real_number(value)
    inside = low < number if open_low else low <= number
    inside = inside and (number < high if open_high else number <= high)
    if not inside or not math.isfinite(number):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        if math.isinf(high):
            rule = f"a finite number {'greater than' if open_low else 'of at least'} {low:g}"
        else:
            rule = f"a number in {left}{low:g}, {high:g}{right}"
        raise error(message(name, rule, value, hint))
    return number


def check_level(level: object) -> float:
    """Return a confidence level strictly between 0 and 1."""
    hint = "0.95 gives a 95 % interval"
    return check_real("level", level, low=0.0, high=1.0, open_low=True, open_high=True, hint=hint)


#: What to say of any wrong choice of an argument, where the nearest word would mislead.
_HINTS = {
    "negatives": "items must be drawn at random: those that a model chose (hard negatives, the "
    "best of BM25, NanoBEIR) tell nothing of the items that it left; draw a random part for all "
    "queries ('shared') or for each ('own'), or rank in full with unsample.evaluate"
}


def check_choice(
    name: str,
    value: object,
    choices: Iterable[str],
    *,
    hint: str = "",
    error: type[InputError] = InputError,
) -> str:
    """Return ``value`` if it is one of ``choices``; otherwise suggest the nearest."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        former = gone(f"{name}={value!r}")
        if former is not None:
            raise GoneError(former)
        rule = "one of " + ", ".join(known)
        near = _HINTS.get(name) or suggest(str(value), known)
        raise error(message(name, rule, value, hint or near))
    return value


def suggest(word: str, choices: Iterable[str], *, near: float = 0.6) -> str:
    """Return ``did you mean X?`` for the nearest choice, or nothing when none is ``near``."""
    by_folded = {choice.casefold(): choice for choice in choices}
    found = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=near)
    return f"did you mean {by_folded[found[0]]}?" if found else ""


def at_position(index: int, size: int) -> str:
    """Return where a value stands, counted from 1 as the lines of a file are."""
    return f"at position {index + 1:,} of {size:,}"


def import_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or name the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        library = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {library}, which is not installed; "
            f"install it with: pip install 'unsample[{extra}]'"
        ) from problem


def printable(text: str) -> str:
    r"""Return text in which everything that a terminal would obey is spelt out.

    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    return _UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def _whole_number(value: object) -> int | None:
    """Return the whole number that ``value`` is, also when spelt 10.0; True is not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and _real_number(value).is_integer():
        return int(float(value))
    return None


def _real_number(value: object) -> float:
    """Return ``value`` as a float: NaN if it is not a number, infinity if it is too large."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def message(name: str, rule: str, got: object, hint: str, show: Any = repr) -> str:
    """Return a message that names the argument, the rule, what it got, and what to do."""
    shown = show(got)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    text = f"{name} must be {rule}, got {shown}"
    return f"{text}; {hint}" if hint else text
