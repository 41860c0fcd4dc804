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
from unsample.posterior import TENTHS
from unsample.sampling import RankGrid, bin_starts

_FORMAT = "unsample corpus 3"
#: Each of so many first ranks is a bin of its own.
_SINGLE = 128
#: The width of a bin beyond them, as a part of its rank.
_RATIO = 0.0125


@dataclass(frozen=True, eq=False)
class RankSet:
    """A histogram of the exact ranks of one model on one data set.

    >>> ranks = np.array([1, 1, 3])
    >>> about = {"dataset": "d", "model": "m", "candidates": "all", "kind": "all", "family": "f"}
    >>> one = RankSet.of_ranks(ranks, sizes=np.array([4, 4, 4]), **about)
    >>> one.counts.tolist(), one.ranks().tolist()
    ([2, 0, 1, 0], [1, 1, 3])
    """

    dataset: str
    model: str
    #: ``"unseen"`` or ``"all"`` items.
    candidates: str
    #: ``"unseen"`` (no training item is a candidate), ``"all"`` (training items are candidates),
    #: ``"repeats"`` (they are, and targets may be training items) or ``"graph"`` (knowledge graphs;
    #: other answers are no candidates).
    kind: str
    #: Data sets of one origin have one family, and count as one.
    family: str
    #: The mean catalogue size.
    items: int
    #: Whether a part of the data is missing. Nothing is learned from such data.
    partial: bool = False
    #: How many of their own items the users of each tenth have among the candidates
    #: (`unsample.posterior.tenths_of_users`); empty where nobody has any.
    seen: tuple[int, ...] = ()
    #: The number of targets in each bin.
    counts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)

    @classmethod
    def of_ranks(cls, ranks: IntArray, sizes: IntArray, **about: Any) -> RankSet:
        """Count ranks among catalogues of the given sizes; ``about`` has the other fields.

        Ranks beyond 128 are scaled as if every catalogue had the mean size. Here this is 750: rank
        600 of 1,000 and rank 300 of 500 both count as rank 450.

        >>> about = dict.fromkeys(("dataset", "model", "candidates", "kind", "family"), "all")
        >>> two = RankSet.of_ranks(np.array([600, 300]), np.array([1000, 500]), **about)
        >>> two.items, two.counts[two.grid.locate(np.array([450]))].tolist()
        (750, [2])
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
        """Return sorted ranks with this histogram, at equal distances inside each bin.

        The i-th of c targets in a bin of the width w is floor((i - 1/2) w / c) ranks after the
        first rank of the bin.
        """
        grid = self.grid
        bins = np.repeat(np.arange(len(grid)), self.counts)
        first_of_bin = np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        place = (np.arange(len(bins)) - first_of_bin + 0.5) / self.counts[bins]
        return np.asarray(grid.low[bins] + np.floor(place * grid.width[bins]).astype(np.int64))


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
        selected = [
            rank_set
            for rank_set in self.sets
            if all(getattr(rank_set, name) == value for name, value in wanted.items())
        ]
        return Corpus(tuple(selected))

    def add(self, other: Corpus) -> Corpus:
        """Return the rank sets of both; a data set of ``other`` replaces one of the same name."""
        names = {rank_set.dataset for rank_set in other}
        kept = [rank_set for rank_set in self if rank_set.dataset not in names]
        return Corpus((*kept, *other.sets))

    def save(self, path: Path) -> None:
        """Write one ``.npz`` file, whole or not at all."""
        about = [
            {name: value for name, value in asdict(rank_set).items() if name != "counts"}
            for rank_set in self.sets
        ]
        text = json.dumps({"format": _FORMAT, "sets": about})
        arrays: dict[str, Any] = {
            "about": np.frombuffer(text.encode(), dtype=np.uint8),
            "counts": np.concatenate([one.counts for one in self.sets]).astype(np.uint32),
        }
        write = partial(write_arrays, arrays=arrays, compression=zipfile.ZIP_LZMA)
        save_archive(path, write, read=Corpus.load)

    @classmethod
    def load(cls, path: Path) -> Corpus:
        """Read what `save` wrote.

        Raises
        ------
        FileError
            If the file does not hold a corpus.
        """
        where = f"the corpus {path.name}"
        with path.open("rb") as file:
            arrays = read_arrays(file, where)
        about = read_object(arrays, "about", where=where) if "about" in arrays else {}
        if about.get("format") != _FORMAT:
            got = str(about.get("format"))[:80]
            raise FileError(f"{path.name} must hold {_FORMAT}, got {got}; save the corpus again")
        stored = about.get("sets")
        refuse_unless(isinstance(stored, list), f"'sets' of {where} must be a list")
        described = [_described(fields, f"a set of {where}") for fields in list(stored or [])]
        sizes = [len(grid_of(fields["items"])) for fields in described]
        expected = {
            "about": Field("whole", ("bytes",)),
            "counts": Field("whole", (sum(sizes),), low=0, high=2**32),
        }
        counts = read_fields(arrays, expected, where=where)["counts"]
        parts = np.split(counts, np.cumsum(sizes)[:-1]) if sizes else []
        refuse_unless(all(part.any() for part in parts), f"each set of {where} must hold ranks")
        sets = [
            RankSet(**fields, counts=part) for fields, part in zip(described, parts, strict=True)
        ]
        return cls(tuple(sets))


def _described(fields: Any, where: str) -> dict[str, Any]:
    """Return the checked fields of a rank set, without its counts."""
    names = ("dataset", "model", "candidates", "kind", "family", "items", "partial", "seen")
    complete = isinstance(fields, dict) and {*fields} == {*names}
    refuse_unless(complete, f"{where} must tell {', '.join(names)}")
    text = all(isinstance(fields[name], str) for name in names[:5])
    refuse_unless(text and isinstance(fields["partial"], bool), f"{where} must have names as text")
    items = read_number(fields, "items", where=where, low=2, high=LARGEST_CATALOGUE)
    refuse_unless(items % 1 == 0, f"'items' of {where} must be a whole number, got {items}")
    seen = fields["seen"]
    whole = isinstance(seen, list) and all(type(number) is int and number >= 0 for number in seen)
    refuse_unless(
        whole and len(seen) in (0, TENTHS),
        f"'seen' of {where} must be {TENTHS} numbers of items, or none",
    )
    return {**fields, "items": int(items), "seen": tuple(seen)}


def grid_of(items: int) -> RankGrid:
    """Return the bins of a histogram: the bins of the largest catalogue, cut off at ``items``.

    The last bin but one is 1.25 % of 984 wide, and the last one is cut off.

    >>> grid = grid_of(1000)
    >>> grid.low[[0, 127, -2, -1]].tolist(), grid.width[[0, 127, -2, -1]].tolist()
    ([1, 128, 984, 996], [1, 1, 12, 5])
    """
    low = _starts()
    if items > low[-1]:
        low = bin_starts(items, ratio=_RATIO, single=_SINGLE)
    return RankGrid(low[low <= items], items)


@cache
def _starts() -> IntArray:
    """Return the first rank of each bin of the largest catalogue."""
    return bin_starts(1_000_000, ratio=_RATIO, single=_SINGLE)


@cache
def load_corpus() -> Corpus:
    """Return the corpus that ships with the package."""
    return Corpus.load(Path(str(files("unsample.lab.corpus") / "corpus.npz")))
