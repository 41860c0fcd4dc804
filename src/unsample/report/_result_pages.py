"""One page for each kind of result: which words, charts and tables, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unsample._text import heading, health
from unsample.comparison import Comparison
from unsample.estimation import DEFAULT_LEVEL, Estimate, Estimates
from unsample.evaluation import Evaluated, Evaluation
from unsample.planning import Plan
from unsample.publication import Published
from unsample.report import _words
from unsample.report._charts import (
    Cell,
    Guide,
    IntervalChart,
    IntervalRow,
    IntervalView,
    LineChart,
    LineSeries,
    LineView,
    Table,
    as_numbers,
    number,
    words,
)
from unsample.report._page import Card, Page, Part
from unsample.report._plots import LEAST_ERROR
from unsample.report._result_charts import STYLE_ORDER, Curves, interval_row

__all__ = [
    "comparison_page",
    "estimates_page",
    "evaluated_page",
    "evaluation_page",
    "groups_page",
    "plan_page",
    "published_page",
]

#: More cards than this are a table in disguise.
_MOST_CARDS = 8
#: Curves of more models than this are not drawn; each needs linear programs at every K.
_MOST_CURVES = 12


def estimates_page(result: Estimates, *, verb: str = "") -> Page:
    """Return the page of estimates from one set of ranks, or of the metrics of full ranks."""
    return Page(
        verb=verb or ("exact" if result.certainty is None else "estimate"),
        title=_estimates_title(result),
        subtitle=heading(result),
        warnings=result.warnings,
        headline=(),
        cards=_cards(result),
        parts=(_results_part(result), *_curve_parts({"": result}, DEFAULT_LEVEL)),
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
                charts=(_interval_chart(_group_views(results)),),
                tables=(
                    Table("estimates", "All estimates", ("group", *_ESTIMATE_COLUMNS), tuple(rows)),
                ),
            ),
            *_curve_parts(results, DEFAULT_LEVEL),
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


def comparison_page(result: Comparison) -> Page:
    """Return the page of models side by side: the verdicts, then what they rest on."""
    first = next(iter(result.estimates.values()))
    how = "user by user" if result.paired else "unpaired"
    correction = "no correction" if result.correction == "none" else result.correction
    shown = result.excerpt()
    return Page(
        verb="compare",
        title=f"Which of {len(result.models)} models is truly better?",
        subtitle=f"{heading(first)}, compared {how}",
        warnings=result.warnings,
        headline=result.sentences(),
        cards=(),
        parts=(
            _differences_part(shown),
            _standings_part(shown),
            *_curve_parts(_first_models(shown), result.level),
        ),
        meanings=(*_words.COMPARISON_MEANINGS, *_words.meanings(first, result.level)),
        assumptions=_words.assumptions(first),
        settings=(
            ("Models", _models_in_words(result, shown)),
            ("Compared", how),
            ("Pairs", result.against),
            *_curves_left_out(shown),
            ("Level", f"{100 * result.level:g} %"),
            ("Correction for many pairs", correction),
            *_words.settings(first),
        ),
    )


def _first_models(result: Comparison) -> dict[str, Estimates]:
    """Return the models whose curves are drawn: more of them no eye can follow."""
    if len(result.models) <= _MOST_CURVES:
        return dict(result.estimates)
    metric = result.standings[0].metric
    rows = [one.model for one in result.standings if one.metric == metric]
    return {name: result.estimates[name] for name in rows[:_MOST_CURVES]}


def _curves_left_out(result: Comparison) -> tuple[tuple[str, str], ...]:
    if len(result.models) <= _MOST_CURVES:
        return ()
    metric = result.standings[0].metric
    return (("Curves", f"those of the {_MOST_CURVES} highest estimates of {metric}"),)


def _models_in_words(result: Comparison, shown: Comparison) -> str:
    names = ", ".join(shown.models)
    if shown is result:
        return names
    return f"{len(result.models):,}; shown here are the highest estimates: {names}"


def plan_page(result: Plan) -> Page:
    """Return the page of a plan: what to do, and what the other designs would give."""
    return Page(
        verb="plan",
        title=f"How to evaluate {result.metric} on {result.items:,} items",
        subtitle=f"{result.users:,} users, {result.metric} about {result.value:.4f}; "
        f"guess: {result.guess}",
        warnings=(),
        headline=(result.recommendation,),
        cards=(),
        parts=(
            Part("designs", "Designs at the same cost", tables=(_plan_table(result),)),
            Part("costs", "Error against cost", charts=(_plan_chart(result),)),
        ),
        meanings=_words.PLAN_MEANINGS,
        assumptions=(
            f"The guess of P(R): {result.guess}. A pilot evaluation gives a better one.",
            f"Errors of sampled designs come from {result.repeats:,} simulated evaluations.",
        ),
        settings=(
            ("Items", f"{result.items:,}"),
            ("Users", f"{result.users:,}"),
            ("Metric", result.metric.name),
            ("Error sought", number(result.precision, percent=True).text),
            ("Scored items a user", f"{result.cost:,.0f}"),
        ),
    )


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
    chart = _interval_chart((IntervalView("all", rows),))
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


def _interval_chart(views: tuple[IntervalView, ...]) -> IntervalChart:
    return IntervalChart(
        identity="intervals",
        title="Estimates with intervals and bounds",
        caption="Thick: the interval. Thin: the bounds, which hold whatever P(R) is.",
        x_label="metric on the full catalogue",
        views=views,
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


def _curve_parts(results: Mapping[str, Estimates], level: float) -> tuple[Part, ...]:
    charts = Curves.of(results, level).charts()
    if not charts:
        return ()
    at_k = Part("curves", "At every K", charts=charts[:1])
    if len(charts) == 1:
        return (at_k,)
    return at_k, Part("ranks", "Where the targets stand", charts=charts[1:])


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
        off = _relative(entry.value / truth - 1, sign=True) if truth > 0 else number(None)
        table.append((metric, method, number(truth), value, off, *rest))
    chart = replace(
        _interval_chart((IntervalView("all", rows),)),
        caption="Thick: the interval. Thin: the bounds. Diamond: the exact value of full ranks.",
    )
    caption = "All estimates beside the exact metrics of the same targets"
    return Part(
        "results",
        "Results",
        charts=(chart,),
        tables=(Table("estimates", caption, columns, tuple(table)),),
    )


def _differences_part(result: Comparison) -> Part:
    metrics = dict.fromkeys(one.metric for one in result.differences)
    views = tuple(
        IntervalView(
            metric,
            tuple(
                IntervalRow(
                    f"{one.a} \N{MINUS SIGN} {one.b}",
                    one.value,
                    one.low,
                    one.high,
                    note=str(one),
                    health="sure" if one.winner else "unsure",
                )
                for one in result.differences
                if one.metric == metric
            ),
        )
        for metric in metrics
    )
    chart = IntervalChart(
        identity="differences",
        title="Differences between models",
        caption=(
            f"Each line holds the true difference at {100 * result.level:g} %, chance and the "
            "bias of sampling included. A line that crosses zero leaves open which model is "
            "better."
        ),
        x_label="difference on the full catalogue",
        views=views,
        zero=True,
        sure="told apart",
        unsure="cannot be told apart",
    )
    rows = tuple(
        (
            words(one.metric),
            words(f"{one.a} \N{MINUS SIGN} {one.b}"),
            number(one.value, sign=True),
            number(one.low, sign=True),
            number(one.high, sign=True),
            _chances(one.least, one.most),
            _chance(one.if_alike),
            Cell("<0.001" if one.p_value < 0.001 else f"{one.p_value:.3f}", one.p_value),
            words(one.winner or "cannot tell"),
        )
        for one in result.differences
    )
    columns = (
        "metric",
        "a \N{MINUS SIGN} b",
        "difference",
        "low",
        "high",
        "a better",
        "if alike",
        "p",
        "winner",
    )
    table = Table("difference-table", "All differences", columns, rows)
    return Part("verdicts", "Differences", charts=(chart,), tables=(table,))


def _standings_part(result: Comparison) -> Part:
    metrics = dict.fromkeys(one.metric for one in result.standings)
    views = tuple(IntervalView(metric, tuple(_standing_row(result, metric))) for metric in metrics)
    rows = tuple(
        (
            words(one.metric),
            words(one.model),
            number(one.value),
            number(one.low),
            number(one.high),
            Cell(str(one.place), float(one.place)),
            _chances(one.least, one.most),
            _chance(one.if_alike),
        )
        for one in result.standings
    )
    columns = ("metric", "model", "estimate", "low", "high", "place", "best", "if alike")
    chart = replace(
        _interval_chart(views),
        title="Each model by itself",
        caption=(
            "Thick: the interval. Thin: the bounds. Intervals that overlap may still belong to "
            "models that are told apart, for differences are taken user by user."
            if result.paired
            else "Thick: the interval. Thin: the bounds."
        ),
    )
    return Part(
        "standings",
        "Models",
        charts=(chart,),
        tables=(Table("standing-table", "All standings", columns, rows),),
    )


def _standing_row(result: Comparison, metric: str) -> list[IntervalRow]:
    return [
        interval_row(one.model, result.estimates[one.model][metric], result.level)
        for one in result.standings
        if one.metric == metric
    ]


def _chance(value: float) -> Cell:
    return Cell(f"{100 * value:.0f} %", value)


def _chances(least: float, most: float) -> Cell:
    low, high = f"{100 * least:.0f}", f"{100 * most:.0f}"
    return Cell(f"{low} %" if low == high else f"{low} to {high} %", least)


def _plan_table(result: Plan) -> Table:
    needed = f"items for {100 * result.precision:.4g} %"
    rows = tuple(
        (
            words(one.design),
            Cell(f"{one.cost:,.0f}", one.cost),
            _relative(one.cost / result.items),
            _relative(one.bias / result.value, sign=True),
            _relative(one.sd / result.value),
            _relative(one.rmse / result.value),
            Cell(f"{result.needed[one.design]:,.0f}", result.needed[one.design]),
            words(one.setting),
        )
        for one in result.outcomes
    )
    columns = ("design", "items a user", "of all", "bias", "sd", "error", needed, "setting")
    return Table("design-table", "Designs at the same cost; errors are relative", columns, rows)


def _relative(share: float, *, sign: bool = False) -> Cell:
    text = f"{100 * share:{'+' if sign else ''}.3g} %" if share else "0 %"
    return Cell(text.replace("-", "\N{MINUS SIGN}"), share)


def _plan_chart(result: Plan) -> LineChart:
    costs = sorted({one.cost for one in result.curves})
    designs = dict.fromkeys(one.design for one in result.curves)
    errors = {
        (one.design, one.cost): one.rmse / result.value
        for one in result.curves
        if one.rmse > LEAST_ERROR * result.value
    }
    series = tuple(
        LineSeries(
            name, STYLE_ORDER[place], as_numbers([errors.get((name, cost)) for cost in costs])
        )
        for place, name in enumerate(designs)
    )
    view = LineView(
        "designs",
        f"error relative to {result.metric}",
        as_numbers(costs),
        tuple(f"{cost:,.0f} items a user" for cost in costs),
        series,
        guides=(
            Guide("y", result.precision, f"error sought, {100 * result.precision:.4g} %"),
            Guide("x", result.cost, f"{result.cost:,.0f} items a user"),
        ),
    )
    return LineChart(
        identity="error-against-cost",
        title="Error against cost",
        caption="Lower and further left is better; an error of zero leaves a logarithmic axis.",
        x_label="scored items a user",
        views=(view,),
        log_y=True,
        percent=True,
    )


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
