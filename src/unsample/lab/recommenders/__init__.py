"""Recommenders behind one protocol: ``fit``, ``score`` of chosen items, ``score_all``.

>>> from unsample.lab.datasets import Interactions
>>> import numpy as np
>>> pairs = Interactions(np.array([0, 0, 1]), np.array([0, 1, 1]), users=3, items=3)
>>> create("ease").fit(pairs).score_all([2]).tolist()
[[1.0, 2.0, 0.0]]

Two rules hold for every recommender. A user without a training item gets the popularity of the
items as scores, as above. An item that nobody has in training is scored below all others.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from unsample._checks import check_choice
from unsample.lab.recommenders._linear import ALS, EASE, ItemKNN
from unsample.lab.recommenders._multivae import MultiVAE
from unsample.lab.recommenders._neumf import NeuMF
from unsample.lab.recommenders._recommender import Recommender

__all__ = ["ALS", "EASE", "REGISTRY", "ItemKNN", "MultiVAE", "NeuMF", "Recommender", "create"]

#: Every recommender by its name.
REGISTRY: Mapping[str, type[Recommender]] = MappingProxyType(
    {kind.name: kind for kind in (ItemKNN, ALS, EASE, NeuMF, MultiVAE)}
)


def create(name: str, **hyperparameters: Any) -> Recommender:
    """Return a new recommender of this name.

    >>> create("ease", penalty=200.0)
    EASE(penalty=200.0)
    """
    check_choice("recommender", name, REGISTRY)
    return REGISTRY[name](**hyperparameters)
