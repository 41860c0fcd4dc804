"""Any result as one self-contained page: style, script and numbers inside, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from unsample import __version__
from unsample._checks import import_extra
from unsample._files import write_atomically
from unsample.answers import Estimates
from unsample.confidence import blind_rank
from unsample.pages._charts import spec
from unsample.pages._pages import page


def templates() -> Any:
    """Return the templates of all pages; every text is escaped."""
    jinja2 = import_extra("jinja2", extra="report", purpose="an HTML report")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("unsample.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def as_html(result: object, *, title: str | None = None) -> str:
    """Return a result as one HTML page; same result, same bytes.

    The page needs no network. Its charts answer to mouse and keyboard, its tables sort, and every
    number of a chart also stands in a table.
    """
    found = templates()
    shown = page(result)
    if title is not None:
        shown = replace(shown, title=title)
    style = "".join(found.get_template(name).render() for name in ("style.css", "result.css"))
    script = found.loader.get_source(found, "result.js")[0]
    html: str = found.get_template("result.html").render(
        page=shown,
        smallest_resolved=_smallest_resolved(shown.about),
        spec=spec,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        version=__version__,
    )
    # A name from a file or a command line may hold half a character, which no page can.
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


def write_html(result: object, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write the page of a result into a file, at once or not at all; return its path."""
    content = as_html(result, title=title).encode("utf-8")
    write_atomically(Path(path), lambda file: file.write(content))
    return Path(path)


def _smallest_resolved(result: object) -> int | None:
    """Return the smallest K that a sample resolves, if it resolves any."""
    if not isinstance(result, Estimates) or result.certainty is None:
        return None
    smallest = math.ceil(blind_rank(result.counts) - 1e-9)
    return smallest if smallest <= result.counts.largest_catalogue else None


def _hash(text: str) -> str:
    """Return what a content security policy knows a text by, so that no other text runs."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
