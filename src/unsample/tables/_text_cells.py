"""Small tables as they are printed: every cell as text, with all its digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample.errors import InputError
from unsample.tables._sources import opened


def read_cells(source: Any) -> dict[str, list[str | None]]:
    """Return the columns of a table in any form; a cell without a value is None.

    Text keeps its digits. Numbers lose zeros at the end, so all numbers of a column get as many
    decimals as the longest of them.

    >>> read_cells({"model": ["A", "B"], "HR@10": [0.7, 0.825]})
    {'model': ['A', 'B'], 'HR@10': ['0.700', '0.825']}
    """
    with opened({"": source}, lambda _: True) as table:
        if table.saved is not None:
            raise InputError(f"{table.name} must be a table of printed numbers, got counts")
        columns = table.engine.ask(f"SELECT * FROM {table.rows}")
    return {str(name): _as_text(values) for name, values in columns.items()}


def _as_text(values: Any) -> list[str | None]:
    """Return the cells of a column as text."""
    cells = [None if value is None else str(value) for value in values]
    if not any(isinstance(value, float | np.floating) for value in values):
        return cells
    numbers = [None if cell == "nan" else cell for cell in cells]
    plain = {cell for cell in numbers if cell is not None and "e" not in cell}
    decimals = {len(cell.partition(".")[2]) for cell in plain if not cell.endswith(".0")}
    longest = max(decimals, default=0)
    return [
        cell + "0" * (longest - len(cell.partition(".")[2])) if cell in plain else cell
        for cell in numbers
    ]
