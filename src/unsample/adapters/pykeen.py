"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).

An evaluator may be given negatives (``head_negatives``, ``tail_negatives``) that were drawn by
relation: among entities of its domain or range. Of all others such ranks tell nothing, so they are
recognised and refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_choice
from unsample.adapters._tasks import Pairs, Task, check_object, require
from unsample.designs import Scorer
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets, check_ties, rank_with_ties

__all__ = ["targets", "task"]

#: What is looked for, and the column of a triple in which it stands.
_COLUMNS = {"head": 0, "tail": 2}
#: Lists of one relation that share more entities than lists drawn uniformly among all, by so many
#: standard errors, were drawn otherwise.
_TOO_ALIKE = 6.0


def targets(
    evaluator: Any,
    *,
    known: Any = None,
    side: str = "both",
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
    ties, rng
        As in `unsample.adapters.trec.targets`.
    """
    rule = check_ties(ties, whole=True)
    triples, sides = _evaluated(evaluator), _sides(side)
    size = len(triples)
    best, worst, candidates = np.hstack([_collected(evaluator, part, size) for part in sides])
    asked = _Questions.of(triples, sides)
    true, _ = asked.answers(known)
    items = int(evaluator.num_entities) - np.bincount(true) + 1
    _refuse_by_relation(
        evaluator, triples[:, 1], dict(zip(sides, np.split(items, len(sides)), strict=True))
    )
    sampled = candidates - 1
    crowded = sampled >= items
    if crowded.any():
        row = int(np.argmax(crowded))
        raise DesignError(
            f"negatives must be different entities, got {int(sampled[row])} of the "
            f"{int(items[row] - 1)} that may be sampled for triple {row % size}; PyKEEN repeats "
            "entities where there are too few: use fewer negatives"
        )
    ranks = rank_with_ties(best - 1, worst - best, rule, as_rng(rng)).astype(np.int64)
    # A triple asks for a head and a tail; these are two targets, each among candidates of its own.
    users = np.tile(np.arange(size), len(sides))
    return Targets(ranks, items, sampled, users=users, replacement=False, filtered=True)


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
    questions = _Questions.of(_as_triples("triples", triples), _sides(side))
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
                if wanted == _COLUMNS["head"]:
                    part = model.predict_h(batch, heads=only)
                else:
                    part = model.predict_t(batch, tails=only)
            found[rows] = part.float().cpu().numpy()
        return found

    question, answer = questions.answers(known)
    other = answer != questions.targets[question]
    return Task.of_pairs(
        Scorer(scores, scores),
        (np.arange(len(questions.wanted)), questions.targets),
        (question[other], answer[other]),
        (len(questions.wanted), width),
    )


@dataclass(frozen=True, eq=False)
class _Questions:
    """What triples ask: a triple for each question, and the column that is wanted."""

    triples: IntArray
    wanted: IntArray

    @classmethod
    def of(cls, triples: IntArray, sides: tuple[str, ...]) -> _Questions:
        """Ask for the first side of every triple, then for the next side."""
        wanted = np.repeat([_COLUMNS[side] for side in sides], len(triples))
        return cls(np.tile(triples, (len(sides), 1)), wanted)

    @property
    def targets(self) -> IntArray:
        """Return the entity that each question asks for."""
        return np.asarray(self.triples[np.arange(len(self.wanted)), self.wanted])

    def answers(self, known: Any) -> Pairs:
        """Return each question with each entity that is a true answer to it, its own included."""
        several = known if isinstance(known, list | tuple) else [] if known is None else [known]
        others = [_as_triples("known", given) for given in several]
        sides = tuple(side for side, column in _COLUMNS.items() if column in self.wanted)
        true = _Questions.of(np.unique(np.vstack([self.triples, *others]), axis=0), sides)
        size = int(true.triples.max()) + 1
        listed, asked = true.codes(size), self.codes(size)
        order = np.argsort(listed, kind="stable")
        start, stop = (
            np.searchsorted(listed, asked, side=end, sorter=order) for end in ("left", "right")
        )
        count = stop - start
        place = np.arange(count.sum()) + np.repeat(start - np.cumsum(count) + count, count)
        return np.repeat(np.arange(len(count)), count), true.targets[order[place]]

    def codes(self, size: int) -> IntArray:
        """Return a number for each question: what is wanted, the relation, the other entity."""
        other = self.triples[np.arange(len(self.wanted)), 2 - self.wanted]
        return np.asarray((other * size + self.triples[:, 1]) * 3 + self.wanted)


def _refuse_by_relation(evaluator: Any, relation: IntArray, items: dict[str, IntArray]) -> None:
    """Refuse negatives that lists of one relation share too often to be drawn among all entities.

    Two uniform lists of n among N share n^2/N entities on average, and pairs of lists do so nearly
    independently: the number of all coincidences varies as a count does. ``items`` has N of each
    triple by side; two lists share most where their candidates are the same.
    """
    size, lists = len(relation), np.bincount(relation)
    entities, excess, expected = int(evaluator.num_entities), 0.0, 0.0
    for side, candidates in items.items():
        drawn = np.asarray(evaluator.negative_samples[side].cpu(), dtype=np.int64)
        codes = relation[:, None] * entities + drawn
        times = np.unique(codes, return_counts=True)[1].astype(np.float64)
        # Within a list entities differ, but where there are too few, which is refused later.
        own = np.unique(codes + np.arange(size)[:, None] * entities * len(lists)).size
        pairs = ((lists[relation] - 1.0) / (candidates - 1.0)).sum() / 2.0
        usual = drawn.shape[1] ** 2 * float(pairs)
        excess += float((times**2).sum() - own) / 2.0 - usual
        expected += usual
    if excess > _TOO_ALIKE * math.sqrt(max(expected, 1.0)):
        ratio = 1.0 + excess / max(expected, 1e-300)
        raise DesignError(
            "negatives must be drawn among all entities, got lists of one relation that share "
            f"{ratio:,.1f} times as many as they would: they were drawn by relation, and tell "
            "nothing of other entities; use unsample.adapters.pykeen.task(...)"
        )


def _evaluated(evaluator: Any) -> IntArray:
    """Return the triples of an evaluator that keeps ranks."""
    kind = "a SampledRankBasedEvaluator"
    hint = "the ranks of other evaluators hold among all entities already"
    check_object("evaluator", evaluator, kind, ["negative_samples", "ranks"], hint)
    if not evaluator.ranks and type(evaluator).__name__ == "OGBEvaluator":
        raise InputError(
            "evaluator must keep ranks, got an OGBEvaluator, which hands scores to OGB and keeps "
            "none; use a SampledRankBasedEvaluator, or give the scores to unsample.sampled_ranks"
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


def _sides(side: str) -> tuple[str, ...]:
    """Return the sides that are asked for, heads first."""
    check_choice("side", side, (*_COLUMNS, "both"))
    return tuple(_COLUMNS) if side == "both" else (side,)


def _as_triples(name: str, given: Any) -> IntArray:
    """Return triples of ids as an array, from a triples factory too."""
    array = np.asarray(getattr(given, "mapped_triples", given))
    if array.ndim != 2 or array.shape[1] != 3 or not np.issubdtype(array.dtype, np.integer):
        got = f"an array of shape {array.shape}" if array.ndim else type(given).__name__
        raise InputError(
            f"{name} must be a triples factory or an integer array with three columns, got {got}"
        )
    return array.astype(np.int64)
