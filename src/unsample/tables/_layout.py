"""Which column means what, what it must hold, and the words for what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from unsample._checks import LARGEST_CATALOGUE, Seed, check_choice, check_integer, suggest
from unsample._gone import gone
from unsample.errors import (
    DesignError,
    GoneError,
    InputError,
    RankError,
    ScoreError,
    UnsampleWarning,
)

#: Kind of rows -> the columns it needs, and those it may have.
NEEDED: dict[str, tuple[str, ...]] = {
    "ranks": ("rank",),
    "comparisons": ("better", "tied"),
    "scores": ("user", "score", "target"),
    "lists": ("recommended", "relevant"),
    # Never told by columns: a reader asks for it.
    "negatives": ("user", "item"),
}
_TARGETS = ("user", "sampled", "items", "count", "relevance", "pool")
_OPTIONAL = {
    "ranks": _TARGETS,
    "comparisons": _TARGETS,
    "scores": ("item", "items", "relevance", "pool"),
    "lists": ("user", "sampled", "items"),
    "negatives": ("target",),
}
#: Kinds of rows that tell ranks, and the column by which they are known.
_TELLING = {"ranks": "rank", "comparisons": "better", "scores": "score", "lists": "recommended"}
ROWS = tuple(_TELLING)
ROLES = tuple(dict.fromkeys(role for kind in ROWS for role in (*NEEDED[kind], *_OPTIONAL[kind])))
#: Targets that are placed among their ties, or paired, one by one.
MOST_COPIES = 1 << 27
#: Roles whose columns may hold anything that can be compared for equality.
NAMES = ("model", "user", "item", "pool")
LISTS = ("recommended", "relevant")
#: What a column that tells models apart is called, when nobody says so.
MODELS = ("model", "method", "algorithm", "recommender", "system", "run")
_DIVERGED = "a model that diverged gives such scores, and -inf may stand for an item to avoid"
_BEST = "1 is the best, and ranks among all items need no estimate (use unsample.exact)"
_TOGETHER = "better and tied together are at most sampled"
_NUMBERED = "items are numbered from 0; subtract 1 if yours start at 1"


@dataclass(frozen=True)
class Read:
    """How a table is read.

    ``columns`` names columns that are called otherwise, such as ``{"rank": "position"}``; ``rows``
    says what a row holds (``"ranks"``, ``"comparisons"``, ``"scores"`` or ``"lists"``) where the
    columns would allow several; ``ties`` and ``rng`` are the tie rule and its seed.
    """

    columns: Mapping[str, str] | None = None
    rows: str | None = None
    ties: str = "random"
    rng: Seed = 0


@dataclass(frozen=True)
class Rule:
    """What a column must hold in every row, or in those of targets.

    The upper limit may depend on other columns: ``most`` plus the columns of ``more`` less those of
    ``less``.
    """

    role: str
    text: str
    error: type[InputError] = InputError
    hint: str = ""
    low: int | None = None
    most: float | None = None
    more: str = ""
    less: str = ""
    #: What the values must be multiples of; None for any numbers.
    step: float | None = 1.0
    of_targets: bool = False


@dataclass(frozen=True)
class Layout:
    """The kind of rows, the table's column for each role it has, and what all rows share."""

    rows: str
    columns: Mapping[str, str]
    given: Mapping[str, int] = field(default_factory=dict)
    #: A column that may tell models apart, though nobody asked for it.
    unasked: str | None = None

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    @property
    def scored(self) -> bool:
        """Whether targets stand in one list with all others of their user."""
        return self.rows in ("scores", "lists")

    def rules(self) -> list[Rule]:
        """Return what every row must keep; of scored rows, the target's alone has a design."""
        alone = self.rows == "scores"
        items = self.given.get("items", LARGEST_CATALOGUE)
        limit: dict[str, Any] = {"most": 0, "more": "sampled"}
        rank, others = "sampled + 1", "sampled"
        if "sampled" in self.given:
            limit = {"most": self.given["sampled"]}
            rank, others = f"{limit['most'] + 1} ({rank})", f"{limit['most']} ({others})"
        beyond = {**limit, "most": limit["most"] + 1}
        others = f"whole numbers from 0 to {others}"
        rank = f"whole or half numbers from 1 to {rank}"
        numbered = f"item numbers from 0 to {items - 1} (items - 1)"
        named = [role for role in NAMES if (role, self.rows) != ("item", "negatives")]
        rules = [
            *(
                Rule(role, "a name in every row", hint="fill in or drop such rows")
                for role in named
            ),
            *(
                Rule(role, "a list in every row", hint="fill in or drop such rows")
                for role in LISTS
            ),
            Rule("target", kind_of_values("target"), low=0, most=1),
            Rule("score", "numbers", ScoreError, _DIVERGED),
            *(rule for name in ("sampled", "items") for rule in self._of_design(name, alone)),
            # A half is the mean of the best and the worst rank among ties.
            Rule("rank", rank, RankError, _BEST, 1, **beyond, step=0.5),
            Rule("better", others, RankError, low=0, **limit),
            Rule("tied", others, RankError, _TOGETHER, 0, **limit, less="better"),
            Rule("count", "whole numbers of at least 0", RankError, low=0, most=2.0**53),
            Rule(
                "relevance", "numbers of at least 0", low=0, most=1e100, step=None, of_targets=alone
            ),
        ]
        if self.rows == "negatives":
            rules.append(Rule("item", numbered, hint=_NUMBERED, low=0, most=items - 1))
        return [rule for rule in rules if rule.role in self]

    def _of_design(self, name: str, alone: bool) -> list[Rule]:
        least, given = 2 if name == "items" else 1, self.given.get(name)
        text = f"whole numbers from {least} to {LARGEST_CATALOGUE}"
        if given is None:
            most = LARGEST_CATALOGUE
            return [Rule(name, text, DesignError, low=least, most=most, of_targets=alone)]
        text = f"{given}, the number given as {name}"
        once = "give one of them"
        return [Rule(name, text, DesignError, once, given, given, of_targets=alone)]


def kind_of_values(role: str) -> str:
    """Return what a column must hold that holds no names."""
    return "true or false (or 1 and 0)" if role == "target" else "numbers"


def check_copies(count: float) -> None:
    """Refuse rows that stand for so many targets that they cannot be placed one by one."""
    if count > MOST_COPIES:
        raise RankError(
            f"ties must be optimistic or pessimistic where more than {MOST_COPIES:,} places would "
            f"be drawn at random, got {count:,.0f}"
        )


def check_design(items: int | None, sampled: int | None) -> dict[str, int]:
    """Return the numbers that hold for all rows, checked."""
    given = {"items": items, "sampled": sampled}
    return {
        name: check_integer(
            name,
            value,
            minimum=2 if name == "items" else 1,
            maximum=LARGEST_CATALOGUE,
            error=DesignError,
        )
        for name, value in given.items()
        if value is not None
    }


def find_layout(
    present: Collection[str],
    source: str,
    given: Mapping[str, int],
    read: Read,
    by: str | None,
    *,
    kind: str | None = None,
    hint: str = "",
) -> Layout:
    """Choose the columns of ``source`` by their names, and those that ``read`` and ``by`` name."""
    named = read.columns or {}
    for role in named:
        check_choice("columns", role, ROLES if kind is None else (*NEEDED[kind], *_OPTIONAL[kind]))

    def refuse(column: str) -> NoReturn:
        near = hint or suggest(column, map(str, present))
        if not near and column in ROLES:
            near = f"if one of them is meant, name it: columns={{{column!r}: ...}} (--column)"
        raise InputError(
            f"{source} has no column {column!r}; its columns are: "
            + (", ".join(map(str, present)) or "none")
            + (f"; {near}" if near else "")
        )

    rows = kind or (read.rows and check_choice("rows", read.rows, ROWS))
    rows = rows or _kind_of_rows(present, named, source, refuse)
    if kind is None and "weight" in present:
        # It used to be read: without it the numbers would silently be others.
        raise GoneError(gone("columns='weight'"))
    roles = (*NEEDED[rows], *_OPTIONAL[rows])
    for role in named:
        if role not in roles:
            raise InputError(
                f"columns must be roles of {rows} rows ({', '.join(roles)}), got {role!r}"
            )
    chosen = {role: named.get(role, role) for role in roles} | ({"model": by} if by else {})
    for role, column in chosen.items():
        if column not in present and role in (*NEEDED[rows], *named, "model"):
            refuse(column)
    there = {role: column for role, column in chosen.items() if column in present}
    for name in ("items", "sampled") if rows in ROWS else ():
        if name not in given and name not in there and (name, rows) != ("sampled", "scores"):
            raise DesignError(
                f"{name} must be given: pass {name}, or add a column {name!r} to {source}"
            )
    unused = [name for name in MODELS if name in present and name not in there.values()]
    unasked = unused[0] if unused and by is None and "user" in there and rows in ROWS else None
    return Layout(rows, there, given, unasked)


def _kind_of_rows(
    present: Collection[str],
    named: Mapping[str, str],
    source: str,
    refuse: Callable[[str], NoReturn],
) -> str:
    columns = {kind: named.get(role, role) for kind, role in _TELLING.items()}
    found = [kind for kind, column in columns.items() if column in present]
    if not found:
        refuse(next((named[role] for role in _TELLING.values() if role in named), "rank"))
    if len(found) > 1:
        raise InputError(
            f"{source} has columns {' and '.join(repr(columns[kind]) for kind in found)}, which "
            f"clash; say which to read: {' or '.join(f'rows={kind!r}' for kind in found)}"
        )
    return found[0]


# -- messages ------------------------------------------------------------------------------------


def complaint(rule: Rule, layout: Layout, source: str, value: Any, place: str) -> InputError:
    """Return the error about a row that breaks a rule."""
    text = f"column {layout.columns[rule.role]!r} of {source} must hold {rule.text}, got "
    return rule.error(text + show(value) + place + (f"; {rule.hint}" if rule.hint else ""))


def show(value: Any) -> str:
    """Write a value as it is written in every message, whatever holds it."""
    plain = value.item() if hasattr(value, "item") else value
    if plain is None or plain == "" or plain != plain:  # noqa: PLR0124 - NaN
        return "no value"
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        return repr(int(plain))
    return repr(plain)


def user_complaint(
    layout: Layout, source: str, user: str, model: str | None, targets: int, others: int
) -> InputError:
    """Return the error about a user of scored rows who has no target among other items."""
    who = f"user {user!r}"
    if model is not None:
        who += f" (with {layout.columns['model']} {model!r})"
    if not targets:
        return InputError(
            f"each user of {source} must have a target, {who} has none; set "
            f"{layout.columns['target']!r} in the row of the target"
        )
    if layout.unasked and targets > 1:
        column = layout.unasked
        return InputError(
            f"users of {source} must stand in it once, {who} has {targets} targets; if column "
            f"{column!r} tells models apart, pass by={column!r}"
        )
    if others < 1:
        return DesignError(
            f"each target of {source} must be compared with at least one other item, {who} has "
            "the target's row alone"
        )
    return DesignError(
        f"sampled is {layout.given['sampled']} by argument, but {who} of {source} has {others} "
        "rows besides the target's; leave sampled out to take it from the rows"
    )


def warn_of_pooled_models(layout: Layout, source: str, fewest: int, most: int, models: int) -> None:
    """Warn where every user stands in the table equally often for each of several models."""
    if models > 1 and fewest == most and most % models == 0:
        column = layout.unasked
        warnings.warn(
            f"column {column!r} of {source} has {models} values and every user has {most} rows: "
            "the models are pooled as if they were one; to tell them apart, pass "
            f"by={column!r}",
            UnsampleWarning,
            stacklevel=2,
        )
