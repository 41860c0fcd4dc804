"""What an archive must hold: one description of each of its fields, checked when it is read.

Archives may come from anybody. A number out of its range would give another result, an endless
loop, or an error of Python's far from its cause. So every reader of an archive describes each of
its fields. `read_fields` refuses archives in which a field is missing, differs from its
description, or is not described.
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

#: Kind of a field -> the kinds of numpy's types that it may have, the type that it is read as, and
#: its name in messages.
_KINDS: dict[str, tuple[str, type, str]] = {
    "whole": ("iu", np.int64, "whole numbers"),
    "real": ("f", np.float64, "finite numbers"),
    "text": ("U", np.str_, "text"),
    "flag": ("b", np.bool_, "true or false"),
}
_ANEW = "the file is damaged or was changed; write it anew"


@dataclass(frozen=True)
class Field:
    """The description of an array in an archive: the kind of its values, its shape and its range.

    An axis of the shape has a number of values, or a name: axes of one name are equally long. The
    range includes its ends. These may be arrays, with one value for each value of the field.

    >>> Field("whole", ("rows",), low=1).problem(np.array([3, 0]), {})
    'hold whole numbers from 1 to inf, got 0'
    """

    kind: str = "whole"
    shape: tuple[int | str, ...] = ("rows",)
    low: Any = -np.inf
    high: Any = np.inf
    #: Whether a value may be NaN, where it is not known.
    missing: bool = False

    def problem(self, values: Any, sizes: dict[str, int]) -> str:
        """Return what is wrong with an array, or nothing.

        ``sizes`` has the lengths of named axes, and is given those that are new.
        """
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
        index = np.unravel_index(int(np.argmin(good)), shape)
        low = np.broadcast_to(self.low, shape)[index].item()
        high = np.broadcast_to(self.high, shape)[index].item()
        return f"hold {called} from {low:,.15g} to {high:,.15g}, got {values[index]}"


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
    types = {name: _KINDS[field.kind][1] for name, field in fields.items()}
    return {name: found[name].astype(type_) for name, type_ in types.items()}


def refuse_unless(good: object, text: str, error: type[InputError] = FileError) -> None:
    """Raise an error with the rule that an archive breaks, and what to do, unless it is good."""
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
    text = found[name]
    value: Any = None
    if text.dtype == np.uint8 and text.ndim == 1:
        try:
            value = json.loads(text.tobytes())
        except (ValueError, RecursionError) as problem:
            raise FileError(f"{name!r} of {where} must hold JSON, got {problem}; {_ANEW}") from None
    refuse_unless(isinstance(value, dict), f"{name!r} of {where} must hold an object in JSON")
    return dict(value)


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def _shown(shape: tuple[int | str, ...], sizes: Mapping[str, int]) -> str:
    """Return a shape as Python writes it, named axes by their length where it is known.

    >>> _shown(("rows", 2), {"rows": 7}), _shown(("rows",), {})
    ('(7, 2)', '(rows,)')
    """
    lengths = [str(axis if isinstance(axis, int) else sizes.get(axis, axis)) for axis in shape]
    comma = "," if len(lengths) == 1 else ""
    return f"({', '.join(lengths)}{comma})"
