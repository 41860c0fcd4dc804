"""`CutTargets`: relevant documents ranked in a corpus that was cut down by chance.

Some documents were kept for certain: all relevant ones, and perhaps lists of hard ones. Some of the
rest were drawn uniformly. So two numbers are known of each target: how many kept documents beat it
(``ahead``), which is certain, and how many drawn ones do (``hits``). Its rank in the full corpus is
1 + ahead + X, where X documents of the rest are better and ``hits`` of these were drawn. That is
the law of a sampled rank, for the rank 1 + X among the rest alone.

All queries share the documents that were drawn. So it is recorded which drawn document beats which
target. A target with many hits is far below every K, and no more is recorded of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, as_index
from unsample.errors import MetricError
from unsample.evidence._columns import joined
from unsample.evidence._counts import RankCounts
from unsample.evidence._drawn import DrawnPart, more_cautious, part_of_items, smoothed
from unsample.evidence._targets import Targets
from unsample.evidence._users import deviations_of_mean
from unsample.law import Law, RankGrid, RankPoints
from unsample.metrics import Metric

#: A group with fewer targets than this, or than one of so many parts, is joined with the next.
_SMALL_GROUP, _GROUPS = 50, 8
#: Columns with one number for each target.
_COLUMNS = ("queries", "targets", "places", "relevance", "ranks", "ahead", "hits", "rest")


@dataclass(frozen=True, eq=False)
class CutNames:
    """What queries and documents are called, by their numbers, and which were drawn."""

    queries: npt.NDArray[Any]
    documents: npt.NDArray[Any]
    #: The numbers of the documents drawn, in the order of their names.
    drawn: IntArray


@dataclass(frozen=True, eq=False)
class CutTargets:
    """Relevant documents of queries, of a corpus of which a part was drawn; see the module.

    `unsample.adapters.retrieval` makes them, and `unsample.estimate` takes them.
    """

    #: The query of each target, from 0; which document it is; its place among that query's
    #: targets; and its grade.
    queries: IntArray
    targets: IntArray
    places: IntArray
    relevance: FloatArray
    #: Its rank in the cut corpus: the best that it may have in the full one.
    ranks: IntArray
    #: How many documents that were kept for certain beat it, and how many drawn ones;
    #: ``depth`` stands for as many and more.
    ahead: IntArray
    hits: IntArray
    #: From how many documents those of its query were drawn.
    rest: IntArray
    #: How many were drawn, the same for all queries.
    drawn: int
    #: How many documents the full corpus has.
    documents: int
    depth: int
    #: The greatest K that can be asked for.
    deepest: int
    #: Pairs of a target and a drawn document that beats it, for targets with at most ``depth``.
    beaten: IntArray
    document: IntArray
    names: CutNames

    @classmethod
    def of_lists(
        cls,
        query: IntArray,
        score: FloatArray,
        document: IntArray,
        *,
        grade: FloatArray,
        by_chance: BoolArray,
        rest: IntArray,
        drawn: int,
        documents: int,
        depth: int,
        deepest: int,
        ties: str,
        rng: np.random.Generator,
        names: CutNames,
    ) -> CutTargets:
        """Take the scores of a query's documents, row by row; targets are those with a ``grade``.

        ``by_chance`` tells which documents were drawn, and ``rest`` from how many for each query.
        Rows that are missing because they rank below a list have the score -inf.
        """
        target = grade > 0
        # A target is placed at random among its ties, or before or behind them.
        among = rng.random(len(query)) if ties == "random" else target * _SIDE[ties]
        order = np.lexsort([among, -score, query])
        query, target, by_chance = query[order], target[order], by_chance[order]
        chosen, met = np.flatnonzero(target), np.flatnonzero(by_chance)
        first = np.searchsorted(query, query[chosen])
        before, start = np.searchsorted(met, chosen), np.searchsorted(met, first)
        hits = before - start
        above: IntArray = np.cumsum(target) - target.astype(np.int64)
        known = hits <= depth
        beaten = np.repeat(np.flatnonzero(known), hits[known])
        within = np.arange(len(beaten)) - np.repeat(
            np.cumsum(hits[known]) - hits[known], hits[known]
        )
        return cls(
            query[chosen],
            document[order][chosen],
            above[chosen] - above[first] + 1,
            grade[order][chosen],
            chosen - first + 1,
            chosen - first - hits,
            np.minimum(hits, depth),
            rest[query[chosen]],
            drawn,
            documents,
            depth,
            deepest,
            beaten,
            document[order][met[start[beaten] + within]],
            names,
        )

    @classmethod
    def merge(cls, parts: Iterable[CutTargets]) -> CutTargets:
        """Join targets of different queries of one corpus; queries are numbered already."""
        found = list(parts)
        starts = np.cumsum([0, *(len(part) for part in found[:-1])])
        moved = [part.beaten + start for part, start in zip(found, starts, strict=True)]
        columns = joined(found, (*_COLUMNS, "document"))
        return replace(found[0], **columns, beaten=np.concatenate(moved))

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return (
            f"CutTargets({len(self)} targets of {self.size} queries, {self.drawn} of "
            f"{self.documents} documents drawn)"
        )

    @cached_property
    def size(self) -> int:
        """Return the number of queries."""
        return int(self.queries.max()) + 1

    @cached_property
    def beaters(self) -> IntArray:
        """Return how many drawn documents are recorded that beat each target."""
        return np.bincount(self.beaten, minlength=len(self))

    @property
    def complete(self) -> bool:
        """Return whether every document was drawn, so that ranks are known."""
        return bool((self.rest == self.drawn).all())

    @property
    def known(self) -> Targets:
        """Return the targets of a corpus that is complete, as ranks among all documents."""
        last = self.documents - 1
        return Targets(self.ranks, self.documents, last, users=self.queries, replacement=False)

    @cached_property
    def places_of_beaters(self) -> IntArray:
        """Return which of the documents drawn each one is that beats a target."""
        return np.searchsorted(self.names.drawn, self.document)

    @property
    def left(self) -> float:
        """Return the share of the rest that was not drawn."""
        return 1.0 - self.drawn / float(self.rest.mean())

    def counts(self, rows: IntArray | None = None, weights: FloatArray | None = None) -> RankCounts:
        """Count ranks among what was drawn, of all targets or of some."""
        chosen = np.arange(len(self)) if rows is None else rows
        hits = self.hits[chosen]
        return RankCounts.from_ranks(
            np.where(hits < self.depth, hits, self.drawn) + 1,
            lowest=hits + 1,
            items=self.rest[chosen] + 1,
            sampled=self.drawn,
            weights=weights,
            users=self.queries[chosen],
            # Kept documents are counted apart: no other target competes among those drawn.
            filtered=True,
            replacement=False,
        )

    def expected(self, rest: int, places: RankGrid | RankPoints) -> FloatArray:
        """Return the chance of 0, 1, ... hits at each rank among the rest.

        The last row is the chance of all larger numbers, which is what the others leave.
        """
        ranks = np.arange(1, self.depth + 1)
        law = Law(rest + 1, self.drawn, replacement=False)
        each = law.matrix(ranks, ranks, places, beyond="last")
        return np.concatenate([each, np.maximum(1.0 - each.sum(axis=0), 0.0)[None, :]])

    def for_metric(self, metric: Metric) -> Weighed:
        """Return the targets as they count in a metric, without those that are surely beyond K."""
        if metric.k is None or metric.family.jointly is not None or metric.family.uses_items:
            raise MetricError(
                f"metrics of a corpus that was cut down must have a K and be sums over documents, "
                f"got {metric}; write {metric.label}@10, or ask for NDCG@K, MRR@K or Recall@K"
            )
        if metric.k > self.deepest:
            raise MetricError(
                f"K of {metric} must be at most deepest = {self.deepest}, up to which lists were "
                "read; say deepest= where they are read"
            )
        parts = metric.parts(self.queries, self.places, self.relevance)
        groups, start = [], 0
        counting = np.flatnonzero((parts > 0) & (self.ahead < metric.k))
        least = max(_SMALL_GROUP, len(counting) / _GROUPS)
        ahead = self.ahead[counting]
        for number in range(metric.k):
            rows = counting[(ahead >= start) & (ahead <= number)]
            if len(rows) < least and (ahead > number).any():
                continue
            if len(rows):
                groups.append(CutGroup.of(rows, self.ahead))
            start = number + 1
        return Weighed(self, parts, tuple(groups))


@dataclass(frozen=True, eq=False)
class CutGroup:
    """Targets that about the same number of kept documents beat."""

    rows: IntArray
    #: The fewest and the most documents that beat one of them.
    span: tuple[int, int]

    @classmethod
    def of(cls, rows: IntArray, ahead: IntArray) -> CutGroup:
        """Take some of the targets, given how many documents are ahead of each."""
        return cls(rows, (int(ahead[rows].min()), int(ahead[rows].max())))


@dataclass(frozen=True, eq=False)
class Weighed:
    """Targets as they count in a metric: a mean over queries of weighted sums of scores.

    Each group has one score for each number of hits. Targets that are in no group add nothing.
    """

    found: CutTargets
    #: The share of each target in the metric of its query, beside w(R).
    part: FloatArray
    groups: tuple[CutGroup, ...]

    @cached_property
    def shares(self) -> FloatArray:
        """Return the weight of the targets of each group, per query."""
        weights = [self.part[group.rows].sum() for group in self.groups]
        return np.asarray(weights, dtype=np.float64) / self.found.size

    def counts(self, group: CutGroup) -> RankCounts:
        """Return the ranks of a group among what was drawn, weighed."""
        return self.found.counts(group.rows, self.part[group.rows])

    def only(self, number: int) -> Weighed:
        """Return one group alone, with weights that make its total a mean over its targets."""
        group = self.groups[number]
        return replace(self, part=self.part / self.shares[number], groups=(group,))

    def totals(self, scores: list[FloatArray]) -> FloatArray:
        """Return the sum of each query's scores, weighed."""
        found = np.zeros(self.found.size)
        for group, score in zip(self.groups, scores, strict=True):
            rows = group.rows
            each = self.part[rows] * score[self.found.hits[rows]]
            found += np.bincount(self.found.queries[rows], each, minlength=len(found))
        return found

    def variance(self, scores: list[FloatArray], *, ratio: bool = False) -> float:
        """Return the variance of the mean for newly drawn queries.

        With ``ratio`` it is that of a mean over targets, whose number varies by query.
        """
        ones = [np.ones_like(score) for score in scores]
        weights = self.totals(ones) if ratio else np.ones(self.found.size)
        return variance_of_mean(self.totals(scores), weights)

    def items_part(self, scores: list[FloatArray]) -> DrawnPart:
        """Return the part of the variance of the mean that comes with the documents drawn."""
        return more_cautious(
            self._items_part(scores), self._items_part([smoothed(score) for score in scores])
        )

    def _items_part(self, scores: list[FloatArray]) -> DrawnPart:
        found, change = self.found, self.changes(scores)
        apart = change**2 * found.hits * (found.drawn - found.hits) / found.drawn
        return self._part_of(found.places_of_beaters, change[found.beaten], float(apart.sum()))

    def difference_part(
        self, scores: list[FloatArray], other: Weighed, other_scores: list[FloatArray]
    ) -> DrawnPart:
        """Return the documents' part for the mean of ``scores`` less that of another model's.

        Both models searched the same documents, so what one of them does to both cancels.
        """
        versions = [(scores, other_scores)]
        versions.append(([*map(smoothed, scores)], [*map(smoothed, other_scores)]))
        return more_cautious(*(self._difference_part(a, other, b) for a, b in versions))

    def _difference_part(
        self, scores: list[FloatArray], other: Weighed, other_scores: list[FloatArray]
    ) -> DrawnPart:
        documents, pairs, effects = len(self.found.names.drawn), [], []
        for weighed, some, sign in ((self, scores, 1.0), (other, other_scores, -1.0)):
            found = weighed.found
            pairs.append(found.queries[found.beaten] * documents + found.places_of_beaters)
            effects.append(sign * weighed.changes(some)[found.beaten])
        keys, place = np.unique(np.concatenate(pairs), return_inverse=True)
        # What leaving out a document does to the difference of a query.
        each = _sums(place.reshape(-1), np.concatenate(effects), len(keys))
        query = _sums(keys // documents, each, self.found.size)
        apart = float(each @ each) - float(query @ query) / self.found.drawn
        return self._part_of(keys % documents, each, apart)

    def changes(self, scores: list[FloatArray]) -> FloatArray:
        """Return what one hit more or less of a target does to the mean."""
        found, change = self.found, np.zeros(len(self.found))
        for group, score in zip(self.groups, scores, strict=True):
            steps = np.diff(score, prepend=score[0])
            change[group.rows] = self.part[group.rows] * steps[found.hits[group.rows]]
        # A target far below stays there, whichever document is left out.
        change[found.beaters != found.hits] = 0.0
        return change / found.size

    def _part_of(self, document: IntArray, changes: FloatArray, apart: float) -> DrawnPart:
        """Return the part made of what each document does; ``apart`` queries have in theirs too."""
        drawn, size = self.found.drawn, len(self.found.names.drawn)
        there = np.bincount(as_index(document), minlength=size) > 0
        effects = _sums(document, changes, size)[there]
        pool, twice = np.zeros(len(effects), dtype=np.int64), (1.0 - 1.0 / drawn) * apart
        return part_of_items(pool, effects, 1, drawn, twice=twice, left=self.found.left)

    def deviations(self, scores: list[FloatArray]) -> FloatArray:
        """Return numbers whose squares sum to the variance of the mean: of queries, and documents.

        Those of two models on the same draw stand side by side: their products are what the two
        means have in common.
        """
        found, totals = self.found, self.totals(scores)
        changes, size = self.changes(scores)[found.beaten], len(found.names.drawn)
        effects = _sums(found.places_of_beaters, changes, size)
        queries = deviations_of_mean(totals, np.ones(found.size))
        return np.concatenate([queries, math.sqrt(found.left) * (effects - effects.mean())])


def _sums(place: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Return the sum of the values at each place."""
    return np.bincount(as_index(place), values, size).astype(np.float64)


def variance_of_mean(totals: FloatArray, weights: FloatArray) -> float:
    """Return the variance of a weighed mean over queries drawn anew."""
    deviations = deviations_of_mean(totals, weights)
    count = len(deviations)
    return float(deviations @ deviations) * count / max(count - 1, 1)


#: The place of a target among its ties: first or last.
_SIDE = {"optimistic": -1.0, "pessimistic": 1.0}
