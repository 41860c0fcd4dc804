"""Bad rows, found again and named: file or frame, column, row and value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from unsample._checks import LARGEST_CATALOGUE
from unsample.errors import DesignError, InputError, RankError, ScoreError
from unsample.tables.frames._layout import LABEL, NAMES, Layout
from unsample.tables.frames._queries import TARGETS, bad_number
from unsample.tables.frames._roles import as_roles, rename_roles
from unsample.tables.frames._table import ROW, Part, Table, first_row, is_missing

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["refuse_row", "refuse_user", "refuse_words"]

#: How a number is written in a text file (an empty cell is null, and no number either).
_NUMBER = r"(?i)^\s*[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*$"


@dataclass(frozen=True)
class _Rule:
    """What a column must hold, which rows break it, and what to do about it."""

    text: str
    broken: nw.Expr
    error: type[InputError] = InputError
    hint: str = ""


def refuse_row(
    table: Table, layout: Layout, role: str, *, sampled: int | None = None, required: bool = True
) -> None:
    """Raise an error about the first row in which a column breaks its rule.

    Nothing happens when no such row is found and none is ``required``.
    """
    import narwhals as nw

    rule = _rule(layout, role, sampled)
    if layout.rows == "scores" and role in {"items", "weight"}:
        rule = replace(rule, broken=rule.broken & (nw.col("target") == 1))
    for part in table.parts():
        rows = as_roles(part.open_numbered(), layout, text=table.text)
        row = first_row(_in_order(rows.filter(rule.broken)))
        if row is not None:
            raise rule.error(_complaint(part, layout, role, row, rule))
    if required:
        raise rule.error(
            f"column {layout.column(role)!r} of {table.name} must hold {rule.text}"
            + (f"; {rule.hint}" if rule.hint else "")
        )


def refuse_words(table: Table, layout: Layout) -> None:
    """Raise an error about the first row of text in which a number cannot be read."""
    import narwhals as nw

    numbers = [role for role in layout.columns if role not in {*NAMES, "target"}]
    for part in table.parts():
        rows = rename_roles(part.open_numbered(), layout)
        for role in numbers:
            rule = _Rule("numbers", ~nw.col(role).str.contains(_NUMBER), table.error)
            row = first_row(_in_order(rows.filter(rule.broken)))
            if row is not None:
                raise rule.error(_complaint(part, layout, role, row, rule))


def refuse_user(
    table: Table, layout: Layout, users: nw.LazyFrame[Any], *, sampled: int | None = None
) -> NoReturn:
    """Raise an error about a user who has not exactly one target among the rows."""
    import narwhals as nw

    wrong = nw.col(TARGETS).is_null() | (nw.col(TARGETS) != 1) | (nw.col("sampled") < 1)
    if sampled is not None:
        wrong |= nw.col("sampled") != sampled
    # The smallest name, so that the message is the same in every engine.
    row = first_row(users.filter(wrong).sort([*layout.keys, "user"]))
    assert row is not None  # the groups have told that there is one
    raise _user_error(table, layout, row, sampled)


def _user_error(
    table: Table, layout: Layout, row: dict[str, Any], sampled: int | None
) -> InputError:
    who = f"user {row['user']!r}"
    if layout.by is not None:
        who += f" (with {layout.by} {row[LABEL]!r})"
    targets = 0 if is_missing(row[TARGETS]) else int(row[TARGETS])
    if targets != 1:
        rule = f"each user of {table.name} must have one target, {who} has {targets or 'none'}"
        advice = (
            "give each target a user of its own (columns={'user': ...}) with the items it is "
            "compared with"
            if targets
            else f"set {layout.column('target')!r} in the row of the target"
        )
        return InputError(f"{rule}; {advice}")
    if sampled is None:
        return DesignError(
            f"each target of {table.name} must be compared with at least one other item, {who} "
            "has the target's row alone"
        )
    return DesignError(
        f"sampled is {sampled} by argument, but {who} of {table.name} has {int(row['sampled'])} "
        "rows besides the target's; leave sampled out to take it from the rows"
    )


def _rule(layout: Layout, role: str, sampled: int | None) -> _Rule:
    import narwhals as nw

    value = nw.col(role)
    if role in {"rank", "better", "tied"}:
        return _rank_rule(layout, role, sampled)
    if role in {"items", "sampled"}:
        low = 2 if role == "items" else 1
        text = f"whole numbers from {low} to {LARGEST_CATALOGUE}"
        return _Rule(text, _outside(role, low, LARGEST_CATALOGUE), DesignError)
    rules = {
        "target": _Rule(
            "true or false (or 1 and 0)", value.is_null() | ((value != 0) & (value != 1))
        ),
        "score": _Rule(
            "numbers",
            value.is_null() | value.is_nan(),
            ScoreError,
            "a model that diverged gives such scores, and -inf may stand for an item to avoid",
        ),
        "weight": _Rule("finite numbers of at least 0", bad_number(role)),
        "count": _Rule("whole numbers of at least 0", bad_number(role, whole=True), RankError),
    }
    names = _Rule("a name in every row", value.is_null(), hint="fill in or drop such rows")
    return rules.get(role, names)


def _rank_rule(layout: Layout, role: str, sampled: int | None) -> _Rule:
    import narwhals as nw

    low, extra = (1, 1) if role == "rank" else (0, 0)
    most = nw.col("sampled") if "sampled" in layout else nw.lit(sampled)
    broken = _outside(role, low, most + extra)
    if role == "tied":
        broken |= (nw.col("better") + nw.col("tied")) > most
    top = "sampled + 1" if role == "rank" else "sampled"
    shown = top if "sampled" in layout or sampled is None else f"{sampled + extra} ({top})"
    hint = {
        "rank": "1 is the best, and ranks among all items need no estimate (use unsample.exact)",
        "tied": "better and tied together are at most sampled",
    }.get(role, "")
    return _Rule(f"whole numbers from {low} to {shown}", broken, RankError, hint)


def _outside(role: str, low: int, high: Any) -> nw.Expr:
    import narwhals as nw

    value = nw.col(role).cast(nw.Float64)
    outside: nw.Expr = bad_number(role, whole=True) | (value < low) | (value > high)
    return outside


def _in_order(rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    return rows.sort(ROW) if ROW in rows.collect_schema() else rows


def _complaint(part: Part, layout: Layout, role: str, row: dict[str, Any], rule: _Rule) -> str:
    place = f" in row {row[ROW] + 1}" if ROW in row else _values(row, layout, role)
    text = f"column {layout.column(role)!r} of {part.name} must hold {rule.text}, got "
    return text + _show(row[role]) + place + (f"; {rule.hint}" if rule.hint else "")


def _values(row: dict[str, Any], layout: Layout, role: str) -> str:
    """Describe a row of an engine that does not number its rows."""
    shown = [
        f"{layout.column(name)}={_show(value)}"
        for name, value in row.items()
        if name not in {role, ROW}
    ]
    return f" (in the row with {', '.join(shown)})" if shown else ""


def _show(value: Any) -> str:
    if is_missing(value):
        return "NaN" if isinstance(value, float) else "null"
    return repr(value)
