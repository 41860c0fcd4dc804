"""The templates of all pages."""

from __future__ import annotations

from typing import Any

from unsample._checks import import_extra


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
