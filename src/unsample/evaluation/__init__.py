"""Evaluating recommenders: any scorer under any design, and bundled results beside the truth.

>>> import numpy as np
>>> factors = np.random.default_rng(0).normal(size=(2, 2000, 16))
>>> pairs = np.arange(2000), np.arange(2000)
>>> result = evaluate(tuple(factors), pairs, items=2000, design="adaptive", budget=100)
>>> result.scored <= 100 * 2000
True
"""

from unsample.evaluation._designs import DESIGNS, Adaptive, Certified, Design, Exact, Fixed
from unsample.evaluation._evaluate import ADAPTIVE_METHOD, evaluate, evaluate_known_ranks
from unsample.evaluation._law import draw_by_design, merged_sizes
from unsample.evaluation._result import Evaluated
from unsample.evaluation._side_by_side import (
    DEFAULT_METHODS,
    Evaluation,
    RankedTargets,
    evaluate_bundled,
    evaluate_ranks,
    evaluate_trained,
    rank_bundled,
    rank_trained,
)

__all__ = [
    "ADAPTIVE_METHOD",
    "DEFAULT_METHODS",
    "DESIGNS",
    "Adaptive",
    "Certified",
    "Design",
    "Evaluated",
    "Evaluation",
    "Exact",
    "Fixed",
    "RankedTargets",
    "draw_by_design",
    "evaluate",
    "evaluate_bundled",
    "evaluate_known_ranks",
    "evaluate_ranks",
    "evaluate_trained",
    "merged_sizes",
    "rank_bundled",
    "rank_trained",
]
