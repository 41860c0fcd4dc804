"""Results as text, notebooks, LaTeX, Markdown, interactive pages and plots.

`sheet` says what a result shows, by its type; everything else is written or drawn from that.
`plot` and `plot_curve` draw on matplotlib axes, ``ax`` or new ones, and return them.
"""

from unsample.show import _audit as _audit  # registers what an audit says
from unsample.show import _comparison as _comparison
from unsample.show import _estimates as _estimates
from unsample.show import _plan as _plan
from unsample.show._charts import LineChart, LineView, Series
from unsample.show._html import as_html, write_html
from unsample.show._plots import plot, plot_curve, write_plot
from unsample.show._sheet import Part, Sheet, sheet
from unsample.show._table import Cell, Number, Table
from unsample.show._write import (
    as_latex,
    as_markdown,
    as_notebook,
    as_text,
    table_latex,
    table_markdown,
)

__all__ = [
    "Cell",
    "LineChart",
    "LineView",
    "Number",
    "Part",
    "Series",
    "Sheet",
    "Table",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_notebook",
    "as_text",
    "plot",
    "plot_curve",
    "sheet",
    "table_latex",
    "table_markdown",
    "write_html",
    "write_plot",
]
