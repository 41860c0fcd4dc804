"""The interactive page of each kind of result: which words, charts and tables, in which order.

`page` makes one of any result, by its type; other rooms register their own types with
``page.register``. It is HTML only in `unsample.pages._html`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from unsample.answers import (
    DEFAULT_LEVEL,
    Comparison,
    Estimate,
    Estimates,
    Evaluation,
    Plan,
    Published,
)
from unsample.errors import InputError
from unsample.pages._charts import (
    Chart,
    differences_chart,
    estimates_chart,
    groups_chart,
    plan_chart,
)
from unsample.pages._curves import Curves
from unsample.pages._sheet import (
    Table,
    check_groups,
    estimates_table,
    heading,
    health,
    not_a_result,
    number,
    sheet,
)

#: More cards than this are a table in disguise.
_MOST_CARDS = 8
#: Models whose curves are drawn.
_MOST_CURVES = 12


@dataclass(frozen=True)
class Card:
    """A result at a glance."""

    name: str
    value: str
    detail: str
    #: In a word or two, whether it may be relied on, and whether that is good news.
    health: str
    good: bool


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
    #: What the words at the end of the page speak of, and which of them (``words.html``).
    about: Estimates | Plan
    words: Literal["estimates", "comparison", "plan"] = "estimates"
    level: float = DEFAULT_LEVEL
    warnings: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()


@functools.singledispatch
def page(result: object) -> Page:
    """Return what the interactive page of a result shows; it takes what `sheet` takes."""
    raise InputError(not_a_result(result))


@page.register
def _(result: Estimates) -> Page:
    names = [metric.name for metric in result.metrics]
    listed = ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and more"
    caption = "All values; an interval is that of 95 %"
    table = estimates_table({"": result}, caption, standard_errors=True)
    kind = "Exact" if result.certainty is None else "Full-catalogue"
    return Page(
        verb="exact" if result.certainty is None else "estimate",
        title=f"{kind} {listed}",
        subtitle=heading(result),
        warnings=result.warnings,
        cards=_cards(result),
        parts=(
            Part("results", "Results", (estimates_chart(result),), (table,)),
            *_curve_parts({"": result}),
        ),
        about=result,
        settings=_settings(result),
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
        title=f"From printed numbers to {whole.title.partition(' ')[2]} on the full catalogue",
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


@page.register
def _(result: Mapping) -> Page:  # type: ignore[type-arg]
    groups = check_groups(result)
    first = next(iter(groups.values()))
    table = estimates_table(groups, "All estimates", standard_errors=True)
    return Page(
        verb="estimate",
        title=f"Full-catalogue metrics of {len(groups):,} groups",
        subtitle="; ".join(sheet(groups).title),
        warnings=sheet(groups).warnings,
        parts=(
            Part("results", "Results", (groups_chart(groups),), (table,)),
            *_curve_parts(groups),
        ),
        about=first,
        settings=tuple(
            (f"{name}: {label}", text)
            for name, held in groups.items()
            for label, text in _settings(held)
        ),
    )


@page.register
def _(result: Comparison) -> Page:
    said, shown = sheet(result), result.excerpt()
    first = next(iter(result.estimates.values()))
    alone = "Thick: the interval. Thin: the bounds."
    if result.paired:
        alone += (
            " Intervals that overlap may still belong to models that are told apart, for "
            "differences are taken user by user."
        )
    models = groups_chart(shown.estimates, result.level, highest_first=True)
    models = replace(models, title="Each model by itself", caption=alone)
    # More curves no eye can follow, and each needs linear programs at every K.
    highest = dict.fromkeys(row.model for row in shown.standings)
    curves = {name: shown.estimates[name] for name in list(highest)[:_MOST_CURVES]}
    settings = {
        "Models": f"{len(result.models):,}; in tables and charts: {', '.join(shown.models)}",
        "Compared": "user by user" if result.paired else "unpaired",
        "Pairs": result.against,
        "Curves": ", ".join(curves),
        "Level": f"{100 * result.level:g} %",
        "Correction for many pairs": result.correction,
    }
    standings, differences = said.tables
    return Page(
        verb="compare",
        title=f"Which of {len(result.models)} models is truly better?",
        subtitle=said.title[0].partition(", ")[2],
        warnings=result.warnings,
        headline=said.verdicts,
        parts=(
            Part("verdicts", "Differences", (differences_chart(result),), (differences,)),
            Part("standings", "Models", (models,), (standings,)),
            *_curve_parts(curves, result.level),
        ),
        about=first,
        words="comparison",
        level=result.level,
        settings=(*settings.items(), *_settings(first)),
    )


@page.register
def _(result: Plan) -> Page:
    said = sheet(result)
    return Page(
        verb="plan",
        title=f"How to evaluate {result.metric} on {result.items:,} items",
        subtitle="; ".join(said.title),
        warnings=said.warnings,
        headline=(result.recommendation,),
        parts=(
            Part("designs", "Designs at the same cost", tables=said.tables),
            Part("costs", "Error against cost", charts=(plan_chart(result),)),
        ),
        about=result,
        words="plan",
        settings=(
            ("Items", f"{result.items:,}"),
            ("Users", f"{result.users:,}"),
            ("Metric", result.metric.name),
            ("Error sought", f"{100 * result.precision:.4g} %"),
            ("Budget", f"{result.budget:,.0f} scores"),
        ),
    )


def _settings(result: Estimates) -> tuple[tuple[str, str], ...]:
    """Return what went in, and how the solvers ended."""
    solvers = {entry.method: str(entry.certificate) for entry in result.entries}
    return (
        ("Ranks", heading(result)),
        ("Candidates", result.candidates or "not stated"),
        *((f"Solver of {method}", text) for method, text in solvers.items()),
    )


def _curve_parts(
    results: Mapping[str, Estimates], level: float = DEFAULT_LEVEL
) -> tuple[Part, ...]:
    """Return the parts with metrics at every K and with P(R), where these are known."""
    at_k, *ranks = Curves.of(results, level).charts() or (None,)
    if at_k is None:
        return ()
    first = Part("curves", "At every K", (at_k,))
    return (first, Part("ranks", "Where the targets stand", tuple(ranks))) if ranks else (first,)


def _cards(result: Estimates) -> tuple[Card, ...]:
    if len(result.entries) > _MOST_CARDS:
        return ()
    several = len(result.methods) > 1
    return tuple(
        Card(
            name=f"{entry.metric}, {entry.method}" if several else entry.metric.name,
            value=str(number(entry.value)),
            detail=_interval_in_words(entry),
            health="exact" if entry.certainty is None else health(entry).lower(),
            good=entry.resolved and entry.credible and not entry.clipped,
        )
        for entry in result.entries
    )


def _interval_in_words(entry: Estimate) -> str:
    low, high = entry.interval()
    return "nothing varies" if math.isnan(low) else f"{low:.4f} to {high:.4f}"
