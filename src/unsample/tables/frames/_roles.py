"""The columns of a table under the names of their roles, in the types that the queries expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.tables.frames._layout import NAMES, Layout
from unsample.tables.frames._table import ROW, Part, Table

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["as_roles", "check_types", "read_roles", "rename_roles"]

#: Roles of real numbers; the others are whole, and stay as they are to be exact at any size.
_REAL = ("score", "weight")


def read_roles(table: Table, layout: Layout) -> nw.LazyFrame[Any]:
    """Return the columns that are read, called by their roles."""
    columns = list(dict.fromkeys(layout.labelled.values()))
    return as_roles(table.read(columns), layout, text=table.text)


def as_roles(frame: nw.LazyFrame[Any], layout: Layout, *, text: bool) -> nw.LazyFrame[Any]:
    """Rename the columns, make numbers of text and of flags; the numbers of rows are kept."""
    import narwhals as nw

    schema = frame.collect_schema()
    casts: dict[str, nw.Expr] = {}
    for role, column in layout.columns.items():
        dtype = schema[column]
        if role == "target":
            casts[role] = _flag(dtype)
        elif role not in NAMES and (text or role in _REAL or dtype.is_decimal()):
            casts[role] = nw.col(role).cast(nw.Float64)
    renamed = rename_roles(frame, layout)
    return renamed.with_columns(**casts) if casts else renamed


def rename_roles(frame: nw.LazyFrame[Any], layout: Layout) -> nw.LazyFrame[Any]:
    """Keep the columns that are read, and call each by its role."""
    import narwhals as nw

    kept = [nw.col(ROW)] if ROW in frame.collect_schema() else []
    renamed = [nw.col(column).alias(role) for role, column in layout.labelled.items()]
    return frame.select(*renamed, *kept)


def _flag(dtype: Any) -> nw.Expr:
    """Return the target flag as 0 and 1 (anything else stays what it is, to be refused)."""
    import narwhals as nw

    flag = nw.col("target")
    if dtype != nw.String:
        return flag.cast(nw.Int64) if dtype == nw.Boolean else flag
    word = flag.str.to_lowercase()
    known = nw.when(word.is_in(["1", "true"])).then(nw.lit(1))
    return known.otherwise(nw.when(word.is_in(["0", "false"])).then(nw.lit(0)))


def check_types(table: Table, layout: Layout) -> None:
    """Refuse columns that cannot hold what their role asks for, file by file."""
    first: Part | None = None
    for part in table.parts():
        for column in layout.labelled.values():
            if column not in part.schema:
                raise table.error(
                    f"{part.name} has no column {column!r}, which "
                    f"{first.name if first else table.name} has; its columns are: "
                    f"{', '.join(part.schema)}"
                )
        if not table.text:
            _check_kinds(part, layout, table)
            if first is not None:
                _check_alike(first, part, layout, table)
        first = first or part


def _check_kinds(part: Part, layout: Layout, table: Table) -> None:
    for role, column in layout.columns.items():
        allowed = _allowed_kinds(role)
        if allowed and _kind(part.schema[column]) not in allowed:
            what = "true and false (or 1 and 0)" if role == "target" else "numbers"
            raise table.error(
                f"column {column!r} of {part.name} must hold {what}, its type is "
                f"{part.schema[column]}"
            )


def _check_alike(first: Part, part: Part, layout: Layout, table: Table) -> None:
    for column in layout.labelled.values():
        kinds = _kind(first.schema[column]), _kind(part.schema[column])
        if kinds[0] != kinds[1]:
            raise table.error(
                f"column {column!r} must be of one type in all files, got "
                f"{first.schema[column]} in {first.name} and {part.schema[column]} in {part.name}"
            )


def _allowed_kinds(role: str) -> tuple[str, ...]:
    if role in NAMES:
        return ()
    return ("number", "flag", "text") if role == "target" else ("number",)


def _kind(dtype: Any) -> str:
    import narwhals as nw

    if dtype.is_numeric():
        return "number"
    names = {nw.Boolean: "flag", nw.String: "text", nw.Categorical: "text", nw.Enum: "text"}
    return next((name for known, name in names.items() if dtype == known), str(dtype))
