"""Results as text, pages and plots.

`results_html` makes one self-contained, interactive page of any result, and `write_html` puts it
into a file. The `plot_` functions draw results on matplotlib axes: each takes ``ax`` and returns
the axes.
"""

from unsample.pages._curves import (
    plot_comparison,
    plot_distribution,
    plot_estimates,
    plot_metric_curve,
)
from unsample.pages._plots import plot_plan, write_plot
from unsample.pages._result_html import Result, results_html, write_html

__all__ = [
    "Result",
    "plot_comparison",
    "plot_distribution",
    "plot_estimates",
    "plot_metric_curve",
    "plot_plan",
    "results_html",
    "write_html",
    "write_plot",
]
