"""TREC run and qrels files, and the rows that ir_measures makes of them.

A run that ranks each query's relevant document among documents drawn at random is a sampled
evaluation like any other. Files are read by ir_measures, gzipped ones too.

>>> run = {"q1": {"d1": 0.9, "d2": 0.4, "d3": 0.7}, "q2": {"d2": 0.1, "d4": 0.3, "d5": 0.2}}
>>> targets(run, {"q1": {"d1": 1}, "q2": {"d5": 1}}, items=1000).ranks
array([1, 2])
"""

from __future__ import annotations

import io
import lzma
import os
import zlib
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from unsample._archives import open_plain
from unsample._checks import Seed, check_integer, check_real
from unsample.adapters._lists import Counting, Lists
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
        Paths of TREC files; or rows of `ir_measures.ScoredDoc` and `ir_measures.Qrel`, or pandas
        frames with their columns; or dicts of query -> document -> score or relevance. A run holds
        all sampled documents of each query.
    items
        Documents in the collection that could have been sampled for a query, all relevant ones
        included: a number, or one for each query.
    sampled
        How many documents were sampled for a query; by default what the run holds.
    relevance
        The lowest relevance of a target. Where targets differ in it, the result has it as
        ``relevance``, and ``unsample.exact(found.ranks, items=found.items, users=found.users,
        relevance=found.relevance)`` gives the graded NDCG of runs that hold all documents. Metrics
        that are estimated from counts take all targets for equally relevant.
    ties, rng
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first. The rank
        column of a run is not looked at: scores decide, as in trec_eval.
    filtered
        False: the other relevant documents of a query compete, and metrics are those of queries.
        True: they are left out, and metrics are those of each relevant document.
    """
    counting = Counting(ties, rng, filtered)
    lowest = check_real("relevance", relevance, low=0.0)
    if sampled is not None:
        check_integer("sampled", sampled, minimum=1)
    scores, judged = _read("run", run, "score"), _read("qrels", qrels, "relevance")
    relevant = {
        query: wanted
        for query, row in judged.items()
        if (wanted := {item: grade for item, grade in row.items() if grade >= lowest})
    }
    for name, lists in (("run", scores), (f"qrels of relevance {relevance} or more", relevant)):
        if not lists:
            raise InputError(f"{name} must hold at least one row, got none")
    return Lists("run", scores).rank(relevant, items=items, sampled=sampled, counting=counting)


def _read(name: str, given: Any, value: str) -> dict[Any, dict[Any, float]]:
    """Return numbers by query and document, from any of the forms."""
    if isinstance(given, str | os.PathLike):
        given = _read_file(name, Path(given), is_run=value == "score")
    elif hasattr(given, "itertuples"):
        given = given.itertuples(index=False)
    if isinstance(given, Mapping):
        if not all(isinstance(row, Mapping) for row in given.values()):
            raise InputError(f"{name} must map each query to a dict of document -> number")
        rows = [(query, *pair) for query, row in given.items() for pair in row.items()]
    else:
        rows = _rows(name, given, ("query_id", "doc_id", value))
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


def _rows(name: str, given: Any, fields: tuple[str, str, str]) -> list[tuple[Any, Any, Any]]:
    kinds = (
        f"{name} must be a path, a dict of query -> document -> number, or named tuples or a "
        f"pandas frame with {', '.join(fields)}, got"
    )
    if not isinstance(given, Iterable):
        raise InputError(f"{kinds} {type(given).__name__}")
    rows = list(given)
    for row in rows:
        missing = [field for field in fields if not hasattr(row, field)]
        if missing:
            raise InputError(f"{kinds} rows without {', '.join(missing)}: {row!r}")
    return list(map(attrgetter(*fields), rows))


def _read_file(name: str, path: Path, *, is_run: bool) -> list[Any]:
    library = require("trec", "ir_measures")
    read, columns = (library.read_trec_run, 6) if is_run else (library.read_trec_qrels, 4)
    try:
        with io.TextIOWrapper(open_plain(path), encoding="utf-8") as lines:
            return list(read(lines))
    except FileError:
        raise
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as problem:
        raise FileError(f"{name} must be a readable file, got {path}: {problem}") from problem
    except ValueError as problem:
        raise FileError(
            f"{name} must be a TREC file of {columns} columns, got {path}: {problem}"
        ) from problem
