"""Results as text, pages and plots.

`results_html` makes one self-contained, interactive page of any result, and `write_html` puts it
into a file. The `plot_` functions draw results on matplotlib axes: each takes ``ax`` and returns
the axes.
"""

from typing import Any

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
    "as_notebook",
    "as_text",
    "plot_comparison",
    "plot_distribution",
    "plot_estimates",
    "plot_metric_curve",
    "plot_plan",
    "results_html",
    "write_html",
    "write_plot",
]


def as_text(result: Any) -> str:
    """Return the result as aligned text."""
    from unsample.answers import Comparison
    from unsample.pages._text import comparison_table, estimates_table

    return comparison_table(result) if isinstance(result, Comparison) else estimates_table(result)


def as_notebook(result: Any) -> str:
    """Return the result as a table for notebooks."""
    from unsample.answers import Comparison
    from unsample.pages._text import comparison_html, estimates_html

    return comparison_html(result) if isinstance(result, Comparison) else estimates_html(result)
