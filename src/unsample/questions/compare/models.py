"""The models of a comparison: what is known of each, and which users they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from unsample.counts import ModelCounts, PairCounts, RankCounts, Targets, pairs_between
from unsample.errors import InputError
from unsample.questions.estimate.inputs import Inputs
from unsample.questions.estimate.result import Estimates
from unsample.tables import RUN_OF, is_table

if TYPE_CHECKING:
    from unsample.questions.evaluate.result import Evaluation
    from unsample.questions.published.result import Published

#: What the users of two models are matched by.
USER, POSITION = "user", "position"


@dataclass(frozen=True, eq=False)
class Models:
    """Models, or runs of them: their counts, and of each two the pairs of targets of one user."""

    counts: Mapping[str, RankCounts]
    between: Mapping[tuple[str, str], PairCounts] = field(default_factory=dict)
    #: What users are matched by; empty if they are not.
    matched: str = ""
    #: Why users are not matched, or not all of them.
    unmatched: str = ""
    #: The results of `evaluate` or of `published`, if it is these that are compared.
    made: Mapping[str, Evaluation | Published] = field(default_factory=dict)
    #: Whether metrics are per target.
    filtered: bool = False

    @classmethod
    def of(cls, sources: Mapping[str, Any], inputs: Inputs) -> Models:
        """Return models from any form in which they may be given; all must have the same."""
        kinds = {name: _kind(name, source) for name, source in sources.items()}
        if len({*kinds.values()}) > 1:
            listed = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise InputError(
                "models must all be arrays of ranks, all be tables, all be results of evaluate, or "
                f"all be results of published, got {listed}; give all of them in one form"
            )
        results = {name: kind for name, kind in kinds.items() if kind in ("evaluate", "published")}
        for name, kind in results.items():
            inputs.check_agrees(f"what {kind} found of {name}", sources[name].counts)
        if "evaluate" in kinds.values():
            return cls._of_evaluations(sources)
        if "published" in kinds.values():
            return cls({name: each.counts for name, each in sources.items()}, made=sources)
        found = inputs.tables(sources) if "tables" in kinds.values() else sources
        if isinstance(found, ModelCounts):
            return cls._of_counts(found, USER, inputs.asked.filtered)
        # Users are given for a model, and are those of all its runs.
        models = {name: name.partition(RUN_OF)[0] for name in sources}
        return cls._of_ranks({n: inputs.targets(each, models[n]) for n, each in found.items()})

    @property
    def ranked(self) -> dict[str, Evaluation]:
        """Return the evaluations that know the value of each user, or of each that was drawn."""
        found = {name: each for name, each in self.made.items() if is_evaluation(each)}
        return {name: each for name, each in found.items() if each.design.certifies}

    @classmethod
    def _of_evaluations(cls, made: Mapping[str, Evaluation]) -> Models:
        """Return models that were evaluated, matched by user."""
        counts = {name: each.counts for name, each in made.items()}
        first, *others = made
        other = next(filter(None, (_other_target(made, first, name) for name in others)), "")
        if other:
            return cls(counts, unmatched=other, made=made)
        common = {n: len(np.intersect1d(made[first].users, made[n].users)) for n in others}
        # Where each user's value is known, no pairs of cells are needed.
        sampled = {name: each for name, each in made.items() if not each.design.certifies}
        between = pairs_between({n: (each.users, each.found.cells) for n, each in sampled.items()})
        return cls(counts, between, USER, _partly(counts, common), made)

    @classmethod
    def _of_ranks(cls, found: Mapping[str, Targets | RankCounts]) -> Models:
        """Return models with ranks, matched by user or, without users, by position."""
        targets = {name: each for name, each in found.items() if isinstance(each, Targets)}
        filtered = any(each.filtered for each in targets.values())
        why = _why_unmatched(targets, found)
        if why:
            known = {name: each for name, each in found.items() if isinstance(each, RankCounts)}
            counts = {
                name: known[name] if name in known else targets[name].counts for name in found
            }
            return cls(counts, unmatched=why, filtered=filtered)
        matched = POSITION if next(iter(targets.values())).users is None else USER
        return cls._of_counts(ModelCounts.of_targets(targets), matched, filtered)

    @classmethod
    def _of_counts(cls, counts: ModelCounts, matched: str, filtered: bool) -> Models:
        """Return models whose counts know pairs of targets of one user."""
        between = counts.between
        if not between:
            why = "no user is known to be that of two models"
            return cls(counts, unmatched=why, filtered=filtered)
        # Two models without any user in common have no pairs.
        first, *others = counts
        pairs = {n: between.get((first, n)) or between.get((n, first)) for n in others}
        common = {name: round(each.users) if each else 0 for name, each in pairs.items()}
        return cls(counts, between, matched, _partly(counts, common), filtered=filtered)


def is_evaluation(result: object) -> TypeGuard[Evaluation]:
    """Return whether `evaluate` made a result."""
    return isinstance(result, Estimates) and result.made_by == "evaluate"


def is_published(result: object) -> TypeGuard[Published]:
    """Return whether `published` made a result."""
    return isinstance(result, Estimates) and result.made_by == "published"


def _kind(name: str, source: Any) -> str:
    """Return what a model is given by."""
    if is_evaluation(source) or is_published(source):
        return str(source.made_by)
    if isinstance(source, Estimates):
        raise InputError(f"{name} must be ranks or an evaluation, got estimates; give its ranks")
    return "tables" if is_table(source) else "arrays"


def _partly(counts: Mapping[str, RankCounts], common: Mapping[str, int]) -> str:
    """Return which model shares only some users with the first, or an empty text if none does."""
    first = next(iter(counts))
    for name, shared in common.items():
        most = max(counts[first].users, counts[name].users)
        if shared < most:
            return f"{first} and {name} have {shared:,} of {most:,} users in common"
    return ""


def _why_unmatched(targets: Mapping[str, Targets], names: Iterable[str]) -> str:
    """Return why the targets of models cannot be matched, or an empty text if they can."""
    for name in names:
        if name not in targets:
            return f"RankCounts for {name}, which do not know users"
        first, one = next(iter(targets.items()))
        if (one.users is None) != (targets[name].users is None):
            return f"users for only one of {first} and {name}"
        sizes = len(one.ranks), len(targets[name].ranks)
        if one.users is None and sizes[0] != sizes[1]:
            return f"{sizes[0]:,} targets of {first} and {sizes[1]:,} of {name}"
    return ""


def _other_target(made: Mapping[str, Evaluation], first: str, name: str) -> str:
    """Return why two models of the same users have other targets, or an empty text."""
    one, other = (
        {*zip(each.users.tolist(), each.targets.tolist(), strict=True)}
        for each in (made[first], made[name])
    )
    if one == other or {user for user, _ in one} != {user for user, _ in other}:
        return ""
    user, item = min(one ^ other)
    return f"other targets for {name} than for {first}, such as item {item} of user {user}"
