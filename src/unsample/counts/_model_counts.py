"""`ModelCounts`: the counts of several models, and which ranks of theirs are of one user."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays, save_archive, write_arrays
from unsample._fields import Field, read_fields, refuse_unless
from unsample.counts._rank_counts import RankCounts
from unsample.counts._shared_items import ItemCounts
from unsample.counts._targets import Targets
from unsample.counts._user_pairs import PairCounts, pairs_between
from unsample.errors import FileError, InputError

_FORMAT = "unsample.ModelCounts/6"
#: The part of a file that is about all models.
_HEADER = {"format": Field("text", ()), "names": Field("text", ("models",))}


@dataclass(frozen=True, eq=False)
class ModelCounts(Mapping[str, RankCounts]):
    """The counts of several models, and for each two of them the pairs of targets of one user.

    ``between[a, b]`` is there where ``a`` stands before ``b`` in ``models``. Users that only one of
    the two models has are in no pair. Neither users nor single targets are kept.

    >>> design = {"items": 500, "sampled": 99}
    >>> targets = {"A": Targets([1, 4], **design), "B": Targets([2, 4], **design)}
    >>> counts = ModelCounts.of_targets(targets)
    >>> counts["A"].total, counts.between["A", "B"].total
    (2, 2)
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
        """Count models whose targets are in memory.

        Targets without users are paired by their position. Without ``pair``, models are not paired.
        """
        between = {}
        if pair:
            between = pairs_between(
                {name: (_users_of(model), model.cells) for name, model in targets.items()}
            )
        return cls({name: model.counts for name, model in targets.items()}, between)

    @classmethod
    def merge(cls, parts: Iterable[ModelCounts]) -> ModelCounts:
        """Add up models that were counted in parts, each user being in one of them.

        Models may stand in another order in each part. The order of the first part counts.
        """
        counted = list(parts)
        if not counted:
            raise InputError("parts must hold at least one ModelCounts, got none")
        names = list(dict.fromkeys(name for part in counted for name in part))
        models = {
            name: RankCounts.merge(part[name] for part in counted if name in part) for name in names
        }
        pairs: dict[tuple[str, str], list[PairCounts]] = {}
        for part in counted:
            for (a, b), counts in part.between.items():
                if names.index(a) < names.index(b):
                    pairs.setdefault((a, b), []).append(counts)
                else:
                    pairs.setdefault((b, a), []).append(counts.swapped())
        between = {both: PairCounts.merge(counts) for both, counts in pairs.items()}
        return cls(models, between).rounded()

    def rounded(self) -> ModelCounts:
        """Return the counts with the catalogues of each model that has many sizes on the grid."""
        models = {name: counts.rounded() for name, counts in self.models.items()}
        between = {
            (a, b): pairs.rounded_like(self.models[a], self.models[b])
            for (a, b), pairs in self.between.items()
        }
        return ModelCounts(models, between)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, all or nothing."""
        names = list(self.models)
        fields: dict[str, Any] = {"format": np.asarray(_FORMAT), "names": np.asarray(names)}
        parts: dict[str, RankCounts | PairCounts | ItemCounts | None] = {
            f"{names.index(a)}_{names.index(b)}": pairs for (a, b), pairs in self.between.items()
        }
        for index, counts in enumerate(self.models.values()):
            parts[f"{index}"] = counts
            parts[f"{index}_pairs"] = counts.clusters
            parts[f"{index}_items"] = counts.shared
        for prefix, part in parts.items():
            arrays = {} if part is None else part.arrays()
            fields |= {f"{prefix}_{key}": values for key, values in arrays.items()}
        save_archive(Path(path), partial(write_arrays, arrays=fields), read=ModelCounts.load)

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
            got = " ".join(marker.split())[:80]
            raise FileError(f"{source} must hold {_FORMAT}, got {got}; count the ranks again")
        parts = _parts_of(fields)
        header = read_fields(parts.pop("", {}), _HEADER, where=source)
        names = [str(name) for name in header["names"]]
        different = len({*names}) == len(names)
        refuse_unless(different, f"{source} must hold models of different names, got {names}")
        models = {}
        for index, name in enumerate(names):
            where = f"{name} in {source}" if name else source
            models[name] = _model_of(parts, index, where=where)
        between = {
            (names[a], names[b]): PairCounts.from_arrays(parts.pop(f"{a}_{b}"), source)
            for a, b in combinations(range(len(names)), 2)
            if f"{a}_{b}" in parts
        }
        more = ", ".join(f"{part}_{column}" for part in parts for column in parts[part])
        refuse_unless(not more, f"{source} must hold nothing else, got also {more}")
        targets = {name: models[name].by_key() for both in between for name in both}
        for (a, b), pairs in between.items():
            pairs.check_cells(targets[a], targets[b], where=f"{a} and {b} in {source}")
        return cls(models, between)


def _parts_of(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the columns of each part of a file, whose names are ``part_column``.

    >>> _parts_of({"names": 1, "0_low": 2, "0_high": 3, "0_pairs_count": 4})
    {'': {'names': 1}, '0': {'low': 2, 'high': 3}, '0_pairs': {'count': 4}}
    """
    parts: dict[str, dict[str, Any]] = {}
    for field, values in fields.items():
        part, _, column = field.rpartition("_")
        parts.setdefault(part, {})[column] = values
    return parts


def _model_of(parts: dict[str, dict[str, Any]], index: int, *, where: str) -> RankCounts:
    """Take the counts of one model from the parts of a file, and check them."""
    columns = parts.pop(f"{index}", {})
    pairs = parts.pop(f"{index}_pairs", None)
    items = parts.pop(f"{index}_items", None)
    return RankCounts.from_arrays(
        columns,
        where,
        clusters=None if pairs is None else PairCounts.from_arrays(pairs, where),
        shared=None if items is None else ItemCounts.from_arrays(items, where),
    )


def _users_of(targets: Targets) -> npt.ArrayLike:
    """Return the user of each target; without users, each target has its own."""
    return np.arange(len(targets.ranks)) if targets.users is None else targets.users
