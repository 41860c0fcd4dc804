"""Which column means what, what it must hold, and the words for what is wrong.

A rule is written once and asked of arrays and of engines alike: both understand the same operators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import LARGEST_CATALOGUE, check_choice, check_integer, suggest
from unsample._gone import gone
from unsample.errors import (
    DesignError,
    FileError,
    GoneError,
    InputError,
    RankError,
    ScoreError,
    UnsampleWarning,
)
from unsample.tables._old import Named, decoded

#: The names that the column to group by, and one that might have been meant, have inside.
LABEL, POOLED = "label", "pooled"
#: How many targets a user of scored rows has.
TARGETS = "targets"
#: The number of an item that was drawn, where items have numbers and not names.
DRAWN = "drawn"
#: Kind of rows -> the columns it needs.
_NEEDED = {
    "ranks": ("rank",),
    "comparisons": ("better", "tied"),
    "scores": ("user", "score", "target"),
    # Kinds that a reader asks for, never told by columns.
    "negatives": ("user", DRAWN),
}
_OPTIONAL = {
    "ranks": ("sampled", "items", "count", "user", "relevance", "pool"),
    "comparisons": ("sampled", "items", "count", "user", "relevance", "pool"),
    "scores": ("item", "items", "relevance", "pool"),
    "negatives": ("target",),
}
#: Kinds of rows that tell ranks.
ROWS = ("ranks", "comparisons", "scores")
#: Roles whose columns may hold anything that can be compared for equality.
NAMES = ("user", "item", "pool", LABEL, POOLED)
ROLES = tuple(dict.fromkeys(role for kind in ROWS for role in (*_NEEDED[kind], *_OPTIONAL[kind])))
#: What a column that tells models apart is called, when nobody says so.
_MODELS = ("model", "method", "algorithm", "recommender", "system", "run")
#: What can be added up without leaving 64 bits, and what can be squared and added up.
_MOST_TARGETS, _HEAVIEST = 2.0**62, 1e100
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
    #: The kind of rows that a reader wants, whatever the columns are.
    kind: str | None = None

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
            if self.kind is None:
                check_choice("columns", role, ROLES)
        if self.rows is not None:
            check_choice("rows", self.rows, ROWS)


@dataclass(frozen=True)
class Layout:
    """The kind of rows, the table's column for each role it has, and the column to group by."""

    rows: str
    columns: Mapping[str, str]
    request: Request
    #: By role, the names that the numbers in a column stand for, where names were numbered.
    names: Mapping[str, npt.NDArray[np.bytes_]] = field(default_factory=dict, compare=False)

    @classmethod
    def find(
        cls, present: Collection[str], source: str, request: Request, hint: str = ""
    ) -> Layout:
        """Choose the columns of ``source`` by their names, and those that the request names."""
        named = request.columns or {}

        def refuse(column: str) -> NoReturn:
            near = hint or suggest(column, map(str, present))
            if not near and column in ROLES:
                near = f"if one of them is meant, name it: columns={{{column!r}: ...}} (--column)"
            raise InputError(
                f"{source} has no column {column!r}; its columns are: "
                + (", ".join(map(str, present)) or "none")
                + (f"; {near}" if near else "")
            )

        kind = request.kind or request.rows or _kind_of_rows(present, named, source, refuse)
        if kind in ROWS and "weight" in present:
            # It used to be read: without it the numbers would silently be others.
            raise GoneError(gone("columns='weight'"))
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
            told = kind not in ROWS or (name, kind) == ("sampled", "scores")
            if given is None and name not in there and not told:
                raise DesignError(
                    f"{name} must be given: pass {name}, or add a column {name!r} to {source}"
                )
        return cls(kind, there, request)

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    def users_of(self, rows: Columns) -> Named | npt.NDArray[Any] | None:
        """Return whose rows these are, by name; None where the table does not say."""
        if "user" in rows and "user" in self.names:
            return Named(rows["user"], self.names["user"])
        return rows.get("user")

    def text(self, role: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the names of a role for values that stand for them."""
        return decoded(self.names[role][values]) if role in self.names else values

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
        alone = ("items", "relevance") if self.scores else ()
        return [replace(rule, of_targets=rule.role in alone) for rule in rules]


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
    """What a column must hold: a value in every row, and where there are limits, within them.

    The upper limit may depend on other columns. Of scored rows, some rules are for targets alone.
    """

    role: str
    text: str
    error: type[InputError] = InputError
    hint: str = ""
    low: int | None = None
    high: Any = None
    #: What the values must be multiples of; None for any numbers.
    step: float | None = 1.0
    of_targets: bool = False

    def broken(self, values: Any) -> Any:
        """Tell the rows that break the rule.

        ``values`` has ``number(role)`` and ``missing(role)``: arrays, or expressions of an engine.
        """
        bad = values.missing(self.role)
        if self.low is not None:
            number = values.number(self.role)
            most = self.high(values) if callable(self.high) else self.high
            bad = bad | (number < self.low) | (number > most)
            bad = bad | (number % self.step != 0) if self.step is not None else bad
        return bad & (values.number("target") == 1) if self.of_targets else bad


def kind_of_values(role: str) -> str:
    """Return what a column must hold that holds no names."""
    return "true or false (or 1 and 0)" if role == "target" else "numbers"


def _all_rules(layout: Layout) -> list[Rule]:
    """Return the rules of all roles; ranks must be possible under the design of their row."""
    given = layout.request.sampled

    def most(values: Any) -> Any:
        return values.number("sampled") if "sampled" in layout else given

    rank, others = "sampled + 1", "sampled"
    if given is not None and "sampled" not in layout:
        rank, others = f"{given + 1} ({rank})", f"{given} ({others})"
    others = f"whole numbers from 0 to {others}"
    names = (LABEL, "user", "item", "pool")
    return [
        *(Rule(role, "a name in every row", hint="fill in or drop such rows") for role in names),
        Rule("target", kind_of_values("target"), low=0, high=1),
        Rule("score", kind_of_values("score"), ScoreError, _DIVERGED),
        *(rule for name in ("sampled", "items") for rule in _design_rules(layout, name)),
        # A half is the mean of the best and the worst rank among ties.
        Rule(
            "rank",
            f"whole or half numbers from 1 to {rank}",
            RankError,
            _BEST,
            1,
            lambda v: most(v) + 1,
            0.5,
        ),
        Rule("better", others, RankError, low=0, high=most),
        Rule("tied", others, RankError, _TOGETHER, 0, lambda v: most(v) - v.number("better")),
        Rule(
            DRAWN,
            f"item numbers from 0 to {(layout.request.items or 1) - 1} (items - 1)",
            hint="items are numbered from 0; subtract 1 if yours start at 1",
            low=0,
            high=(layout.request.items or 1) - 1,
        ),
        Rule("count", "whole numbers of at least 0", RankError, low=0, high=_MOST_TARGETS),
        Rule("relevance", "numbers of at least 0", low=0, high=_HEAVIEST, step=None),
    ]


def _design_rules(layout: Layout, name: str) -> list[Rule]:
    least, given = 2 if name == "items" else 1, layout.request.design[name]
    text = f"whole numbers from {least} to {LARGEST_CATALOGUE}"
    rules = [Rule(name, text, DesignError, low=least, high=LARGEST_CATALOGUE)]
    if given is not None:
        text = f"{given}, the number given as {name}"
        rules.append(Rule(name, text, DesignError, "give one of them", given, given))
    return rules


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


def wrong_user(values: Any, layout: Layout) -> Any:
    """Tell the users of scored rows who have no target among other items."""
    targets, others = values.number(TARGETS), values.number("sampled")
    wrong = values.missing(TARGETS) | (targets < 1) | (others < 1)
    if POOLED in layout:
        wrong = wrong | (targets > 1)
    sampled = layout.request.sampled
    return wrong if sampled is None else wrong | (others != sampled)


def user_complaint(layout: Layout, source: str, user: Mapping[str, Any]) -> InputError:
    """Return the error about such a user."""
    who = f"user {str(user['user'])!r}"
    if layout.labels:
        who += f" (with {layout.columns[LABEL]} {str(user[LABEL])!r})"
    targets = 0 if is_missing(user[TARGETS]) else int(user[TARGETS])
    if not targets:
        return InputError(
            f"each user of {source} must have a target, {who} has none; set "
            f"{layout.columns['target']!r} in the row of the target"
        )
    if POOLED in layout and targets > 1:
        column = layout.columns[POOLED]
        return InputError(
            f"users of {source} must stand in it once, {who} has {targets} targets; if column "
            f"{column!r} tells models apart, pass by={column!r}"
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
            "the models are pooled as if they were one; to tell them apart, pass "
            f"by={column!r}",
            UnsampleWarning,
            stacklevel=2,
        )
