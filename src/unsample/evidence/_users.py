"""The user of each target: numbers of relevant items, and errors that count users.

Targets of one user are not independent. If a user has ten targets at the same rank, they tell no
more than one. If they have nothing in common, they tell as much as ten targets of different users.
The data show which it is, if it is known in which cells the targets of one user are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, as_index
from unsample.errors import FileError, InputError, RankError
from unsample.evidence._columns import as_column, in_parts, joined, read_columns, refuse_where
from unsample.metrics import places_of

if TYPE_CHECKING:
    from unsample.evidence._counts import RankCounts

_ARRAYS = ("user", "cell", "weight", "users")


@dataclass(frozen=True, eq=False)
class Whose:
    """Whose target lies in which cell, where users have several."""

    #: The number of each target's user, from 0; its cell; and its weight.
    user: IntArray
    cell: IntArray
    weight: FloatArray
    #: The weight of each user.
    users: FloatArray

    def moved(self, place: IntArray) -> Whose:
        """Return the same targets after each cell went to a new place."""
        return replace(self, cell=place[self.cell])

    def scaled(self, shares: FloatArray) -> Whose:
        """Return the targets with the weights of each cell multiplied by a share."""
        return replace(self, weight=self.weight * shares[self.cell])

    def squares(self, cells: int) -> FloatArray:
        """Return for each cell the sum of weights times that of all targets of the user.

        Their sum is that of the squared weights of users. It gives the effective number of targets
        if those of one user are taken as fully dependent.
        """
        of_user = np.bincount(as_index(self.user), self.weight)
        products = self.weight * of_user[self.user]
        return np.bincount(as_index(self.cell), products, minlength=cells).astype(np.float64)

    def variance(self, scores: FloatArray) -> float:
        """Return the variance of the mean over users of the sum of their targets' scores.

        ``scores`` are those of the cells. The variance is for newly drawn users.
        """
        products = self.weight * scores[self.cell]
        totals = np.bincount(as_index(self.user), products, minlength=len(self.users))
        deviations = deviations_of_mean(totals.astype(np.float64), self.users)
        count = len(self.users)
        return float(deviations @ deviations) * count / max(count - 1, 1)

    @classmethod
    def of_parts(cls, parts: Sequence[RankCounts]) -> Whose:
        """Return the targets of all parts, whose cells come one after the other.

        Where the users of a part are not known, each target has its own user.
        """
        found, first = [], 0
        for part in parts:
            places = np.arange(len(part))
            whose = part.whose or cls.alone(places, part.count, part.weight)
            found.append(whose.moved(places + first))
            first += len(part)
        starts = np.cumsum([0, *(len(part.users) for part in found[:-1])])
        user = [part.user + start for part, start in zip(found, starts, strict=True)]
        return cls(user=np.concatenate(user), **joined(found, ("cell", "weight", "users")))

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str, cells: int) -> Whose | None:
        """Take what `as_arrays` gave, checked; None where a file has none."""
        if "whose_user" not in fields:
            return None
        names = [f"whose_{name}" for name in _ARRAYS]
        columns = read_columns(fields, source, whole=names[:2], reals=names[2:])
        user, cell, weight, users = columns.values()
        inside = len(user) == len(cell) == len(weight) > 0 and len(users) > 0
        inside = inside and user.min() >= 0 and user.max() < len(users)
        inside = inside and cell.min() >= 0 and cell.max() < cells
        if not inside:
            raise FileError(
                f"{source} must say of each target whose it is, got numbers that do not"
            )
        return cls(user, cell, weight, users)

    @classmethod
    def alone(cls, cell: IntArray, count: IntArray, weight: FloatArray) -> Whose:
        """Return targets that each have their own user: ``count`` of them in each cell."""
        times = as_index(count)
        cells = np.repeat(cell, times)
        each = np.repeat(weight / np.maximum(count, 1), times)
        return cls(np.arange(len(cells)), cells, each, each)


def deviations_of_mean(totals: FloatArray, weights: FloatArray) -> FloatArray:
    """Return by how much each user moves the mean, ``totals.sum() / weights.sum()``."""
    total = weights.sum()
    return np.asarray((totals - totals.sum() / total * weights) / total)


@dataclass(frozen=True, eq=False)
class Named:
    """The users of targets, with each name kept once. As an array: the name of each user."""

    #: Where the user of each target stands among the names.
    place: npt.NDArray[np.integer[Any]]
    #: The names, sorted, as UTF-8: a quarter of the memory that arrays of text take.
    names: npt.NDArray[np.bytes_]

    def __len__(self) -> int:
        return len(self.place)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(decoded(self.names)[self.place], dtype=dtype)

    @cached_property
    def distinct(self) -> tuple[BoolArray, IntArray]:
        """Return which names occur, and the number of each target's user among these."""
        occurs = np.zeros(len(self.names), dtype=bool)
        occurs[self.place] = True
        number = np.cumsum(occurs) - 1
        return occurs, number[self.place]


def decoded(names: npt.NDArray[np.bytes_]) -> npt.NDArray[np.str_]:
    """Return names that were kept as UTF-8; half characters, which JSON may hold, stay so."""
    return np.char.decode(names, "utf-8", "surrogatepass")


def distinct_users(users: npt.ArrayLike) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the users, each once and sorted, and the place of each target's among them."""
    if isinstance(users, Named):
        occurs, number = users.distinct
        return decoded(users.names[occurs]), number
    found, number = np.unique(np.asarray(users), return_inverse=True)
    return found, number.reshape(-1)


def number_users(users: npt.ArrayLike, size: int) -> IntArray:
    """Return a number for the user of each of ``size`` ranks, from 0."""
    if isinstance(users, Named) and len(users) == size:
        return users.distinct[1]
    labels = np.asarray(users)
    if labels.shape != (size,):
        raise InputError(
            f"users must hold one user for each of the {size} ranks, got "
            f"{'shape ' + str(labels.shape) if labels.ndim != 1 else len(labels)}"
        )
    try:
        return distinct_users(labels)[1]
    except TypeError as problem:
        raise InputError(
            f"users must all be text or all be numbers, got others among them ({problem}); name "
            "each user"
        ) from problem


def relevant_and_place(
    user: IntArray,
    count: IntArray | None,
    ranks: IntArray,
    places: npt.ArrayLike | None,
    full: bool,
) -> tuple[IntArray, IntArray]:
    """Return how many targets the user of each target has, and its place among them, or 0.

    ``count`` is how many targets each row stands for, by default one. Places are given, or follow
    from ranks in the ``full`` catalogue.
    """
    # There may be very many targets: 32 bits are enough, and save memory.
    of_user = np.bincount(user, count)
    relevant: Any = np.rint(of_user).astype(np.int32 if count is None else np.int64)[user]
    if places is not None:
        return relevant, as_column("places", places, len(user))
    if full:
        return relevant, places_of(user, ranks.astype(np.float64))
    return relevant, (relevant == 1).astype(np.int8)


def weights_of_users(weight: FloatArray, user: IntArray, relevant: IntArray) -> FloatArray:
    """Return the weight of each user, which all targets of the user must share."""
    found = np.zeros(int(user.max()) + 1)
    found[user] = weight
    differs = any((found[user[rows]] != weight[rows]).any() for rows in in_parts(len(user)))
    # Weights with which a mean over targets would count each user once.
    spread = bool((relevant > 1).any()) and all(
        np.allclose(weight[rows] * relevant[rows], 1.0, rtol=1e-9) for rows in in_parts(len(user))
    )
    if differs or spread:
        got = "1 over the number of the user's targets" if spread else "some that differ"
        raise InputError(
            f"weights must say how much a user counts, the same for all the user's targets, got "
            f"{got}; metrics are per user, so leave weights out where all users count the same"
        )
    return found


def rank_in_lists(
    better: IntArray,
    user: IntArray,
    score: FloatArray | IntArray,
    *,
    items: IntArray,
    sampled: IntArray,
    replacement: bool,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return ranks, sample sizes and places of targets in a list with all those of their user.

    A list holds all relevant items of a user and ``sampled`` others that are not relevant. Of
    these, ``better`` beat the target. Its ``score`` gives its order among the relevant items.
    ``items`` counts all candidates, including the relevant ones. Where all other items are in the
    list, ranks are those of the full list. Otherwise the list is turned into a uniform sample of
    all items but the target: sampled items are replaced by as many relevant items as such a sample
    would hold by chance.
    """
    # Ties with sampled items are already broken: scores decide the rest of the order.
    order = np.lexsort([-score, better, user])
    level = np.empty(len(order))
    level[order] = np.arange(len(order))
    place = places_of(user, level)
    relevant = np.bincount(user)[user]
    rivals = items - relevant
    refuse_where(rivals < 1, "items must exceed the relevant items of a user", items, RankError)
    full = (sampled == rivals) & (not replacement)
    several = (relevant > 1) & ~full
    if replacement:
        others = rng.binomial(sampled, (relevant - 1) / np.maximum(items - 1, 1))
        share = np.divide(place - 1, relevant - 1, out=np.zeros(len(place)), where=relevant > 1)
        above = rng.binomial(others, share)
    else:
        drawn = np.where(full, 0, sampled)
        others = rng.hypergeometric(relevant - 1, rivals, drawn)
        above = rng.hypergeometric(place - 1, relevant - place, others)
    kept = rng.hypergeometric(better, sampled - better, sampled - others)
    ranks = np.where(several, 1 + kept + above, 1 + better)
    ranks = np.where(full, better + place, ranks)
    return ranks, np.where(full, items - 1, sampled), place


def as_arrays(whose: Whose | None) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that a file keeps."""
    return {} if whose is None else {f"whose_{name}": getattr(whose, name) for name in _ARRAYS}
