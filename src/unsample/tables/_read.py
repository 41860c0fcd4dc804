"""Tables read: checked by their distinct rows, and counted by the engine that holds them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from unsample._checks import check_choice
from unsample.errors import DesignError, FileError, InputError, UnsampleWarning
from unsample.evidence import (
    NEGATIVES,
    ItemCounts,
    ModelCounts,
    RankCounts,
    Targets,
    check_ties,
    numbered,
    say_halves,
)
from unsample.tables._layout import (
    MODELS,
    ROLES,
    RUN_OF,
    Asked,
    Columns,
    Layout,
    Place,
    Read,
    as_names,
    checked,
    find_layout,
)
from unsample.tables._sources import Part, Spark, Table, in_engine, open_source
from unsample.tables._sql import COUNTS, Query
from unsample.tables._targets import (
    as_table,
    copies,
    count_rows,
    is_complete,
    of_table,
    ranked,
    repeated,
    targets_of,
)

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
    """Count the ranks in a table, inside the engine that holds it where there is one.

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
    with _opened(source, asked) as reading:
        return reading.counts(pair)


def read_data_sets(
    source: Any, *, across: str, by: str, read: Read, items: Any, sampled: Any, **options: Any
) -> dict[str, ModelCounts]:
    """Count the models of a table for each value of the column ``across``, sorted.

    Other parameters are those of `read_counts`. All rows are checked before any is counted.
    """
    shared, pair = options.pop("negatives") == "shared", options.pop("pair")
    asked = Asked.of(items, sampled, read, across, shared=shared, **options)
    with _opened(source, asked, by) as whole:
        if whole.counted is not None:
            raise InputError("across must be a column of ranks, got a table of counts")
        names = list(whole.counts(False))
        layout = _layout_of(whole.table, replace(asked, by=by))
        return {
            name: _Reading(whole.table.only(across, name), layout).counts(pair) for name in names
        }


def read_targets(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    read: Read = Read(),  # noqa: B008 - frozen
    by: str | None = None,
    replacement: bool = True,
    filtered: bool = False,
    negatives: str = "own",
) -> dict[str, Targets | RankCounts]:
    """Read a table target by target, where it has them; the parameters are those of `read_counts`.

    Saved counts, tables of counts, and lists that do not hold all relevant items come as counts.
    """
    shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
    asked = Asked.of(items, sampled, read, by, replacement, filtered, shared)
    with _opened(source, asked) as reading:
        return reading.targets()


def read_full_ranks(source: Any, *, items: Any = None, rng: Any = 0) -> Targets:
    """Read ranks in the full catalogue: columns ``rank``, ``user``, ``items``, ``relevance``.

    Half ranks are ties, placed at random. What the ranks must be is left to `unsample.exact`.
    """
    asked = Asked.of(items, None, Read(rng=rng), kind="full ranks")
    with _opened(source, asked) as reading:
        rows = ranked(repeated(reading.rows()), asked)
    sizes: Any = asked.given.get("items", rows.get("items"))
    sizes = np.broadcast_to(sizes, len(rows["rank"])).astype(np.int64)
    grades = rows.get("relevance")
    return Targets(rows["rank"], sizes, sizes - 1, rows.get("user"), False, relevance=grades)


def read_pairs(source: Any, *, items: int, columns: Mapping[str, str] | None = None) -> Columns:
    """Read rows of ``user`` and ``item`` (a number from 0 to items - 1), and maybe ``target``."""
    with _opened(source, Asked.of(items, None, Read(columns), kind="negatives")) as reading:
        rows = reading.rows()
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
def _opened(source: Any, asked: Asked, *more: str) -> Iterator[_Reading]:
    """Give a source as it is to be read, as long as it is."""
    with ExitStack() as stack:
        named = [*(asked.read.columns or {}).values(), *([asked.by] if asked.by else [])]
        wanted = (*ROLES, *MODELS, *COUNTS, "weight", *named, *more)
        table = open_source(source, wanted, stack)
        stack.enter_context(table.told())
        before = _counted_before(table, asked)
        layout = _layout_of(table, asked) if before is None else Layout("ranks", {}, asked)
        if layout.scored and table.engine is None:
            table = in_engine(table, stack)
        yield _Reading(table, layout, before)


def _counted_before(table: Table, asked: Asked) -> ModelCounts | None:
    """Return counts that were saved, or that the query of `sql` made."""
    first, engine = table.parts[0], table.engine
    if "format" in first.arrays:
        if asked.given or asked.by or asked.read.columns or asked.read.rows:
            raise InputError(
                f"by, items, sampled and read must be left out with {table.name}, which holds "
                "saved counts and so knows its designs"
            )
        return ModelCounts({"": RankCounts.from_arrays(first.arrays, table.name)}, {})
    if not {*COUNTS} <= {*first.kinds}:
        return None
    if engine is None:
        return of_table({name: first.arrays[name].astype(object) for name in COUNTS}, asked)
    names = ", ".join(map(engine.dialect.name, COUNTS))
    rows = " UNION ALL ".join(f"SELECT {names} FROM {part.rows}" for part in table.parts)
    return of_table(engine.ask(rows), asked)


def _layout_of(table: Table, asked: Asked) -> Layout:
    """Return the layout of the first part; all parts must have its columns."""
    layouts = {
        part.name: find_layout(list(part.kinds), part.name, asked, part.hint)
        for part in table.parts
    }
    name, first = next(iter(layouts.items()))
    for other, layout in layouts.items():
        for has, one, lacks, two in ((name, first, other, layout), (other, layout, name, first)):
            for role, column in one.columns.items():
                if role not in (*two.columns, "unasked"):
                    raise FileError(f"{lacks} has no column {column!r}, which {has} has")
    known = [role for role in first.columns if all(role in each for each in layouts.values())]
    return replace(first, columns={role: first.columns[role] for role in known})


@dataclass
class _Reading:
    """A table that is opened, and what is asked of it."""

    table: Table
    layout: Layout
    counted: ModelCounts | None = None

    def rows(self) -> Columns:
        """Return the checked rows, one by one."""
        columns, engine, parts = self.layout.columns, self.table.engine, []
        for part in self.table.parts:
            raw = {role: part.arrays.get(column, np.empty(0)) for role, column in columns.items()}
            if engine is not None:
                quoted = {engine.dialect.name(role): role for role in columns}
                named = (
                    f"{engine.dialect.name(columns[r])} AS {name}" for name, r in quoted.items()
                )
                raw = engine.ask(f"SELECT {', '.join(named)} FROM {part.rows}")
            parts.append(checked(raw, self.layout, partial(_first_in, part)))
        found = {role: np.concatenate([part[role] for part in parts]) for role in parts[0]}
        if not all(map(len, found.values())):
            raise InputError(f"{self.table.name} has no rows")
        return by_run(_noticed(found, self.layout, self.table.name))

    def targets(self) -> dict[str, Targets | RankCounts]:
        """Return targets one by one where the table has them."""
        if self.counted is not None:
            return dict(self.counted)
        rows = _Counting(self).targets() if self.layout.scored else self.rows()
        found = targets_of(rows, self.layout)
        return {
            name: each.counts
            if each.lowest is not None
            else replace(each, shared=self._shared(each.sampled))
            for name, each in found.items()
        }

    def _shared(self, sampled: Any) -> ItemCounts | None:
        return (
            ItemCounts.without_outcomes(int(np.max(sampled))) if self.layout.asked.shared else None
        )

    def counts(self, pair: bool) -> ModelCounts:
        """Return the counts, and those of pairs of models if asked for."""
        if self.counted is not None:
            return self.counted
        items: dict[str, ItemCounts] = {}
        if self.table.engine is None:
            found = count_rows(self.rows(), self.layout, pair=pair)
        else:
            found, items = _Counting(self).counts(pair)
        models = {
            name: replace(each, shared=items.get(name) or self._shared(each.sampled))
            for name, each in found.items()
        }
        return ModelCounts(models, found.between)


def _first_in(part: Part, rows: list[int]) -> Place:
    return min(rows), part.name, part.place(min(rows))


def _noticed(rows: Columns, layout: Layout, name: str) -> Columns:
    """Warn of half ranks, and of a column by which models may be meant, in equally many rows."""
    times = rows.get("times", np.ones(len(next(iter(rows.values())))))
    if "rank" in rows:
        ties = check_ties(layout.asked.read.ties, whole=True)
        say_halves(int(times[rows["rank"] % 1 > 0].sum()), ties)
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
    return {role: values for role, values in rows.items() if role != "unasked"}


def by_run(rows: Columns) -> Columns:
    """Return rows whose models are told apart by their runs."""
    if "run" not in rows:
        return rows
    rest = {role: values for role, values in rows.items() if role != "run"}
    joined = [RUN_OF.join(pair) for pair in zip(rows["model"], rows["run"], strict=True)]
    return rest | {"model": np.array(joined, dtype=np.str_)}


class _Counting:
    """A table in its engine, whose distinct rows are checked first."""

    def __init__(self, reading: _Reading) -> None:
        self.reading, self.table, self.layout = reading, reading.table, reading.layout
        assert self.table.engine is not None
        self.engine = self.table.engine
        columns, parts = self.layout.columns, self.table.parts
        quoted = ", ".join(map(self.engine.dialect.name, dict.fromkeys(columns.values())))
        each = " UNION ALL ".join(f"SELECT {quoted} FROM {part.rows}" for part in parts)
        rows = self.table.whole or f"({each}) AS t"
        self.alone = "user" not in self.layout and not self.layout.scored
        if self.table.slow and not self.alone:
            rows = self.engine.keep("rows", f"SELECT {quoted} FROM {rows}")
        kinds = {}
        for role, column in columns.items():
            found = {part.kinds[column] for part in parts}
            # Numbers take the widest type among the files; names become text.
            widest = "real" if found <= {"whole", "real"} else "text"
            kinds[role] = found.pop() if len(found) == 1 else widest
        self.query = Query(self.layout, kinds, self.engine.dialect, rows)
        raw = self.engine.ask(self.query.distinct())
        self.times = raw.pop("times").astype(np.int64)
        if not len(self.times):
            raise InputError(f"{self.table.name} has no rows")
        clean = checked(raw, self.layout, partial(self._first, raw))
        clean = _noticed(clean | {"times": self.times}, self.layout, self.table.name)
        clean["count"] = clean.pop("times") * clean.get("count", 1)
        self.rows = by_run(clean)

    def _first(self, raw: Columns, bad: list[int]) -> Place:
        """Return the first of some distinct rows, the file in which it occurs, and where."""
        times = self.times[bad[0]]
        if isinstance(self.engine, Spark):  # its rows have no order
            return bad[0], self.table.name, f" in {times:,} row{'s' if times > 1 else ''}"
        same = " AND ".join(f"{self.query.raw(role)} IS NOT DISTINCT FROM ?" for role in raw)
        for part in self.table.parts:
            rows = f"SELECT *, ROW_NUMBER() OVER () - 1 AS unsample_row FROM {part.rows}"
            first = f"SELECT MIN(unsample_row) AS first FROM ({rows}) AS r WHERE {same}"
            found = {}
            for row in bad:
                values = [each[row : row + 1].tolist()[0] for each in raw.values()]
                (place,) = self.engine.ask(first, values)["first"].tolist()
                if place is not None:
                    found[int(place)] = row
            if found:
                return found[min(found)], part.name, part.place(min(found))
        return bad[0], self.table.name, ""

    def counts(self, pair: bool) -> tuple[ModelCounts, dict[str, ItemCounts]]:
        """Return the counts, by the quickest query that tells them, and those of shared items."""
        layout, asked, rows, given = (
            self.layout,
            self.layout.asked,
            self.rows,
            self.layout.asked.given,
        )
        if self.alone:
            return count_rows(rows, layout, pair=False), {}
        forms: list[list[str] | None] = [None]
        if layout.scored:
            self._compare()
        else:
            tied = rows["tied"] > 0 if "tied" in rows else rows["rank"] % 1 > 0
            if asked.read.ties == "random":
                copies(rows["count"][tied])
            if not tied.any():
                self.query = replace(self.query, tied=False)
            models = np.unique(rows["model"]).tolist() if "model" in rows else [""]
            plain = layout.rows == "ranks" and "count" not in layout and not tied.any()
            if plain and {"items", "sampled"} <= given.keys() and len(models) <= _MOST_COLUMNS:
                forms = [models, None]
        # Places among all items follow from ranks, and lists are made samples, one by one.
        full = not asked.replacement and given.get("sampled") == given.get("items", 0) - 1
        for models in () if full or (layout.scored and asked.filtered) else forms:
            found = self.engine.ask(self.query.counts(pair=pair, models=models))
            if is_complete(found):
                return of_table(found, asked), self._items() if asked.shared else {}
        single = self.targets() if layout.scored else self.reading.rows()
        return count_rows(single, layout, pair=pair), {}

    def targets(self) -> Columns:
        """Return the targets of scored rows or lists, one by one."""
        self._compare()
        rows = self.engine.ask(f"SELECT * FROM {self.query.stored}")
        rows["user"] = rows.pop("who")
        return {
            role: as_names(values) if role in ("model", "user", "name") else values.astype(float)
            for role, values in rows.items()
        }

    def _compare(self) -> None:
        """Store what was compared, and refuse users who have no target among other items."""
        if self.query.stored:
            return
        name, given, lists = self.table.name, self.layout.asked.given, self.layout.rows == "lists"
        if not lists:
            lost = "SELECT who FROM given GROUP BY model, who HAVING MAX(target) = 0 LIMIT 1"
            for who in self.engine.ask(self.query.text(lost))["who"]:
                raise InputError(
                    f"each user of {name} must have a target, user {str(who)!r} has none; set "
                    f"{self.layout.columns['target']!r} in the row of the target"
                )
        stored = self.engine.keep("targets", self.query.text("SELECT * FROM targets"))
        self.query = replace(self.query, stored=stored)
        told = given.get("sampled", "sampled")
        wrong = "better > sampled" if lists else f"sampled < 1 OR sampled <> {told}"
        wrong = f"SELECT * FROM {stored} WHERE {wrong} ORDER BY model, who LIMIT 1"
        found = {key: values[0] for key, values in self.engine.ask(wrong).items() if len(values)}
        if not found:
            return
        who, others = f"user {str(found['who'])!r}", int(found["sampled"])
        said = f"sampled is {told} by argument, but {who} of {name} has {others} rows besides the "
        said += "target's; leave sampled out to take it from the rows"
        if not others:
            said = f"each target of {name} must be compared with at least one other item, {who} "
            said += "has the target's row alone"
        if lists:
            said = f"sampled must be at least the other items of a list, got {others}, but "
            said += f"{int(found['better'])} come before a relevant item of {name}"
        raise DesignError(said)

    def _items(self) -> dict[str, ItemCounts]:
        """Return which items beat targets at which ranks, where all targets met the same items."""
        if "item" not in self.layout:
            return {}
        rows, found = self.engine.ask(self.query.outcomes()), {}
        for name in np.unique(rows["model"].astype(np.str_)).tolist():
            mine = {key: values[rows["model"] == name] for key, values in rows.items()}
            item, place = np.unique(mine.pop("item").astype(np.str_), return_inverse=True)
            whole = {key: mine[key].astype(np.int64) for key in mine if key != "model"}
            whole |= {"rank": whole.pop("low"), "count": whole.pop("beaten")}
            met = np.bincount(place.reshape(-1), whole.pop("met"))
            if (met == met[0]).all() and (whole.pop("sampled") == len(item)).all():
                beaten = whole["count"] > 0
                kept = {key: values[beaten] for key, values in whole.items()}
                found[name] = ItemCounts(
                    len(item), numbered(item)[place.reshape(-1)][beaten], **kept
                )
        return found
