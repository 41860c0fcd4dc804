"""Tables read: checked by their distinct rows, and counted by the engine that holds them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from unsample._checks import check_choice
from unsample.errors import DesignError, InputError, RankError, UnsampleWarning
from unsample.evidence import (
    NEGATIVES,
    ItemCounts,
    ModelCounts,
    Targets,
    check_ties,
    numbered,
    say_halves,
)
from unsample.tables._counts import as_table, is_complete, of_table
from unsample.tables._layout import (
    MODELS,
    ROLES,
    RUN_OF,
    Asked,
    Columns,
    Layout,
    Read,
    as_names,
    checked,
    find_layout,
)
from unsample.tables._plain import read_ranks
from unsample.tables._sources import Table, opened
from unsample.tables._sql import COUNTS, Query
from unsample.tables._targets import counts_of, ranks_of, repeated, targets_of, tied_with

#: More models than this are not counted side by side in one row a user.
_MOST_COLUMNS = 8


def read_counts(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    read: Read = Read(),  # noqa: B008 - frozen
    by: str | None = None,
    pair: bool = False,
    replacement: bool = True,
    filtered: bool = False,
    negatives: str = "own",
    runs: bool = False,
) -> ModelCounts:
    """Count the ranks in a table, inside the engine that holds it.

    Parameters
    ----------
    source
        A path of a CSV, TSV, JSON lines, Parquet or NPZ file (text also as ``.gz`` or ``.xz``);
        ``"-"`` for standard input; a pattern such as ``"runs/*.parquet"``; a folder; a list of
        paths; a frame of pandas, Polars (eager or lazy), PyArrow, DuckDB or PySpark; a mapping of
        arrays; or the table of counts that the query of `unsample.sql` gives.
    items, sampled
        The design, where it is not a column. Scored rows tell ``sampled`` by their number.
    read
        What columns are called, what rows hold, and the tie rule. The counts depend neither on the
        engine nor on the order or the partitions of the rows.
    by
        A column to group by, such as ``model``.
    pair
        Whether to count, of each two models, the ranks of the same user.
    replacement
        Whether the same item may be sampled twice for a target.
    filtered
        Whether the other relevant items of a user were left out, so that metrics are those of
        targets and not of users.
    negatives
        ``"shared"`` where all targets were ranked against one pool of items. Scored rows with a
        column ``item`` tell which item beats which target.
    runs
        Whether a column ``run`` tells runs of a model apart, if there is one: names of models then
        end in `RUN_OF` and the name of the run.

    Returns
    -------
    ModelCounts
        Counts by the values of the column ``by``, sorted; under ``""`` without one. With a column
        ``user``, the counts know how many targets of one user are in which cells.
    """
    shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
    asked = Asked.of(items, sampled, read, by, replacement, filtered, shared, runs=runs)
    if find_spec("duckdb") is None:
        return ModelCounts.of_targets(read_ranks(source, asked), pair=pair)
    with _opened(source, asked) as table:
        before = _counted_before(table, asked)
        return _Reading.of(table, asked).counts(pair) if before is None else before


def read_data_sets(
    source: Any, *, across: str, by: str, read: Read, items: Any, sampled: Any, **options: Any
) -> dict[str, ModelCounts]:
    """Count the models of a table for each value of the column ``across``, sorted.

    Other parameters are those of `read_counts`. All rows are checked before any is counted.
    """
    shared, pair = options.pop("negatives") == "shared", options.pop("pair")
    asked = Asked.of(items, sampled, read, across, shared=shared, **options)
    with _opened(source, asked, by) as table:
        if _counted_before(table, asked) is not None:
            raise InputError("across must be a column of ranks, got a table of counts")
        whole, mine = table, replace(asked, by=by)
        if table.slow:
            rows = table.engine.keep("all", f"SELECT * FROM {table.rows}")
            whole = replace(table, rows=rows, slow=False)
        names = np.unique(_Reading.of(whole, replace(asked, runs=False)).rows["model"]).tolist()
        return {name: _Reading.of(whole.only(across, name), mine).counts(pair) for name in names}


def read_targets(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    read: Read = Read(),  # noqa: B008 - frozen
    replacement: bool = True,
    filtered: bool = False,
    negatives: str = "own",
) -> Targets | ModelCounts:
    """Read a table target by target; the parameters are those of `read_counts`.

    Saved counts and tables of counts have no targets, and come as they are.
    """
    shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
    asked = Asked.of(items, sampled, read, None, replacement, filtered, shared)
    if find_spec("duckdb") is None:
        return read_ranks(source, asked)[""]
    with _opened(source, asked) as table:
        before = _counted_before(table, asked)
        return _Reading.of(table, asked).targets()[""] if before is None else before


def read_full_ranks(source: Any, *, items: Any = None, rng: Any = 0) -> Targets:
    """Read ranks in the full catalogue: columns ``rank``, ``user``, ``items``, ``relevance``.

    Half ranks are ties, placed at random. What the ranks must be is left to `unsample.exact`.
    """
    asked = Asked.of(items, None, Read(rng=rng), kind="full ranks")
    with _opened(source, asked) as table:
        rows = repeated(_Reading.of(table, asked).single())
    sizes: Any = asked.given.get("items", rows.get("items"))
    sizes = np.broadcast_to(sizes, len(rows["rank"])).astype(np.int64)
    users, grades = rows.get("user"), rows.get("relevance")
    return Targets(ranks_of(rows, asked), sizes, sizes - 1, users, False, relevance=grades)


def read_pairs(source: Any, *, items: int, columns: Mapping[str, str] | None = None) -> Columns:
    """Read rows of ``user`` and ``item`` (a number from 0 to items - 1), and maybe ``target``."""
    asked = Asked.of(items, None, Read(columns), kind="negatives")
    with _opened(source, asked) as table:
        rows = _Reading.of(table, asked).single()
    return {**rows, "item": rows["item"].astype(np.int64)}


def counts_of_partition(frame: Any, **options: Any) -> Any:
    """Count a part of a table that holds whole users, as a frame of its own kind.

    For ``mapInPandas``, Ray's ``map_batches`` and Dask's ``map_partitions``: the rows of all parts
    together are a table of counts, which `unsample.estimate` and `unsample.compare` take. The
    frame is one of pandas or Polars, and the options are those of `read_counts`, without
    ``filtered`` and ``negatives``.
    """
    return type(frame)(as_table(read_counts(frame, pair=True, **options)))


# -- what is read ----------------------------------------------------------------------------------


@contextmanager
def _opened(source: Any, asked: Asked, *more: str) -> Iterator[Table]:
    """Give the columns of a source that may be asked for, as a table."""
    named = [*(asked.read.columns or {}).values(), *([asked.by] if asked.by else [])]
    with opened(source, (*ROLES, *MODELS, *COUNTS, "weight", *named, *more)) as table:
        yield table


def _counted_before(table: Table, asked: Asked) -> ModelCounts | None:
    """Return counts that were saved, or that the query of `sql` made."""
    if table.saved is not None:
        found = ModelCounts.from_arrays(table.saved, table.name)
        told = asked.given or asked.read.columns or asked.read.rows
        if told or (asked.by and list(found) == [""]):
            raise InputError(
                f"by, items, sampled and read must be left out with {table.name}, which holds "
                "saved counts and so knows its designs"
            )
        return found
    if not {*COUNTS} <= {*table.kinds}:
        return None
    names = ", ".join(map(table.engine.dialect.name, COUNTS))
    return of_table(table.engine.ask(f"SELECT {names} FROM {table.rows}"), asked)


@dataclass
class _Reading:
    """A table whose rows were found to be good, and what is asked of it."""

    table: Table
    layout: Layout
    query: Query
    #: The distinct rows; ``count`` is how many targets each stands for.
    rows: Columns

    @classmethod
    def of(cls, table: Table, asked: Asked) -> _Reading:
        """Check the distinct rows of a table."""
        layout = find_layout(list(table.kinds), table.name, asked, table.hint)
        engine, rows = table.engine, table.rows
        columns = dict.fromkeys(layout.columns.values())
        quoted = ", ".join(map(engine.dialect.name, columns))
        if table.slow and ("user" in layout or layout.scored):
            rows = engine.keep("rows", f"SELECT {quoted} FROM {rows}")
        kinds = {role: table.kinds[column] for role, column in layout.columns.items()}
        query = Query(layout, kinds, engine.dialect, rows)
        raw = engine.ask(query.distinct())
        times = raw.pop("times").astype(np.int64)
        if not len(times):
            raise InputError(f"{table.name} has no rows")
        found = checked(raw, times, layout, table.name)
        found["count"] = times * found.get("count", 1)
        _notice(found, times, layout, table.name)
        return cls(table, layout, query, _by_run(found))

    @property
    def asked(self) -> Asked:
        """Return what is asked of the table."""
        return self.layout.asked

    def single(self) -> Columns:
        """Return the rows one by one."""
        found = self.table.engine.ask(self.query.plain())
        return _by_run({role: _plain(role, each, self.layout) for role, each in found.items()})

    def targets(self) -> dict[str, Targets]:
        """Return the targets of each model, one by one."""
        rows = self._compared() if self.layout.scored else self.single()
        found = targets_of(rows, self.layout)
        return {
            name: replace(each, shared=self._shared(each.sampled)) for name, each in found.items()
        }

    def counts(self, pair: bool) -> ModelCounts:
        """Return the counts, by the quickest query that tells them; pairs if asked for."""
        layout, given, items = self.layout, self.asked.given, {}
        if "user" not in layout and not layout.scored:
            found = ModelCounts(counts_of(self.rows, layout), {})
        else:
            self._prepare()
            table = None
            # Places among all items follow from ranks one by one, and so do those in lists.
            full = not self.asked.replacement and given.get("sampled") == given.get("items", 0) - 1
            if not full and not (layout.scored and self.asked.filtered):
                table = self._counted(pair)
            if table is None:
                found = ModelCounts.of_targets(self.targets(), pair=pair)
            else:
                found = of_table(table, self.asked)
                items = self._items() if self.asked.shared and "item" in layout else {}
        models = {
            name: replace(each, shared=items.get(name) or self._shared(each.sampled))
            for name, each in found.items()
        }
        return ModelCounts(models, found.between)

    def _shared(self, sampled: Any) -> ItemCounts | None:
        return ItemCounts.without_outcomes(int(np.max(sampled))) if self.asked.shared else None

    def _counted(self, pair: bool) -> Columns | None:
        """Return the table of counts; None if the targets are needed one by one."""
        forms: list[list[str] | None] = [None]
        if not self.layout.scored:
            self.query = replace(self.query, tied=bool(tied_with(self.rows).any()))
            models = np.unique(self.rows["model"]).tolist() if "model" in self.rows else [""]
            plain = self.layout.rows == "ranks" and "count" not in self.layout
            one = plain and not self.query.tied and {"items", "sampled"} <= self.asked.given.keys()
            forms = [models, None] if one and len(models) <= _MOST_COLUMNS else forms
        for side_by_side in forms:
            table = self.table.engine.ask(self.query.counts(pair=pair, models=side_by_side))
            if is_complete(table):
                return table
        return None

    # -- scored rows -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Store how scored targets compare, and refuse users without a target or other items."""
        if not self.layout.scored or self.query.stored:
            return
        engine, name, told = self.table.engine, self.table.name, self.asked.given.get("sampled")
        lost = "SELECT who FROM given GROUP BY model, who HAVING MAX(target) = 0 LIMIT 1"
        for who in engine.ask(self.query.text(lost))["who"]:
            raise InputError(
                f"each user of {name} must have a target, user {str(who)!r} has none; set "
                f"{self.layout.columns['target']!r} in the row of the target"
            )
        stored = engine.keep("targets", self.query.text("SELECT * FROM targets"))
        self.query = replace(self.query, stored=stored)
        wrong = f"sampled < 1 OR sampled <> {'sampled' if told is None else told}"
        wrong = f"SELECT who, sampled FROM {stored} WHERE {wrong} ORDER BY model, who LIMIT 1"
        found = engine.ask(wrong)
        for who, others in zip(found["who"], found["sampled"], strict=True):
            user = f"user {str(who)!r}"
            raise DesignError(
                f"sampled is {told} by argument, but {user} of {name} has {others} rows besides "
                "the target's; leave sampled out to take it from the rows"
                if others
                else f"each target of {name} must be compared with at least one other item, {user} "
                "has the target's row alone"
            )

    def _compared(self) -> Columns:
        """Return how each target of scored rows compares with its user's other items."""
        self._prepare()
        rows = self.table.engine.ask(f"SELECT * FROM {self.query.stored}")
        rows["user"] = rows.pop("who")
        return {
            role: as_names(values) if role in ("model", "user", "name") else values.astype(float)
            for role, values in rows.items()
        }

    def _items(self) -> dict[str, ItemCounts]:
        """Return which items beat targets at which ranks, where all targets share them."""
        rows, found = self.table.engine.ask(self.query.outcomes()), {}
        for name in np.unique(rows["model"].astype(np.str_)).tolist():
            mine = {key: values[rows["model"] == name] for key, values in rows.items()}
            item, place = np.unique(mine.pop("item").astype(np.str_), return_inverse=True)
            whole = {key: mine[key].astype(np.int64) for key in mine if key != "model"}
            whole |= {"rank": whole.pop("low"), "count": whole.pop("beaten")}
            faced = np.bincount(place.reshape(-1), whole.pop("faced"))
            if (faced == faced[0]).all() and (whole.pop("sampled") == len(item)).all():
                beaten = whole["count"] > 0
                kept = {key: values[beaten] for key, values in whole.items()}
                found[name] = ItemCounts(
                    len(item), numbered(item)[place.reshape(-1)][beaten], **kept
                )
        return found


def _plain(role: str, values: Any, layout: Layout) -> Any:
    """Return checked values as names or numbers."""
    return as_names(values) if layout.is_name(role) else values.astype(np.float64)


def _by_run(rows: Columns) -> Columns:
    """Return rows whose models are told apart by their runs."""
    rest = {role: values for role, values in rows.items() if role not in ("run", "unasked")}
    if "run" in rows:
        joined = [RUN_OF.join(pair) for pair in zip(rows["model"], rows["run"], strict=True)]
        rest["model"] = np.array(joined, dtype=np.str_)
    return rest


def _notice(rows: Columns, times: Any, layout: Layout, name: str) -> None:
    """Say what is allowed but may not be meant, and refuse ties that are counted as one."""
    ties = check_ties(layout.asked.read.ties, whole=True)
    if layout.rows in ("ranks", "comparisons", "full ranks"):
        tied = tied_with(rows) > 0
        if ties == "random" and "count" in layout and (rows["count"] > times)[tied].any():
            raise RankError(
                f"ties of {name} must stand in rows of their own to be broken at random, got some "
                "with a count; use ties='optimistic' or 'pessimistic', or a row for each target"
            )
        say_halves(int(times[tied].sum()) if "rank" in rows else 0, ties)
    if "unasked" in rows:
        column = layout.columns["unasked"]
        models, place = np.unique(rows["unasked"], return_inverse=True)
        size = np.bincount(place.reshape(-1), times)
        if len(models) > 1 and (size == size[0]).all():
            warnings.warn(
                f"column {column!r} of {name} has {len(models)} values, each in {size[0]:,.0f} "
                "rows: the models are pooled as if they were one; to tell them apart, pass "
                f"by={column!r}",
                UnsampleWarning,
                stacklevel=2,
            )
