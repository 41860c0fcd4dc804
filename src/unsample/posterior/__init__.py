r"""The posterior is a cloud of curves: everything that is uncertain is read from it.

A *draw* is one curve P(R) for each model, over bins of ranks, that the data and other data sets
allow. There are some thousand, from fixed random numbers. Whatever is asked is a number for each
draw: a metric, any K, a metric of one's own, the difference of two models, the mean over data sets,
a place. The value is the median of the draws, an interval their quantiles, a probability the share
of draws (`unsample.uncertainty.FromDraws`). So Recall grows with K, NDCG is at most Recall, MRR at
least Recall@1, and a hundred metrics cost hardly more than one.

**What a draw is.** The mode of the penalised likelihood, refitted with the prior's centre moved by
a draw of the prior's error, and the shares of the cells moved by a draw of the users' error. One
Newton step from the mode is the fast way; `moved_mode` goes all the way and is its slow twin. With
factors of 1, independent users and fewer than ten thousand of them this is close to the posterior
in the textbook's sense: beside Hamiltonian Monte Carlo the width is the same to a few per cent and
the value a fifth of a standard deviation high (``tests/test_validity_posterior.py``). With factors
and tempering it is what holds on data sets that were left out.

1. *Curve* (`_basis`, `_learning`). log P(R) is a sum of shapes times coefficients theta = mu_k +
   common + own: what the models of a data set of kind k share, and what is a model's own.
2. *Components* (`_components`). A scale says how unusual a data set is, a top what its first ranks
   are like. The data choose among them by their evidence.
3. *The bottom does not speak about the top* (`_modes`). Sampled ranks beyond a fifth of the sample
   are one cell of the fit. Cold items and heaps do not touch the estimate of the top.
4. *The likelihood is tempered* (`_modes`). M independent users count as M K / (M + K), for curves
   are not exactly sums of shapes.
5. *Users' error* (`_moved_shares`). The weights of cells are correlated gamma variables: with one
   target a user, the Bayesian bootstrap. Users with several targets, and items that targets share,
   enter by their covariance.
6. *Follow the sample* (`_cloud`). Given a curve and the shares, targets are where P(R | cell) puts
   them. Where a sample shows a metric (K >= N/n) nothing of the prior is left. Targets that were
   ranked among all items are known, and teach the curve of the others.
7. *These users* (`_placed_targets`). Shares are fixed, and each draw places the targets inside
   their cells at random.
8. *Several models* (`_joint_draws`). Models share the draws of what is common to a data set, of
   scale and kind, and of users and items where these are the same. A model's own interval always
   comes from its own cloud: it is the same alone and in company.

Two **factors** for each kind multiply the covariances of the prior's error. They are chosen so that
intervals of 95 % hold on families of data sets and kinds of models that were left out
(``benchmarks/calibration.py``). What a sample cannot show, the first N/n ranks, only other data
sets or a few users ranked in full can tell.

**What was tried and left out**: a scale of 8 (never chosen), independent random numbers (from one
set to another ends move by 2.7 % of a half-width, here by 1.4 %), clipped normal numbers for shares
(biased in cells of one target), fitting all models jointly (no better), one curve for catalogues of
all sizes (users with few candidates are others: half-widths on ml-1m were twice as large), further
steps of a draw with the precision at the mode (they wander).

>>> from unsample.counts import RankCounts
>>> counts = RankCounts.from_ranks([1, 1, 2, 5, 30] * 100, items=10_000, sampled=99)
>>> metric = Cloud.of(counts, shipped(), protocol="unseen").metric("NDCG@10")
>>> low, high = metric.interval(level=0.95)
>>> low < metric.value < high
True
"""

from unsample.posterior._cloud import Cloud
from unsample.posterior._fixed_numbers import FixedNumbers
from unsample.posterior._joint_draws import CAUTION, DataSet, joint_draws, stream_of
from unsample.posterior._learning import Gaussian, History, Learned
from unsample.posterior._printed_numbers import FittedNumbers, Numbers, cloud_of_numbers
from unsample.posterior._prior import PROTOCOLS, Prior, shipped
from unsample.posterior._symmetric_root import symmetric_root

__all__ = [
    "CAUTION",
    "PROTOCOLS",
    "Cloud",
    "DataSet",
    "FittedNumbers",
    "FixedNumbers",
    "Gaussian",
    "History",
    "Learned",
    "Numbers",
    "Prior",
    "cloud_of_numbers",
    "joint_draws",
    "shipped",
    "stream_of",
    "symmetric_root",
]
