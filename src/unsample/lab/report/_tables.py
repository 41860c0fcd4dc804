"""The tables as plain values, which HTML, Markdown and LaTeX all write from."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from unsample.lab.report._agreement import Deviation, accuracy_deviation, winner_deviation
from unsample.lab.report._results import Row, grouped, values_of
from unsample.pages._format import count, is_number, percent, scaled, signed, spread

__all__ = [
    "ENOUGH",
    "PROTOCOL_NAMES",
    "AccuracyCell",
    "AccuracyLine",
    "AccuracyTable",
    "StatisticsLine",
    "SweepLine",
    "SweepTable",
    "WinnerCell",
    "WinnerLine",
    "WinnerTable",
    "accuracy_tables",
    "median_relative",
    "metric_name",
    "protocol_name",
    "statistics_lines",
    "sweep_tables",
    "winner_tables",
]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

PROTOCOL_NAMES = {
    "paper": "paper's protocol (training items kept)",
    "everyday": "everyday protocol (training items excluded)",
}
#: A sample is called enough when the median relative RMSE over recommenders is at most this.
ENOUGH = 0.10


@dataclass(frozen=True)
class AccuracyCell:
    """One estimator of one metric: the paper's numbers and ours, as text."""

    paper: str
    ours: str
    bias: str
    rmse: str
    deviation: Deviation
    least_bias: bool
    least_rmse: bool


@dataclass(frozen=True)
class AccuracyLine:
    """One recommender and metric; ``cells`` follow the table's estimators, None where not run."""

    metric: str
    recommender: str
    paper_exact: str
    exact: str
    cells: tuple[AccuracyCell | None, ...]


@dataclass(frozen=True)
class AccuracyTable:
    """Accuracy on one data set by one protocol."""

    dataset: str
    protocol: str
    sampled: int
    repeats: str
    has_paper: bool
    estimators: tuple[str, ...]
    lines: tuple[AccuracyLine, ...]

    @property
    def caption(self) -> str:
        """Return what stands above the table where no heading does."""
        return f"{self.dataset}, {protocol_name(self.protocol)}: {self.note}"

    @property
    def note(self) -> str:
        """Return how to read the table."""
        return (
            f"{self.sampled} items sampled; values × 1000; "  # noqa: RUF001
            f"mean ± standard deviation over {self.repeats} repeats"
        )

    @property
    def by_metric(self) -> dict[str, list[AccuracyLine]]:
        """Return the lines of each metric."""
        return _by(self.lines, [line.metric for line in self.lines])


@dataclass(frozen=True)
class WinnerCell:
    """How often one estimator named the true winner."""

    paper: str
    ours: str
    deviation: Deviation


@dataclass(frozen=True)
class WinnerLine:
    """One metric at one K."""

    k: int
    metric: str
    true_winner: str
    cells: tuple[WinnerCell | None, ...]


@dataclass(frozen=True)
class WinnerTable:
    """Correct winners on one data set by one protocol."""

    dataset: str
    protocol: str
    repeats: str
    has_paper: bool
    estimators: tuple[str, ...]
    lines: tuple[WinnerLine, ...]

    @property
    def caption(self) -> str:
        """Return what stands above the table where no heading does."""
        return f"{self.dataset}, {protocol_name(self.protocol)}: {self.note}"

    @property
    def note(self) -> str:
        """Return how to read the table."""
        paper = " (paper: of 100)" if self.has_paper else ""
        return f"correct winners of {self.repeats} repeats{paper}"

    @property
    def by_k(self) -> dict[int, list[WinnerLine]]:
        """Return the lines of each K."""
        return _by(self.lines, [line.k for line in self.lines])


@dataclass(frozen=True)
class StatisticsLine:
    """Size of one data set from one source."""

    dataset: str
    source: str
    users: str
    items: str
    interactions: str
    sparsity: str
    note: str


@dataclass(frozen=True)
class SweepLine:
    """Relative RMSE of one estimator by sample size, and the smallest size that is enough."""

    metric: str
    estimator: str
    errors: tuple[str, ...]
    enough: str


@dataclass(frozen=True)
class SweepTable:
    """The numbers behind the sweep's figure."""

    dataset: str
    protocol: str
    sizes: tuple[int, ...]
    lines: tuple[SweepLine, ...]


def protocol_name(protocol: str) -> str:
    """Return a protocol in words; a name of another kind stands for itself."""
    return PROTOCOL_NAMES.get(protocol, protocol)


def metric_name(row: Row) -> str:
    """Return ``Recall@10`` and the like."""
    return f"{row['metric']}@{row['k']}"


def accuracy_tables(rows: Iterable[Row]) -> tuple[AccuracyTable, ...]:
    """Return a table for each data set, protocol and sample size."""
    groups = grouped(rows, "dataset", "protocol", "sampled")
    return tuple(
        _accuracy_table(dataset, protocol, sampled, group)
        for (dataset, protocol, sampled), group in groups.items()
    )


def winner_tables(rows: Iterable[Row]) -> tuple[WinnerTable, ...]:
    """Return a table for each data set and protocol."""
    groups = grouped(rows, "dataset", "protocol")
    return tuple(
        _winner_table(dataset, protocol, group) for (dataset, protocol), group in groups.items()
    )


def statistics_lines(rows: Iterable[Row]) -> dict[str, list[StatisticsLine]]:
    """Return the lines of each data set, the paper's and ours."""
    lines = [
        StatisticsLine(
            dataset=str(row["dataset"]),
            source=str(row["source"]),
            users=count(row["users"]),
            items=count(row["items"]),
            interactions=count(row["interactions"]),
            sparsity=_sparsity(row["sparsity"]),
            note=str(row["note"] or ""),
        )
        for row in rows
    ]
    return _by(lines, [line.dataset for line in lines])


def sweep_tables(rows: Iterable[Row]) -> tuple[SweepTable, ...]:
    """Return relative RMSE by sample size for each data set and protocol."""
    groups = grouped(rows, "dataset", "protocol")
    return tuple(
        _sweep_table(dataset, protocol, group) for (dataset, protocol), group in groups.items()
    )


def median_relative(rows: Iterable[Row], column: str) -> float | None:
    """Return the median of |column| / exact, over the rows that have both.

    A mean would be that of the one recommender whose exact value is nearly zero.
    """
    shares = [
        abs(row[column]) / row["exact"]
        for row in rows
        if is_number(row[column]) and is_number(row["exact"]) and row["exact"] > 0
    ]
    return statistics.median(shares) if shares else None


def _accuracy_table(
    dataset: str, protocol: str, sampled: int, rows: Sequence[Row]
) -> AccuracyTable:
    estimators = values_of(rows, "estimator")
    # Metric by metric, as the paper has it, whatever the order of the rows.
    lines = [
        line
        for metric in grouped(rows, "metric", "k").values()
        for line in grouped(metric, "recommender").values()
    ]
    return AccuracyTable(
        dataset=dataset,
        protocol=protocol,
        sampled=sampled,
        repeats=_range(rows, "repeats"),
        has_paper=any(is_number(row["paper_mean"]) for row in rows),
        estimators=estimators,
        lines=tuple(_accuracy_line(line, estimators) for line in lines),
    )


def _accuracy_line(rows: Sequence[Row], estimators: Sequence[str]) -> AccuracyLine:
    first = rows[0]
    paper_exact = next((r["paper_exact"] for r in rows if is_number(r["paper_exact"])), None)
    least_bias, least_rmse = _least(rows, "bias"), _least(rows, "rmse")
    cells = {
        row["estimator"]: AccuracyCell(
            paper=spread(row["paper_mean"], row["paper_std"]),
            ours=spread(row["mean"], row["std"]),
            bias=signed(row["bias"]),
            rmse=scaled(row["rmse"]),
            deviation=accuracy_deviation(row),
            least_bias=row is least_bias,
            least_rmse=row is least_rmse,
        )
        for row in rows
    }
    return AccuracyLine(
        metric=metric_name(first),
        recommender=str(first["recommender"]),
        paper_exact=scaled(paper_exact),
        exact=scaled(first["exact"]),
        cells=tuple(cells.get(name) for name in estimators),
    )


def _winner_table(dataset: str, protocol: str, rows: Sequence[Row]) -> WinnerTable:
    estimators = values_of(rows, "estimator")
    lines = grouped(rows, "k", "metric")
    return WinnerTable(
        dataset=dataset,
        protocol=protocol,
        repeats=_range(rows, "repeats"),
        has_paper=any(is_number(row["paper_correct"]) for row in rows),
        estimators=estimators,
        lines=tuple(_winner_line(line, estimators) for line in lines.values()),
    )


def _winner_line(rows: Sequence[Row], estimators: Sequence[str]) -> WinnerLine:
    cells = {
        row["estimator"]: WinnerCell(
            paper=count(row["paper_correct"]),
            ours=count(row["correct"]),
            deviation=winner_deviation(row),
        )
        for row in rows
    }
    return WinnerLine(
        k=rows[0]["k"],
        metric=metric_name(rows[0]),
        true_winner=str(rows[0]["true_winner"]),
        cells=tuple(cells.get(name) for name in estimators),
    )


def _sweep_table(dataset: str, protocol: str, rows: Sequence[Row]) -> SweepTable:
    sizes = tuple(sorted(values_of(rows, "sampled")))
    lines = []
    for group in grouped(rows, "metric", "k", "estimator").values():
        by_size = grouped(group, "sampled")
        errors = [median_relative(by_size.get((size,), ()), "rmse") for size in sizes]
        lines.append(
            SweepLine(
                metric=metric_name(group[0]),
                estimator=str(group[0]["estimator"]),
                errors=tuple(percent(error) for error in errors),
                enough=_enough(sizes, errors),
            )
        )
    return SweepTable(dataset=dataset, protocol=protocol, sizes=sizes, lines=tuple(lines))


def _enough(sizes: Sequence[int], errors: Sequence[float | None]) -> str:
    """Return the smallest size from which on every error is small."""
    enough = f"more than {count(sizes[-1])}"
    for size, error in zip(reversed(sizes), reversed(errors), strict=True):
        if error is None or error > ENOUGH:
            break
        enough = count(size)
    return enough


def _least(rows: Sequence[Row], column: str) -> Row | None:
    known = [row for row in rows if is_number(row[column])]
    return min(known, key=lambda row: abs(row[column]), default=None)


def _range(rows: Sequence[Row], column: str) -> str:
    values = [row[column] for row in rows if is_number(row[column])]
    if not values:
        return "an unknown number of"
    low, high = min(values), max(values)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def _sparsity(value: float | None) -> str:
    """Return the share of empty cells in percent, with the digits the paper gives."""
    if value is None or not is_number(value):
        return percent(None)
    # A share is at most 1; whatever is above has been written in percent already.
    return f"{100 * value if value <= 1 else value:.2f} %"


def _by(values: Sequence[_Value], keys: Sequence[_Key]) -> dict[_Key, list[_Value]]:
    groups: dict[_Key, list[_Value]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return groups
