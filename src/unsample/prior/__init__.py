r"""One posterior for everything that is uncertain: values, intervals, differences, chances.

**Curves.** Model m of a data set of kind k has log P(R) = sum of theta_j times shape j, with theta
= mu_k + common + own_m: what the models of a data set share, and what is a model's own. Means and
covariances are learned from full rankings of other models on other data sets (`Prior`).

**Data.** What was seen of a target is a cell, with score s = d log P(cell)/d theta. Each model's
mode is found alone, with H = P + information, where P is the prior's precision. So a model has the
same interval whoever it is compared with. The errors of all models together have the covariance

.. math:: H_a^{-1} \, (P C_{ab} P + V_{ab}) \, H_b^{-1}

C is the covariance of what is common, times one factor, and for a model with itself that of what is
its own, times another. V is the covariance of users' summed scores, from pair counts: two targets
of a user, or two models' targets. Shared items add theirs (jackknife over items, less what users
count too). With independent users, factors of 1 and the right curve this is Laplace's law. Real
curves are not exactly sums of shapes: what they leave out acts like the chance of ``misfit``
targets more.

**Metrics.** The value is the mean over targets of E[w(R) | cell, theta]: e to the posterior mean of
its logarithm. Its error for *users like these* is that of theta and of the cells that were drawn;
for *these users* it is that of theta and of what cells leave open of their own ranks. Where a
sample shows a metric (K >= N/n) nothing of the prior is left, and the error is that of a mean.

**Runs** of a model are averaged (`Law.averaged`): users are counted as above, what the prior leaves
open of a model's own curve is the same in all its runs, and the spread of the runs is a further
part with as many degrees of freedom as there are runs, less one.

**Kinds** (``"unseen"``, ``"all"``, ``"repeats"``, ``"graph"``) that may be are mixed once, by their
evidence. **Factors**, two for each kind, are chosen so that intervals of 95 % hold for 95 % of data
sets and models that were left out, and so do those of differences (``benchmarks/calibration.py``).

**Fit.** Deviance and prior distance above their expectation, for each target, are compared with
what families left out show. Where they are larger, or with fewer than 50 users, intervals must be
the bounds (``sources``). A heap of targets above rank N/n is not seen by any sample, nor by this.

>>> from unsample.evidence import RankCounts
>>> counts = RankCounts.from_ranks([1, 1, 2, 5, 30] * 100, items=10_000, sampled=99)
>>> law = Posterior.of(counts, shipped(), candidates="unseen").law("NDCG@10")
>>> low, high = law.interval(level=0.95)
>>> low < law.value() < high
True
"""

from unsample.prior._law import (
    ALONE,
    BOUNDS,
    CAUTION,
    DRAWS,
    PRIOR,
    Law,
    LogDifference,
    LogSpread,
    best_of,
    symmetric_root,
    t_law,
)
from unsample.prior._learn import Gaussian, History, Learned
from unsample.prior._numbers import Numbers
from unsample.prior._posterior import FEWEST_USERS, Posterior
from unsample.prior._prior import KINDS, Prior, shipped
from unsample.prior._runs import cautious, draws_of_runs, runs_apart, variance_of_runs, with_runs

__all__ = [
    "ALONE",
    "BOUNDS",
    "CAUTION",
    "DRAWS",
    "FEWEST_USERS",
    "KINDS",
    "PRIOR",
    "Gaussian",
    "History",
    "Law",
    "Learned",
    "LogDifference",
    "LogSpread",
    "Numbers",
    "Posterior",
    "Prior",
    "best_of",
    "cautious",
    "draws_of_runs",
    "runs_apart",
    "shipped",
    "symmetric_root",
    "t_law",
    "variance_of_runs",
    "with_runs",
]
