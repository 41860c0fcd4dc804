"""Plots of results with matplotlib: each takes a result and axes, and returns the axes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import check_choice, import_extra
from unsample._files import write_atomically
from unsample.errors import FileError, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unsample.estimation import Estimates
    from unsample.planning import Plan

__all__ = ["plot_limits", "plot_plan", "write_plot"]

_FORMATS = ("pdf", "png", "svg")
#: K at which limits are drawn.
_POINTS = 24
#: Smaller relative errors are none, and leave a logarithmic axis.
_LEAST_ERROR = 1e-4


def plot_plan(result: Plan, *, ax: Axes | None = None) -> Axes:
    """Draw the expected error of each design against its cost."""
    axes = _axes(ax)
    for name in dict.fromkeys(outcome.design for outcome in result.curves):
        curve = [
            (outcome.cost, outcome.rmse / result.value)
            for outcome in result.curves
            if outcome.design == name and outcome.rmse > _LEAST_ERROR * result.value
        ]
        axes.plot(*np.reshape(curve, (-1, 2)).T, marker="o", label=name)
    axes.axhline(result.precision, color="grey", linestyle="--", linewidth=1)
    axes.axvline(result.cost, color="grey", linestyle=":", linewidth=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="scored items a user",
        ylabel=f"error relative to {result.metric}",
        title=f"{result.users:,} users, {result.items:,} items",
    )
    axes.legend()
    return axes


def plot_limits(
    result: Estimates, *, metric: str = "Recall", level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw a metric@K against K: the estimate, its interval, and the bounds.

    The estimates must hold one method that gives P(R).
    """
    certainty = result.certainty
    if certainty is None:
        raise InputError("result must come from sampled ranks, got full ranks: all is known there")
    axes = _axes(ax)
    # Limits are exact where a bin of their grid ends.
    grid = certainty.grid
    steps = np.geomspace(1, grid.items, _POINTS).astype(np.int64)
    ladder = np.unique(grid.high[grid.locate(steps)]).tolist()
    asked = [_metrics.parse(metric).family @ k for k in ladder]
    for name, limits, shade in (
        ("bounds", certainty.bounds, 0.15),
        ("interval", certainty.interval, 0.35),
    ):
        low, high = zip(*(limits(one, level) for one in asked), strict=True)
        axes.fill_between(ladder, low, high, alpha=shade, color="C0", linewidth=0, label=name)
    values = [result.distribution.expect(one) for one in asked]
    axes.plot(ladder, values, color="C0", label="estimate")
    axes.set(xscale="log", xlabel="K", ylabel=f"{asked[0].family.name}@K", ylim=(0, None))
    axes.legend()
    return axes


def write_plot(result: Plan, path: str | os.PathLike[str]) -> None:
    """Write the plot of a plan as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    check_choice("the ending of the plot's name", kind, _FORMATS, error=FileError)
    figure = plot_plan(result).get_figure(root=True)
    assert figure is not None
    write_atomically(target, lambda file: figure.savefig(file, format=kind, bbox_inches="tight"))


def _axes(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure that needs no display."""
    if ax is not None:
        return ax
    figures = import_extra("matplotlib.figure", extra="report", purpose="drawing a plot")
    axes: Axes = figures.Figure(figsize=(7.0, 4.5), layout="constrained").subplots()
    return axes
