"""Argument checks shared by every room: one wording, one place."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample.errors import InputError, MissingExtraError, RankError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Seed: TypeAlias = "int | np.random.Generator | np.random.SeedSequence | None"

#: Ranks beyond this are not distinguished by float64 arithmetic on rank products.
LARGEST_CATALOGUE = 10**12
#: An array of texts may waste so many times what they hold, if it is large at all.
_LARGEST_WASTE = 100
_FEW_LETTERS = 1 << 25


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
        raise error(_message(name, rule, value, hint))
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
        raise error(_message(name, rule, value, hint))
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
        raise error(_message(name, rule, value, hint or suggest(str(value), known)))
    return value


def suggest(word: str, choices: Iterable[str]) -> str:
    """Return ``did you mean X?`` for the nearest choice, or nothing when none is near."""
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.5)
    return f"did you mean {by_folded[near[0]]}?" if near else ""


def as_rng(rng: Seed) -> np.random.Generator:
    """Return a Generator: the one given, or a new one from the seed (None draws fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.SeedSequence) or rng is None:
        return np.random.default_rng(rng)
    seed = check_integer("rng", rng, minimum=0, hint="pass a seed, a numpy Generator, or None")
    return np.random.default_rng(seed)


def as_integer_array(
    name: str, values: object, *, hint: str = "", error: type[InputError] = RankError
) -> IntArray | npt.NDArray[np.integer[Any]]:
    """Return ``values`` as a one-dimensional integer array without copying what is one already."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as problem:
        raise error(_message(name, "a flat sequence of integers", values, hint)) from problem
    if array.ndim != 1:
        raise error(
            _message(name, "one-dimensional", f"an array of shape {array.shape}", hint, show=str)
        )
    if np.issubdtype(array.dtype, np.integer):
        return array
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.floating):
        raise error(_message(name, "integers", f"values of type {array.dtype}", hint, show=str))
    bad = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**62))
    if bad.any():
        where = int(np.argmax(bad))
        got = f"{array[where]!s} at position {where} ({int(bad.sum())} such values)"
        raise error(_message(name, "whole numbers", got, hint, show=str))
    return array.astype(np.int64)


def as_text_array(
    name: str, values: Sequence[str], *, error: type[InputError] = InputError
) -> npt.NDArray[np.str_]:
    """Return texts as an array, in which every one takes as much memory as the longest."""
    if any(value.endswith("\0") for value in values):
        raise error(f"{name} must not end with a zero byte, which arrays of text leave out")
    longest = max(map(len, values), default=0)
    if longest * len(values) > max(_FEW_LETTERS, _LARGEST_WASTE * sum(map(len, values))):
        raise error(
            f"{name} must be of similar length, got {len(values):,} texts, one of them with "
            f"{longest:,} letters; shorten it"
        )
    return np.array(values, dtype=np.str_)


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


def _whole_number(value: object) -> int | None:
    """Return the whole number that ``value`` is, also when spelt 10.0; True is not a number."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and _real_number(value).is_integer():
        return int(float(value))
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _whole_number(value.item())
    return None


def _real_number(value: object) -> float:
    """Return the number that ``value`` is: NaN for what is none, infinity beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _message(name: str, rule: str, got: object, hint: str, show: Any = repr) -> str:
    shown = show(got)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    text = f"{name} must be {rule}, got {shown}"
    return f"{text}; {hint}" if hint else text
