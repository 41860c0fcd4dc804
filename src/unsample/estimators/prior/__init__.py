"""What other data sets teach: a learned prior over the shape of log P(R), and posteriors under it.

A sample does not show the top of the catalogue. Full evaluations of other models on other data sets
do, to some extent. The interface:

* ``shipped()`` returns the `Prior` that ships with the package, ``Prior.load(path)`` another one.
  ``Prior.learn([ranks, ...], items=N)`` adds a history of one's own to it, ``Prior.fit(histories)``
  learns from nothing but `History` objects. ``prior.save(path)`` writes a plain ``.npz``.
* ``prior.posterior(observed, metrics, kind=None, targets=None)`` takes prepared evidence of any
  form (`Observed`: samples, published ranges, known ranks; rows are a batch) and returns
  a `Posterior`: ``.values`` (e to the posterior mean of the logarithm, which minimises the squared
  error of the logarithm), ``.interval(0.95)`` (calibrated on data sets that were left out),
  ``.cdf``, ``.mass`` (P(R) on the evidence's grid). ``targets`` is the number of independent
  targets. Values are means of w(R) over targets; multiply them by ``counts.scale`` where users have
  several.
* ``prior.joint([observed, ...], metrics)`` returns a `JointPosterior` of models on one data set:
  ``.chance(0, 1)`` is the calibrated chance, for each metric, that the first beats the second.

Where it fails: the kind ``"all"`` with models that put a user's training items first. These items
fill the first ranks, a sample does not show it, and metrics are far smaller than the posterior
says. Where this happened on data outside the bank, half of the intervals held, and wider ones would
not have helped. The kind ``"unseen"`` does not have this problem.

Kinds are ``"unseen"``, ``"all"``, ``"repeats"`` (targets may be training items) and ``"graph"``
(knowledge graphs, filtered). If the kind is not given, those that ``observed.candidates`` allows
are mixed by their evidence, which rules none out. Everything is deterministic. Nothing here knows
the laboratory: the shipped prior is a data file, made by ``tools/make_data.py``.
"""

from unsample.estimators.prior._learn import FEW, Gaussian, History, Learned
from unsample.estimators.prior._prior import (
    KINDS,
    NARROWED,
    JointPosterior,
    Posterior,
    Prior,
    shipped,
)

__all__ = [
    "FEW",
    "KINDS",
    "NARROWED",
    "Gaussian",
    "History",
    "JointPosterior",
    "Learned",
    "Posterior",
    "Prior",
    "shipped",
]
