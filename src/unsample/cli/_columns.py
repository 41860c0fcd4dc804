"""The option that tells which column of a table means what."""

from __future__ import annotations

from typing import Annotated

import typer

from unsample.errors import InputError

__all__ = ["Columns", "parse_columns"]

Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="Column that has another name, repeatable, such as rank=position.",
    ),
]


def parse_columns(given: list[str] | None) -> dict[str, str]:
    """Return the name of each role; ``item`` alone stands for ``item=item``."""
    columns: dict[str, str] = {}
    for text in given or []:
        role, _, name = (part.strip() for part in text.partition("="))
        if not role or (not name and "=" in text) or role in columns:
            raise InputError(
                f"column must be ROLE=NAME, each role once, got {text!r}; for example rank=position"
            )
        columns[role] = name or role
    return columns
