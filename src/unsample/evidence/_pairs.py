"""`PairCounts`: which ranks go together, because they are those of one user.

Targets of one user are not independent, and neither are two models' ranks of one target. All that
variances and covariances of means need is, for each pair of cells, how much weight of the same
users lies in both. This adds up over parts of the users and names none of them. The sum over users
of the square of their targets' summed scores is then that over pairs of cells of the pair's count
times both scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, as_rng
from unsample.errors import FileError, InputError
from unsample.evidence._columns import read_columns

if TYPE_CHECKING:
    from unsample.evidence._counts import RankCounts

#: What tells pair cells apart.
PAIR_KEYS = ("sampled", "items", "bin", "relevant", "place")
#: Ranks up to this stand alone; after it a bin is one part in so many of its rank.
_ALONE, _BINS = 128, 32
#: Catalogue sizes up to this stay as they are; others go onto a grid of one part in so many.
_SMALL, _SIZES = 1000, 64
#: Digits of a hash that make a number between 0 and 1, to the last bit.
_DIGITS = 13


def rank_bin(ranks: npt.ArrayLike) -> IntArray:
    """Return the first rank of the bin of each rank: ranks up to 128 are bins of their own.

    >>> rank_bin([1, 128, 129, 133, 134, 1000])
    array([  1, 128, 129, 129, 134, 984])
    """
    rank = np.asarray(ranks, dtype=np.int64)
    first = _ALONE + 1
    step = np.floor(_BINS * np.log(np.maximum(rank, first) / first))
    start = np.ceil(first * np.exp(step / _BINS)).astype(np.int64)
    return np.where(rank <= _ALONE, rank, start)


def size_on_grid(items: npt.ArrayLike) -> IntArray:
    """Return sizes of catalogues on a fixed geometric grid, so that there are not too many.

    >>> size_on_grid([1000, 3000, 3010, 3100])
    array([1000, 3011, 3011, 3106])
    """
    size = np.asarray(items, dtype=np.int64)
    grid = np.rint(np.exp(np.rint(np.log(np.maximum(size, 1)) * _SIZES) / _SIZES))
    return np.where(size > _SMALL, grid.astype(np.int64), size)


# -- ties -----------------------------------------------------------------------------------


def tie_seed(rng: object) -> int:
    """Return the number that stands for a seed where ties are broken by a hash."""
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        return int(rng)
    return int(as_rng(rng).integers(1 << 62))  # type: ignore[arg-type]


def tie_place(
    seed: int, users: npt.ArrayLike | None, targets: npt.ArrayLike, tied: npt.ArrayLike
) -> IntArray:
    """Return how many of the ``tied`` items come before each target, by a hash of its names.

    The same seed, user and target have the same place in any engine, in any order of the rows. The
    user is the empty text where there is none.

    >>> tie_place(0, ["ann", "bob"], ["x", "y"], [3, 0])
    array([2, 0])
    """
    ties = np.asarray(tied, dtype=np.int64)
    place = np.zeros(len(ties), dtype=np.int64)
    rows = np.flatnonzero(ties)
    target = np.asarray(targets)[rows].tolist()
    user = [""] * len(rows) if users is None else np.asarray(users)[rows].tolist()
    numbers = [_unit(f"{seed}|{who}|{what}") for who, what in zip(user, target, strict=True)]
    place[rows] = np.floor(np.array(numbers) * (ties[rows] + 1))
    return place


def _unit(text: str) -> float:
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return int(digest[:_DIGITS], 16) / 16.0**_DIGITS


def tie_names(
    users: npt.ArrayLike | None, better: npt.ArrayLike, tied: npt.ArrayLike
) -> npt.NDArray[np.str_]:
    """Return names for targets that have none, of which only those with ties are needed.

    Equal rows of a user are numbered, so that the order of the rows does not matter.

    >>> tie_names(None, [4, 4, 7], [1, 1, 0]).tolist()
    ['4:1:0', '4:1:1', '']
    """
    beaten, ties = np.asarray(better, dtype=np.int64), np.asarray(tied, dtype=np.int64)
    names = np.full(len(ties), "", dtype=f"<U{3 * 20}")
    rows = np.flatnonzero(ties)
    if not len(rows):
        return names
    user = np.zeros(len(rows), dtype=np.int64)
    if users is not None:
        user = np.unique(np.asarray(users)[rows], return_inverse=True)[1].reshape(-1)
    order = np.lexsort([ties[rows], beaten[rows], user])
    keys = np.stack([user, beaten[rows], ties[rows]])[:, order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (np.diff(keys, axis=1) != 0).any(axis=0)
    place = np.arange(len(rows))
    number = place - np.maximum.accumulate(np.where(first, place, 0))
    texts = [f"{b}:{t}:{k}" for b, t, k in zip(keys[1], keys[2], number, strict=True)]
    names[rows[order]] = texts
    return names


# -- pairs ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairCounts:
    """For each pair of cells, the sum over users of the weight in the first times in the second.

    Pairs are ordered, and a target is paired with itself too. ``first`` and ``second`` have a row
    for each pair, with the columns `PAIR_KEYS`.

    >>> cells = np.array([[9, 50, 1, 2, 0], [9, 50, 3, 2, 0]])
    >>> pairs = PairCounts.of_users([7, 7, 8], cells[[0, 1, 0]])
    >>> pairs.weight.tolist(), pairs.second[:, 2].tolist()
    ([2.0, 1.0, 1.0, 1.0], [1, 3, 1, 3])
    """

    first: IntArray
    second: IntArray
    weight: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.weight), len(PAIR_KEYS))
        if self.first.shape != shape or self.second.shape != shape:
            raise InputError(
                f"pair counts must have {len(PAIR_KEYS)} keys on each side of {len(self.weight)} "
                f"pairs, got shapes {self.first.shape} and {self.second.shape}"
            )
        keys = np.concatenate([self.first, self.second], axis=1)
        found, place = np.unique(keys, axis=0, return_inverse=True)
        weight = np.bincount(place.reshape(-1), self.weight, minlength=len(found))
        object.__setattr__(self, "first", found[:, : len(PAIR_KEYS)])
        object.__setattr__(self, "second", found[:, len(PAIR_KEYS) :])
        object.__setattr__(self, "weight", weight.astype(np.float64))

    @classmethod
    def of_users(
        cls,
        users: npt.ArrayLike,
        cells: IntArray,
        weights: npt.ArrayLike | None = None,
        other: tuple[npt.ArrayLike, IntArray, npt.ArrayLike | None] | None = None,
    ) -> PairCounts:
        """Count pairs of targets of one user, given the user, cell and weight of each target.

        With ``other``, the second cell of a pair is that of another model's target, whose users,
        cells and weights these are. Users that only one of them has are in no pair.
        """
        from scipy.sparse import csr_array

        sides = [(users, cells, weights), other or (users, cells, weights)]
        names = np.concatenate([np.asarray(side[0]) for side in sides])
        number = np.unique(names, return_inverse=True)[1].reshape(-1)
        numbers = np.split(number, [len(sides[0][1])])
        tables: list[Any] = []
        keys = []
        for (_, each, given), who in zip(sides, numbers, strict=True):
            found, cell = np.unique(each, axis=0, return_inverse=True)
            weight = np.ones(len(who)) if given is None else np.asarray(given, dtype=np.float64)
            shape = (int(number.max(initial=0)) + 1, len(found))
            tables.append(csr_array((weight, (who, cell.reshape(-1))), shape=shape))
            keys.append(found)
        products = (tables[0].T @ tables[1]).tocoo()
        return cls(keys[0][products.row], keys[1][products.col], products.data)

    @classmethod
    def merge(cls, parts: Iterable[PairCounts]) -> PairCounts:
        """Add up pairs that were counted in parts, each user being in one of them."""
        each = list(parts)
        if not each:
            raise InputError("parts must hold at least one PairCounts, got none")
        return cls(
            np.concatenate([part.first for part in each]),
            np.concatenate([part.second for part in each]),
            np.concatenate([part.weight for part in each]),
        )

    def __len__(self) -> int:
        return len(self.weight)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairCounts):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("first", "second", "weight")
        )

    __hash__ = None  # type: ignore[assignment]

    def inner(self, first: FloatArray, second: FloatArray) -> float:
        """Return the sum over users of the product of their two summed scores.

        Scores are those of the pairs' cells: ``first`` of the first of each pair, ``second`` of the
        other.
        """
        return float(self.weight @ (first * second))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a file keeps."""
        return {"first": self.first, "second": self.second, "weight": self.weight}

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> PairCounts:
        """Take what `arrays` gave, checked; ``source`` is for messages."""
        columns = read_columns(
            {name: np.ravel(values) for name, values in fields.items()},
            source,
            whole=("first", "second"),
            reals=("weight",),
        )
        shape = (len(columns["weight"]), len(PAIR_KEYS))
        if any(columns[name].size != shape[0] * shape[1] for name in ("first", "second")):
            raise FileError(
                f"{source} must hold {shape[1]} keys on each side of {shape[0]} pairs, got others"
            )
        first, second = (columns[name].reshape(shape) for name in ("first", "second"))
        return cls(first, second, columns["weight"])


@dataclass(frozen=True, eq=False)
class ModelCounts(Mapping[str, "RankCounts"]):
    """The counts of several models, and of each two of them the pairs of targets of one user.

    ``between[a, b]`` is there for models in the order of ``models``; users that only one of the two
    models has are not in it. Neither users nor single targets are kept.
    """

    models: Mapping[str, RankCounts]
    between: Mapping[tuple[str, str], PairCounts]

    def __getitem__(self, name: str) -> RankCounts:
        return self.models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    @classmethod
    def merge(cls, parts: Iterable[ModelCounts]) -> ModelCounts:
        """Add up models that were counted in parts, each user being in one of them."""
        each = list(parts)
        if not each:
            raise InputError("parts must hold at least one ModelCounts, got none")
        names = list(dict.fromkeys(name for part in each for name in part))
        models = {name: [part[name] for part in each if name in part] for name in names}
        between: dict[tuple[str, str], list[PairCounts]] = {}
        for part in each:
            for pair, counts in part.between.items():
                between.setdefault(pair, []).append(counts)
        return cls(
            {name: type(found[0]).merge(found) for name, found in models.items()},
            {pair: PairCounts.merge(found) for pair, found in between.items()},
        )
