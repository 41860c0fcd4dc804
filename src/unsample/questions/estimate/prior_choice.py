"""Read the arguments ``prior``, ``protocol``, ``seen`` and ``method``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample._checks import check_choice
from unsample.errors import InputError, MethodError
from unsample.estimators import MLE, Estimator
from unsample.posterior import PROTOCOLS, Prior, shipped
from unsample.questions.estimate.result import AUTO
from unsample.tables import is_table, read_seen

#: The prior that ships with the package.
SHIPPED = "shipped"
#: The name of no prior.
NONE = "none"
#: Protocols in which a user's own items may be candidates that push a target down.
WITH_OWN_ITEMS = ("all", None)


def as_prior(prior: Prior | str | os.PathLike[str] | None) -> Prior | None:
    """Return the prior that an argument means: an object, a file, the shipped one, or none.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if isinstance(prior, Prior):
        return prior
    if prior is None or prior == NONE:
        return None
    if prior == SHIPPED:
        return shipped()
    if isinstance(prior, str | os.PathLike):
        return Prior.load(prior)
    raise InputError(
        f"prior must be a Prior, its file, {SHIPPED!r}, or None, got {prior!r}; learn one with "
        "unsample.Prior.learn"
    )


def knowing(
    prior: Prior | None,
    seen: float | npt.ArrayLike | None,
    *,
    protocol: str | None,
    source: object = None,
) -> Prior | None:
    """Return the prior of an evaluation whose users have seen so many of the candidates.

    ``seen`` may name a column of the table ``source``.

    >>> knowing(shipped(), 20, protocol="all").seen
    (6, 7, 8, 10, 12, 14, 18, 23, 32, 70)

    Raises
    ------
    InputError
        If ``seen`` holds no numbers of items, or users' own items were no candidates.
    """
    if seen is None:
        return prior
    if protocol not in WITH_OWN_ITEMS:
        raise InputError(
            f"seen must be left out with the protocol {protocol!r}; it tells how many of a user's "
            "own items were among the candidates, which is asked with protocol 'all'"
        )
    if isinstance(seen, str):
        if not is_table(source) or isinstance(source, Mapping):
            raise InputError(
                "seen must be a number, or one for each user, where there is no table, got "
                f"{seen!r}"
            )
        seen = read_seen(source, seen)
    numbers = np.asarray(seen)
    numeric = numbers.dtype.kind in "iuf" and numbers.ndim <= 1 and numbers.size > 0
    if not numeric or not np.isfinite(numbers).all() or numbers.min() < 0:
        raise InputError(
            "seen must be how many of a user's own items were among the candidates, a mean or one "
            f"number for each user, got {str(seen)[:60]}"
        )
    if prior is None:
        return None
    return prior.knowing(float(numbers) if numbers.ndim == 0 else numbers.tolist())


def check_protocol(protocol: str | None) -> str | None:
    """Return the protocol of an evaluation, or None if it is not stated."""
    return None if protocol is None else check_choice("protocol", protocol, PROTOCOLS)


def as_methods(
    method: str | Estimator | Iterable[str | Estimator], prior: Prior | None
) -> dict[str, Estimator | None]:
    """Return the methods by name; None is ``auto``, which without a prior is ``mle``.

    >>> as_methods(["bv(gamma=0.5)", "auto"], prior=None)
    {'bv(gamma=0.5)': BV(gamma=0.5, prior='uniform'), 'mle': MLE(iterations=100, tol=0.0001)}

    Raises
    ------
    MethodError
        If there is no such method or parameter, or no method at all.
    """
    methods: dict[str, Estimator | None] = {}
    for asked in [method] if isinstance(method, str | Estimator) else method:
        if isinstance(asked, Estimator):
            methods[str(asked)] = asked
            continue
        name, parameters = _estimators.read_method(asked, (AUTO, *_estimators.REGISTRY))
        if name != AUTO:
            estimator = _estimators.parse(asked)
            methods[str(estimator)] = estimator
        elif parameters:
            raise MethodError(
                f"method auto must have no parameters, got {parameters!r}; use protocol= or prior="
            )
        elif prior is None:
            methods["mle"] = MLE()
        else:
            methods[AUTO] = None
    if not methods:
        raise MethodError("method must name at least one estimator, got none; try auto")
    return methods
