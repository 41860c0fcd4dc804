"""The same counting as SQL text, for a warehouse that nothing else can reach.

The query gives a small table of counts; exported in any format that `unsample estimate` reads, it
is all that is needed. Users who cannot be ranked (no target or several, a score that is null or
NaN) are not dropped in silence: their row has nulls for ``better`` and ``tied``, which `estimate`
refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unsample._checks import check_choice
from unsample.errors import InputError
from unsample.tables.frames._layout import NEEDED, Layout

__all__ = ["DIALECTS", "counts_query"]


@dataclass(frozen=True)
class _Dialect:
    """How one SQL writes names and tells NaN; standard SQL has no NaN to tell."""

    quote: str = '"'
    is_nan: str | None = None

    def name(self, column: str) -> str:
        return self.quote + column.replace(self.quote, self.quote * 2) + self.quote


_DIALECTS = {
    "ansi": _Dialect(),
    "duckdb": _Dialect(is_nan="isnan({})"),
    "spark": _Dialect(quote="`", is_nan="isnan({})"),
}
DIALECTS = tuple(_DIALECTS)


def counts_query(
    table: str,
    *,
    rows: str = "scores",
    by: str | None = None,
    columns: Mapping[str, str] | None = None,
    dialect: str = "ansi",
) -> str:
    """Return the SQL that turns a table of scores or ranks into a table of counts.

    Parameters
    ----------
    table
        What stands behind FROM: a table's name, or an expression such as
        ``read_parquet('runs/*.parquet')``. It is put into the query as it is.
    rows
        ``"scores"`` (columns ``user``, ``score``, ``target``) or ``"ranks"`` (``rank``).
    by
        A column to count by, such as ``model``.
    columns
        Names of columns, by role; naming one of the optional roles (``item``, ``items``,
        ``weight``, ``sampled``, ``count``) makes the query use it.
    dialect
        ``"ansi"``, ``"duckdb"`` or ``"spark"``.

    >>> print(counts_query("ranks", rows="ranks", by="model"))
    SELECT
      "model",
      "rank",
      COUNT(*) AS "count"
    FROM ranks
    GROUP BY "model", "rank"
    """
    check_choice("rows", rows, ("scores", "ranks"))
    chosen = _DIALECTS[check_choice("dialect", dialect, DIALECTS)]
    if not table.strip():
        raise InputError("table must name what to read FROM, got nothing")
    named = {role: role for role in NEEDED[rows]} | dict(columns or {})
    present = [*named.values(), *([by] if by is not None else [])]
    layout = Layout.find(present, "the table", rows=rows, columns=named, by=by)
    query = _of_ranks if rows == "ranks" else _of_scores
    return query(table.strip(), layout, chosen)


def _of_ranks(table: str, layout: Layout, dialect: _Dialect) -> str:
    roles = [role for role in ("rank", "sampled", "items", "weight") if role in layout]
    count = f"SUM({dialect.name(layout.column('count'))})" if "count" in layout else "COUNT(*)"
    labels = _labels(layout, dialect)
    keys = [*labels, *(dialect.name(layout.column(role)) for role in roles)]
    shown = [*labels, *(_renamed(layout.column(role), role, dialect) for role in roles)]
    chosen = _select([*shown, f"{count} AS {dialect.name('count')}"])
    return f"{chosen}\nFROM {table}\nGROUP BY {', '.join(keys)}"


def _of_scores(table: str, layout: Layout, dialect: _Dialect) -> str:
    """Three steps: the targets, each user's items compared with them, and users who are alike."""
    steps = {
        "targets": _targets(table, layout, dialect),
        "users": _users(table, layout, dialect),
        "cells": _cells(layout, dialect),
    }
    steps_text = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in steps.items())
    keys = [*_labels(layout, dialect), *(dialect.name(role) for role in _shares(layout))]
    return "\n".join(
        [
            f"WITH {steps_text}",
            _select(["*", f"COUNT(*) AS {dialect.name('count')}"]),
            "FROM cells",
            f"GROUP BY {', '.join([*keys, 'sampled', 'better', 'tied'])}",
        ]
    )


def _targets(table: str, layout: Layout, dialect: _Dialect) -> str:
    name = dialect.name
    keys = [*_labels(layout, dialect), name(layout.column("user"))]
    kept = ["score", *(["item"] if "item" in layout else []), *_shares(layout)]
    chosen = [
        *keys,
        *(f"MAX({name(layout.column(role))}) AS target_{role}" for role in kept),
        "COUNT(*) AS targets",
    ]
    flag = f"CAST({name(layout.column('target'))} AS INTEGER) = 1"
    return _indented(f"{_select(chosen)}\nFROM {table}\nWHERE {flag}\nGROUP BY {', '.join(keys)}")


def _users(table: str, layout: Layout, dialect: _Dialect) -> str:
    keys = [*_labels(layout, dialect), dialect.name(layout.column("user"))]
    score = f"s.{dialect.name(layout.column('score'))}"
    unranked = f"{score} IS NULL"
    if dialect.is_nan is not None:
        unranked += f" OR {dialect.is_nan.format(score)}"
    better, tied = f"{score} > t.target_score", f"{score} = t.target_score"
    if "item" in layout:
        # This leaves out the target's own row, and a sampled item that is the target itself.
        other = f"s.{dialect.name(layout.column('item'))} <> t.target_item"
        counts = [_count(other), _count(f"{better} AND {other}"), _count(f"{tied} AND {other}")]
    else:
        counts = ["COUNT(*) - 1", _count(better), f"{_count(tied)} - 1"]
    chosen = [
        *(f"s.{key}" for key in keys),
        *(f"MAX(t.target_{role}) AS target_{role}" for role in _shares(layout)),
        "MAX(t.targets) AS targets",
        f"{_count(unranked)} AS unranked",
        *(f"{n} AS {as_}" for n, as_ in zip(counts, ("sampled", "better", "tied"), strict=True)),
    ]
    same = " AND ".join(f"s.{key} = t.{key}" for key in keys)
    return _indented(
        f"{_select(chosen)}\nFROM {table} AS s\nLEFT JOIN targets AS t ON {same}\n"
        f"GROUP BY {', '.join(f's.{key}' for key in keys)}"
    )


def _cells(layout: Layout, dialect: _Dialect) -> str:
    rankable = "CASE WHEN targets = 1 AND unranked = 0 THEN {0} END AS {0}"
    chosen = [
        *_labels(layout, dialect),
        *(f"target_{role} AS {dialect.name(role)}" for role in _shares(layout)),
        "sampled",
        *(rankable.format(column) for column in ("better", "tied")),
    ]
    return _indented(f"{_select(chosen)}\nFROM users")


def _labels(layout: Layout, dialect: _Dialect) -> list[str]:
    return [dialect.name(layout.by)] if layout.by is not None else []


def _shares(layout: Layout) -> list[str]:
    """Return the roles that a user's target row gives to the user."""
    return [role for role in ("items", "weight") if role in layout]


def _count(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _renamed(column: str, role: str, dialect: _Dialect) -> str:
    name = dialect.name(column)
    return name if column == role else f"{name} AS {dialect.name(role)}"


def _select(expressions: list[str]) -> str:
    return "SELECT\n" + ",\n".join(f"  {expression}" for expression in expressions)


def _indented(query: str) -> str:
    return "\n".join(f"  {line}" for line in query.splitlines())
