"""Tables of models and what is printed of each: a row a model, or a row a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unsample import metrics as _metrics
from unsample.errors import InputError, UnsampleError
from unsample.tables import MODEL, is_table, read_cells

#: The columns of the long form, and those that say how a row was evaluated.
METRIC, VALUE, DATA_SET = "metric", "value", "dataset"
SIZES = ("items", "sampled", "users")
#: What stands in a cell where nothing is printed.
_NOTHING = ("", "-", "\N{EN DASH}", "\N{EM DASH}")
_FORMS = (
    f"a table has a column {MODEL!r} and one for each metric, or the columns {MODEL!r}, {METRIC!r} "
    f"and {VALUE!r}; it may have {DATA_SET!r}, {', '.join(map(repr, SIZES))}"
)
_Row = Mapping[str, str]


@dataclass
class PrintedModel:
    """What is printed of one model on one data set; ``sizes`` are those that its rows give."""

    name: str
    data_set: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)

    def add_sizes(self, row: _Row) -> None:
        """Take the sizes of a row; refuse others than those of rows before."""
        for size in SIZES:
            if size not in row:
                continue
            value = _whole(size, row[size], self.name)
            if self.sizes.setdefault(size, value) != value:
                raise InputError(
                    f"{size} of {self.name} must be one number for each data set, got "
                    f"{self.sizes[size]:,} and {value:,}; correct the table"
                )

    def add_number(self, metric: str, value: str) -> None:
        """Take a number; refuse a second one of the same metric."""
        if metric in self.numbers:
            raise InputError(
                f"{metric} of {self.name} must be given once for each data set, got "
                f"{self.numbers[metric]} and {value}; correct the table, or name data sets in a "
                f"column {DATA_SET!r}"
            )
        self.numbers[metric] = value


def is_of_models(numbers: object) -> bool:
    """Return whether numbers are those of several models: a table, or a dict for each."""
    if isinstance(numbers, Mapping):
        return any(isinstance(each, Mapping) or np.ndim(each) > 0 for each in numbers.values())
    return is_table(numbers)


def read_models(source: Any) -> list[PrintedModel]:
    """Return what is printed of each model, in the order of the table.

    >>> table = {"model": ["A", "B"], "HR@10": ["0.690", "0.71"], "NDCG@10": ["0.412", "-"]}
    >>> [model.numbers for model in read_models(table)]
    [{'HR@10': '0.690', 'NDCG@10': '0.412'}, {'HR@10': '0.71'}]
    """
    if isinstance(source, Mapping) and all(isinstance(each, Mapping) for each in source.values()):
        return [PrintedModel(str(name), numbers=dict(each)) for name, each in source.items()]
    if isinstance(source, Mapping) and any(isinstance(each, Mapping) for each in source.values()):
        name = next(name for name, each in source.items() if not isinstance(each, Mapping))
        raise InputError(
            f"numbers must be a dict for each model or for none, got {source[name]!r:.80} for "
            f"{name}; give {{{str(name)!r}: {{'HR@10': '0.690'}}}}"
        )
    cells = _lower_case(read_cells(source))
    columns = list(cells)
    if MODEL not in cells:
        raise InputError(
            f"a table of models must have a column {MODEL!r}, got {', '.join(columns)}; {_FORMS}"
        )
    found: dict[tuple[str, str], PrintedModel] = {}
    long = METRIC in cells and VALUE in cells
    printed = _metric_columns(columns, long=long)
    for row in _rows(cells):
        if MODEL not in row:
            raise InputError(f"every row must name its model, got one without: {dict(row)}")
        key = row.get(DATA_SET, ""), row[MODEL]
        if key in found and not long:
            where = f" on {key[0]}" if key[0] else ""
            raise InputError(
                f"each model must have one row for each data set, got two of {key[1]}{where}; "
                f"name data sets in a column {DATA_SET!r}"
            )
        model = found.setdefault(key, PrintedModel(key[1], key[0]))
        model.add_sizes(row)
        if long and VALUE in row:
            model.add_number(row.get(METRIC, ""), row[VALUE])
        for metric in printed:
            if metric in row:
                model.add_number(metric, row[metric])
    if not found:
        raise InputError(f"a table of models must have rows, got none; {_FORMS}")
    return list(found.values())


def _lower_case(cells: Mapping[str, Sequence[str | None]]) -> dict[str, Sequence[str | None]]:
    """Return the columns, those that are no metrics by their names in lower case."""
    known = (MODEL, METRIC, VALUE, DATA_SET, *SIZES)
    return {
        name.strip().lower() if name.strip().lower() in known else name.strip(): each
        for name, each in cells.items()
    }


def _metric_columns(columns: Sequence[str], *, long: bool) -> list[str]:
    """Return the columns that are metrics; refuse those that are nothing known."""
    about = {MODEL, DATA_SET, *SIZES, *([METRIC, VALUE] if long else [])}
    others = [name for name in columns if name not in about]
    for name in others:
        try:
            _metrics.parse(name)
        except UnsampleError as problem:
            raise InputError(
                f"columns must be metrics or known ones, got {name!r} ({problem}); drop or rename "
                f"it: {_FORMS}"
            ) from problem
    if long and others:
        raise InputError(
            f"a table with the columns {METRIC!r} and {VALUE!r} must hold all numbers there, got "
            f"the column {others[0]!r} too"
        )
    if not long and not others:
        raise InputError(f"a table of models must have metrics, got none; {_FORMS}")
    return others


def _rows(cells: Mapping[str, Sequence[str | None]]) -> Iterator[_Row]:
    """Yield the cells of each row that hold something, by column."""
    for row in zip(*cells.values(), strict=True):
        texts = {
            name: cell.strip() for name, cell in zip(cells, row, strict=True) if cell is not None
        }
        some = {name: text for name, text in texts.items() if text not in _NOTHING}
        if some:
            yield some


def _whole(name: str, text: str, model: str) -> int:
    """Return a size as a whole number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if value != round(value):
        raise InputError(
            f"{name} of {model} must be a whole number, got {text!r}; correct the table"
        )
    return int(value)
