"""Recommenders behind one protocol: ``fit``, ``score`` of chosen items, ``score_all``.

>>> from unsample.lab.datasets import Interactions
>>> import numpy as np
>>> pairs = Interactions(np.array([0, 0, 1]), np.array([0, 1, 1]), users=3, items=3)
>>> create("ease").fit(pairs).score_all([2]).tolist()
[[1.0, 2.0, 0.0]]

Two rules hold for every recommender. A user without a training item gets the popularity of the
items as scores, as above. An item that nobody has in training is scored below all others.
"""

from unsample.lab.recommenders._base import Recommender
from unsample.lab.recommenders._linear import ALS, EASE, ItemKNN
from unsample.lab.recommenders._multivae import MultiVAE
from unsample.lab.recommenders._neumf import NeuMF
from unsample.lab.recommenders._registry import REGISTRY, check_extras, create

__all__ = [
    "ALS",
    "EASE",
    "REGISTRY",
    "ItemKNN",
    "MultiVAE",
    "NeuMF",
    "Recommender",
    "check_extras",
    "create",
]
