"""The role of each column, the rule for its values, and the messages where a value breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    as_seed,
    as_text_array,
    check_choice,
    check_integer,
    suggest,
)  # fmt: skip
from unsample._threads import cached_property
from unsample.counts import USUAL, Negatives, check_ties, rank_hint
from unsample.errors import DesignError, FileError, InputError, RankError, ScoreError
from unsample.sampling import refuse_overdrawn

Columns: TypeAlias = dict[str, npt.NDArray[Any]]
#: Kind of rows -> the columns it needs, and those it may have. A reader asks for the last two.
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ranks": (("rank",), ("user", "sampled", "items", "relevance")),
    "scores": (("score", "user", "target"), ("item", "items")),
    "full ranks": (("rank",), ("user", "items", "relevance")),
    "negatives": (("user", "item"), ("target",)),
}
ROWS = ("ranks", "scores")
#: The roles of the design of a row.
DESIGN = ("sampled", "items")
ROLES = tuple(dict.fromkeys(role for kind in COLUMNS.values() for each in kind for role in each))
#: Roles whose columns hold names.
NAMES = ("model", "run", "user", "item")
#: What stands between the names of a model and of its run.
RUN_OF = " / run "
#: The column that names the models of a table, unless it is said otherwise.
MODEL = "model"
#: How a number is written; what matches is then read without guessing.
NUMBER = r"\s*[+-]?(([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF](inity)?)\s*"
_FLAGS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
#: A number with a comma: 1,234 or 0,5.
_WITH_COMMA = re.compile(r"[+-]?[0-9]+(,[0-9]+)+([.][0-9]*)?")
_FILL = "fill in or drop such rows"


@dataclass(frozen=True)
class Read:
    """How a table is read.

    Parameters
    ----------
    columns
        Columns that have other names in the table, such as ``{"rank": "position"}``.
    rows
        What a row holds, if the columns allow both: ``"ranks"`` (one target) or ``"scores"`` (one
        scored item).
    ties
        The rank of a target whose score other items have, for rows of scores: ``"random"``,
        ``"optimistic"`` or ``"pessimistic"``.
    rng
        The seed of the random rule.

    >>> import unsample
    >>> table = {"position": [1, 4, 2, 30]}
    >>> read = Read(columns={"rank": "position"})
    >>> unsample.estimate(table, items=1000, sampled=99, read=read).counts
    RankCounts(4 targets, 4 cells, items=1000, sampled=99, with replacement)
    """

    columns: Mapping[str, str] | None = None
    rows: str | None = None
    ties: str = "random"
    rng: Seed = 0

    def __post_init__(self) -> None:
        named = self.columns
        if named is not None and not (
            isinstance(named, Mapping)
            and all(isinstance(each, str) for pair in named.items() for each in pair)
        ):
            raise InputError(
                f"columns must be a dict of names, got {named!r}; such as {{'rank': 'position'}}"
            )
        if self.rows is not None:
            check_choice("rows", self.rows, ROWS)
        check_ties(self.ties, whole=True)
        as_rng(self.rng)


@dataclass(frozen=True)
class Asked:
    """What is asked of a table: its design, how to read it, and what its ranks are."""

    #: The design, where it is not a column. Scored rows tell ``sampled`` by their number.
    items: Any = None
    sampled: Any = None
    read: Read = Read()
    #: A column to group by, such as ``model``.
    by: str | None = None
    #: Whether other relevant items of a user were left out, so that metrics are those of targets.
    filtered: bool = False
    #: How items were drawn. Where targets share them, scored rows with a column ``item`` tell which
    #: item beats which target.
    negatives: Negatives = USUAL
    #: Whether a column ``run``, if there is one, names runs of a model. Then names of models end in
    #: `RUN_OF` and the name of the run.
    runs: bool = False
    #: The kind of rows, where a reader asks for it.
    kind: str | None = None
    #: A column whose values are data sets, which are read one by one.
    across: str | None = None
    #: More models than this are refused before their pairs are counted.
    most_models: int | None = None

    def __post_init__(self) -> None:
        if {"items", "sampled"} <= self.given.keys():
            refuse_overdrawn(**self.given)

    @cached_property
    def given(self) -> dict[str, int]:
        """Return the numbers that hold for all rows."""
        return {
            name: check_integer(
                name, value, minimum=minimum, maximum=LARGEST_CATALOGUE, error=DesignError
            )
            for name, value, minimum in (("items", self.items, 2), ("sampled", self.sampled, 1))
            if value is not None
        }

    @cached_property
    def seed(self) -> int:
        """Return the number by which ties are broken."""
        return as_seed(self.read.rng)


#: Columns that would give rows a weight. They are refused, with what to do instead.
_WEIGHING = {
    "weight": "all users count the same; estimate groups of users apart, and average their values",
    "count": "use RankCounts.from_ranks(ranks, count=...), or drop the column if it does not say "
    "how many targets a row stands for",
}


@dataclass(frozen=True)
class Layout:
    """The kind of rows, and the table's column for each role it has."""

    rows: str
    columns: Mapping[str, str]
    asked: Asked

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    @property
    def scored(self) -> bool:
        """Whether a row is a scored item: the targets of a user stand in one list."""
        return self.rows == "scores"

    def is_name(self, role: str) -> bool:
        """Return whether a column holds names."""
        return role in NAMES and (role, self.rows) != ("item", "negatives")


def find_layout(present: Collection[str], source: str, *, asked: Asked, hint: str = "") -> Layout:
    """Choose the columns of ``source`` by their names, and those that are asked for.

    ``hint`` is the likely reason why a column is missing.

    >>> find_layout(["rank", "user", "note"], "t.csv", asked=Asked(items=50, sampled=9)).columns
    {'rank': 'rank', 'user': 'user'}
    """
    named = asked.read.columns or {}
    rows = asked.read.rows or asked.kind
    refuse = partial(_refuse_missing, present=present, source=source, hint=hint)
    if rows is None:
        rows = _rows_by_column(present, source, named=named, refuse=refuse)
    for column, instead in _WEIGHING.items():
        if asked.kind is None and column in present and column not in named.values():
            raise InputError(
                f"{source} must have a row for each target, got a column {column!r}; {instead}"
            )
    needed, optional = COLUMNS[rows]
    if asked.runs:
        optional = (*optional, "run")
    roles = (*needed, *optional)
    for role in named:
        check_choice("columns", role, roles)
    chosen = {role: named.get(role, role) for role in roles}
    if asked.by:
        chosen["model"] = asked.by
    for role, column in chosen.items():
        if column not in present and role in (*needed, *named, "model"):
            refuse(column)
    there = {role: column for role, column in chosen.items() if column in present}
    if there.get("run") == asked.by:
        there.pop("run", None)
    design = {"scores": ("items",), "full ranks": ("items",), "negatives": ()}
    for name in design.get(rows, ("items", "sampled")):
        if name not in asked.given and name not in there:
            raise DesignError(
                f"{name} must be given: pass {name}, or add a column {name!r} to {source}"
            )
    return Layout(rows, there, asked=asked)


def _rows_by_column(
    present: Collection[str],
    source: str,
    *,
    named: Mapping[str, str],
    refuse: Callable[[str], NoReturn],
) -> str:
    """Return what a row holds: ranks or scores, whichever column there is."""
    telling = {kind: COLUMNS[kind][0][0] for kind in ROWS}
    columns = {kind: named.get(role, role) for kind, role in telling.items()}
    possible = [kind for kind, column in columns.items() if column in present]
    if len(possible) > 1:
        listed = " and ".join(repr(columns[kind]) for kind in possible)
        choices = " or ".join(f"rows={kind!r}" for kind in possible)
        raise InputError(
            f"{source} has columns {listed}, which clash; say which to read: {choices}"
        )
    if possible:
        return possible[0]
    renamed = [column for kind, column in columns.items() if column != telling[kind]]
    return refuse([*renamed, "rank"][0])


def _refuse_missing(column: str, *, present: Collection[str], source: str, hint: str) -> NoReturn:
    """Refuse a table without a column, and say which one may be meant."""
    names = [str(name) for name in present]
    same = [name for name in names if name.casefold().strip() == column.casefold()]
    advice = hint
    if not advice and same and column in ROLES:
        advice = (
            f"to read {same[0]!r}, pass columns={{{column!r}: {same[0]!r}}} "
            f"(--column {column}={same[0]})"
        )
    if not advice:
        advice = suggest(column, names)
    if not advice and column in ROLES:
        advice = f"if one of them is meant, name it: columns={{{column!r}: ...}} (--column)"
    text = f"{source} has no column {column!r}; its columns are: {', '.join(names) or 'none'}"
    raise InputError(f"{text}; {advice}" if advice else text)


# -- values --------------------------------------------------------------------------------------

#: Finds the line of the first row with these cells, such as ``line 5``; empty where none is known.
FindLine: TypeAlias = Callable[[Mapping[str, Any]], str]


def no_line(_: Mapping[str, Any]) -> str:
    """Return no line: rows of frames and of Parquet files are not lines."""
    return ""


def checked(
    raw: Columns,
    times: IntArray,
    *,
    layout: Layout,
    source: str,
    find_line: FindLine = no_line,
) -> Columns:
    """Return numbers as floats and names as text, and refuse a bad value.

    ``raw`` are the distinct rows of a table as any engine gives them, numbers or text. Text counts
    as a number only if it is written as one. ``times`` is how often each row occurs.

    >>> rows = {"rank": np.array(["1", "7"], dtype=object)}
    >>> layout = Layout("ranks", {"rank": "rank"}, asked=Asked(items=50, sampled=9))
    >>> checked(rows, np.array([5, 2]), layout=layout, source="t.csv")
    {'rank': array([1., 7.])}
    """
    columns: Columns = {
        role: as_names(values) if layout.is_name(role) else _numbers(role, values)
        for role, values in raw.items()
    }
    rules = _rules(layout, columns)
    named = _Rule("a name in every row", hint=_FILL)
    # The limits of ranks depend on the design.
    for role in sorted(columns, key=lambda role: role not in DESIGN):
        rule = rules.get(role, named)
        bad = np.flatnonzero(~rule.holds(columns[role]))
        if len(bad):
            raise _complaint(
                rule,
                role,
                layout=layout,
                rows=_BadRows.of(raw, bad, role=role, layout=layout, times=times),
                source=source,
                find_line=find_line,
            )
    return columns


class _BadRows(NamedTuple):
    """The value that is shown of those that break a rule, and how many rows break it."""

    value: Any
    #: Rows with this value, and rows with another bad value.
    same: int
    others: int
    #: The cells by which a row with this value is found.
    cells: dict[str, Any]

    @classmethod
    def of(
        cls,
        raw: Columns,
        bad: npt.NDArray[np.intp],
        *,
        role: str,
        layout: Layout,
        times: IntArray,
    ) -> _BadRows:
        """Choose the value that comes first in the alphabet: engines have no order of rows."""
        shown = min((str(raw[role][row]), row) for row in bad.tolist())[1]
        is_same = [str(raw[role][row]) == str(raw[role][shown]) for row in bad.tolist()]
        same = int(times[bad[is_same]].sum())
        telling = (role, *DESIGN) if role == "rank" else (role,)
        cells = {layout.columns[name]: raw[name][shown] for name in telling if name in raw}
        return cls(raw[role][shown], same, others=int(times[bad].sum()) - same, cells=cells)


class _Rule(NamedTuple):
    """What a column must hold: numbers from ``low`` to ``high``, or names."""

    text: str
    error: type[InputError] = InputError
    hint: str = ""
    low: float = -np.inf
    high: Any = np.inf
    whole: bool = True

    def holds(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which values keep the rule."""
        if values.dtype.kind == "U":
            return np.asarray(values != "")
        with np.errstate(invalid="ignore"):
            inside = (values >= self.low) & (values <= self.high)
            is_whole = values % 1 == 0
        return np.asarray(inside & is_whole if self.whole else inside)


def _rules(layout: Layout, columns: Columns) -> dict[str, _Rule]:
    """Return what the columns must hold; limits may depend on other columns."""
    sizes = layout.asked.given
    largest = LARGEST_CATALOGUE
    sampled: Any = sizes.get("sampled", columns.get("sampled", largest))
    largest_rank = f"{sampled + 1} (sampled + 1)" if "sampled" in sizes else "sampled + 1"
    rules = {
        "target": _Rule("true or false (or 1 and 0)", low=0, high=1),
        "score": _Rule(
            "numbers",
            ScoreError,
            hint="a model that diverged gives such scores, and -inf may stand for an item to avoid",
            whole=False,
        ),
        "rank": _Rule(
            f"whole numbers from 1 to {largest_rank}", RankError, low=1, high=sampled + 1
        ),
        "relevance": _Rule(
            "1 where ranks are sampled",
            hint="drop rows of 0; grades count in full rankings (use unsample.exact)",
            low=1,
            high=1,
        ),
    }
    if layout.rows == "full ranks":
        rules["relevance"] = _Rule("numbers of at least 0", low=0, high=1e100, whole=False)
    if layout.rows == "negatives":
        last = sizes.get("items", largest) - 1
        rules["item"] = _Rule(
            f"item numbers from 0 to {last} (items - 1)",
            hint="items are numbered from 0; subtract 1 if yours start at 1",
            low=0,
            high=last,
        )
    for name, low in (("items", 2), ("sampled", 1)):
        rules[name] = _Rule(
            f"whole numbers from {low} to {largest}", DesignError, low=low, high=largest
        )
        if name in sizes:
            rules[name] = _Rule(
                f"{sizes[name]}, the number given as {name}",
                DesignError,
                hint="give one of them",
                low=sizes[name],
                high=sizes[name],
            )
    return rules


def _complaint(
    rule: _Rule,
    role: str,
    *,
    layout: Layout,
    rows: _BadRows,
    source: str,
    find_line: FindLine,
) -> InputError:
    """Return the error about a value: a word instead of a number, or a wrong number."""
    text = rule.text
    error = rule.error
    hint = rule.hint
    value = rows.value
    if not layout.is_name(role) and isinstance(value, str | bool | np.bool_):
        word = str(value).strip()
        if re.fullmatch(rf"{NUMBER}|(?i:nan)|", word):
            value = None if word.lower() in ("nan", "") else float(word)
        elif _WITH_COMMA.fullmatch(word):
            text = "numbers"
            error = FileError
            hint = "write no commas in numbers: 1234 for 1,234, and 0.5 for 0,5"
        elif role not in ("target", "score"):
            text = "numbers"
            error = FileError
            hint = "correct or drop such rows"
    plain = value.item() if hasattr(value, "item") else value
    if role == "rank" and isinstance(plain, int | float) and error is RankError:
        hint = rank_hint(plain)
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        plain = int(plain)
    missing = plain is None or plain == "" or plain != plain  # noqa: PLR0124 - NaN
    got = "no value" if missing else repr(plain)
    if missing and not hint:
        hint = _FILL
    said = f"got {got} in {rows.same:,} row{'s' if rows.same > 1 else ''}"
    line = find_line(rows.cells)
    if line:
        said += f" ({'first in ' if rows.same > 1 else ''}{line})"
    if rows.others:
        also = "others like it" if not missing else "bad values"
        said += f" and {also} in {rows.others:,} more"
    advice = f"; {hint}" if hint else ""
    return error(f"column {layout.columns[role]!r} of {source} must hold {text}, {said}{advice}")


def _numbers(role: str, values: npt.NDArray[Any]) -> FloatArray:
    """Return the numbers of a column; NaN where a cell holds none."""
    if values.dtype.kind in "iuf" or (values.dtype.kind == "b" and role == "target"):
        return values.astype(np.float64)
    return np.array([_number(role, cell) for cell in values.tolist()], dtype=np.float64)


def _number(role: str, cell: Any) -> float:
    """Return the number that a cell holds; NaN where it holds none."""
    if role == "target" and isinstance(cell, str | bool):
        return _FLAGS.get(str(cell).strip().lower(), np.nan)
    plain = isinstance(cell, int | float) and not isinstance(cell, bool)
    written = isinstance(cell, str) and re.fullmatch(NUMBER, cell)
    return float(cell) if plain or written else np.nan


def as_names(values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Return names as text; the empty one where there is none."""
    if values.dtype.kind in "Uiu":
        return values.astype(np.str_)
    return as_text_array("names", [_name(value) for value in values.tolist()], error=FileError)


def _name(value: Any) -> str:
    if value is None or value != value or str(value) == "<NA>":  # noqa: PLR0124 - NaN
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
