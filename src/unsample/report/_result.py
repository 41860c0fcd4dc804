"""`Result`: what every answer can do."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_choice, import_extra
from unsample.answers._notes import Note
from unsample.errors import MetricError, MissingExtraError
from unsample.metrics import Metric

DEFAULT_LEVEL = 0.95
DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
#: Libraries for data frames; the first one that is installed is the default.
BACKENDS = ("polars", "pandas", "pyarrow")


class Result(ABC):
    """The base of every answer: it prints, and turns into JSON, a data frame, a page or a table."""

    #: What the reader must know before using the numbers.
    notes: tuple[Note, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the sentences of the notes."""
        return tuple(note.text for note in self.notes)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `to_frame`."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return `rows` as a data frame.

        ``backend`` is ``"polars"``, ``"pandas"`` or ``"pyarrow"``; by default the first of these
        that is installed.
        """
        return frame_of(self.rows(), backend)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the result as one interactive page, and return its path."""
        _show().write_html(self, path)
        return Path(path)

    def to_latex(self) -> str:
        """Return the tables of the result for LaTeX (with the package booktabs)."""
        return str(_show().as_latex(self))

    def to_markdown(self) -> str:
        """Return the tables of the result as Markdown."""
        return str(_show().as_markdown(self))

    def _repr_html_(self) -> str:
        return str(_show().as_notebook(self))

    def __str__(self) -> str:
        return str(_show().as_text(self))

    __repr__ = __str__


def frame_of(rows: list[dict[str, Any]], backend: str | None) -> Any:
    """Return rows as a data frame of ``backend``; by default of the first library installed."""
    if backend is None:
        installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
        if not installed:
            raise MissingExtraError(
                "a data frame needs polars, pandas or pyarrow, and none is installed; "
                "install one with: pip install 'unsample[frames]', or use to_dict()"
            )
        backend = installed[0]
    check_choice("backend", backend, BACKENDS)
    library = import_extra(backend, extra="frames", purpose=f"a {backend} frame")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return library.table(columns) if backend == "pyarrow" else library.DataFrame(columns)


def _show() -> ModuleType:
    """Return the package `show`, imported late because it imports all results."""
    from unsample import show

    return show


def find_metric(name: Any, metrics: Iterable[Metric], *, several: bool = False) -> Metric | None:
    """Return the metric that has this name, or else the same metric under another name.

    If users have ``several`` relevant items, fewer names mean the same metric.
    """
    there = tuple(metrics)
    for metric in there:
        if metric.name == str(name):
            return metric
    try:
        wanted = _metrics.parse(name)
    except MetricError:
        return None
    return next((metric for metric in there if metric.same_as(wanted, several=several)), None)


def one_or_range(values: npt.NDArray[np.int64]) -> int | list[int]:
    """Return the one number that all are, or the least and the greatest."""
    low, high = int(values.min()), int(values.max())
    return low if low == high else [low, high]


def or_none(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None


def percent(share: float) -> str:
    """Return a share in percent, with more digits if it is small."""
    digits = 1 if abs(share) >= 0.001 or share == 0.0 else 3
    return f"{100.0 * share:.{digits}f} %"
