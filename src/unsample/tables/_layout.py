"""Which column means what, what it must hold, and the words for what is wrong.

A rule is written once and asked of arrays and of engines alike: both understand the same operators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import LARGEST_CATALOGUE, check_choice, check_integer, suggest
from unsample.errors import (
    DesignError,
    FileError,
    InputError,
    RankError,
    ScoreError,
    UnsampleWarning,
)

#: The names that the column to group by, and one that might have been meant, have inside.
LABEL, POOLED = "label", "pooled"
#: How many targets a user of scored rows has.
TARGETS = "targets"
#: Kind of rows -> the columns it needs.
_NEEDED = {
    "ranks": ("rank",),
    "comparisons": ("better", "tied"),
    "scores": ("user", "score", "target"),
}
_OPTIONAL = {
    "ranks": ("sampled", "items", "count", "weight", "user"),
    "comparisons": ("sampled", "items", "count", "weight", "user"),
    "scores": ("item", "items", "weight"),
}
ROWS = tuple(_NEEDED)
#: Roles whose columns may hold anything that can be compared for equality.
NAMES = ("user", "item", LABEL, POOLED)
ROLES = tuple(dict.fromkeys(role for kind in ROWS for role in (*_NEEDED[kind], *_OPTIONAL[kind])))
#: What a column that tells models apart is called, when nobody says so.
_MODELS = ("model", "method", "algorithm", "recommender", "system", "run")
#: What can be added up without leaving 64 bits, and what can be squared and added up.
_MOST_TARGETS, _HEAVIEST = 2.0**62, 1e100
_FILL = "fill in or drop such rows"
_DIVERGED = "a model that diverged gives such scores, and -inf may stand for an item to avoid"
_BEST = "1 is the best, and ranks among all items need no estimate (use unsample.exact)"
_TOGETHER = "better and tied together are at most sampled"

Columns: TypeAlias = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Request:
    """What is asked of a table: its design, and what its columns mean."""

    items: int | None = None
    sampled: int | None = None
    columns: Mapping[str, str] | None = None
    rows: str | None = None
    by: str | None = None

    @property
    def design(self) -> dict[str, int | None]:
        """Return the numbers of the design, where they are given."""
        return {"items": self.items, "sampled": self.sampled}

    def check(self) -> None:
        """Refuse numbers that no design has, and roles that no column can have."""
        for name, value in self.design.items():
            if value is not None:
                least = 2 if name == "items" else 1
                check_integer(
                    name, value, minimum=least, maximum=LARGEST_CATALOGUE, error=DesignError
                )
        for role in self.columns or {}:
            check_choice("columns", role, ROLES)
        if self.rows is not None:
            check_choice("rows", self.rows, ROWS)


@dataclass(frozen=True)
class Layout:
    """The kind of rows, the table's column for each role it has, and the column to group by."""

    rows: str
    columns: Mapping[str, str]
    request: Request

    @classmethod
    def find(
        cls, present: Collection[str], source: str, request: Request, hint: str = ""
    ) -> Layout:
        """Choose the columns of ``source`` by their names, and those that the request names."""
        named = request.columns or {}

        def refuse(column: str) -> NoReturn:
            near = hint or suggest(column, map(str, present))
            raise InputError(
                f"{source} has no column {column!r}; its columns are: "
                + (", ".join(map(str, present)) or "none")
                + (f"; {near}" if near else "")
            )

        kind = request.rows or _kind_of_rows(present, named, source, refuse)
        roles = (*_NEEDED[kind], *_OPTIONAL[kind])
        for role in named:
            if role not in roles:
                raise InputError(
                    f"columns must be roles of {kind} rows ({', '.join(roles)}), got {role!r}"
                )
        chosen = {role: named.get(role, role) for role in roles}
        chosen |= {} if request.by is None else {LABEL: request.by}
        for role, column in chosen.items():
            if column not in present and role in (*_NEEDED[kind], *named, LABEL):
                refuse(column)
        there = {role: column for role, column in chosen.items() if column in present}
        if request.by is None and "user" in there:
            unused = [name for name in _MODELS if name in present and name not in there.values()]
            there |= {POOLED: unused[0]} if unused else {}
        for name, given in request.design.items():
            if given is None and name not in there and (name, kind) != ("sampled", "scores"):
                raise DesignError(
                    f"{name} must be given: pass {name}, or add a column {name!r} to {source}"
                )
        return cls(kind, there, request)

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    @property
    def scores(self) -> bool:
        """Whether the rows are scored items."""
        return self.rows == "scores"

    @property
    def labels(self) -> list[str]:
        """Return the role to group by, if there is one."""
        return [LABEL] if LABEL in self else []

    @property
    def users(self) -> list[str]:
        """Return the roles that tell users apart."""
        return [*self.labels, "user"]

    @property
    def keys(self) -> list[str]:
        """Return the roles that groups of rows keep: all that tells two targets apart."""
        if self.scores:
            return self.labels
        design = [role for role in ("sampled", "items") if role in self]
        return [*self.labels, *_NEEDED[self.rows], *design]

    @property
    def read(self) -> dict[str, str]:
        """Return the columns whose values are needed, by role."""
        return {r: c for r, c in self.columns.items() if r != POOLED or not self.scores}

    def rules(self) -> list[Rule]:
        """Return what every row must keep; of scored rows, the target's alone has a design."""
        rules = [rule for rule in _all_rules(self) if rule.role in self]
        if not self.scores:
            return rules
        return [rule.of_targets() if rule.role in ("items", "weight") else rule for rule in rules]


def _kind_of_rows(
    present: Collection[str],
    named: Mapping[str, str],
    source: str,
    refuse: Callable[[str], NoReturn],
) -> str:
    telling = {"ranks": "rank", "comparisons": "better", "scores": "score"}
    columns = {kind: named.get(role, role) for kind, role in telling.items()}
    found = [kind for kind, column in columns.items() if column in present]
    if not found:
        refuse(next((named[role] for role in telling.values() if role in named), "rank"))
    if len(found) > 1:
        raise InputError(
            f"{source} has columns {' and '.join(repr(columns[kind]) for kind in found)}, which "
            f"clash; say which to read: {' or '.join(f'rows={kind!r}' for kind in found)}"
        )
    return found[0]


# -- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """What a column must hold, which rows break it, and what to do about it.

    ``broken`` is given the columns of a table: something with ``number(role)`` and
    ``missing(role)``, which are arrays or the expressions of an engine.
    """

    role: str
    text: str
    broken: Callable[[Any], Any]
    error: type[InputError] = InputError
    hint: str = ""

    def of_targets(self) -> Rule:
        """Return the rule for the rows of targets alone."""
        return replace(self, broken=lambda v: self.broken(v) & (v.number("target") == 1))


def kind_of_values(role: str) -> str:
    """Return what a column must hold that holds no names."""
    return "true or false (or 1 and 0)" if role == "target" else "numbers"


def _all_rules(layout: Layout) -> list[Rule]:
    """Return the rules of all roles; ranks must be possible under the design of their row."""
    given = layout.request.sampled

    def sampled(values: Any) -> Any:
        return values.number("sampled") if "sampled" in layout else given

    rank, others = "sampled + 1", "sampled"
    if given is not None and "sampled" not in layout:
        rank, others = f"{given + 1} ({rank})", f"{given} ({others})"
    others = f"whole numbers from 0 to {others}"
    return [
        *(_missing_rule(role, "a name in every row", _FILL) for role in (LABEL, "user", "item")),
        _range_rule("target", kind_of_values("target"), 0, 1),
        _missing_rule("score", kind_of_values("score"), _DIVERGED, ScoreError),
        *(rule for name in ("sampled", "items") for rule in _design_rules(layout, name)),
        _range_rule(
            "rank", f"whole numbers from 1 to {rank}", 1, lambda v: sampled(v) + 1, RankError, _BEST
        ),
        _range_rule("better", others, 0, sampled, RankError),
        _range_rule(
            "tied", others, 0, lambda v: sampled(v) - v.number("better"), RankError, _TOGETHER
        ),
        _range_rule("count", "whole numbers of at least 0", 0, _MOST_TARGETS, RankError),
        _range_rule("weight", f"numbers from 0 to {_HEAVIEST:g}", 0, _HEAVIEST, whole=False),
    ]


def _design_rules(layout: Layout, name: str) -> list[Rule]:
    least, given = 2 if name == "items" else 1, layout.request.design[name]
    text = f"whole numbers from {least} to {LARGEST_CATALOGUE}"
    rules = [_range_rule(name, text, least, LARGEST_CATALOGUE, DesignError)]
    if given is not None:
        text = f"{given}, the number given as {name}"
        rules.append(_range_rule(name, text, given, given, DesignError, "give one of them"))
    return rules


def _missing_rule(role: str, text: str, hint: str, error: type[InputError] = InputError) -> Rule:
    return Rule(role, text, lambda v: v.missing(role), error, hint)


def _range_rule(
    role: str,
    text: str,
    low: int,
    high: Any,
    error: type[InputError] = InputError,
    hint: str = "",
    *,
    whole: bool = True,
) -> Rule:
    """Return a rule for numbers; ``high`` may depend on other columns of the row."""

    def broken(values: Any) -> Any:
        number, most = values.number(role), high(values) if callable(high) else high
        bad = values.missing(role) | (number < low) | (number > most)
        return bad | (number % 1 != 0) if whole else bad

    return Rule(role, text, broken, error, hint)


@dataclass(frozen=True)
class ArrayValues:
    """Columns that are arrays: names as text, missing ones empty; missing numbers NaN."""

    columns: Columns

    def number(self, role: str) -> Any:
        """Return the numbers of a role."""
        return self.columns[role].astype(np.float64, copy=False)

    def missing(self, role: str) -> Any:
        """Tell the rows that have no value."""
        values = self.columns[role]
        return values == "" if values.dtype.kind == "U" else np.isnan(values)


def first_broken(rules: Sequence[Rule], columns: Columns) -> tuple[Rule, int] | None:
    """Return the first rule that some row breaks, and the first such row."""
    with np.errstate(invalid="ignore"):
        for rule in rules:
            bad = np.asarray(rule.broken(ArrayValues(columns)))
            if bad.any():
                return rule, int(np.argmax(bad))
    return None


# -- messages ------------------------------------------------------------------------------------


def complaint(rule: Rule, layout: Layout, source: str, value: Any, place: str) -> InputError:
    """Return the error about a row that breaks a rule."""
    text = f"column {layout.columns[rule.role]!r} of {source} must hold {rule.text}, got "
    return rule.error(text + show(value) + place + (f"; {rule.hint}" if rule.hint else ""))


def is_missing(value: Any) -> bool:
    """Return whether a value is null, in any spelling: None, NaN, NA, or an empty text."""
    if value is None or (isinstance(value, str) and not value):
        return True
    differs = value != value  # noqa: PLR0124 - NaN differs from itself, and NA refuses to say
    return bool(differs) if isinstance(differs, bool | np.bool_) else True


def show(value: Any) -> str:
    """Write a value as it is written in every message, whatever holds it."""
    plain = value.item() if isinstance(value, np.generic) else value
    if is_missing(plain):
        return "no value"
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        return repr(int(plain))
    return repr(plain)


def wrong_user(values: Any, sampled: int | None) -> Any:
    """Tell the users of scored rows who have not one target among other items."""
    targets, others = values.number(TARGETS), values.number("sampled")
    wrong = values.missing(TARGETS) | (targets != 1) | (others < 1)
    return wrong if sampled is None else wrong | (others != sampled)


def user_complaint(layout: Layout, source: str, user: Mapping[str, Any]) -> InputError:
    """Return the error about such a user."""
    who = f"user {str(user['user'])!r}"
    if layout.labels:
        who += f" (with {layout.columns[LABEL]} {str(user[LABEL])!r})"
    targets = 0 if is_missing(user[TARGETS]) else int(user[TARGETS])
    if targets != 1:
        advice = "give each target a user of its own (columns={'user': ...}) and its own items"
        if not targets:
            advice = f"set {layout.columns['target']!r} in the row of the target"
        elif POOLED in layout:
            column = layout.columns[POOLED]
            advice = f"if column {column!r} tells models apart, say by={column!r}"
        return InputError(
            f"each user of {source} must have one target, {who} has {targets or 'none'}; {advice}"
        )
    if user["sampled"] < 1:
        return DesignError(
            f"each target of {source} must be compared with at least one other item, {who} has "
            "the target's row alone"
        )
    return DesignError(
        f"sampled is {layout.request.sampled} by argument, but {who} of {source} has "
        f"{int(user['sampled'])} rows besides the target's; leave sampled out to take it from the "
        "rows"
    )


def check_same_roles(first: str, expected: Layout, name: str, found: Layout) -> None:
    """Refuse a file of a table that has a column which another file lacks."""
    for has, lacks, layouts in ((first, name, (expected, found)), (name, first, (found, expected))):
        missing = [role for role in layouts[0].read if role not in (*layouts[1].read, POOLED)]
        if missing:
            column = layouts[0].columns[missing[0]]
            raise FileError(f"{lacks} has no column {column!r}, which {has} has")


def warn_of_pooled_models(layout: Layout, source: str, fewest: int, most: int, models: int) -> None:
    """Warn where every user stands in the table equally often for each of several models."""
    if models > 1 and fewest == most and most % models == 0:
        column = layout.columns[POOLED]
        warnings.warn(
            f"column {column!r} of {source} has {models} values and every user has {most} rows: "
            "the models are pooled as if they were one; to tell them apart, say "
            f"by={column!r}",
            UnsampleWarning,
            stacklevel=2,
        )
