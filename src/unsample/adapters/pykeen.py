"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).

An evaluator may be given negatives (``head_negatives``, ``tail_negatives``) that were drawn by
relation: among entities of its domain or range. Of all others such ranks tell nothing. They are
recognised, and refused unless `targets` is told ``among`` which entities they were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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

#: Lists of one relation that share more entities than lists drawn uniformly among all, by so many
#: standard errors, were drawn otherwise.
_TOO_ALIKE = 6.0


def targets(
    evaluator: Any,
    *,
    known: Any = None,
    side: str = "both",
    among: Mapping[str, Any] | None = None,
    ties: str = "random",
    rng: Seed = 0,
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
    among
        Where negatives were drawn by relation: for each side a matrix of relations x entities that
        is true for those that could be drawn, as `unsample.adapters.graphs.domains` makes them. The
        catalogue of a question is then its answer and these entities, and so are metrics: nothing
        is known of entities that could not be drawn.
    ties, rng
        As in `unsample.adapters.trec.targets`.
    """
    counting = Counting(ties, rng, filtered=True)
    triples, sides = _evaluated(evaluator), sides_of(side)
    size = len(triples)
    best, worst, candidates = np.hstack([_collected(evaluator, part, size) for part in sides])
    sampled = candidates - 1
    asked = Asked.of(triples, sides)
    answers, true = asked.answers(known)
    if among is None:
        items = int(evaluator.num_entities) - answers + 1
        _refuse_by_relation(evaluator, asked, items)
    else:
        items = _possible(evaluator, asked, answers, true, among)
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

    names = [f"{part} of triple {number}" for part in sides for number in range(len(tested))]
    return Task.of_pairs(
        ModelScores(scores, width, scores),
        (np.arange(len(names)), questions.targets),
        questions.others(known),
        (np.array(names), np.arange(width)),
    )


def _negatives(evaluator: Any, side: str) -> IntArray:
    """Return the negatives of each triple, a row each."""
    return np.asarray(evaluator.negative_samples[side].cpu(), dtype=np.int64)


def _refuse_by_relation(evaluator: Any, asked: Asked, items: IntArray) -> None:
    """Refuse negatives that lists of one relation share too often to be drawn among all entities.

    Two uniform lists of n among N share n^2/N entities on average, and pairs of lists do so nearly
    independently: the number of all coincidences varies as a count does.
    """
    size, entities = len(asked.wanted) // len(asked.sides), int(evaluator.num_entities)
    relation, excess, expected = asked.triples[:size, 1], 0.0, 0.0
    lists = np.bincount(relation)
    for number, side in enumerate(asked.sides):
        drawn = _negatives(evaluator, side)
        codes = relation[:, None] * entities + drawn
        times = np.unique(codes, return_counts=True)[1].astype(np.float64)
        # Within a list entities differ, but where there are too few, which is refused later.
        own = np.unique(codes + np.arange(size)[:, None] * entities * len(lists)).size
        # Two lists share most where their candidates are the same.
        others = items[number * size : (number + 1) * size] - 1.0
        usual = drawn.shape[1] ** 2 / 2.0 * float(((lists[relation] - 1.0) / others).sum())
        excess += float((times**2).sum() - own) / 2.0 - usual
        expected += usual
    if excess > _TOO_ALIKE * math.sqrt(max(expected, 1.0)):
        ratio = 1.0 + excess / max(expected, 1e-300)
        raise DesignError(
            "negatives must be drawn among all entities, got lists of one relation that share "
            f"{ratio:,.1f} times as many as they would: they were drawn by relation, and tell "
            "nothing of other entities; say among which entities with among=, or use task(...)"
        )


def _possible(
    evaluator: Any, asked: Asked, answers: IntArray, true: IntArray, among: Mapping[str, Any]
) -> IntArray:
    """Return how many entities could be drawn for each question, and its answer."""
    size, found = len(asked.wanted) // len(asked.sides), []
    ends = np.concatenate([[0], np.cumsum(answers)])
    for number, side in enumerate(asked.sides):
        if side not in among:
            raise InputError(f"among must have a matrix for each side, got none for {side!r}")
        given = among[side]
        pools = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=bool)
        relation = asked.triples[:size, 1]
        shape = (int(relation.max()) + 1, int(evaluator.num_entities))
        if pools.ndim != 2 or pools.shape[0] < shape[0] or pools.shape[1] != shape[1]:
            raise InputError(
                f"among must have a row for each of {shape[0]} relations and a column for each of "
                f"{shape[1]} entities, got shape {pools.shape} for {side!r}"
            )
        drawn = _negatives(evaluator, side)
        outside = ~pools[relation[:, None], drawn]
        if outside.any():
            row = int(np.argmax(outside.any(axis=1)))
            raise InputError(
                "among must hold all entities that were drawn, got a negative outside for "
                f"{side!r} of triple {row}: entity {int(drawn[row][outside[row]][0])}"
            )
        whose = np.repeat(np.arange(size), answers[number * size : (number + 1) * size])
        first, last = ends[number * size], ends[(number + 1) * size]
        taken = pools[relation[whose], true[first:last]]
        left = pools.sum(axis=1)[relation] - np.bincount(whose, taken, minlength=size)
        found.append(left.astype(np.int64) + 1)
    return np.concatenate(found)


def _evaluated(evaluator: Any) -> IntArray:
    kind = "a SampledRankBasedEvaluator"
    hint = "the ranks of other evaluators hold among all entities already"
    check_object("evaluator", evaluator, kind, ["negative_samples", "ranks"], hint)
    if not evaluator.ranks and type(evaluator).__name__ == "OGBEvaluator":
        raise InputError(
            "evaluator must keep ranks, got an OGBEvaluator, which hands scores to OGB and keeps "
            "none; use a SampledRankBasedEvaluator, or adapters.ogb with the scores"
        )
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
