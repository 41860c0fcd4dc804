"""Which prior, kind and methods an argument means."""

from __future__ import annotations

import os
from collections.abc import Iterable

from unsample import estimators as _estimators
from unsample._checks import check_choice
from unsample.answers._estimates import AUTO
from unsample.errors import InputError, MethodError
from unsample.estimators import MLE, Estimator
from unsample.prior import Prior, shipped

#: The prior that ships with the package.
SHIPPED = "shipped"
#: Kinds of evaluations, by the names that users give.
PRIOR_KINDS = ("recommendation", "repeats", "graph")


def as_prior(prior: Prior | str | os.PathLike[str] | None) -> Prior | None:
    """Return the prior for an object, a file, the name of the shipped one, or None."""
    if prior is None or isinstance(prior, Prior):
        return prior
    if isinstance(prior, str | os.PathLike):
        return shipped() if prior == SHIPPED else Prior.load(prior)
    raise InputError(
        f"prior must be a Prior, its file, or None, got {type(prior).__name__}; learn one with "
        "unsample.Prior.learn"
    )


def prior_kind(kind: str | None, candidates: str | None) -> str | None:
    """Return the kind as a prior names it; None if the data are to decide it."""
    if kind is None:
        return None
    check_choice("kind", kind, PRIOR_KINDS)
    return candidates if kind == "recommendation" else kind


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
                f"method auto must have no parameters, got {given!r}; say kind= and prior= instead"
            )
        else:
            found |= {AUTO: None} if prior is not None else {"mle": MLE()}
    if not found:
        raise MethodError("method must name at least one estimator, got none; try auto")
    return found
