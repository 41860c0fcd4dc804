"""Plain values of options taken as they are: typer loads pydantic to make a text of a text.

Whatever is not plainly an int, a float, a text or a path is left to typer, with its complaints.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
#: What a value is left to typer by.
_UNSURE = object()


def take_quickly(parameters: Iterable[Any], hints: Mapping[str, Any]) -> None:
    """Let parameters take plain values as they are; ``hints`` are their types by name."""
    for parameter in parameters:
        kind, usual = _plain_kind(hints.get(parameter.name)), parameter.process_value
        if not isinstance(usual, partial):  # this was done before
            parameter.process_value = partial(_process, parameter, kind, usual)


def _process(parameter: Any, kind: Any, usual: Callable[..., Any], ctx: Any, value: Any) -> Any:
    taken = _taken(kind, value, several=parameter.multiple or parameter.nargs == -1)
    if taken is _UNSURE:
        try:
            return usual(ctx, value)
        except typer.BadParameter as problem:
            what = {int: "a whole number", float: "a number"}.get(kind)
            if what is not None:
                problem.message = f"it must be {what}, got {value!r}"
            raise
    if parameter.required and taken in (None, ()) and not ctx.resilient_parsing:
        # Where this error lives depends on the version of typer.
        errors = importlib.import_module(typer.BadParameter.__module__)
        raise errors.MissingParameter(ctx=ctx, param=parameter)
    return taken if parameter.callback is None else parameter.callback(ctx, parameter, taken)


def _plain_kind(hint: Any) -> Any:
    """Return the type in ``Annotated[type | None, ...]``."""
    if get_origin(hint) is Annotated:
        return _plain_kind(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        inner = [one for one in get_args(hint) if one is not NoneType]
        return _plain_kind(inner[0]) if len(inner) == 1 else None
    return hint


def _taken(kind: Any, value: Any, *, several: bool) -> Any:
    """Return the value of an option as typer would make it, or that this is for typer to do."""
    if value is None:
        return () if several else None
    if several:
        texts = kind == list[str] and isinstance(value, list | tuple)
        return tuple(value) if texts and all(isinstance(one, str) for one in value) else _UNSURE
    if kind in (str, int, float) and type(value) is kind:
        return value
    if kind in (int, float) and isinstance(value, str):
        pattern = _WHOLE if kind is int else _REAL
        return kind(value) if pattern.fullmatch(value) else _UNSURE
    if kind is Path and isinstance(value, str | Path):
        return Path(value)  # what is there, and what may be done with it, verbs find out
    return _UNSURE
