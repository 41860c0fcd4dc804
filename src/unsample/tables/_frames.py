"""Frames of any engine, through narwhals: the engine groups and adds, and the groups come back.

Helper columns are made before a group-by, so that each aggregate is of one column: all that some
engines offer. Bad values are looked for among the groups, which are few; only when there is one is
the engine asked for the row it came from.
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from unsample._archives import check_unpacked
from unsample._checks import import_extra
from unsample.errors import InputError
from unsample.tables._arrays import (
    check_users,
    compare_scores,
    converted,
    failures_of,
    with_design,
)
from unsample.tables._layout import (
    NAMES,
    POOLED,
    TARGETS,
    ArrayValues,
    Columns,
    Layout,
    Request,
    Rule,
    check_same_roles,
    complaint,
    first_broken,
    is_missing,
    kind_of_values,
    show,
    user_complaint,
    warn_of_pooled_models,
    wrong_user,
)

Frame: TypeAlias = "nw.LazyFrame[Any]"
#: The column that numbers the rows of a part, from 0, where its engine keeps their order.
ROW = "unsample_row_number"
_BAD, _SHOWN, _TIMES = "bad", "shown", "times"
#: Roles of real numbers; the others are whole, and stay as they are to be exact at any size.
_REAL = ("score", "relevance")


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a table that have a place of their own (a file), with a column `ROW` if numbered."""

    name: str
    schema: Mapping[str, Any]
    numbered: Callable[[], Frame]


@dataclass(frozen=True, eq=False)
class FrameTable:
    """Rows that an engine can be asked for.

    ``parts`` are the same rows piece by piece, to compare the types of files and to find a bad row
    again; ``failures`` is what the engine raises when it meets a file that it cannot read.
    """

    name: str
    parts: Sequence[Part]
    whole: Callable[[], Frame]
    request: Request
    failures: tuple[type[BaseException], ...] = ()
    #: Bytes of files, which must not unpack to far more.
    packed: int = 0

    @classmethod
    def of(cls, native: Any, request: Request) -> FrameTable:
        """Wrap a data frame of any supported library."""
        name = "the frame"
        try:
            frame = nw.from_native(native)
            schema = frame.collect_schema()
        except TypeError as problem:
            raise InputError(
                "source must be a path, a list of paths, or a data frame of pandas, Polars, "
                f"PyArrow, DuckDB or PySpark, got {type(native).__name__}; pass plain "
                "sequences of ranks to RankCounts.from_ranks"
            ) from problem
        except nw.exceptions.DuplicateError as problem:
            raise InputError(f"{name} has two columns of one name: {problem}") from problem

        def numbered() -> Frame:
            lazy: Frame = frame.lazy()
            if isinstance(frame, nw.DataFrame):
                lazy = frame.with_row_index(ROW).lazy()
            elif frame.implementation.is_polars():
                lazy = nw.from_native(native.with_row_index(ROW))
            return lazy

        return cls(name, [Part(name, schema, numbered)], frame.lazy, request)

    def rows(self, *, one_by_one: bool, scored: bool = False) -> tuple[Layout, Iterator[Columns]]:
        """Return all targets, or the groups of those that count the same, with their sums.

        Rows that are ``scored``, or that name a pool of items, come as they are, item by item.
        """
        layout = self._layout()
        with failures_of(self.name, self.failures):
            frame = _as_roles(self.whole(), layout)
            if layout.scores and (scored or "pool" in layout):
                kept = [role for role in layout.read if role != POOLED]
                return layout, iter([self._checked(frame.select(*kept), layout, grouped=False)])
            several = self._several(frame, layout)
            if one_by_one or several or {"relevance", "pool"} & set(layout.columns):
                found = self._targets(frame, layout, several)
            else:
                found = self._cells(frame, layout)
            return layout, iter([with_design(found, layout)])

    def records(self) -> Columns:
        """Return all rows as they are."""
        layout = self._layout()
        with failures_of(self.name, self.failures):
            frame = _as_roles(self.whole(), layout)
            return self._checked(frame.select(*layout.read), layout, grouped=False)

    def _cells(self, frame: Frame, layout: Layout) -> Columns:
        if layout.scores:
            users = _users_of_scores(frame, layout)
            keys = [*layout.labels, TARGETS, "sampled", "better", "tied"]
            keys += ["items"] if "items" in layout else []
            cells = self._checked(_grouped(users, layout, keys), layout)
            if wrong_user(ArrayValues(cells), layout).any():
                # The smallest name, so that the message is the same in every engine.
                wrong = users.filter(wrong_user(_Expressions(users), layout)).sort(layout.users)
                raise user_complaint(layout, self.name, _first_row(wrong) or {})
            return cells
        marked = _with_mark(frame, layout)
        return self._checked(_grouped(marked, layout, layout.keys), layout)

    def _targets(self, frame: Frame, layout: Layout, several: bool) -> Columns:
        if layout.scores:
            if several:
                scored = self._checked(frame.select(*layout.read), layout, grouped=False)
                users = compare_scores(scored, layout)
            else:
                users = self._checked(_users_of_scores(frame, layout), layout)
                order = np.lexsort([users[role] for role in reversed(layout.users)])
                users = {role: values[order] for role, values in users.items()}
            check_users(users, layout, self.name)
            return users
        if self.packed:
            rows = int(_fetch(frame.select(nw.len().alias(_TIMES)))[_TIMES][0])
            unpacked = 8 * rows * len(layout.read)
            check_unpacked(self.name, self.packed, unpacked, "count the rows first")
        kept = [role for role in layout.read if role != POOLED]
        return self._checked(frame.select(*kept), layout, grouped=False)

    def _several(self, frame: Frame, layout: Layout) -> bool:
        """Return whether some user has several targets."""
        if not layout.scores:
            return self._rows_of_users(frame, layout) > 1 or {"user", "count"} <= set(
                layout.columns
            )
        targets = frame.filter(nw.col("target") == 1).group_by(layout.users).agg(n=nw.len())
        row = _first_row(targets.select(most=nw.col("n").max()))
        return row is not None and not is_missing(row["most"]) and int(row["most"]) > 1

    def _layout(self) -> Layout:
        """Return the layout of the first part; all parts must have its columns and its types."""
        first: tuple[str, Layout] | None = None
        for part in self.parts:
            layout = Layout.find(list(part.schema), part.name, self.request)
            first = first or (part.name, layout)
            check_same_roles(*first, part.name, layout)
            for role, column in layout.read.items():
                dtype = part.schema[column]
                flag = role == "target" and dtype in (nw.Boolean, nw.String)
                if role not in NAMES and not flag and not dtype.is_numeric():
                    raise InputError(
                        f"column {column!r} of {part.name} must hold {kind_of_values(role)}, its "
                        f"type is {dtype}"
                    )
        assert first is not None
        return first[1]

    def _checked(self, query: Frame, layout: Layout, *, grouped: bool = True) -> Columns:
        """Run a query, and refuse its result where rows break a rule."""
        columns = {
            role: converted(role, values, self.name) for role, values in _fetch(query).items()
        }
        if not len(next(iter(columns.values()))):
            raise InputError(f"{self.name} has no rows")
        rules = layout.rules()
        marked = [rule for rule in rules if grouped and rule.role not in layout.keys]
        broken = first_broken([rule for rule in rules if rule not in marked], columns)
        bad = grouped and columns.pop(_BAD).any()
        suspects = [broken[0]] if broken is not None else marked if bad else []
        for rule in suspects:
            self._refuse_row(rule, layout)
        if suspects:
            raise InputError(f"{self.name} has rows with values that cannot be counted")
        return columns

    def _refuse_row(self, rule: Rule, layout: Layout) -> None:
        """Raise the error about the first row that breaks a rule, if there is one."""
        for part in self.parts:
            rows = _as_roles(part.numbered(), layout, shown=layout.columns[rule.role])
            bad = rows.filter(rule.broken(_Expressions(rows)))
            row = _first_row(bad.sort(ROW) if ROW in bad.collect_schema() else bad)
            if row is not None:
                place = f" in row {row[ROW] + 1}" if ROW in row else _described(row, layout, rule)
                raise complaint(rule, layout, part.name, row[_SHOWN], place)

    def _rows_of_users(self, frame: Frame, layout: Layout) -> int:
        """Return how many rows a user has at most, 1 where that is unknown; warn of pooling."""
        if "user" not in layout:
            return 1
        users = frame.group_by(layout.users).agg(nw.len().alias(_TIMES))
        times = nw.col(_TIMES)
        row = _first_row(users.select(fewest=times.min(), most=times.max()))
        if row is None or is_missing(row["most"]):
            return 1
        fewest, most = int(row["fewest"]), int(row["most"])
        if POOLED in layout and fewest == most > 1:
            models = _fetch(frame.select(POOLED).unique().head(most + 1))[POOLED]
            warn_of_pooled_models(layout, self.name, fewest, most, len(models))
        return most


def open_parquet(name: str, files: Sequence[tuple[Path, str]], request: Request) -> FrameTable:
    """Return Parquet files as one table; numbers take the widest type among the files."""
    duckdb = import_extra("duckdb", extra="frames", purpose="reading Parquet")
    # It spills to disk what does not fit into memory.
    connection = duckdb.connect(config={"temp_directory": tempfile.gettempdir()})
    connection.execute("SET enable_progress_bar = false")
    paths = [path for path, _ in files]
    # Folders such as ``model=A`` give a column.
    named = any("=" in folder for folder in paths[0].parts[:-1])
    # Names of columns that are not text raise these.
    failures = (duckdb.Error, nw.exceptions.NarwhalsError, RuntimeError, UnicodeError)

    def scan(*chosen: Path) -> Any:
        # It takes every name for a pattern; these are names of files that were found.
        places = [glob.escape(str(path)) for path in chosen]
        return connection.read_parquet(places, hive_partitioning=named, union_by_name=True)

    def part_of(path: Path, label: str) -> Part:
        with failures_of(f"{label} as Parquet", failures):
            schema = nw.from_native(scan(path)).collect_schema()
        number = f"*, row_number() OVER () - 1 AS {ROW}"
        return Part(label, schema, lambda: nw.from_native(scan(path).project(number)))

    parts = [part_of(*file) for file in files]
    packed = sum(path.stat().st_size for path in paths)
    return FrameTable(name, parts, lambda: nw.from_native(scan(*paths)), request, failures, packed)


# -- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Expressions:
    """The columns of a frame as expressions, for rules."""

    frame: Frame

    def number(self, role: str) -> nw.Expr:
        return nw.col(role).cast(nw.Float64)

    def missing(self, role: str) -> nw.Expr:
        dtype = self.frame.collect_schema()[role]
        if role in NAMES and not dtype.is_float():
            value = nw.col(role)
            return value.is_null() | (value == "") if dtype == nw.String else value.is_null()
        number = self.number(role)
        is_nan = number.is_nan()
        if self.frame.implementation.is_duckdb() and dtype.is_float():
            # It believes the ranges that Parquet files state, which leave NaN out, and lets them
            # answer any plain question for NaN. Of exponentials it knows no range.
            is_nan = number.exp().is_nan()
        return nw.col(role).is_null() | is_nan


def _as_roles(frame: Frame, layout: Layout, *, shown: str | None = None) -> Frame:
    """Keep the columns that are read, called by their roles, with flags and decimals as numbers.

    The numbers of rows are kept, and the column that is to be ``shown`` as it is.
    """
    schema = frame.collect_schema()
    chosen = [nw.col(column).alias(role) for role, column in layout.read.items()]
    chosen += [nw.col(ROW)] if ROW in schema else []
    chosen += [nw.col(shown).alias(_SHOWN)] if shown is not None else []
    casts: dict[str, nw.Expr] = {}
    for role, column in layout.read.items():
        if role == "target":
            casts[role] = _flag(schema[column])
        elif role not in NAMES and (role in _REAL or schema[column].is_decimal()):
            casts[role] = nw.col(role).cast(nw.Float64)
    renamed = frame.select(*chosen)
    return renamed.with_columns(**casts) if casts else renamed


def _flag(dtype: Any) -> nw.Expr:
    """Return the target flag as 0 and 1; what is neither is left to be refused."""
    flag = nw.col("target")
    if dtype != nw.String:
        return flag.cast(nw.Int64) if dtype == nw.Boolean else flag
    word = flag.str.to_lowercase()
    known = nw.when(word.is_in(["1", "true"])).then(nw.lit(1))
    return known.otherwise(nw.when(word.is_in(["0", "false"])).then(nw.lit(0)))


def _with_mark(frame: Frame, layout: Layout) -> Frame:
    """Mark the rows that break a rule which cannot be asked of groups."""
    values = _Expressions(frame)
    broken = [rule.broken(values) for rule in layout.rules() if rule.role not in layout.keys]
    return frame.with_columns(**{_BAD: reduce(or_, broken, nw.lit(False)).cast(nw.Int64)})


def _grouped(frame: Frame, layout: Layout, keys: Sequence[str]) -> Frame:
    """Group targets by everything that tells two of them apart."""
    count = nw.col("count").sum() if "count" in layout else nw.len()
    return frame.group_by(keys).agg(**{_BAD: nw.col(_BAD).max(), "count": count})


def _users_of_scores(frame: Frame, layout: Layout) -> Frame:
    """Compare each user's items with the user's target: one row for each user.

    The targets are few; they are joined to the rows, so that what an engine must remember grows
    with the users and not with the rows.
    """
    keys, marked = layout.users, _with_mark(frame, layout)
    kept = [role for role in ("score", "item", "items") if role in layout]
    targets = (
        marked.filter(nw.col("target") == 1)
        .group_by(keys)
        .agg(
            nw.len().alias(TARGETS), *(nw.col(role).max().alias(f"target_{role}") for role in kept)
        )
    )
    # This leaves out the target's own row, and a sampled item that is the target itself.
    other = nw.col("target") != 1
    if "item" in layout:
        other = nw.col("item") != nw.col("target_item")
    score, aim = nw.col("score"), nw.col("target_score")
    carried = ["items"] if "items" in layout else []
    compared = marked.join(targets, on=keys, how="left").with_columns(
        sampled=other.cast(nw.Int64),
        better=(other & (score > aim)).cast(nw.Int64),
        tied=(other & (score == aim)).cast(nw.Int64),
        **{role: nw.col(f"target_{role}") for role in carried},
    )
    return compared.group_by(keys).agg(
        *(nw.col(name).sum() for name in ("sampled", "better", "tied")),
        *(nw.col(name).max() for name in (_BAD, TARGETS, *carried)),
    )


# -- results -------------------------------------------------------------------------------------


def _fetch(query: Frame) -> Columns:
    """Run a query in its engine and return its columns."""
    if query.implementation.is_duckdb():
        # DuckDB hands rows over itself; the way through Arrow would need another library.
        found = query.to_native().fetchnumpy()
        return {
            name: np.array(values.tolist(), dtype=object) if np.ma.is_masked(values) else values
            for name, values in found.items()
        }
    streaming: dict[str, Any] = {"engine": "streaming"} if query.implementation.is_polars() else {}
    result = query.collect(**streaming)
    return {name: result[name].to_numpy() for name in result.columns}


def _first_row(query: Frame) -> dict[str, Any] | None:
    """Return one row of a query's result, or None if it has none."""
    columns = _fetch(query.head(1))
    return {name: values[0] for name, values in columns.items() if len(values)} or None


def _described(row: dict[str, Any], layout: Layout, rule: Rule) -> str:
    """Describe a row of an engine that does not number its rows."""
    shown = [
        f"{layout.columns[role]}={show(value)}"
        for role, value in row.items()
        if role in layout.columns and role != rule.role
    ]
    return f" in the row with {', '.join(shown)}" if shown else ""
