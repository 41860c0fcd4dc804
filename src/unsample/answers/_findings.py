"""What an audit finds: each question with its test, and the answer in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unsample.answers._looked import NEARLY, Looked
from unsample.answers._result import percent
from unsample.confidence import CountTest, Power


@dataclass(frozen=True)
class Finding:
    """One question, its answer, and how certain the answer is."""

    question: str
    answer: str
    #: What ``value`` is. ``expected`` is its value under the tested law; None if there is none.
    statistic: str
    value: float | None
    expected: float | None
    sentence: str
    #: Corrected for the number of tests; None if nothing was tested.
    p_value: float | None = None
    #: The interval of ``value``, if that is an estimate.
    low: float | None = None
    high: float | None = None
    #: Whether it breaks what `estimate` assumes, unless the call states it.
    concern: bool = False

    @property
    def certain(self) -> bool:
        """Return whether it is a plain count, without randomness."""
        return self.p_value is None and self.value is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a row."""
        names = ("question", "answer", "statistic", "value", "expected", "low", "high", "p_value")
        return {
            **{name: getattr(self, name) for name in names},
            "certain": self.certain,
            "concern": self.concern,
            "sentence": self.sentence,
        }


@dataclass(frozen=True, eq=False)
class Words:
    """Findings in words, from tests with corrected p-values."""

    looked: Looked
    tests: dict[str, CountTest]
    level: float

    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, in the order of their questions."""
        made: list[Callable[[], Finding | None]] = [
            self.sizes, self.replacement, self.uniform, self.probabilities, self.popularity,
            self.numbers, self.seen, self.targets, self.shared, self.neighbours, self.never,
        ]  # fmt: skip
        return tuple(finding for make in made if (finding := make()) is not None)

    def refuted(self, question: str) -> bool:
        """Return whether the data refute what the test of a question assumes."""
        tested = self.tests.get(question)
        return tested is not None and tested.p_value < 1.0 - self.level

    @cached_property
    def variation(self) -> float:
        """Return the largest significant variation of the items' probabilities."""
        p_values = {name: tested.p_value for name, tested in self.tests.items()}
        return self.looked.variation(p_values, 1.0 - self.level)

    @cached_property
    def law(self) -> str:
        """Return ``"uniform"``, ``"stated"``, ``"popularity"``, ``"other"`` or ``"unknown"``.

        It is unknown with one list, or with lists that overlap without being equal.
        """
        if self.overlapping or self.looked.complete:
            return "unknown"
        if self.fewer:
            return "other"
        if self.variation < NEARLY:
            return "uniform" if "uniform" in self.tests else "unknown"
        stated = self.looked.stated
        if stated is not None and not self._off(stated, "probabilities"):
            return "stated"
        power = self.looked.power
        # Nobody prefers unpopular items: here seen items were left out.
        if power is None or power.exponent <= 0.0 or not self.refuted("popularity"):
            return "other"
        off = self._off(power, "fit of popularity") or self.looked.strays > 0
        return "other" if off else "popularity"

    @cached_property
    def fewer(self) -> bool:
        """Return whether only some of the items were drawn, and these equally often."""
        some = self.looked.catalogue < self.looked.negatives.items
        return some and self.refuted("never drawn")

    def _off(self, law: Power, question: str) -> bool:
        """Return whether a law does not fit, not even nearly."""
        return self.refuted(question) and law.misfit >= NEARLY

    @cached_property
    def avoided(self) -> bool:
        """Return whether popular items may be missing because users had seen them."""
        if self.law != "other" or self.fewer or self.looked.negatives.exclude is not None:
            return False
        power = self.looked.power
        return not self.refuted("item numbers") if power is None else power.exponent < 0.0

    @cached_property
    def overlapping(self) -> bool:
        """Return whether neighbours share more items than by chance, without being equal."""
        apart = self.sharing == "own" and not self.looked.complete
        return apart and self.refuted("neighbours")

    def sizes(self) -> Finding:
        """Return how long the lists are."""
        sizes = self.looked.negatives.sizes
        low, high = int(sizes.min()), int(sizes.max())
        if low == high:
            sentence = f"Each target has {low:,} negatives."
        else:
            few = int((sizes < high).sum())
            sentence = (
                f"Targets have {low:,} to {high:,} negatives, {few:,} of them fewer than {high:,}: "
                "sampled differs by target."
            )
        answer = "equal" if low == high else "different"
        return Finding("sizes", answer, "mean", float(sizes.mean()), None, sentence)

    def replacement(self) -> Finding:
        """Return whether an item may occur twice in a list."""
        tested = self.tests["replacement"]
        lists = int((self.looked.found.repeats > 0).sum())
        repeats = int(self.looked.found.repeats.sum())
        base = Finding(
            "replacement", "", "equal pairs", tested.value, tested.expected, "", tested.p_value
        )
        if tested.value == 0:
            if self.refuted("replacement"):
                text = (
                    "No list has an item twice; with replacement that had a probability of "
                    f"{_chance(tested.p_value)}."
                )
                return replace(base, answer="without", sentence=text)
            text = (
                "No list has an item twice, as would often be so with replacement too: lists are "
                "too short to tell, and it makes no difference."
            )
            return replace(base, answer="cannot tell", sentence=text)
        text = f"{repeats:,} draws in {lists:,} lists repeat an item of their list"
        if not self.refuted("replacement"):
            return replace(
                base, answer="with", sentence=f"{text}, as often as chance with replacement."
            )
        more = tested.value > tested.expected
        text += f": {_times(tested)} as many equal pairs as chance with replacement gives. " + (
            "Lists may have been filled up, or drawn from few items."
            if more
            else "Repeats were taken out of some lists, or lists were drawn in parts."
        )
        return replace(
            base,
            answer="with, too many repeats" if more else "with, too few repeats",
            sentence=text,
            concern=True,
        )

    def uniform(self) -> Finding:
        """Return whether all items have the same probability."""
        tested = self.tests.get("uniform")
        if tested is None or self.looked.complete:
            text = "One list cannot tell which chances the items have."
            if self.looked.complete:
                text = "Each list holds all its candidates: nothing was sampled."
            return Finding("uniform", "cannot tell", "coincidences", None, None, text)
        base = Finding(
            "uniform", "yes", "coincidences", tested.value, tested.expected, "", tested.p_value
        )
        whose = "unseen items" if self.looked.seen_out else "items"
        if not self.refuted("uniform"):
            answer, text = "yes", f"All {whose} were drawn equally often, up to chance."
            if self.fewer:
                answer = "among some"
                text = f"The {self.looked.catalogue:,} items that occur were drawn equally often."
            elif self.law != "uniform":
                answer = "no"
                text = "Equal chances are not refuted by this test alone; others below refute them."
            return replace(base, answer=answer, sentence=text)
        if tested.value < tested.expected:
            text = (
                "Items were drawn more evenly than chance does it: as if dealt out in turn. The "
                "lists depend on each other."
            )
            return replace(base, answer="too even", sentence=text, concern=True)
        text = f"The chances of {whose} vary by {percent(self.looked.variations['uniform'])}"
        text += " (coefficient of variation)"
        if self.law == "uniform":
            return replace(base, answer="nearly", sentence=f"{text}: too little to matter.")
        text += ": they were not drawn uniformly."
        if self.avoided and self.looked.power is None:
            text += " Items that users have seen may have been left out: give exclude to test it."
        return replace(base, answer="no", sentence=text, concern=self.law == "other")

    def probabilities(self) -> Finding | None:
        """Return whether the stated probabilities agree with the draws."""
        stated, tested = self.looked.stated, self.tests.get("probabilities")
        if stated is None or tested is None:
            return None
        figure = f"chi-square {tested.value:,.0f}, {tested.expected:,.0f} expected"
        base = Finding(
            "probabilities", "fit", "chi-square", tested.value, tested.expected,
            f"The draws agree with the probabilities given ({figure}).", tested.p_value,
            concern=self.law == "stated",
        )  # fmt: skip
        if not self.refuted("probabilities"):
            return base
        off = f"off by {percent(stated.misfit)} ({figure})"
        if stated.misfit < NEARLY:
            text = f"The probabilities given are {off}: too little to matter."
            return replace(base, answer="nearly", sentence=text)
        text = f"The draws contradict the probabilities given, which are {off}."
        return replace(base, answer="contradicted", sentence=text, concern=True)

    def popularity(self) -> Finding | None:
        """Return how the probabilities depend on popularity."""
        power, tested = self.looked.power, self.tests.get("popularity")
        if power is None or tested is None:
            return None
        low, high = power.interval(self.level)
        base = Finding("popularity", "no", "exponent", power.exponent, 0.0, "", tested.p_value,
                       low, high)  # fmt: skip
        range_ = f"{power.exponent:.3f} ({low:.3f} to {high:.3f})"
        if not self.refuted("popularity"):
            return replace(base, sentence=f"Chances do not follow popularity: exponent {range_}.")
        if self.avoided:
            text = (
                f"Popular items were drawn less often than others: exponent {range_}. Users may "
                "have seen them: give exclude to test it."
            )
            return replace(base, answer="avoided", sentence=text, concern=True)
        text = f"An item's chance goes with its popularity to the power {range_}"
        plain = {
            "popularity": ("yes", ", and that law fits."),
            "uniform": ("hardly", ": too little to matter."),
            "stated": ("as stated", ", as stated."),
        }
        if self.law in plain:
            answer, rest = plain[self.law]
            concern = self.law == "popularity"
            return replace(base, answer=answer, sentence=text + rest, concern=concern)
        text += f", but that law is off by {percent(power.misfit)}"
        if self.looked.strays:
            text += f", and {self.looked.strays:,} draws are of items without popularity"
        text += ": it is not the whole story."
        return replace(base, answer="partly", sentence=text, concern=True)

    def numbers(self) -> Finding | None:
        """Return whether low or high item numbers are drawn more often."""
        tested = self.tests.get("item numbers")
        if tested is None:
            return None
        base = Finding(
            "item numbers", "no preference", "mean number", tested.value, tested.expected,
            "Low and high item numbers were drawn alike.", tested.p_value,
        )  # fmt: skip
        if not self.refuted("item numbers"):
            return base
        side = "low" if tested.value < tested.expected else "high"
        text = (
            f"{side.capitalize()} item numbers were drawn more often: their mean is "
            f"{tested.value:,.1f} where {tested.expected:,.1f} is expected."
        )
        if self.law == "uniform":
            return replace(base, answer=f"{side}, hardly", sentence=text)
        if self.law in ("popularity", "stated"):
            return replace(base, answer=side, sentence=f"{text} Chances may go with the number.")
        return replace(base, answer=side, sentence=text, concern=True)

    def seen(self) -> Finding | None:
        """Return whether training items of users are among their negatives."""
        tested = self.tests.get("seen items")
        if tested is None:
            return None
        base = Finding("seen items", "", "draws", tested.value, tested.expected, "", tested.p_value)
        if tested.value == 0:
            if self.refuted("seen items"):
                text = (
                    "No negative is an item that its user has seen, where about "
                    f"{tested.expected:,.0f} would be: seen items were left out."
                )
                return replace(base, answer="left out", sentence=text)
            text = "No negative is an item that its user has seen, but hardly one would be."
            return replace(base, answer="cannot tell", sentence=text)
        text = f"{int(tested.value):,} negatives are items that their user has seen"
        if not self.refuted("seen items"):
            return replace(
                base, answer="kept", sentence=f"{text}, as many as if nothing was left out."
            )
        text += f", where about {tested.expected:,.0f} would be if nothing was left out: "
        text += "only some of them were left out."
        return replace(base, answer="partly left out", sentence=text, concern=True)

    def targets(self) -> Finding | None:
        """Return whether targets are among their own negatives."""
        tested = self.tests.get("targets")
        if tested is None:
            return None
        base = Finding("targets", "", "draws", tested.value, tested.expected, "", tested.p_value)
        if tested.value > 0:
            lists = int((self.looked.found.targets > 0).sum())
            text = (
                f"{lists:,} lists hold their own target, which then ties with itself: take it out, "
                "or draw again."
            )
            return replace(base, answer="among them", sentence=text, p_value=None, concern=True)
        if self.refuted("targets"):
            return replace(base, answer="left out", sentence="No list holds its own target.")
        text = "No list holds its own target, as would often be so by chance."
        return replace(base, answer="cannot tell", sentence=text)

    @cached_property
    def sharing(self) -> str:
        """Return how lists are shared: own, one pool, batches, reused, by user, some."""
        looked = self.looked
        total, distinct = len(looked.negatives), looked.distinct
        if total > 1 and distinct == 1 and not looked.complete:
            return "one pool"
        if distinct == total or looked.complete or not self.refuted("shared lists"):
            return "own"
        same = looked.found.same
        users = looked.negatives.users
        if len(np.unique(users)) < total and (users[same] == users).all():
            return "by user"
        if int((same[1:] != same[:-1]).sum()) + 1 == distinct:
            return "batches"
        if (same[distinct:] == same[:-distinct]).all():
            return "reused"
        return "some"

    def shared(self) -> Finding | None:
        """Return whether targets have their own lists or share them."""
        tested = self.tests.get("shared lists")
        if tested is None:
            return None
        looked, how = self.looked, self.sharing
        total, distinct = len(looked.negatives), looked.distinct
        base = Finding(
            "shared lists", how, "equal pairs of lists", tested.value, tested.expected, "",
            tested.p_value, concern=how != "own",
        )  # fmt: skip
        text = {
            "own": "Each target has negatives of its own.",
            "one pool": f"All {total:,} targets share one list of negatives.",
            "batches": f"Neighbours share their lists: {distinct:,} pools for {total:,} targets.",
            "reused": f"The same {distinct:,} lists come again and again, in the same order: a "
            f"fixed file was used {total / distinct:.3g} times.",
            "by user": f"The targets of a user share one list: {distinct:,} lists for {total:,} "
            "targets.",
            "some": f"Only {distinct:,} of {total:,} lists differ: lists were used again.",
        }[how]
        if how == "own" and distinct < total and not looked.complete:
            text = f"Only {distinct:,} of {total:,} lists differ, as chance has it for short lists."
        return replace(base, sentence=text)

    def neighbours(self) -> Finding | None:
        """Return whether neighbours have more in common than other lists."""
        tested = self.tests.get("neighbours")
        if tested is None or self.sharing in ("one pool", "batches"):
            return None
        base = Finding(
            "neighbours", "independent", "common items", tested.value, tested.expected,
            "Neighbouring lists have no more in common than others.", tested.p_value,
        )  # fmt: skip
        if not self.refuted("neighbours"):
            return base
        text = (
            f"Neighbouring lists have {tested.value:.3g} items in common, others "
            f"{tested.expected:.3g}: pools were shared within batches. Tests of other questions "
            "take lists for independent, and are not to be trusted here."
        )
        return replace(base, answer="overlap", sentence=text, concern=self.overlapping)

    def never(self) -> Finding:
        """Return how many items were never drawn."""
        tested, looked = self.tests.get("never drawn"), self.looked
        found = int((looked.lists.counts == 0).sum())
        items = looked.negatives.items
        if tested is None:
            text = f"{found:,} of {items:,} items were never drawn."
            return Finding("never drawn", "some" if found else "none", "items", found, None, text)
        base = Finding(
            "never drawn", "as expected", "items", tested.value, tested.expected,
            f"{found:,} of {items:,} items were never drawn, as chance has it.", tested.p_value,
        )  # fmt: skip
        if not self.refuted("never drawn"):
            return base
        text = (
            f"{found:,} of {items:,} items were never drawn, where {tested.expected:,.1f} are "
            "expected"
        )
        if looked.catalogue < items:
            text += f", and all others equally often: {looked.catalogue:,} seem to be candidates."
        else:
            text += ": they do not seem to be candidates."
        return replace(base, answer="too many", sentence=text, concern=True)


def _times(tested: CountTest) -> str:
    return (
        f"{tested.value / tested.expected:.3g} times" if tested.expected > 0.0 else "far more than"
    )


def _chance(p_value: float) -> str:
    return "less than 0.001" if p_value < 0.001 else f"{p_value:.3f}"
