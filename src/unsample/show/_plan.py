"""What a plan says, and its chart."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from unsample.answers import Plan, percent
from unsample.show._charts import Guide, LineChart, LineView, Series, style
from unsample.show._sheet import Part, Sheet, sheet
from unsample.show._table import DASH, Columns, Number, Table, number

#: Smaller relative errors are none, and leave a logarithmic axis.
_LEAST_ERROR = 1e-4


@sheet.register
def _(result: Plan) -> Sheet:
    columns: Columns[Any] = {
        "design": lambda row: row.name,
        "scores": lambda row: Number(f"{row.cost:,.0f}", row.cost),
        "of all": lambda row: _percent(row.cost / result.full),
        "interval": lambda row: Number(f"± {_percent(row.half_width / result.value)}"),
        "tells apart": lambda row: number(row.smallest_difference),
        "setting": lambda row: row.setting,
    }
    table = Table.of(result.outcomes, columns)
    what = f"{result.users:,} users, {result.items:,} items"
    return Sheet(
        verb="plan",
        title=f"How to evaluate {result.metric} on {result.items:,} items",
        about=(f"{what}, {result.metric} about {result.value:.4f}", f"guess: {result.guess}"),
        parts=(
            Part("Designs", replace(table, caption="Designs and their cost", identity="designs")),
            Part("Against cost", drawn=partial(plan_chart, result)),
        ),
        verdicts=(result.recommendation,),
        notes=(
            ("interval", "at 95 %, of these users ranked in full, relative"),
            ("tells apart", "the smallest difference of two models, unpaired, each at this cost"),
        ),
        warnings=result.warnings,
        settings=(
            ("Half-width sought", f"{100 * result.error:.4g} %"),
            ("Budget", f"{result.budget:,.0f} scores"),
        ),
    )


def _percent(share: float) -> Number:
    return Number(DASH) if math.isnan(share) else Number(percent(share), share)


def plan_chart(result: Plan) -> LineChart:
    """Return the half-width of each design's interval against its cost."""
    widths = {(row.name, row.cost): row.half_width / result.value for row in result.curves}
    costs = sorted({cost for _, cost in widths})
    series = []
    for place, name in enumerate(dict.fromkeys(row.name for row in result.curves)):
        curve = np.array([widths.get((name, cost), np.nan) for cost in costs])
        series.append(Series(name, style(place), np.where(curve > _LEAST_ERROR, curve, np.nan)))
    view = LineView(
        "designs",
        f"half-width relative to {result.metric}",
        tuple(costs),
        tuple(f"{cost:,.0f} scores" for cost in costs),
        tuple(series),
        guides=(
            Guide("y", result.error, f"± {100 * result.error:.4g} %"),
            Guide("x", result.budget, f"{result.budget:,.0f} scores"),
        ),
    )
    return LineChart(
        identity="costs",
        title="Half the width of the interval against cost",
        caption="Lower and further left is better. A logarithmic axis cannot show widths of zero.",
        x_label="scores in total",
        views=(view,),
        log_y=True,
        percent=True,
    )
