"""Batches of rows put together in little memory, and rows put in order and in groups.

Names are kept as UTF-8, each once, and rows hold their numbers. These are in the order of the
names, so that whatever sorts or compares rows finds what the names would give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample.errors import FileError
from unsample.evidence import in_parts
from unsample.tables._layout import LABEL, Columns

#: Roles whose names become numbers.
_CODED = ("user", "item")
#: Whole numbers up to this can be added and doubled in 32 bits.
_SMALL = 1 << 29
#: An array of texts may waste so many times what they hold, if it is large at all.
_LARGEST_WASTE, _FEW_LETTERS = 100, 1 << 25

Names = dict[str, npt.NDArray[np.bytes_]]


def gathered(
    batches: Iterable[Columns], source: str, *, coded: bool = True
) -> tuple[Columns, Names]:
    """Return the rows of all batches, one after the other, and the names that numbers stand for."""
    grown: dict[str, _Growing] = {}
    rows = 0
    for batch in batches:
        rows += len(next(iter(batch.values())))
        for role, values in batch.items():
            names = coded and role in _CODED
            column = grown.setdefault(role, _Growing(source))
            column.append(_packed(values) if names else _narrow(values))
    columns: Columns = {}
    found: Names = {}
    for role in list(grown):
        column = grown.pop(role)
        if column.size < rows:  # only some files have it
            continue
        columns[role] = _once(column.whole())
        if coded and role in _CODED:
            columns[role], found[role] = _numbered(columns[role])
    return columns, found


class _Growing:
    """A column that grows in place: parts put together at the end would be held twice."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.values: npt.NDArray[Any] = np.empty(0, dtype=np.int32)
        self.size = self.held = 0

    def append(self, part: npt.NDArray[Any]) -> None:
        """Put some values behind those that are there."""
        first, end = self.size == 0, self.size + len(part)
        dtype = part.dtype if first else np.result_type(self.values.dtype, part.dtype)
        self.held += part.nbytes
        if part.dtype.kind in "US":
            self._check_lengths(dtype.itemsize * end, 4 if part.dtype.kind == "U" else 1)
        if dtype != self.values.dtype:
            self.values = self.values[: self.size].astype(dtype)
        if end > len(self.values):
            # Views of it do not outlive this call.
            self.values.resize(end + end // 8, refcheck=False)
        self.values[self.size : end] = part
        self.size = end

    def _check_lengths(self, widest: int, letter: int) -> None:
        """Refuse names of which one is so long that it would widen all others far too much."""
        if widest > max(letter * _FEW_LETTERS, _LARGEST_WASTE * self.held):
            raise FileError(
                f"names in {self.source} must be of similar length; shorten the longest"
            )

    def whole(self) -> npt.NDArray[Any]:
        """Return all values."""
        self.values.resize(self.size, refcheck=False)
        return self.values


def _packed(names: npt.NDArray[np.str_]) -> npt.NDArray[np.bytes_]:
    try:
        return names.astype(np.bytes_)
    except UnicodeEncodeError:
        return np.char.encode(names, "utf-8", "surrogatepass")


def _narrow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers in 32 bits, where they are small."""
    if values.dtype.kind not in "iu" or not len(values):
        return values
    low, high = int(values.min()), int(values.max())
    fits = max(-low, high) <= _SMALL
    return values.astype(np.int32, copy=False) if fits else values


def _once(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return one number for all rows, where it is the same in all, such as no ties."""
    if values.dtype.kind != "i" or values.min() < values.max():
        return values
    return np.broadcast_to(values[:1].copy(), len(values))


def _numbered(
    names: npt.NDArray[np.bytes_],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bytes_]]:
    """Return the number of each name among all of them, sorted, and these."""
    order = np.argsort(names)
    new = np.ones(len(names), dtype=bool)
    for rows in in_parts(len(names) - 1):
        some = names[order[rows.start : rows.stop + 1]]
        new[rows.start + 1 : rows.stop + 1] = some[1:] != some[:-1]
    numbers = np.empty(len(names), dtype=np.int32)
    numbers[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    order = order[new]
    return numbers, names[order]


def in_order(columns: Columns) -> Columns:
    """Return the rows sorted by all they hold, so that chance meets them in one order."""
    alike = [role for role, values in columns.items() if values.strides == (0,)]
    order = np.lexsort([columns[role] for role in sorted({*columns} - {*alike})])
    return {role: v if role in alike else v[order] for role, v in columns.items()}


def by_label(columns: Columns) -> dict[str, Columns]:
    """Return the rows of each value of the column to group by, in the order they appear in."""
    if LABEL not in columns:
        return {"": columns}
    order = np.argsort(columns[LABEL], kind="stable")
    _, starts = np.unique(columns[LABEL][order], return_index=True)
    groups = sorted(np.split(order, starts[1:]), key=lambda members: int(members[0]))
    return {
        str(columns[LABEL][members[0]]): {role: v[members] for role, v in columns.items()}
        for members in groups
    }
