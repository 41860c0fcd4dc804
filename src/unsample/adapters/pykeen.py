"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample._checks import BoolArray, IntArray, Seed, check_choice, warn
from unsample.adapters._install import check_object
from unsample.counts import Targets, check_ties, rank_with_ties
from unsample.errors import DesignError, InputError

__all__ = ["targets"]

#: What is looked for, and the column of a triple in which it stands; heads come first.
_COLUMNS = {"head": 0, "tail": 2}


def targets(
    evaluator: Any, *, known: Any = None, side: str = "both", ties: str = "random", rng: Seed = 0
) -> Targets:
    """Take the ranks that a sampled evaluator has collected.

    Questions for which PyKEEN repeated entities, because it was to sample more than there are, are
    left out with a warning.

    Parameters
    ----------
    evaluator
        A `pykeen.evaluation.SampledRankBasedEvaluator` made with ``clear_on_finalize=False``,
        after ``evaluator.evaluate(...)`` of all its triples. Its negatives must have been drawn
        among all entities.
    known
        Triples (a triples factory, an array of ids, or several of them) beside the evaluated ones
        that are known to be true, as given to the evaluator as ``additional_filter_triples``:
        their entities were not sampled.
    side
        ``"head"``, ``"tail"`` or ``"both"``.
    ties, rng
        As in `unsample.adapters.trec.targets`.

    Returns
    -------
    Targets
        The ranks, with the number of sampled items and of candidates of each target.

    Raises
    ------
    InputError
        If the evaluator is of another kind or has kept no ranks, or ``known`` are no triples.
    DesignError
        If every question had fewer entities to sample than were asked for.
    """
    rule = check_ties(ties, whole=True)
    check_choice("side", side, (*_COLUMNS, "both"))
    check_object("evaluator", evaluator, "a SampledRankBasedEvaluator", "negative_samples", "ranks")
    if not evaluator.ranks:
        raise InputError(
            "evaluator must hold ranks, got none; make it with clear_on_finalize=False and call "
            "evaluator.evaluate(model, ...) before"
        )
    sides = tuple(_COLUMNS) if side == "both" else (side,)
    triples = np.array(list(evaluator.triple_to_index), dtype=np.int64)
    true = np.unique(np.vstack([triples, *_known_triples(known)]), axis=0)
    answers = np.concatenate([_answers(triples, true, column=_COLUMNS[name]) for name in sides])
    collected = [_collected(evaluator, name, size=len(triples)) for name in sides]
    best, worst, candidates = np.hstack(collected)
    items = int(evaluator.num_entities) - answers + 1
    ranks = rank_with_ties(best - 1, worst - best, ties=rule, rng=rng).astype(np.int64)
    # A triple asks for a head and a tail; these are two targets, each among candidates of its own.
    users = np.tile(np.arange(len(triples)), len(sides))
    kept = _without_repeats(candidates, items)
    return Targets(
        ranks[kept],
        items[kept],
        sampled=candidates[kept] - 1,
        users=users[kept],
        replacement=False,
        filtered=True,
    )


def _without_repeats(candidates: IntArray, items: IntArray) -> BoolArray:
    """Return which questions have as many different candidates as PyKEEN has ranked.

    Where fewer entities may be sampled than were asked for, PyKEEN repeats some. Such ranks are
    left out with a warning, and refused if there are no others.
    """
    kept = candidates <= items
    dense = int(np.count_nonzero(~kept))
    if not dense:
        return kept
    sampled = int(candidates.max()) - 1
    fewest = int(items.min()) - 1
    if dense == len(kept):
        raise DesignError(
            f"negatives must be different entities, got {sampled}, more than may be sampled for "
            f"any question: PyKEEN repeats entities then; use {fewest} at most"
        )
    warn(
        f"{dense:,} of {len(kept):,} questions are left out, for PyKEEN repeated entities there: "
        f"it drew {sampled}, and fewer may be sampled. Numbers are of the other questions; to have "
        f"all of them, draw {fewest} entities at most"
    )
    return kept


def _answers(triples: IntArray, true: IntArray, *, column: int) -> IntArray:
    """Return how many entities answer the question of each triple, its own included.

    Entities 5 and 6 both answer the question (0, 1, ?):

    >>> true = np.array([[0, 1, 5], [0, 1, 6], [2, 1, 5]])
    >>> _answers(true[:1], true, column=2), _answers(true[:1], true, column=0)
    (array([2]), array([2]))
    """
    questions = np.delete(np.vstack([triples, true]), column, axis=1)
    _, number = np.unique(questions, axis=0, return_inverse=True)
    asked, answered = np.split(number.reshape(-1), [len(triples)])
    return np.bincount(answered)[asked]


def _collected(evaluator: Any, side: str, *, size: int) -> IntArray:
    """Return rows of best ranks, of worst ranks, and of numbers of candidates."""
    batches = [
        evaluator.ranks.get((side, "optimistic")),
        evaluator.ranks.get((side, "pessimistic")),
        evaluator.num_candidates.get(side),
    ]
    columns = [np.concatenate(batch or [[]]) for batch in batches]
    if len(columns[0]) != size:
        raise InputError(
            f"evaluator must have ranked each of its {size} triples once, got {len(columns[0])} "
            f"ranks for side {side!r}; evaluate all of them, on that side too"
        )
    return np.stack(columns).astype(np.int64)


def _known_triples(known: Any) -> list[IntArray]:
    """Return the triples of all that was given as known."""
    if known is None:
        return []
    several = known if isinstance(known, list | tuple) else [known]
    return [_as_triples(triples) for triples in several]


def _as_triples(known: Any) -> IntArray:
    """Return triples of ids as an array, from a triples factory too."""
    array = np.asarray(getattr(known, "mapped_triples", known))
    if array.ndim != 2 or array.shape[1] != 3 or not np.issubdtype(array.dtype, np.integer):
        got = f"an array of shape {array.shape}" if array.ndim else type(known).__name__
        raise InputError(
            f"known must be a triples factory or an integer array with three columns, got {got}"
        )
    return array.astype(np.int64)
