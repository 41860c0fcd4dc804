"""What a report needs to know of a reproduction: tables of rows, and the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

__all__ = ["Results", "Row", "grouped", "in_dataset_order", "values_of"]

#: One line of a tidy table; a missing number is None.
Row: TypeAlias = Mapping[str, Any]


class Results(Protocol):
    """Tidy tables of a reproduction, as `unsample.lab.experiment.load_results` returns them."""

    @property
    def statistics(self) -> Sequence[Row]:
        """Size of each data set, as in the paper and as at hand."""

    @property
    def accuracy(self) -> Sequence[Row]:
        """Mean, spread, bias and RMSE of each estimator of each metric."""

    @property
    def winners(self) -> Sequence[Row]:
        """How often each estimator names the best recommender."""

    @property
    def distributions(self) -> Sequence[Row]:
        """P(R) and its sums at the first ranks, learned and exact."""

    @property
    def sweep(self) -> Sequence[Row]:
        """Accuracy by the number of sampled items."""

    @property
    def claims(self) -> Sequence[Row]:
        """The paper's statements about its tables, checked on ours."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What was run, with which versions, and how it deviates from the paper."""


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values in ``columns``, groups in the order of their first row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def in_dataset_order(rows: Iterable[Row], results: Results) -> list[Row]:
    """Return rows with data sets in the order of the accuracy tables, others at the end."""
    order = {name: place for place, name in enumerate(values_of(results.accuracy, "dataset"))}
    return sorted(rows, key=lambda row: order.get(row["dataset"], len(order)))


def values_of(rows: Iterable[Row], column: str) -> tuple[Any, ...]:
    """Return the different values in a column, in the order of their first row."""
    return tuple(dict.fromkeys(row[column] for row in rows))
