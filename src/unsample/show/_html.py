"""The interactive page of each kind of result: style, script and numbers in one file.

`page` says which words, charts and tables a result shows, by its type; other rooms register their
own types with ``page.register``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from unsample import __version__
from unsample._checks import import_extra
from unsample._files import write_atomically
from unsample.answers import (
    DEFAULT_LEVEL,
    Audit,
    Estimate,
    Estimates,
    Evaluation,
    Plan,
    Published,
)
from unsample.errors import InputError
from unsample.show._charts import (
    DESIGNS,
    Chart,
    estimates_chart,
    spec,
)
from unsample.show._curves import Curves
from unsample.show._sheet import (
    Table,
    check_groups,
    estimates_table,
    has_both,
    heading,
    is_exact,
    not_a_result,
    number,
    sheet,
    value_of,
)

#: More cards than this are a table in disguise.
_MOST_CARDS = 8


@dataclass(frozen=True)
class Part:
    """A section: charts, then tables."""

    identity: str
    title: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """Everything a page shows; warnings come before any number."""

    verb: str
    title: str
    subtitle: str
    parts: tuple[Part, ...]
    #: Names and values of what went in.
    settings: tuple[tuple[str, str], ...]
    #: What the words at the end of the page speak of, and which of them (``words.html``);
    #: None for no such words.
    about: Estimates | Plan | Audit | None
    words: Literal["estimates", "comparison", "plan", "audit"] = "estimates"
    level: float = DEFAULT_LEVEL
    warnings: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    #: Estimates that are shown at a glance.
    cards: tuple[Estimate, ...] = ()

    @property
    def known(self) -> bool:
        """Return whether nothing had to be estimated but from full ranks."""
        held = self.about
        if not isinstance(held, Estimates):
            return False
        return has_both(held) or all(map(is_exact, held.entries))


def templates() -> Any:
    """Return the templates of all pages; every text is escaped."""
    jinja2 = import_extra("jinja2", extra="report", purpose="an HTML report")
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("unsample.show"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["designs"] = DESIGNS
    return made


def as_html(result: object, *, title: str | None = None) -> str:
    """Return a result as one HTML page; same result, same bytes.

    The page needs no network. Its charts answer to mouse and keyboard, its tables sort, and every
    number of a chart also stands in a table.
    """
    found = templates()
    shown = page(result)
    if title is not None:
        shown = replace(shown, title=title)
    style = "".join(found.get_template(name).render() for name in ("style.css", "result.css"))
    script = found.loader.get_source(found, "result.js")[0]
    html: str = found.get_template("result.html").render(
        page=shown,
        is_exact=is_exact,
        value_of=value_of,
        spec=spec,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        version=__version__,
    )
    # A name from a file or a command line may hold half a character, which no page can.
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


def write_html(result: object, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write the page of a result into a file, at once or not at all; return its path."""
    content = as_html(result, title=title).encode("utf-8")
    write_atomically(Path(path), lambda file: file.write(content))
    return Path(path)


def _hash(text: str) -> str:
    """Return what a content security policy knows a text by, so that no other text runs."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


# --- pages of results --------------------------------------------------------------------------


@functools.singledispatch
def page(result: object) -> Page:
    """Return what the interactive page of a result shows; it takes what `sheet` takes."""
    raise InputError(not_a_result(result))


@page.register
def _(result: Estimates) -> Page:
    known = all(map(is_exact, result.entries))
    verb, kind = ("exact", "Exact") if known else ("estimate", "Full-catalogue")
    return Page(
        verb=verb,
        title=f"{kind} {_listed(result)}",
        subtitle=heading(result),
        warnings=result.warnings,
        cards=result.entries if len(result.entries) <= _MOST_CARDS else (),
        parts=_estimates_parts({"": result}, "All values; an interval is that of 95 %"),
        about=result,
        settings=settings_of(result),
    )


def _listed(result: Estimates) -> str:
    names = [metric.name for metric in result.metrics]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and more"


@page.register
def _(result: Mapping) -> Page:  # type: ignore[type-arg]
    groups = check_groups(result)
    said = sheet(groups)
    return Page(
        verb="estimate",
        title=f"Full-catalogue metrics of {len(groups):,} groups",
        subtitle="; ".join(said.title),
        warnings=said.warnings,
        parts=_estimates_parts(groups, "All estimates"),
        about=next(iter(groups.values())),
        settings=tuple(
            (f"{name}: {label}", text)
            for name, held in groups.items()
            for label, text in settings_of(held)
        ),
    )


@page.register
def _(result: Published) -> Page:
    whole = page.dispatch(Estimates)(result)
    columns = {
        "metric": lambda row: row.name,
        "printed": lambda row: number(row.value),
        "low": lambda row: number(row.low),
        "high": lambda row: number(row.high),
    }
    caption = "The numbers as printed, and the range that rounding leaves them"
    printed = Table.of(result.numbers, columns, caption, "numbers")
    return replace(
        whole,
        verb="published",
        title=f"From printed numbers to {_listed(result)} on the full catalogue",
        parts=(*whole.parts, Part("printed", "Printed numbers", tables=(printed,))),
    )


@page.register
def _(result: Evaluation) -> Page:
    whole = page.dispatch(Estimates)(result)
    return replace(
        whole,
        verb="evaluate",
        headline=(f"{result.cost[:1].upper()}{result.cost[1:]}.",),
        settings=(("Design", str(result.design)), ("Seed", str(result.rng)), *whole.settings),
    )


def settings_of(result: Estimates) -> tuple[tuple[str, str], ...]:
    """Return what went in, and how the solvers ended."""
    solvers = {entry.method: entry.solver for entry in result.entries if entry.solver}
    return (
        ("Ranks", heading(result)),
        ("Candidates", result.candidates or "not stated"),
        *((f"Solver of {method}", text) for method, text in solvers.items()),
    )


def _estimates_parts(results: Mapping[str, Estimates], caption: str) -> tuple[Part, ...]:
    table = estimates_table(results, caption)
    first = Part("results", "Results", (estimates_chart(results),), (table,))
    return (first, *curve_parts(results))


def curve_parts(results: Mapping[str, Estimates], level: float = DEFAULT_LEVEL) -> tuple[Part, ...]:
    """Return the parts with metrics at every K and with P(R), where these are known."""
    charts = Curves.of(results, level).charts()
    parts = (
        Part("curves", "At every K", charts[:1]),
        Part("ranks", "Where the targets stand", charts[1:]),
    )
    return tuple(part for part in parts if part.charts)
