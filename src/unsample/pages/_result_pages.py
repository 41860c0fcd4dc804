"""One page for each kind of result: which words, charts and tables, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unsample.answers import DEFAULT_LEVEL, Estimate, Estimates
from unsample.answers.evaluation import Evaluated
from unsample.answers.publication import Published
from unsample.lab.side_by_side import Evaluation
from unsample.pages import _words
from unsample.pages._charts import (
    Cell,
    IntervalView,
    Table,
    number,
    share_of,
    words,
)
from unsample.pages._page import Card, Page, Part
from unsample.pages._result_charts import (
    curve_parts,
    interval_chart,
    interval_row,
)
from unsample.pages._text import heading, health

__all__ = [
    "estimates_page",
    "evaluated_page",
    "evaluation_page",
    "groups_page",
    "published_page",
]

#: More cards than this are a table in disguise.
_MOST_CARDS = 8


def estimates_page(result: Estimates, *, verb: str = "") -> Page:
    """Return the page of estimates from one set of ranks, or of the metrics of full ranks."""
    return Page(
        verb=verb or ("exact" if result.certainty is None else "estimate"),
        title=_estimates_title(result),
        subtitle=heading(result),
        warnings=result.warnings,
        headline=(),
        cards=_cards(result),
        parts=(_results_part(result), *curve_parts({"": result}, DEFAULT_LEVEL)),
        meanings=_words.meanings(result, DEFAULT_LEVEL),
        assumptions=_words.assumptions(result),
        settings=_words.settings(result),
    )


def groups_page(results: Mapping[str, Estimates]) -> Page:
    """Return the page of estimates for several groups of ranks."""
    first = next(iter(results.values()))
    rows = [
        (words(name), *_estimate_cells(entry))
        for name, one in results.items()
        for entry in one.entries
    ]
    return Page(
        verb="estimate",
        title=f"Full-catalogue metrics of {len(results):,} groups",
        subtitle="; ".join(f"{name}: {heading(one)}" for name, one in results.items()),
        warnings=tuple(dict.fromkeys(text for one in results.values() for text in one.warnings)),
        headline=(),
        cards=(),
        parts=(
            Part(
                "results",
                "Results",
                charts=(interval_chart(_group_views(results)),),
                tables=(
                    Table("estimates", "All estimates", ("group", *_ESTIMATE_COLUMNS), tuple(rows)),
                ),
            ),
            *curve_parts(results, DEFAULT_LEVEL),
        ),
        meanings=_words.meanings(first, DEFAULT_LEVEL),
        assumptions=_words.assumptions(first),
        settings=tuple(
            (f"{name}: {label}", text)
            for name, one in results.items()
            for label, text in _words.settings(one)
        ),
    )


def published_page(result: Published) -> Page:
    """Return the page of estimates from a paper's numbers, which it lists first."""
    printed = Table(
        "numbers",
        "The numbers as printed, and the range that rounding leaves them",
        ("metric", "printed", "low", "high"),
        tuple(
            (words(one.name), number(one.value), number(one.low), number(one.high))
            for one in result.numbers
        ),
    )
    page = estimates_page(result, verb="published")
    return replace(
        page,
        title=f"From printed numbers to {_metric_list(result)} on the full catalogue",
        parts=(*page.parts, Part("printed", "Printed numbers", tables=(printed,))),
    )


def evaluated_page(result: Evaluated) -> Page:
    """Return the page of a scorer's evaluation, with what it cost."""
    page = estimates_page(result.estimates, verb="evaluate")
    return replace(
        page,
        warnings=result.warnings,
        headline=(f"{_capitalised(result.cost)}.",),
        settings=(("Design", str(result.design)), ("Seed", str(result.seed)), *page.settings),
    )


def evaluation_page(result: Evaluation) -> Page:
    """Return the page of an evaluation whose exact metrics are known beside the estimates."""
    targets = result.targets
    where = f"{targets.recommender} on {targets.dataset}"
    source = f"{targets.source} ranks, {targets.protocol} protocol"
    page = estimates_page(
        result.exact if result.estimates is None else result.estimates, verb="evaluate"
    )
    page = replace(
        page,
        title=f"{where}: {page.title[0].lower()}{page.title[1:]}",
        subtitle=f"{page.subtitle} ({source})",
        warnings=result.warnings,
        headline=(targets.note,) if targets.note else (),
    )
    if result.estimates is None:
        return page
    return replace(page, parts=(_beside_truth(result, result.estimates), *page.parts[1:]))


_ESTIMATE_COLUMNS = (
    "metric",
    "method",
    "estimate",
    "low",
    "high",
    "bound low",
    "bound high",
    "standard error",
    "health",
)


def _estimate_cells(entry: Estimate) -> tuple[Cell, ...]:
    numbers = (entry.value, *entry.interval(), *entry.bounds(), entry.standard_error)
    return (
        words(entry.metric.name),
        words(entry.method),
        *(number(value) for value in numbers),
        words(_health(entry)),
    )


def _health(entry: Estimate) -> str:
    """Return the health in small letters: the page has colours and shapes to shout with."""
    return "exact" if entry.certainty is None else health(entry).lower()


def _estimates_title(result: Estimates) -> str:
    kind = "Full-catalogue" if result.certainty is not None else "Exact"
    return f"{kind} {_metric_list(result)}"


def _metric_list(result: Estimates) -> str:
    names = [metric.name for metric in result.metrics]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and more"


def _cards(result: Estimates) -> tuple[Card, ...]:
    if len(result.entries) > _MOST_CARDS:
        return ()
    return tuple(
        Card(
            name=entry.metric.name + (f", {entry.method}" if len(result.methods) > 1 else ""),
            value=number(entry.value).text,
            detail=_words.limits_in_words(*entry.interval()),
            health=_health(entry),
            good=entry.resolved and entry.credible and not entry.clipped,
        )
        for entry in result.entries
    )


def _results_part(result: Estimates) -> Part:
    several = len(result.methods) > 1
    rows = tuple(
        interval_row(
            f"{entry.metric}, {entry.method}" if several else entry.metric.name,
            entry,
            DEFAULT_LEVEL,
        )
        for entry in result.entries
    )
    table = Table(
        "estimates",
        "All values; low and high are the ends of the 95 % interval",
        _ESTIMATE_COLUMNS,
        tuple(_estimate_cells(entry) for entry in result.entries),
    )
    chart = interval_chart((IntervalView("all", rows),))
    if result.certainty is None:
        table = _without(table, "bound low", "bound high")
        chart = replace(
            chart,
            title="Values with intervals",
            caption="Each line says how far the value would move with other users like these.",
            sure="exact",
        )
    return Part("results", "Results", charts=(chart,), tables=(table,))


def _without(table: Table, *names: str) -> Table:
    """Return the table without the columns of these names."""
    kept = [place for place, name in enumerate(table.columns) if name not in names]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
    )


def _group_views(results: Mapping[str, Estimates]) -> tuple[IntervalView, ...]:
    metrics = dict.fromkeys(metric for one in results.values() for metric in one.metrics)
    return tuple(
        IntervalView(
            metric.name,
            tuple(
                interval_row(
                    f"{name}, {entry.method}" if len(one.methods) > 1 else name,
                    entry,
                    DEFAULT_LEVEL,
                )
                for name, one in results.items()
                for entry in one.entries
                if entry.metric == metric
            ),
        )
        for metric in metrics
    )


def _beside_truth(result: Evaluation, estimates: Estimates) -> Part:
    """Return the results with the exact value in every row."""
    truths = {entry.metric: entry.value for entry in result.exact.entries}
    rows = tuple(
        interval_row(
            f"{entry.metric}, {entry.method}", entry, DEFAULT_LEVEL, truth=truths[entry.metric]
        )
        for entry in estimates.entries
    )
    columns = (*_ESTIMATE_COLUMNS[:2], "exact", "estimate", "off by", *_ESTIMATE_COLUMNS[3:])
    table = []
    for entry in estimates.entries:
        metric, method, value, *rest = _estimate_cells(entry)
        truth = truths[entry.metric]
        off = share_of(entry.value / truth - 1, sign=True) if truth > 0 else number(None)
        table.append((metric, method, number(truth), value, off, *rest))
    chart = replace(
        interval_chart((IntervalView("all", rows),)),
        caption="Thick: the interval. Thin: the bounds. Diamond: the exact value of full ranks.",
    )
    caption = "All estimates beside the exact metrics of the same targets"
    return Part(
        "results",
        "Results",
        charts=(chart,),
        tables=(Table("estimates", caption, columns, tuple(table)),),
    )


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
