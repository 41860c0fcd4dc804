"""What is shown of a result: one `View`, from which text, tables, pages and plots come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from unsample.errors import InputError
from unsample.report._charts import Chart, intervals_of
from unsample.report._table import Table

#: A word and what it means, or what went in and its value.
Notes: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """A table, with a chart of its intervals, or another chart, made where it is drawn."""

    title: str
    table: Table | None = None
    drawn: Callable[[], Chart | None] = lambda: None
    #: Whether it stands in text and papers too, and not on pages alone.
    brief: bool = True

    @property
    def chart(self) -> Chart | None:
        """Return the chart, if there is one."""
        return self.drawn() if self.table is None else intervals_of(self.table)


@dataclass(frozen=True)
class View:
    """What is shown of a result, in the order in which text shows it."""

    #: The verb of the command that gives such a result, and the heading of its page.
    verb: str
    title: str
    #: What the numbers are based on.
    about: tuple[str, ...]
    parts: tuple[Part, ...]
    #: What was found, in sentences.
    verdicts: tuple[str, ...] = ()
    #: What words of the tables mean.
    notes: Notes = ()
    warnings: tuple[str, ...] = ()
    #: What went in, for pages and where more is asked for.
    settings: Notes = ()
    #: Which part sums the result up in one plot, if it has a chart; else the next that has one.
    plotted: int = 0

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables of text and papers."""
        return tuple(part.table for part in self.parts if part.table is not None and part.brief)


def view_of(result: object) -> View:
    """Return what is shown of a result, or of a dict of names and results of one kind."""
    show = getattr(result, "view", None)
    if callable(show):
        view: View = show()
        return view
    if isinstance(result, Mapping) and result:
        groups = {str(name): each for name, each in result.items()}
        first = next(iter(groups.values()))
        if hasattr(first, "view_of_groups") and len({type(each) for each in groups.values()}) == 1:
            together: View = first.view_of_groups(groups)
            return together
    raise InputError(
        "result must be what estimate, exact, compare, evaluate, published, plan or audit return, "
        f"or a dict of names and estimates, got {type(result).__name__}"
    )
