"""Results as text, notebooks, LaTeX, Markdown, interactive pages and plots.

`sheet` and `page` say what a result shows, by its type, and `paper` what LaTeX and Markdown show;
other types are added with ``sheet.register``, ``page.register`` and ``paper.register``. The `plot_`
functions draw results on matplotlib axes: each takes ``ax`` and returns the axes.
"""

from typing import Any

from unsample._gone import no_attribute
from unsample._rules import printable
from unsample.show import _audit as _audit  # registers how an audit reads
from unsample.show import _plan as _plan  # and a plan
from unsample.show._charts import LineChart, LineView, Series
from unsample.show._html import Page, Part, as_html, page, write_html
from unsample.show._paper import cited, paper
from unsample.show._plots import (
    plot_across,
    plot_comparison,
    plot_distribution,
    plot_estimates,
    plot_metric_curve,
    plot_plan,
    write_plot,
)
from unsample.show._render import as_latex, as_markdown, as_notebook, as_text
from unsample.show._sheet import Cell, Number, Sheet, Table, sheet

__all__ = [
    "Cell",
    "LineChart",
    "LineView",
    "Number",
    "Page",
    "Part",
    "Series",
    "Sheet",
    "Table",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_notebook",
    "as_text",
    "cited",
    "page",
    "paper",
    "plot_across",
    "plot_comparison",
    "plot_distribution",
    "plot_estimates",
    "plot_metric_curve",
    "plot_plan",
    "printable",
    "sheet",
    "write_html",
    "write_plot",
]


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name)
