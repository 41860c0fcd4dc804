"""`View`: the parts of a result that are shown, for text, tables, pages and plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from unsample.errors import InputError
from unsample.report._charts import Chart, intervals_of
from unsample.report._table import Table

#: Words and their meanings, or the names of settings and their values.
Notes: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """A table and the chart of its intervals; or another chart, which is made when it is drawn."""

    title: str
    table: Table | None = None
    drawn: Callable[[], Chart | None] = lambda: None
    #: Whether text and papers show it too, or only pages.
    brief: bool = True
    #: Whether a page shows its title alone until a reader opens it.
    folded: bool = False

    @property
    def chart(self) -> Chart | None:
        """Return the chart, if there is one."""
        return self.drawn() if self.table is None else intervals_of(self.table)


@dataclass(frozen=True)
class View:
    """The parts of a result that are shown, in the order of text."""

    #: The verb of the command that gives such a result.
    verb: str
    #: The heading of its page.
    title: str
    #: The data that the numbers come from.
    about: tuple[str, ...]
    parts: tuple[Part, ...]
    #: The answers, in sentences.
    verdicts: tuple[str, ...] = ()
    #: The meanings of words in the tables.
    notes: Notes = ()
    warnings: tuple[str, ...] = ()
    #: The arguments, for pages and verbose text.
    settings: Notes = ()
    #: The index of the part that is plotted; if it has no chart, the next part that has one.
    plotted: int = 0
    #: What was found, and how, to paste into a paper.
    sentence: str = ""

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables of text and papers."""
        return tuple(part.table for part in self.parts if part.table is not None and part.brief)


def view_of(result: object) -> View:
    """Return the view of a result, or of a dict of names and results of one kind.

    Raises
    ------
    InputError
        If it is no such result.
    """
    make_view = getattr(result, "view", None)
    if callable(make_view):
        view: View = make_view()
        return view
    if isinstance(result, Mapping) and result:
        groups = {str(name): group for name, group in result.items()}
        first = next(iter(groups.values()))
        one_kind = len({type(group) for group in groups.values()}) == 1
        if one_kind and hasattr(first, "view_of_groups"):
            view_of_all: View = first.view_of_groups(groups)
            return view_of_all
    raise InputError(
        "result must be what estimate, exact, compare, evaluate, published, plan or audit return, "
        f"or a dict of names and estimates, got {type(result).__name__}"
    )
