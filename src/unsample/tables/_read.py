"""Tables read: checked by their distinct rows, and counted by the engine that holds them."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unsample._checks import IntArray
from unsample._files import find_files
from unsample.counts import ItemCounts, ModelCounts, Targets, check_agrees, numbered
from unsample.errors import DesignError, InputError
from unsample.tables._counted_tables import is_complete, of_table
from unsample.tables._keys import check_keys, is_key, warn_of_repeats
from unsample.tables._layout import (
    DESIGN,
    MODEL,
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
from unsample.tables._lines import find_lines
from unsample.tables._sources import SOURCE_MODEL, OpenedTable, opened
from unsample.tables._sql import COUNTS, Query, printed
from unsample.tables._target_rows import counts_of, targets_of
from unsample.tables._text import DELIMITERS, as_text

#: More models than this are not counted side by side in one row a user.
_MAX_COLUMNS = 8
#: So many numbers tell how seen items are spread over users.
_SEEN_ROWS = 100_000


def read_counts(source: Any, asked: Asked, *, pair: bool = False) -> ModelCounts:
    """Count the ranks in a table, inside the engine that holds it.

    Parameters
    ----------
    source
        A path of a CSV, TSV, JSON lines, Parquet or NPZ file (text also as ``.gz`` or ``.xz``);
        ``"-"`` for standard input; a pattern such as ``"runs/*.parquet"``; a folder; a list of
        paths; a frame of pandas, Polars (eager or lazy), PyArrow, DuckDB or PySpark; a mapping of
        arrays; or the table of counts that the query of `unsample.sql` gives.
    asked
        What the ranks are. The counts depend neither on the engine nor on the order or the
        partitions of the rows.
    pair
        Whether to count, of each two models, the ranks of the same user.

    Returns
    -------
    ModelCounts
        Counts by the values of the column ``by``, sorted; under ``""`` without one. With a column
        ``user``, the counts know how many targets of one user are in which cells.
    """
    with _opened({"": source}, asked) as table:
        before = _counted_before(table, asked)
        return _Reading.of(table, asked).counts(pair=pair) if before is None else before


def read_models(sources: Mapping[str, Any], asked: Asked) -> ModelCounts | dict[str, Targets]:
    """Count the tables of several models, one each, and the pairs of ranks of one user.

    Rows without users are matched by their order: then these are the targets of each model.
    """
    asked = replace(asked, by=SOURCE_MODEL)
    with _opened(sources, asked) as table:
        reading = _Reading.of(table, asked)
        if not reading.query.users:
            targets = reading.targets()
            return {name: targets[name] for name in sources}
        counts = reading.counts(pair=True)
        return ModelCounts({name: counts[name] for name in sources}, counts.between)


def read_data_sets(source: Any, asked: Asked, *, across: str) -> dict[str, ModelCounts]:
    """Count the models of a table for each value of the column ``across``, sorted."""
    asked = replace(asked, across=across)
    with _opened({"": source}, asked) as table:
        if _counted_before(table, asked) is not None:
            raise InputError("across must be a column of ranks, got a table of counts")
        named = {role: name for role, name in (asked.read.columns or {}).items() if role != "run"}
        read = replace(asked.read, columns=named)
        whole = _Reading.of(table, replace(asked, by=across, runs=False, read=read))
        check_keys(table, _layout_of(table, asked))
        column = whole.query.value("model")
        data_sets: dict[str, ModelCounts] = {}
        for name in np.unique(whole.rows["model"]).tolist():
            same = f"{column} = {table.engine.bind(name)}"
            some = f"(SELECT * FROM {table.rows} WHERE {same}) AS t"
            part = replace(table, rows=some)
            data_sets[name] = _Reading.of(part, asked).counts(pair=True)
        return data_sets


def read_targets(source: Any, asked: Asked) -> Targets:
    """Read a table target by target."""
    with _opened({"": source}, asked) as table:
        return _Reading.of(table, asked).targets()[""]


def read_full_ranks(source: Any, *, items: Any = None) -> Targets:
    """Read ranks in the full catalogue: columns ``rank``, ``user``, ``items``, ``relevance``.

    `unsample.exact` checks the ranks.
    """
    asked = Asked(items, kind="full ranks")
    with _opened({"": source}, asked) as table:
        rows = _Reading.of(table, asked).single()
    sizes: Any = asked.given.get("items", rows.get("items"))
    sizes = np.broadcast_to(sizes, len(rows["rank"])).astype(np.int64)
    return Targets(
        rows["rank"].astype(np.int64),
        sizes,
        sampled=sizes - 1,
        users=rows.get("user"),
        replacement=False,
        relevance=rows.get("relevance"),
    )


def read_pairs(source: Any, *, items: int, columns: Mapping[str, str] | None = None) -> Columns:
    """Read rows of ``user`` and ``item`` (a number from 0 to items - 1), and maybe ``target``."""
    asked = Asked(items, read=Read(columns), kind="negatives")
    with _opened({"": source}, asked) as table:
        rows = _Reading.of(table, asked).single()
    return {**rows, "item": rows["item"].astype(np.int64)}


def read_seen(source: Any, column: str) -> IntArray:
    """Return how many items users have seen, from a column: a number for each row.

    Of many rows it returns fewer numbers, of which as many have each value, in proportion.
    """
    if source == "-":
        raise InputError("seen must be a number where ranks come from standard input, got a column")
    with opened({"": source}, wanted=lambda name: name == column) as table:
        if column not in table.kinds:
            raise InputError(
                f"seen must be a number or name a column of {table.name}, got {column!r}"
            )
        value = f"TRY_CAST({table.engine.dialect.name(column)} AS DOUBLE)"
        rows = table.engine.ask(
            f"SELECT {value} AS seen, COUNT(*) AS rows FROM {table.rows} GROUP BY 1 ORDER BY 1"
        )
    seen = np.asarray(np.ma.filled(np.ma.asarray(rows["seen"], dtype=np.float64), np.nan))
    counts = np.asarray(rows["rows"], dtype=np.float64)
    if not len(seen) or not np.isfinite(seen).all() or seen.min() < 0 or (seen % 1).any():
        raise InputError(
            f"seen must be whole numbers from 0 on, got other values or none in the column "
            f"{column!r}; it tells how many items the user of each row has seen"
        )
    few = np.ceil(counts * min(1.0, _SEEN_ROWS / counts.sum())).astype(np.int64)
    return np.repeat(seen.astype(np.int64), few)


def sql_of_files(source: str, asked: Asked, *, pair: bool, dialect: str) -> str:
    """Return the query that counts a file, or those of a pattern, in an engine.

    Their columns are known, so the errors and warnings are those of the direct call.
    """
    with _opened({"": source}, asked) as table:
        present = list(table.kinds)
        check_keys(table, _layout_of(table, asked))
        # DuckDB reads the files itself; other engines have a table of this name.
        name = source
        text = False
        if dialect == "duckdb":
            name = _read_by_duckdb(source, table)
            text = table.format in DELIMITERS
    return printed(asked, present, pair=pair, dialect=dialect, table=name, text=text)


def _read_by_duckdb(source: str, table: OpenedTable) -> str:
    """Return how DuckDB reads the files that a direct call reads, and no others.

    In its patterns, which the names of files are too, `*` stands for hidden files as well.
    """
    files = [str(file) for file in find_files(source)]
    if files == [source]:
        listed = _quoted(glob.escape(source))
    elif {*table.engine.ask(f"SELECT file FROM GLOB({_quoted(source)})")["file"]} == {*files}:
        listed = _quoted(source)
    else:
        listed = f"[{', '.join(_quoted(glob.escape(file)) for file in files)}]"
    if table.format in DELIMITERS:
        return as_text(listed, DELIMITERS[table.format])
    several = f"read_{table.format}({listed}, union_by_name = true)"
    return several if listed.startswith("[") else listed


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# -- what is read ----------------------------------------------------------------------------------


@contextmanager
def _opened(sources: Mapping[str, Any], asked: Asked) -> Iterator[OpenedTable]:
    """Give the columns of sources that may be asked for, as one table."""
    named = {*(asked.read.columns or {}).values(), asked.by, asked.across}
    known = {*ROLES, "weight", *COUNTS, *named}
    with opened(sources, lambda column: column in known or is_key(str(column))) as table:
        yield table


def _counted_before(table: OpenedTable, asked: Asked) -> ModelCounts | None:
    """Return counts that were saved, or that the query of `sql` made.

    The arguments must agree with the counts.
    """
    if table.saved is not None:
        models = ModelCounts.from_arrays(table.saved, table.name)
    elif {*COUNTS} <= {*table.kinds}:
        models = _of_query(table, asked)
    else:
        return None
    for name, value in (("columns", asked.read.columns), ("rows", asked.read.rows)):
        if value:
            raise InputError(
                f"{name} must be left out with {table.name}, which holds counts and no rows, got "
                f"{value!r}"
            )
    if asked.by and list(models) == [""]:
        raise InputError(
            f"{table.name} must hold the counts of several models to be grouped by "
            f"{asked.by!r}, got those of one without a name; count the rows by that column"
        )
    for name, counts in models.items():
        check_agrees(
            f"the counts of {name} in {table.name}" if name else f"the counts in {table.name}",
            counts,
            negatives=asked.negatives,
            **asked.given,
        )
    return models


def _of_query(table: OpenedTable, asked: Asked) -> ModelCounts:
    """Return the counts in a table that the query of `sql` gave.

    The table does not say whether an item may be sampled twice, or whether targets share items.
    """
    of_counts = replace(asked, by=None, across=None, runs=False, kind="counts")
    check_keys(table, Layout("counts", {"model": MODEL}, asked=of_counts))
    names = ", ".join(map(table.engine.dialect.name, COUNTS))
    counted = table.engine.ask(f"SELECT {names} FROM {table.rows}")
    return _with_items(of_table(counted, asked), asked, items={})


def _with_items(
    counts: ModelCounts, asked: Asked, *, items: Mapping[str, ItemCounts]
) -> ModelCounts:
    """Return counts with the items that their targets share, where targets share items."""
    if not asked.negatives.shared:
        return counts
    models = {
        name: replace(each, shared=items.get(name) or _without_outcomes(each.sampled))
        for name, each in counts.items()
    }
    return ModelCounts(models, counts.between)


def _layout_of(table: OpenedTable, asked: Asked) -> Layout:
    """Return which column of a table has which role; every part of the table must have it."""
    layout = find_layout(list(table.kinds), table.name, asked=asked, hint=table.hint)
    for column in layout.columns.values():
        with_it = [part for part, columns in table.parts.items() if column in columns]
        without = [part for part in table.parts if part not in with_it]
        if with_it and without:
            more = f" (as {len(without) - 1:,} more)" if len(without) > 1 else ""
            raise InputError(
                f"{without[0]} has no column {column!r}{more}, and {with_it[0]} has it; add the "
                "column, or leave it out of all of them"
            )
    return layout


def _without_outcomes(sampled: Any) -> ItemCounts:
    return ItemCounts.without_outcomes(int(np.max(sampled)))


@dataclass
class _Reading:
    """A table whose rows passed all checks, and what is asked of it."""

    table: OpenedTable
    layout: Layout
    query: Query
    #: The distinct rows; ``times`` is how often each occurs.
    rows: Columns

    @classmethod
    def of(cls, table: OpenedTable, asked: Asked) -> _Reading:
        """Check the distinct rows of a table."""
        layout = _layout_of(table, asked)
        kinds = {role: table.kinds[column] for role, column in layout.columns.items()}
        query = Query(layout, kinds, dialect=table.engine.dialect, table=table.rows)
        raw = table.engine.ask(query.distinct())
        times = raw.pop("times").astype(np.int64)
        if not len(times):
            raise InputError(f"{table.name} has no rows")

        def find_line(cells: Mapping[str, Any]) -> str:
            return next(iter(find_lines(table.texts, cells)), "")

        columns = checked(raw, times, layout=layout, source=table.name, find_line=find_line)
        _check_number(columns, asked)
        if asked.across is None:  # else the whole table was checked
            check_keys(table, layout)
        rows = _by_run({**columns, "times": times})
        return cls(table, layout, query=query, rows=rows)

    @property
    def asked(self) -> Asked:
        """Return what is asked of the table."""
        return self.layout.asked

    def single(self) -> Columns:
        """Return the rows one by one."""
        columns = self.table.engine.ask(self.query.plain())
        return _by_run(
            {
                role: as_names(each) if self.layout.is_name(role) else each.astype(np.float64)
                for role, each in columns.items()
            }
        )

    def targets(self) -> dict[str, Targets]:
        """Return the targets of each model, one by one."""
        rows = self._compared() if self.layout.scored else self.single()
        targets = targets_of(rows, self.layout)
        if not self.asked.negatives.shared:
            return targets
        return {
            name: replace(each, shared=_without_outcomes(each.sampled))
            for name, each in targets.items()
        }

    def counts(self, *, pair: bool) -> ModelCounts:
        """Return the counts, by the quickest query that gives them; pairs if asked for."""
        items: dict[str, ItemCounts] = {}
        if not self.query.users:
            counts = ModelCounts(counts_of(self.rows, self.asked), {})
            return _with_items(counts, self.asked, items=items)
        self._prepare()
        table = self._counted(pair)
        if table is None:
            counts = ModelCounts.of_targets(self.targets(), pair=pair)
        else:
            counts = of_table(table, self.asked)
            if self.asked.negatives.shared and "item" in self.layout:
                items = self._items()
        if any(each.several for each in counts.values()):
            warn_of_repeats(self.table, self.layout)
        return _with_items(counts, self.asked, items=items)

    def _counted(self, pair: bool) -> Columns | None:
        """Return the table of counts; None if the targets are needed one by one."""
        asked = self.asked
        # Positions among all items follow from single ranks, and so do positions in lists.
        all_others = asked.given.get("items", 0) - 1
        full = not asked.negatives.replacement and asked.given.get("sampled") == all_others
        if full or (self.layout.scored and asked.filtered):
            return None
        #: The names of models that are counted side by side; None for a row of each target.
        forms: list[list[str] | None] = [None]
        if not self.layout.scored and {*DESIGN} <= asked.given.keys():
            models = np.unique(self.rows["model"]).tolist() if "model" in self.rows else [""]
            if len(models) <= _MAX_COLUMNS:
                forms.insert(0, [self.table.engine.bind(name) for name in models])
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
        engine = self.table.engine
        name = self.table.name
        parts = self.query.targets()
        without_target = "SELECT who FROM given GROUP BY model, who HAVING MAX(target) = 0 LIMIT 1"
        for who in engine.ask(self.query.text(without_target, parts))["who"]:
            raise InputError(
                f"each user of {name} must have a target, user {str(who)!r} has none; set "
                f"{self.layout.columns['target']!r} in the row of the target"
            )
        stored = engine.keep(self.query.text("SELECT * FROM targets", parts))
        self.query = replace(self.query, stored=stored)
        # Without an argument no number of sampled items is wrong but none at all.
        sampled = self.asked.given.get("sampled", "sampled")
        is_wrong = f"sampled < 1 OR sampled <> {sampled}"
        wrong = engine.ask(
            f"SELECT who, sampled FROM {stored} WHERE {is_wrong} ORDER BY model, who LIMIT 1"
        )
        for who, others in zip(wrong["who"], wrong["sampled"], strict=True):
            user = f"user {str(who)!r}"
            raise DesignError(
                f"sampled is {sampled} by argument, but {user} of {name} has {others} rows besides "
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
        rows = self.table.engine.ask(self.query.outcomes())
        items: dict[str, ItemCounts] = {}
        for name in np.unique(rows["model"].astype(np.str_)).tolist():
            mine = {key: values[rows["model"] == name] for key, values in rows.items()}
            item, index = np.unique(mine.pop("item").astype(np.str_), return_inverse=True)
            index = index.reshape(-1)
            whole = {key: mine[key].astype(np.int64) for key in mine if key != "model"}
            whole["rank"] = whole.pop("low")
            whole["count"] = whole.pop("beaten")
            faced = np.bincount(index, whole.pop("faced"))
            shared_by_all = (faced == faced[0]).all()
            if shared_by_all and (whole.pop("sampled") == len(item)).all():
                beaten = whole["count"] > 0
                kept = {key: values[beaten] for key, values in whole.items()}
                items[name] = ItemCounts(len(item), numbered(item)[index][beaten], **kept)
        return items


def _check_number(columns: Columns, asked: Asked) -> None:
    """Refuse more models than may be compared, before all pairs of them are counted."""
    if asked.most_models is None or "model" not in columns:
        return
    models = len(np.unique(columns["model"]))
    if models > asked.most_models:
        raise InputError(
            f"models must be at least two and at most {asked.most_models}, got {models}; take the "
            "rows of fewer"
        )


def _by_run(rows: Columns) -> Columns:
    """Return rows with the name of the run as a part of the name of the model."""
    if "run" not in rows:
        return rows
    runs = rows.pop("run")
    joined = [RUN_OF.join(pair) for pair in zip(rows["model"], runs, strict=True)]
    return rows | {"model": np.array(joined, dtype=np.str_)}
