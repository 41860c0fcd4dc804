"""The input of `estimate`, as counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from unsample import metrics as _metrics
from unsample._checks import Seed
from unsample.answers._result import DEFAULT_METRICS
from unsample.errors import DesignError, InputError
from unsample.evidence import ItemCounts, RankCounts, Targets, place_halves
from unsample.metrics import Metric
from unsample.tables import is_frame, read_counts


def as_counts(ranks: Any, replacement: bool, rng: Seed, **given: Any) -> RankCounts:
    """Return the counts of the ranks, and refuse arguments that the data already hold."""
    named = {name: value for name, value in given.items() if value is not None}
    if isinstance(ranks, RankCounts | Targets):
        if named:
            extra, kind = " and ".join(named), type(ranks).__name__
            raise InputError(f"{extra} must be left out with {kind}, which know it")
        return ranks if isinstance(ranks, RankCounts) else ranks.counts
    if is_frame(ranks):
        negatives = "shared" if named.pop("shared", False) else "own"
        if not named.keys() <= {"items", "sampled", "filtered"}:
            raise InputError("users must be left out with a frame; give it a column of users")
        return read_counts(ranks, **named, replacement=replacement, negatives=negatives)[""]
    for name in ("items", "sampled"):
        if name not in named:
            raise DesignError(
                f"{name} must be given with ranks, got None; see help(unsample.estimate)"
            )
    shared = named.pop("shared", False)
    counts = RankCounts.from_ranks(place_halves(ranks, rng), **named, replacement=replacement)
    if not shared:
        return counts
    return replace(counts, shared=ItemCounts.without_outcomes(counts.largest_sample))


def possible_metrics(
    metrics: str | Metric | Iterable[str | Metric], counts: RankCounts
) -> str | Metric | Iterable[str | Metric]:
    """Return the metrics asked for; of the default ones, only those that the data can give."""
    if metrics is not DEFAULT_METRICS or not counts.several or (counts.place > 0).all():
        return metrics
    return [name for name in DEFAULT_METRICS if not _metrics.parse(name).family.uses_places]
