"""`audit`: how negatives were drawn, and which `estimate` call fits them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import as_index, as_integer_array, check_integer, check_unmasked
from unsample._rounding import percent
from unsample.errors import DesignError, InputError
from unsample.questions.audit.result import Audit, Finding
from unsample.questions.audit.uniformity_tests import Lists, Tested
from unsample.scoring import Excluded, as_excluded
from unsample.tables import is_table, read_pairs
from unsample.uncertainty import holm

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The answer to a question, in a word and in a sentence.
Answer: TypeAlias = tuple[str, str]
#: The level of all tests of an audit together.
_ALPHA = 0.05
#: Probabilities that vary by less (coefficient of variation) are as good as equal, even if the test
#: is certain that they differ.
_NEARLY = 0.05
#: The largest catalogue: each item has a counter in memory.
_LARGEST_CATALOGUE = 10**8


def audit(
    negatives: Any,
    *,
    items: int,
    exclude: Excluded | Any | None = None,
    columns: Mapping[str, str] | None = None,
) -> Audit:
    """Find out how negatives were drawn: by which distribution, for whom, and what was left out.

    P-values are corrected for the number of tests (Holm). So an audit of good negatives gives a
    wrong answer in at most 5 of 100 cases.

    Parameters
    ----------
    negatives
        Item numbers from 0 to items - 1: an array with a row for each target; a sequence of arrays,
        if lists differ in length; or a table (a file or a frame) with columns ``user`` and
        ``item``. Rows of a table whose column ``target`` is true are no negatives.
    items
        The size of the catalogue.
    exclude
        Items that were not to be drawn, such as targets and items that users have seen: a sparse
        matrix with a row for the user of each list; or, if ``negatives`` are a table, a table with
        columns ``user`` and ``item``.
    columns
        Columns that have other names: ``{"item": "movie"}``.

    Returns
    -------
    Audit
        The answers: ``result["uniform"].answer``, and likewise for ``"replacement"``,
        ``"shared lists"`` and, with ``exclude``, ``"seen items"``.

    Raises
    ------
    InputError
        If there are no negatives, or an item number cannot be.
    DesignError
        If ``items`` cannot be.

    >>> lists = np.random.default_rng(0).integers(1000, size=(500, 50))
    >>> result = audit(lists, items=1000)
    >>> result["uniform"].answer, result["replacement"].answer
    ('yes', 'with')
    >>> result.call
    'unsample.estimate(ranks, items=1000, sampled=50)'
    """
    items = check_integer("items", items, minimum=2, maximum=_LARGEST_CATALOGUE, error=DesignError)
    if is_table(negatives):
        lists = _read_table(negatives, items, exclude=exclude, columns=columns)
    else:
        lists = _read_arrays(negatives, items, exclude=exclude)
    if not lists.drawn.nnz:
        raise InputError("negatives must hold at least one item, got none")
    return _conclude(lists)


# -- reading ---------------------------------------------------------------------------------


def _read_arrays(negatives: Any, items: int, *, exclude: Any) -> Lists:
    """Return the lists of an array, or of a sequence of arrays."""
    check_unmasked("negatives", negatives)
    rows = [np.asarray(row) for row in negatives] if np.iterable(negatives) else [np.array(0)]
    if any(row.ndim != 1 for row in rows):
        raise InputError(
            "negatives must be a two-dimensional array (a row for each target), a sequence of "
            "arrays, or a table with columns user and item, got a "
            f"{type(negatives).__name__} whose rows are no lists"
        )
    every = np.arange(len(rows))
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    no_item = every[:0]
    drawn = _matrix(
        "negatives",
        np.concatenate([*rows, no_item]),
        rows=np.repeat(every, as_index(lengths)),
        shape=(len(rows), items),
    )
    seen = None if exclude is None else as_excluded(exclude, items)
    if seen is not None and seen.shape[0] != len(rows):
        raise InputError(
            f"exclude must have one row for each of the {len(rows):,} lists, got "
            f"{seen.shape[0]:,}; take the rows of their users: exclude[users]"
        )
    return Lists(drawn, seen)


def _read_table(
    negatives: Any, items: int, *, exclude: Any, columns: Mapping[str, str] | None
) -> Lists:
    """Return the lists of a table, a list for each user."""
    if exclude is not None and not is_table(exclude):
        raise InputError(
            "exclude must be a table of user and item where negatives are one, got "
            f"{type(exclude).__name__}"
        )
    rows = read_pairs(negatives, items=items, columns=columns)
    users, list_of_row = np.unique(rows["user"], return_inverse=True)
    is_negative = rows.get("target", np.zeros(len(list_of_row))) != 1
    shape = (len(users), items)
    drawn = _matrix("item", rows["item"][is_negative], rows=list_of_row[is_negative], shape=shape)
    if exclude is None:
        return Lists(drawn)
    renamed = {role: name for role, name in (columns or {}).items() if role != "target"}
    pairs = read_pairs(exclude, items=items, columns=renamed)
    list_of_pair = np.searchsorted(users, pairs["user"]).clip(max=len(users) - 1)
    has_list = users[list_of_pair] == pairs["user"]
    if not has_list.any():
        raise InputError(
            f"exclude must name users of negatives, got none of the {len(users):,} among "
            f"them, such as {str(users[0])!r}; its first user is {str(pairs['user'][0])!r}"
        )
    seen = _matrix("item", pairs["item"][has_list], rows=list_of_pair[has_list], shape=shape)
    return Lists(drawn, seen)


def _matrix(
    name: str, values: Any, *, rows: npt.NDArray[np.intp], shape: tuple[int, int]
) -> csr_array:
    """Return how often each row has each item; refuse values that are no item numbers."""
    from scipy.sparse import csr_array

    _, items = shape
    ids = as_integer_array(name, values, hint="items are numbered from 0", error=InputError)
    for end in (ids.min(initial=0), ids.max(initial=0)):
        if not 0 <= end < items:
            raise InputError(
                f"{name} must hold item numbers from 0 to {items - 1} (items - 1), got {end}; "
                "subtract 1 if yours start at 1"
            )
    ones = np.ones(len(ids), dtype=np.int64)
    return csr_array((ones, (rows.reshape(-1), ids)), shape=shape)


# -- answers ----------------------------------------------------------------------------------


def _conclude(lists: Lists) -> Audit:
    """Ask each question, correct for their number, and put the answers into words."""
    shared = lists.shared()
    # Lists that are the same were drawn once.
    are_shared = shared is not None and shared.p_value < _ALPHA
    once = lists.distinct() if are_shared else lists
    asked = {
        "uniform": once.uniform(),
        "replacement": once.replacement(),
        "shared lists": shared,
        "seen items": lists.left_out(),
    }
    tests = {question: test for question, test in asked.items() if test is not None}
    corrected = holm([test.p_value for test in tests.values()])
    findings = []
    for (question, test), p_value in zip(tests.items(), corrected, strict=True):
        find_answer = _ANSWERS[question]
        answer, sentence = find_answer(test, p_value < _ALPHA, lists, once)
        findings.append(
            Finding(question=question, answer=answer, sentence=sentence, p_value=p_value)
        )
    call, advice = _advice({finding.question: finding.answer for finding in findings}, lists)
    return Audit(
        catalogue=lists.items,
        targets=len(lists.sizes),
        sampled=(int(lists.sizes.min()), int(lists.sizes.max())),
        findings=tuple(findings),
        call=call,
        advice=advice,
    )


def _on_probabilities(test: Tested, significant: bool, _: Lists, once: Lists) -> Answer:
    """Return how equal the probabilities of items are."""
    if not once.telling:
        return (
            "cannot tell",
            "A single list, or lists of all items, cannot tell the probabilities of items.",
        )
    if not significant:
        return "yes", "All candidates were drawn equally often, up to probability."
    if test.value < test.expected:
        return (
            "too even",
            "Items were drawn more evenly than by chance: lists are no own draws.",
        )
    variation = math.sqrt(test.value / max(test.expected, 1e-300) - 1.0)
    text = f"Probabilities of items vary by {percent(variation)} (coefficient of variation)"
    if variation < _NEARLY:
        return "nearly", f"{text}: too little to matter."
    never = int((once.counts == 0).sum())
    expected = np.exp(-once.by_item(once.rate)).sum()
    return "no", f"{text}; {never:,} items were never drawn instead of {expected:,.0f}."


def _on_repeats(test: Tested, significant: bool, *_: Lists) -> Answer:
    """Return whether an item may come twice in a list."""
    if test.value:
        return "with", f"{test.value:,.0f} pairs of equal items stand in one list."
    text = f"No list has an item twice, where about {test.expected:,.1f} pairs would be by chance"
    if significant:
        return "without", f"{text}."
    return "cannot tell", f"{text}: lists are too short to tell, and it hardly matters."


def _on_sharing(_: Tested, significant: bool, lists: Lists, once: Lists) -> Answer:
    """Return whether each target has a list of its own."""
    if not significant:
        return "own", "Each target has negatives of its own."
    total = len(lists.sizes)
    distinct = len(once.sizes)
    if distinct == 1:
        return "one list", f"All {total:,} targets share one list of negatives."
    return "some", f"Only {distinct:,} of {total:,} lists differ: targets share lists."


def _on_seen(test: Tested, significant: bool, *_: Lists) -> Answer:
    """Return whether seen items were left out."""
    text = f"{test.value:,.0f} negatives are items that their user has seen"
    if not significant:
        answer = "kept" if test.value else "cannot tell"
        return answer, f"{text}, as many as by chance."
    text += f", where about {test.expected:,.0f} would be by chance: "
    if not test.value:
        return "left out", f"{text}seen items were left out."
    return "partly left out", f"{text}only some seen items were left out."


#: How each question is answered: from its test, whether the test is significant, all lists, and
#: each distinct list once.
_ANSWERS: dict[str, Callable[[Tested, bool, Lists, Lists], Answer]] = {
    "uniform": _on_probabilities,
    "replacement": _on_repeats,
    "shared lists": _on_sharing,
    "seen items": _on_seen,
}


def _advice(answers: dict[str, str], lists: Lists) -> tuple[str | None, str]:
    """Return the call that fits, or None if no call does, and an advice."""
    if answers["uniform"] == "no":
        return None, (
            "Ranks against these negatives do not tell full-catalogue metrics: a rank tells what "
            "share of the draws is above the target, not how many items are. Evaluate the model "
            "(unsample.evaluate), or draw uniformly and rank again. If items that users have seen "
            "were left out, give exclude; if items are no candidates, audit without them."
        )
    items = f"items={lists.items}"
    sampled = f"sampled={lists.sizes[0]}"
    protocol: list[str] = []
    drawn: list[str] = []
    meanings = []
    if lists.sizes.min() < lists.sizes.max():
        sampled = "sampled=sizes"
        meanings.append("sizes is how many negatives each target has")
    seen = answers.get("seen items")
    if seen in ("kept", "partly left out"):
        protocol.append('protocol="all"')
    elif seen == "left out":
        items += " - seen"
        protocol.append('protocol="unseen"')
        meanings.append("seen is how many items the user of each target has seen")
    if answers["replacement"] == "without":
        drawn.append("replacement=False")
    if answers.get("shared lists") in ("one list", "some"):
        drawn.append("shared=True")
    negatives = [f"negatives=unsample.Negatives({', '.join(drawn)})"] if drawn else []
    arguments = ", ".join(["ranks", items, sampled, *protocol, *negatives])
    text = "; ".join(["Estimate with the call below", *meanings]) + "."
    if answers["uniform"] == "cannot tell":
        text += " These lists cannot show that they were drawn uniformly."
    return f"unsample.estimate({arguments})", text
