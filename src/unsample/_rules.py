"""Checks of single values, warnings, and texts for people, all without numpy."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import logging  # noqa: F401 - before `ONCE`, see there
import math
import numbers
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable
from threading import RLock
from types import FrameType, ModuleType
from typing import Any

from unsample.errors import InputError, MissingExtraError, UnsampleWarning

#: Sentences are wrapped at so many columns.
_WIDTH = 100
#: A lock for work that a process does once, such as an import, and for changes of what belongs to
#: the whole process. No process forks while it is held: the child would wait for ever for a thread
#: that it does not have.
#:
#: A fork takes such locks in the reverse order of their registration. Logging has a lock as well,
#: which many modules need while they are imported. So logging is imported first: otherwise a fork
#: that holds the lock of logging would wait for an import that needs it, for ever.
ONCE = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=ONCE.acquire,
        after_in_parent=ONCE.release,
        after_in_child=ONCE.release,
    )
#: Ranks beyond this are not distinguished by float64 arithmetic on rank products.
LARGEST_CATALOGUE = 10**12
#: What numpy calls a bool, in its versions.
_NUMPY_BOOLS = {("numpy", "bool"), ("numpy", "bool_")}
#: How the paths of this package begin.
_PACKAGE = os.path.join(os.path.dirname(__file__), "")  # noqa: PTH118, PTH120 - as in tracebacks
#: Code between a function of this package and its caller, at whose line a warning points.
_PASSED = (_PACKAGE, contextlib.__file__)
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
    """Return ``value`` as an int between ``minimum`` and ``maximum``; refuse anything else.

    >>> check_integer("sampled", 99.0, minimum=1)
    99
    >>> try:
    ...     check_integer("sampled", 0, minimum=1)
    ... except InputError as problem:
    ...     print(problem)
    sampled must be an integer of at least 1, got 0
    """
    number = _whole_number(value)
    if number is None or number < minimum or (maximum is not None and number > maximum):
        rule = f"an integer of at least {minimum}"
        if maximum is not None:
            rule += f" and at most {maximum}"
        raise error(message(name, rule, got=value, hint=hint))
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
    """Return ``value`` as a finite float inside a range; refuse anything else.

    >>> try:
    ...     check_real("gamma", 0, low=0.0, high=1.0, open_low=True)
    ... except InputError as problem:
    ...     print(problem)
    gamma must be a number in (0, 1], got 0
    """
    number = _real_number(value)
    inside = low < number if open_low else low <= number
    inside = inside and (number < high if open_high else number <= high)
    if not inside or not math.isfinite(number):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        if math.isinf(high):
            rule = f"a finite number {'greater than' if open_low else 'of at least'} {low:g}"
        else:
            rule = f"a number in {left}{low:g}, {high:g}{right}"
        raise error(message(name, rule, got=value, hint=hint))
    return number


def check_level(level: object) -> float:
    """Return a confidence level strictly between 0 and 1."""
    hint = "0.95 gives a 95 % interval"
    return check_real("level", level, low=0.0, high=1.0, open_low=True, open_high=True, hint=hint)


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
        rule = "one of " + ", ".join(known)
        raise error(message(name, rule, got=value, hint=hint or suggest(str(value), known)))
    return value


def check_flag(name: str, value: object) -> bool:
    """Return a bool of Python or numpy; words such as "no" would all be true."""
    kind = type(value)
    if isinstance(value, bool) or (kind.__module__, kind.__name__) in _NUMPY_BOOLS:
        return bool(value)
    raise InputError(message(name, "True or False", got=value, hint=""))


def check_path(name: str, value: object, *, hint: str = "") -> str:
    """Return a path as text."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    raise InputError(message(name, "a path", got=value, hint=hint))


def check_kind(name: str, value: object, kind: type, *, hint: str = "") -> None:
    """Refuse what is not an object of a class of this package."""
    if not isinstance(value, kind):
        raise InputError(message(name, f"an unsample.{kind.__name__}", got=value, hint=hint))


def suggest(word: str, choices: Iterable[str], *, near: float = 0.6) -> str:
    """Return ``did you mean X?`` for the nearest choice, or nothing when none is ``near``.

    >>> suggest("recal", ["Recall", "NDCG"])
    'did you mean Recall?'
    """
    by_folded = {choice.casefold(): choice for choice in choices}
    matches = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=near)
    return f"did you mean {by_folded[matches[0]]}?" if matches else ""


def at_position(index: int, size: int) -> str:
    """Return where a value stands, counted from 1 as the lines of a file are.

    >>> at_position(0, 5000)
    'at position 1 of 5,000'
    """
    return f"at position {index + 1:,} of {size:,}"


def import_whole(module: str) -> ModuleType:
    """Import a module, while no process may fork."""
    with ONCE:
        return importlib.import_module(module)


def import_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or name the line that installs it.

    ``extra`` is the package's extra that brings the library; empty if none does.
    """
    try:
        return import_whole(module)
    except ImportError as problem:
        library = module.partition(".")[0]
        install = f"'unsample[{extra}]'" if extra else library
        raise MissingExtraError(
            f"{purpose} needs {library}, which is not installed; "
            f"install it with: pip install {install}"
        ) from problem


def warn(text: str, category: type[UnsampleWarning] = UnsampleWarning) -> None:
    """Issue a warning of Python's that points at the line outside this package that led to it."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as warnings itself finds the line
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


def printable(text: str) -> str:
    r"""Return text in which all characters that a terminal would obey are spelt out.

    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    return _UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def _whole_number(value: object) -> int | None:
    """Return ``value`` as an int, also where it is spelt 10.0; None where it is no whole number."""
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
    """Return a message that names the argument, the rule, the value that it got, and what to do.

    >>> message("level", "a number in (0, 1)", got=95, hint="0.95 gives a 95 % interval")
    'level must be a number in (0, 1), got 95; 0.95 gives a 95 % interval'
    """
    shown = show(got)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    text = f"{name} must be {rule}, got {shown}"
    return f"{text}; {hint}" if hint else text


def wrapped(text: str) -> str:
    """Return printable text whose lines are at most 100 columns wide; words stay whole.

    >>> [len(line) for line in wrapped("word " * 21).splitlines()]
    [99, 4]
    """
    lines = printable(text).split("\n")
    return "\n".join(
        textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
        for line in lines
    )
