"""Any result as one self-contained page: style, script and numbers inside, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from unsample import __version__
from unsample._files import write_atomically
from unsample.answers import Estimates
from unsample.answers.comparison import Comparison
from unsample.answers.evaluation import Evaluated
from unsample.answers.planning import Plan
from unsample.answers.publication import Published
from unsample.errors import InputError
from unsample.lab.side_by_side import Evaluation
from unsample.pages import _result_pages as _pages
from unsample.pages._comparison_page import comparison_page
from unsample.pages._environment import templates as environment
from unsample.pages._page import Page
from unsample.pages._plan_page import plan_page

__all__ = ["Result", "results_html", "write_html"]

#: What a page can show; a mapping holds estimates by the name of their group.
Result: TypeAlias = (
    Estimates | Published | Comparison | Evaluated | Evaluation | Plan | Mapping[str, Estimates]
)


def results_html(result: Result, *, title: str | None = None) -> str:
    """Return a result as one HTML page; same result, same bytes.

    The page needs no network. Its charts answer to mouse and keyboard, its tables sort, and every
    number of a chart also stands in a table.
    """
    page = _page_of(result)
    if title is not None:
        page = replace(page, title=title)
    templates = environment()
    style = "".join(templates.get_template(name).render() for name in ("style.css", "result.css"))
    script = templates.loader.get_source(templates, "result.js")[0]
    html: str = templates.get_template("result.html").render(
        page=page,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        version=__version__,
    )
    # A name from a file or a command line may hold half a character, which no page can.
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


def write_html(result: Result, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write the page of a result into a file, at once or not at all."""
    content = results_html(result, title=title).encode("utf-8")
    write_atomically(Path(path), lambda file: file.write(content))


#: Kinds of results and their pages; a published result is also an estimate, and comes first.
_PAGES: tuple[tuple[type, Callable[[Any], Page]], ...] = (
    (Published, _pages.published_page),
    (Estimates, _pages.estimates_page),
    (Comparison, comparison_page),
    (Evaluated, _pages.evaluated_page),
    (Evaluation, _pages.evaluation_page),
    (Plan, plan_page),
)


def _page_of(result: Result) -> Page:
    for kind, make in _PAGES:
        if isinstance(result, kind):
            return make(result)
    if isinstance(result, Mapping) and result:
        groups = {str(name): one for name, one in result.items() if isinstance(one, Estimates)}
        if len(groups) == len(result):
            return _pages.groups_page(groups)
    raise InputError(
        "result must be what estimate, exact, compare, evaluate, published or plan return, or a "
        f"mapping of names to estimates, got {type(result).__name__}"
    )


def _hash(text: str) -> str:
    """Return what a content security policy knows a text by, so that no other text runs."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
