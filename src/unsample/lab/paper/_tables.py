"""The tables of a run: their columns, their rows from finished cells, and their files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from unsample._files import write_atomically
from unsample.errors import FileError
from unsample.lab.datasets import load, load_ranks
from unsample.lab.paper._cells import CellResult
from unsample.lab.paper._exhibits import RECOMMENDERS, exhibits
from unsample.lab.paper._spec import ACCURACY_K, Cell, Spec, label_of
from unsample.metrics import Metric

#: A text that begins so is written with an apostrophe in front, which reading takes away; numbers
#: stay numbers.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = tuple[Row, ...]
#: The finished cells of a run.
Cells: TypeAlias = Mapping[Cell, CellResult]


_READ: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "text": str,
        "integer": int,
        "real": float,
        "truth": {"true": True, "false": False}.__getitem__,
    }
)
#: The kinds of columns that are no text.
_KINDS = {
    "integer": "users items interactions k sampled repeats rank correct paper_correct",
    "real": "sparsity exact mean std bias rmse pmf cdf paper_exact paper_mean paper_std",
    "truth": "holds_by_bias holds_by_rmse",
}


def _columns(names: str) -> Mapping[str, str]:
    kinds = {name: kind for kind, members in _KINDS.items() for name in members.split()}
    return MappingProxyType({name: kinds.get(name, "text") for name in names.split()})


#: The columns of each table, in order, with the kind of their values.
SCHEMA: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "statistics": _columns("dataset source users items interactions sparsity note"),
        "accuracy": _columns(
            "dataset candidates recommender metric k sampled estimator method repeats "
            "exact mean std bias rmse paper_exact paper_mean paper_std"
        ),
        "winners": _columns(
            "dataset candidates metric k estimator repeats true_winner correct paper_correct"
        ),
        "distributions": _columns("dataset candidates recommender sampled estimator rank pmf cdf"),
        "sweep": _columns(
            "dataset candidates recommender metric k sampled estimator repeats "
            "exact mean std bias rmse"
        ),
        "claims": _columns("id claim where holds_by_bias holds_by_rmse detail"),
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


def statistics_rows(spec: Spec) -> Iterator[Row]:
    """Yield the sizes of each data set: those of the paper, and those found here."""
    printed = {row["dataset"]: row for row in _printed("statistics")}
    for dataset in spec.datasets:
        if dataset in printed:
            yield {**printed[dataset], "source": "paper", "note": ""}
        users, items, interactions, note = _sizes(dataset, spec)
        yield {
            "dataset": dataset,
            "source": "here",
            "users": users,
            "items": items,
            "interactions": interactions,
            "sparsity": 1.0 - interactions / (users * items),
            "note": note,
        }


def accuracy_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield mean, spread and error of each estimate at the K of the paper's accuracy tables."""
    printed = {
        (row["dataset"], row["recommender"], row["metric"], row["estimator"]): row
        for row in _printed("accuracy")
    }
    for cell in spec.tables():
        for column, metric in _at(spec, ACCURACY_K):
            for label, method in spec.estimators:
                key = (cell.dataset, label_of(cell.recommender), metric.family.name, label)
                paper = printed.get(key, {}) if _as_in_paper(cell) else {}
                found = {name: paper.get(f"{name}_x1000") for name in ("exact", "mean", "std")}
                yield {
                    **_where(cell, metric),
                    "estimator": label,
                    "method": method,
                    **_errors(results[cell], label, column),
                    **{f"paper_{k}": None if v is None else v / 1000.0 for k, v in found.items()},
                }


def winner_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield in how many repeats an estimator names the recommender that is truly best."""
    if len(spec.recommenders) < 2:
        return
    printed = {
        (row["dataset"], row["metric"], row["k"], row["estimator"]): row["correct"]
        for row in _printed("winners")
    }
    # The printed counts are for these five, and no others.
    comparable = set(spec.recommenders) == set(RECOMMENDERS)
    for dataset in spec.datasets:
        for candidates in spec.candidates:
            cells = [Cell(dataset, candidates, r, spec.sampled) for r in spec.recommenders]
            for column, metric in enumerate(spec.columns):
                exact = [results[cell].exact[column] for cell in cells]
                winner = int(np.argmax(exact))
                for label, _ in spec.estimators:
                    estimates = np.stack([results[c].values[label][:, column] for c in cells])
                    key = (dataset, metric.family.name, metric.k, label)
                    yield {
                        "dataset": dataset,
                        "candidates": candidates,
                        "metric": metric.family.name,
                        "k": metric.k,
                        "estimator": label,
                        "repeats": estimates.shape[1],
                        "true_winner": label_of(spec.recommenders[winner]),
                        "correct": int((estimates.argmax(axis=0) == winner).sum()),
                        "paper_correct": printed.get(key)
                        if comparable and _as_in_paper(cells[0])
                        else None,
                    }


def distribution_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield the learned and the exact P(R) at the top, for the figures."""
    for exhibit, cells in spec.figures("distributions"):
        for cell in cells:
            for label in ("exact", *exhibit.settings["estimators"]):
                if label not in results[cell].cdf:
                    continue
                cdf = results[cell].cdf[label]
                pmf = np.diff(cdf, prepend=0.0)
                for rank, (mass, total) in enumerate(zip(pmf, cdf, strict=True), start=1):
                    yield {
                        "dataset": cell.dataset,
                        "candidates": cell.candidates,
                        "recommender": label_of(cell.recommender),
                        "sampled": cell.sampled,
                        "estimator": label,
                        "rank": rank,
                        "pmf": float(mass),
                        "cdf": float(total),
                    }


def sweep_rows(spec: Spec, results: Cells) -> Iterator[Row]:
    """Yield how the error falls as more items are sampled."""
    labels = dict(spec.estimators)
    for exhibit, cells in spec.figures("sweep"):
        for cell in cells:
            for column, metric in _at(spec, exhibit.settings["k"]):
                for label in exhibit.settings["estimators"]:
                    if label in labels:
                        errors = _errors(results[cell], label, column)
                        yield {**_where(cell, metric), "estimator": label, **errors}


def _sizes(dataset: str, spec: Spec) -> tuple[int, int, int, str]:
    if spec.retrain:
        data = load(dataset)
        return data.users, data.items, len(data), data.note
    about = load_ranks(dataset, spec.recommenders[0], candidates="all").provenance
    # One target for each user was held out of the training pairs.
    return about["users"], about["items"], about["training_pairs"] + about["users"], about["note"]


def _printed(kind: str) -> Iterator[dict[str, Any]]:
    for exhibit in exhibits():
        if exhibit.kind == kind:
            for row in exhibit.rows:
                yield {**exhibit.settings, **row}


def _as_in_paper(cell: Cell) -> bool:
    return cell.candidates == "all" and cell.sampled == 99


def _at(spec: Spec, k: int) -> list[tuple[int, Metric]]:
    return [(column, metric) for column, metric in enumerate(spec.columns) if metric.k == k]


def _where(cell: Cell, metric: Metric) -> Row:
    return {
        "dataset": cell.dataset,
        "candidates": cell.candidates,
        "recommender": label_of(cell.recommender),
        "metric": metric.family.name,
        "k": metric.k,
        "sampled": cell.sampled,
    }


def _errors(result: CellResult, label: str, column: int) -> Row:
    exact, estimates = float(result.exact[column]), result.values[label][:, column]
    return {
        "repeats": len(estimates),
        "exact": exact,
        "mean": float(estimates.mean()),
        "std": float(estimates.std(ddof=1)),
        "bias": float(estimates.mean() - exact),
        "rmse": float(np.sqrt(np.mean((estimates - exact) ** 2))),
    }


# -- files ------------------------------------------------------------------------------------


def load_results(folder: str | os.PathLike[str]) -> Reproduction:
    """Read the tables that a finished run left in ``folder``."""
    place = Path(folder)
    settings = _read_json(place / "settings.json")
    timing = _read_json(place / "timing.json")
    tables = {name: read_rows(place / f"{name}.csv", name) for name in SCHEMA}
    return Reproduction(**tables, settings={**settings, **timing})


def write_rows(folder: Path, table: str, rows: Iterable[Row]) -> None:
    """Write a table as CSV, all of it or nothing."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    # A carriage return is quoted by newer Pythons only.
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(SCHEMA[table])
    for row in rows:
        cells = [_shown(row[name]) for name in SCHEMA[table]]
        (quoting if any("\r" in cell for cell in cells) else writer).writerow(cells)
    content = text.getvalue().encode()
    write_atomically(folder / f"{table}.csv", lambda file: file.write(content))


def read_rows(path: Path, table: str) -> Rows:
    """Read a table that `write_rows` wrote."""
    columns = SCHEMA[table]
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if header != list(columns):
                raise FileError(
                    f"{str(path)!r} must have the columns {', '.join(columns)}, got "
                    f"{', '.join(header) or 'none'}; run unsample reproduce again"
                )
            return tuple(
                {
                    name: _value(text, kind)
                    for (name, kind), text in zip(columns.items(), row, strict=True)
                }
                for row in filter(None, reader)
            )
    except OSError as problem:
        raise FileError(_unfinished(path)) from problem
    except (KeyError, ValueError, csv.Error) as problem:
        if isinstance(problem, FileError):
            raise
        raise FileError(
            f"{str(path)!r} must be a whole table, got one that cannot be read ({problem}); "
            "run unsample reproduce again"
        ) from problem


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, all of it or nothing."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileError(_unfinished(path)) from problem
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{str(path)!r} is not JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise FileError(
            f"{str(path)!r} must hold a JSON object, got {type(content).__name__}; run unsample "
            "reproduce again"
        )
    return content


def _unfinished(path: Path) -> str:
    return (
        f"{str(path.parent)!r} must hold a finished run, and lacks {path.name}; "
        f"finish it with: unsample reproduce --out {path.parent} --resume"
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Ten digits: more than any estimate deserves, and the same on any number of threads.
        return "" if math.isnan(value) else f"{value:.10g}"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet might compute a text, behind any marks that say it is one."""
    return text.lstrip("'").startswith(_FORMULA_STARTS)


def _value(text: str, kind: str) -> Any:
    if kind == "text":
        return text[1:] if text.startswith("'") and _is_formula(text) else text
    return None if text == "" else _READ[kind](text)
