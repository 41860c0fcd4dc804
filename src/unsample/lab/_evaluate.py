"""Evaluating a recommender of the laboratory on one of its data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample._checks import check_choice
from unsample._progress import Progress
from unsample.designs.ranking import FullRanks, exact_ranks
from unsample.lab.datasets import CANDIDATES, Split, standard_split
from unsample.lab.recommenders import Recommender, create

if TYPE_CHECKING:
    import scipy.sparse


def rank_trained(
    dataset: str, recommender: str, *, candidates: str, progress: Progress | None = None
) -> FullRanks:
    """Train a recommender on a data set's published split (or a random one), and rank."""
    model, split, exclude = _trained(dataset, recommender, candidates, progress)
    return exact_ranks(
        model.score_all,
        split.target_user,
        split.target_item,
        items=split.train.items,
        exclude=exclude,
        rng=0,
    )


def _trained(
    dataset: str, recommender: str, candidates: str, progress: Progress | None
) -> tuple[Recommender, Split, scipy.sparse.csr_array | None]:
    """Return a fitted recommender, the split it was fitted on, and the pairs to leave out."""
    check_choice("candidates", candidates, CANDIDATES)
    model: Any = create(recommender)
    split = standard_split(dataset, validation=False)
    model.fit_split(split, progress=progress)
    return model, split, split.history().matrix() if candidates == "unseen" else None
