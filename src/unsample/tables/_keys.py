"""Key columns, which name the data set, model or run of a row: errors and warnings about pooling.

A column that seems to name users, and is not read as such, is warned of too: every row would count
as a user of its own.

One name of a user in two data sets means two people, and a user's ranks under two training seeds
are one target twice. Their pooled metric means nothing. So a table with several data sets is
refused, and a warning names other key columns.

A row that is there twice makes a user with two targets, whose metrics are others: it is warned of.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from unsample._checks import warn
from unsample.errors import InputError
from unsample.tables._layout import COLUMNS, MODEL, Asked, Layout
from unsample.tables._lines import find_lines
from unsample.tables._sources import SOURCE_MODEL, OpenedTable

#: Names of columns, in small letters and without separators.
_DATA_SETS = frozenset({"dataset", "datasets", "datasetid", "datasetname", "corpus"})
_MODELS = frozenset({MODEL, "modelid", "modelname", "algorithm", "method", "recommender", "system"})
_RUNS = frozenset({
    "run", "runid", "seed", "seedid", "randomseed", "randomstate", "fold", "foldid", "kfold",
    "cvfold", "repeat", "repetition", "trial", "trialid",
})  # fmt: skip
_PARTS = frozenset({"split", "subset", "day", "week", "month", "epoch"})
_USERS = frozenset({
    "users", "userid", "useridx", "uid", "username", "customer", "customerid", "query", "queryid",
    "qid",
})  # fmt: skip
_ONE_BY_ONE = "take the rows of one at a time"


def is_key(column: str) -> bool:
    """Return whether a column's values name data sets, models, runs, other parts, or users.

    >>> is_key("Data set"), is_key("seed"), is_key("score")
    (True, True, False)
    """
    return _plain(column) in _DATA_SETS | _MODELS | _RUNS | _PARTS | _USERS


def check_keys(table: OpenedTable, layout: Layout) -> None:
    """Refuse a table whose data sets would be pooled; warn of other parts, and of unread users."""
    asked = layout.asked
    across = [] if asked.across is None else [asked.across]
    groups = [*across, *(layout.columns[role] for role in ("model", "run") if role in layout)]
    read = {*layout.columns.values(), *across}
    keys = [column for column in table.kinds if column not in read and is_key(column)]
    users = [column for column in keys if _plain(column) in _USERS]
    data_sets = [column for column in keys if _is_data_set(column)]
    for column in data_sets:
        # Models must not be compared either if each was ranked on another data set.
        values = _pooled(table, column, groups=across if _compares(asked) else groups)
        if values is not None:
            raise InputError(
                f"column {column!r} of {table.name} must hold one data set, got several, such as "
                f"{values[0]!r} and {values[1]!r}; {_of_data_sets(column, asked)}"
            )
    for column in keys:
        if column in users or column in data_sets:
            continue
        values = _pooled(table, column, groups=groups)
        if values is not None:
            pooled = "models" if _plain(column) in _MODELS else "rows"
            warn(
                f"column {column!r} of {table.name} has several values, such as {values[0]!r} and "
                f"{values[1]!r}: the {pooled} are pooled as if they were one; "
                f"{_of_parts(column, asked, table=table)}"
            )
    if "user" not in layout and "user" in sum(COLUMNS.get(layout.rows, ()), ()):
        _warn_of_users(table, users, groups=groups)


def _warn_of_users(
    table: OpenedTable, columns: Collection[str], *, groups: Collection[str]
) -> None:
    """Warn of columns that seem to name users, if they name several rows of a group alike."""
    dialect = table.engine.dialect
    for column in columns:
        name = f"CAST({dialect.name(column)} AS {dialect.text})"
        keys = ", ".join([*map(dialect.name, groups), name])
        several = f"SELECT {name} AS who FROM {table.rows} WHERE {name} <> '' GROUP BY {keys}"
        users = table.engine.ask(f"{several} HAVING COUNT(*) > 1 ORDER BY who LIMIT 1")["who"]
        if len(users):
            warn(
                f"column {column!r} of {table.name} has one value in several rows, such as "
                f"{str(users[0])!r}, and each row counts as a user of its own; if it names the "
                f"users, pass columns={{'user': {column!r}}} (--column user={column})"
            )


#: Columns that tell the rows of one user apart, where a table has them.
_TELLING = ("rank", "item", "sampled", "items", "relevance")


def warn_of_repeats(table: OpenedTable, layout: Layout) -> None:
    """Warn of rows of ranks that repeat another: one pasted twice makes a user of two targets.

    Users with several targets may well have equal ranks. So without a column ``item`` rows are
    called repeats only where no user has two different ones.
    """
    if layout.rows != "ranks" or "user" not in layout:
        return
    dialect = table.engine.dialect
    roles = [role for role in ("model", "run", "user") if role in layout]
    owners = list(dict.fromkeys(layout.columns[role] for role in roles))
    keys = [column for column in table.kinds if is_key(column)]
    telling = [layout.columns.get(role, role) for role in _TELLING]
    others = [column for column in dict.fromkeys([*keys, *telling]) if column in table.kinds]
    columns = [*owners, *(column for column in others if column not in owners)]
    listed = ", ".join(map(dialect.name, columns))
    alike = f"SELECT {listed}, COUNT(*) AS times FROM {table.rows} GROUP BY {listed}"
    if "item" not in table.kinds:
        owner = ", ".join(map(dialect.name, owners))
        differ = f"SELECT 1 AS one FROM ({alike}) AS a GROUP BY {owner} HAVING COUNT(*) > 1 LIMIT 1"
        if len(table.engine.ask(differ)["one"]):
            return
    more = f"SELECT SUM(times - 1) AS more FROM ({alike}) AS a"
    repeats = int(table.engine.ask(more)["more"][0])
    if not repeats:
        return
    first = table.engine.ask(
        f"SELECT * FROM ({alike}) AS a WHERE times > 1 ORDER BY {listed} LIMIT 1"
    )
    hidden = ("times", SOURCE_MODEL)
    cells = {column: values[0] for column, values in first.items() if column not in hidden}
    shown = ", ".join(f"{column} {_shown(cell)}" for column, cell in cells.items())
    lines = " and ".join(find_lines(table.texts, cells, most=2))
    where = f" ({lines})" if lines else ""
    warn(
        f"{table.name} has rows that may be duplicates: {repeats:,} "
        f"{'row repeats' if repeats == 1 else 'rows repeat'} the user and the rank of another, "
        f"such as {shown}{where}; each counts as one more target of its user: drop duplicates, or "
        "add a column 'item' that tells targets apart"
    )


def _shown(cell: Any) -> str:
    """Return a cell as a message shows it."""
    plain = cell.item() if hasattr(cell, "item") else cell
    return repr(plain)


def _is_data_set(column: str) -> bool:
    return _plain(column) in _DATA_SETS


def _plain(column: str) -> str:
    return re.sub(r"[ ._-]", "", column.casefold())


def _compares(asked: Asked) -> bool:
    """Return whether models are compared: those of one table, or of a table for each."""
    return asked.runs or asked.by == SOURCE_MODEL


def _pooled(table: OpenedTable, column: str, *, groups: Collection[str]) -> tuple[str, str] | None:
    """Return two values of a column that occur in one group, if there are any.

    An empty cell counts as a value: rows without a data set are not of the named ones.
    """
    dialect = table.engine.dialect
    text = f"COALESCE(CAST({dialect.name(column)} AS {dialect.text}), '')"
    inside = f" GROUP BY {', '.join(map(dialect.name, groups))}" if groups else ""
    ends = f"SELECT MIN({text}) AS low, MAX({text}) AS high FROM {table.rows}{inside}"
    differing = f"SELECT low, high FROM ({ends}) AS e WHERE low <> high LIMIT 1"
    values = table.engine.ask(differing)
    if not len(values["low"]):
        return None
    return str(values["low"][0]), str(values["high"][0])


def _of_data_sets(column: str, asked: Asked) -> str:
    """Return what to do about several data sets."""
    if asked.runs and asked.across is None:
        return f"compare on each, and by the means over them: across={column!r}"
    if asked.by == SOURCE_MODEL:
        return f"give one table of all, with a column {MODEL!r}, and across={column!r}"
    if asked.kind is None and asked.by is None:
        return f"estimate for each: by={column!r}"
    return _ONE_BY_ONE


def _of_parts(column: str, asked: Asked, *, table: OpenedTable) -> str:
    """Return what to do about other parts of a table."""
    name = _plain(column)
    if asked.kind is None and asked.by is None:
        return f"to estimate for each, pass by={column!r}"
    if asked.by == SOURCE_MODEL and name in _RUNS:
        return "give a list of tables for a model, one for each run"
    if asked.runs and name in _RUNS and "run" not in table.kinds:
        role = f"columns={{'run': {column!r}}} (--column run={column})"
        return f"to count them as runs of each model, pass {role}"
    if asked.runs and name in _PARTS and asked.across is None:
        return f"to compare on each, pass across={column!r}"
    return _ONE_BY_ONE
