"""Histograms of exact ranks with what is known of their data set, in one file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays, save_archive, write_arrays
from unsample._checks import LARGEST_CATALOGUE, IntArray
from unsample._fields import Field, read_fields, read_number, read_object, refuse_unless
from unsample.errors import FileError
from unsample.sampling import RankGrid, bin_starts

_FORMAT = "unsample rank bank 2"
#: Each of the first ranks is a bin of its own. A bin beyond them is this part of its rank wide.
_SINGLE, _RATIO = 128, 0.0125


@dataclass(frozen=True, eq=False)
class RankSet:
    """A histogram of the exact ranks of one model on one data set.

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

        Ranks beyond 128 are scaled as if every catalogue had the mean size.
        """
        items = round(float(sizes.mean()))
        scaled = 1 + np.rint((ranks - 1) * ((items - 1) / (sizes - 1))).astype(np.int64)
        mean_sized = np.where((ranks <= _SINGLE) | (sizes == items), ranks, scaled).clip(1, items)
        grid = grid_of(items)
        counts = np.bincount(grid.locate(mean_sized), minlength=len(grid))
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
        """Return sorted ranks with this histogram, at equal distances inside each bin."""
        grid = self.grid
        bins = np.repeat(np.arange(len(grid)), self.counts)
        first = np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        inside = (np.arange(len(bins)) - first + 0.5) / self.counts[bins]
        return np.asarray(grid.low[bins] + np.floor(inside * grid.width[bins]).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Corpus:
    """All rank sets; ``about.toml`` has the source and the licence of each data set."""

    sets: tuple[RankSet, ...]

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[RankSet]:
        return iter(self.sets)

    def select(self, **wanted: Any) -> Corpus:
        """Return the rank sets whose fields have these values."""
        kept = [s for s in self.sets if all(getattr(s, k) == v for k, v in wanted.items())]
        return Corpus(tuple(kept))

    def add(self, other: Corpus) -> Corpus:
        """Return both; a data set of ``other`` replaces one of the same name."""
        names = {each.dataset for each in other}
        kept = [each for each in self if each.dataset not in names]
        return Corpus((*kept, *other.sets))

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
        write = partial(write_arrays, arrays=arrays, compression=zipfile.ZIP_LZMA)
        save_archive(path, write, read=Corpus.load)

    @classmethod
    def load(cls, path: Path) -> Corpus:
        """Read what `save` wrote."""
        where = f"the corpus {path.name}"
        with path.open("rb") as file:
            arrays = read_arrays(file, where)
        about = read_object(arrays, "about", where) if "about" in arrays else {}
        if (marker := about.get("format")) != _FORMAT:
            got = str(marker)[:80]
            raise FileError(f"{path.name} must hold {_FORMAT}, got {got}; save the corpus again")
        held = about.get("sets")
        refuse_unless(isinstance(held, list), f"'sets' of {where} must be a list")
        described = [_description(each, f"a set of {where}") for each in list(held or [])]
        sizes = [len(grid_of(each["items"])) for each in described]
        fields = {
            "about": Field("whole", ("bytes",)),
            "counts": Field("whole", (sum(sizes),), 0, 2**32),
        }
        counts = read_fields(arrays, fields, where)["counts"]
        parts = np.split(counts, np.cumsum(sizes)[:-1]) if sizes else []
        refuse_unless(all(part.any() for part in parts), f"each set of {where} must hold ranks")
        return cls(tuple(RankSet(**a, counts=b) for a, b in zip(described, parts, strict=True)))


def _description(held: Any, where: str) -> dict[str, Any]:
    """Return the checked fields of a rank set, without its counts."""
    names = ("dataset", "model", "candidates", "kind", "family", "items", "partial")
    good = isinstance(held, dict) and {*held} == {*names}
    refuse_unless(good, f"{where} must tell {', '.join(names)}")
    text = all(isinstance(held[name], str) for name in names[:5])
    refuse_unless(text and isinstance(held["partial"], bool), f"{where} must have names as text")
    items = read_number(held, "items", where, low=2, high=LARGEST_CATALOGUE)
    refuse_unless(items % 1 == 0, f"'items' of {where} must be a whole number, got {items}")
    return {**held, "items": int(items)}


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
def load_corpus() -> Corpus:
    """Return the corpus that ships with the package."""
    return Corpus.load(Path(str(files("unsample.lab.corpus") / "corpus.npz")))
