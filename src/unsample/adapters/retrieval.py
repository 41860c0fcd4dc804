"""Retrieval: metrics on the full corpus from a corpus that was cut down, or from embeddings.

Of a corpus that is cut down the relevant documents are kept, perhaps hard ones as well, and of all
others some are drawn uniformly, once for all queries. `targets` takes scores on it, as BEIR's dicts
or TREC files, and `embedded` takes vectors; `unsample.estimate` gives the metrics on the full
corpus. `task` leads vectors of the full corpus to `unsample.evaluate`.

>>> results = {"q": {"good": 0.9, "a": 0.3, "b": 0.95}}
>>> targets(results, {"q": {"good": 2}}, documents=1000)
CutTargets(1 targets of 1 queries, 2 of 1000 documents drawn)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, Seed, check_choice, check_integer
from unsample.adapters._cut import Coded, Cut, Reading, Rows, as_ids
from unsample.adapters._tasks import Task, as_array
from unsample.adapters.trec import read_rows
from unsample.designs import FactorScores
from unsample.errors import InputError, ScoreError
from unsample.evidence import CutTargets

__all__ = ["RetrievalTask", "embedded", "targets", "task"]

#: Scores that are held at a time.
_ROOM = 1 << 24
_SIMILARITIES = ("dot", "cosine")


def targets(
    results: Any,
    qrels: Any,
    *,
    documents: int,
    corpus: Iterable[Any] | None = None,
    kept: Iterable[Any] = (),
    pools: Mapping[Any, Iterable[Any]] | None = None,
    sampler: str = "uniform",
    relevance: float = 1,
    deepest: int = 100,
    ties: str = "random",
    rng: Seed = 0,
) -> CutTargets:
    """Rank the relevant documents of each query in a corpus that was cut down by chance.

    Parameters
    ----------
    results, qrels
        Dicts of query -> document -> score, or grade, as BEIR has them; or any other form that
        `unsample.adapters.trec.targets` takes, such as the paths of TREC files. A list may end
        below its best ``deepest`` documents: what is missing is taken to rank below it.
    documents
        How many documents the full corpus has.
    corpus
        The documents of the cut corpus: BEIR's dict, or their names. By default those of the lists,
        which must then be the same for all queries. What was not kept for certain is taken to be
        drawn.
    kept
        Documents that were kept for certain, beside the judged ones: hard ones of all queries.
    pools
        For each query, hard documents that were scored for this query alone, beside the corpus.
    sampler
        How the others were drawn: ``"uniform"``. Anything else is refused.
    relevance
        The lowest grade of a relevant document.
    deepest
        The greatest K that will be asked for.
    ties, rng
        As in `unsample.adapters.trec.targets`.

    >>> import unsample
    >>> rng = np.random.default_rng(0)
    >>> names = [f"d{number}" for number in range(300)]
    >>> results = {f"q{q}": dict(zip(names, rng.random(300))) for q in range(100)}
    >>> qrels = {f"q{q}": {f"d{q}": 1} for q in range(100)}
    >>> found = targets(results, qrels, documents=1100)  # 100 relevant ones, and 200 of 1,000
    >>> low, high = unsample.estimate(found, metrics="Recall@100")["Recall@100"].interval()
    >>> low < 100 / 1100 < high
    True
    """
    reading = Reading(documents, sampler, relevance, deepest, ties, rng)
    listed, judged = read_rows("results", results, "score"), read_rows("qrels", qrels, "relevance")
    coded = Coded.of(listed, judged, corpus, kept, pools or {})
    cut = Cut.of(coded, reading, pooled=pools is not None)
    return cut.ranked(coded.chosen(cut))


def embedded(
    queries: Any,
    vectors: Any,
    qrels: Any,
    *,
    documents: int,
    query_ids: npt.ArrayLike | None = None,
    document_ids: npt.ArrayLike | None = None,
    kept: Iterable[Any] = (),
    similarity: str = "dot",
    sampler: str = "uniform",
    relevance: float = 1,
    deepest: int = 100,
    rng: Seed = 0,
) -> CutTargets:
    """Rank the relevant documents by the vectors of a corpus that was cut down by chance.

    Parameters
    ----------
    queries, vectors
        A row for each query, and one for each document of the cut corpus: numpy or torch.
    qrels
        As in `targets`, by the ids below.
    query_ids, document_ids
        The name of each row; by default its number, from 0.
    similarity
        ``"dot"`` or ``"cosine"``.
    documents, kept, sampler, relevance, deepest, rng
        As in `targets`.
    """
    reading = Reading(documents, sampler, relevance, deepest, "random", rng)
    left, right = _vectors(queries, vectors, similarity)
    names = _ids("query_ids", query_ids, len(left)), _ids("document_ids", document_ids, len(right))
    judged = read_rows("qrels", qrels, "relevance")
    coded = Coded.of_corpus(names, judged, kept)
    cut = Cut.of(coded, reading, pooled=False)
    row = np.full(len(coded.items), -1)
    row[coded.corpus] = np.arange(len(right))
    certain, drawn = row[np.flatnonzero(cut.kept)], row[np.flatnonzero(cut.drawn)]
    of_query = np.full(int(coded.query.max(initial=0)) + 1, -1)
    of_query[coded.query] = np.arange(len(left))
    asked = of_query[cut.queries]
    most = min(cut.depth + 1, len(drawn))
    parts = []
    step = max(1, _ROOM // len(right))
    for start in range(0, len(asked), step):
        block = asked[start : start + step]
        scores = left[block] @ right.T
        strongest = np.argpartition(-scores[:, drawn], most - 1, axis=1)[:, :most]
        met = np.concatenate(
            [np.broadcast_to(certain, (len(block), len(certain))), drawn[strongest]], axis=1
        )
        parts.append(
            Rows(
                np.repeat(np.arange(start, start + len(block)), met.shape[1]),
                coded.corpus[met].ravel(),
                np.take_along_axis(scores, met, axis=1).ravel().astype(np.float64),
            )
        )
    return CutTargets.merge(cut.ranked(part) for part in parts)


@dataclass(frozen=True, eq=False, repr=False)
class RetrievalTask(Task):
    """Queries, documents and relevant pairs, as `unsample.evaluate` takes them.

    ``unsample.evaluate(task.scorer, task.targets, items=task.items, relevance=task.relevance)``
    """

    #: The grade of each target.
    relevance: FloatArray

    def first(self, dimensions: int) -> tuple[FloatArray, FloatArray]:
        """Return the first dimensions of all vectors, as a guide that costs less than all of them.

        That is what vectors learned as nested ones (Matryoshka) are made for; of others it is a
        guess like any other, which decides what an evaluation costs and never what it finds.
        """
        assert isinstance(self.scorer, FactorScores)
        left, right = self.scorer.user_factors, self.scorer.item_factors
        most = check_integer("dimensions", dimensions, minimum=1, maximum=left.shape[1])
        return np.ascontiguousarray(left[:, :most]), np.ascontiguousarray(right[:, :most])


def task(
    queries: Any,
    vectors: Any,
    qrels: Any,
    *,
    query_ids: npt.ArrayLike | None = None,
    document_ids: npt.ArrayLike | None = None,
    similarity: str = "dot",
    relevance: float = 1,
) -> RetrievalTask:
    """Take the vectors of all documents, for exact metrics or for guides.

    The arguments are those of `embedded`, with all documents of the corpus.

    >>> found = task(np.eye(2), [[1.0, 0.2], [0.3, 0.9], [2.0, 0.1]], {0: {0: 2, 2: 1}, 1: {1: 1}})
    >>> found.targets, found.relevance.tolist()
    ((array([0, 0, 1]), array([0, 2, 1])), [2.0, 1.0, 1.0])
    """
    left, right = _vectors(queries, vectors, similarity)
    names = _ids("query_ids", query_ids, len(left)), _ids("document_ids", document_ids, len(right))
    lowest = Reading(len(right), relevance=relevance).lowest
    coded = Coded.of_corpus(names, read_rows("qrels", qrels, "relevance"), ())
    wanted = coded.grade >= lowest
    pairs = coded.asked[wanted], coded.wanted[wanted]
    places = []
    for what, known, asked in zip(
        ("query", "document"), (coded.query, coded.corpus), pairs, strict=True
    ):
        row = np.full(max(int(known.max()), int(asked.max(initial=0))) + 1, -1)
        row[known] = np.arange(len(known))
        places.append(row[asked])
        if (places[-1] < 0).any():
            raise InputError(
                f"each {what} of qrels must have a vector, got {int((places[-1] < 0).sum())} "
                f"judgements without; name the rows by {what}_ids"
            )
    order = np.lexsort(places[::-1])
    return RetrievalTask(
        FactorScores(left, right),
        (places[0][order], places[1][order]),
        len(right),
        None,
        *names,
        relevance=coded.grade[wanted][order],
    )


def _vectors(queries: Any, vectors: Any, similarity: str) -> tuple[FloatArray, FloatArray]:
    """Return both as matrices of one kind, of length one where the cosine is asked for."""
    check_choice("similarity", similarity, _SIMILARITIES)
    found = []
    for name, given in (("queries", queries), ("vectors", vectors)):
        array = as_array(given)
        if array.ndim != 2 or not array.size or not np.issubdtype(array.dtype, np.number):
            raise InputError(f"{name} must be a matrix with a row each, got shape {array.shape}")
        if not np.isfinite(array).all():
            raise ScoreError(f"{name} must be finite, got rows that are not")
        found.append(array if array.dtype == np.float64 else array.astype(np.float32))
    if found[0].shape[1] != found[1].shape[1]:
        raise InputError(
            f"queries and vectors must have as many columns as each other, got "
            f"{found[0].shape[1]} and {found[1].shape[1]}"
        )
    kind = np.result_type(*found)
    if similarity == "cosine":
        found = [
            each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-30) for each in found
        ]
    return found[0].astype(kind), found[1].astype(kind)


def _ids(name: str, given: npt.ArrayLike | None, size: int) -> npt.NDArray[Any]:
    ids = np.arange(size) if given is None else as_ids(name, given)
    if len(ids) != size or len(np.unique(ids)) != size:
        raise InputError(f"{name} must be {size} different names, one for each row, got {len(ids)}")
    return ids
