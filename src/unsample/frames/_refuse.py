"""Bad rows, found again and named: file or frame, column, row and value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from unsample._checks import LARGEST_CATALOGUE
from unsample.errors import DesignError, InputError, RankError, ScoreError
from unsample.frames._layout import LABEL, Layout
from unsample.frames._queries import TARGETS, bad_number
from unsample.frames._table import ROW, Table, is_missing

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["refuse_row", "refuse_user"]


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
    rule = _rule(layout, role, sampled)
    for part in table.parts():
        numbered = [ROW] if ROW in part.frame.collect_schema() else []
        broken = layout.select(part.frame, *numbered).filter(rule.broken).head(1).collect()
        for row in broken.iter_rows(named=True):
            place = f" in row {row[ROW] + 1}" if numbered else _values(row, layout, role)
            text = f"column {layout.column(role)!r} of {part.name} must hold {rule.text}"
            raise rule.error(_sentence(text, _show(row[role]) + place, rule.hint))
    if required:
        raise rule.error(
            f"column {layout.column(role)!r} of {table.name} must hold {rule.text}"
            + (f"; {rule.hint}" if rule.hint else "")
        )


def refuse_user(
    table: Table, layout: Layout, users: nw.LazyFrame[Any], *, sampled: int | None = None
) -> NoReturn:
    """Raise an error about a user who has not exactly one target among the rows."""
    import narwhals as nw

    wrong = nw.col(TARGETS).is_null() | (nw.col(TARGETS) != 1) | (nw.col("sampled") < 1)
    if sampled is not None:
        wrong |= nw.col("sampled") != sampled
    # The smallest name, so that the message is the same in every engine.
    found = users.filter(wrong).sort([*layout.keys, "user"]).head(1).collect()
    row = next(found.iter_rows(named=True))
    who = f"user {row['user']!r}"
    if layout.by is not None:
        who += f" (with {layout.by} {row[LABEL]!r})"
    targets = 0 if is_missing(row[TARGETS]) else int(row[TARGETS])
    flag = layout.column("target")
    if targets == 0:
        raise InputError(
            f"each user of {table.name} must have one target, {who} has none; set {flag!r} in the "
            "row of the target"
        )
    if targets > 1:
        raise InputError(
            f"each user of {table.name} must have one target, {who} has {targets}; give each "
            "target a user of its own (columns={'user': ...}) with the items it is compared with"
        )
    if sampled is None:
        raise DesignError(
            f"each target of {table.name} must be compared with at least one other item, {who} "
            "has the target's row alone"
        )
    raise DesignError(
        f"sampled is {sampled} by argument, but {who} of {table.name} has {int(row['sampled'])} "
        "rows besides the target's; leave sampled out to take it from the rows"
    )


def _rule(layout: Layout, role: str, sampled: int | None) -> _Rule:
    import narwhals as nw

    value = nw.col(role)
    if role in {LABEL, "user", "item"}:
        return _Rule("a name in every row", value.is_null(), hint="fill in or drop such rows")
    if role == "target":
        broken = value.is_null() | ~value.cast(nw.Float64).is_in([0.0, 1.0])
        return _Rule("true or false (or 1 and 0)", broken)
    if role == "score":
        number = value.cast(nw.Float64)
        hint = "a model that diverged gives such scores, and -inf may stand for an item to avoid"
        return _Rule("numbers", number.is_null() | number.is_nan(), ScoreError, hint)
    if role == "weight":
        return _Rule("finite numbers of at least 0", bad_number(role))
    if role == "count":
        return _Rule("whole numbers of at least 0", bad_number(role, whole=True), RankError)
    if role in {"items", "sampled"}:
        low = 2 if role == "items" else 1
        text = f"whole numbers from {low} to {LARGEST_CATALOGUE}"
        return _Rule(text, _outside(role, low, LARGEST_CATALOGUE), DesignError)
    return _rank_rule(layout, role, sampled)


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
        "rank": "ranks start at 1 and are among the sampled items and the target; ranks in the "
        "full catalogue need no estimate (use unsample.exact)",
        "tied": "better and tied together are at most sampled",
    }.get(role, "")
    return _Rule(f"whole numbers from {low} to {shown}", broken, RankError, hint)


def _outside(role: str, low: int, high: Any) -> nw.Expr:
    import narwhals as nw

    value = nw.col(role).cast(nw.Float64)
    return bad_number(role, whole=True) | (value < low) | (value > high)


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


def _sentence(rule: str, got: str, hint: str) -> str:
    return f"{rule}, got {got}" + (f"; {hint}" if hint else "")
