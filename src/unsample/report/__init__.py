"""Results as pages and plots, and the reproduction as a page and tables.

`results_html` makes one self-contained, interactive page of any result, and `write_html` puts it
into a file. The `plot_` functions draw results on matplotlib axes: each takes ``ax`` and returns
the axes.

A results folder goes in; `write_report` puts beside it one self-contained HTML page, and the
accuracy and winner tables as Markdown and as LaTeX. `reproduction_html` makes the page from any
object that has the attributes of `Results`. Every text that comes from data is escaped.
"""

from unsample.report._curves import (
    plot_comparison,
    plot_distribution,
    plot_estimates,
    plot_metric_curve,
)
from unsample.report._html import reproduction_html
from unsample.report._latex import accuracy_latex, winners_latex
from unsample.report._markdown import accuracy_markdown, winners_markdown
from unsample.report._plots import plot_plan, write_plot
from unsample.report._result_html import Result, results_html, write_html
from unsample.report._results import Results, Row
from unsample.report._write import write_report

__all__ = [
    "Result",
    "Results",
    "Row",
    "accuracy_latex",
    "accuracy_markdown",
    "plot_comparison",
    "plot_distribution",
    "plot_estimates",
    "plot_metric_curve",
    "plot_plan",
    "reproduction_html",
    "results_html",
    "winners_latex",
    "winners_markdown",
    "write_html",
    "write_plot",
    "write_report",
]
