"""`Result`, the base of every answer, and `Note`, a caution beside its numbers."""

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

from unsample import __version__
from unsample._checks import check_choice, import_extra, warn
from unsample._rules import import_whole
from unsample.errors import BiasedMethodWarning, MissingExtraError, RefutedWarning, UnsampleWarning
from unsample.report._html import write_html
from unsample.report._origin import SCHEMA
from unsample.report._plots import axes_to_write, described_by, draw, view_to_plot, write_figure
from unsample.report._view import View
from unsample.report._writers import as_latex, as_markdown, as_notebook, as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Libraries of data frames; the first one that is installed is the default.
BACKENDS = ("polars", "pandas", "pyarrow")

#: Names of notes that have a class of warnings of their own, for Python's filters.
_CATEGORIES: dict[str, type[UnsampleWarning]] = {
    "biased": BiasedMethodWarning,
    "outside": BiasedMethodWarning,
    "refuted": RefutedWarning,
}


@dataclass(frozen=True)
class Note:
    """A caution beside the numbers: the ``name`` is for programs, the ``text`` for people."""

    name: str
    text: str


def warn_of(notes: Iterable[Note]) -> None:
    """Raise each note once as a warning of Python."""
    for note in dict.fromkeys(notes):
        warn(note.text, _CATEGORIES.get(note.name, UnsampleWarning))


class Result(ABC):
    """The base of every answer: it prints, and turns into JSON, a data frame, a page or a table.

    >>> import unsample
    >>> result = unsample.exact([1, 3, 20], items=100, metrics="Recall@10")
    >>> print(result.to_csv().splitlines()[0])
    metric,method,value,low,high,bound_low,bound_high,source,resolved
    >>> result.rows()[0]["metric"], round(result.rows()[0]["value"], 4)
    ('Recall@10', 0.6667)
    """

    #: The function that makes the view, as ``module:name``; it is loaded when it is needed.
    shown_by: ClassVar[str]
    #: Cautions beside the numbers.
    notes: tuple[Note, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the sentences of the notes."""
        return tuple(note.text for note in self.notes)

    @property
    def targets_read(self) -> int | None:
        """Return how many targets were read, over all models; None if none were."""
        return None

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it.

        ``schema`` is the version of its keys. The command adds ``inputs``: what it was given.
        """

    @staticmethod
    def header() -> dict[str, Any]:
        """Return the first keys of every `to_dict`: the versions of the keys and the package."""
        return {"schema": SCHEMA, "unsample": __version__}

    def sentence(self) -> str:
        """Return what was found, and how, as a sentence to paste into a paper.

        >>> import unsample
        >>> print(unsample.exact([1, 3, 20], items=100, metrics="Recall@10").sentence())
        ... # doctest: +ELLIPSIS
        Recall@10 is 0.6667 [0.0943, 0.9916] (95 % interval for users like these), ...
        """
        return self.view().sentence

    def view(self) -> View:
        """Return the parts that are shown, for text, tables, pages and plots."""
        module, _, name = self.shown_by.partition(":")
        view: View = getattr(import_whole(module), name)(self)
        return view

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `to_frame`."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return `rows` as a data frame.

        Parameters
        ----------
        backend
            ``"polars"``, ``"pandas"`` or ``"pyarrow"``; by default the first of these that is
            installed.

        Raises
        ------
        MissingExtraError
            If the library, or every one of them, is not installed.
        """
        return frame_of(self.rows(), backend)

    def to_csv(self) -> str:
        """Return `rows` as the text of a CSV file."""
        rows = self.rows()
        columns = dict.fromkeys(name for row in rows for name in row)
        text = io.StringIO()
        writer = csv.DictWriter(text, columns)
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
        chart: str | None = None,
        metric: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot a chart of the result, and return its matplotlib axes.

        Parameters
        ----------
        path
            A file to write as well, as SVG, PDF or PNG by its ending.
        chart
            The chart to plot: of estimates ``"metrics"``, their intervals, ``"curves"``, a metric
            at every K, or ``"ranks"``, P(R); of comparisons ``"models"`` or ``"differences"``. By
            default the one that sums up the result.
        metric
            The metric to plot if each has a plot of its own; by default the first.
        ax
            The axes to draw on; by default new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.

        Raises
        ------
        InputError
            If the result has no chart, or none of this metric.
        MissingExtraError
            If matplotlib is not installed.
        """
        drawn, index = view_to_plot(self, chart=chart, metric=metric)
        if ax is None and path is not None:
            ax = axes_to_write(drawn, index)
        axes = draw(drawn, index, ax=ax)
        if path is not None:
            write_figure(axes, path, described=described_by(self, chart))
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
    """Return one number if both are equal, and otherwise both.

    >>> one_or_range(99, 99), one_or_range(20, 99)
    (99, [20, 99])
    """
    return low if low == high else [low, high]


def or_none(value: float) -> float | None:
    """Return a number for JSON, which has no NaN and no infinity: they become None."""
    return value if math.isfinite(value) else None
