"""`RankCounts`: the number of targets at each sampled rank, under each design.

Estimates need these counts and nothing else about the users. A cell is (sampled, items, low..high):
a design and a sampled rank, or a range of ranks where only that is known (HR@5 and HR@10 of a paper
tell how many ranks lie in 6..10). Where users have several targets, a cell also holds the number of
relevant items of its users and the position among them (1 is the best).

`PairCounts` hold the number of pairs of targets of one user in each pair of cells: of one model,
where its users have several targets, or of two models, which are paired by user. All of it adds up
over files, workers and days, and names no user.
"""

from unsample.counts._catalogues import (
    FEW_SIZES,
    SIZE_STEPS,
    SMALL_CATALOGUE,
    size_on_grid,
)
from unsample.counts._columns import (
    distinct_rows,
)
from unsample.counts._design_agreement import (
    check_agrees,
)
from unsample.counts._design_cells import (
    WHOLE,
    DesignCells,
    rank_hint,
    refuse_joint,
)
from unsample.counts._model_counts import (
    ModelCounts,
)
from unsample.counts._negatives import USUAL, Negatives, are_shared, as_negatives, refuse_shared
from unsample.counts._rank_counts import (
    RankCounts,
)
from unsample.counts._relevant_lists import (
    rank_in_lists,
)
from unsample.counts._sample_sizes import (
    in_smaller_sample,
    sample_groups,
)
from unsample.counts._score_ranks import (
    sampled_ranks,
    shared_targets,
)
from unsample.counts._shared_items import (
    ItemCounts,
    numbered,
)
from unsample.counts._strata import (
    Strata,
)
from unsample.counts._targets import (
    Targets,
)
from unsample.counts._ties import (
    TIE_RULES,
    TieRule,
    check_ties,
    rank_with_ties,
    runs_of,
    tie_position,
)
from unsample.counts._user_means import (
    on_pair_cells,
    variance_of_mean,
)
from unsample.counts._user_pairs import (
    PAIR_KEYS,
    RANK_STEPS,
    RANKS_ALONE,
    PairCounts,
    pair_keys,
    pairs_between,
    rank_bin,
)
from unsample.counts._users import (
    deviations_of_mean,
    number_users,
)

__all__ = [
    "FEW_SIZES",
    "PAIR_KEYS",
    "RANKS_ALONE",
    "RANK_STEPS",
    "SIZE_STEPS",
    "SMALL_CATALOGUE",
    "TIE_RULES",
    "USUAL",
    "WHOLE",
    "DesignCells",
    "ItemCounts",
    "ModelCounts",
    "Negatives",
    "PairCounts",
    "RankCounts",
    "Strata",
    "Targets",
    "TieRule",
    "are_shared",
    "as_negatives",
    "check_agrees",
    "check_ties",
    "deviations_of_mean",
    "distinct_rows",
    "in_smaller_sample",
    "number_users",
    "numbered",
    "on_pair_cells",
    "pair_keys",
    "pairs_between",
    "rank_bin",
    "rank_hint",
    "rank_in_lists",
    "rank_with_ties",
    "refuse_joint",
    "refuse_shared",
    "runs_of",
    "sample_groups",
    "sampled_ranks",
    "shared_targets",
    "size_on_grid",
    "tie_position",
    "variance_of_mean",
]
