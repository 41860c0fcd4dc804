"""Arguments of a call that the counts hold too: they agree with them, or they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample._rules import message
from unsample.counts._design_cells import span
from unsample.counts._negatives import USUAL, Negatives
from unsample.counts._rank_counts import RankCounts
from unsample.errors import DesignError

_HINT = "leave it out, or check that these are the counts you mean"


def check_agrees(
    source: str,
    counts: RankCounts,
    *,
    items: Any = None,
    sampled: Any = None,
    negatives: Negatives = USUAL,
) -> None:
    """Refuse a design that differs from the one that ``counts`` hold.

    ``source`` names the counts in messages. Sizes of None are not compared. Neither are the
    defaults of ``negatives``, because an argument that was left out looks the same.

    >>> counts = RankCounts.from_ranks([1, 1, 3], items=1000, sampled=9)
    >>> check_agrees("the counts", counts, items=1000)
    >>> try:
    ...     check_agrees("the counts", counts, items=500)
    ... except DesignError as problem:
    ...     print(str(problem).partition(";")[0])
    items must be 1000 as in the counts, got 500
    """
    sizes = (("items", items, counts.catalogues), ("sampled", sampled, counts.samples))
    for name, stated, (minimum, maximum) in sizes:
        if stated is not None and not np.unique(stated).tolist() == [minimum] == [maximum]:
            raise _differs(name, span(minimum, maximum), source=source, stated=stated)
    if counts.replacement and not negatives.replacement:
        raise _differs("replacement", "True", source=source, stated=negatives.replacement)
    if negatives.shared and counts.shared is None:
        raise _differs("shared", "False", source=source, stated=negatives.shared)


def _differs(name: str, in_counts: str, *, source: str, stated: Any) -> DesignError:
    return DesignError(message(name, f"{in_counts} as in {source}", got=stated, hint=_HINT))
