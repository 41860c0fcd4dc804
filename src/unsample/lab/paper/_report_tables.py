"""The tables of a report: our numbers beside the paper's, and how far these are from ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from unsample.lab.paper._tables import Row
from unsample.pages import Cell, Number, Table

DASH = "–"  # noqa: RUF001 - an en dash is what a typesetter puts for "none"
#: The paper prints every metric times 1000.
_UNIT = 1000
#: A sample is called enough when the median relative RMSE over recommenders is at most this.
_ENOUGH = 0.10
#: Exact values this near are taken to come from recommenders of the same quality.
_NEAR_EXACT, _NEAR_STD = 0.15, 0.20
_PAPER_REPEATS = 100
#: Among which items targets are ranked, in words.
CANDIDATES = {
    "all": "among all items, as in the paper (training items kept)",
    "unseen": "among unseen items (training items excluded)",
}


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


def metric_name(row: Row) -> str:
    """Return ``Recall@10`` and the like."""
    return f"{row['metric']}@{row['k']}"


def median_relative(rows: Iterable[Row], column: str) -> float:
    """Return the median of |column| / exact, over the rows whose exact value is not zero.

    A mean would be that of the one recommender whose exact value is nearly zero.
    """
    shares = [abs(row[column]) / row["exact"] for row in rows if row["exact"] > 0]
    return statistics.median(shares) if shares else math.nan


# -- numbers as text --------------------------------------------------------------------------


def _scaled(value: float | None, sign: str = "") -> str:
    """Return a metric times 1000 with two digits, as the paper prints it; ``"+"`` signs it."""
    if value is None:
        return DASH
    text = f"{_UNIT * value:{sign}.2f}"
    if not text.strip("+-0."):
        return text.lstrip("+-")
    return text.replace("-", "−")  # noqa: RUF001 - lines up with the plus sign


def _spread(mean: float | None, std: float | None) -> str:
    return _scaled(mean) if std is None else f"{_scaled(mean)} ± {_scaled(std)}"


def _percent(share: float) -> str:
    points = 100 * share
    if math.isnan(points):
        return DASH
    return f"{points:.0f} %" if points >= 9.95 else f"{points:.1f} %"


def _count(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"


# -- agreement with the paper -----------------------------------------------------------------


def mean_sign(row: Row) -> str:
    """Return how near our mean is to the paper's, by the spread of a single evaluation."""
    return _sign(None if row["paper_mean"] is None else _distance(row, "mean", row["paper_mean"]))


def bias_sign(row: Row) -> str:
    """Return how near our bias, mean minus exact, is to the paper's."""
    paper = row["paper_mean"]
    return _sign(None if paper is None else _distance(row, "bias", paper - row["paper_exact"]))


def winner_sign(row: Row) -> str:
    """Return how near two shares of correct winners are, by their standard error."""
    ours, paper, repeats = row["correct"], row["paper_correct"], row["repeats"]
    if paper is None:
        return _sign(None)
    # Half a success is added to each side, so that 0 and 100 of 100 have a spread too.
    share = (ours + paper + 0.5) / (repeats + _PAPER_REPEATS + 1)
    error = math.sqrt(share * (1 - share) * (1 / repeats + 1 / _PAPER_REPEATS))
    return _sign(abs(ours / repeats - paper / _PAPER_REPEATS) / error)


def _distance(row: Row, column: str, paper: float) -> float:
    pooled = math.sqrt((row["std"] ** 2 + row["paper_std"] ** 2) / 2)
    return float(abs(row[column] - paper) / pooled)


def _sign(distance: float | None) -> str:
    """Return ``=`` within a standard deviation, ``~`` within three, or ``≠``; "" of none."""
    if distance is None:
        return ""
    shown = round(distance, 1)
    return "=" if shown <= 1 else "~" if shown <= 3 else "≠"


def agreement_table(rows: Iterable[Row]) -> Table:
    """Return how much agrees by data set and candidates, where the paper has any number."""
    printed = [row for row in rows if row["paper_mean"] is not None]
    found = []
    for (dataset, candidates), group in grouped(printed, "dataset", "candidates").items():
        signs = [mean_sign(row) for row in group]
        lines = grouped(group, "recommender", "metric", "k").values()
        near = [line for line in lines if _within(line[0], "exact", _NEAR_EXACT)]
        spreads = [_within(row, "std", _NEAR_STD) for line in near for row in line]
        shares = (
            (signs.count("="), len(signs)),
            (len(signs) - signs.count("≠"), len(signs)),
            ([bias_sign(row) for row in group].count("="), len(signs)),
            (len(near), len(lines)),
            (sum(spreads), len(spreads)),
        )
        texts = (f"{part} of {whole}" if whole else DASH for part, whole in shares)
        found.append((dataset, candidates, *map(Number, texts)))
    header = (
        "data set",
        "candidates",
        "means within 1 SD",
        "means within 3 SD",
        "biases within 1 SD",
        "exact values within 15 %",
        "of their cells, SD within 20 %",
    )
    caption = (
        "Agreement with the paper. SD is the standard deviation of one evaluation: the root mean "
        "square of the paper's and ours. The recommenders behind the two are not the same, so "
        "exact values differ as well. Below, = marks numbers within one SD, ~ within three."
    )
    return Table(header, tuple(found), caption, "agreement")


def _within(row: Row, column: str, share: float) -> bool:
    ours, paper = row[column], row[f"paper_{column}"]
    return paper is not None and abs(ours - paper) <= share * abs(paper)


# -- tables -----------------------------------------------------------------------------------


def accuracy_tables(rows: Iterable[Row]) -> tuple[Table, ...]:
    """Return the accuracy on each data set and its candidates, the paper's numbers above ours."""
    tables: list[Table] = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        lines = [
            cells
            for metric in grouped(group, "metric", "k").values()
            for line in grouped(metric, "recommender").values()
            for cells in _accuracy_lines(line, any(r["paper_mean"] is not None for r in group))
        ]
        columns = ("metric", "recommender", "numbers", "exact", *values_of(group, "estimator"))
        caption = (
            f"{dataset}, {CANDIDATES[candidates]}: {group[0]['sampled']} items sampled; "
            "values × 1000; mean ± standard deviation over "  # noqa: RUF001
            f"{_count(group[0]['repeats'])} repeats"
        )
        tables.append(Table(columns, tuple(lines), caption, f"accuracy-{len(tables) + 1}"))
    return tuple(tables)


def _accuracy_lines(line: Sequence[Row], has_paper: bool) -> list[tuple[Cell, ...]]:
    """Return what the paper prints (where it does), ours, and our errors, below each other."""
    paper = [_spread(row["paper_mean"], row["paper_std"]) for row in line]
    printed = next((r["paper_exact"] for r in line if r["paper_exact"] is not None), None)
    ours = [f"{_spread(row['mean'], row['std'])} {mean_sign(row)}".rstrip() for row in line]
    errors = [f"{_scaled(row['bias'], '+')}; {_scaled(row['rmse'])}" for row in line]
    shown = {
        "paper": (_scaled(printed), *paper),
        "ours": (_scaled(line[0]["exact"]), *ours),
        "bias; RMSE": ("", *errors),
    }
    if not has_paper:
        del shown["paper"]
    names = metric_name(line[0]), str(line[0]["recommender"])
    return [(*names, what, *map(Number, cells)) for what, cells in shown.items()]


def winner_tables(rows: Iterable[Row]) -> tuple[Table, ...]:
    """Return the winners on each data set and its candidates; a cell: the paper's count, ours."""
    tables: list[Table] = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        has_paper = any(row["paper_correct"] is not None for row in group)
        lines: list[tuple[Cell, ...]] = [
            (
                metric_name(line[0]),
                str(line[0]["true_winner"]),
                *(Number(_winners(row, has_paper)) for row in line),
            )
            for line in grouped(group, "metric", "k").values()
        ]
        caption = (
            f"{dataset}, {CANDIDATES[candidates]}: correct winners of "
            f"{_count(group[0]['repeats'])} repeats{' (paper: of 100)' if has_paper else ''}"
        )
        columns = ("metric", "true winner", *values_of(group, "estimator"))
        tables.append(Table(columns, tuple(lines), caption, f"winners-{len(tables) + 1}"))
    return tuple(tables)


def _winners(row: Row, has_paper: bool) -> str:
    ours = _count(row["correct"])
    return f"{_count(row['paper_correct'])}, {ours} {winner_sign(row)}" if has_paper else ours


def sweep_tables(rows: Iterable[Row]) -> tuple[Table, ...]:
    """Return relative RMSE by sample size for each data set and its candidates."""
    tables: list[Table] = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        sizes = tuple(sorted(values_of(group, "sampled")))
        lines: list[tuple[Cell, ...]] = []
        for line in grouped(group, "metric", "k", "estimator").values():
            by_size = grouped(line, "sampled")
            errors = [median_relative(by_size[(size,)], "rmse") for size in sizes]
            texts = (*map(_percent, errors), _enough(sizes, errors))
            lines.append((str(line[0]["estimator"]), metric_name(line[0]), *map(Number, texts)))
        caption = (
            f"{dataset}, {CANDIDATES[candidates]}: RMSE / exact by the number of sampled items, "
            "median over recommenders; enough: the smallest tried size from which on it is at "
            f"most {100 * _ENOUGH:.0f} %"
        )
        columns = ("estimator", "metric", *map(str, sizes), "enough")
        tables.append(Table(columns, tuple(lines), caption, f"sweep-numbers-{len(tables) + 1}"))
    return tuple(tables)


def _enough(sizes: Sequence[int], errors: Sequence[float]) -> str:
    """Return the smallest size from which on every error is small."""
    enough = f"more than {_count(sizes[-1])}"
    for size, error in zip(reversed(sizes), reversed(errors), strict=True):
        if not error <= _ENOUGH:
            break
        enough = _count(size)
    return enough


def statistics_table(rows: Iterable[Row]) -> Table:
    """Return the sizes of the data sets, the paper's and ours."""
    columns: dict[str, Callable[[Row], Cell]] = {
        "data set": lambda row: str(row["dataset"]),
        "source": lambda row: str(row["source"]),
        "users": lambda row: Number(_count(row["users"])),
        "items": lambda row: Number(_count(row["items"])),
        "interactions": lambda row: Number(_count(row["interactions"])),
        "sparsity": lambda row: Number(f"{100 * row['sparsity']:.2f} %"),
        "note": lambda row: str(row["note"]),
    }
    return Table.of(rows, columns, "Size of the data sets, in the paper and here", "sizes")
