"""Which column means what, what it must hold, and the words for what is wrong.

A rule is written once and asked of arrays and of engines alike: both understand the same operators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
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
#: What can be added up without leaving 64 bits.
_MOST_TARGETS = 2.0**62

Columns: TypeAlias = dict[str, npt.NDArray[Any]]


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


@dataclass(frozen=True)
class Request:
    """What is asked of a table: its design, and what its columns mean."""

    items: int | None = None
    sampled: int | None = None
    columns: Mapping[str, str] | None = None
    rows: str | None = None
    by: str | None = None

    def check(self) -> None:
        """Refuse numbers that no design has, and roles that no column can have."""
        for name, value in (("items", self.items), ("sampled", self.sampled)):
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
        cls,
        present: Collection[str],
        source: str,
        request: Request,
        *,
        error: type[InputError] = InputError,
        hint: str = "",
    ) -> Layout:
        """Choose the columns of ``source`` by their names, and those that the request names."""
        named = request.columns or {}

        def refuse(column: str) -> NoReturn:
            near = hint or suggest(column, map(str, present))
            raise error(
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
        for role, column in chosen.items():
            if column not in present and (role in _NEEDED[kind] or role in named):
                refuse(column)
        there = {role: column for role, column in chosen.items() if column in present}
        if request.by is not None:
            if request.by not in present:
                refuse(request.by)
            there[LABEL] = request.by
        elif "user" in there:
            unused = [name for name in _MODELS if name in present and name not in there.values()]
            there |= {POOLED: unused[0]} if unused else {}
        layout = cls(kind, there, request)
        layout._check_design(source)
        return layout

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    @property
    def scores(self) -> bool:
        """Whether the rows are scored items."""
        return self.rows == "scores"

    @property
    def labels(self) -> list[str]:
        """Return the role to group by, if there is one."""
        return [LABEL] if LABEL in self.columns else []

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
        return {
            role: column
            for role, column in self.columns.items()
            if not (role == POOLED and self.scores)
        }

    def rules(self) -> list[Rule]:
        """Return what every row must keep."""
        find = _rules_of_scores if self.scores else _rules_of_ranks
        rules = find(self)
        return [_name_rule(LABEL), *rules] if self.labels else rules

    def _check_design(self, source: str) -> None:
        given = {"items": self.request.items, "sampled": self.request.sampled}
        for name in ("items",) if self.scores else ("items", "sampled"):
            if given[name] is None and name not in self:
                raise DesignError(
                    f"{name} must be given: pass {name}, or add a column {name!r} to {source}"
                )


def _kind_of_rows(
    present: Collection[str],
    named: Mapping[str, str],
    source: str,
    refuse: Callable[[str], NoReturn],
) -> str:
    # The first column of each kind tells, and the score of scored rows.
    telling = {"ranks": "rank", "comparisons": "better", "scores": "score"}
    found = [kind for kind, role in telling.items() if named.get(role, role) in present]
    if len(found) > 1:
        columns = " and ".join(repr(named.get(telling[kind], telling[kind])) for kind in found)
        raise InputError(
            f"{source} has columns {columns}, which clash; say which to read: "
            + " or ".join(f"rows={kind!r}" for kind in found)
        )
    if not found:
        refuse(next((named[role] for role in telling.values() if role in named), "rank"))
    return found[0]


# -- rules ---------------------------------------------------------------------------------------


def _rules_of_ranks(layout: Layout) -> list[Rule]:
    rules = [rule for name in ("sampled", "items") for rule in _design_rules(layout, name)]
    rules += [_place_rule(layout, role) for role in _NEEDED[layout.rows]]
    if "count" in layout:
        text = "whole numbers of at least 0"
        rules.append(Rule("count", text, _outside("count", 0, _MOST_TARGETS), RankError))
    if "weight" in layout:
        rules.append(_weight_rule())
    if "user" in layout:
        rules.append(_name_rule("user"))
    return rules


def _rules_of_scores(layout: Layout) -> list[Rule]:
    rules = [_name_rule(role) for role in ("user", "item") if role in layout]
    rules.append(
        Rule(
            "target",
            "true or false (or 1 and 0)",
            lambda v: v.missing("target") | ((v.number("target") != 0) & (v.number("target") != 1)),
        )
    )
    rules.append(
        Rule(
            "score",
            "numbers",
            lambda v: v.missing("score"),
            ScoreError,
            "a model that diverged gives such scores, and -inf may stand for an item to avoid",
        )
    )
    of_targets = _design_rules(layout, "items") + ([_weight_rule()] if "weight" in layout else [])
    return rules + [_in_target_rows(rule) for rule in of_targets]


def _in_target_rows(rule: Rule) -> Rule:
    def broken(values: Any) -> Any:
        return rule.broken(values) & (values.number("target") == 1)

    return Rule(rule.role, rule.text, broken, rule.error, rule.hint)


def _name_rule(role: str) -> Rule:
    return Rule(
        role, "a name in every row", lambda v: v.missing(role), hint="fill in or drop such rows"
    )


def _weight_rule() -> Rule:
    def broken(values: Any) -> Any:
        weight = values.number("weight")
        return values.missing("weight") | (weight < 0) | (weight == np.inf)

    return Rule("weight", "finite numbers of at least 0", broken)


def _design_rules(layout: Layout, name: str) -> list[Rule]:
    if name not in layout:
        return []
    low = 2 if name == "items" else 1
    text = f"whole numbers from {low} to {LARGEST_CATALOGUE}"
    rules = [Rule(name, text, _outside(name, low, LARGEST_CATALOGUE), DesignError)]
    given = layout.request.items if name == "items" else layout.request.sampled
    if given is not None:
        text = f"{given}, the number given as {name}"
        differs = Rule(
            name, text, lambda v: v.number(name) != given, DesignError, "give one of them"
        )
        rules.append(differs)
    return rules


def _place_rule(layout: Layout, role: str) -> Rule:
    """Ranks and comparisons must be possible under the design of their row."""
    low, extra = (1, 1) if role == "rank" else (0, 0)
    given = layout.request.sampled

    def broken(values: Any) -> Any:
        most: Any = values.number("sampled") if "sampled" in layout else given
        bad = _outside(role, low, most + extra)(values)
        if role == "tied":
            bad = bad | (values.number("better") + values.number("tied") > most)
        return bad

    top = "sampled + 1" if role == "rank" else "sampled"
    shown = top if "sampled" in layout or given is None else f"{given + extra} ({top})"
    hint = {
        "rank": "1 is the best, and ranks among all items need no estimate (use unsample.exact)",
        "tied": "better and tied together are at most sampled",
    }.get(role, "")
    return Rule(role, f"whole numbers from {low} to {shown}", broken, RankError, hint)


def _outside(role: str, low: int, high: Any) -> Callable[[Any], Any]:
    def broken(values: Any) -> Any:
        number = values.number(role)
        return values.missing(role) | (number % 1 != 0) | (number < low) | (number > high)

    return broken


@dataclass(frozen=True)
class ArrayValues:
    """Columns that are arrays: names as text, missing ones empty; missing numbers NaN."""

    columns: Mapping[str, npt.NDArray[Any]]

    def number(self, role: str) -> Any:
        """Return the numbers of a role."""
        return self.columns[role]

    def missing(self, role: str) -> Any:
        """Tell the rows that have no value."""
        values = self.columns[role]
        if values.dtype.kind == "U":
            return values == ""
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def first_broken(rules: Sequence[Rule], columns: Columns) -> tuple[Rule, int] | None:
    """Return the first rule that some row breaks, and the first such row."""
    values = ArrayValues(columns)
    for rule in rules:
        with np.errstate(invalid="ignore"):
            bad = np.asarray(rule.broken(values))
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
    who, sampled = f"user {str(user['user'])!r}", layout.request.sampled
    if layout.labels:
        who += f" (with {layout.columns[LABEL]} {str(user[LABEL])!r})"
    targets = 0 if is_missing(user[TARGETS]) else int(user[TARGETS])
    if targets != 1:
        rule = f"each user of {source} must have one target, {who} has {targets or 'none'}"
        if not targets:
            advice = f"set {layout.columns['target']!r} in the row of the target"
        elif POOLED in layout:
            column = layout.columns[POOLED]
            advice = f"if column {column!r} tells models apart, say by={column!r}"
        else:
            advice = "give each target a user of its own (columns={'user': ...}) and its own items"
        return InputError(f"{rule}; {advice}")
    if user["sampled"] < 1:
        return DesignError(
            f"each target of {source} must be compared with at least one other item, {who} has "
            "the target's row alone"
        )
    return DesignError(
        f"sampled is {sampled} by argument, but {who} of {source} has {int(user['sampled'])} rows "
        "besides the target's; leave sampled out to take it from the rows"
    )


def check_same_roles(first: str, expected: Layout, name: str, found: Layout) -> None:
    """Refuse a file of a table that has a column which another file lacks."""
    for has, lacks, layouts in ((first, name, (expected, found)), (name, first, (found, expected))):
        missing = [role for role in layouts[0].read if role not in layouts[1].read]
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
