"""Link prediction with PyKEEN: entities for items, the same problem and the same estimate.

`targets` reads what a ``SampledRankBasedEvaluator`` has collected; `task` asks the model itself,
and scores only the entities that a design needs (the sampled evaluator scores all of them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_choice
from unsample.adapters._tasks import Task, check_object, held_out, require
from unsample.designs import RowScores
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets, check_ties, rank_with_ties

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["targets", "task"]

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
    rule, sides = check_ties(ties, whole=True), _sides(side)
    check_object("evaluator", evaluator, "a SampledRankBasedEvaluator", "negative_samples", "ranks")
    if not evaluator.ranks:
        raise InputError(
            "evaluator must hold ranks, got none; make it with clear_on_finalize=False and call "
            "evaluator.evaluate(model, ...) before"
        )
    triples = np.array(list(evaluator.triple_to_index), dtype=np.int64)
    best, worst, candidates = np.hstack(
        [_collected(evaluator, each, len(triples)) for each in sides]
    )
    true = _answers(triples, known, sides, int(evaluator.num_entities))
    items = int(evaluator.num_entities) - np.diff(true.indptr) + 1
    if (candidates > items).any():
        raise DesignError(
            f"negatives must be different entities, got {int(candidates.max()) - 1}, more than may "
            "be sampled for a triple: PyKEEN repeats entities then; use fewer"
        )
    ranks = rank_with_ties(best - 1, worst - best, rule, as_rng(rng)).astype(np.int64)
    # A triple asks for a head and a tail; these are two targets, each among candidates of its own.
    users = np.tile(np.arange(len(triples)), len(sides))
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
    tested, sides, width = _as_triples("triples", triples), _sides(side), int(model.num_entities)
    predict = {"head": model.predict_h, "tail": model.predict_t}

    def scores(asked: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all entities, row by row."""
        found = np.empty((len(asked), width), dtype=np.float32)
        for place, each in enumerate(sides):
            rows = np.flatnonzero(asked // len(tested) == place)
            given = np.delete(tested[asked[rows] % len(tested)], _COLUMNS[each], axis=1)
            with torch.inference_mode():
                batch = torch.as_tensor(given, device=model.device)
                found[rows] = predict[each](batch).float().cpu().numpy() if len(rows) else 0.0
        return found

    wanted = np.concatenate([tested[:, _COLUMNS[each]] for each in sides])
    rows, exclude = np.arange(len(wanted)), _answers(tested, known, sides, width)
    exclude[rows, wanted] = False
    exclude.eliminate_zeros()
    return Task(RowScores(scores), held_out(rows, wanted), width, exclude)


def _answers(
    triples: IntArray, known: Any, sides: tuple[str, ...], entities: int
) -> scipy.sparse.csr_array:
    """Return questions x entities: the true answers to each question, its own included."""
    from scipy.sparse import csr_array, vstack

    several = known if isinstance(known, list | tuple) else [] if known is None else [known]
    true = np.unique(
        np.vstack([triples, *(_as_triples("known", each) for each in several)]), axis=0
    )
    parts = []
    for column in (_COLUMNS[side] for side in sides):
        questions = np.vstack([np.delete(each, column, axis=1) for each in (triples, true)])
        distinct, number = np.unique(questions, axis=0, return_inverse=True)
        asked, told = np.split(number.reshape(-1), [len(triples)])
        yes, shape = np.ones(len(true), dtype=bool), (len(distinct), entities)
        parts.append(csr_array((yes, (told, true[:, column])), shape=shape)[asked])
    return csr_array(vstack(parts, format="csr"))


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
    """Return the sides that are asked for."""
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
