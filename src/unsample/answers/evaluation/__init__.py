"""Evaluating recommenders: any scorer under any design, and bundled results beside the truth.

>>> import numpy as np
>>> factors = np.random.default_rng(0).normal(size=(2, 2000, 16))
>>> pairs = np.arange(2000), np.arange(2000)
>>> result = evaluate(tuple(factors), pairs, items=2000, design="adaptive", budget=100)
>>> result.scored <= 100 * 2000
True
"""

from unsample.answers.evaluation._evaluate import ADAPTIVE_METHOD, evaluate, evaluate_known_ranks
from unsample.answers.evaluation._result import Evaluated
from unsample.designs.running._designs import DESIGNS, Adaptive, Certified, Design, Exact, Fixed
from unsample.designs.running._law import draw_by_design, merged_sizes

__all__ = [
    "ADAPTIVE_METHOD",
    "DESIGNS",
    "Adaptive",
    "Certified",
    "Design",
    "Evaluated",
    "Exact",
    "Fixed",
    "draw_by_design",
    "evaluate",
    "evaluate_known_ranks",
    "merged_sizes",
]
