"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, check_choice
from unsample.adapters._lists import Counting
from unsample.adapters._tasks import ModelScores, Task, require
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets

__all__ = ["targets", "task"]

#: What is looked for, and the column of a triple in which it stands.
_SIDES = {"head": 0, "tail": 2}


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
    counting = Counting(ties, rng, each="target")
    questions = _Questions.ask(_evaluated(evaluator), side)
    size, sides = len(questions.triples), questions.sides
    best, worst = (
        _collected(evaluator.ranks, [(side, kind) for side in sides], size)
        for kind in ("optimistic", "pessimistic")
    )
    sampled = _collected(evaluator.num_candidates, sides, size) - 1
    answers, _ = questions.answers(known)
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
    return counting.targets(
        best - 1, worst - best, items=items, sampled=sampled, users=users, replacement=False
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
    questions = _Questions.ask(_as_triples("triples", triples), side)
    count, found = questions.answers(known)
    row = np.repeat(np.arange(len(count)), count)
    other = found != questions.targets[row]
    scores = _LinkScores(model, questions)
    return Task.of_pairs(
        ModelScores(scores, int(model.num_entities), scores),
        (np.arange(len(count)), questions.targets),
        (row[other], found[other]),
        user_ids=questions.names,
        item_ids=np.arange(int(model.num_entities)),
    )


@dataclass(frozen=True, eq=False)
class _Questions:
    """What triples ask: for each of the first side, then for each of the next."""

    triples: IntArray
    sides: tuple[str, ...]

    @classmethod
    def ask(cls, triples: IntArray, side: str) -> _Questions:
        check_choice("side", side, (*_SIDES, "both"))
        return cls(triples, tuple(_SIDES) if side == "both" else (side,))

    @property
    def targets(self) -> IntArray:
        """Return the entity that each question asks for."""
        return np.concatenate([self.triples[:, _SIDES[side]] for side in self.sides])

    @property
    def names(self) -> npt.NDArray[Any]:
        """Return what each question is called."""
        rows = range(len(self.triples))
        return np.array([f"{side} of triple {row}" for side in self.sides for row in rows])

    def answers(self, known: Any) -> tuple[IntArray, IntArray]:
        """Return how many entities are true answers to each question, and all of these in turn."""
        several = known if isinstance(known, list | tuple) else [] if known is None else [known]
        others = [_as_triples("known", given) for given in several]
        true = np.unique(np.vstack([self.triples, *others]), axis=0)
        parts = [_answers(self.triples, true, _SIDES[side]) for side in self.sides]
        counts, found = (np.concatenate(column) for column in zip(*parts, strict=True))
        return counts, found


@dataclass(frozen=True, eq=False)
class _LinkScores:
    """Scores of entities as answers to questions."""

    model: Any
    questions: _Questions

    def __call__(self, asked: IntArray, entities: IntArray | None = None, /) -> npt.NDArray[Any]:
        """Return the scores of these entities, row by row, or of all entities."""
        width = int(self.model.num_entities) if entities is None else entities.shape[1]
        scores = np.empty((len(asked), width), dtype=np.float32)
        part, triple = np.divmod(asked, len(self.questions.triples))
        for place, side in enumerate(self.questions.sides):
            rows = np.flatnonzero(part == place)
            if len(rows):
                given = np.delete(self.questions.triples[triple[rows]], _SIDES[side], axis=1)
                wanted = None if entities is None else entities[rows]
                scores[rows] = self._predict(side, given, wanted)
        return scores

    def _predict(self, side: str, given: IntArray, wanted: IntArray | None) -> npt.NDArray[Any]:
        torch = require("pykeen", "torch")
        batch, only = (
            None if ids is None else torch.as_tensor(ids, device=self.model.device)
            for ids in (given, wanted)
        )
        with torch.inference_mode():
            if side == "head":
                scores = self.model.predict_h(batch, heads=only)
            else:
                scores = self.model.predict_t(batch, tails=only)
        return np.asarray(scores.float().cpu().numpy())


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


def _collected(batches: Any, keys: Iterable[Any], size: int) -> IntArray:
    """Return what an evaluator collected under these keys, one after the other."""
    parts = []
    for key in keys:
        part = np.concatenate(batches.get(key) or [np.zeros(0)])
        if len(part) != size:
            side = key if isinstance(key, str) else key[0]
            raise InputError(
                f"evaluator must have ranked each of its {size} triples once, got {len(part)} "
                f"ranks for side {side!r}; evaluate all of them, on that side too"
            )
        parts.append(part)
    return np.concatenate(parts).astype(np.int64)


def _as_triples(name: str, given: Any) -> IntArray:
    array = np.asarray(getattr(given, "mapped_triples", given))
    if array.ndim != 2 or array.shape[1] != 3 or not np.issubdtype(array.dtype, np.integer):
        got = f"an array of shape {array.shape}" if array.ndim else type(given).__name__
        raise InputError(
            f"{name} must be a triples factory or an integer array with three columns, got {got}"
        )
    return array.astype(np.int64)


def _answers(asked: IntArray, true: IntArray, column: int) -> tuple[IntArray, IntArray]:
    """Return how many entities answer each question truly, and all of them one after the other."""
    size = int(true.max()) + 1
    known, wanted = (
        pairs[:, 0] * size + pairs[:, 1]
        for pairs in (np.delete(true, column, axis=1), np.delete(asked, column, axis=1))
    )
    order = np.argsort(known, kind="stable")
    start, stop = (np.searchsorted(known[order], wanted, side=side) for side in ("left", "right"))
    count = stop - start
    place = np.arange(count.sum()) + np.repeat(start - np.cumsum(count) + count, count)
    return count, true[order[place], column]
