"""Data frames from rows, with whichever library is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

from unsample._checks import check_choice, import_extra
from unsample.errors import MissingExtraError

__all__ = ["frame_from_rows"]

_BACKENDS = ("polars", "pandas", "pyarrow")


def frame_from_rows(rows: list[dict[str, Any]], backend: str | None = None) -> Any:
    """Return a native data frame with these rows; the first installed backend by default."""
    import narwhals as nw

    if backend is None:
        installed = [name for name in _BACKENDS if importlib.util.find_spec(name)]
        if not installed:
            raise MissingExtraError(
                "a data frame needs polars, pandas or pyarrow, and none is installed; "
                "install one with: pip install 'unsample[frames]', or use to_dict()"
            )
        backend = installed[0]
    check_choice("backend", backend, _BACKENDS)
    import_extra(backend, extra="frames", purpose=f"a {backend} frame")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
