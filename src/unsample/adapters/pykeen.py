"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_choice
from unsample.adapters._tasks import Task, check_object, require
from unsample.designs import RowScores
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets, check_ties, rank_with_ties

if TYPE_CHECKING:
    import scipy.sparse

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
    width = int(evaluator.num_entities)
    true = _Questions.of(triples, sides).answers(known, width)
    items = width - np.diff(true.indptr) + 1
    _refuse_by_relation(
        evaluator, triples[:, 1], dict(zip(sides, np.split(items, len(sides)), strict=True))
    )
    if (candidates > items).any():
        row = int(np.argmax(candidates > items))
        raise DesignError(
            f"negatives must be different entities, got {int(candidates[row] - 1)} of the "
            f"{int(items[row] - 1)} that may be sampled for triple {row % size}; PyKEEN repeats "
            "entities where there are too few: use fewer negatives"
        )
    ranks = rank_with_ties(best - 1, worst - best, rule, as_rng(rng)).astype(np.int64)
    # A triple asks for a head and a tail; these are two targets, each among candidates of its own.
    users = np.tile(np.arange(size), len(sides))
    return Targets(ranks, items, candidates - 1, users=users, replacement=False, filtered=True)


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
    check_object("model", model, "a model of pykeen", "predict_h", "predict_t")
    torch = require("pykeen", "torch")
    questions = _Questions.of(_as_triples("triples", triples), _sides(side))
    width = int(model.num_entities)

    def scores(asked: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all entities, row by row."""
        found = np.empty((len(asked), width), dtype=np.float32)
        for wanted in np.unique(questions.wanted[asked]):
            rows = np.flatnonzero(questions.wanted[asked] == wanted)
            given = np.delete(questions.triples[asked[rows]], wanted, axis=1)
            batch = torch.as_tensor(given, device=model.device)
            predict = model.predict_h if wanted == _COLUMNS["head"] else model.predict_t
            with torch.inference_mode():
                found[rows] = predict(batch).float().cpu().numpy()
        return found

    rows = np.arange(len(questions.wanted))
    exclude = questions.answers(known, width)
    exclude[rows, questions.targets] = False
    exclude.eliminate_zeros()
    return Task.of_pairs(RowScores(scores), (rows, questions.targets), width, exclude)


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

    def answers(self, known: Any, entities: int) -> scipy.sparse.csr_array:
        """Return questions x entities: the true answers to each question, its own included."""
        from scipy.sparse import csr_array

        several = known if isinstance(known, list | tuple) else [] if known is None else [known]
        others = [_as_triples("known", given) for given in several]
        sides = tuple(side for side, column in _COLUMNS.items() if column in self.wanted)
        true = _Questions.of(np.unique(np.vstack([self.triples, *others]), axis=0), sides)
        both = np.vstack([self.keys, true.keys])
        distinct, number = np.unique(both, axis=0, return_inverse=True)
        asked, told = np.split(number.reshape(-1), [len(self.wanted)])
        yes = np.ones(len(told), dtype=bool)
        return csr_array((yes, (told, true.targets)), shape=(len(distinct), entities))[asked]

    @property
    def keys(self) -> IntArray:
        """Return what each question is: what is wanted, the relation, the other entity."""
        other = self.triples[np.arange(len(self.wanted)), 2 - self.wanted]
        return np.column_stack([self.wanted, self.triples[:, 1], other])


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
    check_object("evaluator", evaluator, "a SampledRankBasedEvaluator", "negative_samples", "ranks")
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
