"""How a corpus was cut down, and the lists of its queries: what `retrieval` reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    check_integer,
    check_real,
)
from unsample.adapters._lists import Lists, as_names, codes_of
from unsample.errors import DesignError, InputError
from unsample.evidence import CutNames, CutTargets, check_ties

#: Of a target that more drawn documents beat, it is not kept which these are: so many, or so many
#: times what is expected of a target at the greatest K.
_DEPTH, _BEYOND = 64, 4.0
#: Grades of documents that are not relevant are 0 and below.
_LEAST_GRADE = 1e-9


@dataclass(frozen=True)
class Reading:
    """How lists are read; checked before they are."""

    documents: int
    sampler: str = "uniform"
    relevance: float = 1
    deepest: int = 100
    ties: str = "random"
    rng: Seed = 0

    def __post_init__(self) -> None:
        check_integer("documents", self.documents, minimum=2, hint="the size of the full corpus")
        check_integer("deepest", self.deepest, minimum=1, hint="the greatest K")
        check_real("relevance", self.relevance, low=0.0)
        check_ties(self.ties, whole=True)
        if self.sampler != "uniform":
            raise DesignError(
                f"sampler must be 'uniform', got {self.sampler!r}: nothing is known of documents "
                "that could not be drawn, or of how many of them stand behind one that was; keep "
                "hard documents if you like (kept, pools), and draw some of all others uniformly"
            )

    @property
    def lowest(self) -> float:
        """Return the lowest grade of a relevant document."""
        return max(float(self.relevance), _LEAST_GRADE)


def as_ids(name: str, given: Any) -> npt.NDArray[Any]:
    """Return names of documents or queries as an array of text or of whole numbers."""
    if isinstance(given, str):
        raise InputError(f"{name} must be names, got one text")
    values = given if isinstance(given, np.ndarray) else np.array(list(given), dtype=object)
    return as_names(f"each of {name}", values) if len(values) else np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores of documents, by numbers of queries and documents."""

    query: IntArray
    item: IntArray
    score: FloatArray


@dataclass(frozen=True, eq=False)
class Coded:
    """Lists, judgements and what was kept, with numbers for the names of queries and documents."""

    queries: npt.NDArray[Any]
    items: npt.NDArray[Any]
    query: IntArray
    item: IntArray
    score: FloatArray
    #: Judgements, each pair once.
    asked: IntArray
    wanted: IntArray
    grade: FloatArray
    #: The documents of the cut corpus; those kept beside the judged ones; and those of pools.
    corpus: IntArray
    kept: IntArray
    pool_query: IntArray
    pool_item: IntArray

    @classmethod
    def of(
        cls,
        listed: Lists,
        judged: Lists,
        corpus: Iterable[Any] | None,
        kept: Iterable[Any],
        pools: Mapping[Any, Iterable[Any]],
    ) -> Coded:
        """Take lists, with numbers for the names in them."""
        listed.refuse_unscored()
        if corpus is None and pools:
            raise InputError(
                "corpus must be given with pools: the documents that all queries share"
            )
        lists = [as_ids("pools", names) for names in pools.values()]
        (query, asked, owner), queries = codes_of(
            "query",
            ("results", listed.query),
            ("qrels", judged.query),
            ("pools", as_ids("pools", pools)),
        )
        (item, wanted, inside, certain, pool_item), items = codes_of(
            "document",
            ("results", listed.item),
            ("qrels", judged.item),
            ("corpus", as_ids("corpus", () if corpus is None else corpus)),
            ("kept", as_ids("kept", kept)),
            ("pools", np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)),
        )
        listed.once(query * len(items) + item)
        if corpus is None:
            inside = _same_documents(listed, query, item)
        first = np.unique(asked * len(items) + wanted, return_index=True)[1]
        pool_query = np.repeat(owner, [len(names) for names in lists])
        return cls(
            queries, items, query, item, listed.score, asked[first], wanted[first],
            judged.score[first], np.unique(inside), certain, pool_query, pool_item,
        )  # fmt: skip

    @classmethod
    def of_corpus(
        cls, names: tuple[npt.NDArray[Any], npt.NDArray[Any]], judged: Lists, kept: Iterable[Any]
    ) -> Coded:
        """Take rows of vectors, with numbers for their names in the order of the rows."""
        (query, asked), queries = codes_of(
            "query", ("query_ids", names[0]), ("qrels", judged.query)
        )
        (item, wanted, certain), items = codes_of(
            "document",
            ("document_ids", names[1]),
            ("qrels", judged.item),
            ("kept", as_ids("kept", kept)),
        )
        first = np.unique(asked * len(items) + wanted, return_index=True)[1]
        none = np.empty(0, dtype=np.int64)
        return cls(
            queries, items, query, none, np.empty(0), asked[first], wanted[first],
            judged.score[first], item, certain, none, none,
        )  # fmt: skip

    def chosen(self, cut: Cut) -> Rows:
        """Return the lists of queries that have a relevant document, numbered as in ``cut``."""
        number = np.full(len(self.queries), -1)
        number[cut.queries] = np.arange(len(cut.queries))
        rows = number[self.query] >= 0
        found = Rows(number[self.query[rows]], self.item[rows], self.score[rows])
        strange = ~(cut.kept | cut.drawn)[found.item] & ~np.isin(cut.code(found), cut.alone)
        if strange.any():
            row = int(np.argmax(strange))
            raise InputError(
                f"results must hold documents of corpus, pools and qrels alone, got "
                f"{int(strange.sum())} others, such as {self.items[found.item[row]]!s} of query "
                f"{self.queries[cut.queries[found.query[row]]]!s}"
            )
        return found


def _same_documents(listed: Lists, query: IntArray, item: IntArray) -> IntArray:
    """Return the documents of all lists; refuse lists that do not all hold the same ones."""
    documents, lengths = np.unique(item), np.bincount(query)
    short = (lengths > 0) & (lengths < len(documents))
    if short.any():
        row = int(np.argmax(query == int(np.argmax(short))))
        raise DesignError(
            f"corpus must be given where lists differ, got {int(lengths[query[row]])} of the "
            f"{len(documents)} listed documents for query {listed.query[row]!s}: the best k of a "
            "corpus say nothing of the others unless it is known from which documents they came"
        )
    return documents


@dataclass(frozen=True, eq=False)
class Cut:
    """Which documents were kept for certain, and which were drawn, from how many."""

    reading: Reading
    names: CutNames
    #: The queries that have a relevant document, by their first numbers.
    queries: IntArray
    #: By document: whether it was kept for certain for all queries, or drawn for all of them.
    kept: BoolArray
    drawn: BoolArray
    #: Pairs of query and document, as one number each, that are certain for that query alone.
    alone: IntArray
    #: Relevant documents: by query, document, and with their grade.
    asked: IntArray
    wanted: IntArray
    grade: FloatArray

    @classmethod
    def of(cls, coded: Coded, reading: Reading, *, pooled: bool) -> Cut:
        """Tell the documents apart, and refuse a corpus of which nothing was drawn."""
        relevant = coded.grade >= reading.lowest
        if not relevant.any():
            raise InputError(
                f"qrels must hold a document of grade {reading.lowest:g} or more, got none"
            )
        queries = np.unique(coded.asked[relevant])
        unlisted = ~np.isin(queries, coded.query)
        if unlisted.any():
            raise InputError(
                "results must hold a list for each query that has a relevant document, got none "
                f"for {int(unlisted.sum())} of {len(queries)}, such as "
                f"{coded.queries[queries[np.argmax(unlisted)]]!s}"
            )
        inside, certain = np.zeros((2, len(coded.items)), dtype=bool)
        inside[coded.corpus] = True
        # Judged documents were kept, or the relevant ones alone.
        for judged in (np.ones_like(relevant), relevant):
            if inside[coded.wanted[judged]].all():
                certain[coded.wanted[judged]] = True
                break
        else:
            if not pooled:
                missing = relevant & ~inside[coded.wanted]
                raise InputError(
                    "corpus must hold every relevant document, got "
                    f"{int(missing.sum())} that are missing, such as "
                    f"{coded.items[coded.wanted[np.argmax(missing)]]!s}; if the corpus was drawn "
                    "without regard to them, add them to it, scored for every query"
                )
        certain[coded.kept] = True
        number = np.full(len(coded.queries), -1)
        number[queries] = np.arange(len(queries))
        whose = np.concatenate([coded.pool_query, coded.asked])
        which = np.concatenate([coded.pool_item, coded.wanted])
        own = (number[whose] >= 0) & ~certain[which]
        alone = np.unique(number[whose[own]] * len(inside) + which[own])
        drawn = inside & ~certain
        names = CutNames(coded.queries[queries], coded.items, np.flatnonzero(drawn))
        found = cls(
            reading, names, queries, certain, drawn, alone,
            number[coded.asked[relevant]], coded.wanted[relevant], coded.grade[relevant],
        )  # fmt: skip
        found._check()
        return found

    def _check(self) -> None:
        if not self.drawn.any():
            raise DesignError(
                "corpus must hold documents that were drawn at random, got none beside those that "
                "were kept: lists of hard documents say nothing of all others; draw some of these "
                "uniformly, once for all queries, and score them too"
            )
        if (self.rest < self.sizes).any():
            raise DesignError(
                f"documents must be the size of the full corpus, got {self.reading.documents} with "
                f"{int(self.kept.sum()) + int(self.drawn.sum())} documents in the cut one"
            )

    @cached_property
    def _alone(self) -> tuple[IntArray, IntArray]:
        return self.alone // len(self.kept), self.alone % len(self.kept)

    @cached_property
    def rest(self) -> IntArray:
        """Return how many documents are not certain, for each query."""
        own = np.bincount(self._alone[0], minlength=len(self.queries))
        return np.asarray(self.reading.documents - int(self.kept.sum()) - own)

    @cached_property
    def sizes(self) -> IntArray:
        """Return how many of the drawn documents are not certain, for each query."""
        query, item = self._alone
        own = np.bincount(query, self.drawn[item], minlength=len(self.queries))
        return np.asarray(int(self.drawn.sum()) - own.astype(np.int64))

    @property
    def depth(self) -> int:
        """Return how many drawn documents are looked at above a target."""
        share = int(self.sizes.min()) / float(self.rest.mean())
        return max(_DEPTH, math.ceil(_BEYOND * share * self.reading.deepest))

    def code(self, rows: Rows) -> IntArray:
        """Return a number for each pair of query and document."""
        return np.asarray(rows.query * len(self.kept) + rows.item)

    def ranked(self, rows: Rows) -> CutTargets:
        """Rank the relevant documents of the queries in these lists; what is missing comes last."""
        rng, listed = as_rng(self.reading.rng), self.code(rows)
        here = np.isin(self.asked, np.unique(rows.query))
        pairs = self.asked[here] * len(self.kept) + self.wanted[here]
        absent = ~np.isin(pairs, listed)
        depth = min(self.depth, self._shown(rows, self.asked[here][absent]))
        query = np.concatenate([rows.query, self.asked[here][absent]])
        item = np.concatenate([rows.item, self.wanted[here][absent]])
        score = np.concatenate([rows.score, np.full(int(absent.sum()), -np.inf)])
        code = query * len(self.kept) + item
        order = np.argsort(pairs)
        place = np.searchsorted(pairs, code, sorter=order).clip(max=len(pairs) - 1)
        target = pairs[order][place] == code
        grade = np.where(target, self.grade[here][order][place], 0.0)
        by_chance = self.drawn[item] & ~np.isin(code, self.alone)
        left_out = self._too_many(rng)
        kept = ~np.isin(code, left_out)
        return CutTargets.of_lists(
            query[kept], score[kept], item[kept],
            grade=grade[kept], by_chance=by_chance[kept], rest=self.rest,
            drawn=int(self.sizes.min()), documents=self.reading.documents, depth=depth,
            deepest=self.reading.deepest, ties=self.reading.ties, rng=rng, names=self.names,
        )  # fmt: skip

    def _shown(self, rows: Rows, queries: IntArray) -> int:
        """Return how many drawn documents all lists show that lack a target; refuse short lists."""
        if not len(queries):
            return self.depth
        length = np.bincount(rows.query, minlength=len(self.queries))[queries]
        drawn = np.bincount(rows.query, self.drawn[rows.item], minlength=len(self.queries))
        shown = int(drawn[queries].min()) - 1
        deepest = self.reading.deepest
        if length.min() < deepest or shown < 1:
            raise InputError(
                f"results must hold the best {deepest} documents of each query at least, and some "
                f"that were drawn among them, got {int(length.min())} for a query with a relevant "
                "document that is missing; keep longer lists, or lower deepest"
            )
        return shown

    def _too_many(self, rng: np.random.Generator) -> IntArray:
        """Return pairs of drawn documents to leave out, so that all queries have as many."""
        extra = self.sizes - self.sizes.min()
        if not extra.any():
            return np.empty(0, dtype=np.int64)
        drawn = np.flatnonzero(self.drawn)
        found = []
        for query in np.flatnonzero(extra).tolist():
            own = self._alone[1][self._alone[0] == query]
            left = rng.choice(np.setdiff1d(drawn, own), int(extra[query]), replace=False)
            found.append(query * len(self.kept) + left)
        return np.concatenate(found)
