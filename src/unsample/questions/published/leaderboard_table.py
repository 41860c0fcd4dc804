"""Read tables of models and their printed numbers: a row for each model, or for each number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unsample import metrics as _metrics
from unsample.errors import InputError, UnsampleError
from unsample.tables import MODEL, is_table, read_cells

#: The columns of a table with a row for each number.
METRIC = "metric"
VALUE = "value"
#: The columns that tell how a row was evaluated.
DATA_SET = "dataset"
SIZES = ("items", "sampled", "users")
#: The text of a cell in which nothing is printed.
_NOTHING = ("", "-", "\N{EN DASH}", "\N{EM DASH}")
_FORMS = (
    f"a table has a column {MODEL!r} and one for each metric, or the columns {MODEL!r}, {METRIC!r} "
    f"and {VALUE!r}; it may have {DATA_SET!r}, {', '.join(map(repr, SIZES))}"
)
_Row = Mapping[str, str]


@dataclass
class PrintedModel:
    """The printed numbers of one model on one data set."""

    name: str
    data_set: str = ""
    #: The sizes that the rows of the model give.
    sizes: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)

    def add_sizes(self, row: _Row) -> None:
        """Take the sizes of a row; refuse sizes that differ from earlier rows."""
        for size in SIZES:
            if size not in row:
                continue
            value = _whole(size, row[size], model=self.name)
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
    """Return whether there are numbers of several models: a table, or a dict for each model."""
    if isinstance(numbers, Mapping):
        values = numbers.values()
        return any(isinstance(value, Mapping) or np.ndim(value) > 0 for value in values)
    return is_table(numbers)


def read_models(source: Any) -> list[PrintedModel]:
    """Return the printed numbers of each model, in the order of the table.

    >>> table = {"model": ["A", "B"], "HR@10": ["0.690", "0.71"], "NDCG@10": ["0.412", "-"]}
    >>> [model.numbers for model in read_models(table)]
    [{'HR@10': '0.690', 'NDCG@10': '0.412'}, {'HR@10': '0.71'}]
    """
    if isinstance(source, Mapping):
        are_dicts = {name: isinstance(numbers, Mapping) for name, numbers in source.items()}
        if all(are_dicts.values()):
            return [
                PrintedModel(str(name), numbers=dict(numbers)) for name, numbers in source.items()
            ]
        if any(are_dicts.values()):
            name = next(name for name, is_dict in are_dicts.items() if not is_dict)
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
    models: dict[tuple[str, str], PrintedModel] = {}
    row_for_each_number = METRIC in cells and VALUE in cells
    metrics = _metric_columns(columns, row_for_each_number=row_for_each_number)
    for row in _rows(cells):
        if MODEL not in row:
            raise InputError(f"every row must name its model, got one without: {dict(row)}")
        name = row[MODEL]
        data_set = row.get(DATA_SET, "")
        if (data_set, name) in models and not row_for_each_number:
            where = f" on {data_set}" if data_set else ""
            raise InputError(
                f"each model must have one row for each data set, got two of {name}{where}; "
                f"name data sets in a column {DATA_SET!r}"
            )
        model = models.setdefault((data_set, name), PrintedModel(name, data_set))
        model.add_sizes(row)
        if row_for_each_number and VALUE in row:
            model.add_number(row.get(METRIC, ""), row[VALUE])
        for metric in metrics:
            if metric in row:
                model.add_number(metric, row[metric])
    if not models:
        raise InputError(f"a table of models must have rows, got none; {_FORMS}")
    return list(models.values())


def _lower_case(cells: Mapping[str, Sequence[str | None]]) -> dict[str, Sequence[str | None]]:
    """Return the columns by their names; names that are no metrics are in lower case."""
    known = (MODEL, METRIC, VALUE, DATA_SET, *SIZES)
    by_name = {}
    for name, column in cells.items():
        stripped = name.strip()
        lower = stripped.lower()
        by_name[lower if lower in known else stripped] = column
    return by_name


def _metric_columns(columns: Sequence[str], *, row_for_each_number: bool) -> list[str]:
    """Return the columns that are metrics; refuse columns that are nothing known."""
    known = {MODEL, DATA_SET, *SIZES}
    if row_for_each_number:
        known |= {METRIC, VALUE}
    others = [name for name in columns if name not in known]
    for name in others:
        try:
            _metrics.parse(name)
        except UnsampleError as problem:
            raise InputError(
                f"columns must be metrics or known ones, got {name!r} ({problem}); drop or rename "
                f"it: {_FORMS}"
            ) from problem
    if row_for_each_number and others:
        raise InputError(
            f"a table with the columns {METRIC!r} and {VALUE!r} must hold all numbers there, got "
            f"the column {others[0]!r} too"
        )
    if not row_for_each_number and not others:
        raise InputError(f"a table of models must have metrics, got none; {_FORMS}")
    return others


def _rows(cells: Mapping[str, Sequence[str | None]]) -> Iterator[_Row]:
    """Yield the cells of each row that are not empty, by column."""
    for row in zip(*cells.values(), strict=True):
        texts = {
            name: cell.strip() for name, cell in zip(cells, row, strict=True) if cell is not None
        }
        filled = {name: text for name, text in texts.items() if text not in _NOTHING}
        if filled:
            yield filled


def _whole(name: str, text: str, *, model: str) -> int:
    """Return a size of a model as a whole number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if value != round(value):
        raise InputError(
            f"{name} of {model} must be a whole number, got {text!r}; correct the table"
        )
    return int(value)
