"""Evaluating a recommender on a data set: exact metrics beside what a sampled evaluation gives."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unsample._checks import IntArray, Seed, as_rng, check_choice
from unsample.answers import DEFAULT_METRICS, Estimates, estimate_counts, exact
from unsample.answers._door import page_of
from unsample.answers.evaluation._evaluate import evaluate, evaluate_known_ranks
from unsample.answers.evaluation._result import Evaluated
from unsample.designs.ranking import Progress, exact_ranks, sampled_ranks
from unsample.designs.running._designs import Design
from unsample.estimators import Estimator
from unsample.evidence import RankCounts
from unsample.lab.datasets import PROTOCOLS, Split, load_ranks, standard_split
from unsample.lab.recommenders import create
from unsample.law import draw_sampled_ranks
from unsample.metrics import Metric
from unsample.pages import Page, Sheet, as_text, page, sheet

__all__ = [
    "Evaluation",
    "RankedTargets",
    "evaluate_bundled",
    "evaluate_ranks",
    "evaluate_trained",
    "rank_bundled",
    "rank_trained",
]

DEFAULT_METHODS = ("naive", "auto")
#: What a protocol does with the items a user has seen.
_SAID = {"everyday": "unseen", "paper": "all"}


@dataclass(frozen=True, eq=False)
class RankedTargets:
    """Targets with their global ranks, each among its own number of items, and sampled ranks."""

    dataset: str
    recommender: str
    protocol: str
    ranks: IntArray
    items: IntArray
    sampled_ranks: IntArray | None
    sampled: int | None
    replacement: bool
    #: ``"bundled"`` or ``"trained"``.
    source: str
    note: str = ""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Exact metrics, and the estimates from a sample of the same targets beside them."""

    targets: RankedTargets
    exact: Estimates
    estimates: Estimates | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def beside_truth(self) -> Estimates:
        """Return the estimates with the exact values beside them, or these alone."""
        if self.estimates is None:
            return self.exact
        truth = {entry.metric.name: entry.value for entry in self.exact.entries}
        return replace(self.estimates, truth=truth)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each metric and method, with the exact value and the error."""
        rows = [self._row(entry, None) for entry in self.exact.entries]
        if self.estimates is None:
            return rows
        return [
            self._row(entry, self.exact[entry.metric].value) for entry in self.estimates.entries
        ]

    def _row(self, entry: Any, truth: float | None) -> dict[str, Any]:
        row: dict[str, Any] = entry.to_dict()
        if truth is not None:
            row["exact"] = truth
            row["error"] = entry.value - truth
            row["relative_error"] = entry.value / truth - 1 if truth > 0 else None
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        summary = (self.exact if self.estimates is None else self.estimates).to_dict()
        return {
            "dataset": self.targets.dataset,
            "recommender": self.targets.recommender,
            "protocol": self.targets.protocol,
            "source": self.targets.source,
            "note": self.targets.note,
            **{key: summary[key] for key in ("items", "sampled", "users")},
            "estimates": self.rows(),
            "warnings": list(self.warnings),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one interactive page, and write it to ``path`` if one is given."""
        return page_of(self, path)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__


@sheet.register
def _(result: Evaluation) -> Sheet:
    targets = result.targets
    where = (
        f"{targets.recommender} on {targets.dataset} ({targets.source} ranks), "
        f"{targets.protocol} protocol"
    )
    below = sheet(result.beside_truth)
    note = (f"note: {targets.note}",) if targets.note else ()
    return replace(below, title=(where, *below.title, *note), warnings=result.warnings)


@page.register
def _(result: Evaluation) -> Page:
    targets = result.targets
    below = page(result.beside_truth)
    title = f"{below.title[0].lower()}{below.title[1:]}"
    return replace(
        below,
        verb="evaluate",
        title=f"{targets.recommender} on {targets.dataset}: {title}",
        subtitle=f"{below.subtitle} ({targets.source} ranks, {targets.protocol} protocol)",
        warnings=result.warnings,
        headline=(targets.note,) if targets.note else (),
    )


def evaluate_ranks(
    targets: RankedTargets,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHODS,
    resamples: int = 400,
    rng: Seed = 0,
) -> Evaluation:
    """Return the exact metrics of ranked targets and, if they were sampled, the estimates."""
    truth = exact(targets.ranks, items=targets.items, metrics=metrics, resamples=resamples, rng=rng)
    if targets.sampled_ranks is None or targets.sampled is None:
        return Evaluation(targets, truth)
    counts = RankCounts.from_ranks(
        targets.sampled_ranks,
        items=targets.items,
        sampled=targets.sampled,
        replacement=targets.replacement,
    )
    # Warnings stand in the result, and are printed with it.
    estimates = estimate_counts(
        counts,
        metrics=metrics,
        method=method,
        candidates=_SAID[targets.protocol],
        resamples=resamples,
        rng=rng,
    )
    return Evaluation(targets, truth, estimates, estimates.warnings)


def evaluate_bundled(
    dataset: str,
    recommender: str,
    *,
    design: str | Design,
    budget: int | None = None,
    protocol: str = "everyday",
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    resamples: int = 400,
    seed: int = 0,
) -> Evaluated:
    """Evaluate the shipped ranks of a recommender as a design would have seen them."""
    bundled = load_ranks(dataset, recommender, protocol=protocol)
    return evaluate_known_ranks(
        bundled.ranks,
        items=bundled.items,
        design=design,
        budget=budget,
        metrics=metrics,
        method=method,
        said=_SAID[protocol],
        resamples=resamples,
        seed=seed,
    )


def evaluate_trained(
    dataset: str,
    recommender: str,
    *,
    design: str | Design,
    budget: int | None = None,
    protocol: str = "everyday",
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    resamples: int = 400,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Train a recommender on a data set, and evaluate it by a design.

    With a ``checkpoint`` it is trained again, and the evaluation goes on where it was.
    """
    model, split, seen = _trained(dataset, recommender, protocol, progress)
    return evaluate(
        model,
        (split.target_user, split.target_item),
        items=split.train.items,
        design=design,
        budget=budget,
        exclude=seen,
        metrics=metrics,
        method=method,
        resamples=resamples,
        seed=seed,
        checkpoint=checkpoint,
        progress=progress,
    )


def rank_bundled(
    dataset: str,
    recommender: str,
    *,
    protocol: str = "everyday",
    sampled: int | None = 99,
    replacement: bool = True,
    rng: Seed = 0,
) -> RankedTargets:
    """Take the shipped ranks, and draw sampled ranks from the law they follow."""
    bundled = load_ranks(dataset, recommender, protocol=protocol)
    drawn = None
    if sampled is not None:
        drawn = draw_sampled_ranks(
            bundled.ranks,
            items=bundled.items,
            sampled=sampled,
            replacement=replacement,
            rng=as_rng(rng),
        )
    return RankedTargets(
        dataset=dataset,
        recommender=recommender,
        protocol=protocol,
        ranks=bundled.ranks,
        items=bundled.items,
        sampled_ranks=drawn,
        sampled=sampled,
        replacement=replacement,
        source="bundled",
        note=bundled.note,
    )


def rank_trained(
    dataset: str,
    recommender: str,
    *,
    protocol: str = "everyday",
    sampled: int | None = 99,
    replacement: bool = True,
    rng: Seed = 0,
    progress: Progress | None = None,
) -> RankedTargets:
    """Train a recommender on a data set's published split (or a random one), and rank."""
    model, split, seen = _trained(dataset, recommender, protocol, progress)
    users, targets, items = split.target_user, split.target_item, split.train.items
    full = exact_ranks(model.score_all, users, targets, items=items, exclude=seen, rng=0)
    drawn = None
    if sampled is not None:
        drawn = sampled_ranks(
            model.score_all,
            users,
            targets,
            items=items,
            sampled=sampled,
            replacement=replacement,
            exclude=seen,
            rng=as_rng(rng),
        ).ranks[0]
    return RankedTargets(
        dataset=dataset,
        recommender=recommender,
        protocol=protocol,
        ranks=np.asarray(full.ranks, dtype=np.int64),
        items=full.items,
        sampled_ranks=None if drawn is None else np.asarray(drawn, dtype=np.int64),
        sampled=sampled,
        replacement=replacement,
        source="trained",
        note=split.note,
    )


def _trained(
    dataset: str, recommender: str, protocol: str, progress: Progress | None
) -> tuple[Any, Split, Any]:
    """Return a fitted recommender, the split it was fitted on, and the pairs to leave out."""
    check_choice("protocol", protocol, PROTOCOLS)
    model = create(recommender)
    split = standard_split(dataset, validation=False)
    model.fit_split(split, progress=progress)
    return model, split, split.history().matrix() if protocol == "everyday" else None
