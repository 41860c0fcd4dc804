"""`audit`: how negatives were drawn, and which `estimate` call fits them.

Two draws coincide if they are of the same item. How often draws of *different* lists coincide tells
how equal the chances of the items are; how often draws of *one* list coincide tells whether an item
may come twice. Both have known moments if draws are uniform, so the tests hold for few draws as
well as for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, as_index, as_integer_array, check_integer
from unsample._gone import refuses_gone
from unsample.answers._notes import Note
from unsample.answers._result import Result, percent
from unsample.bounds import holm
from unsample.designs import Excluded, as_excluded
from unsample.errors import DesignError, InputError
from unsample.tables import is_table, read_pairs

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The level of all tests of an audit together.
ALPHA = 0.05
#: Chances that vary by less (coefficient of variation) are as good as equal, however certain it is.
NEARLY = 0.05
#: Shorter lists are often the same by chance.
_LONG_LIST = 5
#: Each item has a counter of its own.
_LARGEST_CATALOGUE = 10**8
#: Answers that break what `estimate` assumes, unless the call states it.
CONCERNS = (
    "no", "too even", "with, too many repeats", "with, too few repeats", "one list", "some",
    "partly left out", "among them",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One question, its answer, and the test behind it."""

    question: str
    answer: str
    sentence: str
    #: What ``value`` is; ``expected`` is its mean if lists are own, uniform draws of all items.
    statistic: str
    value: float | None = None
    expected: float | None = None
    #: Corrected for the number of tests; None if nothing was tested.
    p_value: float | None = None
    #: Whether it breaks what `estimate` assumes, unless the call states it.
    concern: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """How negatives were drawn: an answer to each question, with its test.

    ``call`` is the `estimate` call that fits these negatives, or None if no call does. ``advice``
    says what to do in both cases.
    """

    items: int
    #: The number of lists, one for each target.
    targets: int
    #: The fewest and the most negatives of a target.
    sampled: tuple[int, int]
    #: ``"uniform"``, ``"other"``, or ``"unknown"`` (a single list, or lists of all items).
    law: str
    findings: tuple[Finding, ...]
    call: str | None
    advice: str

    def __getitem__(self, question: str) -> Finding:
        return {finding.question: finding for finding in self.findings}[question]

    @property
    def notes(self) -> tuple[Note, ...]:  # type: ignore[override]
        """Return the findings that break what `estimate` assumes."""
        broken = (finding for finding in self.findings if finding.concern)
        return tuple(Note(finding.question, finding.sentence) for finding in broken)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        low, high = self.sampled
        return {
            "items": self.items,
            "targets": self.targets,
            "sampled": low if low == high else [low, high],
            "law": self.law,
            "findings": self.rows(),
            "call": self.call,
            "advice": self.advice,
            "warnings": list(self.warnings),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each finding."""
        return [asdict(finding) for finding in self.findings]


@refuses_gone
def audit(
    negatives: Any,
    *,
    items: int,
    targets: npt.ArrayLike | None = None,
    exclude: Excluded | Any | None = None,
    columns: Mapping[str, str] | None = None,
) -> Audit:
    """Find out how negatives were drawn: by which law, for whom, and what was left out.

    P-values are corrected for the number of tests (Holm), so that an audit of good negatives says
    something wrong in at most 5 of 100 cases.

    Parameters
    ----------
    negatives
        Item numbers from 0 to items - 1: an array with a row for each target, a sequence of arrays
        if lists differ in length, or a table (a file or a frame) with columns ``user`` and
        ``item``, and possibly ``target`` (true in the row of the target).
    items
        The size of the catalogue.
    targets
        The target of each list.
    exclude
        Items that users have seen: a sparse matrix with a row for the user of each list, or where
        ``negatives`` are a table, a table with columns ``user`` and ``item``.
    columns
        Columns that have other names: ``{"item": "movie"}``.

    >>> lists = np.random.default_rng(0).integers(1000, size=(500, 50))
    >>> result = audit(lists, items=1000)
    >>> result.law, result["replacement"].answer
    ('uniform', 'with')
    >>> result.call
    'unsample.estimate(ranks, items=1000, sampled=50)'
    """
    items = check_integer("items", items, minimum=2, maximum=_LARGEST_CATALOGUE, error=DesignError)
    read = _read_table if is_table(negatives) else _read_arrays
    lists = read(negatives, items, targets, exclude, columns)
    if not lists.drawn.nnz:
        raise InputError("negatives must hold at least one item, got none")
    return _conclude(lists)


# -- what is given ---------------------------------------------------------------------------------


def _read_arrays(negatives: Any, items: int, targets: Any, exclude: Any, _: Any) -> Lists:
    """Return the lists of an array, or of a sequence of arrays."""
    rows = [np.asarray(row) for row in negatives] if np.iterable(negatives) else [np.array(0)]
    if any(row.ndim != 1 for row in rows):
        raise InputError(
            "negatives must be a two-dimensional array (a row for each target), a sequence of "
            "arrays, or a table with columns user and item, got a "
            f"{type(negatives).__name__} whose rows are no lists"
        )
    every = np.arange(len(rows))
    sizes = as_index(np.array([len(row) for row in rows], dtype=np.int64))
    ids = _numbers("negatives", np.concatenate([*rows, every[:0]]), items)
    own = seen = None
    if targets is not None:
        aims = _numbers("targets", targets, items)
        _check_rows("targets", len(aims), len(rows))
        own = _matrix(every, aims, len(rows), items)
    if exclude is not None:
        seen = as_excluded(exclude, items)
        _check_rows("exclude", int(seen.shape[0]), len(rows))
    return Lists(_matrix(np.repeat(every, sizes), ids, len(rows), items), seen, own)


def _check_rows(name: str, size: int, lists: int) -> None:
    if size != lists:
        raise InputError(
            f"{name} must have one row for each of the {lists:,} lists, got {size:,}; take the "
            f"rows of their users: {name}[users]"
        )


def _read_table(
    negatives: Any, items: int, targets: Any, exclude: Any, columns: Mapping[str, str] | None
) -> Lists:
    """Return the lists of a table, a list for each user."""
    if targets is not None:
        raise InputError("targets must be a column 'target' where negatives are a table")
    if exclude is not None and not is_table(exclude):
        raise InputError(
            "exclude must be a table of user and item where negatives are one, got "
            f"{type(exclude).__name__}"
        )
    rows = read_pairs(negatives, items=items, columns=columns)
    names, owner = np.unique(rows["user"], return_inverse=True)
    mine = rows.get("target", np.zeros(len(owner))) == 1
    drawn, own = (
        _matrix(owner[part], rows["item"][part], len(names), items) for part in (~mine, mine)
    )
    seen = None
    if exclude is not None:
        named = {role: name for role, name in (columns or {}).items() if role != "target"}
        pairs = read_pairs(exclude, items=items, columns=named)
        row = np.searchsorted(names, pairs["user"]).clip(max=len(names) - 1)
        known = names[row] == pairs["user"]
        if not known.any():
            raise InputError(
                f"exclude must name users of negatives, got none of the {len(names):,} among "
                f"them, such as {str(names[0])!r}; its first user is {str(pairs['user'][0])!r}"
            )
        seen = _matrix(row[known], pairs["item"][known], len(names), items)
    return Lists(drawn, seen, own if mine.any() else None)


def _numbers(name: str, values: Any, items: int) -> IntArray:
    """Return item numbers, and refuse others."""
    ids = as_integer_array(name, values, hint="items are numbered from 0", error=InputError)
    for end in (ids.min(initial=0), ids.max(initial=0)):
        if not 0 <= end < items:
            raise InputError(
                f"{name} must hold item numbers from 0 to {items - 1} (items - 1), got {end}; "
                "subtract 1 if yours start at 1"
            )
    return ids.astype(np.int64, copy=False)


def _matrix(rows: npt.NDArray[np.intp], ids: IntArray, size: int, items: int) -> csr_array:
    """Return how often each row has each item."""
    from scipy.sparse import csr_array

    ones = np.ones(len(ids), dtype=np.int64)
    return csr_array((ones, (rows.reshape(-1), ids)), shape=(size, items))


# -- what is found, and what uniform draws would give ----------------------------------------------


class Tested(NamedTuple):
    """A figure, what is expected of it, and how surprising it is."""

    value: float
    expected: float
    p_value: float

    @property
    def surprises(self) -> bool:
        return self.p_value < ALPHA


class Lists:
    """Lists of negatives, and what uniform draws among the candidates of each list would give.

    All matrices are of lists x items: ``drawn`` is how often each list holds each item, ``seen`` is
    what its user has seen, and ``own`` its target, where they are known.
    """

    def __init__(
        self, drawn: csr_array, seen: csr_array | None = None, own: csr_array | None = None
    ) -> None:
        self.drawn, self.items = drawn, int(drawn.shape[1])
        self.seen, self.own = (
            None if known is None else known.astype(bool).astype(np.int64) for known in (seen, own)
        )
        self.sizes: IntArray = np.asarray(drawn.sum(axis=1), dtype=np.int64)
        self.counts: FloatArray = np.asarray(drawn.sum(axis=0), dtype=np.float64)
        # Pairs of equal items in each list.
        self.pairs: IntArray = np.asarray(drawn.power(2).sum(axis=1) - self.sizes) // 2
        # What lists leave out: what never occurs of items that users have seen, and of targets.
        out = 0 * drawn
        for known in (self.seen, self.own):
            if known is not None and not drawn.multiply(known).sum():
                out = out + known
        self.out: csr_array = out.astype(bool).astype(np.int64)
        self.candidates: FloatArray = self.items - np.asarray(self.out.sum(axis=1), np.float64)
        # How often a list draws one of its candidates: mean and variance.
        self.rate: FloatArray = self.sizes / np.maximum(self.candidates, 1.0)
        self.variance = self.rate
        if not self.pairs.any():
            left = self.candidates / np.maximum(self.candidates - 1.0, 1.0)
            self.variance = self.rate * (1.0 - self.rate) * left

    def by_item(self, weights: FloatArray) -> FloatArray:
        """Return for each item the weight of the lists that could draw it."""
        return np.asarray(float(weights.sum()) - self.out.T @ weights)

    def distinct(self) -> Lists:
        """Return each list once; what is known of users belongs to no shared list."""
        # Sums of random numbers, one for each item, differ where lists do.
        limits = np.iinfo(np.int64)
        marks = np.random.default_rng(0).integers(limits.min, limits.max, self.items)
        _, first = np.unique(self.drawn @ marks, return_index=True)
        return Lists(self.drawn[np.sort(first)])

    def never_drawn(self) -> tuple[int, float]:
        """Return how many items were never drawn, and how many by chance."""
        return int((self.counts == 0).sum()), float(np.exp(-self.by_item(self.rate)).sum())

    def coincidences(self) -> float:
        """Return which share of the pairs of draws of different lists is of the same item."""
        pairs = float(self.sizes.sum()) ** 2 - float((self.sizes.astype(float) ** 2).sum())
        equal = float((self.counts**2).sum()) - float((self.drawn.data.astype(float) ** 2).sum())
        return equal / pairs if pairs > 0.0 else 0.0

    def uniform(self) -> Tested | None:
        """Test whether all candidates have equal chances, by coincidences between lists.

        They are the squares of count minus expectation, added up, less the parts of single lists:
        a sum of products of independent lists. Its third moment has a part of three lists that
        coincide, and one of two. One item more or less is neglected in the moments.
        """
        if len(self.sizes) < 2 or (self.sizes >= self.candidates - 1.0).all():
            return None
        expected, v = self.by_item(self.rate), self.variance
        alone = self.sizes + 2 * self.pairs - self.rate * self.sizes
        excess = 0.5 * float(((self.counts - expected) ** 2).sum() - alone.sum())
        mean = 0.5 * float((expected**2).sum() - (self.rate * self.sizes).sum())
        one, two, three = (self.by_item(v**power) for power in (1, 2, 3))
        variance = 0.5 * float((one**2 - two).sum())
        third = float((one**3 - 3.0 * one * two + 2.0 * three).sum()) + variance
        return Tested(mean + excess, mean, two_sided(mean + excess, mean, variance, third))

    def replacement(self, coincide: float | None = None) -> Tested:
        """Test the pairs of equal draws within lists, if items may come twice.

        ``coincide`` is how often draws are of the same item, where chances are not equal.
        """
        chance = 1.0 / self.candidates if coincide is None else coincide
        expected = float((0.5 * self.sizes * (self.sizes - 1.0) * chance).sum())
        found = float(self.pairs.sum())
        if not found:
            return Tested(0.0, expected, math.exp(-expected))
        return Tested(found, expected, two_sided(found, expected, expected, expected))

    def left_out(self, known: csr_array | None) -> Tested | None:
        """Test whether fewer draws are among the items known of their list than by chance."""
        from scipy.special import gammaincc

        if known is None:
            return None
        expected = float((known.sum(axis=1) / self.items * self.sizes).sum())
        found = float(self.drawn.multiply(known).sum())
        p_value = float(gammaincc(found + 1.0, expected)) if expected > 0.0 else 1.0
        return Tested(found, expected, p_value)

    def shared(self) -> Tested | None:
        """Test whether more lists come again than by chance; None if they are too short to tell."""
        from scipy.special import gammainc, gammaln

        distinct = self.distinct()
        least = 1 if len(distinct.sizes) == 1 else _LONG_LIST
        sizes, times = np.unique(self.sizes, return_counts=True)
        long = (sizes >= least) & (sizes < self.items - 1)
        sizes, times = sizes[long], times[long]
        if int(times.sum()) < 2:
            return None
        # Lists without repeats, of items that are likely, are equal most often.
        number = 1.0 / max(distinct.coincidences(), 1.0 / self.items)
        orders = gammaln(sizes + 1.0) + gammaln(np.maximum(number - sizes, 0.0) + 1.0)
        chance = np.exp(np.minimum(orders - gammaln(number + 1.0), 0.0))
        expected = float((0.5 * times * (times - 1.0) * chance).sum())
        found = float(times.sum() - np.isin(distinct.sizes, sizes).sum())
        return Tested(found, expected, float(gammainc(found, expected)) if found else 1.0)


def two_sided(value: float, mean: float, variance: float, third: float) -> float:
    """Return how surprising a count is, by a gamma law with its first three moments.

    With many draws it is the law of chi-square, and with few coincidences it is close to Poisson's.
    Half a count is added on either side, because counts are whole.
    """
    from scipy.special import gammainc, gammaincc

    if variance <= 0.0:
        return 1.0
    shape = 4.0 / max(third / variance**1.5, 1e-6) ** 2
    scale = math.sqrt(variance / shape)
    low, high = (max((value + half - mean) / scale + shape, 0.0) for half in (0.5, -0.5))
    return min(1.0, 2.0 * min(float(gammainc(shape, low)), float(gammaincc(shape, high))))


# -- what is said ----------------------------------------------------------------------------------


def _conclude(lists: Lists) -> Audit:
    """Ask each question, correct for their number, and put the answers into words."""
    shared = lists.shared()
    # Lists that are the same were drawn once.
    once = lists.distinct() if shared is not None and shared.surprises else lists
    uniform = once.uniform()
    rate = None
    if uniform is not None and uniform.surprises and _variation(uniform) >= NEARLY:
        rate = once.coincidences()
    asked = {
        "uniform": uniform,
        "replacement": once.replacement(rate),
        "shared lists": shared,
        "seen items": lists.left_out(lists.seen),
        "targets": lists.left_out(lists.own),
    }
    tests = {question: tested for question, tested in asked.items() if tested is not None}
    corrected = holm([tested.p_value for tested in tests.values()])
    for (question, tested), p_value in zip(list(tests.items()), corrected, strict=True):
        tests[question] = tested._replace(p_value=p_value)
    findings = []
    for question, (statistic, say) in _QUESTIONS.items():
        if question in tests:
            answer, sentence = say(tests[question], lists, once)
            row = (question, answer, sentence, statistic, *tests[question])
            findings.append(Finding(*row, concern=answer in CONCERNS))
        elif question == "uniform":
            text = "A single list, or lists of all items, cannot tell the chances of items."
            findings.append(Finding(question, "cannot tell", text, statistic))
    answers = {finding.question: finding.answer for finding in findings}
    law = {"no": "other", "cannot tell": "unknown"}.get(answers["uniform"], "uniform")
    call, advice = _advice(answers, lists, once)
    sampled = int(lists.sizes.min()), int(lists.sizes.max())
    return Audit(lists.items, len(lists.sizes), sampled, law, tuple(findings), call, advice)


def _variation(uniform: Tested) -> float:
    """Return by how much the chances of items vary, relative to their mean."""
    return math.sqrt(max(uniform.value / uniform.expected - 1.0, 0.0))


def _on_chances(tested: Tested, lists: Lists, once: Lists) -> tuple[str, str]:
    if not tested.surprises:
        return "yes", "All candidates were drawn equally often, up to chance."
    if tested.value < tested.expected:
        return (
            "too even",
            "Items were drawn more evenly than by chance: lists depend on each other.",
        )
    variation = _variation(tested)
    text = f"Chances of items vary by {percent(variation)} (coefficient of variation)"
    if variation < NEARLY:
        return "nearly", f"{text}: too little to matter."
    along = {"item number": np.arange(once.items, dtype=np.float64)}
    if lists.seen is not None:
        along["popularity"] = np.asarray(lists.seen.sum(axis=0), dtype=np.float64)
    usual = once.by_item(once.rate)
    means = "; the mean ".join(
        f"{name} is {once.counts @ values / once.counts.sum():,.1f} instead of "
        f"{usual @ values / usual.sum():,.1f}"
        for name, values in along.items()
    )
    never, expected = once.never_drawn()
    never_drawn = f"{never:,} items were never drawn instead of {expected:,.0f}"
    return "no", f"{text}. The mean {means}; {never_drawn}."


def _on_repeats(tested: Tested, *_: Lists) -> tuple[str, str]:
    found, expected, p_value = tested
    if not found:
        chance = "less than 0.001" if p_value < 0.001 else f"{p_value:.3f}"
        text = f"No list has an item twice; with replacement that had a probability of {chance}"
        if tested.surprises:
            return "without", f"{text}."
        return "cannot tell", f"{text}: lists are too short to tell, and it hardly matters."
    text = f"{found:,.0f} pairs of equal items stand in one list"
    if not tested.surprises:
        return "with", f"{text}, as many as chance with replacement gives."
    much, why = ("many", "filled up") if found > expected else ("few", "freed of some repeats")
    text += f", where chance with replacement gives {expected:,.1f}: lists were {why}."
    return f"with, too {much} repeats", text


def _on_sharing(_: Tested, lists: Lists, once: Lists) -> tuple[str, str]:
    total, distinct = len(lists.sizes), len(once.sizes)
    if once is lists:
        return "own", "Each target has negatives of its own."
    if distinct == 1:
        return "one list", f"All {total:,} targets share one list of negatives."
    return "some", f"Only {distinct:,} of {total:,} lists differ: targets share lists."


def _on_seen(tested: Tested, *_: Lists) -> tuple[str, str]:
    text = f"{tested.value:,.0f} negatives are items that their user has seen"
    if not tested.surprises:
        return ("kept" if tested.value else "cannot tell"), f"{text}, as many as by chance."
    text += f", where about {tested.expected:,.0f} would be by chance: "
    if not tested.value:
        return "left out", f"{text}seen items were left out."
    return "partly left out", f"{text}only some seen items were left out."


def _on_targets(tested: Tested, *_: Lists) -> tuple[str, str]:
    if tested.value:
        return "among them", f"{tested.value:,.0f} negatives are the target of their own list."
    return ("left out" if tested.surprises else "cannot tell"), "No list holds its own target."


#: Each question: what is counted for it, and what its test is in words.
_QUESTIONS: dict[str, tuple[str, Callable[[Tested, Lists, Lists], tuple[str, str]]]] = {
    "uniform": ("coincidences", _on_chances),
    "replacement": ("equal pairs", _on_repeats),
    "shared lists": ("lists used again", _on_sharing),
    "seen items": ("draws", _on_seen),
    "targets": ("draws", _on_targets),
}


def _advice(answers: dict[str, str], lists: Lists, once: Lists) -> tuple[str | None, str]:
    """Return the call that fits, or None, and what to do."""
    if answers["uniform"] == "no":
        return None, _refusal(lists, once)
    if answers.get("targets") == "among them":
        return None, "Take the targets out of their own lists, rank again, and audit again."
    options, notes = [f"items={lists.items}", f"sampled={lists.sizes[0]}"], []
    if lists.sizes.min() < lists.sizes.max():
        options[1] = "sampled=sizes"
        notes.append("sizes is how many negatives each target has")
    if answers["replacement"] == "without":
        options.append("replacement=False")
    if answers.get("seen items") in ("kept", "partly left out"):
        options.append('candidates="all"')
    elif answers.get("seen items") == "left out":
        options[0] += " - seen"
        options.append('candidates="unseen"')
        notes.append("seen is how many items the user of each target has seen")
    if answers.get("shared lists") in ("one list", "some"):
        options.append('negatives="shared"')
    if answers.get("shared lists") == "some":
        notes.append("targets of one batch depend on each other, so intervals are bounds")
    text = "; ".join(["Estimate with the call below", *notes]) + "."
    if answers["uniform"] == "cannot tell":
        text += " These lists cannot show that they were drawn uniformly."
    return f"unsample.estimate(ranks, {', '.join(options)})", text


def _refusal(lists: Lists, once: Lists) -> str:
    """Return what to do with negatives that were not drawn uniformly."""
    text = (
        "Ranks against these negatives do not tell full-catalogue metrics: a rank tells what "
        "share of the draws is above the target, not how many items are. Evaluate the model "
        "(unsample.evaluate), or draw uniformly and rank again."
    )
    if lists.seen is None:
        text += " If items that users have seen were left out, give exclude and audit again."
    never, expected = once.never_drawn()
    if never > 2.0 * expected:
        text += " If items that were never drawn are no candidates, audit without them."
    return text
