"""Constrained least squares (CLS): a corrected metric with small bias that keeps its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, check_choice
from unsample.counts import DesignCells
from unsample.distribution import bin_weights
from unsample.errors import MethodError
from unsample.estimators._base import MetricEstimator
from unsample.estimators._observed import complete
from unsample.grid import RankGrid
from unsample.metrics import Metric
from unsample.simplex import Certificate, monotone_least_squares

__all__ = ["CLS"]


@dataclass(frozen=True)
class CLS(MetricEstimator):
    r"""Least squares over uniform P(R), with the corrected metric kept in order.

    .. math:: \min_x \sum_R \tfrac1N \Big(\sum_r P(r|R)\, x_r - w_K(R)\Big)^2,
              \qquad x_1 \ge \dots \ge x_n \ge 0

    ``constraint="nonnegative"`` drops the order and keeps the sign.

    Reference: Krichene, Rendle, KDD 2020; the order constraint reproduces the tables of Jin et
    al., AAAI 2021.
    """

    name: ClassVar[str] = "cls"
    constraint: str = "monotone"

    def __post_init__(self) -> None:
        check_choice("constraint", self.constraint, ("monotone", "nonnegative"), error=MethodError)

    def correct(
        self, cells: DesignCells, metrics: Sequence[Metric]
    ) -> tuple[FloatArray, Certificate]:
        """Solve one least-squares problem for each metric."""
        design = cells.design
        low, high = complete(cells.low, cells.high, design.n, self.name)
        cutoffs = [metric.cutoff(design.items) for metric in metrics]
        grid = RankGrid.build(design.items, sampled=design.sampled, cutoffs=cutoffs)
        matrix = design.matrix(low, high, grid).T
        uniform = grid.width / design.items
        solved = [
            monotone_least_squares(
                matrix,
                uniform,
                bin_weights(metric, grid),
                monotone=self.constraint == "monotone",
            )
            for metric in metrics
        ]
        corrected = np.stack([x for x, _ in solved], axis=1)
        worst = max((c for _, c in solved), key=lambda c: (not c.usable, c.gap))
        seen = np.searchsorted(low, cells.low)
        return corrected[seen], replace(worst, iterations=len(metrics))
