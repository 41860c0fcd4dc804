"""`ModelCounts`: the counts of several models, and which ranks of theirs are of one user."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample._files import write_atomically
from unsample.errors import FileError, InputError
from unsample.evidence._counts import RankCounts
from unsample.evidence._pairs import PairCounts, pairs_between
from unsample.evidence._shared import ItemCounts
from unsample.evidence._targets import Targets

_FORMAT = "unsample.ModelCounts/4"


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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, all or nothing."""
        if Path(path).suffix != ".npz":
            raise FileError(f"path must end in .npz, got {str(path)!r}")
        names = list(self.models)
        fields: dict[str, Any] = {"format": np.asarray(_FORMAT), "names": np.asarray(names)}
        parts: dict[str, RankCounts | PairCounts | ItemCounts | None] = {
            f"{names.index(a)}_{names.index(b)}": pairs for (a, b), pairs in self.between.items()
        }
        for place, counts in enumerate(self.models.values()):
            parts |= {f"{place}": counts, f"{place}_pairs": counts.clusters}
            parts[f"{place}_items"] = counts.shared
        for start, part in parts.items():
            arrays = {} if part is None else part.arrays()
            fields |= {f"{start}_{key}": values for key, values in arrays.items()}
        write_atomically(Path(path), lambda file: np.savez_compressed(file, **fields))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModelCounts:
        """Read what `save` wrote; nothing in it is trusted."""
        try:
            with Path(path).open("rb") as file:
                fields = read_arrays(file, f"counts from {str(path)!r}")
        except OSError as problem:
            raise FileError(f"cannot read counts from {str(path)!r}: {problem}") from problem
        return cls.from_arrays(fields, repr(str(path)))

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> ModelCounts:
        """Take the arrays of a file, and check them; ``source`` is for messages."""
        if (marker := str(fields.get("format"))) != _FORMAT:
            raise FileError(
                f"{source} must hold {_FORMAT}, got {marker}; files of versions before 0.3 must be "
                "counted again from their ranks"
            )
        names = [str(name) for name in np.ravel(fields.get("names", np.empty(0, dtype=np.str_)))]

        def part(start: str) -> dict[str, Any]:
            return {n[len(start) :]: each for n, each in fields.items() if n.startswith(start)}

        models = {}
        for place, name in enumerate(names):
            where = f"{name} in {source}" if name else source
            pairs, items = part(f"{place}_pairs_"), part(f"{place}_items_")
            models[name] = RankCounts.from_arrays(
                part(f"{place}_"),
                where,
                PairCounts.from_arrays(pairs, where) if pairs else None,
                ItemCounts.from_arrays(items, where) if items else None,
            )
        between = {
            (names[a], names[b]): PairCounts.from_arrays(part(f"{a}_{b}_"), source)
            for a, b in combinations(range(len(names)), 2)
            if f"{a}_{b}_count" in fields
        }
        return cls(models, between)
