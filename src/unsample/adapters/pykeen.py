"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed
from unsample.adapters._lists import Counting
from unsample.adapters._tasks import ModelScores, Task, check_object, require
from unsample.adapters._triples import SIDES, Asked, as_triples, sides_of
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]


def targets(
    evaluator: Any, *, known: Any = None, side: str = "both", ties: str = "random", rng: Seed = 0
) -> Targets:
    """Take the ranks that a sampled evaluator has collected.

    Parameters
    ----------
    evaluator
        A `pykeen.evaluation.SampledRankBasedEvaluator` made with ``clear_on_finalize=False``,
        after ``evaluator.evaluate(...)`` of all its triples.
    known
        Triples (a triples factory, an array of ids, or several of them) beside the evaluated ones
        that are known to be true, as given to the evaluator as ``additional_filter_triples``:
        their entities were not sampled.
    side
        ``"head"``, ``"tail"`` or ``"both"``.
    ties, rng
        As in `unsample.adapters.trec.targets`.
    """
    counting = Counting(ties, rng, filtered=True)
    triples, sides = _evaluated(evaluator), sides_of(side)
    size = len(triples)
    best, worst, candidates = np.hstack([_collected(evaluator, part, size) for part in sides])
    sampled = candidates - 1
    answers, _ = Asked.of(triples, sides).answers(known)
    items = int(evaluator.num_entities) - answers + 1
    crowded = sampled >= items
    if crowded.any():
        row = int(np.argmax(crowded))
        raise DesignError(
            f"negatives must be different entities, got {int(sampled[row])} of the "
            f"{int(items[row] - 1)} that may be sampled for triple {row % size}; PyKEEN repeats "
            "entities where there are too few: use fewer negatives"
        )
    users = np.tile(np.arange(size), len(sides))
    # A triple asks for a head and a tail; these are two targets, each among candidates of its own.
    found = counting.targets(
        best - 1, worst - best, items=items, sampled=sampled, users=users, replacement=False
    )
    return replace(found, items=items)


def task(model: Any, triples: Any, *, known: Any = None, side: str = "both") -> Task:
    """Make a task of a trained model: a user is the question that a triple asks.

    Parameters
    ----------
    model
        A `pykeen.models.Model`.
    triples
        Test triples: a triples factory or an array of ids.
    known, side
        As in `targets`: entities of known triples are left out. Heads are asked for first.
    """
    check_object("model", model, "a model of pykeen", ["predict_h", "predict_t", "num_entities"])
    torch = require("pykeen", "torch")
    tested, sides = as_triples("triples", triples), sides_of(side)
    questions = Asked.of(tested, sides)
    width = int(model.num_entities)

    def scores(asked: IntArray, entities: IntArray | None = None, /) -> npt.NDArray[Any]:
        """Return the scores of these entities, row by row, or of all entities."""
        columns = width if entities is None else entities.shape[1]
        found = np.empty((len(asked), columns), dtype=np.float32)
        for wanted in np.unique(questions.wanted[asked]):
            rows = np.flatnonzero(questions.wanted[asked] == wanted)
            given = np.delete(questions.triples[asked[rows]], wanted, axis=1)
            batch, only = (
                None if ids is None else torch.as_tensor(ids, device=model.device)
                for ids in (given, None if entities is None else entities[rows])
            )
            with torch.inference_mode():
                if wanted == SIDES["head"]:
                    part = model.predict_h(batch, heads=only)
                else:
                    part = model.predict_t(batch, tails=only)
            found[rows] = part.float().cpu().numpy()
        return found

    count, true = questions.answers(known)
    row = np.repeat(np.arange(len(count)), count)
    other = true != questions.targets[row]
    names = [f"{part} of triple {number}" for part in sides for number in range(len(tested))]
    return Task.of_pairs(
        ModelScores(scores, width, scores),
        (np.arange(len(count)), questions.targets),
        (row[other], true[other]),
        (np.array(names), np.arange(width)),
    )


def _evaluated(evaluator: Any) -> IntArray:
    kind = "a SampledRankBasedEvaluator"
    hint = "the ranks of other evaluators hold among all entities already"
    check_object("evaluator", evaluator, kind, ["negative_samples", "ranks"], hint)
    if not evaluator.ranks:
        raise InputError(
            "evaluator must hold ranks, got none; make it with clear_on_finalize=False and call "
            "evaluator.evaluate(model, ...) before"
        )
    return np.array(list(evaluator.triple_to_index), dtype=np.int64)


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
