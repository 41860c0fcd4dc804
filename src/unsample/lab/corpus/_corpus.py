"""Histograms of exact ranks with what is known of their data set, in one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays, write_arrays
from unsample._checks import IntArray
from unsample._files import write_atomically
from unsample.errors import FileError
from unsample.law import RankGrid, bin_starts

_FORMAT = "unsample rank bank 2"
#: The first ranks stand alone; a bin below them is so much of its rank wide.
_SINGLE, _RATIO = 128, 0.0125


@dataclass(frozen=True, eq=False)
class RankSet:
    """How the exact ranks of one model on one data set are spread.

    ``kind`` is ``"unseen"`` (training items excluded), ``"all"`` (kept), ``"repeats"`` (kept, where
    targets may be training items) or ``"graph"`` (knowledge graphs, other answers filtered).
    ``family`` is shared by data sets of one origin, which count as one. ``partial`` marks data of
    which a part is missing; nothing is learned from them. ``items`` is the mean catalogue size.
    """

    dataset: str
    model: str
    candidates: str
    kind: str
    family: str
    items: int
    partial: bool = False
    counts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)

    @classmethod
    def of_ranks(cls, ranks: IntArray, sizes: IntArray, **about: Any) -> RankSet:
        """Count ranks among catalogues of the given sizes.

        Ranks below the first 128 are moved as if every catalogue had the mean size.
        """
        items = round(float(sizes.mean()))
        moved = 1 + np.rint((ranks - 1) * ((items - 1) / (sizes - 1))).astype(np.int64)
        placed = np.where((ranks <= _SINGLE) | (sizes == items), ranks, moved).clip(1, items)
        grid = grid_of(items)
        counts = np.bincount(grid.locate(placed), minlength=len(grid))
        return cls(items=items, counts=counts, **about)

    @property
    def grid(self) -> RankGrid:
        """Return the bins of the histogram."""
        return grid_of(self.items)

    @property
    def targets(self) -> int:
        """Return how many ranks there are."""
        return int(self.counts.sum())

    def ranks(self) -> IntArray:
        """Return ranks with this histogram, spread evenly inside each bin, in order."""
        grid = self.grid
        bins = np.repeat(np.arange(len(grid)), self.counts)
        first = np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        place = (np.arange(len(bins)) - first + 0.5) / self.counts[bins]
        return np.asarray(grid.low[bins] + np.floor(place * grid.width[bins]).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Bank:
    """Rank sets; ``about.toml`` has the source and the licence of each data set."""

    sets: tuple[RankSet, ...]

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[RankSet]:
        return iter(self.sets)

    def select(self, **wanted: Any) -> Bank:
        """Return the rank sets whose fields have these values."""
        kept = [s for s in self.sets if all(getattr(s, k) == v for k, v in wanted.items())]
        return Bank(tuple(kept))

    def add(self, other: Bank) -> Bank:
        """Return both; data sets of ``other`` take the place of those with the same name."""
        names = {each.dataset for each in other}
        kept = [each for each in self if each.dataset not in names]
        return Bank((*kept, *other.sets))

    def save(self, path: Path) -> None:
        """Write one ``.npz`` file, whole or not at all."""
        about = [
            {name: value for name, value in asdict(each).items() if name != "counts"}
            for each in self.sets
        ]
        text = json.dumps({"format": _FORMAT, "sets": about})
        arrays: dict[str, Any] = {
            "about": np.frombuffer(text.encode(), dtype=np.uint8),
            "counts": np.concatenate([each.counts for each in self.sets]).astype(np.uint32),
        }
        write_atomically(path, partial(write_arrays, arrays=arrays))

    @classmethod
    def load(cls, path: Path) -> Bank:
        """Read what `save` wrote."""
        with path.open("rb") as file:
            arrays = read_arrays(file, f"the bank {path.name}")
        about = json.loads(arrays["about"].tobytes()) if "about" in arrays else {}
        if about.get("format") != _FORMAT:
            raise FileError(f"{path.name} must hold {_FORMAT}, got {about.get('format')}")
        counts, sets, start = arrays["counts"].astype(np.int64), [], 0
        for each in about["sets"]:
            stop = start + len(grid_of(each["items"]))
            sets.append(RankSet(**each, counts=counts[start:stop]))
            start = stop
        return cls(tuple(sets))


def grid_of(items: int) -> RankGrid:
    """Return the bins of a histogram: those of the largest catalogue, cut off at ``items``."""
    low = _starts()
    if items > low[-1]:
        low = bin_starts(items, ratio=_RATIO, single=_SINGLE)
    return RankGrid(low[low <= items], items)


@cache
def _starts() -> IntArray:
    return bin_starts(1_000_000, ratio=_RATIO, single=_SINGLE)


@cache
def load_bank() -> Bank:
    """Return the bank that ships with the package."""
    return Bank.load(Path(str(files("unsample.lab.bank") / "bank.npz")))
