"""Which column of a table means what.

Three kinds of rows lead to counts:

``ranks``
    one target a row: ``rank`` (1 is the best, among sampled + 1 items);
``comparisons``
    one target a row: how many sampled items are ``better`` than it, and how many are ``tied``;
``scores``
    one scored item a row: ``user``, ``score`` and ``target`` (true for the user's target, false
    for the items it is compared with), and possibly ``item``.

Rows of ranks and comparisons may have ``count`` (how many targets they stand for), ``sampled`` and
``items`` (the design of the row); all may have ``weight`` (how much a target counts). Scored rows
tell ``sampled`` by their number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from unsample._checks import check_choice, suggest
from unsample.errors import DesignError, InputError

__all__ = ["LABEL", "NAMES", "NEEDED", "ROWS", "Layout"]

#: The name that the column to group by has inside.
LABEL = "label"
#: Kind of rows -> the columns it needs.
NEEDED = {
    "ranks": ("rank",),
    "comparisons": ("better", "tied"),
    "scores": ("user", "score", "target"),
}
_OPTIONAL = {
    "ranks": ("count", "sampled", "items", "weight"),
    "comparisons": ("count", "sampled", "items", "weight"),
    "scores": ("item", "items", "weight"),
}
ROWS = tuple(NEEDED)
_ROLES = tuple(dict.fromkeys(role for kind in ROWS for role in (*NEEDED[kind], *_OPTIONAL[kind])))
#: Roles whose columns may hold anything that can be compared for equality.
NAMES = ("user", "item", LABEL)


@dataclass(frozen=True)
class Layout:
    """The kind of rows, the table's column for each role it has, and the column to group by."""

    rows: str
    columns: Mapping[str, str]
    by: str | None = None

    @classmethod
    def find(
        cls,
        present: Collection[str],
        source: str,
        *,
        rows: str | None = None,
        columns: Mapping[str, str] | None = None,
        by: str | None = None,
        error: type[InputError] = InputError,
    ) -> Layout:
        """Choose the columns by their names; ``columns`` gives those that have other names."""
        named = _check_roles(columns or {})
        kind = _kind_of_rows(present, named, source, rows, error)
        roles = (*NEEDED[kind], *_OPTIONAL[kind])
        for role in named:
            if role not in roles:
                raise InputError(
                    f"columns must be roles of {kind} rows ({', '.join(roles)}), got {role!r}"
                )
        chosen = {role: named.get(role, role) for role in roles}
        for role, column in chosen.items():
            if column not in present and (role in NEEDED[kind] or role in named):
                raise error(_missing(column, present, source, kind))
        if by is not None and by not in present:
            raise error(_missing(by, present, source, kind))
        there = {role: column for role, column in chosen.items() if column in present}
        return cls(kind, there, by)

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    @property
    def keys(self) -> list[str]:
        """Return the role to group by, if there is one."""
        return [LABEL] if self.by is not None else []

    @property
    def labelled(self) -> dict[str, str]:
        """Return the columns that are read, by role, the one to group by among them."""
        return dict(self.columns) | ({LABEL: self.by} if self.by is not None else {})

    def column(self, role: str) -> str:
        """Return what the table calls a role."""
        return self.labelled[role]

    def check_design(self, items: int | None, sampled: int | None, source: str) -> None:
        """Refuse a table of which the designs are unknown."""
        given = {"items": items, "sampled": sampled}
        for name in ("items",) if self.rows == "scores" else ("items", "sampled"):
            if given[name] is None and name not in self:
                raise DesignError(
                    f"{name} must be given: pass {name}, or add a column {name!r} to {source}"
                )


def _check_roles(columns: Mapping[str, str]) -> Mapping[str, str]:
    for role in columns:
        check_choice("columns", role, _ROLES)
    return columns


def _kind_of_rows(
    present: Collection[str],
    named: Mapping[str, str],
    source: str,
    rows: str | None,
    error: type[InputError],
) -> str:
    if rows is not None:
        return check_choice("rows", rows, ROWS)
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
        likely = next((kind for kind, role in telling.items() if role in named), "ranks")
        column = named.get(telling[likely], telling[likely])
        raise error(_missing(column, present, source, likely))
    return found[0]


def _missing(column: str, present: Collection[str], source: str, kind: str) -> str:
    shown = ", ".join(map(str, present)) or "none"
    near = suggest(column, map(str, present))
    text = f"{source} has no column {column!r}; its columns are: {shown}"
    if near:
        return f"{text}; {near}"
    others = [f"{role!r}" for role in NEEDED[kind] if role != column]
    return text + (f" (rows of {kind} also need {', '.join(others)})" if others else "")
