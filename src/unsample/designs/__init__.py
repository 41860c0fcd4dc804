"""How to look at a catalogue: designs that run on a scorer or are simulated, and full rankings.

>>> import numpy as np
>>> ranks = np.random.default_rng(0).integers(1, 10_001, size=500)
>>> found = Guided().simulate(ranks, items=10_000, budget=50_000)
>>> found.scored <= 50_000
True
"""

from unsample._checks import check_choice
from unsample._gone import no_attribute
from unsample.designs._candidates import Candidates, Excluded, as_excluded
from unsample.designs._designs import Certified, Design, Exact, Fixed
from unsample.designs._draws import drawn_users
from unsample.designs._findings import Findings
from unsample.designs._full import FullRanks, count_all, exact_ranks
from unsample.designs._guided import Guided
from unsample.designs._guides import as_guide
from unsample.designs._orders import LARGEST_ORDER, as_key
from unsample.designs._run import Run, run
from unsample.designs._scorers import (
    FactorScores,
    ItemItemScores,
    PairScores,
    RowScores,
    Scorer,
    as_scorer,
)
from unsample.designs._values import OpenValues, UserValues
from unsample.errors import DesignError, InputError

__all__ = [
    "DESIGNS",
    "LARGEST_ORDER",
    "Candidates",
    "Certified",
    "Design",
    "Exact",
    "Excluded",
    "FactorScores",
    "Findings",
    "Fixed",
    "FullRanks",
    "Guided",
    "ItemItemScores",
    "OpenValues",
    "PairScores",
    "RowScores",
    "Run",
    "Scorer",
    "UserValues",
    "as_design",
    "as_excluded",
    "as_guide",
    "as_key",
    "as_scorer",
    "count_all",
    "drawn_users",
    "exact_ranks",
    "run",
]

#: Name -> design.
DESIGNS: dict[str, type[Design]] = {each.name: each for each in (Exact, Certified, Guided, Fixed)}


def as_design(design: str | Design) -> Design:
    """Return the design that was named, or given."""
    if isinstance(design, Design):
        return design
    if not isinstance(design, str):
        raise InputError(
            f"design must be a name or a design such as Fixed(sampled=99), got {design!r}"
        )
    check_choice("design", design, DESIGNS, error=DesignError)
    return DESIGNS[design]()


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name)
