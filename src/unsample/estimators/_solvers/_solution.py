"""What a solver returns: weights, and a certificate for each problem of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from unsample._checks import FloatArray, IntArray

__all__ = ["Certificate", "Solution", "Status"]


class Status(StrEnum):
    """How a solver ended."""

    OPTIMAL = "optimal"
    #: Stopped after a number of iterations that is part of the method (100 EM steps).
    STOPPED = "stopped by design"
    CLOSED_FORM = "closed form"
    NOT_CONVERGED = "not converged"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The evidence for one solution.

    ``gap`` bounds how far ``objective`` may be from the optimum of the stated problem (a duality
    gap); ``residual`` is the largest violation of its optimality conditions.
    """

    status: Status
    objective: float
    gap: float
    residual: float
    iterations: int

    @property
    def usable(self) -> bool:
        """Return whether the method did what it promises."""
        return self.status is not Status.NOT_CONVERGED

    def __str__(self) -> str:
        if self.status is Status.CLOSED_FORM:
            return str(self.status)
        return f"{self.status}, {self.iterations} iterations, gap {self.gap:.1e}"


@dataclass(frozen=True, eq=False)
class Solution:
    """Solutions of a batch: one row of ``weights`` and one entry of the rest for each problem."""

    weights: FloatArray
    objective: FloatArray
    gap: FloatArray
    residual: FloatArray
    iterations: IntArray
    status: tuple[Status, ...]
    #: What the method chose on the first problem, in words, where it chose.
    explanation: str = ""

    def certificate(self, row: int = 0) -> Certificate:
        """Return the certificate of one problem of the batch."""
        return Certificate(
            self.status[row],
            float(self.objective[row]),
            float(self.gap[row]),
            float(self.residual[row]),
            int(self.iterations[row]),
        )

    @property
    def failures(self) -> int:
        """Return how many problems of the batch did not converge."""
        return sum(status is Status.NOT_CONVERGED for status in self.status)

    @classmethod
    def closed_form(cls, weights: FloatArray) -> Solution:
        """Wrap weights that came from a formula."""
        rows = len(weights)
        nothing = np.zeros(rows)
        return cls(
            weights,
            nothing,
            nothing,
            nothing,
            np.zeros(rows, dtype=np.int64),
            (Status.CLOSED_FORM,) * rows,
        )
