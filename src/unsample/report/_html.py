"""The interactive page of any result: style, script and numbers in one file."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

from unsample import __version__
from unsample._checks import import_extra
from unsample._files import PAGE_ENDINGS, check_ending, is_stream, write_atomically
from unsample._rules import printable
from unsample.report._charts import spec
from unsample.report._origin import Origin
from unsample.report._table import Table
from unsample.report._view import view_of

#: Names with more letters may break into lines.
_MOST_LETTERS = 24


def templates() -> Any:
    """Return the templates of the page; every text is escaped."""
    jinja2 = import_extra("jinja2", extra="report", purpose="an HTML report")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("unsample.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_spelt_out,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _is_long(table: Table) -> bool:
    """Return whether a table has names that leave no room beside them on a phone."""
    cells = (cell for row in table.rows for cell in row)
    return any(isinstance(cell, str) and len(cell) > _MOST_LETTERS for cell in cells)


def _spelt_out(value: Any) -> Any:
    """Return a text in which a sign that turns the direction of writing, or ESC, is spelt out.

    What is no plain text, as a number or a part of a page, stays as it is.
    """
    return printable(value) if type(value) is str else value


def as_html(result: object, *, origin: Origin | None = None) -> str:
    """Return a result as one HTML page; the same result gives the same bytes.

    The page needs no network. Its charts answer to mouse and keyboard, its tables sort, and every
    number of a chart of intervals also stands in a table.

    Parameters
    ----------
    result
        The result of a question, or a dict of names and estimates.
    origin
        What the command was given, if it made the result; the page lists it.

    Returns
    -------
    str
        The page.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed.
    """
    view = view_of(result)
    parts = []
    for part in view.parts:
        chart = part.chart
        table = None if part.table is None else part.table.with_ranges()
        if chart is not None or table is not None:
            parts.append((part.title, chart, table, part.folded))
    environment = templates()
    style = environment.get_template("page.css").render()
    script, _, _ = environment.loader.get_source(environment, "page.js")
    html: str = environment.get_template("page.html").render(
        view=view,
        parts=parts,
        is_long=_is_long,
        most_letters=_MOST_LETTERS,
        settings=(*view.settings, *(origin.settings if origin is not None else ())),
        spec=spec,
        style=style,
        script=script,
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        version=__version__,
    )
    # A name from a file or a command line may hold half a character, which no page can.
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


def write_html(
    result: object, path: str | os.PathLike[str], *, origin: Origin | None = None
) -> Path:
    """Write the page of a result into a file, at once or not at all; return its path."""
    target = Path(path)
    if not is_stream(target):
        check_ending("path", target, PAGE_ENDINGS)
    content = as_html(result, origin=origin).encode("utf-8")
    write_atomically(target, lambda file: file.write(content))
    return target


def content_hash(text: str) -> str:
    """Return the hash by which a content security policy allows this text to run, and no other."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
