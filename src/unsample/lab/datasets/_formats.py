"""Readers of the original text formats: bytes in, columns out.

A reader first matches the whole content against the grammar of its lines. Possessive repetition
makes that a single pass that ends at the first line that does not fit, so a malformed line is named
at no extra cost; what fits is then turned into numbers in one call.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import as_integer_array
from unsample.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from unsample._checks import IntArray

#: Fifteen digits are exact in float64, through which numbers pass where some are not whole.
_INTEGER = rb"\d{1,15}+"
_DECIMAL = _INTEGER + rb"(?:\.\d{1,15}+)?+"
_END_OF_LINE = rb"(?:\r?\n|\Z)"
_IDS = ("user", "item")
#: Characters of a malformed line that an error shows.
_SHOWN = 80
#: The rows of a file, in its order: ``user``, ``item``, and maybe ``rating``, ``time``, and the ids
#: of the file where those of the rows are numbered (``user_ids``, ``item_ids``).
Columns: TypeAlias = "dict[str, npt.NDArray[Any]]"

_TO_SPACES = bytes(byte if byte in b"0123456789." else ord(" ") for byte in range(256))


def read_columns(content: bytes, form: str, where: str) -> Columns:
    """Read the content of a file in one of the registry's formats; ``where`` names it in errors."""
    return _READERS[form](content, where)


def read_negatives(content: bytes, where: str) -> tuple[IntArray, IntArray, IntArray]:
    """Read ``(user,item)<tab>negative<tab>...`` as users, items, and a matrix of negatives."""
    layout = "(user,item) and the negatives, separated by tabs"
    line = rb"\(" + _INTEGER + rb"," + _INTEGER + rb"\)(?:\t" + _INTEGER + rb")++"
    numbers = _numbers(content, line, layout, where).astype(np.int64)
    widths = _numbers_per_line(content, ord("\t")) + 1
    uneven = widths != widths[0]
    if uneven.any():
        rule = f"{layout}, {widths[0] - 2} of them as in line 1"
        raise _malformed(content, int(np.argmax(uneven)), rule, where)
    table = numbers.reshape(-1, widths[0])
    return table[:, 0], table[:, 1], table[:, 2:]


def _read_movielens(content: bytes, where: str) -> Columns:
    """Read ``UserID::MovieID::Rating::Timestamp``, numbering ids by first appearance.

    That is the numbering of the published split of Neural Collaborative Filtering.
    """
    table = _table(content, rb"::", "UserID::MovieID::Rating::Timestamp", where)
    user_ids, user = _by_first_appearance(table[:, 0].astype(np.int64))
    item_ids, item = _by_first_appearance(table[:, 1].astype(np.int64))
    ids = {"user": user, "item": item, "user_ids": user_ids, "item_ids": item_ids}
    return ids | {"rating": table[:, 2].astype(np.float64), "time": table[:, 3].astype(np.int64)}


def _read_ratings(content: bytes, where: str) -> Columns:
    table = _table(content, rb"\t", "user, item, rating and time, separated by tabs", where)
    user, item, time = table[:, [0, 1, 3]].astype(np.int64).T
    return {"user": user, "item": item, "rating": table[:, 2].astype(np.float64), "time": time}


def _read_implicit(content: bytes, where: str) -> Columns:
    """Read the same layout where every rating is 1 and every time is 0: neither tells anything."""
    rows = _read_ratings(content, where)
    return {name: rows[name] for name in _IDS}


def _read_lists(content: bytes, where: str) -> Columns:
    """Read one line for each user: how many items, then the items."""
    layout = "the number of items and the items, separated by blanks"
    line = _INTEGER + rb"(?: " + _INTEGER + rb")*+"
    numbers = _numbers(content, line, layout, where).astype(np.int64)
    sizes = _numbers_per_line(content, ord(" ")) - 1
    heads = np.cumsum(sizes + 1) - (sizes + 1)
    wrong = numbers[heads] != sizes
    if wrong.any():
        raise _malformed(content, int(np.argmax(wrong)), layout, where)
    return {"user": np.repeat(np.arange(len(sizes)), sizes), "item": np.delete(numbers, heads)}


def _read_arrays(content: bytes, where: str) -> Columns:
    """Read the arrays ``user`` and ``item`` of a NumPy archive."""
    arrays = read_arrays(io.BytesIO(content), f"{where}, which must hold the arrays user and item,")
    if not set(_IDS) <= set(arrays):
        raise FileError(f"{where} must hold the arrays user and item, got {', '.join(arrays)}")
    return {
        name: as_integer_array(name, arrays[name], error=FileError).astype(np.int64)
        for name in _IDS
    }


_READERS: dict[str, Callable[[bytes, str], Columns]] = {
    "movielens": _read_movielens,
    "ratings": _read_ratings,
    "implicit": _read_implicit,
    "lists": _read_lists,
    "arrays": _read_arrays,
}


def _table(content: bytes, separator: bytes, layout: str, where: str) -> npt.NDArray[Any]:
    """Return the four columns user, item, rating and time, side by side."""
    line = separator.join([_INTEGER, _INTEGER, _DECIMAL, _INTEGER])
    return _numbers(content, line, layout, where).reshape(-1, 4)


def _numbers(content: bytes, line: bytes, layout: str, where: str) -> npt.NDArray[Any]:
    """Return all numbers of the content, every line of which must match ``line``."""
    if not content:
        raise FileError(f"{where} must hold lines of {layout}, got an empty file")
    match = re.match(rb"(?:" + line + _END_OF_LINE + rb")*+", content)
    end = match.end() if match else 0
    if end < len(content):
        raise _malformed(content, content.count(b"\n", 0, end), layout, where)
    # Integers are read several times faster as such.
    kind = np.float64 if b"." in content else np.int64
    return np.fromstring(content.translate(_TO_SPACES), dtype=kind, sep=" ")


def _malformed(content: bytes, line: int, layout: str, where: str) -> FileError:
    """Return the error for the zero-based ``line``."""
    start = 0
    for _ in range(line):
        start = content.index(b"\n", start) + 1
    text = content[start : start + 200].split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace")
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return FileError(f"{where}, line {line + 1}: must be {layout}, got {shown!r}")


def _numbers_per_line(content: bytes, separator: int) -> IntArray:
    characters = np.frombuffer(content, dtype=np.uint8)
    starts = np.flatnonzero(characters[:-1] == ord("\n")) + 1
    starts = np.concatenate([[0], starts])
    return np.add.reduceat(characters == separator, starts, dtype=np.int64) + 1


def _by_first_appearance(ids: npt.NDArray[np.int64]) -> tuple[IntArray, IntArray]:
    """Return the distinct ids in order of appearance, and each row's position among them."""
    distinct, first, position = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[position.reshape(-1)]
