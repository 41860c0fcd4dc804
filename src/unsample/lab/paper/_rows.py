"""From finished cells to the rows of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from unsample.lab.datasets import load, load_ranks
from unsample.lab.experiment._cells import CellResult
from unsample.lab.experiment._papers import RECOMMENDERS, exhibits
from unsample.lab.experiment._results import Row
from unsample.lab.experiment._spec import ACCURACY_K, Cell, Spec, label_of
from unsample.metrics import Metric

__all__ = ["accuracy_rows", "distribution_rows", "statistics_rows", "sweep_rows", "winner_rows"]

#: Printed numbers are metrics times this.
_PRINTED_UNIT = 1000.0

Results = Mapping[Cell, CellResult]


def statistics_rows(spec: Spec) -> Iterator[Row]:
    """Yield the sizes of each data set: the paper's, and those at hand."""
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


def accuracy_rows(spec: Spec, results: Results) -> Iterator[Row]:
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
                yield {
                    **_where(cell, metric),
                    "estimator": label,
                    "method": method,
                    **_errors(results[cell], label, column),
                    "paper_exact": _plain(paper.get("exact_x1000")),
                    "paper_mean": _plain(paper.get("mean_x1000")),
                    "paper_std": _plain(paper.get("std_x1000")),
                }


def winner_rows(spec: Spec, results: Results) -> Iterator[Row]:
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
        for protocol in spec.protocols:
            cells = [Cell(dataset, protocol, r, spec.sampled) for r in spec.recommenders]
            for column, metric in enumerate(spec.columns):
                exact = [results[cell].exact[column] for cell in cells]
                winner = int(np.argmax(exact))
                for label, _ in spec.estimators:
                    estimates = np.stack([results[c].values[label][:, column] for c in cells])
                    key = (dataset, metric.family.name, metric.k, label)
                    yield {
                        "dataset": dataset,
                        "protocol": protocol,
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


def distribution_rows(spec: Spec, results: Results) -> Iterator[Row]:
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
                        "protocol": cell.protocol,
                        "recommender": label_of(cell.recommender),
                        "sampled": cell.sampled,
                        "estimator": label,
                        "rank": rank,
                        "pmf": float(mass),
                        "cdf": float(total),
                    }


def sweep_rows(spec: Spec, results: Results) -> Iterator[Row]:
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
    about = load_ranks(dataset, spec.recommenders[0], protocol="paper").provenance
    # One target for each user was held out of the training pairs.
    return about["users"], about["items"], about["training_pairs"] + about["users"], about["note"]


def _printed(kind: str) -> Iterator[dict[str, Any]]:
    for exhibit in exhibits():
        if exhibit.kind == kind:
            for row in exhibit.rows:
                yield {**exhibit.settings, **row}


def _as_in_paper(cell: Cell) -> bool:
    return cell.protocol == "paper" and cell.sampled == 99


def _at(spec: Spec, k: int) -> list[tuple[int, Metric]]:
    return [(column, metric) for column, metric in enumerate(spec.columns) if metric.k == k]


def _where(cell: Cell, metric: Metric) -> Row:
    return {
        "dataset": cell.dataset,
        "protocol": cell.protocol,
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


def _plain(printed: float | None) -> float | None:
    return None if printed is None else printed / _PRINTED_UNIT
