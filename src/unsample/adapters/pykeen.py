"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample._checks import IntArray, Seed, check_choice
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
    several = known if isinstance(known, list | tuple) else [] if known is None else [known]
    true = np.unique(np.vstack([triples, *map(_as_triples, several)]), axis=0)
    answers = np.concatenate([_answers(triples, true, _COLUMNS[each]) for each in sides])
    collected = [_collected(evaluator, each, len(triples)) for each in sides]
    best, worst, candidates = np.hstack(collected)
    items = int(evaluator.num_entities) - answers + 1
    if (candidates > items).any():
        raise DesignError(
            f"negatives must be different entities, got {int(candidates.max()) - 1}, more than may "
            "be sampled for a triple: PyKEEN repeats entities then; use fewer"
        )
    ranks = rank_with_ties(best - 1, worst - best, rule, rng).astype(np.int64)
    # A triple asks for a head and a tail; these are two targets, each among candidates of its own.
    users = np.tile(np.arange(len(triples)), len(sides))
    return Targets(ranks, items, candidates - 1, users=users, replacement=False, filtered=True)


def _answers(triples: IntArray, true: IntArray, column: int) -> IntArray:
    """Return how many entities answer the question of each triple, its own included."""
    questions = np.delete(np.vstack([triples, true]), column, axis=1)
    _, number = np.unique(questions, axis=0, return_inverse=True)
    asked, answered = np.split(number.reshape(-1), [len(triples)])
    return np.bincount(answered)[asked]


def _collected(evaluator: Any, side: str, size: int) -> IntArray:
    """Return rows of best ranks, of worst ranks, and of numbers of candidates."""
    ranks = evaluator.ranks
    batches = ranks.get((side, "optimistic")), ranks.get((side, "pessimistic"))
    columns = [np.concatenate(b or [[]]) for b in (*batches, evaluator.num_candidates.get(side))]
    if len(columns[0]) != size:
        raise InputError(
            f"evaluator must have ranked each of its {size} triples once, got {len(columns[0])} "
            f"ranks for side {side!r}; evaluate all of them, on that side too"
        )
    return np.stack(columns).astype(np.int64)


def _as_triples(known: Any) -> IntArray:
    """Return triples of ids as an array, from a triples factory too."""
    array = np.asarray(getattr(known, "mapped_triples", known))
    if array.ndim != 2 or array.shape[1] != 3 or not np.issubdtype(array.dtype, np.integer):
        got = f"an array of shape {array.shape}" if array.ndim else type(known).__name__
        raise InputError(
            f"known must be a triples factory or an integer array with three columns, got {got}"
        )
    return array.astype(np.int64)
