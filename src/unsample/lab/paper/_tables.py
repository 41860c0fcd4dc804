"""The tables of a run: their columns, their rows from finished cells, and their files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from unsample._files import write_atomically
from unsample.lab.paper._cells import CellResult
from unsample.lab.paper._exhibits import RECOMMENDERS, exhibits
from unsample.lab.paper._spec import ACCURACY_K, Cell, Spec, label_of
from unsample.metrics import Metric

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
            "claims": "id claim where holds_by_bias holds_by_rmse detail",
        }.items()
    }
)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All tables of a finished run as rows (numbers plain, what is missing None), and settings."""

    statistics: Rows = field(repr=False)
    accuracy: Rows = field(repr=False)
    winners: Rows = field(repr=False)
    distributions: Rows = field(repr=False)
    sweep: Rows = field(repr=False)
    claims: Rows
    settings: Mapping[str, Any]


# -- rows -------------------------------------------------------------------------------------


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values in ``columns``, groups in the order of their first row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def values_of(rows: Iterable[Row], column: str) -> tuple[Any, ...]:
    """Return the different values in a column, in the order of their first row."""
    return tuple(dict.fromkeys(row[column] for row in rows))


def make_tables(
    spec: Spec, results: Cells, about: Mapping[str, Mapping[str, Any]]
) -> dict[str, Rows]:
    """Return the tables of finished cells; ``about`` says where each data set's ranks come from."""
    return {
        "statistics": tuple(_statistics_rows(spec, about)),
        "accuracy": tuple(_accuracy_rows(spec, results)),
        "winners": tuple(_winner_rows(spec, results)),
        "distributions": tuple(_distribution_rows(spec, results)),
        "sweep": tuple(_sweep_rows(spec, results)),
    }


def _statistics_rows(spec: Spec, about: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the sizes of each data set: those of the paper, and those found here."""
    printed = _printed("statistics", "dataset")
    for dataset in spec.datasets:
        if (dataset,) in printed:
            yield {**printed[dataset,], "source": "paper", "note": ""}
        found = about[dataset]
        users, items = found["users"], found["items"]
        # One target for each user was held out of the training pairs.
        interactions = found["training_pairs"] + users
        yield {
            "dataset": dataset,
            "source": "here",
            "users": users,
            "items": items,
            "interactions": interactions,
            "sparsity": 1.0 - interactions / (users * items),
            "note": found["note"],
        }


def _accuracy_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield mean, spread and error of each estimate at the K of the paper's accuracy tables."""
    names = ("dataset", "recommender", "metric", "estimator")
    printed = _printed("accuracy", *names)
    for cell in spec.tables():
        for column, metric in _at(spec, ACCURACY_K):
            for label, method in spec.estimators:
                row = _errors(cell, metric, label, results[cell], column)
                paper = printed.get(tuple(row[name] for name in names), {})
                for name in ("exact", "mean", "std"):
                    known = paper and _as_in_paper(cell)
                    row[f"paper_{name}"] = paper[f"{name}_x1000"] / 1000.0 if known else None
                yield {**row, "method": method}


def _winner_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield in how many repeats an estimator names the recommender that is truly best."""
    if len(spec.recommenders) < 2:
        return
    names = ("dataset", "metric", "k", "estimator")
    printed = _printed("winners", *names)
    # The printed counts are for these five, and no others.
    comparable = set(spec.recommenders) == set(RECOMMENDERS)
    contests: dict[tuple[str, str], list[Cell]] = {}
    for cell in spec.tables():
        contests.setdefault((cell.dataset, cell.candidates), []).append(cell)
    for (dataset, candidates), cells in contests.items():
        for column, metric in enumerate(spec.columns):
            winner = int(np.argmax([results[cell].exact[column] for cell in cells]))
            for label, _ in spec.estimators:
                estimates = np.stack([results[c].values[label][:, column] for c in cells])
                row = {
                    "dataset": dataset,
                    "candidates": candidates,
                    "metric": metric.family.name,
                    "k": metric.k,
                    "estimator": label,
                    "repeats": estimates.shape[1],
                    "true_winner": label_of(cells[winner].recommender),
                    "correct": int((estimates.argmax(axis=0) == winner).sum()),
                }
                paper = printed.get(tuple(row[name] for name in names), {})
                known = paper and comparable and _as_in_paper(cells[0])
                yield {**row, "paper_correct": paper["correct"] if known else None}


def _distribution_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield the learned and the exact P(R) at the top, for the figures."""
    for exhibit, cells in spec.figures("distributions"):
        for cell in cells:
            for label in ("exact", *exhibit.settings["estimators"]):
                if label not in results[cell].cdf:
                    continue
                cdf = results[cell].cdf[label]
                pmf = np.diff(cdf, prepend=0.0)
                for rank, (mass, total) in enumerate(zip(pmf, cdf, strict=True), start=1):
                    found = {"rank": rank, "pmf": float(mass), "cdf": float(total)}
                    yield {**_where(cell, label), **found}


def _sweep_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield how the error falls as more items are sampled."""
    labels = dict(spec.estimators)
    for exhibit, cells in spec.figures("sweep"):
        for cell in cells:
            for column, metric in _at(spec, exhibit.settings["k"]):
                for label in exhibit.settings["estimators"]:
                    if label in labels:
                        yield _errors(cell, metric, label, results[cell], column)


def _printed(kind: str, *names: str) -> dict[tuple[Any, ...], Row]:
    """Return the rows that the paper prints, by their values of these columns."""
    rows = (
        {**exhibit.settings, **row}
        for exhibit in exhibits()
        if exhibit.kind == kind
        for row in exhibit.rows
    )
    return {tuple(row[name] for name in names): row for row in rows}


def _as_in_paper(cell: Cell) -> bool:
    return cell.candidates == "all" and cell.sampled == 99


def _at(spec: Spec, k: int) -> list[tuple[int, Metric]]:
    return [(column, metric) for column, metric in enumerate(spec.columns) if metric.k == k]


def _where(cell: Cell, label: str) -> Row:
    return {
        "dataset": cell.dataset,
        "candidates": cell.candidates,
        "recommender": label_of(cell.recommender),
        "sampled": cell.sampled,
        "estimator": label,
    }


def _errors(cell: Cell, metric: Metric, label: str, result: CellResult, column: int) -> Row:
    exact, estimates = float(result.exact[column]), result.values[label][:, column]
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


def write_rows(folder: Path, table: str, rows: Iterable[Row]) -> None:
    """Write a table as CSV, all of it or nothing."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SCHEMA[table])
    for row in rows:
        writer.writerow([_shown(row[name]) for name in SCHEMA[table]])
    write_text(folder / f"{table}.csv", text.getvalue())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, all of it or nothing."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


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
