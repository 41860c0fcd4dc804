"""`audit`: how negatives were drawn, and which `estimate` call fits them.

Two draws coincide if they are of the same item. How often draws of *different* lists coincide tells
how equal the chances of the items are; how often draws of *one* list coincide tells whether an item
may come twice. Both have known moments if draws are uniform, so the tests hold for few draws as
well as for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    FloatArray,
    IntArray,
    as_index,
    as_integer_array,
    at_position,
    check_integer,
)
from unsample._gone import refuses_gone
from unsample.answers._result import Result, percent
from unsample.confidence import holm
from unsample.designs import Excluded, as_excluded
from unsample.errors import DesignError, InputError
from unsample.tables import is_table, read_items

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
_LISTS = (
    "negatives must be a two-dimensional array (a row for each target), a sequence of arrays, or a "
    "table with columns user and item"
)


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
        for finding in self.findings:
            if finding.question == question:
                return finding
        asked = ", ".join(finding.question for finding in self.findings)
        raise KeyError(f"no finding {question!r}; there are {asked}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the findings that break what `estimate` assumes."""
        return tuple(finding.sentence for finding in self.findings if finding.concern)

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
        return [dict(vars(finding)) for finding in self.findings]


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
    lists = _read(negatives, items, targets, exclude, columns)
    if not lists.drawn.nnz:
        raise InputError("negatives must hold at least one item, got none")
    words = _Words(lists)
    sizes = int(lists.sizes.min()), int(lists.sizes.max())
    call, advice = words.advice()
    return Audit(items, len(lists.sizes), sizes, words.law, words.findings(), call, advice)


# -- what is given ---------------------------------------------------------------------------------


def _read(
    negatives: Any,
    items: int,
    targets: npt.ArrayLike | None,
    exclude: Any,
    columns: Mapping[str, str] | None,
) -> Lists:
    """Return the lists of an array, of a sequence of arrays, or of a table."""
    if is_table(negatives):
        if targets is not None:
            raise InputError("targets must be a column 'target' where negatives are a table")
        return _read_table(negatives, items, exclude, columns)
    ids, sizes = _flat(negatives, items)
    every = np.arange(len(sizes))
    drawn = _matrix(np.repeat(every, as_index(sizes)), ids, len(sizes), items)
    own = seen = None
    if targets is not None:
        aims = _numbers("targets", targets, items)
        if len(aims) != len(sizes):
            raise InputError(
                f"targets must hold the target of each of the {len(sizes):,} lists, got "
                f"{len(aims):,}"
            )
        own = _matrix(every, aims, len(sizes), items)
    if exclude is not None:
        seen = _once(as_excluded(exclude, items))
        if seen.shape[0] != len(sizes):
            raise InputError(
                f"exclude must have a row for each of the {len(sizes):,} lists, got "
                f"{seen.shape[0]:,}; take the rows of their users: exclude[users]"
            )
    return Lists(drawn, seen, own)


def _read_table(
    negatives: Any, items: int, exclude: Any, columns: Mapping[str, str] | None
) -> Lists:
    """Return the lists of a table, a list for each user."""
    rows = read_items(negatives, items=items, columns=columns)
    names, owner = np.unique(rows["user"], return_inverse=True)
    own = seen = None
    mine = rows.get("target", np.zeros(len(owner))) == 1
    if mine.any():
        own = _matrix(owner[mine], rows["item"][mine], len(names), items)
    drawn = _matrix(owner[~mine], rows["item"][~mine], len(names), items)
    if exclude is not None:
        if not is_table(exclude):
            raise InputError(
                "exclude must be a table of user and item where negatives are one, got "
                f"{type(exclude).__name__}"
            )
        named = {role: name for role, name in (columns or {}).items() if role != "target"}
        pairs = read_items(exclude, items=items, columns=named)
        row = np.searchsorted(names, pairs["user"]).clip(max=len(names) - 1)
        known = names[row] == pairs["user"]
        if not known.any():
            raise InputError(
                f"exclude must name users of negatives, got none of the {len(names):,} among "
                f"them, such as {str(names[0])!r}; its first user is {str(pairs['user'][0])!r}"
            )
        seen = _once(_matrix(row[known], pairs["item"][known], len(names), items))
    return Lists(drawn, seen, own)


def _flat(negatives: Any, items: int) -> tuple[IntArray, IntArray]:
    """Return the item numbers of all lists, and how long each list is."""
    if isinstance(negatives, np.ndarray) and negatives.ndim == 2:
        sizes = np.full(len(negatives), negatives.shape[1])
        return _numbers("negatives", negatives.reshape(-1), items), sizes
    if isinstance(negatives, np.ndarray) and negatives.ndim != 1:
        raise InputError(f"{_LISTS}, got an array of shape {negatives.shape}")
    if isinstance(negatives, str) or not isinstance(negatives, Sequence | np.ndarray):
        raise InputError(f"{_LISTS}, got {type(negatives).__name__}")
    if len(negatives) and np.ndim(negatives[0]) == 0:
        raise InputError(f"{_LISTS}, got one list of {len(negatives):,} values")
    parts = [_numbers(f"list {at} of negatives", part, items) for at, part in enumerate(negatives)]
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    return np.concatenate([*parts, np.empty(0, dtype=np.int64)]), sizes


def _numbers(name: str, values: Any, items: int) -> IntArray:
    """Return item numbers, and refuse others."""
    hint = "items are numbered from 0; where lists differ in length, pass a list of arrays"
    ids = as_integer_array(name, values, hint=hint, error=InputError).astype(np.int64, copy=False)
    bad = (ids < 0) | (ids >= items)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"{name} must hold item numbers in 0..{items - 1} ({items} items), got "
            f"{int(ids[place])} {at_position(place, len(ids))} ({int(bad.sum())} such numbers); "
            "items are numbered from 0; subtract 1 if yours start at 1"
        )
    return ids


def _matrix(
    rows: npt.NDArray[np.integer[Any]], ids: npt.NDArray[np.integer[Any]], size: int, items: int
) -> csr_array:
    """Return how often each row has each item."""
    from scipy.sparse import csr_array

    ones = np.ones(len(ids), dtype=np.int64)
    return csr_array((ones, (rows.reshape(-1), ids)), shape=(size, items))


def _once(matrix: csr_array) -> csr_array:
    """Return which items each row has, however often."""
    found = matrix.copy()
    found.data = np.ones(len(found.data), dtype=np.int64)
    return found


# -- what is found, and what uniform draws would give ----------------------------------------------


class Tested(NamedTuple):
    """A figure, what is expected of it, and how surprising it is."""

    value: float
    expected: float
    p_value: float


class Lists:
    """Lists of negatives, and what uniform draws among the candidates of each list would give.

    All matrices are of lists x items: ``drawn`` is how often each list holds each item, ``seen`` is
    what its user has seen, and ``own`` its target, where they are known.
    """

    def __init__(
        self, drawn: csr_array, seen: csr_array | None = None, own: csr_array | None = None
    ) -> None:
        self.drawn, self.seen, self.own = drawn, seen, own
        self.items = int(drawn.shape[1])
        self.sizes: IntArray = np.asarray(drawn.sum(axis=1), dtype=np.int64)
        self.counts: FloatArray = np.asarray(drawn.sum(axis=0), dtype=np.float64)
        # Pairs of equal items in each list.
        times = drawn.copy()
        times.data = times.data * (times.data - 1) // 2
        self.pairs: IntArray = np.asarray(times.sum(axis=1), dtype=np.int64)
        # What lists leave out: what never occurs of items that users have seen, and of targets.
        out = _matrix(np.empty(0, np.int64), np.empty(0, np.int64), len(self.sizes), self.items)
        for known in (seen, own):
            if known is not None and not self.among(known).any():
                out = out + known
        self.out = _once(out)
        self.candidates: FloatArray = self.items - np.asarray(self.out.sum(axis=1), np.float64)
        # How often a list draws one of its candidates: mean and variance.
        self.rate: FloatArray = self.sizes / np.maximum(self.candidates, 1.0)
        self.variance = self.rate
        if not self.pairs.any():
            left = self.candidates / np.maximum(self.candidates - 1.0, 1.0)
            self.variance = self.rate * (1.0 - self.rate) * left

    def among(self, known: csr_array) -> IntArray:
        """Return how many draws of each list are among the items that are known of it."""
        return np.asarray(self.drawn.multiply(known).sum(axis=1), dtype=np.int64)

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

    def coincidences(self) -> float:
        """Return which share of the pairs of draws of different lists is of the same item."""
        pairs = float(self.sizes.sum()) ** 2 - float((self.sizes.astype(float) ** 2).sum())
        equal = float((self.counts**2).sum()) - float((self.drawn.data.astype(float) ** 2).sum())
        return equal / pairs if pairs > 0.0 else 0.0

    def uniform(self) -> Tested | None:
        """Test whether all candidates have equal chances, by coincidences between lists.

        They are the squares of count minus expectation, added up, less the parts of single lists:
        a sum of products of independent lists. Its first three moments are exact where nothing is
        left out; the third has a part of three lists that coincide, and one of two.
        """
        if len(self.sizes) < 2 or (self.sizes >= self.candidates - 1.0).all():
            return None
        expected, v = self.by_item(self.rate), self.variance
        alone = self.sizes + 2 * self.pairs - self.rate * self.sizes
        excess = 0.5 * float(((self.counts - expected) ** 2).sum() - alone.sum())
        mean = 0.5 * float((expected**2).sum() - (self.rate * self.sizes).sum())
        one, two, three = (self.by_item(v**power) for power in (1, 2, 3))
        size, share = float(self.candidates.mean()), float(self.rate.mean())
        last = 1.0 - 1.0 / size
        variance = 0.5 * last * float((one**2 - two).sum())
        skew = 1.0 - 2.0 / size
        if not self.pairs.any():
            skew = (1.0 - 2.0 * share) ** 2 / skew
        third = last * float((one**3 - 3.0 * one * two + 2.0 * three).sum()) + variance * skew
        return Tested(mean + excess, mean, two_sided(mean + excess, mean, variance, third))

    def replacement(self, coincide: float | None = None) -> Tested:
        """Test the pairs of equal draws within lists, if items may come twice.

        ``coincide`` is how often draws are of the same item, where chances are not equal.
        """
        from scipy.special import gammaln

        sizes, found = self.sizes.astype(np.float64), float(self.pairs.sum())
        number = self.candidates if coincide is None else np.full(len(sizes), 1.0 / coincide)
        expected = float((0.5 * sizes * (sizes - 1.0) / number).sum())
        if found:
            triples = float((sizes * (sizes - 1.0) * (sizes - 2.0) / number**2).sum())
            return Tested(found, expected, two_sided(found, expected, expected, expected + triples))
        if (sizes > number).any():
            return Tested(0.0, expected, 0.0)
        none = gammaln(number + 1.0) - gammaln(number - sizes + 1.0) - sizes * np.log(number)
        return Tested(0.0, expected, math.exp(min(0.0, float(none.sum()))))

    def left_out(self, known: csr_array | None) -> Tested | None:
        """Test whether fewer draws are among the items known of their list than by chance."""
        from scipy.special import gammaincc

        if known is None:
            return None
        share = np.asarray(known.sum(axis=1), dtype=np.float64) / self.items
        expected, found = float((share * self.sizes).sum()), float(self.among(known).sum())
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
        orders = gammaln(sizes + 1.0)
        # Of all lists, those without repeats are equal most often, and those of likely items.
        plain = gammaln(np.maximum(self.items - sizes, 0) + 1.0) - gammaln(self.items + 1.0)
        likely = sizes * math.log(max(distinct.coincidences(), 1.0 / self.items))
        chance = np.exp(np.minimum(orders + np.maximum(plain, likely), 0.0))
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


#: An answer, its sentence, and whether it breaks what `estimate` assumes.
_Said: TypeAlias = tuple[str, str, bool]


class _Words:
    """The tests of an audit in words, and what to do."""

    def __init__(self, lists: Lists) -> None:
        shared = lists.shared()
        self.sharing = shared is not None and shared.p_value < ALPHA
        # Lists that are the same were drawn once.
        self.lists, self.once = lists, lists.distinct() if self.sharing else lists
        uniform, self.variation = self.once.uniform(), 0.0
        if uniform is not None:
            self.variation = math.sqrt(max(uniform.value / uniform.expected - 1.0, 0.0))
        uneven = uniform is not None and uniform.p_value < ALPHA and self.variation >= NEARLY
        found = {
            "uniform": uniform,
            "replacement": self.once.replacement(self.once.coincidences() if uneven else None),
            "shared lists": shared,
            "seen items": lists.left_out(lists.seen),
            "targets": lists.left_out(lists.own),
        }
        tests = {question: tested for question, tested in found.items() if tested is not None}
        corrected = holm([tested.p_value for tested in tests.values()])
        pairs = zip(tests.items(), corrected, strict=True)
        self.tests = {name: tested._replace(p_value=p) for (name, tested), p in pairs}
        self.refuted = {name for name, tested in self.tests.items() if tested.p_value < ALPHA}
        uneven = "uniform" in self.refuted and self.variation >= NEARLY
        self.law = "other" if uneven else "uniform" if "uniform" in tests else "unknown"

    def findings(self) -> tuple[Finding, ...]:
        """Return an answer to each question."""
        said: dict[str, tuple[str, Callable[..., _Said]]] = {
            "uniform": ("coincidences", self._uniform),
            "replacement": ("equal pairs", self._replacement),
            "shared lists": ("lists used again", self._shared),
            "seen items": ("draws", self._seen),
            "targets": ("draws", self._targets),
        }
        found = []
        for question, (statistic, say) in said.items():
            if question in self.tests:
                answer, text, concern = say(*self.tests[question])
                row = (question, answer, text, statistic, *self.tests[question], concern)
                found.append(Finding(*row))
            elif question == "uniform":
                text = "A single list, or lists of all items, cannot tell the chances of items."
                found.append(Finding(question, "cannot tell", text, statistic))
        return tuple(found)

    def _uniform(self, found: float, expected: float, _: float) -> _Said:
        vary = f"Chances of items vary by {percent(self.variation)} (coefficient of variation)"
        if "uniform" not in self.refuted:
            return "yes", "All candidates were drawn equally often, up to chance.", False
        if found < expected:
            text = "Items were drawn more evenly than by chance: lists depend on each other."
            return "too even", text, True
        if self.law == "uniform":
            return "nearly", f"{vary}: too little to matter.", False
        return "no", f"{vary}. {self._which()}", True

    def _which(self) -> str:
        """Return what shows which items were drawn more often than others."""
        along = {"item number": np.arange(self.once.items, dtype=np.float64)}
        if self.lists.seen is not None:
            along["popularity"] = np.asarray(self.lists.seen.sum(axis=0), dtype=np.float64)
        counts, usual = self.once.counts, self.once.by_item(self.once.rate)
        means = [
            f"the mean {name} is {counts @ values / counts.sum():,.1f} instead of "
            f"{usual @ values / usual.sum():,.1f}"
            for name, values in along.items()
        ]
        never, expected = self._never_drawn()
        text = f"{'; '.join(means)}; {never:,} items were never drawn instead of {expected:,.0f}."
        return text[0].upper() + text[1:]

    def _never_drawn(self) -> tuple[int, float]:
        """Return how many items were never drawn, and how many by chance."""
        expected = np.exp(-self.once.by_item(self.once.rate)).sum()
        return int((self.once.counts == 0).sum()), float(expected)

    def _replacement(self, found: float, expected: float, p_value: float) -> _Said:
        refuted = "replacement" in self.refuted
        if not found:
            chance = "less than 0.001" if p_value < 0.001 else f"{p_value:.3f}"
            text = f"No list has an item twice; with replacement that had a probability of {chance}"
            if refuted:
                return "without", f"{text}.", False
            return (
                "cannot tell",
                f"{text}: lists are too short to tell, and it hardly matters.",
                False,
            )
        text = f"{found:,.0f} pairs of equal items stand in one list"
        if not refuted:
            return "with", f"{text}, as many as chance with replacement gives.", False
        text += f", where chance with replacement gives {expected:,.1f}: lists were "
        if found > expected:
            return "with, too many repeats", f"{text}filled up, or drawn from few items.", True
        return "with, too few repeats", f"{text}freed of some repeats.", True

    def _shared(self, *_: float) -> _Said:
        if not self.sharing:
            return "own", "Each target has negatives of its own.", False
        total, distinct = len(self.lists.sizes), len(self.once.sizes)
        if distinct == 1:
            return "one list", f"All {total:,} targets share one list of negatives.", True
        return "some", f"Only {distinct:,} of {total:,} lists differ: targets share lists.", True

    def _seen(self, found: float, expected: float, _: float) -> _Said:
        text = f"{found:,.0f} negatives are items that their user has seen"
        if "seen items" not in self.refuted:
            return ("kept" if found else "cannot tell"), f"{text}, as many as by chance.", False
        text += f", where about {expected:,.0f} would be by chance: "
        if not found:
            return "left out", f"{text}seen items were left out.", False
        return "partly left out", f"{text}only some seen items were left out.", True

    def _targets(self, found: float, *_: float) -> _Said:
        if found:
            return "among them", f"{found:,.0f} negatives are the target of their own list.", True
        sure = "targets" in self.refuted
        return ("left out" if sure else "cannot tell"), "No list holds its own target.", False

    def advice(self) -> tuple[str | None, str]:
        """Return the call that fits, or None, and what to do."""
        if self.law == "other":
            return None, self._refusal()
        if "targets" in self.tests and self.tests["targets"].value:
            return None, "Take the targets out of their own lists, rank again, and audit again."
        lists, notes = self.lists, ["Estimate with the call below"]
        options = [f"items={lists.items}", f"sampled={lists.sizes[0]}"]
        if len(np.unique(lists.sizes)) > 1:
            options[1] = "sampled=sizes"
            notes.append("sizes is how many negatives each target has")
        if "replacement" in self.refuted and not lists.pairs.any():
            options.append("replacement=False")
        seen = self.tests.get("seen items")
        if seen is not None and seen.value:
            options.append('candidates="all"')
        elif "seen items" in self.refuted:
            options[0] += " - seen"
            options.append('candidates="unseen"')
            notes.append("seen is how many items the user of each target has seen")
        if self.sharing and len(self.once.sizes) == 1:
            options.append('negatives="shared"')
        elif self.sharing:
            options.append("pools=pools")
            notes.append("pools names the list of each target")
        text = "; ".join(notes) + "."
        if self.law == "unknown":
            text += " These lists cannot show that they were drawn uniformly."
        return f"unsample.estimate(ranks, {', '.join(options)})", text

    def _refusal(self) -> str:
        """Return what to do with negatives that were not drawn uniformly."""
        text = (
            "Ranks against these negatives do not tell full-catalogue metrics: a rank tells what "
            "share of the draws is above the target, not how many items are. Evaluate the model "
            "(unsample.evaluate), or draw uniformly and rank again."
        )
        never, expected = self._never_drawn()
        if self.lists.seen is None:
            text += " If items that users have seen were left out, give exclude and audit again."
        if never > 2.0 * expected:
            text += " If items that were never drawn are no candidates, audit without them."
        return text
