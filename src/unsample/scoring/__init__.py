"""What scores items, and which items a target is ranked with: scorers, and full rankings."""

from unsample.scoring._candidates import (
    Candidates,
    Excluded,
    as_excluded,
)
from unsample.scoring._full_rankings import (
    PRECISIONS,
    FullRanks,
    count_all,
    exact_ranks,
)
from unsample.scoring._scorers import (
    FactorScores,
    ItemItemScores,
    PairScores,
    RowScores,
    ScoreArray,
    Scorer,
    as_scorer,
    refuse_infinite_targets,
    refuse_unknown_users,
)

__all__ = [
    "PRECISIONS",
    "Candidates",
    "Excluded",
    "FactorScores",
    "FullRanks",
    "ItemItemScores",
    "PairScores",
    "RowScores",
    "ScoreArray",
    "Scorer",
    "as_excluded",
    "as_scorer",
    "count_all",
    "exact_ranks",
    "refuse_infinite_targets",
    "refuse_unknown_users",
]
