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
    """Refuse a design that is not the one ``counts`` hold; ``source`` is for messages.

    Sizes of None say nothing. Neither do the defaults of ``negatives``, which nobody can tell from
    an argument that was left out.

    >>> counts = RankCounts.from_ranks([1, 1, 3], items=1000, sampled=9)
    >>> check_agrees("the counts", counts, items=1000)
    >>> try:
    ...     check_agrees("the counts", counts, items=500)
    ... except DesignError as problem:
    ...     print(str(problem).partition(";")[0])
    items must be 1000 as in the counts, got 500
    """
    sizes = (("items", items, counts.catalogues), ("sampled", sampled, counts.samples))
    for name, told, (minimum, maximum) in sizes:
        agrees = told is None or np.unique(told).tolist() == [minimum] == [maximum]
        _refuse_unless(agrees, name, own=span(minimum, maximum), source=source, given=told)
    agrees = negatives.replacement or not counts.replacement
    _refuse_unless(agrees, "replacement", own="True", source=source, given=negatives.replacement)
    agrees = counts.shared is not None or not negatives.shared
    _refuse_unless(agrees, "shared", own="False", source=source, given=negatives.shared)


def _refuse_unless(agrees: bool, name: str, own: str, source: str, given: Any) -> None:
    if not agrees:
        raise DesignError(message(name, f"{own} as in {source}", got=given, hint=_HINT))
