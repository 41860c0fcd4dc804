"""How to look at a catalogue: designs that run on a scorer or are simulated, and full rankings.

>>> import numpy as np
>>> ranks = np.random.default_rng(0).integers(1, 10_001, size=500)
>>> found = Guided().simulate(ranks, items=10_000, budget=50_000)
>>> found.scored <= 50_000
True
"""

from unsample._gone import no_attribute
from unsample.designs._certified import Certified
from unsample.designs._designs import Design, Exact, Fixed
from unsample.designs._findings import Findings
from unsample.designs._guided import Guided
from unsample.designs._guides import Guide, as_guide
from unsample.designs._item_item import ItemItemScores
from unsample.designs._orders import LARGEST_ORDER
from unsample.designs._ranking import FullRanks, exact_ranks
from unsample.designs._registry import DESIGNS, as_design
from unsample.designs._run import Execution, run
from unsample.designs._scan import Candidates, Excluded, Tally, as_excluded, as_key
from unsample.designs._scorers import FactorScores, Score, ScoreAll, Scorer, as_scorer

__all__ = [
    "DESIGNS",
    "LARGEST_ORDER",
    "Candidates",
    "Certified",
    "Design",
    "Exact",
    "Excluded",
    "Execution",
    "FactorScores",
    "Findings",
    "Fixed",
    "FullRanks",
    "Guide",
    "Guided",
    "ItemItemScores",
    "Score",
    "ScoreAll",
    "Scorer",
    "Tally",
    "as_design",
    "as_excluded",
    "as_guide",
    "as_key",
    "as_scorer",
    "exact_ranks",
    "run",
]


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name)
