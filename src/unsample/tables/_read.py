"""Tables read: counted by the engine that holds them, or target by target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from unsample._checks import IntArray, as_text_array, check_choice
from unsample.errors import FileError, InputError
from unsample.evidence import (
    NEGATIVES,
    PAIR_KEYS,
    ModelCounts,
    PairCounts,
    RankCounts,
    Targets,
    check_ties,
    design_columns,
    pair_keys,
    tie_seed,
)
from unsample.tables._arrays import Columns, Ranged, Reading, checked_columns, refusal
from unsample.tables._layout import (
    LISTS,
    MODELS,
    NAMES,
    ROLES,
    Layout,
    Read,
    check_copies,
    check_design,
    find_layout,
    kind_of_values,
    show,
    warn_of_pooled_models,
)
from unsample.tables._sources import Arrays, Part, Table, open_source
from unsample.tables._sql import COUNTS, ROW, Query

#: Columns of a table of counts that name models.
_MODELS = ("model", "other_model")
#: More models than this are not counted side by side in one row a user.
_MOST_COLUMNS = 8


def read_counts(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    read: Read = Read(),  # noqa: B008 - frozen
    by: str | None = None,
    replacement: bool = True,
    filtered: bool = False,
    negatives: str = "own",
) -> dict[str, RankCounts]:
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
    replacement
        Whether the same item may be sampled twice for a target.
    filtered
        Whether the other relevant items of a user were left out, so that metrics are those of
        targets and not of users.
    negatives
        ``"shared"`` where all targets were ranked against one pool of items. A column ``pool``
        says which pool, where there are several. Scored rows with a column ``item`` tell which
        item beats which target.

    Returns
    -------
    dict of str to RankCounts
        Counts by the values of the column ``by``, sorted; under ``""`` without one. With a column
        ``user``, the counts know how many targets of one user are in which cells.
    """
    asked = _asked(items, sampled, read, by, replacement, filtered, negatives)
    return dict(_read(source, asked, pair=False))


def read_models(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    read: Read = Read(),  # noqa: B008 - frozen
    by: str | None = None,
    pair: bool = True,
    replacement: bool = True,
    filtered: bool = False,
    negatives: str = "own",
) -> ModelCounts:
    """Count the ranks of several models, and of each two the ranks of the same user.

    The parameters are those of `read_counts`; ``pair`` says whether to count pairs of models.
    """
    asked = _asked(items, sampled, read, by, replacement, filtered, negatives)
    return _read(source, asked, pair=pair)


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
    """Read a table target by target; the parameters are those of `read_counts`.

    Of lists, and of what was counted before, there are counts.
    """
    asked = _asked(items, sampled, read, by, replacement, filtered, negatives)
    with _opened(source, asked) as table:
        counted = _counted(table, asked)
        if counted is not None:
            return dict(counted)
        reading, rows = _rows_of(table, asked)
    found = reading.by_model(rows)
    return {
        name: each if isinstance(each, Targets) else each.counts for name, each in found.items()
    }


def read_full_ranks(source: Any, *, items: Any = None, rng: Any = 0) -> Targets:
    """Read ranks in the full catalogue: columns ``rank``, ``user``, ``items``, ``relevance``.

    Half ranks are ties, placed at random. What the ranks must be is left to `unsample.exact`.
    """
    asked = _asked(items, None, Read(rows="ranks", rng=rng), None, False, False, "own")
    # No rank is too large here: whoever takes them knows the catalogue.
    asked = replace(asked, given={"sampled": 10**12, **asked.given})
    reading, rows = _one_by_one(source, asked)
    return reading.full_ranks(rows)


def read_pairs(source: Any, *, items: int, columns: Mapping[str, str] | None = None) -> Columns:
    """Read rows of ``user`` and ``item`` (a number from 0 to items - 1), and maybe ``target``."""
    asked = _asked(items, None, Read(columns=columns), None, False, False, "own")
    _, rows = _one_by_one(source, asked, "negatives")
    return {**rows, "item": rows["item"].astype(np.int64)}


def counts_of_partition(frame: Any, **options: Any) -> Any:
    """Count a part of a table that holds whole users, as a frame of its own kind.

    For ``mapInPandas``, Ray's ``map_batches`` and Dask's ``map_partitions``: the rows of all parts
    together are a table of counts, which `unsample.estimate` and `unsample.compare` take. The
    options are those of `read_models`, without ``filtered`` and ``negatives``.

    Parameters
    ----------
    frame
        A frame of pandas or Polars.
    """
    return type(frame)(_as_table(read_models(frame, **options)))


# -- what is asked -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """What is asked of a table."""

    given: dict[str, int]
    read: Read
    by: str | None
    replacement: bool
    filtered: bool
    shared: bool

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the names of all columns that may be read."""
        named = (self.read.columns or {}).values()
        return (*ROLES, *MODELS, *COUNTS, *named, *([self.by] if self.by else []), "weight")

    def reading(self, name: str, layout: Layout) -> Reading:
        rule, seed = check_ties(self.read.ties, whole=True), tie_seed(self.read.rng)
        return Reading(
            name, layout, self.read, rule, seed, self.replacement, self.filtered, self.shared
        )


def _asked(
    items: Any,
    sampled: Any,
    read: Read,
    by: str | None,
    replacement: bool,
    filtered: bool,
    negatives: str,
) -> _Asked:
    check_ties(read.ties, whole=True)
    shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
    return _Asked(check_design(items, sampled), read, by, replacement, filtered, shared)


@contextmanager
def _opened(source: Any, asked: _Asked) -> Iterator[Table | Arrays]:
    """Give the table that a source stands for, as long as it is read."""
    with ExitStack() as stack:
        table = open_source(source, asked.wanted, stack)
        with table.told() if isinstance(table, Table) else nullcontext():
            yield table


def _one_by_one(source: Any, asked: _Asked, kind: str | None = None) -> tuple[Reading, Columns]:
    """Return how to read a table, and its rows as arrays."""
    with _opened(source, asked) as table:
        return _rows_of(table, asked, kind)


def _rows_of(
    table: Table | Arrays, asked: _Asked, kind: str | None = None
) -> tuple[Reading, Columns]:
    if isinstance(table, Table):
        engine = _Engine(table, _layout_of(table, asked, kind), asked, counted=False)
        return asked.reading(table.name, engine.layout), engine.one_by_one()
    return _of_arrays(table, asked, kind)


def _of_arrays(arrays: Arrays, asked: _Asked, kind: str | None = None) -> tuple[Reading, Columns]:
    name, columns = arrays.name, arrays.columns
    layout = find_layout(list(columns), name, asked.given, asked.read, asked.by, kind=kind)
    rows = checked_columns(columns, layout, name)
    if layout.unasked and not layout.scored:
        users, models = (
            np.unique(each, return_counts=True)[1]
            for each in (rows["user"], columns[layout.unasked])
        )
        warn_of_pooled_models(layout, name, int(users.min()), int(users.max()), len(models))
    return asked.reading(name, layout), rows


def _layout_of(table: Table, asked: _Asked, kind: str | None) -> Layout:
    """Return the layout of the first part; all parts must have its columns."""
    first: tuple[Part, Layout] | None = None
    for part in table.parts:
        found = find_layout(
            list(part.kinds),
            part.name,
            asked.given,
            asked.read,
            asked.by,
            kind=kind,
            hint=part.hint,
        )
        first = first or (part, found)
        for has, lacks in ((first, (part, found)), ((part, found), first)):
            missing = [role for role in has[1].columns if role not in lacks[1]]
            if missing:
                column = has[1].columns[missing[0]]
                raise FileError(
                    f"{lacks[0].name} has no column {column!r}, which {has[0].name} has"
                )
        for role, column in found.columns.items():
            dtype, numeric = part.kinds[column], ("text", "whole", "real")
            fits = dtype in ((*numeric, "flag") if role == "target" else numeric)
            if role in LISTS and dtype not in ("list", "text"):
                raise InputError(
                    f"column {column!r} of {part.name} must hold lists, its type is {dtype}"
                )
            if not fits and role not in (*NAMES, *LISTS):
                raise InputError(
                    f"column {column!r} of {part.name} must hold {kind_of_values(role)}, its type "
                    f"is {'BOOLEAN' if dtype == 'flag' else dtype}"
                )
    assert first is not None
    return first[1]


# -- engines -------------------------------------------------------------------------------------


class _Engine:
    """A table in its engine, checked: it breaks no rule, and has rows."""

    def __init__(
        self, table: Table, layout: Layout, asked: _Asked, *, counted: bool = True
    ) -> None:
        self.table, self.layout, self.asked = table, layout, asked
        self.columns = list(dict.fromkeys(layout.columns.values()))
        quoted = ", ".join(map(table.dialect.name, self.columns))
        rows = table.whole or " UNION ALL ".join(
            f"SELECT {quoted} FROM {p.rows}" for p in table.parts
        )
        rows = table.whole or f"({rows})"
        alone = (
            counted
            and layout.rows in ("ranks", "comparisons")
            and not {"user", "pool", "relevance"} & {*layout.columns}
        )
        if alone:
            rows = table.keep(
                "base", f"SELECT {quoted}, COUNT(*) AS times FROM {rows} GROUP BY {quoted}"
            )
        self.query = self._query(None, rows, grouped=alone)
        if table.slow and not alone:
            stored = table.keep("source", self.query.text("SELECT * FROM source"))
            self.query.parts["source"] = f"SELECT * FROM {stored}"
        self.models = self._check()
        if layout.unasked and not layout.scored:
            self._warn_of_pooled_models(layout.unasked)

    def _query(
        self, part: Part | None, rows: str, *, grouped: bool = False, shown: str = ""
    ) -> Query:
        parts = self.table.parts if part is None else [part]
        kinds = {}
        for role, column in self.layout.columns.items():
            found = {part.kinds[column] for part in parts}
            # Numbers take the widest type among the files; names become text.
            kind = (
                found.pop() if len(found) == 1 else "real" if found <= {"whole", "real"} else "text"
            )
            kinds[role] = "name" if kind == "whole" and role in ("user", "item") else kind
        read, rule = self.asked.read, check_ties(self.asked.read.ties, whole=True)
        return Query(
            self.layout, kinds, self.table.dialect, rows, rule, tie_seed(read.rng),
            self.asked.replacement, grouped, shown,
        )  # fmt: skip

    def ask(self, final: str) -> Columns:
        return self.table.ask(self.query.text(final))

    def _check(self) -> list[str]:
        """Refuse a row that breaks a rule; return the models."""
        rows, tied = "targets", "SUM(CASE WHEN tied > 0 THEN times ELSE 0 END)"
        if self.layout.scored or self.layout.rows == "negatives":
            rows, tied = "checked", "0"
        kept = f"MAX(bad) AS bad, {tied} AS tied"
        found = self.ask(f"SELECT model, {kept} FROM {rows} GROUP BY model")
        if not len(found["model"]):
            raise InputError(f"{self.table.name} has no rows")
        if any(found["bad"]):
            self._refuse()
        self.tied = self.layout.rows == "scores" or bool(any(found["tied"]))
        if not self.tied:
            self.query.without_ties()
        elif self.asked.read.ties == "random":
            check_copies(float(sum(found["tied"])))
        return sorted(str(model) for model in found["model"])

    def _warn_of_pooled_models(self, column: str) -> None:
        if any(column not in part.kinds for part in self.table.parts):
            return
        user, model = map(self.table.dialect.name, (self.layout.columns["user"], column))
        each = [f"SELECT {user} AS u, {model} AS m FROM {part.rows}" for part in self.table.parts]
        rows = f"({' UNION ALL '.join(each)}) AS r"
        users = f"SELECT COUNT(*) AS n FROM {rows} GROUP BY u"
        asked = (
            f"SELECT MIN(n), MAX(n) FROM ({users}) AS c",
            f"SELECT COUNT(DISTINCT m) FROM {rows}",
        )
        told = [int(values[0]) for query in asked for values in self.table.ask(query).values()]
        warn_of_pooled_models(self.layout, self.table.name, *told)

    def _refuse(self) -> None:
        """Raise the error about the first row that breaks a rule."""
        rules = self.layout.rules()
        for part in self.table.parts:
            numbered = part.place is not None
            rows = (
                f"(SELECT *, ROW_NUMBER() OVER () AS {ROW} FROM {part.rows})"
                if numbered
                else part.rows
            )
            query = self._query(part, rows, shown=ROW if numbered else "shown")
            order = f"ORDER BY {ROW} LIMIT 1" if numbered else "LIMIT 1"
            found = self.table.ask(query.text(f"SELECT * FROM checked WHERE bad > 0 {order}"))
            if len(found["bad"]):
                row = {name: values[0] for name, values in found.items()}
                rule = rules[int(row["bad"]) - 1]
                place = (
                    f" in {part.place(int(row[ROW]))}"
                    if part.place
                    else self._described(row, rule.role)
                )
                raise refusal(rule, self.layout, part.name, row[f"raw_{rule.role}"], place)
        raise InputError(f"{self.table.name} has rows with values that cannot be counted")

    def _described(self, row: Mapping[str, Any], told: str) -> str:
        """Describe a row of an engine that does not number its rows."""
        columns = self.layout.columns.items()
        shown = [f"{column}={show(row[f'raw_{role}'])}" for role, column in columns if role != told]
        return f" in the row with {', '.join(shown)}" if shown else ""

    # -- one by one --------------------------------------------------------------------------

    def one_by_one(self) -> Columns:
        """Return the checked rows; of scored ones, what was compared, if it can be."""
        layout = self.layout
        if layout.scored and not self.asked.shared and "pool" not in layout:
            self._compare()
            rows = self._as_arrays(self.ask("SELECT * FROM compared"))
            users = np.unique(rows["user"], return_inverse=True)[1].reshape(-1)
            return {role: values[np.argsort(users, kind="stable")] for role, values in rows.items()}
        roles = ", ".join(self.table.dialect.name(role) for role in layout.columns)
        return self._as_arrays(self.ask(f"SELECT {roles} FROM checked"))

    def _as_arrays(self, columns: Columns) -> Columns:
        names = {role for role in NAMES if (role, self.layout.rows) != ("item", "negatives")}
        what = f"names in {self.table.name}"
        return {
            role: as_text_array(what, list(map(str, values)), error=FileError)
            if role in names
            else values.astype(np.float64)
            for role, values in columns.items()
        }

    def _compare(self) -> None:
        """Store what was compared, and refuse users who have no target among other items."""
        if "compared" not in self.query.parts:
            return
        stored = self.table.keep("compared", self.query.text("SELECT * FROM compared"))
        parts = self.query.parts
        for name in ("source", "checked", "aims", "each", "found"):
            parts.pop(name, None)
        parts["compared"] = f"SELECT * FROM {stored}"
        if self.layout.rows == "lists":
            return
        user = self.table.dialect.name("user")
        wrong = "number IS NULL OR sampled < 1"
        wrong += " OR number > 1" if self.layout.unasked else ""
        given = self.layout.given.get("sampled")
        wrong += f" OR sampled <> {given}" if given is not None else ""
        users = (
            f"SELECT *, COUNT(number) OVER (PARTITION BY model, {user}) AS targets FROM compared"
        )
        found = self.ask(
            f"SELECT * FROM ({users}) AS u WHERE {wrong} ORDER BY model, {user} LIMIT 1"
        )
        if len(found["bad"]):
            self.asked.reading(self.table.name, self.layout).check_users(found)

    # -- counts ------------------------------------------------------------------------------

    def counts(self, *, pair: bool) -> ModelCounts | Columns | None:
        """Return the table of counts; None where numpy must look at targets one by one."""
        layout, asked = self.layout, self.asked
        if asked.shared or {"pool", "relevance"} & set(layout.columns):
            return None
        users = "user" in layout or layout.scored
        if layout.scored:
            self._compare()
            if int(self.ask("SELECT MAX(number) AS n FROM compared")["n"][0]) > 1 or asked.filtered:
                return None
        if not users:
            return self.table.ask(self.query.counts(between=False, within=False))
        wide = self._wide(pair)
        if wide is not None:
            return wide
        full = (
            not asked.replacement
            and layout.given.get("sampled") == layout.given.get("items", 0) - 1
        )
        return None if full else self.table.ask(self.query.counts(between=pair, within=True))

    def _wide(self, pair: bool) -> ModelCounts | None:
        """Return the counts where a user has one row: of no model has it two targets."""
        design, models = self.layout.given, self.models
        if not {"sampled", "items"} <= design.keys() or len(models) > _MOST_COLUMNS:
            return None
        if self.layout.rows != "ranks" or "count" in self.layout or self.tied:
            return None
        wide = self.table.keep("wide", self.query.wide(models))
        if int(self.table.ask(f"SELECT MAX(more) AS more FROM {wide}")["more"][0]):
            return None

        def ranks(*columns: str) -> list[IntArray]:
            names, there = ", ".join(columns), " AND ".join(f"{c} IS NOT NULL" for c in columns)
            grouped = f"FROM {wide} WHERE {there} GROUP BY {names}"
            found = self.table.ask(f"SELECT {names}, SUM(users) AS users {grouped}")
            return [values.astype(np.int64) for values in found.values()]

        def cells(rank: IntArray) -> IntArray:
            given = design_columns(design["items"], design["sampled"], len(rank), True)
            return pair_keys({**given, "high": rank})

        found, between = {}, {}
        for number, model in enumerate(models):
            rank, users = ranks(f"m{number}")
            found[model] = RankCounts.from_ranks(
                rank,
                count=users,
                items=design["items"],
                sampled=design["sampled"],
                replacement=self.asked.replacement,
            )
        for one, other in combinations(range(len(models)) if pair else (), 2):
            first, second, users = ranks(f"m{one}", f"m{other}")
            between[models[one], models[other]] = PairCounts.of_cells(
                cells(first), cells(second), users
            )
        return ModelCounts(found, between)


# -- counts --------------------------------------------------------------------------------------


def _read(source: Any, asked: _Asked, *, pair: bool) -> ModelCounts:
    with _opened(source, asked) as table:
        known = _counted(table, asked)
        if known is not None:
            return known
        if isinstance(table, Table):
            engine = _Engine(table, _layout_of(table, asked, None), asked)
            counted = engine.counts(pair=pair)
            if isinstance(counted, ModelCounts):
                return counted
            if counted is not None:
                return _of_table(counted, asked)
            reading, rows = asked.reading(table.name, engine.layout), engine.one_by_one()
        else:
            reading, rows = _of_arrays(table, asked)
    targets = dict(sorted(reading.by_model(rows).items()))
    return _of_targets(targets, pair=pair and "user" in reading.layout)


def _counted(table: Table | Arrays, asked: _Asked) -> ModelCounts | None:
    """Return the counts in a table that holds counts; None if it holds rows."""
    known = table.parts[0].kinds if isinstance(table, Table) else table.columns
    if "format" in known and isinstance(table, Arrays):
        return _saved(table, asked)
    return _of_table(_columns_of(table, COUNTS), asked) if {*COUNTS} <= {*known} else None


def _saved(saved: Arrays, asked: _Asked) -> ModelCounts:
    if asked.given or asked.by or asked.read.columns or asked.read.rows:
        raise InputError(
            f"by, items, sampled and read must be left out with {saved.name}, which holds saved "
            "counts and so knows its designs"
        )
    return ModelCounts({"": RankCounts.from_arrays(saved.columns, saved.name)}, {})


def _of_targets(targets: Mapping[str, Targets | Ranged], *, pair: bool) -> ModelCounts:
    between = {}
    for one, other in combinations(targets, 2) if pair else ():
        (users, cells), (others, second) = (
            (np.asarray(targets[name].users), _pair_cells(targets[name])) for name in (one, other)
        )
        between[one, other] = PairCounts.of_users(users, cells, other=(others, second))
    return ModelCounts({name: each.counts for name, each in targets.items()}, between)


def _pair_cells(targets: Targets | Ranged) -> IntArray:
    if isinstance(targets, Ranged):
        return targets.cells
    relevant, place = targets.relevant_and_place
    size = len(targets.ranks)
    columns = design_columns(targets.items, targets.sampled, size, targets.replacement)
    return pair_keys({**columns, "high": targets.ranks, "relevant": relevant, "place": place})


def _of_table(columns: Columns, asked: _Asked) -> ModelCounts:
    """Return the counts that a query made, in any engine."""
    cells = np.array([_empty(first) for first in columns["bin"]])
    if any(_empty(low) for low in columns["low"][cells]):
        raise InputError(
            "the table of counts has ranks that are null: some rows broke a rule, or some users of "
            "scored rows have no target or several; let unsample read the rows, which tells them"
        )
    numbers = {
        name: values[cells].astype(np.int64) for name, values in columns.items()
        if name in COUNTS[1:9]
    }  # fmt: skip
    numbers.pop("together")
    # Files write the name of the only model, which is empty, as they write nothing.
    names = {name: ["" if _empty(n) else str(n) for n in columns[name]] for name in _MODELS}
    models = np.array(names["model"])[cells]
    pairs: dict[tuple[str, str], PairCounts] = {}
    both = zip(names["model"], names["other_model"], strict=True)
    keys = [key for key, cell in zip(both, cells, strict=True) if not cell]
    for key in dict.fromkeys(keys):
        rows = np.flatnonzero(~cells)[[each == key for each in keys]]
        sides = [
            np.stack([columns[start + name][rows].astype(np.int64) for name in PAIR_KEYS], axis=1)
            for start in ("", "other_")
        ]
        if asked.filtered:
            sides = [
                np.concatenate([side[:, :3], np.ones_like(side[:, 3:])], axis=1) for side in sides
            ]
        first, second = sides
        pairs[key] = PairCounts.of_cells(first, second, columns["count"][rows].astype(np.int64))
    found = {}
    for name in np.unique(models).tolist():
        mine = {key: values[models == name] for key, values in numbers.items()}
        if (name, name) in pairs:
            # A user's only target is a pair with itself, which the query leaves out.
            alone = {key: values[mine["relevant"] == 1] for key, values in mine.items()}
            itself = pair_keys(alone)
            single = PairCounts.of_cells(itself, itself, alone["count"])
            pairs[name, name] = PairCounts.merge([pairs[name, name], single])
        users = round(float((mine["count"] / mine["relevant"]).sum()))
        if asked.filtered:
            mine |= {"relevant": np.ones_like(mine["low"]), "place": np.ones_like(mine["low"])}
        found[name] = RankCounts(
            **mine,
            replacement=asked.replacement,
            users=users,
            clusters=pairs.get((name, name)),
        )
    return ModelCounts(found, {key: each for key, each in pairs.items() if key[0] != key[1]})


def _as_table(models: ModelCounts) -> dict[str, list[Any]]:
    """Return the table of counts that a query would give."""
    rows: list[list[Any]] = []
    pairs = {(name, name): each.clusters for name, each in models.items() if each.clusters}
    for name, counts in models.items():
        columns = [getattr(counts, column).tolist() for column in COUNTS[1:8]]
        together = np.rint(counts.weight_squared).astype(np.int64).tolist()
        rows += ([name, *cell, *[None] * 7] for cell in zip(*columns, together, strict=True))
    for (one, other), found in {**pairs, **models.between}.items():
        for first, second, weight in zip(found.first, found.second, found.count, strict=True):
            if one != other or first[3] > 1:
                sampled, items, low, relevant, place = first.tolist()
                ends = [round(weight), None, other, *second.tolist(), low]
                rows.append([one, sampled, items, None, None, relevant, place, *ends])
    return dict(zip(COUNTS, map(list, zip(*rows, strict=True)), strict=True))


def _empty(value: Any) -> bool:
    return value is None or value == "" or value != value  # noqa: PLR0124 - NaN


def _columns_of(table: Table | Arrays, names: Sequence[str]) -> Columns:
    if isinstance(table, Arrays):
        return {name: np.asarray(table.columns[name], dtype=object) for name in names}
    quoted = ", ".join(map(table.dialect.name, names))
    rows = (
        table.whole
        or "(" + " UNION ALL ".join(f"SELECT {quoted} FROM {p.rows}" for p in table.parts) + ")"
    )
    return table.ask(f"SELECT {quoted} FROM {rows}")
