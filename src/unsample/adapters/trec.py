"""TREC run and qrels files, and the rows that ir_measures makes of them.

A run that ranks each query's relevant document among documents drawn at random is a sampled
evaluation like any other.

>>> run = {"q1": {"d1": 0.9, "d2": 0.4, "d3": 0.7}, "q2": {"d2": 0.1, "d4": 0.3, "d5": 0.2}}
>>> targets(run, {"q1": {"d1": 1}, "q2": {"d5": 1}}, items=1000).ranks
array([1, 2])
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from unsample._archives import DAMAGED, open_plain
from unsample._checks import Seed, check_real
from unsample.adapters._lists import rank_lists
from unsample.adapters._tasks import require
from unsample.errors import FileError, InputError, ScoreError
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
    filtered: bool = False,
) -> Targets:
    """Rank the relevant documents of each query among the sampled ones.

    Parameters
    ----------
    run, qrels
        Paths of TREC files, which ir_measures reads; or its rows (`ScoredDoc` and `Qrel`), or
        pandas frames with their columns; or dicts of query -> document -> score or relevance. A run
        holds all sampled documents of each query.
    items
        Documents in the collection that could have been sampled for a query, all relevant ones
        included: a number, or one for each query.
    sampled
        How many documents were sampled for a query; by default what the run holds.
    relevance
        The lowest relevance of a target.
    ties, rng
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first. The rank
        column of a run is not looked at: scores decide, as in trec_eval.
    filtered
        False: the other relevant documents of a query compete, and metrics are those of queries.
        True: they are left out, and metrics are those of each relevant document.
    """
    lowest = check_real("relevance", relevance, low=0.0)
    scores, judged = _read("run", run, "score"), _read("qrels", qrels, "relevance")
    relevant = {
        query: wanted
        for query, row in judged.items()
        if (wanted := {item: grade for item, grade in row.items() if grade >= lowest})
    }
    if not relevant:
        raise InputError(f"qrels must hold a row of relevance {relevance} or more, got none")
    how: dict[str, Any] = {"ties": ties, "rng": rng, "filtered": filtered}
    return rank_lists("run", scores, relevant, items=items, sampled=sampled, **how)


def _read(name: str, given: Any, value: str) -> dict[Any, dict[Any, float]]:
    """Return numbers by query and document, from any of the forms."""
    if isinstance(given, str | os.PathLike):
        library = require("trec", "ir_measures")
        read = library.read_trec_run if value == "score" else library.read_trec_qrels
        try:
            with io.TextIOWrapper(open_plain(Path(given)), encoding="utf-8") as lines:
                given = list(read(lines))
        except FileError:
            raise
        except (OSError, ValueError, *DAMAGED) as problem:
            raise FileError(f"{name} must be a TREC file, got {given}: {problem}") from problem
    elif hasattr(given, "itertuples"):
        given = given.itertuples(index=False)
    fields = ("query_id", "doc_id", value)
    try:
        if isinstance(given, Mapping):
            rows = [(query, *pair) for query, row in given.items() for pair in row.items()]
        else:
            rows = list(map(attrgetter(*fields), given))
    except (AttributeError, TypeError) as problem:
        raise InputError(
            f"{name} must be a path, a dict of query -> document -> number, or named tuples or a "
            f"pandas frame with {', '.join(fields)}, got {type(given).__name__}: {problem}"
        ) from problem
    found: dict[Any, dict[Any, float]] = {}
    for query, document, number in rows:
        if document in found.setdefault(query, {}):
            raise InputError(
                f"{name} must hold each document of a query once, got document {document!r} of "
                f"query {query!r} again"
            )
        try:
            found[query][document] = float(number)
        except (TypeError, ValueError, OverflowError) as problem:
            raise ScoreError(
                f"{name} must have a number for each document, got {number!r} for {document!r} of "
                f"query {query!r}"
            ) from problem
    return found
