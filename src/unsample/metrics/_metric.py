"""`Metric`: a weight for a rank, and a share for a target in its user's metric."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_integer
from unsample.errors import MetricError

_FAMILY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Kernel(Protocol):
    """The weight w(R) of a rank."""

    def __call__(self, ranks: FloatArray, items: float, k: float) -> FloatArray:
        """Return the weight of each rank; ``k`` is the number of items where there is no K."""


class Share(Protocol):
    """The share of a target in its user's metric."""

    def __call__(self, relevant: IntArray, position: IntArray, k: float) -> FloatArray:
        """Return the share of each target.

        ``relevant`` is the user's number of relevant items. ``position`` is the target's position
        among them: 1 is the best, 0 is unknown.
        """


class Jointly(Protocol):
    """A metric that needs all ranks of a user together."""

    def __call__(
        self,
        ranks: FloatArray,
        position: IntArray,
        relevant: IntArray,
        sizes: IntArray,
        k: float,
    ) -> FloatArray:
        """Return the number of each target; the user's metric is their mean.

        ``position`` and ``relevant`` are as in `Share`, and ``sizes`` are sizes of catalogues.
        """


def ones(ranks: FloatArray, items: float, k: float) -> FloatArray:
    """Return the same weight for all ranks."""
    return np.ones_like(ranks)


def _equal_share(relevant: IntArray, position: IntArray, k: float) -> FloatArray:
    """Return the same share for all targets of a user."""
    return np.asarray(1.0 / relevant)


def first_only(relevant: IntArray, position: IntArray, k: float) -> FloatArray:
    """Return the whole metric as the share of a user's best target, and none for others."""
    return np.asarray(position == 1, dtype=np.float64)


@dataclass(frozen=True)
class MetricFamily:
    """A metric before its K is chosen: ``NDCG @ 10`` or ``NDCG()`` makes a `Metric`."""

    name: str
    kernel: Kernel = field(repr=False, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
    #: Whether w(R) depends on the number of items even with a K (AUC does).
    uses_items: bool = field(default=False, repr=False, compare=False)
    share: Share = field(default=_equal_share, repr=False, compare=False)
    #: Whether the share depends on the position of a target among the user's targets, so that the
    #: ranks of one user must be known together.
    uses_positions: bool = field(default=False, repr=False, compare=False)
    #: The family that is the same number where users have one relevant item; by default itself.
    single: str = field(default="", repr=False, compare=False)
    #: The gain of a graded relevance, for metrics with grades.
    gain: Callable[[FloatArray], FloatArray] | None = field(default=None, repr=False, compare=False)
    #: The largest grade whose gain is a number that many others can be added to.
    largest_grade: float = field(default=1e100, repr=False, compare=False)
    #: The metric of a user with several relevant items, if it is not a sum of shares.
    jointly: Jointly | None = field(default=None, repr=False, compare=False)
    #: Whether it is over all items, so that there is no K.
    whole: bool = field(default=False, repr=False, compare=False)
    #: Whether it may be any number, as ranks may.
    unlimited: bool = field(default=False, repr=False, compare=False)
    #: Whether a user's metric lies between 0 and 1; not ranks, nor custom metrics.
    bounded: bool = field(default=True, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name and the aliases."""
        return (self.name, *self.aliases)

    @property
    def name_of_single(self) -> str:
        """Return the family that is the same number where users have one relevant item."""
        return self.single or self.name

    @property
    def weighs_alike(self) -> bool:
        """Return whether all relevant items of a user have the same share in the metric, 1/m."""
        return self.share is _equal_share

    @property
    def counts_hits(self) -> bool:
        """Return whether the metric of one target is 1 up to K and 0 beyond."""
        return self.kernel is ones

    def __call__(self, k: int | None = None) -> Metric:
        """Return the metric at K, or over all items."""
        return Metric(self, k)

    def __matmul__(self, k: int) -> Metric:
        return Metric(self, k)


@dataclass(frozen=True)
class Metric:
    """A metric at a cutoff, under one of its family's names."""

    family: MetricFamily
    k: int | None = None
    #: The name of the family that was asked for; by default its own.
    label: str = ""

    def __post_init__(self) -> None:
        label = self.label or self.family.name
        if label not in self.family.names:
            raise MetricError(f"label must be one of {', '.join(self.family.names)}, got {label!r}")
        object.__setattr__(self, "label", label)
        if self.k is None:
            return
        if self.family.whole:
            raise MetricError(
                f"K of {label} must be left out, got {self.k!r}: it looks at all items"
            )
        hint = f"write {label}@10, or {label} for all items"
        k = check_integer(f"K of {label}", self.k, minimum=1, hint=hint, error=MetricError)
        object.__setattr__(self, "k", k)

    @property
    def name(self) -> str:
        """Return the name that parses back to this metric."""
        return self.label if self.k is None else f"{self.label}@{self.k}"

    def __reduce__(self) -> tuple[Callable[[str], Metric], tuple[str]]:
        """Pickle the name: a family is code, and stays where it is."""
        from unsample.metrics._names import parse

        return parse, (self.name,)

    def same_as(self, other: Metric, *, several: bool = False) -> bool:
        """Return whether the other metric is the same number, whatever it is called.

        Some metrics differ only where users have ``several`` relevant items.
        """
        if self.k != other.k:
            return False
        if several:
            return self.family == other.family
        return self.family.name_of_single == other.family.name_of_single

    def cutoff(self, items: int) -> int:
        """Return the last rank that counts in a catalogue of this size.

        >>> from unsample.metrics import AUC, Recall
        >>> (Recall @ 10).cutoff(items=5), AUC().cutoff(items=500)
        (5, 500)
        """
        return items if self.k is None else min(self.k, items)

    def weights(self, ranks: npt.ArrayLike, items: int) -> FloatArray:
        """Return w(R) for global ranks, zero beyond K: the metric of a user with one target."""
        values = np.asarray(ranks, dtype=np.float64)
        inside = values <= self.cutoff(items)
        return np.where(inside, self.uncut(values, items), 0.0)

    def uncut(self, ranks: FloatArray, items: int) -> FloatArray:
        """Return the weight without the cutoff, as smooth in R as the kernel is."""
        k = float(items if self.k is None else self.k)
        values = np.asarray(self.family.kernel(ranks, float(items), k=k), dtype=np.float64)
        return np.broadcast_to(values, ranks.shape)

    def shares(self, relevant: IntArray, position: IntArray) -> FloatArray:
        """Return the share of each target in its user's metric, beside w(R).

        Of a user with two relevant items each counts half in Recall, and only the best in HR.

        >>> from unsample.metrics import HR, Recall
        >>> two, position = np.array([2, 2]), np.array([1, 2])
        >>> (Recall @ 10).shares(two, position).tolist(), (HR @ 10).shares(two, position).tolist()
        ([0.5, 0.5], [1.0, 0.0])
        """
        k = math.inf if self.k is None else float(self.k)
        values = np.asarray(self.family.share(relevant, position, k=k), dtype=np.float64)
        return np.broadcast_to(values, relevant.shape)

    def of_users(
        self,
        ranks: npt.ArrayLike,
        users: IntArray,
        items: npt.ArrayLike,
        relevance: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """Return the metric of each user, from the ranks of all the user's targets.

        Parameters
        ----------
        ranks
            The rank of each target among all items.
        users
            The user of each target, as numbers from 0.
        items
            The size of the catalogue: one number, or one for each target.
        relevance
            The grade of each target, which NDCG weighs.

        User 0 has relevant items at the ranks 1 and 3: (1 + 1/2) / (1 + 1/log2(3)).

        >>> from unsample.metrics import NDCG
        >>> (NDCG @ 10).of_users([1, 3, 2], np.array([0, 0, 1]), items=100).round(4).tolist()
        [0.9197, 0.6309]
        """
        rank = np.asarray(ranks, dtype=np.float64)
        sizes = np.broadcast_to(np.asarray(items, dtype=np.int64), rank.shape)
        relevant = np.bincount(users)[users]
        position = positions_by_user(users, rank)
        if self.family.jointly is not None:
            k = math.inf if self.k is None else float(self.k)
            numbers = self.family.jointly(
                rank, position=position, relevant=relevant, sizes=sizes, k=k
            )
            gains = numbers / relevant
        else:
            shares = self.parts(users, position, relevance=relevance)
            gains = shares * self._weights_by_size(rank, sizes)
        return np.asarray(np.bincount(users, gains))

    def parts(
        self, users: IntArray, position: IntArray, relevance: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Return the share of each target in its user's metric, beside w(R), grades included.

        ``users`` and ``relevance`` are as in `of_users`, and ``position`` is the position of a
        target among its user's targets.
        """
        if relevance is None or self.family.gain is None:
            return self.shares(np.bincount(users)[users], position)
        gain = self.family.gain(np.asarray(relevance, dtype=np.float64))
        return np.asarray(gain / self._ideal(users, gain)[users])

    def _weights_by_size(self, ranks: FloatArray, sizes: IntArray) -> FloatArray:
        """Return w(R) where catalogues differ."""
        if self.k is not None and not self.family.uses_items:
            return self.weights(ranks, int(sizes.max(initial=1)))
        weights = np.zeros(len(ranks))
        for size in np.unique(sizes):
            chosen = sizes == size
            weights[chosen] = self.weights(ranks[chosen], int(size))
        return weights

    def _ideal(self, users: IntArray, gain: FloatArray) -> FloatArray:
        """Return the greatest DCG that each user's targets could have.

        Grades of 1 and 3 give at most 3 + 1/log2(3).

        >>> from unsample.metrics import NDCG
        >>> (NDCG @ 10)._ideal(np.array([0, 0]), np.array([1.0, 3.0])).round(4).tolist()
        [3.6309]
        """
        position = positions_by_user(users, -gain)
        inside = position <= (np.inf if self.k is None else self.k)
        discount = self.family.kernel(
            position.astype(np.float64), 0.0, k=float(self.k or len(position))
        )
        discounted = np.where(inside, gain * discount, 0.0)
        return np.asarray(np.bincount(users, discounted), dtype=np.float64)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


def positions_by_user(users: IntArray, values: FloatArray) -> IntArray:
    """Return the position of each value among the values of its user: 1 is the smallest.

    >>> positions_by_user(np.array([0, 1, 0]), np.array([30.0, 4.0, 2.0])).tolist()
    [2, 1, 1]
    """
    order = np.lexsort([values, users])
    sorted_users = users[order]
    first = np.flatnonzero(np.diff(sorted_users, prepend=-1))
    position = np.empty(len(users), dtype=np.int64)
    starts = np.repeat(first, np.diff(np.append(first, len(users))))
    position[order] = np.arange(len(users)) - starts + 1
    return position


def custom(name: str, weight: Callable[[FloatArray], FloatArray]) -> MetricFamily:
    """Return a family with your own weight function of the rank.

    Parameters
    ----------
    name
        What the metric is called.
    weight
        Takes a float array of ranks (fractional ones too: bins are averaged at them) and returns
        finite weights of the same shape. It should rise or fall smoothly.

    Returns
    -------
    MetricFamily
        ``family @ 10`` is the metric with the cutoff 10.

    Raises
    ------
    MetricError
        If the name is no name; or, when the metric is computed, if weights are not finite.

    >>> decayed = custom("Decayed", lambda rank: 0.9 ** (rank - 1))
    >>> (decayed @ 5).weights([1, 2, 9], items=100).round(2).tolist()
    [1.0, 0.9, 0.0]
    """
    if not isinstance(name, str) or not _FAMILY_NAME.fullmatch(name):
        raise MetricError(
            f"name must be letters, digits, - and _, starting with a letter, got {name!r}"
        )

    def kernel(ranks: FloatArray, items: float, k: float) -> FloatArray:
        values = np.asarray(weight(ranks), dtype=np.float64)
        if values.shape not in ((), ranks.shape) or not np.isfinite(values).all():
            raise MetricError(
                f"weight of {name} must return finite values of shape {ranks.shape}, got shape "
                f"{values.shape} with {int((~np.isfinite(values)).sum())} values not finite"
            )
        return values

    return MetricFamily(name, kernel, bounded=False)
