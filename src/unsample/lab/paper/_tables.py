"""The tables of a run: their columns, their rows from finished cells, and their files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from unsample._files import write_atomically
from unsample._rules import import_whole
from unsample.lab.datasets import load_ranks
from unsample.lab.paper._cells import CellResult
from unsample.lab.paper._exhibits import (
    ACCURACY_K,
    CANDIDATES,
    ESTIMATORS,
    METRICS,
    RECOMMENDERS,
    Cell,
    exhibits,
    figures,
    table_cells,
)
from unsample.metrics import Metric
from unsample.report import View

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = tuple[Row, ...]
#: The finished cells of a run.
Cells: TypeAlias = Mapping[Cell, CellResult]

#: The columns of each table, in order.
SCHEMA: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: tuple(columns.split())
        for name, columns in {
            "statistics": "dataset source users items interactions sparsity note",
            "accuracy": "dataset candidates recommender metric k sampled estimator method repeats "
            "exact mean std bias rmse paper_exact paper_mean paper_std",
            "winners": "dataset candidates metric k estimator repeats true_winner correct "
            "paper_correct",
            "distributions": "dataset candidates recommender sampled estimator rank pmf cdf",
            "sweep": "dataset candidates recommender metric k sampled estimator repeats exact mean "
            "std bias rmse",
            "claims": "id claim claimed_by where holds_by_bias holds_by_rmse detail",
        }.items()
    }
)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The tables of a finished run as rows (numbers plain, what is missing None), and settings."""

    folder: Path
    tables: Mapping[str, Rows] = field(repr=False)
    settings: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    def view(self) -> View:
        """Return what is shown of it."""
        made: View = import_whole("unsample.lab.paper._report").view_of_reproduction(self)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints: where the tables are, how long they are, the claims."""
        return {
            "folder": str(self.folder),
            "settings": dict(self.settings),
            "rows": {name: len(rows) for name, rows in self.tables.items()},
            "claims": list(self.tables["claims"]),
        }


# -- rows -------------------------------------------------------------------------------------


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values in ``columns``, groups in the order of their first row.

    >>> rows = [{"metric": "AP", "k": 5}, {"metric": "NDCG", "k": 5}, {"metric": "AP", "k": 9}]
    >>> {key: [row["k"] for row in group] for key, group in grouped(rows, "metric").items()}
    {('AP',): [5, 9], ('NDCG',): [5]}
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def values_of(rows: Iterable[Row], column: str) -> tuple[Any, ...]:
    """Return the different values in a column, in the order of their first row."""
    return tuple(dict.fromkeys(row[column] for row in rows))


def make_tables(datasets: Sequence[str], results: Cells) -> dict[str, Rows]:
    """Return the tables of finished cells."""
    return {
        "statistics": tuple(_statistics_rows(datasets)),
        "accuracy": tuple(_accuracy_rows(datasets, results)),
        "winners": tuple(_winner_rows(datasets, results)),
        "distributions": tuple(_distribution_rows(datasets, results)),
        "sweep": tuple(_sweep_rows(datasets, results)),
    }


def _statistics_rows(datasets: Sequence[str]) -> Iterator[Row]:
    """Yield the sizes of each data set: as the paper prints them, and as they are here."""
    printed = _printed("statistics", "dataset")
    for dataset in datasets:
        yield {**printed[dataset,], "source": "paper", "note": ""}
        about = load_ranks(dataset, "ease").provenance
        users = about["users"]
        items = about["items"]
        # One target for each user was held out of the training pairs.
        interactions = about["training_pairs"] + users
        yield {
            "dataset": dataset,
            "source": "here",
            "users": users,
            "items": items,
            "interactions": interactions,
            "sparsity": 1.0 - interactions / (users * items),
            "note": about["note"],
        }


def _accuracy_rows(datasets: Sequence[str], results: Cells) -> Iterator[Row]:
    """Yield mean, std and error of each estimate at the K of the paper's accuracy tables."""
    names = ("dataset", "candidates", "recommender", "metric", "estimator")
    printed = _printed("accuracy", *names)
    for cell in table_cells(datasets):
        for column, metric in _at(ACCURACY_K):
            for label, method in ESTIMATORS.items():
                row = _errors(cell, metric, label=label, result=results[cell], column=column)
                paper = printed.get(tuple(row[name] for name in names))
                for name in ("exact", "mean", "std"):
                    row[f"paper_{name}"] = paper and paper[f"{name}_x1000"] / 1000.0
                yield {**row, "method": method}


def _winner_rows(datasets: Sequence[str], results: Cells) -> Iterator[Row]:
    """Yield in how many repeats an estimator names the recommender that is truly best."""
    names = ("dataset", "candidates", "metric", "k", "estimator")
    printed = _printed("winners", *names)
    for dataset, candidates in product(datasets, CANDIDATES):
        cells = [cell for cell in table_cells([dataset]) if cell.candidates == candidates]
        for column, metric in enumerate(METRICS):
            winner = int(np.argmax([results[cell].exact[column] for cell in cells]))
            for label in ESTIMATORS:
                estimates = np.stack([results[c].values[label][:, column] for c in cells])
                row = {
                    "dataset": dataset,
                    "candidates": candidates,
                    "metric": metric.family.name,
                    "k": metric.k,
                    "estimator": label,
                    "repeats": estimates.shape[1],
                    "true_winner": RECOMMENDERS[cells[winner].recommender],
                    "correct": int((estimates.argmax(axis=0) == winner).sum()),
                }
                paper = printed.get(tuple(row[name] for name in names))
                yield {**row, "paper_correct": paper and paper["correct"]}


def _distribution_rows(datasets: Sequence[str], results: Cells) -> Iterator[Row]:
    """Yield the learned and the exact P(R) at the top, for the figures."""
    for figure in figures("distributions", datasets):
        for cell in figure.cells():
            for label in ("exact", *figure.settings["estimators"]):
                cdf = results[cell].cdf[label]
                pmf = np.diff(cdf, prepend=0.0)
                for rank, (mass, total) in enumerate(zip(pmf, cdf, strict=True), start=1):
                    at_rank = {"rank": rank, "pmf": float(mass), "cdf": float(total)}
                    yield {**_where(cell, label), **at_rank}


def _sweep_rows(datasets: Sequence[str], results: Cells) -> Iterator[Row]:
    """Yield how the error falls as more items are sampled."""
    for figure in figures("sweep", datasets):
        for cell in figure.cells():
            for column, metric in _at(figure.settings["k"]):
                for label in figure.settings["estimators"]:
                    yield _errors(cell, metric, label=label, result=results[cell], column=column)


def _printed(kind: str, *names: str) -> dict[tuple[Any, ...], Row]:
    """Return the rows that the paper prints, by their values of these columns."""
    rows = (
        {**exhibit.settings, **row}
        for exhibit in exhibits()
        if exhibit.kind == kind
        for row in exhibit.rows
    )
    return {tuple(row[name] for name in names): row for row in rows}


def _at(k: int) -> list[tuple[int, Metric]]:
    """Return the metrics at a cutoff, and their columns in the results of a cell."""
    return [(column, metric) for column, metric in enumerate(METRICS) if metric.k == k]


def _where(cell: Cell, label: str) -> Row:
    """Return the columns that say which cell and which estimator a row is about."""
    return {
        "dataset": cell.dataset,
        "candidates": cell.candidates,
        "recommender": RECOMMENDERS[cell.recommender],
        "sampled": cell.sampled,
        "estimator": label,
    }


def _errors(cell: Cell, metric: Metric, *, label: str, result: CellResult, column: int) -> Row:
    """Return mean, standard deviation, bias and RMSE of an estimator over the repeats."""
    exact = float(result.exact[column])
    estimates = result.values[label][:, column]
    return {
        **_where(cell, label),
        "metric": metric.family.name,
        "k": metric.k,
        "repeats": len(estimates),
        "exact": exact,
        "mean": float(estimates.mean()),
        "std": float(estimates.std(ddof=1)),
        "bias": float(estimates.mean() - exact),
        "rmse": float(np.sqrt(np.mean((estimates - exact) ** 2))),
    }


# -- files ------------------------------------------------------------------------------------


def write_rows(folder: Path, table: str, *, rows: Iterable[Row]) -> None:
    """Write a table as CSV, all of it or nothing."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SCHEMA[table])
    for row in rows:
        writer.writerow([_shown(row[name]) for name in SCHEMA[table]])
    write_text(folder / f"{table}.csv", text.getvalue())


def write_text(path: Path, text: str) -> None:
    """Write a text file, all of it or nothing."""
    write_atomically(path, lambda file: file.write(text.encode()))


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Ten digits: more than any estimate deserves, and the same on any number of threads.
        return "" if math.isnan(value) else f"{value:.10g}"
    return str(value)
