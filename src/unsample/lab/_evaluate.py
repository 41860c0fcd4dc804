"""Evaluating a recommender of the laboratory on one of its data sets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import answers
from unsample._checks import IntArray, check_choice
from unsample._progress import Progress
from unsample.answers import DEFAULT_METRICS, Comparison, Estimates, Evaluation, method_of
from unsample.designs import Design, Fixed, FullRanks, as_design, exact_ranks
from unsample.errors import DesignError, InputError, UnsampleWarning
from unsample.estimators import Estimator
from unsample.lab.datasets import CANDIDATES, BundledRanks, Split, load_ranks, standard_split
from unsample.lab.recommenders import Recommender, create
from unsample.metrics import Metric, parse_all
from unsample.pages import Page, Sheet, page, sheet

if TYPE_CHECKING:
    import scipy.sparse

#: What the fixed design shows beside the exact metrics, unless methods are named.
_METHODS = ("naive", "auto")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabEvaluation(Evaluation):
    """An evaluation that names its data set and its recommender."""

    dataset: str
    recommender: str
    bundled: bool

    @property
    def heading(self) -> str:
        """Return what was evaluated, in a line."""
        source = "bundled ranks" if self.bundled else "trained here"
        return f"{self.recommender} on {self.dataset} ({source}), candidates: {self.candidates}"

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {"dataset": self.dataset, "recommender": self.recommender} | super().to_dict()


@sheet.register
def _(result: LabEvaluation) -> Sheet:
    whole = sheet.dispatch(Evaluation)(result)
    return replace(whole, title=(result.heading, *whole.title))


@page.register
def _(result: LabEvaluation) -> Page:
    whole = page.dispatch(Evaluation)(result)
    return replace(whole, subtitle=f"{result.heading}; {whole.subtitle}")


def evaluate(
    dataset: str,
    recommender: str,
    *,
    bundled: bool = False,
    candidates: str = "unseen",
    design: str | Design = "fixed",
    budget: int | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    resamples: int = 400,
    rng: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> LabEvaluation:
    """Evaluate a recommender on a data set by a design, beside the exact metrics where known.

    Parameters
    ----------
    dataset, recommender
        One of `datasets.names`, and one of `recommenders.REGISTRY`.
    bundled
        Take the shipped full ranks, and simulate the design on them, instead of training. Items
        are then met in random order: ranks do not tell which items are popular.
    candidates
        ``"unseen"`` leaves a user's training items out, ``"all"`` keeps them as the paper does.
    design, budget, metrics, method, resamples, rng, checkpoint, progress
        As in `unsample.evaluate`; a checkpoint needs a trained recommender.

    ``truth`` of the result has the exact metrics of bundled ranks, and of a trained recommender
    under the fixed design. A warning says where only a part of the data set was found.

    >>> result = evaluate("ml-1m", "ease", bundled=True, metrics="Recall@50", resamples=0)
    >>> result["Recall@50", "naive"].value > 2 * result.truth["Recall@50"]
    True
    """
    check_choice("candidates", candidates, CANDIDATES)
    chosen = as_design(design)
    if method is None and isinstance(chosen, Fixed):
        method = _METHODS
    wanted: dict[str, Any] = {"metrics": metrics, "resamples": resamples, "rng": rng}
    if bundled:
        if checkpoint is not None:
            raise DesignError(
                f"checkpoint must be left out with bundled ranks, got {str(checkpoint)!r}: it "
                "keeps what was scored of a trained recommender"
            )
        known = load_ranks(dataset, recommender, candidates=candidates)
        result = _simulated(known, chosen, budget, method, wanted)
        result = _completed(result, known.ranks, known.items, known.note)
        return _named(result, dataset, recommender, candidates, bundled=True)
    model, split, exclude = _trained(dataset, recommender, candidates, progress)
    wanted |= {"budget": budget, "method": method, "checkpoint": checkpoint, "progress": progress}
    result = _evaluated(model, split, exclude, chosen, wanted)
    if isinstance(chosen, Fixed):
        full = exact_ranks(model, split.targets, items=split.train.items, exclude=exclude)
        result = _completed(result, full.ranks, full.items, split.note)
    else:
        result = replace(result, notes=_notes(result, split.note))
    return _named(result, dataset, recommender, candidates, bundled=False)


def evaluate_together(
    dataset: str,
    recommenders: Sequence[str],
    *,
    bundled: bool = False,
    candidates: str = "unseen",
    design: str | Design = "fixed",
    budget: int | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | None = None,
    resamples: int = 400,
    rng: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate several recommenders on a data set with the same draws, and compare them.

    Parameters are those of `evaluate`; the budget is the total of all recommenders.
    """
    chosen, names = as_design(design), list(recommenders)
    if len(set(names)) < len(names):
        again = next(name for name in names if names.count(name) > 1)
        raise InputError(f"recommenders must each be named once, got {again} twice")
    wanted: dict[str, Any] = {"metrics": metrics, "resamples": resamples, "rng": rng}
    if bundled:
        share = None if budget is None else budget // len(names)
        if method is None and not chosen.certifies:
            method = method_of(chosen)
        options = {"candidates": candidates, "design": chosen, "checkpoint": checkpoint, **wanted}
        found = {
            name: evaluate(dataset, name, bundled=True, budget=share, method=method, **options)
            for name in names
        }
        return answers.compare(found, metrics=metrics, rng=rng)
    trained = {name: _trained(dataset, name, candidates, progress) for name in names}
    _, split, exclude = trained[names[0]]
    wanted |= {"budget": budget, "method": method, "checkpoint": checkpoint, "progress": progress}
    models = {name: model for name, (model, *_) in trained.items()}
    result: Comparison = _evaluated(models, split, exclude, chosen, wanted)
    noted = (f"the data set: {split.note}",) if split.note else ()
    return replace(result, warnings=(*result.warnings, *noted))


def rank_trained(
    dataset: str, recommender: str, *, candidates: str, progress: Progress | None = None
) -> FullRanks:
    """Train a recommender on a data set's published split (or a random one), and rank."""
    model, split, exclude = _trained(dataset, recommender, candidates, progress)
    return exact_ranks(model, split.targets, items=split.train.items, exclude=exclude)


def _evaluated(
    scorer: Recommender | dict[str, Recommender],
    split: Split,
    exclude: scipy.sparse.csr_array | None,
    design: Design,
    wanted: dict[str, Any],
) -> Any:
    """Evaluate one recommender, or several together; the result holds all warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        items = split.train.items
        return answers.evaluate(
            scorer, split.targets, items=items, design=design, exclude=exclude, **wanted
        )


def _trained(
    dataset: str, recommender: str, candidates: str, progress: Progress | None
) -> tuple[Recommender, Split, scipy.sparse.csr_array | None]:
    """Return a fitted recommender, the split it was fitted on, and the pairs to leave out."""
    check_choice("candidates", candidates, CANDIDATES)
    model = create(recommender)
    split = standard_split(dataset, validation=False)
    model.fit_split(split, progress=progress)
    return model, split, split.history().matrix() if candidates == "unseen" else None


def _simulated(
    known: BundledRanks,
    design: Design,
    budget: int | None,
    method: str | Estimator | Iterable[str | Estimator] | None,
    wanted: dict[str, Any],
) -> Evaluation:
    """Return what an evaluation by the design would have found of known ranks."""
    found = design.simulate(
        known.ranks, items=known.items, budget=budget, rng=wanted["rng"], metrics=wanted["metrics"]
    )
    if design.exact:  # as far as the metrics look, and that is all that was asked for
        estimates = answers.exact(known.ranks, items=known.items, **wanted)
    elif design.certifies:
        asked = parse_all(wanted["metrics"])
        estimates = answers.certified_targets(
            found, asked, None, wanted["resamples"], wanted["rng"]
        )
    else:
        method = method_of(found.design) if method is None else method
        estimates = answers.estimate_counts(
            found.counts, method=method, candidates=known.candidates, **wanted
        )
    # Bundled ranks do not name users, but users have the same order for all recommenders.
    users, unknown = np.arange(len(known)), np.full(len(known), -1)
    return Evaluation(
        **_parts(estimates),
        design=found.design,
        users=users,
        targets=unknown,
        ranks=found.lowest,
        highest=np.asarray(found.ranks),
        sampled=np.asarray(found.sampled),
        catalogues=np.asarray(found.items),
        scored=found.scored,
        rng=wanted["rng"],
    )


def _completed(result: Evaluation, ranks: npt.ArrayLike, items: IntArray, note: str) -> Evaluation:
    """Return a result beside the exact metrics of the same targets, if it is not exact itself."""
    if result.design.exact:
        return replace(result, notes=_notes(result, note))
    full = answers.exact(ranks, items=items, metrics=result.metrics, resamples=0)
    truth = {name: estimate.value for name, estimate in full.items()}
    return replace(result, truth=truth, notes=_notes(result, note))


def _named(
    result: Evaluation, dataset: str, recommender: str, candidates: str, *, bundled: bool
) -> LabEvaluation:
    parts = _parts(result) | {"candidates": candidates}
    return LabEvaluation(**parts, dataset=dataset, recommender=recommender, bundled=bundled)


def _parts(result: Estimates) -> dict[str, Any]:
    return {part.name: getattr(result, part.name) for part in fields(result)}


def _notes(result: Estimates, note: str) -> tuple[UnsampleWarning, ...]:
    return (*result.notes, *([UnsampleWarning(f"the data set: {note}")] if note else []))
