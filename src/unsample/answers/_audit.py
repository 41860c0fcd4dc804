"""`audit`: how negatives were drawn, and which `estimate` call fits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, Seed, as_integer_array, as_rng, check_integer, check_level
from unsample.answers._findings import Finding, Words
from unsample.answers._looked import Looked, Profile
from unsample.answers._result import DEFAULT_LEVEL, Result
from unsample.answers._seen import with_seen
from unsample.confidence import holm
from unsample.designs import Excluded
from unsample.errors import DesignError, InputError
from unsample.evidence import Negatives, check_item_numbers, check_probabilities
from unsample.tables import is_table, read_negatives

#: Each item has a counter of its own.
_LARGEST_CATALOGUE = 10**8


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
    #: The number of negatives of all targets together.
    draws: int
    #: ``"uniform"``, ``"stated"`` (the probabilities given fit), ``"popularity"``, ``"other"``, or
    #: ``"unknown"`` (only one list, or lists that overlap).
    law: str
    findings: tuple[Finding, ...]
    #: How draws change with the item's number, and with its popularity if that is known.
    profiles: tuple[Profile, ...]
    call: str | None
    advice: str
    level: float
    #: For how many tests the p-values were corrected (Holm).
    tests: int

    def __getitem__(self, question: str) -> Finding:
        for finding in self.findings:
            if finding.question == question:
                return finding
        asked = ", ".join(finding.question for finding in self.findings)
        raise KeyError(f"no finding {question!r}; there are {asked}")

    def __contains__(self, question: object) -> bool:
        return any(finding.question == question for finding in self.findings)

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
            "draws": self.draws,
            "law": self.law,
            "findings": self.rows(),
            "profiles": [profile.to_dict() for profile in self.profiles],
            "call": self.call,
            "advice": self.advice,
            "level": self.level,
            "tests": self.tests,
            "correction": "holm",
            "warnings": list(self.warnings),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each finding."""
        return [finding.to_dict() for finding in self.findings]


def audit(
    negatives: Any,
    *,
    items: int,
    targets: npt.ArrayLike | None = None,
    users: npt.ArrayLike | None = None,
    popularity: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
    exclude: Excluded | Any | None = None,
    columns: Mapping[str, str] | None = None,
    level: float = DEFAULT_LEVEL,
    rng: Seed = 0,
) -> Audit:
    """Find out how negatives were drawn: by which law, for whom, and what was left out.

    Every answer has a statistic, a p-value (unless it is a plain count) and a sentence. P-values
    are corrected for the number of tests (Holm), so that an audit of good negatives says something
    wrong in at most 5 of 100 cases.

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
    users
        The user of each list: a row of ``exclude``, or the name in its table. By default list t
        belongs to user t.
    popularity
        How often each item occurs in training. It shows on which power of popularity the draws
        depend. By default it is counted in ``exclude``.
    probabilities
        The probability of each item in a single draw, if it is stated, to test whether the draws
        agree. They must sum to one, and be above zero for every item that was drawn.
    exclude
        Items that users have seen: a sparse matrix of users x items as in `evaluate`, or a table
        with columns ``user`` and ``item``.
    columns
        Columns that have other names: ``{"item": "movie"}``.
    level
        The level of all tests together, and of the interval of the exponent.
    rng
        Seed or Generator of the permutations that compare neighbouring lists.

    >>> lists = np.random.default_rng(0).integers(1000, size=(500, 50))
    >>> result = audit(lists, items=1000)
    >>> result.law, result["replacement"].answer
    ('uniform', 'with')
    >>> result.call
    'unsample.estimate(ranks, items=1000, sampled=50)'
    """
    items = check_integer("items", items, minimum=2, maximum=_LARGEST_CATALOGUE, error=DesignError)
    level = check_level(level)
    drawn = _as_negatives(negatives, items, targets, users, exclude, columns)
    if not len(drawn) or not len(drawn.ids):
        raise InputError("negatives must hold at least one item, got none")
    known = _as_popularity(popularity, drawn)
    stated = None if probabilities is None else check_probabilities(probabilities, drawn.count())
    looked = Looked(drawn, known, stated, 1.0 - level, as_rng(rng))
    tests = looked.tests()
    corrected = holm([tested.p_value for tested in tests.values()])
    words = Words(
        looked,
        {
            name: replace(tested, p_value=p_value)
            for (name, tested), p_value in zip(tests.items(), corrected, strict=True)
        },
        level,
    )
    findings = words.findings()
    call, advice = _call(words, {finding.question: finding.answer for finding in findings})
    sizes = drawn.sizes
    return Audit(
        items,
        len(drawn),
        (int(sizes.min()), int(sizes.max())),
        int(sizes.sum()),
        words.law,
        findings,
        looked.profiles(),
        call,
        advice,
        level,
        len(tests),
    )


def _as_negatives(
    negatives: Any,
    items: int,
    targets: npt.ArrayLike | None,
    users: npt.ArrayLike | None,
    exclude: Any,
    columns: Mapping[str, str] | None,
) -> Negatives:
    if is_table(negatives):
        for name, value in (("targets", targets), ("users", users)):
            if value is not None:
                column = {"targets": "target", "users": "user"}[name]
                raise InputError(f"{name} must be a column {column!r} where negatives are a table")
        found, names = read_negatives(negatives, items=items, columns=columns)
    else:
        found = Negatives.of_lists(negatives, items=items, targets=_targets(targets, items))
        names = np.arange(len(found)) if users is None else np.asarray(users)
        if names.shape != (len(found),):
            raise InputError(
                f"users must name the user of each of the {len(found):,} lists, got shape "
                f"{names.shape}"
            )
    return with_seen(found, names, exclude, columns)


def _targets(targets: npt.ArrayLike | None, items: int) -> Any:
    if targets is None:
        return None
    hint = "a target is an item number"
    found = as_integer_array("targets", targets, hint=hint, error=InputError).astype(np.int64)
    check_item_numbers("targets", found, items)
    return found


def _as_popularity(popularity: npt.ArrayLike | None, drawn: Negatives) -> FloatArray | None:
    if popularity is None:
        if drawn.exclude is None:
            return None
        return np.asarray(drawn.exclude.sum(axis=0), dtype=np.float64).reshape(-1)
    try:
        found = np.asarray(popularity, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"popularity must be numbers, got {type(popularity).__name__}; count each item in "
            "training"
        ) from problem
    if found.shape != (drawn.items,):
        raise InputError(
            f"popularity must hold a count for each of the {drawn.items:,} items, got shape "
            f"{found.shape}"
        )
    bad = ~(np.isfinite(found) & (found >= 0.0))
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"popularity must be finite and at least 0, got {found[place]} for item {place}"
        )
    if not found.any():
        raise InputError("popularity must be above 0 for some item, got zeros alone")
    return found


def _call(words: Words, answers: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the call that fits, or None, and what to do."""
    obstacle = _obstacle(words, answers)
    if obstacle is not None:
        return None, obstacle
    looked = words.looked
    size = f"{looked.negatives.items}" + (" - seen" if looked.seen_out else "")
    if looked.complete:
        return f"unsample.exact(ranks, items={size})", "Ranks among all candidates are exact."
    options = [f"items={size}", *_options(words, answers)]
    meanings = {
        "- seen": "seen is how many items the user of each target has seen",
        "sampled=sizes": "sizes is how many negatives each target has",
        "pools=pools": "pools names the list of each target",
    }
    call = f"unsample.estimate(ranks, {', '.join(options)})"
    notes = [text for sign, text in meanings.items() if sign in call]
    advice = "; ".join(["Estimate with the call below", *notes]) + "."
    if words.law == "unknown":
        advice += " One list of negatives cannot show that it was drawn uniformly."
    return call, advice


def _obstacle(words: Words, answers: Mapping[str, str]) -> str | None:
    """Return what to do first if no call fits, else None."""
    looked = words.looked
    if words.avoided:
        return (
            "Give exclude, what users have seen, and audit again: uniform draws among unseen items "
            "look like this. If it is not that, ranks against these negatives do not tell "
            "full-catalogue metrics."
        )
    if words.fewer:
        return (
            f"Find out whether the {looked.negatives.items - looked.catalogue:,} items that were "
            "never drawn are candidates. If they are not, audit and estimate with "
            f"items={looked.catalogue}; if they are, ranks against these negatives do not tell "
            "full-catalogue metrics."
        )
    if words.law in ("stated", "popularity", "other"):
        return (
            "Ranks against these negatives do not tell full-catalogue metrics: a rank tells what "
            "share of the draws lies above the target, not how many items do. Draw uniformly, or "
            "evaluate the model with unsample.evaluate."
        )
    if answers.get("targets") == "among them":
        return "Take the targets out of their own lists, rank again, and audit again."
    if words.overlapping:
        return (
            "Find out which targets share a pool, and give it to estimate as pools= (or a column "
            "pool)."
        )
    return None


def _options(words: Words, answers: Mapping[str, str]) -> list[str]:
    """Return the options of `estimate` that say how the negatives were drawn."""
    sizes = words.looked.negatives.sizes
    options = [f"sampled={int(sizes[0])}" if int(np.ptp(sizes)) == 0 else "sampled=sizes"]
    if answers["replacement"] == "without":
        options.append("replacement=False")
    if answers.get("seen items") in ("left out", "kept"):
        options.append(f'candidates="{"unseen" if words.looked.seen_out else "all"}"')
    pools = {"own": [], "one pool": ['negatives="shared"'], "by user": ["pools=users"]}
    return [*options, *pools.get(words.sharing, ["pools=pools"])]
