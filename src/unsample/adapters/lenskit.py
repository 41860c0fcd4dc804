"""Item lists of LensKit.

LensKit scores the candidates it is given; lists that hold a user's targets and sampled items make
a sampled evaluation. Items that a pipeline cannot score (NaN) come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unsample._checks import Seed
from unsample.adapters import trec
from unsample.adapters._install import check_object
from unsample.counts import Targets
from unsample.errors import InputError

__all__ = ["targets"]

#: Stands for no score. Not -inf: a target without a score has a rank, among the last.
_LAST = float(np.finfo(np.float64).min)


def targets(
    scored: Any,
    test: Any,
    *,
    items: int | Mapping[Any, int],
    ties: str = "random",
    rng: Seed = 0,
    filtered: bool = False,
) -> Targets:
    """Rank test items among the sampled items of each user's scored list.

    Parameters
    ----------
    scored
        An `ItemListCollection` of scored lists that hold test and sampled items, such as
        ``lenskit.batch.score(pipeline, candidates)`` returns.
    test
        An `ItemListCollection` of the test items, with the same keys.
    items, ties, rng, filtered
        As in `unsample.adapters.trec.targets`, with users for queries.

    Returns
    -------
    Targets
        The ranks, with the number of sampled items and of candidates of each target.

    Raises
    ------
    InputError
        If an argument is not such a collection, or holds no list.
    """
    run = {}
    for key, row in _read("scored", scored):
        if row.scores() is None:
            raise InputError(
                f"scored must hold lists with scores, got none for {key!s}; keep what "
                "lenskit.batch.score returns"
            )
        scores = np.where(np.isnan(row.scores()), _LAST, row.scores())
        run[key] = dict(zip(row.ids().tolist(), scores.tolist(), strict=True))
    qrels = {key: dict.fromkeys(row.ids().tolist(), 1.0) for key, row in _read("test", test)}
    return trec.targets(run, qrels, items=items, ties=ties, rng=rng, filtered=filtered)


def _read(name: str, collection: Any) -> list[tuple[Any, Any]]:
    """Return the lists of a collection with their keys."""
    check_object(name, collection, "an ItemListCollection of lenskit", "key_fields", "lists")
    if not len(collection):
        raise InputError(f"{name} must hold at least one item list, got none")
    return [(key[0] if len(key) == 1 else "/".join(map(str, key)), row) for key, row in collection]
