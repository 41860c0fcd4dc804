"""The query that turns a table into counts, for DuckDB, Spark, BigQuery and Snowflake.

It is made of named parts: ``targets`` of scored rows (how many items beat each target, how many tie
with it), ``ranked``, ``placed`` (how many targets the user has), and the counts of cells and pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from unsample._checks import check_choice
from unsample.evidence import PAIR_KEYS, RANK_STEPS, RANKS_ALONE, SIZE_STEPS, SMALL_CATALOGUE
from unsample.tables._layout import (
    COLUMNS,
    NUMBER,
    ROWS,
    RUN_OF,
    Asked,
    Layout,
    Read,
    find_layout,
)

#: The columns of a table of counts: cells, and pairs of cells where ``bin`` is not null.
DESIGN = ("sampled", "items")
CELL = (*DESIGN, "low", "high", "relevant", "place")
COUNTS = ("model", *CELL, "count", "bin", "other_model", *(f"other_{key}" for key in PAIR_KEYS))
_NOT_RUN = "-- Made for {}, and not run there when this was tested: try it on a part first.\n"


@dataclass(frozen=True)
class Dialect:
    """How an engine writes what the others write otherwise."""

    quote: str
    text: str = "STRING"
    whole: str = "BIGINT"
    real: str = "DOUBLE"
    nan: str = "({0} = 'NaN')"
    #: The first 13 digits of the MD5 of a text, as a number.
    digest: str = ""
    #: Whether a text matches a pattern.
    matches: str = ""

    def name(self, column: str) -> str:
        """Quote the name of a column."""
        return self.quote + column.replace(self.quote, self.quote * 2) + self.quote


DIALECTS = {
    "duckdb": Dialect(
        '"',
        text="VARCHAR",
        # It lets ranges that Parquet files state answer for NaN, but knows none of exponentials.
        nan="ISNAN(EXP(CAST({0} AS DOUBLE)))",
        digest="CAST('0x' || LEFT(MD5({0}), 13) AS BIGINT)",
        matches="REGEXP_FULL_MATCH({0}, '{1}')",
    ),
    "spark": Dialect(
        "`",
        nan="ISNAN({0})",
        digest="CAST(CONV(LEFT(MD5({0}), 13), 16, 10) AS BIGINT)",
        matches="{0} RLIKE r'^({1})$'",
    ),
    "bigquery": Dialect(
        "`",
        whole="INT64",
        real="FLOAT64",
        nan="IS_NAN({0})",
        digest="CAST(CONCAT('0x', SUBSTR(TO_HEX(MD5({0})), 1, 13)) AS INT64)",
    ),
    "snowflake": Dialect('"', digest="TO_NUMBER(LEFT(MD5({0}), 13), 'XXXXXXXXXXXXX')"),
}


@dataclass(frozen=True)
class Query:
    """The texts of the query for one table."""

    layout: Layout
    #: What the table's columns hold: "text", "whole", "real" or a type, by role.
    kinds: Mapping[str, str]
    dialect: Dialect
    table: str
    #: Where an engine has stored ``targets``.
    stored: str = ""

    @property
    def asked(self) -> Asked:
        """Return what is asked of the table."""
        return self.layout.asked

    @property
    def users(self) -> bool:
        """Return whether targets have users."""
        return "user" in self.layout

    def _as(self, value: str, kind: str) -> str:
        return f"CAST({value} AS {getattr(self.dialect, kind)})"

    # -- values ----------------------------------------------------------------------------------

    def raw(self, role: str) -> str:
        """Return a value to be checked: as it is, or one for all good values where many differ."""
        d, kind = self.dialect, self.kinds[role]
        column = d.name(self.layout.columns[role])
        name = self.layout.is_name(role)
        if role != "score" and not (name and role in ("user", "item")):
            return self._as(column, "text") if name else column
        bad, text = f"{column} IS NULL", kind == "text"
        if text and role == "score":
            bad += f" OR NOT {d.matches.format(column, NUMBER)}"
        elif kind in ("text", "real"):
            bad += f" OR {column} = ''" if kind == "text" else f" OR {d.nan.format(column)}"
        shown, good = (column, "'1'") if text else ("NULL", "1")
        return f"CASE WHEN {bad} THEN {shown} ELSE {good} END"

    def distinct(self) -> str:
        """Return the query for the distinct rows, as they are, and how many there are of each."""
        chosen = [f"{self.raw(role)} AS {self.dialect.name(role)}" for role in self.layout.columns]
        return f"SELECT {', '.join(chosen)}, COUNT(*) AS times FROM {self.table} GROUP BY ALL"

    def value(self, role: str) -> str:
        """Return a number or a name that was checked."""
        kind, column = self.kinds[role], self.dialect.name(self.layout.columns[role])
        text = self._as(column, "text")
        if self.layout.is_name(role):
            if kind == "real":
                whole = self._as(self._as(column, "whole"), "text")
                return f"CASE WHEN {column} = FLOOR({column}) THEN {whole} ELSE {text} END"
            return text if role in ("model", "run") else column
        if role == "target":
            # Of numbers and truth values no text need be made, which takes long.
            yes = {"BOOLEAN": column, "whole": f"{column} = 1", "real": f"{column} = 1"}
            true = yes.get(kind, f"LOWER(TRIM({text})) IN ('true', '1', '1.0')")
            return f"CASE WHEN {true} THEN 1 ELSE 0 END"
        return column if kind != "text" else self._as(f"TRIM({column})", "real")

    def plain(self) -> str:
        """Return the query for the checked rows, one by one and in their order."""
        chosen = {self.dialect.name(role): self.value(role) for role in self.layout.columns}
        return f"SELECT {_listed(chosen)} FROM {self.table}"

    def _given(self, *roles: str) -> str:
        """Return the values of those roles that there are; ``rank`` is a keyword."""
        kept = {role: self.value(role) for role in roles if role in self.layout}
        if "rank" in kept:
            kept["position"] = kept.pop("rank")
        kept["model"] = self.value("model") if "model" in self.layout else "''"
        if "run" in self.layout:
            kept["model"] = f"CONCAT({kept['model']}, '{RUN_OF}', {self.value('run')})"
        kept["who"] = self.value("user") if "user" in self.layout else "''"
        return f"SELECT {_listed(kept)} FROM {self.table}"

    # -- ranks -----------------------------------------------------------------------------------

    def ranked(self) -> dict[str, str]:
        """Return the parts up to ``ranked``: whose each target is, its design, and its rank."""
        if self.layout.scored:
            return self.targets() | {"ranked": self._with_rank(self._rank_of_scores(), "targets")}
        rank = "position"
        if self.kinds["rank"] != "whole":
            # What is not whole has no rank: whoever reads the counts refuses it.
            rank = self._as("CASE WHEN position = FLOOR(position) THEN position END", "whole")
        design = {n: self._as(str(self.asked.given.get(n, n)), "whole") for n in DESIGN}
        given = f"SELECT model, who, position, {_listed(design)} FROM ({{}}) AS g"
        rows = self._given("rank", *DESIGN)
        return {"given": given.format(rows), "ranked": self._with_rank(rank, "given")}

    def _with_rank(self, rank: str, rows: str) -> str:
        found = {"items": self._size(), "low": rank}
        found |= {"name": "name"} if self.layout.scored else {}
        return f"SELECT model, who, sampled, {_listed(found)} FROM {rows}"

    def _size(self) -> str:
        """Return the size of a catalogue, that of a single row on a grid."""
        if "items" in self.asked.given:
            return "items"
        grid = self._as(f"ROUND(EXP(ROUND(LN(items) * {SIZE_STEPS}) / {SIZE_STEPS}))", "whole")
        kept = f"items <= {SMALL_CATALOGUE}"
        if not self.asked.replacement:
            # All of a catalogue keeps its size, and a part never seems to be all.
            grid, kept = f"GREATEST({grid}, sampled + 2)", f"{kept} OR sampled >= items - 1"
        return f"CASE WHEN {kept} THEN items ELSE {grid} END"

    def targets(self) -> dict[str, str]:
        """Return the parts that compare each scored target with its user's other items."""
        if self.stored:
            return {"targets": f"SELECT * FROM {self.stored}"}
        named, keys = "item" in self.layout, ["model", "who"] if "model" in self.layout else ["who"]
        mine = ", ".join(f"a.{key}" for key in keys)
        same = " AND ".join(f"s.{key} = a.{key}" for key in keys)
        number = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(keys)} ORDER BY score"
        number += ", item)" if named else ")"
        other, marked = "1 - s.target", "given AS s"
        if named:
            # A sampled item that is a target of its user is none.
            other = "CASE WHEN s.target = 0 AND a.item IS NULL THEN 1 ELSE 0 END"
            aims = f"(SELECT DISTINCT {', '.join(keys)}, item FROM aims) AS a"
            marked += f" LEFT JOIN {aims} ON {same} AND s.item = a.item"
        kept = {each: f"MAX(a.{each})" for each in ("items", "item") if each in self.layout}
        kept |= {"level": "MAX(a.score)", "sampled": "SUM(s.other)"}
        for name, sign in (("better", ">"), ("tied", "=")):
            kept[name] = f"SUM(CASE WHEN s.score {sign} a.score THEN s.other ELSE 0 END)"
        found = {
            "sampled": self._as("sampled", "whole"),
            "items": self._as(str(self.asked.given.get("items", "items")), "whole"),
            "name": "item" if named else self._as("number", "text"),
        }
        model = "" if "model" in self.layout else "'' AS model, "
        return {
            "given": self._given("item", "score", "target", "items"),
            "aims": f"SELECT *, {number} AS number FROM given WHERE target = 1",
            "marked": f"SELECT s.*, {other} AS other FROM {marked}",
            # Its own row is among the others' too, so that no target is lost.
            "compared": f"SELECT {model}{mine}, a.number, {_listed(kept)}\nFROM marked AS s "
            f"JOIN aims AS a ON {same} GROUP BY {mine}, a.number",
            "targets": f"SELECT model, who, better, tied, level, {_listed(found)} FROM compared",
        }

    def _rank_of_scores(self) -> str:
        """Return the rank of a target by the tie rule."""
        ties, d = self.asked.read.ties, self.dialect
        if ties != "random":
            return self._as("1 + better + tied" if ties == "pessimistic" else "1 + better", "whole")
        who, name = self._as("who", "text"), self._as("name", "text")
        chance = d.digest.format(f"CONCAT('{self.asked.seed}|', {who}, '|', {name})")
        place = f"FLOOR({chance} / 4503599627370496e0 * (tied + 1))"
        return self._as(f"1 + better + CASE WHEN tied = 0 THEN 0 ELSE {place} END", "whole")

    def _placed(self) -> str:
        """Return ranks with the number of their user's targets."""
        if not self.users:
            return "SELECT *, 1 AS relevant, 1 AS place FROM ranked"
        # Targets in one list hold each other for certain, which a query cannot undo.
        low = "CASE WHEN u.relevant = 1 THEN r.low END" if self.layout.scored else "r.low"
        found = {"low": low, "relevant": "u.relevant"}
        found["place"] = "CASE WHEN u.relevant = 1 THEN 1 ELSE 0 END"
        found |= {"name": "r.name"} if self.layout.scored else {}
        users = "SELECT model, who, COUNT(*) AS relevant FROM ranked GROUP BY model, who"
        return (
            f"SELECT r.model, r.who, r.sampled, r.items, {_listed(found)}\nFROM ranked AS r "
            f"JOIN ({users}) AS u ON r.model = u.model AND r.who = u.who"
        )

    # -- counts ----------------------------------------------------------------------------------

    def text(self, final: str, parts: Mapping[str, str]) -> str:
        """Return the query that ends in ``final``."""
        named = ",\n".join(f"{name} AS (\n{text})" for name, text in parts.items())
        return f"WITH {named}\n{final}"

    def counts(self, *, pair: bool, models: Sequence[str] | None = None) -> str:
        """Return the query for the table of counts, with the pairs of two models if asked for.

        With ``models``, users have one row for all of them, which is quick; the rank is null where
        a model has two targets of a user.
        """
        if models is not None:
            return self._side_by_side(models, pair)
        parts = self.ranked() | {"placed": self._placed()}
        cell = "sampled, items, low, low AS high, relevant, place"
        found = self._cells("model", cell, "COUNT(*)")
        found += "placed GROUP BY model, sampled, items, low, relevant, place"
        if self.users:
            keys = "who, model, sampled, items, bin, relevant, place"
            bins = keys.replace("bin", f"{self._bin('low')} AS bin")
            parts["binned"] = f"SELECT {bins} FROM placed"
            parts["held"] = f"SELECT {keys}, COUNT(*) AS times FROM binned GROUP BY {keys}"
            which = "(a.model = b.model AND a.relevant > 1)" + " OR a.model < b.model" * pair
            first, second = ([f"{side}.{key}" for key in ("model", *PAIR_KEYS)] for side in "ab")
            found += _AND + self._pairs("SUM(a.times * b.times)", first, second)
            found += f"held AS a JOIN held AS b ON a.who = b.who AND ({which})\nGROUP BY "
            found += ", ".join(first + second)
        return self.text(found, parts)

    def _side_by_side(self, models: Sequence[str], pair: bool) -> str:
        """Count by how often users have which ranks of the models."""
        names = {f"m{n}": quoted(name) for n, name in enumerate(models)}
        ranks = {m: f"MAX(CASE WHEN model = {name} THEN low END)" for m, name in names.items()}
        known = " - ".join(f"CASE WHEN {m} IS NULL THEN 0 ELSE 1 END" for m in names)
        wide = f"SELECT who, COUNT(*) AS n, {_listed(ranks)} FROM ranked GROUP BY who"
        joint = f"SELECT {', '.join(names)}, n - {known} AS more, COUNT(*) AS users FROM wide "
        joint += f"GROUP BY {', '.join(names)}, n"
        sampled, items = (str(self.asked.given[name]) for name in DESIGN)
        found = []
        for m, model in names.items():
            rank = f"CASE WHEN more = 0 THEN {m} END"
            cell = dict(zip(CELL, (sampled, items, rank, rank, "1", "1"), strict=True))
            rows = f"joint WHERE {m} IS NOT NULL GROUP BY {m}, more"
            found.append(self._cells(model, _listed(cell), "SUM(users)") + rows)
        for two in combinations(names if pair else (), 2):
            bins = [self._bin(m) for m in two]
            sides = ([names[m], sampled, items, self._bin(m), "1", "1"] for m in two)
            both = " AND ".join(f"{m} IS NOT NULL" for m in two)
            rows = f"joint WHERE {both} GROUP BY {', '.join(bins)}"
            found.append(self._pairs("SUM(users)", *sides) + rows)
        return self.text(_AND.join(found), self.ranked() | {"wide": wide, "joint": joint})

    def _cells(self, model: str, cell: str, times: str) -> str:
        nulls = {n: self._as("NULL", "text" if "model" in n else "whole") for n in COUNTS[8:]}
        count = self.dialect.name("count")
        return f"SELECT {model} AS model, {cell}, {times} AS {count}, {_listed(nulls)}\nFROM "

    def _pairs(self, count: str, first: list[str], second: list[str]) -> str:
        model, sampled, items, low, relevant, place = first
        null = self._as("NULL", "whole")
        cell = [model, sampled, items, null, null, relevant, place, count, low, *second]
        return f"SELECT {', '.join(cell)}\nFROM "

    def _bin(self, rank: str) -> str:
        """Return the first rank of the bin of a rank."""
        first = RANKS_ALONE + 1
        start = f"CEIL({first} * EXP(FLOOR({RANK_STEPS} * LN({rank} / {first}e0)) / {RANK_STEPS}))"
        return f"CASE WHEN {rank} <= {RANKS_ALONE} THEN {rank} ELSE {self._as(start, 'whole')} END"

    def outcomes(self) -> str:
        """Return the query for how many targets of each rank each shared item faces and beats."""
        chance = f"MD5(CONCAT('{self.asked.seed}|', CONCAT(s.who, CONCAT('|', s.item))))"
        order = f"PARTITION BY r.model, r.who, r.name ORDER BY s.score DESC, {chance}"
        parts = replace(self, stored="").targets() | self.ranked()
        parts["placed"] = self._placed()
        # As many items beat a target as come before its rank.
        parts["faced"] = (
            f"SELECT r.*, s.item, ROW_NUMBER() OVER ({order}) AS number FROM placed AS r "
            "JOIN marked AS s ON s.model = r.model AND s.who = r.who AND s.other = 1"
        )
        keys = "model, sampled, item, low, relevant, place"
        beaten = "SUM(CASE WHEN number < low THEN 1 ELSE 0 END)"
        return self.text(
            f"SELECT {keys}, {beaten} AS beaten, COUNT(*) AS faced FROM faced GROUP BY {keys}",
            parts,
        )


_AND = "\nUNION ALL\n"


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{value} AS {name}" for name, value in values.items())


def quoted(text: str) -> str:
    """Return a text as a query has it."""
    return "'" + text.replace("'", "''") + "'"


def sql(
    *,
    by: str | None = None,
    pair: bool = False,
    rows: str = "ranks",
    dialect: str = "duckdb",
    columns: Mapping[str, str] | None = None,
    items: int | None = None,
    sampled: int | None = None,
    table: str = "ranks",
    replacement: bool = True,
    ties: str = "random",
    rng: int = 0,
) -> str:
    """Return the query that counts a table where it is; `estimate` and `compare` take its result.

    Parameters
    ----------
    by
        The column that names the model.
    pair
        Whether to count pairs too: of two models' ranks of the same user, and of two targets of
        one user. The table then has a column ``user``.
    rows
        What a row holds: ``"ranks"`` or ``"scores"``.
    dialect
        ``"duckdb"``, ``"spark"``, ``"bigquery"`` or ``"snowflake"``; the last two are not run by
        the tests.
    columns
        Columns that have other names, and optional ones that the table has: ``{"user": "user"}``.
    items, sampled
        The design, where it is not a column of each row.
    table
        The name of the table, as the engine writes it.
    replacement, ties, rng
        Whether an item may be sampled twice for a target; the tie rule and its seed.

    >>> print(sql(items=50, sampled=9).splitlines()[-1][-27:])
    items, low, relevant, place
    """
    needed = COLUMNS[check_choice("rows", rows, ROWS)][0]
    engine = DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]
    read = Read(dict(columns or {}), rows, ties, rng)
    asked = Asked(items, sampled, read, by, replacement)
    named = {role: role for role in (*needed, *(["user"] if pair else []))} | dict(columns or {})
    missing = [name for name in ("items", "sampled") if name not in asked.given]
    present = [*named.values(), *missing, *([by] if by else [])]
    layout = find_layout(present, "the table", asked)
    kinds = dict.fromkeys(layout.columns, "whole") | {"rank": "real", "score": "real"}
    kinds |= {"model": "text", "target": ""}
    text = Query(layout, kinds, engine, table).counts(pair=pair)
    return text if dialect in ("duckdb", "spark") else _NOT_RUN.format(dialect) + text
