"""Read the arguments ``prior``, ``protocol`` and ``method``."""

from __future__ import annotations

import os
from collections.abc import Iterable

from unsample import estimators as _estimators
from unsample._checks import check_choice
from unsample.errors import InputError, MethodError
from unsample.estimators import MLE, Estimator
from unsample.posterior import PROTOCOLS, Prior, shipped
from unsample.questions.estimate.result import AUTO

#: The prior that ships with the package.
SHIPPED = "shipped"
#: The name of no prior.
NONE = "none"


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


def check_protocol(protocol: str | None) -> str | None:
    """Return the protocol of an evaluation, or None if it is not stated."""
    return None if protocol is None else check_choice("protocol", protocol, PROTOCOLS)


def as_methods(
    method: str | Estimator | Iterable[str | Estimator], prior: Prior | None
) -> dict[str, Estimator | None]:
    """Return the methods by name; None is ``auto``, which without a prior is ``mle``.

    >>> as_methods(["bv(gamma=0.5)", "auto"], prior=None)
    {'bv(gamma=0.5)': BV(gamma=0.5, prior='uniform'), 'mle': MLE(iterations=100)}

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
