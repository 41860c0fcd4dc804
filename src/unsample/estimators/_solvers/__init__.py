"""Optimisation problems on the simplex, each solved for many histograms at once.

Every solver states its problem, and every solution carries a certificate for each histogram:
how it ended, the objective, a bound on how far from the optimum that is, and the iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray

Statuses = npt.NDArray[np.str_]


class Status(StrEnum):
    """How a solver ended."""

    OPTIMAL = "optimal"
    #: Stopped after a number of iterations that is part of the method (100 EM steps).
    STOPPED = "stopped by design"
    CLOSED_FORM = "closed form"
    NOT_CONVERGED = "not converged"

    @classmethod
    def where(cls, converged: BoolArray) -> Statuses:
        """Return for each problem whether it was solved."""
        return np.where(converged, cls.OPTIMAL, cls.NOT_CONVERGED)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The evidence for one solution.

    ``gap`` bounds how far ``objective`` may be from the optimum of the stated problem (a duality
    gap).
    """

    status: Status
    objective: float = 0.0
    gap: float = 0.0
    iterations: int = 0

    @property
    def usable(self) -> bool:
        """Return whether the method did what it promises."""
        return self.status is not Status.NOT_CONVERGED

    def __str__(self) -> str:
        if self.status is Status.CLOSED_FORM:
            return str(self.status)
        return f"{self.status}, {self.iterations} iterations, gap {self.gap:.1e}"


#: The certificate of a formula.
CLOSED_FORM = Certificate(Status.CLOSED_FORM)


@dataclass(frozen=True, eq=False)
class Solution:
    """Solutions of a batch: one row of ``weights`` and one entry of the rest for each problem."""

    weights: FloatArray
    objective: FloatArray
    gap: FloatArray
    iterations: IntArray
    status: Statuses

    def certificate(self, row: int = 0) -> Certificate:
        """Return the certificate of one problem of the batch."""
        return Certificate(
            Status(self.status[row]),
            float(self.objective[row]),
            float(self.gap[row]),
            int(self.iterations[row]),
        )

    @classmethod
    def closed_form(cls, weights: FloatArray) -> Solution:
        """Wrap weights that came from a formula."""
        nothing, none = np.zeros(len(weights)), np.zeros(len(weights), dtype=np.int64)
        status = np.full(len(weights), Status.CLOSED_FORM)
        return cls(weights, nothing, nothing, none, status)
