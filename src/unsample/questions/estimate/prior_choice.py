"""Which prior, protocol and methods an argument means."""

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
    """Return the prior for an object, a file, the name of the shipped one, or none."""
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
    """Return the methods by name; `auto` is the posterior's value, or without a prior `mle`."""
    found: dict[str, Estimator | None] = {}
    for each in [method] if isinstance(method, str | Estimator) else method:
        name, given = ("", "")
        if not isinstance(each, Estimator):
            name, given = _estimators.read_method(each, (AUTO, *_estimators.REGISTRY))
        if name != AUTO:
            estimator = _estimators.parse(each)
            found[str(estimator)] = estimator
        elif given:
            raise MethodError(
                f"method auto must have no parameters, got {given!r}; use protocol= or prior="
            )
        else:
            found |= {AUTO: None} if prior is not None else {"mle": MLE()}
    if not found:
        raise MethodError("method must name at least one estimator, got none; try auto")
    return found
