"""How far our numbers are from the paper's, in standard deviations, and how often that is near."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unsample.lab.report._results import Row, grouped
from unsample.pages._format import is_number

__all__ = [
    "Agreement",
    "Deviation",
    "accuracy_deviation",
    "agreements",
    "bias_deviation",
    "winner_deviation",
]

#: Exact values this near are taken to come from recommenders of the same quality.
NEAR_EXACT = 0.15
NEAR_STD = 0.20
_PAPER_REPEATS = 100


@dataclass(frozen=True)
class Deviation:
    """A distance from the paper's number in standard deviations; None where the paper has none."""

    size: float | None

    @property
    def level(self) -> str:
        """Return ``same``, ``near`` or ``far``, or nothing where there is nothing to compare."""
        if self.size is None:
            return ""
        shown = round(self.size, 1)  # so that a sign never contradicts the number beside it
        if shown <= 1:
            return "same"
        return "near" if shown <= 3 else "far"

    @property
    def marker(self) -> str:
        """Return the sign that says the level without colour."""
        return {"": "", "same": "=", "near": "~", "far": "≠"}[self.level]

    def __str__(self) -> str:
        if self.size is None:
            return ""
        text = f"{self.size:.1f}" if self.size < 99.95 else "> 99"
        return f"{text}σ"  # noqa: RUF001 - the usual sign of a standard deviation


@dataclass(frozen=True)
class Agreement:
    """How many cells of one group of tables agree with the paper."""

    dataset: str
    protocol: str
    cells: int
    same: int
    near: int
    same_bias: int
    #: Recommender and metric pairs, and those whose exact values are near.
    lines: int
    near_lines: int
    #: Cells of those near lines, and those among them whose spread is near as well.
    near_line_cells: int
    near_std: int


def accuracy_deviation(row: Row) -> Deviation:
    """Return how far our mean is from the paper's, by the spread of a single evaluation."""
    return _distance(row["mean"], row["paper_mean"], row)


def bias_deviation(row: Row) -> Deviation:
    """Return how far our bias, mean minus exact, is from the paper's."""
    if not is_number(row["paper_exact"]) or not is_number(row["paper_mean"]):
        return Deviation(None)
    return _distance(row["bias"], row["paper_mean"] - row["paper_exact"], row)


def winner_deviation(row: Row) -> Deviation:
    """Return how far apart two shares of correct winners are, by their standard error."""
    ours, paper, repeats = row["correct"], row["paper_correct"], row["repeats"]
    if not is_number(ours) or not is_number(paper) or not repeats:
        return Deviation(None)
    # Half a success is added to each side, so that 0 and 100 of 100 have a spread too.
    share = (ours + paper + 0.5) / (repeats + _PAPER_REPEATS + 1)
    error = math.sqrt(share * (1 - share) * (1 / repeats + 1 / _PAPER_REPEATS))
    return Deviation(abs(ours / repeats - paper / _PAPER_REPEATS) / error)


def agreements(rows: Iterable[Row]) -> tuple[Agreement, ...]:
    """Return the agreement by data set and protocol, where the paper has any number."""
    groups = grouped((row for row in rows if is_number(row["paper_mean"])), "dataset", "protocol")
    return tuple(
        _agreement(dataset, protocol, group) for (dataset, protocol), group in groups.items()
    )


def _agreement(dataset: str, protocol: str, rows: Sequence[Row]) -> Agreement:
    means = [accuracy_deviation(row).level for row in rows]
    lines = grouped(rows, "recommender", "metric", "k", "sampled")
    near = [line for line in lines.values() if _is_near_exact(line[0])]
    cells = [row for line in near for row in line]
    return Agreement(
        dataset=dataset,
        protocol=protocol,
        cells=len(means),
        same=means.count("same"),
        near=means.count("near"),
        same_bias=sum(bias_deviation(row).level == "same" for row in rows),
        lines=len(lines),
        near_lines=len(near),
        near_line_cells=len(cells),
        near_std=sum(_is_within(row["std"], row["paper_std"], NEAR_STD) for row in cells),
    )


def _is_near_exact(row: Row) -> bool:
    return _is_within(row["exact"], row["paper_exact"], NEAR_EXACT)


def _is_within(ours: float | None, paper: float | None, share: float) -> bool:
    if ours is None or paper is None:
        return False
    return abs(ours - paper) <= share * abs(paper)


def _distance(ours: float | None, paper: float | None, row: Row) -> Deviation:
    spreads = [row[name] for name in ("std", "paper_std") if is_number(row[name])]
    if ours is None or paper is None or not is_number(ours) or not any(spreads):
        return Deviation(None)
    pooled = math.sqrt(sum(spread**2 for spread in spreads) / len(spreads))
    return Deviation(abs(ours - paper) / pooled)
