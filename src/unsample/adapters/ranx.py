"""Runs and relevance judgements of ranx.

Only what ranx documents of them is used: ``to_dict()`` gives query -> document -> number.

>>> targets({"q": {"d1": 0.9, "d2": 0.4, "d3": 0.7}}, {"q": {"d3": 1}}, items=1000).ranks
array([2])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unsample._checks import Seed, check_real
from unsample.adapters._lists import ListedItems, rank_in_lists
from unsample.errors import InputError
from unsample.evidence import Targets

__all__ = ["targets"]


def targets(
    run: Any,
    qrels: Any,
    *,
    items: int | Mapping[str, int],
    sampled: int | None = None,
    relevance: float = 1,
    ties: str = "random",
    rng: Seed = 0,
    each: str = "user",
) -> Targets:
    """Rank the relevant documents of each query among the sampled ones.

    ``run`` is a `ranx.Run` that holds all sampled documents of each query and ``qrels`` a
    `ranx.Qrels`; plain dicts of the same structure will do. The other parameters are those of
    `unsample.adapters.trec.targets`.
    """
    lowest = check_real("relevance", relevance, low=0.0)
    judged = _nested("qrels", qrels, "Qrels")
    return rank_in_lists(
        _nested("run", run, "Run"),
        judged.where(judged.score >= lowest),
        items=items,
        sampled=sampled,
        ties=ties,
        rng=rng,
        each=each,
    )


def _nested(name: str, given: Any, kind: str) -> ListedItems:
    to_dict = getattr(given, "to_dict", None)
    # A pandas frame has a to_dict as well, of another structure.
    lists = to_dict() if callable(to_dict) and hasattr(given, "keys") else given
    if not isinstance(lists, Mapping) or hasattr(given, "columns"):
        raise InputError(
            f"{name} must be a ranx.{kind} or a dict of query -> document -> number, got "
            f"{type(given).__name__}"
        )
    return ListedItems.of_nested(name, lists)
