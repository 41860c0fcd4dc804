"""Results as text, notebooks, LaTeX, Markdown, interactive pages and plots.

A result gives a `View`, by `Result.view`; everything else is written or drawn from that. `plot`
draws on matplotlib axes, ``ax`` or new ones, and returns them.
"""

from unsample.report._charts import Band, Chart, GuideLine, LineChart, LineView, Series
from unsample.report._html import as_html, write_html
from unsample.report._origin import SCHEMA, Origin
from unsample.report._plots import draw, picture_of, plot, save_figure, write_plot, write_views
from unsample.report._result import Note, Result, one_or_range, or_none, warn_of
from unsample.report._table import (
    DASH,
    Cell,
    Columns,
    Ends,
    Number,
    Table,
    digits,
    number,
    probability,
)
from unsample.report._view import Notes, Part, View, view_of
from unsample.report._writers import (
    as_latex,
    as_markdown,
    as_notebook,
    as_text,
    table_latex,
    table_markdown,
)

__all__ = [
    "DASH",
    "SCHEMA",
    "Band",
    "Cell",
    "Chart",
    "Columns",
    "Ends",
    "GuideLine",
    "LineChart",
    "LineView",
    "Note",
    "Notes",
    "Number",
    "Origin",
    "Part",
    "Result",
    "Series",
    "Table",
    "View",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_notebook",
    "as_text",
    "digits",
    "draw",
    "number",
    "one_or_range",
    "or_none",
    "picture_of",
    "plot",
    "probability",
    "save_figure",
    "table_latex",
    "table_markdown",
    "view_of",
    "warn_of",
    "write_html",
    "write_plot",
    "write_views",
]
