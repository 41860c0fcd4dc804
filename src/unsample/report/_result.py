"""`Result`: what every answer can do, and `Note`: what a reader must know before using it."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from unsample._checks import check_choice, import_extra, warn
from unsample._rules import import_whole
from unsample.errors import BiasedMethodWarning, MissingExtraError, RefutedWarning, UnsampleWarning
from unsample.report._html import write_html
from unsample.report._plots import plot, write_figure
from unsample.report._view import View
from unsample.report._writers import as_latex, as_markdown, as_notebook, as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Libraries for data frames; the first one that is installed is the default.
BACKENDS = ("polars", "pandas", "pyarrow")

#: Names of notes that have a warning of their own, by which Python's filters know them.
_CATEGORIES: dict[str, type[UnsampleWarning]] = {
    "biased": BiasedMethodWarning,
    "outside": BiasedMethodWarning,
    "refuted": RefutedWarning,
}


@dataclass(frozen=True)
class Note:
    """What a reader must know: the ``name`` is for programs, the ``text`` for people."""

    name: str
    text: str


def warn_of(notes: Iterable[Note]) -> None:
    """Raise each note once as a warning of Python."""
    for note in dict.fromkeys(notes):
        warn(note.text, _CATEGORIES.get(note.name, UnsampleWarning))


class Result(ABC):
    """The base of every answer: it prints, and turns into JSON, a data frame, a page or a table."""

    #: The function that makes the view, which is loaded when it is asked for: ``module:name``.
    shown_by: ClassVar[str]
    #: What the reader must know before using the numbers.
    notes: tuple[Note, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the sentences of the notes."""
        return tuple(note.text for note in self.notes)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""

    def view(self) -> View:
        """Return what is shown, from which text, tables, pages and plots come."""
        module, _, name = self.shown_by.partition(":")
        made: View = getattr(import_whole(module), name)(self)
        return made

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

    def to_csv(self) -> str:
        """Return `rows` as the text of a CSV file."""
        rows = self.rows()
        text = io.StringIO()
        writer = csv.DictWriter(text, dict.fromkeys(name for row in rows for name in row))
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().replace("\r\n", "\n")

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the result as one interactive page (``.html``), and return its path."""
        write_html(self, path)
        return Path(path)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        metric: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot what sums the result up on matplotlib axes, and return them.

        With a ``path`` the plot is also written, as SVG, PDF or PNG. ``metric`` is the one that is
        plotted where each has a plot of its own, by default the first; ``ax`` are axes to use.
        """
        axes = plot(self, metric=metric, ax=ax)
        if path is not None:
            write_figure(axes, path)
        return axes

    def to_latex(self) -> str:
        """Return the tables of the result for LaTeX (with the package booktabs)."""
        return as_latex(self)

    def to_markdown(self) -> str:
        """Return the tables of the result as Markdown."""
        return as_markdown(self)

    def _repr_html_(self) -> str:
        return as_notebook(self)

    def __str__(self) -> str:
        return as_text(self)

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
    extra = "" if backend == "pandas" else "frames"
    library = import_extra(backend, extra=extra, purpose=f"a {backend} frame")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return library.table(columns) if backend == "pyarrow" else library.DataFrame(columns)


def one_or_range(low: int, high: int) -> int | list[int]:
    """Return the one number that all are, or the least and the greatest."""
    return low if low == high else [low, high]


def or_none(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None
