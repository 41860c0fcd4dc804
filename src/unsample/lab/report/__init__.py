"""The reproduction as a page, and its tables as Markdown and as LaTeX."""

from unsample.lab.report._html import reproduction_html
from unsample.lab.report._latex import accuracy_latex, winners_latex
from unsample.lab.report._markdown import accuracy_markdown, winners_markdown
from unsample.lab.report._results import Results, Row
from unsample.lab.report._write import write_report

__all__ = [
    "Results",
    "Row",
    "accuracy_latex",
    "accuracy_markdown",
    "reproduction_html",
    "winners_latex",
    "winners_markdown",
    "write_report",
]
