"""A page before it is HTML: what it says, in the order in which it says it."""

from __future__ import annotations

from dataclasses import dataclass

from unsample.pages._charts import Chart, Table

__all__ = ["Card", "Page", "Part"]


@dataclass(frozen=True)
class Card:
    """One result at a glance."""

    name: str
    value: str
    detail: str
    #: In a word or two, whether it may be relied on, and whether that is good news.
    health: str
    good: bool


@dataclass(frozen=True)
class Part:
    """A section: words, then charts, then tables."""

    identity: str
    title: str
    words: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """Everything a page shows; warnings come before any number."""

    verb: str
    title: str
    subtitle: str
    warnings: tuple[str, ...]
    headline: tuple[str, ...]
    cards: tuple[Card, ...]
    parts: tuple[Part, ...]
    #: Terms and what they mean.
    meanings: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]
    #: Names and values of what went in.
    settings: tuple[tuple[str, str], ...]
