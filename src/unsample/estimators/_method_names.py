"""The list of estimators, and the names that people type: ``mle``, ``bv(gamma=0.01)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType

from unsample._checks import check_choice
from unsample.errors import InputError, MethodError
from unsample.estimators._estimator import Estimator
from unsample.estimators.maximum_likelihood import MLE, WMLE, Beta
from unsample.estimators.plain import Naive, RecallMap, UnbiasedRank
from unsample.estimators.squares import BV, CLS, MES, MN

_ALL = (Naive, UnbiasedRank, CLS, BV, MN, MLE, WMLE, MES, Beta, RecallMap)
REGISTRY: Mapping[str, type[Estimator]] = MappingProxyType({kind.name: kind for kind in _ALL})
_METHOD = re.compile(r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*(?:\((?P<parameters>[^()]*)\)\s*)?")
_PARAMETER = re.compile(r"\s*(?P<key>[A-Za-z_]+)\s*=\s*(?P<value>[^=\s]+)\s*")


def parse(method: str | Estimator) -> Estimator:
    """Return the estimator of this name, with parameters in brackets where they are given.

    >>> parse("bv(gamma=0.01)").gamma
    0.01
    >>> str(parse("BV(gamma=0.1)"))
    'bv'
    >>> str(parse("bv(prior=mle, gamma=0.02)"))
    'bv(gamma=0.02, prior=mle)'
    """
    if isinstance(method, Estimator):
        return method
    name, given = read_method(method, REGISTRY)
    parameters = _parameters(given, REGISTRY[name])
    try:
        return REGISTRY[name](**parameters)
    except InputError as problem:
        problem.args = (f"{name}: {problem}",)
        raise


def read_method(method: object, known: Iterable[str]) -> tuple[str, str]:
    """Return the name of a method, and its parameters as they are written in the brackets.

    >>> read_method("BV(gamma=0.01)", ["mle", "bv"])
    ('bv', 'gamma=0.01')
    """
    match = _METHOD.fullmatch(method) if isinstance(method, str) else None
    if match is None:
        raise MethodError(
            f"method must be a name such as mle or bv(gamma=0.01), got {method!r}; "
            f"known: {', '.join(known)}"
        )
    name = check_choice("method", match["name"].casefold(), list(known), error=MethodError)
    return name, match["parameters"] or ""


def _parameters(text: str, estimator: type[Estimator]) -> dict[str, float | int | str]:
    """Return the parameters of an estimator that a text such as ``gamma=0.01`` names.

    >>> _parameters("prior=mle, gamma=0.02", BV)
    {'prior': 'mle', 'gamma': 0.02}
    """
    known = {item.name: item for item in fields(estimator)}  # type: ignore[arg-type]
    result: dict[str, float | int | str] = {}
    for part in filter(str.strip, text.split(",")):
        match = _PARAMETER.fullmatch(part)
        if match is None or match["key"] not in known:
            takes = ", ".join(known) or "none"
            raise MethodError(
                f"parameters of {estimator.name} must be written key=value with keys among: "
                f"{takes}; got {part.strip()!r}"
            )
        result[match["key"]] = _value(match["value"])
    return result


def _value(text: str) -> float | int | str:
    """Return a number where the text is one, and otherwise the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
