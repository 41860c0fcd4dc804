"""`Auto`: P(R) from the data and from what other data sets teach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from unsample.errors import MethodError
from unsample.estimators._base import DistributionEstimator
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Solution, Status
from unsample.estimators.prior import KINDS, Prior, shipped


@dataclass(frozen=True)
class Auto(DistributionEstimator):
    r"""The default: the posterior under a prior that was learned from full rankings elsewhere.

    A sample does not see the top ranks. The shape of P(R) there is learned from full rankings of
    many models on many data sets:

    .. math:: \log P(R) = \sum_j c_j s_j(R) + \mathrm{const}, \qquad c \sim N(\mu_k, \Sigma_k)

    with shapes s (a spike at rank 1, a power law, bends along log R and log N/R) whose
    coefficients have a mean and a covariance for each kind k of evaluation. The posterior is found
    by Newton's method and evaluated at fixed points around its mode. The result is the geometric
    mean of P(R) over these points, which nearly minimises the error of the logarithm of a metric.

    ``kind`` is ``unseen``, ``all``, ``repeats`` (people choose again what they chose before) or
    ``graph`` (knowledge graphs). Without it, unseen candidates are taken as recommendation, and for
    others the kinds are mixed by their evidence. ``docs/prior.md`` shows what was learned, how well
    it holds on data sets that were not used to learn it, and where it fails.

    Reference: Efron, "Empirical Bayes deconvolution estimates", Biometrika 2016, for log-densities
    of mixtures; that their prior is learned from other data sets is our own.
    """

    name: ClassVar[str] = "auto"
    joint: ClassVar[bool] = True
    kind: str = ""
    #: What other data sets know; the prior that ships with the package where none is given.
    prior: Prior | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in ("", *KINDS):
            raise MethodError(f"kind of auto must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if not (self.prior is None or isinstance(self.prior, Prior)):
            raise MethodError(
                f"prior of auto must be a Prior, got {type(self.prior).__name__}; pass it to "
                "estimate(prior=...)"
            )

    def __str__(self) -> str:
        return f"auto(kind={self.kind})" if self.kind else "auto"

    def solve(self, observed: Observed) -> Solution:
        """Return the expected mass of each bin, for each histogram."""
        prior = shipped() if self.prior is None else self.prior
        kind: str | None = self.kind or None
        if (
            kind is None
            and observed.candidates in prior.learned
            and observed.candidates == "unseen"
        ):
            # Knowledge graphs are expected to state their kind; intervals allow for them anyway.
            kind = observed.candidates
        found = prior.posterior(observed, (), kind=kind)
        rows = len(observed.shares)
        failed = np.arange(rows) < found.failures
        weights = ", ".join(
            f"{kind} {100 * part:.0f} %"
            for kind, part in zip(found.kinds, found.weight[0], strict=True)
        )
        return Solution(
            observed.known_mass() + found.mass,
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows, dtype=np.int64),
            Status.where(~failed),
            f"learned from full rankings of other data sets ({weights})",
        )
