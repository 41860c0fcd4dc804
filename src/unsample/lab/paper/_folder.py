"""The folder of a run: which run it holds, and the cells finished so far.

Every file is written whole or not at all. A cell that is there is never computed again; one that
cannot be read counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._files import unwritable, write_atomically
from unsample.errors import FileError
from unsample.lab.paper._cells import CellResult, Ranks
from unsample.lab.paper._spec import Cell, Spec
from unsample.lab.paper._tables import SCHEMA, write_json

_SPEC = "spec.json"
_WORK = "cells"
_REPORT = ("accuracy.md", "accuracy.tex", "report.html", "winners.md", "winners.tex")
_RESULTS = (*(f"{table}.csv" for table in SCHEMA), "settings.json", "timing.json", *_REPORT)
#: Where the file of a cell says whose it is.
_RUN = "run"


@dataclass(frozen=True)
class RunFolder:
    """A folder that belongs to the run of one spec."""

    path: Path
    spec: Spec

    @classmethod
    @contextmanager
    def claim(
        cls, path: Path, spec: Spec, *, resume: bool = False, force: bool = False
    ) -> Iterator[RunFolder]:
        """Hold a folder for a run, or refuse one that holds something else.

        The same run continues where it stopped. ``resume`` insists that there is one to continue,
        and ``force`` throws away what another run left.
        """
        if resume and force:
            raise FileError("resume and force must not both be given: one keeps, one throws away")
        folder = cls(path, spec)
        with _as_file_error(path):
            there = path.exists()
            if there and not path.is_dir():
                raise FileError(f"out must be a folder, got the file {str(path)!r}")
            if resume and not there:
                raise FileError(_nothing_to_resume(path))
            path.mkdir(parents=True, exist_ok=True)
        with _as_file_error(path):
            folder._refuse_others(resume=resume, force=force)
            folder._prepare(force=force)
        yield folder

    # -- cells ------------------------------------------------------------------------------

    def load(self, cell: Cell) -> CellResult | None:
        """Return a finished cell, or None where it must (again) be computed."""
        arrays = self._read(cell.name) or {}
        values, cdf = (
            {key.removeprefix(kind): arrays[key] for key in arrays if key.startswith(kind)}
            for kind in ("values/", "cdf/")
        )
        if "exact" not in arrays or not set(self.spec.labels_of(cell)) <= set(values):
            return None
        return CellResult(arrays["exact"], values, cdf)

    def save(self, cell: Cell, result: CellResult) -> None:
        """Write a finished cell."""
        arrays = {"exact": result.exact}
        arrays |= {f"values/{label}": array for label, array in result.values.items()}
        arrays |= {f"cdf/{label}": array for label, array in result.cdf.items()}
        self._write(cell.name, arrays)

    def load_ranks(self, cell: Cell) -> Ranks | None:
        """Return the ranks of a recommender that was trained for this run."""
        arrays = self._read(_ranks_name(cell))
        if arrays is None or not {"ranks", "items"} <= set(arrays):
            return None
        return Ranks(arrays["ranks"], arrays["items"])

    def save_ranks(self, cell: Cell, ranks: Ranks) -> None:
        """Keep the ranks of a trained recommender: training is what takes longest."""
        self._write(_ranks_name(cell), {"ranks": ranks.ranks, "items": ranks.items})

    # -- inside -----------------------------------------------------------------------------

    def _refuse_others(self, *, resume: bool, force: bool) -> None:
        """Refuse a folder that holds anything but the same run, unless that may be thrown away."""
        if force:
            return
        found = self._stored()
        if found is not None and found != self.spec.digest:
            raise FileError(
                f"out must not hold a run with other settings, got {str(self.path)!r}, which does "
                f"(see its {_SPEC}); choose another folder, or --force to throw that run away"
            )
        # A run killed at its very start leaves its half-written spec, and nothing else.
        others = any(entry.suffix != ".part" for entry in self.path.iterdir())
        if found is None and others:
            raise FileError(
                f"out must be a new folder or one of unsample reproduce, got {str(self.path)!r}, "
                "which holds other files; choose another, or --force to write among them"
            )
        if found is None and resume:
            raise FileError(_nothing_to_resume(self.path))

    def _stored(self) -> str | None:
        path = self.path / _SPEC
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["digest"])
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise FileError(
                f"cannot read {str(path)!r}: {problem.strerror or problem}; choose another folder"
            ) from problem
        except (KeyError, RecursionError, TypeError, ValueError) as problem:
            raise FileError(
                f"{str(path)!r} cannot be read, so whose run this is cannot be known; "
                "choose another folder, or --force to start again"
            ) from problem

    def _prepare(self, *, force: bool) -> None:
        if force:
            for file in (*self._work.glob("*.npz"), *(self.path / name for name in _RESULTS)):
                file.unlink(missing_ok=True)
        # The spec comes first: whatever else is in the folder is then known to be of this run.
        if force or not (self.path / _SPEC).exists():
            write_json(self.path / _SPEC, {"digest": self.spec.digest, **self.spec.to_dict()})
        self._work.mkdir(exist_ok=True)

    @property
    def _work(self) -> Path:
        return self.path / _WORK

    def _read(self, name: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return what `_write` wrote, or None where it is not there, damaged, or of another run."""
        path = self._work / f"{name}.npz"
        try:
            with path.open("rb") as file:
                arrays = read_arrays(file, repr(str(path)))
        except (OSError, FileError):
            return None
        whose = arrays.pop(_RUN, np.array([])).tolist()
        return arrays if whose == [self.spec.digest] else None

    def _write(self, name: str, arrays: dict[str, npt.NDArray[Any]]) -> None:
        # A worker that outlives a killed run may write among the cells of the next one.
        marked: dict[str, Any] = {_RUN: np.array([self.spec.digest]), **arrays}
        write_atomically(self._work / f"{name}.npz", lambda file: np.savez(file, **marked))


def _ranks_name(cell: Cell) -> str:
    return "ranks." + cell.name.rpartition(".")[0]


@contextmanager
def _as_file_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise unwritable(path, problem) from problem


def _nothing_to_resume(path: Path) -> str:
    return (
        f"out must hold a run to resume, got {str(path)!r}, which holds none; leave out "
        "--resume to start one"
    )
