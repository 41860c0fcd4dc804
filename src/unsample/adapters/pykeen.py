"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_choice
from unsample.adapters._lists import whole_tie_rule
from unsample.adapters._pairs import seen_matrix
from unsample.adapters._protocol import ModelScores, Task
from unsample.adapters._registry import REGISTRY
from unsample.counts import Targets
from unsample.errors import DesignError, InputError
from unsample.ties import rank_with_ties

__all__ = ["SIDES", "targets", "task"]

#: What is looked for, and the column of a triple in which it stands.
SIDES = {"head": 0, "tail": 2}


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
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first.
    """
    triples = _evaluated(evaluator)
    rule = whole_tie_rule(ties)
    sides = _sides(side)
    best, worst, options = (
        np.concatenate([_collected(part, one, len(triples)) for one in sides])
        for part in (
            {one: evaluator.ranks.get((one, "optimistic")) for one in sides},
            {one: evaluator.ranks.get((one, "pessimistic")) for one in sides},
            evaluator.num_candidates,
        )
    )
    everything = np.vstack([triples, *_triples("known", known)])
    true = [_answers(triples, everything, SIDES[one])[0] for one in sides]
    items = int(evaluator.num_entities) - np.concatenate(true) + 1
    sampled = options - 1
    if (sampled > items - 1).any():
        row = int(np.argmax(sampled > items - 1))
        raise DesignError(
            f"negatives must be different entities, got {int(sampled[row])} of the "
            f"{int(items[row]) - 1} that may be sampled for triple {row % len(triples)}; PyKEEN "
            "repeats entities where there are too few: use fewer negatives"
        )
    return Targets(
        ranks=np.asarray(rank_with_ties(best - 1, worst - best, rule, as_rng(rng)), dtype=np.int64),
        items=items,
        sampled=sampled,
        users=np.tile(np.arange(len(triples)), len(sides)),
        replacement=False,
    )


def task(model: Any, triples: Any, *, known: Any = None, side: str = "both") -> Task:
    """Make a task of a trained model: a user is the question that a triple asks.

    Parameters
    ----------
    model
        A `pykeen.models.Model`.
    triples
        Test triples: a triples factory or an array of ids.
    known
        Other true triples (training, validation), whose entities are no candidates; test triples
        always count as known.
    side
        ``"head"``, ``"tail"`` or ``"both"``: then heads are asked for first.
    """
    if not callable(getattr(model, "predict_t", None)) or not hasattr(model, "num_entities"):
        raise InputError(f"model must be a model of pykeen, got {type(model).__name__}")
    (asked,) = _triples("triples", triples, exactly_one=True)
    sides = _sides(side)
    everything = np.vstack([asked, *_triples("known", known)])
    entities = int(model.num_entities)
    questions = np.concatenate(
        [np.arange(len(asked)) + part * len(asked) for part in range(len(sides))]
    )
    answers = np.concatenate([asked[:, SIDES[one]] for one in sides])
    pairs = []
    for part, one in enumerate(sides):
        count, found = _answers(asked, everything, SIDES[one])
        row = np.repeat(np.arange(len(asked)), count)
        other = found != asked[row, SIDES[one]]
        pairs.append(np.stack([row[other] + part * len(asked), found[other]]))
    scores = _LinkScores(model, asked, sides)
    return Task(
        scorer=ModelScores(scores.everything, entities, scores.chosen),
        targets=(questions, answers),
        items=entities,
        seen=seen_matrix(*np.hstack(pairs), shape=(len(questions), entities)),
        user_ids=np.array([f"{one} of triple {row}" for one in sides for row in range(len(asked))]),
        item_ids=np.arange(entities),
    )


@dataclass(frozen=True, eq=False)
class _LinkScores:
    """Scores of entities for questions: those of the first side first, then those of the next."""

    model: Any
    triples: IntArray
    sides: tuple[str, ...]

    def everything(self, questions: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all entities."""
        return self._ask(questions, None)

    def chosen(self, questions: IntArray, entities: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of these entities."""
        return self._ask(questions, entities)

    def _ask(self, questions: IntArray, entities: IntArray | None) -> npt.NDArray[Any]:
        torch = REGISTRY["pykeen"].require("torch")
        width = int(self.model.num_entities) if entities is None else entities.shape[1]
        scores = np.empty((len(questions), width), dtype=np.float32)
        for place, side in enumerate(self.sides):
            rows = np.flatnonzero(questions // len(self.triples) == place)
            if not len(rows):
                continue
            given = np.delete(
                self.triples[questions[rows] % len(self.triples)], SIDES[side], axis=1
            )
            options = {}
            if entities is not None:
                options = {f"{side}s": torch.as_tensor(entities[rows], device=self.model.device)}
            predict = self.model.predict_h if side == "head" else self.model.predict_t
            with torch.inference_mode():
                found = predict(torch.as_tensor(given, device=self.model.device), **options)
            scores[rows] = found.float().cpu().numpy()
        return scores


def _sides(side: str) -> tuple[str, ...]:
    check_choice("side", side, (*SIDES, "both"))
    return tuple(SIDES) if side == "both" else (side,)


def _evaluated(evaluator: Any) -> IntArray:
    if not hasattr(evaluator, "negative_samples") or not hasattr(evaluator, "ranks"):
        raise InputError(
            f"evaluator must be a SampledRankBasedEvaluator, got {type(evaluator).__name__}; the "
            "ranks of other evaluators hold among all entities already"
        )
    if not evaluator.ranks:
        raise InputError(
            "evaluator must hold ranks, got none; make it with clear_on_finalize=False and call "
            "evaluator.evaluate(model, ...) before"
        )
    return np.array(list(evaluator.triple_to_index), dtype=np.int64)


def _collected(batches: Any, side: str, size: int) -> IntArray:
    found = batches.get(side)
    if not found:
        raise InputError(f"side must be one that was evaluated, got {side!r}")
    ranks = np.concatenate(found)
    if len(ranks) != size:
        raise InputError(
            f"evaluator must have ranked each of its {size} triples once, got {len(ranks)} ranks "
            f"for side {side!r}; call evaluator.clear() and evaluate all of them"
        )
    return ranks.astype(np.int64)


def _triples(name: str, given: Any, *, exactly_one: bool = False) -> list[IntArray]:
    """Return arrays of triples from a factory, an array, or several of either."""
    if given is None and not exactly_one:
        return []
    several = isinstance(given, list | tuple) and not exactly_one
    return [_as_triples(name, one) for one in (given if several else [given])]


def _as_triples(name: str, given: Any) -> IntArray:
    array = np.asarray(getattr(given, "mapped_triples", given))
    if array.ndim != 2 or array.shape[1] != 3 or not np.issubdtype(array.dtype, np.integer):
        got = f"an array of shape {array.shape}" if array.ndim else type(given).__name__
        raise InputError(
            f"{name} must be a triples factory or an integer array with three columns, got {got}"
        )
    return array.astype(np.int64)


def _answers(asked: IntArray, everything: IntArray, column: int) -> tuple[IntArray, IntArray]:
    """Return how many entities answer each question truly, and all of them one after the other."""
    true = np.unique(everything, axis=0)
    keys, size = np.delete(true, column, axis=1), int(everything.max()) + 1
    codes = keys[:, 0] * size + keys[:, 1]
    order = np.argsort(codes, kind="stable")
    question = np.delete(asked, column, axis=1)
    wanted = question[:, 0] * size + question[:, 1]
    start, stop = (np.searchsorted(codes[order], wanted, side=side) for side in ("left", "right"))
    count = stop - start
    place = np.arange(count.sum()) + np.repeat(start - np.cumsum(count) + count, count)
    return count, true[order[place], column]
