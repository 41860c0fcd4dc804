"""From scores to ranks: among all candidates, among drawn ones, among published negatives.

>>> import numpy as np
>>> scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.2]])
>>> exact_ranks(lambda users: scores[users], [0, 1], [2, 0], items=3, ties="realistic").ranks
array([2., 2.])
"""

from unsample._progress import Progress
from unsample.designs.ranking._against import ranks_against
from unsample.designs.ranking._candidates import Candidates
from unsample.designs.ranking._device import PRECISIONS, count_all_on_device, device_ranks
from unsample.designs.ranking._exact import Counted, count_all, exact_ranks
from unsample.designs.ranking._orders import LARGEST_ORDER, Orders
from unsample.designs.ranking._results import FullRanks, SampledRanks
from unsample.designs.ranking._sampled import sampled_ranks
from unsample.designs.ranking._scan import Scan, Tally, keyed_rank
from unsample.designs.ranking._scores import FactorScores, Score, ScoreAll, refuse_infinite_targets
from unsample.designs.ranking._ties import TIE_RULES, TieRule

__all__ = [
    "LARGEST_ORDER",
    "PRECISIONS",
    "TIE_RULES",
    "Candidates",
    "Counted",
    "FactorScores",
    "FullRanks",
    "Orders",
    "Progress",
    "SampledRanks",
    "Scan",
    "Score",
    "ScoreAll",
    "Tally",
    "TieRule",
    "count_all",
    "count_all_on_device",
    "device_ranks",
    "exact_ranks",
    "keyed_rank",
    "ranks_against",
    "refuse_infinite_targets",
    "sampled_ranks",
]
