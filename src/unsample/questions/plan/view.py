"""What is shown of a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unsample import __version__
from unsample._rounding import percent
from unsample.questions.plan.result import Plan
from unsample.report import Columns, Number, Part, Table, View, number


def view_of_plan(result: Plan) -> View:
    """Return the view of a plan."""
    columns: Columns[Any] = {
        "design": lambda row: row.name,
        "scores": lambda row: Number(f"{row.cost:,.0f}", row.cost),
        "of all": lambda row: _percent(row.cost / result.full),
        "interval": lambda row: Number(f"± {_percent(row.half_width / result.value)}"),
        "tells apart": lambda row: number(row.smallest_difference),
        "setting": lambda row: row.setting,
    }
    table = Table.of(result.outcomes, columns)
    what = f"{result.users:,} users, {result.catalogue:,} items"
    return View(
        verb="plan",
        title=f"How to evaluate {result.metric} on {result.catalogue:,} items",
        about=(f"{what}, {result.metric} about {result.value:.4f}", f"guess: {result.guess}"),
        parts=(
            Part("Designs", replace(table, caption="Designs and their cost", identity="designs")),
        ),
        verdicts=(result.recommendation,),
        sentence=(
            f"The evaluation of {result.metric} on {what} was planned with unsample {__version__}: "
            f"design {result.best.name}, {result.best.cost:,.0f} scores."
        ),
        notes=(
            ("interval", "at 95 %, of these users ranked in full, relative"),
            ("tells apart", "the smallest difference of two models, unpaired, each at this cost"),
        ),
        settings=(
            ("Odds of the guide", f"{result.odds:g}"),
            ("Half-width sought", f"{100 * result.error:.4g} %"),
            ("Budget", f"{result.budget:,.0f} scores"),
        ),
    )


def _percent(share: float) -> Number:
    return Number(percent(share), share)
