"""What a result says: one `Sheet` for each kind, from which text, tables, pages and plots come.

`sheet` makes it, by the type of the result; the modules beside this one register the types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from unsample.errors import InputError
from unsample.show._charts import Chart, intervals_of
from unsample.show._table import Table

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
class Sheet:
    """What a result says, in the order in which text says it."""

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

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables of text and papers."""
        return tuple(part.table for part in self.parts if part.table is not None and part.brief)


@functools.singledispatch
def sheet(result: object) -> Sheet:
    """Return what a result says; groups of estimates are a result, too."""
    raise InputError(
        "result must be what estimate, exact, compare, evaluate, published, plan or audit return, "
        f"or a mapping of names to estimates, got {type(result).__name__}"
    )
