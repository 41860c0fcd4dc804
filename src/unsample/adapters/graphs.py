"""Filtered link prediction from triples: the questions of a graph, and which answers come first.

A test triple asks (?, relation, tail) for its head and (head, relation, ?) for its tail. Questions
are users and entities are items. `questions` finds from arrays of triples what `unsample.evaluate`
wants: targets, the other true answers to leave out, and a guide, the entities that training has
seen on that side of the relation, the frequent first.

>>> train = np.array([[0, 0, 1], [2, 0, 1], [2, 0, 3], [4, 1, 5]])
>>> asked = questions(train, [[4, 0, 3]], entities=6)
>>> asked, asked.guide.tolist()
(Questions(1 head, 1 tail, 6 entities), [[2, 0], [1, 3]])
>>> asked.exclude.nonzero()[1].tolist()  # the known head of (?, 0, 3)
[2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_choice, check_integer
from unsample.adapters._neighbours import nearest
from unsample.adapters._triples import SIDES, Asked, as_triples, sides_of
from unsample.answers import Estimates, Evaluation, estimate_counts, exact
from unsample.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Questions", "domains", "questions"]

#: Answers that a guide has for a question, at most; others come in the order of popularity.
_LISTED = 512
#: Fills up short lists.
_NOBODY = -1


@dataclass(frozen=True, eq=False)
class Questions:
    """The questions that test triples ask, for `unsample.evaluate`."""

    #: The triple behind each question, and the column that is looked for: 0 heads, 2 tails.
    triples: IntArray
    wanted: IntArray
    #: Questions x entities: the other true answers.
    exclude: scipy.sparse.csr_array = field(repr=False)
    #: Ranked answers, a row for each question; -1 fills up short rows.
    guide: npt.NDArray[np.int32] = field(repr=False)

    @property
    def targets(self) -> tuple[IntArray, IntArray]:
        """Return each question with its answer."""
        number = np.arange(len(self.wanted))
        return number, self.triples[number, self.wanted]

    @property
    def relations(self) -> IntArray:
        """Return the relation of each question."""
        return self.triples[:, 1]

    @property
    def items(self) -> int:
        """Return the number of entities."""
        return int(self.exclude.shape[1])

    def scorer(self, score: Callable[[IntArray, IntArray, IntArray], Any]) -> Any:
        """Return a scorer for `unsample.evaluate` from a function of heads, relations and tails.

        ``score`` takes three arrays of ids of one shape, a row for each question, and returns a
        score for each triple; higher is better.
        """

        def scores(asked: IntArray, answers: IntArray, /) -> npt.NDArray[Any]:
            rows, wanted = self.triples[asked], self.wanted[asked]
            columns = [np.broadcast_to(rows[:, [each]], answers.shape) for each in range(3)]
            for each in (0, 2):
                columns[each] = np.where(wanted[:, None] == each, answers, columns[each])
            found = score(*columns)
            return np.asarray(found.detach().cpu() if hasattr(found, "detach") else found)

        return scores

    def of_side(self, side: str) -> Questions:
        """Return the questions that ask for ``"head"`` or for ``"tail"``."""
        check_choice("side", side, tuple(SIDES))
        return self.take(self.wanted == SIDES[side])

    def of_relation(self, relation: int) -> Questions:
        """Return the questions about one relation."""
        return self.take(self.relations == relation)

    def take(self, rows: npt.ArrayLike) -> Questions:
        """Return some of the questions."""
        chosen = np.arange(len(self.wanted))[np.asarray(rows)]
        if not len(chosen):
            raise InputError("questions must be asked by at least one test triple, got none")
        return Questions(
            self.triples[chosen], self.wanted[chosen], self.exclude[chosen], self.guide[chosen]
        )

    def by_side(self, result: Evaluation) -> dict[str, Estimates]:
        """Return the metrics of heads and of tails apart, from an evaluation of all questions."""
        names = {column: side for side, column in SIDES.items()}
        return {names[column]: part for column, part in _parts(result, self.wanted).items()}

    def by_relation(self, result: Evaluation) -> dict[int, Estimates]:
        """Return the metrics of each relation, from an evaluation of all questions."""
        return _parts(result, self.relations)

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{int((self.wanted == column).sum()):,} {side}"
            for side, column in SIDES.items()
            if (self.wanted == column).any()
        )
        return f"Questions({sizes}, {self.items:,} entities)"


def _parts(result: Evaluation, labels: IntArray) -> dict[int, Estimates]:
    """Return the metrics of each label's targets."""
    if len(labels) != len(result.targets):
        raise InputError(
            f"result must be an evaluation of these {len(labels)} targets, got one of "
            f"{len(result.targets)}"
        )
    if result.drawn:
        raise InputError(
            "result must tell each target apart, got a guided one, of which some stand for others; "
            "evaluate of_side(...) or of_relation(...), or use design='certified'"
        )
    found, names = result.found, [metric.name for metric in result.metrics]
    parts: dict[int, Estimates] = {}
    for label in np.unique(labels).tolist():
        rows = labels == label
        some = replace(
            found,
            ranks=found.ranks[rows],
            items=np.asarray(found.items)[rows],
            sampled=np.asarray(found.sampled)[rows],
            users=np.asarray(found.users)[rows],
        )
        if result.design.certifies:
            parts[label] = exact(
                some.ranks, items=some.items, users=some.users,
                filtered=some.filtered, metrics=names, resamples=0,
            )  # fmt: skip
        else:
            # Few targets hardly agree with anything: what there is to warn of is in the results.
            parts[label] = estimate_counts(
                some.counts, metrics=names, method=result.methods, kind="graph", resamples=0
            )
    return parts


def questions(
    train: Any,
    test: Any,
    *,
    entities: int,
    known: Iterable[Any] = (),
    side: str = "both",
    guide: str = "relation",
    listed: int = _LISTED,
) -> Questions:
    """Find the questions of test triples.

    Parameters
    ----------
    train, test
        Arrays of ids with columns head, relation and tail, or triples factories of PyKEEN.
    entities
        How many entities there are.
    known
        Further true triples, such as those of validation: their answers are left out, as those of
        ``train`` and ``test`` are. The guide does not look at them.
    side
        ``"head"``, ``"tail"`` or ``"both"``; heads are asked for first.
    guide
        ``"relation"``: what training has seen on that side of the relation, the frequent first. Or
        ``"neighbours"``, which also looks at what entities like the known one have, and at what is
        like the answers that training has: better, and about a millisecond for each question.
    listed
        How many answers the guide has for a question, at most.
    """
    from scipy.sparse import csr_array

    size = check_integer("entities", entities, minimum=2)
    longest = check_integer("listed", listed, minimum=1)
    sides = sides_of(side)
    check_choice("guide", guide, ("relation", "neighbours"))
    learned, tested = (_checked(*each, size) for each in (("train", train), ("test", test)))
    if not len(tested):
        raise InputError("test must hold at least one triple, got none")
    others = [_checked("known", each, size) for each in known]
    before = np.concatenate([learned, *others])
    again = np.isin(_codes(tested, size), _codes(before, size))
    if again.any():
        raise InputError(
            f"test must hold triples that are not known already, got {int(again.sum())} that are, "
            f"the first {tested[np.argmax(again)].tolist()}"
        )
    asked = Asked.of(tested, sides)
    pairs = asked.others([learned, *others])
    shape = len(asked.wanted), size
    exclude = csr_array((np.ones(len(pairs[0]), dtype=bool), pairs), shape=shape)
    relations = 1 + int(max(part[:, 1].max(initial=0) for part in (learned, tested)))
    kind = 2 * asked.triples[:, 1] + asked.wanted // 2
    if guide == "relation":
        lists = _frequent(learned, relations, size, longest)[kind]
    else:
        known_end = asked.triples[np.arange(len(kind)), 2 - asked.wanted]
        same, row = np.unique(kind * size + known_end, return_inverse=True)
        lists = nearest(learned, same % size, same // size, size, longest)[row.reshape(-1)]
    return Questions(asked.triples, asked.wanted, exclude, lists)


def domains(train: Any, *, entities: int) -> dict[str, scipy.sparse.csr_array]:
    """Return which entities training has seen as heads and as tails of each relation.

    These are domain and range of the relations, among which some draw their negatives: for each
    side a matrix of relations x entities, true where the entity was seen.

    >>> domains([[0, 0, 1], [2, 1, 1]], entities=3)["head"].toarray().tolist()
    [[True, False, False], [False, False, True]]
    """
    from scipy.sparse import csr_array

    size = check_integer("entities", entities, minimum=2)
    triples = _checked("train", train, size)
    shape = (1 + int(triples[:, 1].max(initial=0)), size)
    found = {}
    for side, column in SIDES.items():
        pairs = np.unique(triples[:, [1, column]], axis=0).T
        found[side] = csr_array((np.ones(pairs.shape[1], dtype=bool), tuple(pairs)), shape=shape)
    return found


def _frequent(triples: IntArray, relations: int, size: int, longest: int) -> npt.NDArray[np.int32]:
    """Return the entities of each relation as heads and as tails, the frequent first."""
    ends = np.concatenate(
        [(2 * triples[:, 1] + column // 2) * size + triples[:, column] for column in SIDES.values()]
    )
    pair, count = np.unique(ends, return_counts=True)
    kind, entity = np.divmod(pair, size)
    order = np.lexsort([entity, -count, kind])
    kind, entity = kind[order], entity[order]
    place = np.arange(len(kind)) - np.searchsorted(kind, kind)
    kept = place < longest
    width = int(place[kept].max(initial=0)) + 1
    lists = np.full((2 * relations, width), _NOBODY, dtype=np.int32)
    lists[kind[kept], place[kept]] = entity[kept]
    return lists


def _codes(triples: IntArray, size: int) -> IntArray:
    """Return a number for each triple."""
    return np.asarray((triples[:, 1] * size + triples[:, 0]) * size + triples[:, 2])


def _checked(name: str, given: Any, size: int) -> IntArray:
    """Return triples of entities that there are, each once."""
    triples = as_triples(name, given)
    if len(triples) and (triples.min() < 0 or triples[:, [0, 2]].max() >= size):
        raise InputError(
            f"{name} must hold entities from 0 to {size - 1} and relations from 0 on, got "
            f"{int(triples.min())} to {int(triples[:, [0, 2]].max())}"
        )
    first = np.unique(_codes(triples, size), return_index=True)[1]
    return triples[np.sort(first)]
