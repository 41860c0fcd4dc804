"""`exact`: metrics from ranks in the full catalogue, computed per user and then averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, as_integer_array, at_position, check_unmasked
from unsample._threads import one_thread
from unsample.bounds import MeanError
from unsample.counts import WHOLE, RankCounts, Targets, number_users
from unsample.designs import UserValues
from unsample.errors import DesignError, InputError, RankError
from unsample.metrics import DEFAULT_METRICS, DEFAULT_OF_ONE_TARGET, Metric
from unsample.questions.estimate.diagnostics import beyond_items
from unsample.questions.estimate.inputs import refuse_run
from unsample.questions.estimate.result import Estimate, Estimates
from unsample.report import warn_of
from unsample.sampling import RankDistribution, RankGrid
from unsample.tables import is_table, read_full_ranks

#: The name of the method in results, for values that did not have to be estimated.
NAME = "exact"
#: Ranks with a bin of their own in the distribution of exact ranks; later bins are as usual.
_MOST_SINGLE_RANKS = 20_000


def exact(
    full_ranks: Any,
    *,
    items: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    users: npt.ArrayLike | None = None,
    relevance: npt.ArrayLike | None = None,
    filtered: bool = False,
) -> Estimates:
    """Return metrics from ranks in the full catalogue, in the same kind of result as `estimate`.

    The values are exact for these users. The intervals say how much they would change with other
    users like these.

    Parameters
    ----------
    full_ranks
        The rank of each relevant item among all candidates of its user; 1 is the best. Or a table,
        as in `unsample.estimate`, with a column ``rank``, and with columns ``user``, ``items`` or
        ``relevance`` if these differ by row.
    items
        The number of candidates, the relevant ones included: one number, or one for each rank.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`; by default Recall@10, NDCG@10
        and Recall@50, or AP@10 if ``users`` are given.
    users
        The user of each rank, if users have several relevant items. Metrics are means over users.
    relevance
        How relevant each item is, for NDCG with grades; items of relevance 0 are not relevant.
    filtered
        False: the user's relevant items compete with each other, as in a list of recommendations.
        True: the others were left out when an item was ranked, as in knowledge graphs; metrics are
        then means over relevant items.

    Returns
    -------
    Estimates
        The metrics; their method is ``"exact"``.

    Raises
    ------
    DesignError
        If ``items`` is missing.
    RankError
        If a rank is no whole number from 1 to ``items``, or a user has a rank twice.
    InputError
        If another argument is wrong; the message names it.

    >>> ranks = [1, 3, 20]
    >>> round(exact(ranks, items=100, metrics="HR@10")["HR@10"].value, 4)
    0.6667
    >>> result = exact(ranks, items=100, users=["a", "a", "b"], metrics="Recall@10")
    >>> result["Recall@10"].value                                 # the mean of 1 and 0
    0.5
    """
    if is_table(full_ranks):
        if users is not None or relevance is not None:
            raise InputError("users and relevance must be left out with a table; give it columns")
        table = read_full_ranks(full_ranks, items=items)
        full_ranks = table.ranks
        items = table.items
        users = table.users
        relevance = table.relevance
    refuse_run(full_ranks)
    if items is None:
        raise DesignError("items must be given with ranks, got None; it counts all candidates")
    usual = DEFAULT_OF_ONE_TARGET if users is None else DEFAULT_METRICS
    wanted = _metrics.parse_all(usual if metrics is None else metrics)
    ranks = as_integer_array("ranks", full_ranks, hint=WHOLE).astype(np.int64)
    grades = None
    if relevance is not None:
        grades = as_grades(relevance, len(ranks), metrics=wanted)
    if grades is not None and not (grades > 0).all():
        kept = grades > 0
        if not kept.any():
            raise InputError("relevance must be above 0 for at least one rank, got none")
        ranks = ranks[kept]
        grades = grades[kept]
        users = np.asarray(users)[kept] if np.ndim(users) else users  # type: ignore[arg-type]
        items = np.asarray(items)[kept] if np.ndim(items) else items
    targets = Targets(
        ranks,
        items,
        sampled=np.asarray(items) - 1,
        users=users,
        replacement=False,
        filtered=filtered,
    )
    try:
        counts = targets.counts
    except RankError as problem:
        text, _, hint = str(problem).replace("sampled + 1", "items").partition("; these may be")
        raise RankError(f"{text}; check items" if hint else text) from problem
    if counts.several:
        _refuse_equal_ranks(targets)
    result = exact_targets(targets, wanted, relevance=grades)
    warn_of(result.notes)
    return result


@one_thread()
def exact_targets(
    targets: Targets, metrics: tuple[Metric, ...], *, relevance: FloatArray | None
) -> Estimates:
    """Return metrics from full ranks, which must be known as far as the metrics need them."""
    users = UserValues.of(targets, metrics, relevance=relevance)
    counts = targets.counts
    entries = []
    for index, (metric, mean) in enumerate(zip(metrics, users.means, strict=True)):
        error = MeanError.of(users.totals[:, index], users.weights, metric=metric)
        entries.append(
            Estimate.of_known(metric, NAME, value=float(mean), error=error, counts=counts)
        )
    return Estimates(
        tuple(entries),
        counts,
        distributions={NAME: _as_distribution(counts)},
        filtered=targets.filtered,
        notes=tuple(beyond_items(metrics, counts.catalogues[1])),
    )


def _as_distribution(counts: RankCounts) -> RankDistribution:
    """Return the distribution of the ranks, in which each user has the weight 1."""
    weight = counts.weight / counts.relevant
    grid = RankGrid.fine(
        counts.largest_catalogue, cutoffs=np.unique(counts.low)[:_MOST_SINGLE_RANKS]
    )
    mass = np.bincount(grid.locate(counts.low), weight, minlength=len(grid))
    return RankDistribution(grid, mass / mass.sum())


def as_grades(relevance: npt.ArrayLike, size: int, *, metrics: Iterable[Metric]) -> FloatArray:
    """Return the relevance of each of ``size`` targets; refuse grades that metrics cannot weigh."""
    check_unmasked("relevance", relevance)
    grades = np.asarray(relevance, dtype=np.float64)
    if grades.shape != (size,):
        raise InputError(
            f"relevance must hold one number for each of the {size} ranks, got shape {grades.shape}"
        )
    if not (np.isfinite(grades).all() and (grades >= 0).all()):
        bad = int(np.argmax(~(np.isfinite(grades) & (grades >= 0))))
        raise InputError(
            f"relevance must be finite and not negative, got {grades[bad]} {at_position(bad, size)}"
        )
    for metric in metrics:
        largest = metric.family.largest_grade
        if metric.family.gain is not None and (grades > largest).any():
            bad = int(np.argmax(grades > largest))
            raise InputError(
                f"relevance must be at most {largest:g} for {metric}, got {grades[bad]} "
                f"{at_position(bad, size)}: its gain would be too large to add up; use grades such "
                "as 0 to 4"
            )
    return grades


def _refuse_equal_ranks(targets: Targets) -> None:
    """Refuse a user with two items at the same rank, which no list has."""
    ranks = np.asarray(targets.ranks)
    user: IntArray = number_users(targets.users, len(ranks))  # type: ignore[arg-type]
    order = np.lexsort([ranks, user])
    same_as_next = (np.diff(user[order]) == 0) & (np.diff(ranks[order]) == 0)
    if same_as_next.any():
        target = order[int(np.argmax(same_as_next))]
        raise RankError(
            f"ranks of one user must differ, got rank {ranks[target]} twice for user "
            f"{np.asarray(targets.users)[target]}; if other relevant items were left out when an "
            "item was ranked, pass filtered=True"
        )
