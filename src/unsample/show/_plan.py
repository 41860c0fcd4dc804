"""How a plan reads: its sheet, its page and its chart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unsample.answers import Plan, percent
from unsample.show._charts import Guide, LineChart, LineView, Series, style
from unsample.show._html import Page, Part, page
from unsample.show._sheet import DASH, Columns, Number, Sheet, Table, number, sheet

#: Smaller relative errors are none, and leave a logarithmic axis.
_LEAST_ERROR = 1e-4


@sheet.register
def _(result: Plan) -> Sheet:
    columns: Columns[Any] = {
        "design": lambda row: row.name,
        "scores": lambda row: _whole(row.cost),
        "of all": lambda row: _percent(row.cost / result.full),
        "interval": lambda row: Number(f"± {_percent(row.half_width / result.value)}"),
        "tells apart": lambda row: number(row.smallest_difference),
        "setting": lambda row: row.setting,
    }
    what = f"{result.users:,} users, {result.items:,} items"
    if result.targets > result.users:
        what = f"{result.targets:,} targets of {what}"
    level = f"{100 * result.level:g} %"
    caption = "Designs at the same cost" if result.allowed else "Designs at the cost they need"
    legend = (
        f"interval:    for {result.metric} of these users ranked in full, at {level}, relative to "
        "it\n"
        "tells apart: the smallest difference between two models, unpaired; costs are of one model"
    )
    return Sheet(
        title=(f"{what}, {result.metric} about {result.value:.4f}", f"guess: {result.guess}"),
        tables=(Table.of(result.outcomes, columns, caption, "design-table"),),
        notes=(legend, result.recommendation),
        warnings=result.warnings,
    )


def _whole(value: float) -> Number:
    return Number(f"{value:,.0f}", value)


def _percent(share: float) -> Number:
    return Number(DASH) if math.isnan(share) else Number(percent(share), share)


@page.register
def _(result: Plan) -> Page:
    said, chart = sheet(result), plan_chart(result)
    return Page(
        verb="plan",
        title=f"How to evaluate {result.metric} on {result.items:,} items",
        subtitle="; ".join(said.title),
        warnings=said.warnings,
        headline=(result.recommendation,),
        parts=(
            Part("designs", "Designs", tables=said.tables),
            Part("costs", chart.title, charts=(chart,)),
        ),
        about=result,
        words="plan",
        settings=(
            ("Items", f"{result.items:,}"),
            ("Users", f"{result.users:,}"),
            ("Metric", result.metric.name),
            ("Half-width sought", f"{100 * result.error:.4g} %"),
            ("Budget", f"{result.budget:,.0f} scores"),
        ),
    )


def plan_chart(result: Plan) -> LineChart:
    """Return the half-width of each design's interval against its cost."""
    widths = {(row.name, row.cost): row.half_width / result.value for row in result.curves}
    costs = sorted({cost for _, cost in widths})
    curves = {
        name: np.array([widths.get((name, cost), np.nan) for cost in costs])
        for name in dict.fromkeys(row.name for row in result.curves)
    }
    view = LineView(
        "designs",
        f"half-width relative to {result.metric}",
        tuple(costs),
        tuple(f"{cost:,.0f} scores" for cost in costs),
        tuple(
            Series(name, style(place), np.where(curve > _LEAST_ERROR, curve, np.nan))
            for place, (name, curve) in enumerate(curves.items())
        ),
        guides=(
            Guide("y", result.error, f"± {100 * result.error:.4g} %"),
            Guide("x", result.budget, f"{result.budget:,.0f} scores"),
        ),
    )
    return LineChart(
        identity="width-against-cost",
        title="Width of the interval against cost",
        caption="Lower and further left is better. A logarithmic axis cannot show widths of zero.",
        x_label="scores in total",
        views=(view,),
        log_y=True,
        percent=True,
    )
