"""How a solver ended, and how far from the optimum its solution may be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unsample._checks import FloatArray


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
    """The mass of each bin, one row for each histogram, and the certificate of the first."""

    weights: FloatArray
    certificate: Certificate
