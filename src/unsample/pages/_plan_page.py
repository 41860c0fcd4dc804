"""The page of a plan: what each way of evaluating costs, and how far off it would be."""

from __future__ import annotations

from unsample.answers.planning import Plan
from unsample.pages import _words
from unsample.pages._charts import (
    Cell,
    Guide,
    LineChart,
    LineSeries,
    LineView,
    Table,
    as_numbers,
    number,
    share_of,
    words,
)
from unsample.pages._page import Page, Part
from unsample.pages._plots import LEAST_ERROR
from unsample.pages._result_charts import STYLE_ORDER


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


def _plan_table(result: Plan) -> Table:
    needed = f"items for {100 * result.precision:.4g} %"
    rows = tuple(
        (
            words(one.design),
            Cell(f"{one.cost:,.0f}", one.cost),
            share_of(one.cost / result.items),
            share_of(one.bias / result.value, sign=True),
            share_of(one.sd / result.value),
            share_of(one.rmse / result.value),
            Cell(f"{result.needed[one.design]:,.0f}", result.needed[one.design]),
            words(one.setting),
        )
        for one in result.outcomes
    )
    columns = ("design", "items a user", "of all", "bias", "sd", "error", needed, "setting")
    return Table("design-table", "Designs at the same cost; errors are relative", columns, rows)


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
