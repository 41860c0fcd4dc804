"""What is given for each model, brought into one form and one order of users."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, as_integer_array
from unsample.answers.comparison._results import listed_briefly
from unsample.answers.estimation import Estimates
from unsample.errors import DesignError, InputError
from unsample.evidence import RankCounts, Targets
from unsample.metrics import Metric

__all__ = [
    "Model",
    "Outcome",
    "check_same_catalogue",
    "evaluated",
    "load_model",
    "match_users",
    "ranks_of",
    "user_index",
    "users_of",
]


@dataclass(frozen=True, eq=False)
class Model:
    """What is known of one model: counts for its estimates, ranks for pairing where they exist."""

    name: str
    counts: RankCounts
    ranks: IntArray | None = None
    sampled: IntArray | None = None
    weights: FloatArray | None = None
    users: npt.NDArray[Any] | None = None
    #: Made already, where the model comes from an evaluation.
    estimates: Estimates | None = None

    @property
    def pairable(self) -> bool:
        """Return whether each target has a score of its own, which staged samples have not."""
        staged = self.estimates is not None and self.estimates.certainty is not None
        return self.ranks is not None and not (
            staged and self.estimates.certainty.counts.stop is not None  # type: ignore[union-attr]
        )


class Outcome(Protocol):
    """What `unsample.evaluate` returns, as far as comparisons look at it."""

    @property
    def estimates(self) -> Estimates:
        """Return the metrics that were evaluated."""

    @property
    def ranks(self) -> IntArray:
        """Return the rank of each target."""

    @property
    def sampled(self) -> IntArray:
        """Return among how many items, the target not counted."""

    @property
    def users(self) -> IntArray:
        """Return whose target it is."""

    @property
    def weights(self) -> FloatArray | None:
        """Return how much each target counts, where they differ."""


def load_model(
    name: str,
    given: npt.ArrayLike | RankCounts | Targets | Outcome,
    items: npt.ArrayLike | None,
    sampled: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    users: npt.ArrayLike | None,
    replacement: bool,
) -> Model:
    if isinstance(given, RankCounts):
        return Model(name, given)
    if hasattr(given, "estimates") and hasattr(given, "ranks"):
        return _from_evaluation(name, cast("Outcome", given))
    if not isinstance(given, Targets):
        if items is None or sampled is None:
            raise DesignError("items and sampled must be given with ranks, got None")
        array = as_integer_array(f"ranks of {name}", given).astype(np.int64)
        given = Targets(array, items, sampled, weights, users, replacement)
    size = len(given.ranks)
    counts = given.counts
    return Model(
        name,
        counts,
        np.asarray(given.ranks, dtype=np.int64),
        np.broadcast_to(np.asarray(given.sampled, dtype=np.int64), (size,)),
        np.ones(size) if given.weights is None else np.asarray(given.weights, dtype=np.float64),
        None if given.users is None else np.asarray(given.users),
    )


def _from_evaluation(name: str, outcome: Outcome) -> Model:
    return Model(
        name,
        outcome.estimates.counts,
        outcome.ranks,
        outcome.sampled,
        np.ones(len(outcome.ranks)) if outcome.weights is None else outcome.weights,
        outcome.users,
        outcome.estimates,
    )


def evaluated(model: Model, metrics: tuple[Metric, ...]) -> Estimates | None:
    """Return the estimates a model came with, if they hold what is asked for."""
    if model.estimates is None:
        return None
    missing = [
        metric.name
        for metric in metrics
        if not any(metric.same_as(held) for held in model.estimates.metrics)
    ]
    if missing:
        held = ", ".join(metric.name for metric in model.estimates.metrics)
        raise InputError(
            f"metrics must be ones that {model.name} was evaluated for ({held}), got "
            f"{', '.join(missing)}; evaluate it for these too"
        )
    varies = model.estimates.certainty is not None and np.ptp(ranks_of(model)[0]) > 0
    if varies and any(math.isnan(entry.standard_error) for entry in model.estimates.entries):
        raise InputError(
            f"{model.name} must have been evaluated with resamples > 0 to be compared, got an "
            "evaluation without standard errors"
        )
    return model.estimates


def users_of(
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None, name: str
) -> npt.ArrayLike | None:
    if not isinstance(users, Mapping):
        return users
    if name not in users:
        raise InputError(f"users must hold the users of every model, got none for {name}")
    return users[name]


def check_same_catalogue(models: list[Model]) -> None:
    sizes = {model.name: model.counts.largest_catalogue for model in models}
    if len(set(sizes.values())) > 1:
        listed = listed_briefly([f"{name} {size:,}" for name, size in sizes.items()])
        raise DesignError(
            f"models must be ranked in one catalogue to be compared, got {listed}; metrics@K of "
            "different catalogues mean different things"
        )


def match_users(models: list[Model], paired: bool | None) -> list[Model] | None:
    """Return the models with their targets in one order, or None where users do not match."""
    problem = _why_unmatched(models) if paired is not False else "not asked for"
    if problem:
        if paired:
            raise InputError(f"paired needs the same users for every model, got {problem}")
        return None
    if models[0].users is None:
        return models
    first = _sorted_by_user(models[0])
    # All have the same users: one array of them is enough for any number of models.
    rest = (replace(_sorted_by_user(model), users=first.users) for model in models[1:])
    return [first, *rest]


def _why_unmatched(models: list[Model]) -> str:
    for model in models:
        if model.ranks is None:
            return f"RankCounts for {model.name}, which do not know users"
        if not model.pairable:
            return f"an adaptive evaluation of {model.name}, whose sample sizes differ by outcome"
    first = models[0]
    for model in models[1:]:
        if len(model.ranks) != len(first.ranks):  # type: ignore[arg-type]
            return (
                f"{len(first.ranks):,} targets of {first.name} and "  # type: ignore[arg-type]
                f"{len(model.ranks):,} of {model.name}"  # type: ignore[arg-type]
            )
        if (model.users is None) != (first.users is None):
            return f"users for only one of {first.name} and {model.name}"
        if model.users is not None and first.users is not None:
            missing = np.setdiff1d(first.users, model.users)
            if len(missing) or not np.array_equal(np.sort(model.users), np.sort(first.users)):
                example = f", such as {missing[0]}" if len(missing) else ""
                return f"users of {first.name} that {model.name} does not have{example}"
    return ""


def _sorted_by_user(model: Model) -> Model:
    order = np.argsort(model.users, kind="stable")  # type: ignore[arg-type]
    return replace(
        model,
        ranks=model.ranks[order],  # type: ignore[index]
        sampled=model.sampled[order],  # type: ignore[index]
        weights=model.weights[order],  # type: ignore[index]
        users=model.users[order],  # type: ignore[index]
    )


def ranks_of(model: Model) -> tuple[IntArray, IntArray]:
    assert model.ranks is not None
    assert model.sampled is not None
    return model.ranks, model.sampled


def user_index(model: Model) -> IntArray | None:
    """Return a number for the user of each target, or None where each has a user of its own."""
    if model.users is None:
        return None
    _, where = np.unique(model.users, return_inverse=True)
    return np.asarray(where.reshape(-1), dtype=np.int64)
