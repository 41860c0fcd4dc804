"""Item lists and pipelines of LensKit.

LensKit scores the candidates it is given; lists that hold a user's targets and sampled items make
a sampled evaluation. Items that a pipeline cannot score (NaN) come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, check_level
from unsample.adapters._doors import with_ends
from unsample.adapters._lists import Counting, Lists, numbered
from unsample.adapters._tasks import ModelScores, Task, check_object, require, unscored_last
from unsample.answers import DEFAULT_METHOD, estimate
from unsample.errors import InputError
from unsample.evidence import Targets
from unsample.metrics import Metric, parse

__all__ = ["full", "targets", "task"]

#: Metrics of LensKit that estimates are made of, and our names of them.
_OURS = {
    "Recall": "Recall(norm=min)",
    "Precision": "Precision",
    "Hit": "HR",
    "RecipRank": "MRR",
    "AveragePrecision": "AP(norm=min)",
    "NDCG": "NDCG(discount=jk)",
}


def full(
    metric: Any,
    *,
    items: int | Mapping[Any, int],
    sampled: int | None = None,
    candidates: str | None = None,
    method: str = DEFAULT_METHOD,
    level: float = 0.95,
) -> tuple[Any, Any, Any]:
    """Return metrics of LensKit for the whole catalogue: the estimate, and its interval's ends.

    They go into ``RunAnalysis(NDCG(10), *full(NDCG(10), items=items))`` for scored lists that hold
    test and sampled items. ``global_metrics()`` of the result has them as ``NDCG@10_full``,
    ``NDCG@10_low`` and ``NDCG@10_high``.

    Parameters
    ----------
    metric
        The metric that is meant: Recall, Precision, Hit, RecipRank, AveragePrecision or NDCG of
        LensKit, or one of our names. LensKit's NDCG takes places 1 and 2 alike; with
        ``LogRankWeight(offset=1)`` it is the usual one, as ``"NDCG@10"`` is.
    items, sampled
        As in `targets`.
    candidates, method
        As in `unsample.estimate`.
    level
        The level of the interval.
    """
    label, asked = (metric, metric) if isinstance(metric, str) else _our_name(metric)
    run = _Run(label, parse(asked), items, sampled, candidates, method, check_level(level))
    value, low, high = (_kind()(run, f"{label}_{end}") for end in ("full", "low", "high"))
    return value, low, high


def targets(
    scored: Any,
    test: Any,
    *,
    items: int | Mapping[Any, int],
    sampled: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    filtered: bool = False,
) -> Targets:
    """Rank test items among the sampled items of each user's scored list.

    Parameters
    ----------
    scored
        An `ItemListCollection` of scored lists that hold test and sampled items, such as
        ``lenskit.batch.score(pipeline, candidates)`` returns.
    test
        An `ItemListCollection` of the test items, with the same keys.
    items, sampled, ties, rng, filtered
        As in `unsample.adapters.trec.targets`, with users for queries.
    """
    counting = Counting(ties, rng, filtered)
    listed, relevant = _read("scored", scored, with_scores=True), _read("test", test)
    return listed.rank(relevant, items=items, sampled=sampled, counting=counting)


def task(pipeline: Any, train: Any, test: Any, *, component: str = "scorer") -> Task:
    """Make a task of a trained pipeline.

    Parameters
    ----------
    pipeline
        A `lenskit.pipeline.Pipeline` after ``pipeline.train(train)``.
    train
        The `lenskit.data.Dataset` it was trained on: its items are the catalogue, and what a user
        has there is no candidate.
    test
        An `ItemListCollection` of the test items of users that are in ``train``.
    component
        The node of the pipeline that gives scores.
    """
    check_object("pipeline", pipeline, "a pipeline of lenskit", ["node"])
    check_object("train", train, "a dataset of lenskit", ["interaction_matrix"])
    ids = np.asarray(train.users.ids()), np.asarray(train.items.ids())
    held_out = _read("test", test)
    score = require("lenskit", "lenskit").score
    item_list = require("lenskit", "lenskit.data").ItemList

    def scores(users: IntArray, items: IntArray | None = None, /) -> npt.NDArray[Any]:
        """Return the scores of these items, or of all, user by user as LensKit gives them."""
        rows = []
        for place, user in enumerate(ids[0][users].tolist()):
            asked = np.arange(len(ids[1])) if items is None else items[place]
            # A list holds an item once, and a sample with replacement may hold it twice.
            distinct, inverse = np.unique(asked, return_inverse=True)
            listed = item_list(item_nums=distinct.astype(np.int32), vocabulary=train.items)
            found = score(pipeline, user, listed, component=component)
            rows.append(np.asarray(found.scores(), dtype=np.float64)[inverse])
        return np.stack(rows)

    seen = train.interaction_matrix(format="scipy", layout="coo")
    return Task.of_pairs(
        ModelScores(scores, len(ids[1]), scores),
        numbered((held_out.query, held_out.item), ids, here="test", there="train"),
        (seen.row, seen.col),
        ids,
    )


def _read(name: str, collection: Any, *, with_scores: bool = False) -> Lists:
    kind = "an ItemListCollection of lenskit"
    check_object(name, collection, kind, ["key_fields", "lists"])
    keys, lists, scores = [], [], []
    for key, items in collection:
        keys.append(key[0] if len(key) == 1 else "/".join(map(str, key)))
        lists.append(np.asarray(items.ids()))
        found = items.scores() if with_scores else np.zeros(len(items))
        if found is None:
            raise InputError(
                f"{name} must hold lists with scores, got none for {keys[-1]!s}; keep what "
                "lenskit.batch.score returns"
            )
        scores.append(unscored_last(found))
    if not lists:
        raise InputError(f"{name} must hold at least one item list, got none")
    queries = np.repeat(np.array(keys), [len(ids) for ids in lists])
    return Lists(name, queries, np.concatenate(lists), np.concatenate(scores).astype(np.float64))


@dataclass(eq=False)
class _Run:
    """What three metrics ask of a run, and what was found for the latest."""

    label: str
    metric: Metric
    items: int | Mapping[Any, int]
    sampled: int | None
    candidates: str | None
    method: str
    level: float
    #: The latest run and its test lists, how many there were, and the numbers by name.
    latest: tuple[Any, Any, int, Mapping[str, float]] = None, None, 0, MappingProxyType({})

    def numbers(self, output: Any, test: Any) -> Mapping[str, float]:
        """Estimate once for the metrics that are asked one after the other."""
        *known, found = self.latest
        size = len(output) + len(test)
        if known[0] is not output or known[1] is not test or known[2] != size:
            ranked = targets(output, test, items=self.items, sampled=self.sampled)
            result = estimate(
                ranked.counts,
                metrics=self.metric,
                candidates=self.candidates,
                method=self.method,
                resamples=0,
            )
            found = with_ends(self.label, result[self.metric], self.level)
            self.latest = output, test, size, found
        return found


def _our_name(metric: Any) -> tuple[str, str]:
    """Return the label of a metric of LensKit, and our name of what it is."""
    check_object("metric", metric, "a name such as 'NDCG@10' or a metric of lenskit", ["label"])
    family, weight = type(metric).__name__, getattr(metric, "weight", None)
    ours = _OURS.get(family)
    if weight is not None:
        # LensKit's discounts: clipped, as it has them by default, and the usual ones.
        ours = {0: ours, 1: family}.get(getattr(weight, "offset", -1))
    if ours is None or getattr(metric, "gain", None):
        raise InputError(
            f"metric must be one of {', '.join(_OURS)} of lenskit, NDCG with LogRankWeight of "
            f"offset 0 or 1 and without gain, got {metric.label}; or a name such as 'NDCG@10'"
        )
    return metric.label, ours if metric.n is None else f"{ours}@{metric.n}"


@cache
def _kind() -> type[Any]:
    """Return the class of the metrics, which LensKit wants to be one of its own."""
    base = require("lenskit", "lenskit.metrics").GlobalMetric

    class Full(base):  # type: ignore[misc,valid-type]
        """A number of the whole catalogue, by scored lists of sampled items."""

        def __init__(self, run: _Run, label: str) -> None:
            self.run, self.name = run, label

        @property
        def label(self) -> str:
            return self.name

        def measure_run(self, output: Any, test: Any, /) -> float:
            return self.run.numbers(output, test)[self.name]

    return Full
