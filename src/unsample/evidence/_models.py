"""`ModelCounts`: the counts of several models, and which ranks of theirs are of one user."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unsample.errors import InputError
from unsample.evidence._columns import check_format, load_arrays, part_of, save_arrays
from unsample.evidence._counts import RankCounts
from unsample.evidence._pairs import PairCounts, pairs_between
from unsample.evidence._targets import Targets

_FORMAT = "unsample.ModelCounts/3"


@dataclass(frozen=True, eq=False)
class ModelCounts(Mapping[str, RankCounts]):
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
    def of_targets(cls, targets: Mapping[str, Targets], *, pair: bool = True) -> ModelCounts:
        """Count models whose targets are in memory; without users, these are their positions."""
        sides = {
            name: (np.arange(len(each.ranks)) if each.users is None else each.users, each.cells)
            for name, each in targets.items()
        }
        between = pairs_between(sides) if pair else {}
        return cls({name: each.counts for name, each in targets.items()}, between)

    @classmethod
    def merge(cls, parts: Iterable[ModelCounts]) -> ModelCounts:
        """Add up models that were counted in parts, each user being in one of them."""
        each = list(parts)
        if not each:
            raise InputError("parts must hold at least one ModelCounts, got none")
        names = list(dict.fromkeys(name for part in each for name in part))
        between: dict[tuple[str, str], list[PairCounts]] = {}
        for part in each:
            for pair, counts in part.between.items():
                between.setdefault(pair, []).append(counts)
        return cls(
            {name: RankCounts.merge(part[name] for part in each if name in part) for name in names},
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
            if f"pair{a},{b}_count" in fields
        }
        return cls(models, between)
