"""Constrained least squares (CLS): a corrected metric with small bias that keeps its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import check_choice
from unsample.errors import MethodError
from unsample.estimators._base import Estimator, Evaluation, clipped_to_range, known_values
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Certificate, Status, monotone_least_squares
from unsample.metrics import Metric

__all__ = ["CLS"]


@dataclass(frozen=True)
class CLS(Estimator):
    r"""Least squares over uniform P(R), with the corrected metric kept in order.

    .. math:: \min_x \sum_R \tfrac1N \Big(\sum_r P(r|R)\, x_r - w_K(R)\Big)^2,
              \qquad x_1 \ge \dots \ge x_n \ge 0

    ``constraint="nonnegative"`` drops the order and keeps the sign. Where catalogues differ by
    user, P(r|R) is averaged over them. A value outside the metric's range is clipped into it.

    Reference: Krichene, Rendle, KDD 2020; the order constraint reproduces the tables of Jin et
    al., AAAI 2021.
    """

    name: ClassVar[str] = "cls"
    gives_distribution: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    constraint: str = "monotone"

    def __post_init__(self) -> None:
        check_choice("constraint", self.constraint, ("monotone", "nonnegative"), error=MethodError)

    def evaluate(self, observed: Observed, metrics: Sequence[Metric]) -> Evaluation:
        """Solve one least-squares problem for each metric and sample size."""
        self.require(metrics)
        known = known_values(observed, metrics)
        if observed.known.all():
            return Evaluation(known, Certificate(Status.CLOSED_FORM, 0.0, 0.0, 0.0, 0), 0)
        rest = observed.unknown_part()
        uniform = rest.widths / rest.grid.items
        targets = [rest.bin_weights(metric) for metric in metrics]
        values, certificates = np.zeros_like(known), []
        for pool in rest.pools(self.name):
            solved = [
                monotone_least_squares(
                    pool.matrix.T, uniform, target, monotone=self.constraint == "monotone"
                )
                for target in targets
            ]
            values += pool.shares @ np.stack([x for x, _ in solved], axis=1)
            certificates += [certificate for _, certificate in solved]
        worst = max(certificates, key=lambda found: (not found.usable, found.gap))
        values *= (1.0 - observed.known_share)[:, None]
        return Evaluation(
            known + clipped_to_range(values, observed, targets),
            worst,
            int(not worst.usable),
            unclipped=known + values,
        )
