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

import numpy as np

from unsample._archives import DAMAGED, open_plain
from unsample._checks import Seed, check_real
from unsample.adapters._install import require
from unsample.counts import Negatives, Targets, check_ties
from unsample.errors import DesignError, FileError, InputError
from unsample.tables import Asked, Read, read_targets

__all__ = ["targets"]


def targets(
    run: Any,
    qrels: Any,
    *,
    items: int | Mapping[str, int],
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
        pandas frames with their columns; or a `Run` and `Qrels` of ranx; or dicts of query ->
        document -> score or relevance. A run holds all sampled documents of each query.
    items
        Documents in the collection that could have been sampled for a query, all relevant ones
        included: a number, or one for each query.
    relevance
        The lowest relevance of a target.
    ties, rng
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first. The rank
        column of a run is not looked at: scores decide, as in trec_eval.
    filtered
        False: the other relevant documents of a query compete, and metrics are means over queries.
        True: they are left out, and metrics are means over relevant documents.

    Returns
    -------
    Targets
        The ranks, with the number of sampled items and of candidates of each target.

    Raises
    ------
    FileError
        If a file is no TREC file.
    InputError
        If the run or the relevances are of another kind, or there is no relevant document.
    DesignError
        If a query has no sampled document, or no number of items.
    """
    lowest = check_real("relevance", relevance, low=0.0)
    scores = _read("run", run, value="score")
    judged = _read("qrels", qrels, value="relevance")
    sizes = items if isinstance(items, Mapping) else dict.fromkeys(judged, items)
    rows: dict[str, list[Any]] = {"user": [], "item": [], "score": [], "target": [], "items": []}
    for query, grades in judged.items():
        wanted = {item: grade for item, grade in grades.items() if grade >= lowest}
        if not wanted:
            continue
        row = scores.get(query, {})
        what = f"the list of {query!r}"
        missing = [item for item in wanted if item not in row]
        if missing:
            raise InputError(
                f"{what} must hold every target, got none for item {missing[0]!r}; a list that is "
                "cut at the top k does not tell ranks: keep the scores of all sampled items"
            )
        if len(row) == len(wanted):
            raise DesignError(f"{what} must hold at least one item beside the targets, got none")
        if query not in sizes:
            raise DesignError(f"items must hold a number for each query, got none for {query!r}")
        rows["user"] += [query] * len(row)
        rows["items"] += [sizes[query]] * len(row)
        rows["item"] += row
        rows["score"] += row.values()
        rows["target"] += [item in wanted for item in row]
    if not rows["user"]:
        raise InputError(f"qrels must hold a row of relevance {relevance} or more, got none")
    columns = {name: np.asarray(values) for name, values in rows.items()}
    read = Read(rows="scores", ties=check_ties(ties, whole=True), rng=rng)
    return read_targets(
        columns, Asked(read=read, negatives=Negatives(replacement=False), filtered=filtered)
    )


def _read(name: str, source: Any, *, value: str) -> dict[Any, dict[Any, float]]:
    """Return numbers by query and document, from any of the forms.

    ``value`` is the column of the numbers.

    >>> _read("run", {"q1": {"d1": 1, "d2": 0.5}}, value="score")
    {'q1': {'d1': 1.0, 'd2': 0.5}}
    """
    if isinstance(source, str | os.PathLike):
        source = _rows_of_file(name, Path(source), value=value)
    elif type(source).__module__.partition(".")[0] == "ranx":
        source = source.to_dict()
    elif hasattr(source, "itertuples"):
        source = source.itertuples(index=False)
    fields = ("query_id", "doc_id", value)
    try:
        if isinstance(source, Mapping):
            rows = [(query, *pair) for query, row in source.items() for pair in row.items()]
        else:
            rows = list(map(attrgetter(*fields), source))
        numbers = [float(number) for _, _, number in rows]
    except (AttributeError, TypeError, ValueError, OverflowError) as problem:
        raise InputError(
            f"{name} must be a path, a dict of query -> document -> number, or named tuples or a "
            f"pandas frame with {', '.join(fields)}, got {type(source).__name__}: {problem}"
        ) from problem
    by_query: dict[Any, dict[Any, float]] = {}
    for (query, document, _), number in zip(rows, numbers, strict=True):
        if document in by_query.setdefault(query, {}):
            raise InputError(
                f"{name} must hold each document of a query once, got document {document!r} of "
                f"query {query!r} again"
            )
        by_query[query][document] = number
    return by_query


def _rows_of_file(name: str, path: Path, *, value: str) -> list[Any]:
    """Return the rows of a TREC file, as ir_measures reads them."""
    library = require("trec", "ir_measures")
    read = library.read_trec_run if value == "score" else library.read_trec_qrels
    try:
        with io.TextIOWrapper(open_plain(path), encoding="utf-8") as lines:
            return list(read(lines))
    except FileError:
        raise
    except (OSError, ValueError, *DAMAGED) as problem:
        raise FileError(f"{name} must be a TREC file, got {path}: {problem}") from problem
