"""Recommenders behind one protocol: ``fit``, ``score`` of chosen items, ``score_all``.

>>> from unsample.lab.datasets import Interactions
>>> import numpy as np
>>> pairs = Interactions(np.array([0, 0, 1]), np.array([0, 1, 1]), users=2, items=3)
>>> create("popularity").fit(pairs).score_all([0])
array([[1., 2., 0.]], dtype=float32)

Two rules hold for every recommender. A user without a training item gets the popularity of the
items as scores. An item that nobody has in training is scored below all others.
"""

from unsample.lab.recommenders._base import Recommender
from unsample.lab.recommenders._linear import ALS, EASE, ItemKNN, Popularity
from unsample.lab.recommenders._neural import MultiVAE, NeuMF
from unsample.lab.recommenders._registry import REGISTRY, check_extras, create, load

__all__ = [
    "ALS",
    "EASE",
    "REGISTRY",
    "ItemKNN",
    "MultiVAE",
    "NeuMF",
    "Popularity",
    "Recommender",
    "check_extras",
    "create",
    "load",
]
