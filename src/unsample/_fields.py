"""What an archive must hold: one description of each of its fields, checked when it is read.

Archives of others are not trusted. A number that is out of its range would give another result, an
endless loop, or an error of Python's far from its cause. So every reader of an archive says of each
field what it holds, and `read_fields` refuses what is missing, what is more, and what differs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._rules import check_real
from unsample.errors import FileError, InputError

#: Kind of a field -> the kinds of numpy's types that it may have, the type it is read as, and what
#: it is called.
_KINDS: dict[str, tuple[str, type, str]] = {
    "whole": ("iu", np.int64, "whole numbers"),
    "real": ("f", np.float64, "finite numbers"),
    "text": ("U", np.str_, "text"),
    "flag": ("b", np.bool_, "true or false"),
}
_ANEW = "the file is damaged or was changed; write it anew"


@dataclass(frozen=True)
class Field:
    """What one array of an archive holds: the kind of its values, its shape and its range.

    An axis of the shape has a number of values, or a name: axes of one name are equally long. The
    ends of the range belong to it. They may be arrays, one value for each of the field's.
    """

    kind: str = "whole"
    shape: tuple[int | str, ...] = ("rows",)
    low: Any = -np.inf
    high: Any = np.inf
    #: Whether a value may be NaN, where it is not known.
    missing: bool = False

    def problem(self, values: Any, sizes: dict[str, int]) -> str:
        """Return what is wrong with an array, or nothing; ``sizes`` are those of named axes."""
        kinds, _, called = _KINDS[self.kind]
        if not isinstance(values, np.ndarray) or values.dtype.kind not in kinds:
            return f"hold {called}, got {getattr(values, 'dtype', type(values).__name__)}"
        shape = values.shape
        wanted = tuple(
            size if isinstance(size, int) else sizes.setdefault(size, length)
            for size, length in zip(self.shape, shape, strict=False)
        )
        if wanted != shape or len(self.shape) != len(shape):
            return f"have the shape {_shown(self.shape, sizes)}, got {shape}"
        if self.kind in ("text", "flag") or not values.size:
            return ""
        good = np.isfinite(values) & (values >= self.low) & (values <= self.high)
        good |= np.isnan(values) & self.missing
        if good.all():
            return ""
        at = np.unravel_index(int(np.argmin(good)), shape)
        low, high = (np.broadcast_to(end, shape)[at].item() for end in (self.low, self.high))
        return f"hold {called} from {low:,.15g} to {high:,.15g}, got {values[at]}"


def read_fields(
    found: Mapping[str, Any],
    fields: Mapping[str, Field],
    where: str,
    *,
    error: type[InputError] = FileError,
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an archive as they are described; ``where`` names it in messages.

    >>> read_fields({"rank": np.array([3, -1])}, {"rank": Field(low=1, high=10)}, "ranks.npz")
    Traceback (most recent call last):
      ...
    unsample.errors.FileError: 'rank' of ranks.npz must hold whole numbers from 1 to 10, got -1; \
the file is damaged or was changed; write it anew
    """
    refuse_unless(
        not {*fields} - {*found}, f"{where} lacks {_listed({*fields} - {*found})}", error=error
    )
    more = _listed({*found} - {*fields})
    refuse_unless(not more, f"{where} must hold nothing else, got also {more}", error=error)
    sizes: dict[str, int] = {}
    for name, field in fields.items():
        problem = field.problem(found[name], sizes)
        refuse_unless(not problem, f"{name!r} of {where} must {problem}", error=error)
    return {name: found[name].astype(_KINDS[each.kind][1]) for name, each in fields.items()}


def refuse_unless(good: object, text: str, error: type[InputError] = FileError) -> None:
    """Raise an error that says what an archive must hold, and what to do, unless it does."""
    if not good:
        raise error(f"{text}; {_ANEW}")


def read_number(
    found: Mapping[str, Any], name: str, where: str, *, low: float, high: float
) -> float:
    """Return one number of the text of an archive, which lies in a range."""
    refuse_unless(name in found, f"{where} lacks {name!r}")
    called = f"{name!r} of {where}"
    return check_real(called, found[name], low=low, high=high, hint=_ANEW, error=FileError)


def read_object(found: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return the JSON object that an archive holds as bytes; none of its values is checked."""
    refuse_unless(name in found, f"{where} lacks {name!r}")
    held = found[name]
    read: Any = None
    if held.dtype == np.uint8 and held.ndim == 1:
        try:
            read = json.loads(held.tobytes())
        except (ValueError, RecursionError) as problem:
            raise FileError(f"{name!r} of {where} must hold JSON, got {problem}; {_ANEW}") from None
    refuse_unless(isinstance(read, dict), f"{name!r} of {where} must hold an object in JSON")
    return dict(read)


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def _shown(shape: tuple[int | str, ...], sizes: Mapping[str, int]) -> str:
    plain = [str(each if isinstance(each, int) else sizes.get(each, each)) for each in shape]
    return f"({', '.join(plain)}{',' * (len(plain) == 1)})"
