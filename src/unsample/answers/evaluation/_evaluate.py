"""`evaluate`: a scorer, its targets and a design in; metrics with intervals and their cost out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import BoolArray, FloatArray, IntArray, check_choice, check_integer
from unsample.answers._estimate import DEFAULT_METRICS
from unsample.answers.evaluation._outcome import ADAPTIVE_METHOD, Outcome
from unsample.answers.evaluation._result import Evaluated
from unsample.designs.ranking import (
    LARGEST_ORDER,
    Candidates,
    Progress,
    Scan,
    Tally,
)
from unsample.designs.running._checkpoint import Checkpoint, identity
from unsample.designs.running._designs import Design, as_design
from unsample.designs.running._run import Run
from unsample.designs.running._scorers import Scorer, as_scorer
from unsample.designs.running._targets import as_candidates
from unsample.errors import InputError, ScoreError
from unsample.estimators import Estimator
from unsample.evidence import RankCounts
from unsample.metrics import Metric

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["ADAPTIVE_METHOD", "evaluate", "evaluate_known_ranks"]

#: The tie rules under which ranks are whole numbers.
_TIE_RULES = ("random", "optimistic", "pessimistic")
#: Targets and items of the probe that tells whether a scorer repeats itself.
_PROBE = (16, 32)
#: How far scores of two calls may differ, as a part of their spread, and still be rounding.
_ROUNDING = 1e-3


def evaluate(
    scorer: Any,
    targets: Any,
    *,
    items: int,
    design: str | Design = "adaptive",
    budget: int | None = None,
    exclude: scipy.sparse.sparray | scipy.sparse.spmatrix | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    ties: str = "random",
    weights: npt.ArrayLike | None = None,
    seed: int = 0,
    resamples: int = 400,
    batch: int = 1 << 17,
    workers: int = 1,
    device: str | None = None,
    precision: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate a recommender on the full catalogue at a fraction of the cost, or exactly.

    Parameters
    ----------
    scorer
        A callable ``scores(users, items)`` that scores row i of the matrix ``items`` for
        ``users[i]``; a pair (user factors, item factors) or a `FactorScores`; a
        ``torch.nn.Module`` whose ``forward(users, items)`` takes two equally long vectors of
        ids; a factor model of implicit; or a recommender with ``score`` and ``score_all``.
        Higher is better. Items scored -inf rank below all others, +inf above; NaN is an error.
    targets
        The relevant items: a pair (users, items) of id arrays (a user with several targets comes
        several times), a dict of user -> items, or a sparse users x items matrix.
    items
        Number of items in the catalogue.
    design
        ``"adaptive"``, ``"certified"``, ``"fixed"`` or ``"exact"``; or one with parameters, such
        as ``Adaptive(start=64, cap=6400)``. See the page on designs.
    budget
        Mean number of items to score for a target, instead of the design's parameters.
    exclude
        Sparse users x items matrix of pairs that are no candidates (training data); None keeps
        all items.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Estimator for sampled designs, or several; by default ``"auto"``, under an adaptive design
        ``"mle"`` with 30 iterations.
    ties
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``. Random ties are keyed by the seed.
    weights
        How much each target counts, where they differ.
    seed
        Decides the order in which each target meets items, which is the same for every model,
        batch size and number of workers, and the bootstrap.
    resamples
        Bootstrap samples behind the intervals; 0 for none.
    batch
        Scores asked for in one call, about.
    workers
        Threads that score.
    device, precision
        With ``design="exact"`` and factors: rank on this device of torch (``"cuda"``), with
        factors rounded to ``"float32"``, ``"tf32"`` or ``"bfloat16"``; see `device_ranks`.
    checkpoint
        A file to which the state is written now and then. The same call goes on from there, to
        the same result.
    progress
        Called with targets done and targets in all.

    >>> users, catalogue = np.random.default_rng(0).normal(size=(2, 500, 8))
    >>> result = evaluate((users, catalogue), (np.arange(500), np.arange(500)), items=500,
    ...                   design="certified", metrics="NDCG@10")
    >>> full = evaluate((users, catalogue), (np.arange(500), np.arange(500)), items=500,
    ...                 design="exact", metrics="NDCG@10")
    >>> bool(np.isclose(result["NDCG@10"].value, full["NDCG@10"].value)), result.share < 0.2
    (True, True)
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_ORDER)
    candidates = as_candidates(targets, items, exclude)
    chosen = as_design(design, budget)
    scoring = as_scorer(scorer, items)
    if device is not None and (scoring.factors is None or chosen.name != "exact"):
        raise InputError(
            f"device must be left out unless factors are ranked in full, got {device!r} with "
            f"design={chosen.name!r}; a torch module is asked on the device it is on"
        )
    scan = Scan.prepare(
        scoring.score,
        candidates,
        seed=check_integer("seed", seed, minimum=0, maximum=2**63 - 1),
        replacement=chosen.with_replacement,
    )
    return evaluate_scan(
        scan,
        chosen,
        scorer=scoring,
        metrics=metrics,
        method=method,
        ties=ties,
        weights=weights,
        seed=seed,
        resamples=resamples,
        batch=batch,
        workers=workers,
        device=device,
        precision=precision,
        checkpoint=checkpoint,
        progress=progress,
    )


def evaluate_known_ranks(
    ranks: npt.ArrayLike,
    *,
    items: npt.ArrayLike,
    design: str | Design = "adaptive",
    budget: int | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    said: str | None = None,
    seed: int = 0,
    resamples: int = 400,
) -> Evaluated:
    """Return what a design would make of targets whose full ranks are known already.

    A model is made up that gives each target its rank among its own number of ``items``; the
    design meets its items as it would meet those of any model. ``said`` is whether seen items
    were ``"excluded"`` from the candidates or ``"kept"``.
    """
    counts = RankCounts.from_ranks(
        ranks, items=items, sampled=np.asarray(items) - 1, replacement=False
    )
    better = np.asarray(ranks, dtype=np.int64) - 1
    sizes = np.broadcast_to(np.asarray(items, dtype=np.int64), better.shape)
    # Items are scored by their ids, the smallest best; the target is the last one.
    users = np.arange(len(better))
    candidates = Candidates(users, sizes - 1, counts.largest_catalogue, None)

    def score(asked: IntArray, some: IntArray, /) -> FloatArray:
        return np.where(some == sizes[asked, None] - 1, 0.5 - better[asked, None], -some)

    chosen = as_design(design, budget)
    scan = Scan.prepare(
        score, candidates, seed=seed, replacement=chosen.with_replacement, others=sizes - 1
    )
    return evaluate_scan(
        scan,
        chosen,
        scorer=Scorer(score),
        metrics=metrics,
        method=method,
        said=said,
        seed=seed,
        resamples=resamples,
    )


def evaluate_scan(
    scan: Scan,
    design: Design,
    *,
    scorer: Scorer,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    said: str | None = None,
    ties: str = "random",
    weights: npt.ArrayLike | None = None,
    seed: int = 0,
    resamples: int = 400,
    batch: int = 1 << 17,
    workers: int = 1,
    device: str | None = None,
    precision: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate targets that are prepared already; see `evaluate`."""
    hint = "the mean place among ties ('realistic') is no whole number, which ranks must be here"
    check_choice("ties", ties, _TIE_RULES, hint=hint if ties == "realistic" else "")
    wanted = _metrics.parse_all(metrics)
    design = design.fit_to(wanted, scan.others)
    probe = _probed(scan)
    place = None
    if checkpoint is not None:
        place = Checkpoint(Path(checkpoint), _identity(scan, design, ties, seed), probe)
    run = Run(
        scan,
        design,
        scorer,
        ties,
        check_integer("batch", batch, minimum=1),
        check_integer("workers", workers, minimum=1),
        device,
        precision,
        place,
        progress,
    )
    state = run.finish()
    outcome = Outcome.read(run, state.tally)
    # Without a list of seen items it is not known whether there were any to leave out.
    if scan.candidates.exclude is not None:
        said = "unseen"
    estimates = outcome.estimates(
        wanted, method, weights, candidates=said, resamples=resamples, rng=seed
    )
    return Evaluated(
        estimates,
        design,
        scan.candidates.users,
        scan.candidates.targets,
        outcome.low,
        outcome.high,
        outcome.sampled,
        scan.others + 1,
        state.tally.scored,
        state.asked + 2 * probe.size,
        seed,
        None if weights is None else np.asarray(weights, dtype=np.float64),
        (*estimates.warnings, *_infinity_notes(state.tally, scan.candidates.users)),
    )


def _probed(scan: Scan) -> FloatArray:
    """Ask for a few scores twice, and refuse a scorer that contradicts itself."""
    first, second = (np.asarray(scan.probe(*_PROBE), dtype=np.float64) for _ in range(2))
    finite = np.isfinite(first) & np.isfinite(second)
    spread = float(np.ptp(first[finite])) if finite.any() else 0.0
    with np.errstate(invalid="ignore"):
        moved = (first != second) & ~(np.abs(first - second) <= _ROUNDING * spread)
    if moved.any():
        row, column = np.argwhere(moved)[0]
        raise ScoreError(
            f"scores must be the same when asked for again, got {int(moved.sum())} of "
            f"{moved.size} that are not, the first {first[row, column]:.6g} and then "
            f"{second[row, column]:.6g}; fix the seed of what is random in the model, or switch "
            "it off (dropout: model.eval())"
        )
    return first


def _identity(scan: Scan, design: Design, ties: str, seed: int) -> str:
    arrays: dict[str, npt.NDArray[Any]] = {
        "users": scan.candidates.users,
        "targets": scan.candidates.targets,
        "others": scan.others,
    }
    if scan.candidates.exclude is not None:
        arrays |= {
            "starts": scan.candidates.exclude.indptr,
            "exclude": scan.candidates.exclude.indices,
        }
    parameters = asdict(design)
    if design.exact:
        del parameters["budget"]  # more of it goes on where less ended
    settings = {"design": design.name, **parameters, "ties": ties, "seed": seed}
    return identity({**settings, "items": scan.candidates.items}, arrays)


def _infinity_notes(tally: Tally, users: IntArray) -> tuple[str, ...]:
    met: BoolArray = tally.infinite > 0
    if not met.any():
        return ()
    text = (
        f"{int(tally.infinite.sum())} scores were infinite, the first for user "
        f"{int(users[np.argmax(met)])}: such items rank above (+inf) or below (-inf) all others"
    )
    return (text,)
