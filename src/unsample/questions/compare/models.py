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
USER = "user"
POSITION = "position"
#: The forms in which models may be given.
ARRAYS = "arrays"
TABLES = "tables"
EVALUATE = "evaluate"
PUBLISHED = "published"


@dataclass(frozen=True, eq=False)
class Models:
    """Models, or runs of them: their counts, and pairs of targets of one user under two models."""

    counts: Mapping[str, RankCounts]
    between: Mapping[tuple[str, str], PairCounts] = field(default_factory=dict)
    #: How users are matched: `USER`, `POSITION`, or empty if they are not.
    matched: str = ""
    #: Why some users or all of them are not matched; empty if all are.
    unmatched: str = ""
    #: The results of `evaluate` or of `published`, if such results are compared.
    made: Mapping[str, Evaluation | Published] = field(default_factory=dict)
    #: Whether metrics are per target.
    filtered: bool = False

    @classmethod
    def of(cls, sources: Mapping[str, Any], inputs: Inputs) -> Models:
        """Return models from any form in which they may be given; all must have the same form."""
        kinds = {name: _kind(name, source) for name, source in sources.items()}
        if len({*kinds.values()}) > 1:
            listed = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise InputError(
                "models must all be arrays of ranks, all be tables, all be results of evaluate, or "
                f"all be results of published, got {listed}; give all of them in one form"
            )
        for name, kind in kinds.items():
            if kind in (EVALUATE, PUBLISHED):
                inputs.check_agrees(f"what {kind} found of {name}", sources[name].counts)
        kind = next(iter(kinds.values()), ARRAYS)
        if kind == EVALUATE:
            return cls._of_evaluations(sources)
        if kind == PUBLISHED:
            counts = {name: result.counts for name, result in sources.items()}
            return cls(counts, made=sources)
        read = inputs.tables(sources) if kind == TABLES else sources
        if isinstance(read, ModelCounts):
            return cls._of_counts(read, USER, filtered=inputs.asked.filtered)
        targets = {}
        for name, ranks in read.items():
            # All runs of a model have its users.
            model, _, _ = name.partition(RUN_OF)
            targets[name] = inputs.targets(ranks, model)
        return cls._of_ranks(targets)

    @property
    def ranked(self) -> dict[str, Evaluation]:
        """Return the evaluations that know the value of each user, or of each drawn user."""
        return {
            name: result
            for name, result in self.made.items()
            if is_evaluation(result) and result.design.certifies
        }

    @classmethod
    def _of_evaluations(cls, made: Mapping[str, Evaluation]) -> Models:
        """Return models that were evaluated, matched by user."""
        counts = {name: evaluation.counts for name, evaluation in made.items()}
        first, *others = made
        for name in others:
            difference = _other_target(made, first, name=name)
            if difference:
                return cls(counts, unmatched=difference, made=made)
        common = {name: len(np.intersect1d(made[first].users, made[name].users)) for name in others}
        # Where each user's value is known, no pairs of cells are needed.
        sampled = {
            name: (evaluation.users, evaluation.as_targets.cells)
            for name, evaluation in made.items()
            if not evaluation.design.certifies
        }
        return cls(
            counts,
            between=pairs_between(sampled),
            matched=USER,
            unmatched=_partly(counts, common),
            made=made,
        )

    @classmethod
    def _of_ranks(cls, models: Mapping[str, Targets | RankCounts]) -> Models:
        """Return models with ranks, matched by user or, without users, by position."""
        targets = {name: ranks for name, ranks in models.items() if isinstance(ranks, Targets)}
        filtered = any(ranks.filtered for ranks in targets.values())
        why = _why_unmatched(targets, models)
        if why:
            counts = {
                name: ranks if isinstance(ranks, RankCounts) else ranks.counts
                for name, ranks in models.items()
            }
            return cls(counts, unmatched=why, filtered=filtered)
        matched = POSITION if next(iter(targets.values())).users is None else USER
        return cls._of_counts(ModelCounts.of_targets(targets), matched, filtered=filtered)

    @classmethod
    def _of_counts(cls, counts: ModelCounts, matched: str, *, filtered: bool) -> Models:
        """Return models whose counts know pairs of targets of one user."""
        between = counts.between
        if not between:
            why = "no user is known to be that of two models"
            return cls(counts, unmatched=why, filtered=filtered)
        first, *others = counts
        common = {}
        for name in others:
            # Two models without any user in common have no pairs.
            pairs = between.get((first, name)) or between.get((name, first))
            common[name] = round(pairs.users) if pairs else 0
        return cls(
            counts,
            between=between,
            matched=matched,
            unmatched=_partly(counts, common),
            filtered=filtered,
        )


def is_evaluation(result: object) -> TypeGuard[Evaluation]:
    """Return whether `evaluate` made a result."""
    return isinstance(result, Estimates) and result.made_by == EVALUATE


def is_published(result: object) -> TypeGuard[Published]:
    """Return whether `published` made a result."""
    return isinstance(result, Estimates) and result.made_by == PUBLISHED


def _kind(name: str, source: Any) -> str:
    """Return the form in which a model is given."""
    if is_evaluation(source) or is_published(source):
        return str(source.made_by)
    if isinstance(source, Estimates):
        raise InputError(f"{name} must be ranks or an evaluation, got estimates; give its ranks")
    return TABLES if is_table(source) else ARRAYS


def _partly(counts: Mapping[str, RankCounts], common: Mapping[str, int]) -> str:
    """Return which model lacks users of the first or has others; empty if none does.

    ``common`` is how many users each model has in common with the first.
    """
    first = next(iter(counts))
    for name, shared in common.items():
        larger = max(counts[first].users, counts[name].users)
        if shared < larger:
            return f"{first} and {name} have {shared:,} of {larger:,} users in common"
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


def _other_target(made: Mapping[str, Evaluation], first: str, *, name: str) -> str:
    """Return why two models of the same users have other targets, or an empty text."""
    pairs = _pairs_of(made[first])
    other_pairs = _pairs_of(made[name])
    same_users = {user for user, _ in pairs} == {user for user, _ in other_pairs}
    if pairs == other_pairs or not same_users:
        return ""
    user, item = min(pairs ^ other_pairs)
    return f"other targets for {name} than for {first}, such as item {item} of user {user}"


def _pairs_of(evaluation: Evaluation) -> set[tuple[int, int]]:
    """Return the user and the item of each target."""
    return {*zip(evaluation.users.tolist(), evaluation.targets.tolist(), strict=True)}
