"""The plot of a plan: error against cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import check_choice
from unsample._files import write_atomically
from unsample.errors import FileError
from unsample.pages._curves import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unsample.answers.planning import Plan

__all__ = ["LEAST_ERROR", "plot_plan", "write_plot"]

_FORMATS = ("pdf", "png", "svg")
#: Smaller relative errors are none, and leave a logarithmic axis.
LEAST_ERROR = 1e-4


def plot_plan(result: Plan, *, ax: Axes | None = None) -> Axes:
    """Draw the expected error of each design against its cost."""
    axes: Axes = axes_or_new(ax)
    for name in dict.fromkeys(outcome.design for outcome in result.curves):
        curve = [
            (outcome.cost, outcome.rmse / result.value)
            for outcome in result.curves
            if outcome.design == name and outcome.rmse > LEAST_ERROR * result.value
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


def write_plot(result: Plan, path: str | os.PathLike[str]) -> None:
    """Write the plot of a plan as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    check_choice("the ending of the plot's name", kind, _FORMATS, error=FileError)
    figure = plot_plan(result).get_figure(root=True)
    assert figure is not None
    write_atomically(target, lambda file: figure.savefig(file, format=kind, bbox_inches="tight"))
