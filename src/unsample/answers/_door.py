"""The one door from results up to the room that makes pages of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unsample._files import write_atomically

__all__ = ["page_of"]


def page_of(result: Any, path: str | os.PathLike[str] | None) -> str:
    """Return the result as one interactive page, and write it to ``path`` if one is given."""
    from unsample.pages import as_html

    text = as_html(result)
    if path is not None:
        content = text.encode("utf-8")
        write_atomically(Path(path), lambda file: file.write(content))
    return text
