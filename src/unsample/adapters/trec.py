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

import numpy as np

from unsample._archives import open_plain
from unsample._checks import Seed, check_real
from unsample.adapters._lists import Counting, Lists
from unsample.adapters._tasks import require
from unsample.errors import FileError, InputError
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
        frames with their columns; or a `ranx.Run` and `ranx.Qrels`, or dicts of query ->
        document -> score or relevance. A run holds all sampled documents of each query.
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
    listed, judged = read_rows("run", run, "score"), read_rows("qrels", qrels, "relevance")
    relevant = judged.take(judged.score >= lowest)
    graded = np.unique(relevant.score).size > 1
    return listed.rank(relevant, items=items, sampled=sampled, counting=counting, graded=graded)


def read_rows(name: str, given: Any, value: str) -> Lists:
    """Read rows (query, document, value) from any of the forms."""
    if isinstance(given, str | os.PathLike):
        given = _read_file(name, Path(given), is_run=value == "score")
    elif hasattr(given, "itertuples"):
        given = given.itertuples(index=False)
    elif callable(getattr(given, "to_dict", None)):
        given = given.to_dict()
    if isinstance(given, Mapping):
        return Lists.of_nested(name, given)
    fields = ("query_id", "doc_id", value)
    kinds = (
        f"{name} must be a path, a ranx.Run or ranx.Qrels, a dict of query -> document -> number, "
        f"or named tuples or a pandas frame with {', '.join(fields)}, got"
    )
    if not isinstance(given, Iterable):
        raise InputError(f"{kinds} {type(given).__name__}")
    rows = list(given)
    for row in rows:
        missing = [field for field in fields if not hasattr(row, field)]
        if missing:
            raise InputError(f"{kinds} rows without {', '.join(missing)}: {row!r}")
    return Lists.of_rows(name, map(attrgetter(*fields), rows))


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
