"""`PairCounts`: which ranks go together, because they are those of one user.

Targets of one user are not independent, and neither are two models' ranks of one target. All that
variances and covariances of means need is, for each pair of cells, how much weight of the same
users lies in both. This adds up over parts of the users and names none of them. The sum over users
of the square of their targets' summed scores is then that over pairs of cells of the pair's count
times both scores.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.errors import FileError, InputError
from unsample.evidence._columns import (
    check_format,
    distinct_rows,
    load_arrays,
    part_of,
    read_columns,
    save_arrays,
)

if TYPE_CHECKING:
    from unsample.evidence._counts import RankCounts
    from unsample.evidence._targets import Targets

_FORMAT = "unsample.ModelCounts/3"
#: What tells pair cells apart.
PAIR_KEYS = ("sampled", "items", "bin", "relevant", "place")
#: Ranks up to this stand alone; after it a bin is one part in so many of its rank.
RANKS_ALONE, RANK_STEPS = 128, 32
#: Catalogue sizes up to this stay as they are; others go onto a grid of one part in so many.
SMALL_CATALOGUE, SIZE_STEPS = 1000, 256


def rank_bin(ranks: npt.ArrayLike) -> IntArray:
    """Return the first rank of the bin of each rank: ranks up to 128 are bins of their own.

    >>> rank_bin([1, 128, 129, 133, 134, 1000])
    array([  1, 128, 129, 129, 134, 984])
    """
    rank = np.asarray(ranks, dtype=np.int64)
    first = RANKS_ALONE + 1
    step = np.floor(RANK_STEPS * np.log(np.maximum(rank, first) / first))
    start = np.ceil(first * np.exp(step / RANK_STEPS)).astype(np.int64)
    return np.where(rank <= RANKS_ALONE, rank, start)


def size_on_grid(items: npt.ArrayLike) -> IntArray:
    """Return sizes of catalogues on a fixed geometric grid, so that there are not too many.

    >>> size_on_grid([1000, 3000, 3010, 3100])
    array([1000, 3004, 3004, 3100])
    """
    size = np.asarray(items, dtype=np.int64)
    grid = np.rint(np.exp(np.rint(np.log(np.maximum(size, 1)) * SIZE_STEPS) / SIZE_STEPS))
    return np.where(size > SMALL_CATALOGUE, grid.astype(np.int64), size)


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
        found, place = distinct_rows(np.concatenate([self.first, self.second], axis=1))
        weight = np.bincount(place, self.weight, minlength=len(found))
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
            found, cell = distinct_rows(each)
            weight = np.ones(len(who)) if given is None else np.asarray(given, dtype=np.float64)
            shape = (int(number.max(initial=0)) + 1, len(found))
            tables.append(csr_array((weight, (who, cell)), shape=shape))
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

    @cached_property
    def cells(self) -> tuple[IntArray, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the different cells, and where both of each pair are among them."""
        cells, place = distinct_rows(np.concatenate([self.first, self.second]))
        return cells, place[: len(self)], place[len(self) :]

    def in_cells(self, cells: IntArray) -> PairCounts:
        """Return the pairs with others in place of their different `cells`."""
        _, first, second = self.cells
        return PairCounts(cells[first], cells[second], self.weight)

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

    @property
    def users(self) -> float:
        """Return the weight of the users: their number, where all have the weight 1."""
        return self.inner(1.0 / self.first[:, 3], 1.0 / self.second[:, 3])

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
    def of_targets(cls, targets: Mapping[str, Targets]) -> ModelCounts:
        """Count models whose targets are in memory; without users, these are their positions."""
        sides = {
            name: (np.arange(len(each.ranks)) if each.users is None else each.users, each.cells)
            for name, each in targets.items()
        }
        between = {
            (a, b): PairCounts.of_users(*sides[a], other=(*sides[b], None))
            for a, b in combinations(targets, 2)
        }
        return cls({name: each.counts for name, each in targets.items()}, between)

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

    def __add__(self, other: object) -> ModelCounts:
        if not isinstance(other, ModelCounts):
            return NotImplemented
        return ModelCounts.merge((self, other))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, all or nothing."""
        names = list(self.models)
        fields = {"format": np.asarray(_FORMAT), "names": np.asarray(names)}
        parts: dict[str, RankCounts | PairCounts] = {
            f"model{place}": self.models[name] for place, name in enumerate(names)
        }
        for (a, b), pairs in self.between.items():
            parts[f"pair{names.index(a)},{names.index(b)}"] = pairs
        for start, part in parts.items():
            fields |= {f"{start}_{key}": values for key, values in part.arrays().items()}
        save_arrays(path, fields)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModelCounts:
        """Read what `save` wrote."""
        from unsample.evidence._counts import RankCounts

        fields, source = load_arrays(path), repr(str(path))
        check_format(fields, _FORMAT, source)
        names = [str(name) for name in np.ravel(fields.get("names", np.empty(0, dtype=np.str_)))]
        models = {
            name: RankCounts.from_arrays(part_of(fields, f"model{place}_"), f"{name} in {source}")
            for place, name in enumerate(names)
        }
        between = {
            (names[a], names[b]): PairCounts.from_arrays(part_of(fields, f"pair{a},{b}_"), source)
            for a, b in combinations(range(len(names)), 2)
            if f"pair{a},{b}_weight" in fields
        }
        return cls(models, between)
