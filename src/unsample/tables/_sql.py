"""The query that turns a table into counts, for DuckDB, Spark, BigQuery and Snowflake.

It is made of named parts: ``source`` (the table's columns as numbers and names), ``checked`` (which
rule a row breaks), ``targets`` (how many items beat each target, how many tie), ``ranked``,
``placed`` (how many targets the user has), and the counts of cells and of pairs of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unsample._checks import check_choice
from unsample.errors import InputError
from unsample.evidence import (
    RANK_STEPS,
    RANKS_ALONE,
    SIZE_STEPS,
    SMALL_CATALOGUE,
    check_ties,
    tie_seed,
)
from unsample.tables._layout import (
    LISTS,
    NAMES,
    NEEDED,
    ROWS,
    Layout,
    Read,
    Rule,
    check_design,
    find_layout,
)

#: The columns of a table of counts: cells, and pairs of cells where ``bin`` is not null.
CELL = ("model", "sampled", "items", "low", "high", "relevant", "place", "count", "together")
OTHER = ("other_model", "other_sampled", "other_items", "other_bin", "other_relevant")
COUNTS = (*CELL, *OTHER, "other_place", "bin")
#: The column that numbers rows, where their engine keeps an order.
ROW = "unsample_row"
#: How a number is written; what it matches is then read without guessing.
NUMBER = r"\s*[+-]?(([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF](inity)?)\s*"
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
    #: Whether a text is a number; and a row for each of so many copies, each item, and its place.
    matches: str = ""
    copies: str = ""
    each: str = ""
    position: str = ""
    number: str = "ROW_NUMBER() OVER ()"

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
        copies="UNNEST(RANGE(CAST({0} AS BIGINT)))",
        each="UNNEST(LIST_DISTINCT({0}))",
        position="COALESCE(LIST_POSITION({0}, {1}), 0)",
    ),
    "spark": Dialect(
        "`",
        nan="ISNAN({0})",
        digest="CAST(CONV(LEFT(MD5({0}), 13), 16, 10) AS BIGINT)",
        matches="{0} RLIKE r'^({1})$'",
        copies="EXPLODE(SEQUENCE(1, CAST({0} AS BIGINT)))",
        each="EXPLODE(ARRAY_DISTINCT({0}))",
        position="ARRAY_POSITION({0}, {1})",
        number="MONOTONICALLY_INCREASING_ID()",
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


@dataclass
class Query:
    """The parts of the query for one table; a part that an engine has stored needs no text."""

    layout: Layout
    #: What the table's columns hold: "text", "whole", "real", "flag" or "list", by role.
    kinds: Mapping[str, str]
    dialect: Dialect
    table: str
    ties: str = "random"
    seed: int = 0
    replacement: bool = True
    #: Whether a row may stand for several, as its column ``times`` says.
    grouped: bool = False
    #: Whether values are kept as they are, to show a bad one, and the numbers of rows.
    shown: str = ""
    parts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts |= {"source": self._source(), "checked": self._checked()}
        if self.layout.rows == "negatives":
            return
        make = {"scores": self._of_scores, "lists": self._of_lists}
        make.get(self.layout.rows, self._of_targets)()
        self.parts |= {"ranked": self._ranked(), "placed": self._placed()}

    def without_ties(self) -> None:
        """Leave out what breaks ties, where there are none."""
        self.ties = "optimistic"
        self.parts["ranked"] = self._ranked()

    def text(self, final: str) -> str:
        """Return the query that ends in ``final``."""
        named = ",\n".join(f"{name} AS (\n{text})" for name, text in self.parts.items())
        return (f"WITH {named}\n" if named else "") + final

    # -- rows --------------------------------------------------------------------------------

    def _source(self) -> str:
        columns = {role: self._value(role) for role in self.layout.columns}
        columns.setdefault("model", "''")
        if self.layout.rows == "lists":
            columns.setdefault("user", self.dialect.number)
        columns["times"] = "times" if self.grouped else "1"
        if self.shown:
            columns |= {f"raw_{r}": self.dialect.name(c) for r, c in self.layout.columns.items()}
            columns |= {ROW: ROW} if self.shown == ROW else {}
        chosen = ", ".join(f"{text} AS {self.dialect.name(role)}" for role, text in columns.items())
        return f"SELECT {chosen} FROM {self.table}"

    def _value(self, role: str) -> str:  # noqa: PLR0911 - one line a kind
        d, kind = self.dialect, self.kinds.get(role, "real")
        column = d.name(self.layout.columns[role])
        if role in LISTS:
            if kind != "text":
                return column
            return (
                f"CASE WHEN JSON_VALID({column}) THEN CAST(CAST({column} AS JSON) AS VARCHAR[]) END"
            )
        if role in NAMES and (role, self.layout.rows) != ("item", "negatives"):
            if kind == "real":
                whole = f"CAST(CAST({column} AS {d.whole}) AS {d.text})"
                held = f"CASE WHEN {column} = FLOOR({column}) THEN {whole} "
                held += f"ELSE CAST({column} AS {d.text}) END"
                return f"CASE WHEN NOT {d.nan.format(column)} THEN {held} END"
            return column if kind in ("text", "name") else f"CAST({column} AS {d.text})"
        if role == "target" and kind in ("text", "flag"):
            word = f"LOWER(TRIM(CAST({column} AS {d.text})))"
            return (
                f"CASE WHEN {word} IN ('true', '1') THEN 1 WHEN {word} IN ('false', '0') THEN 0 END"
            )
        if kind == "text":
            number = d.matches.format(column, NUMBER)
            return f"CASE WHEN {number} THEN CAST(TRIM({column}) AS {d.real}) END"
        if kind == "real":
            return f"CASE WHEN NOT {d.nan.format(column)} THEN {column} END"
        return column

    def _checked(self) -> str:
        broken = [f"WHEN {self.broken(r)} THEN {n}" for n, r in enumerate(self.layout.rules(), 1)]
        return f"SELECT *, CASE {' '.join(broken)} ELSE 0 END AS bad FROM source"

    def broken(self, rule: Rule) -> str:
        """Return what is true of rows that break a rule."""
        value = self.dialect.name(rule.role)
        bad = f"{value} IS NULL"
        if rule.role in NAMES and rule.low is None and self.kinds.get(rule.role) != "name":
            bad += f" OR {value} = ''"
        if rule.role == "relevant":
            bad += (
                f" OR CARDINALITY({value}) = 0"
                if self.dialect.quote == "`"
                else f" OR LEN({value}) = 0"
            )
        if rule.low is not None:
            most = f"{rule.most:.17g}" + (f" + {self.dialect.name(rule.more)}" if rule.more else "")
            most += f" - {rule.less}" if rule.less else ""
            bad += f" OR {value} < {rule.low} OR {value} > {most}"
            if rule.step is not None and self.kinds.get(rule.role, "real") != "whole":
                times = "2 * " if rule.step < 1 else ""
                bad += f" OR {times}{value} <> FLOOR({times}{value})"
        return f"(target = 1 AND ({bad}))" if rule.of_targets else f"({bad})"

    def _design(self) -> str:
        """Return the columns of the design, sizes of single rows on a grid."""
        sampled, items = (str(self.layout.given.get(name, name)) for name in ("sampled", "items"))
        if "items" not in self.layout.given:
            whole = f"CAST(items AS {self.dialect.whole})"
            grid = f"EXP(ROUND(LN({whole}) * {SIZE_STEPS}) / {SIZE_STEPS})"
            grid = f"CAST(ROUND({grid}) AS {self.dialect.whole})"
            kept = f"items <= {SMALL_CATALOGUE}"
            if not self.replacement:
                # All of a catalogue keeps its size, and a part never seems to be all.
                kept += f" OR {sampled} >= items - 1"
                grid = f"GREATEST({grid}, CAST({sampled} AS {self.dialect.whole}) + 2)"
            items = f"CASE WHEN {kept} THEN {whole} ELSE {grid} END"
        return f"CAST({sampled} AS {self.dialect.whole}) AS sampled, {items} AS items"

    # -- targets -----------------------------------------------------------------------------

    def _of_targets(self) -> None:
        d, whole = self.dialect, self.dialect.whole
        better, tied = "better", "tied"
        if self.layout.rows == "ranks":
            rank = d.name("rank")
            better, tied = f"{rank} - 1", "0"
            if self.kinds.get("rank") != "whole":
                better = f"CASE WHEN bad = 0 THEN CAST(FLOOR({rank}) AS {whole}) END - 1"
                tied = f"CASE WHEN {rank} > FLOOR({rank}) THEN 1 ELSE 0 END"
        times = "times"
        if "count" in self.layout:
            times = f"CASE WHEN bad = 0 THEN CAST({d.name('count')} AS {whole}) * times END"
        user = d.name("user") if "user" in self.layout else "''"
        self.parts["targets"] = (
            f"SELECT model, {user} AS {d.name('user')}, {self._design()}, {better} AS better, "
            f"{tied} AS tied, {times} AS times, 0 AS beyond, bad FROM checked"
        )

    def _of_scores(self) -> None:
        """Compare each target with its user's other items; a user without one has a row too."""
        user, named = self.dialect.name("user"), "item" in self.layout
        order, same = (
            "score, item" if named else "score",
            f"s.model = a.model AND s.{user} = a.{user}",
        )
        self.parts["aims"] = (
            f"SELECT *, ROW_NUMBER() OVER (PARTITION BY model, {user} ORDER BY {order}) AS number "
            "FROM checked WHERE target = 1"
        )
        other, rows = "s.target = 0", "checked AS s"
        if named:
            # A sampled item that is a target of its user is none.
            other += " AND o.item IS NULL"
            rows += f" LEFT JOIN (SELECT DISTINCT model, {user}, item FROM aims) AS o ON "
            rows += f"s.model = o.model AND s.{user} = o.{user} AND s.item = o.item"
        kept = [role for role in ("items", "item", "score", "relevance") if role in self.layout]
        sums = {"sampled": "1 = 1", "better": "s.score > a.score", "tied": "s.score = a.score"}
        columns = [f"MAX(a.{role}) AS {role}" for role in kept]
        columns += [
            f"SUM(CASE WHEN {other} AND {which} THEN 1 ELSE 0 END) AS {name}"
            for name, which in sums.items()
        ]
        self.parts["compared"] = (
            f"SELECT s.model, s.{user}, a.number, MAX(s.bad) AS bad, {', '.join(columns)}\n"
            f"FROM {rows} LEFT JOIN aims AS a ON {same} GROUP BY s.model, s.{user}, a.number"
        )
        target = "item" if named else f"CAST(number AS {self.dialect.text})"
        lost = "CASE WHEN number IS NULL OR sampled < 1 THEN 1 ELSE bad END AS bad"
        self.parts["targets"] = (
            f"SELECT model, {user}, {self._design()}, better, tied, 1 AS times, 0 AS beyond, "
            f"{lost}, {target} AS item FROM compared"
        )

    def _of_lists(self) -> None:
        """Find each relevant item in the recommended list; others come after its end."""
        d, user = self.dialect, self.dialect.name("user")
        kept = ", ".join(
            ["model", user, "bad", *(r for r in ("sampled", "items") if r in self.layout)]
        )
        size = "CARDINALITY(recommended)" if d.quote == "`" else "LEN(recommended)"
        position = d.position.format("recommended", "item")
        self.parts["each"] = (
            f"SELECT {kept}, recommended, {d.each.format('relevant')} AS item FROM checked"
        )
        self.parts["found"] = (
            f"SELECT {kept}, item, {size} AS length, {position} AS position FROM each"
        )
        order = "CASE WHEN position = 0 THEN 1 ELSE 0 END, position, item"
        self.parts["compared"] = (
            "SELECT *, CASE WHEN position = 0 THEN length - met ELSE position - number END "
            "AS better FROM (SELECT *, SUM(CASE WHEN position > 0 THEN 1 ELSE 0 END) OVER "
            f"(PARTITION BY model, {user}) AS met, ROW_NUMBER() OVER "
            f"(PARTITION BY model, {user} ORDER BY {order}) AS number FROM found) AS f"
        )
        beyond = "CASE WHEN position = 0 THEN 1 ELSE 0 END AS beyond"
        self.parts["targets"] = (
            f"SELECT model, {user}, {self._design()}, better, 0 AS tied, 1 AS times, {beyond}, "
            "bad, item FROM compared"
        )

    # -- ranks -------------------------------------------------------------------------------

    def _ranked(self) -> str:
        """Return targets with their ranks; those with ties at random are placed one by one."""
        d, user = self.dialect, self.dialect.name("user")
        plain = {"optimistic": "0", "pessimistic": "tied"}
        kept = f"model, {user}, sampled, items"
        if self.ties in plain or not self.may_tie:
            return self._with_rank(kept, plain.get(self.ties, "0"), "times", "targets")
        rows = "SELECT * FROM targets WHERE tied > 0"
        if self.grouped or "count" in self.layout:
            copies = f"SELECT *, {d.copies.format('times')} AS copy FROM targets"
            rows = f"{copies} WHERE tied > 0 AND times > 0"
        target = "item"
        if "item" not in self.layout:
            same = f"PARTITION BY model, {user}, better, tied ORDER BY sampled, items"
            rows = f"SELECT *, ROW_NUMBER() OVER ({same}) - 1 AS k FROM ({rows}) AS t"
            names = (f"CAST({part} AS {d.text})" for part in ("better", "tied", "k"))
            target = "CONCAT(" + ", ':', ".join(names) + ")"
        hashed = (
            f"CONCAT('{self.seed}|', CAST({user} AS {d.text}), '|', CAST({target} AS {d.text}))"
        )
        place = f"FLOOR({d.digest.format(hashed)} / 4503599627370496e0 * (tied + 1))"
        sure = self._with_rank(kept, "0", "times", "targets", "WHERE tied = 0")
        return f"{sure}\nUNION ALL\n" + self._with_rank(kept, place, "1", f"({rows}) AS r")

    def _with_rank(self, kept: str, place: str, times: str, rows: str, where: str = "") -> str:
        rank = f"CAST(1 + better + {place} AS {self.dialect.whole})"
        high = (
            f"CASE WHEN beyond = 1 THEN sampled + 1 ELSE {rank} END"
            if self.layout.rows == "lists"
            else rank
        )
        # What breaks a rule has no rank: whoever reads the counts refuses them.
        return (
            f"SELECT {kept}, CASE WHEN bad = 0 THEN {rank} END AS low, CASE WHEN bad = 0 "
            f"THEN {high} END AS high, {times} AS times FROM {rows} {where}"
        )

    @property
    def may_tie(self) -> bool:
        """Whether some target may tie with other items."""
        return (
            self.layout.rows not in ("ranks", "lists") or self.kinds.get("rank", "real") != "whole"
        )

    def _placed(self) -> str:
        """Return ranks with the number of their user's targets."""
        if not ("user" in self.layout or self.layout.scored):
            return "SELECT *, 1 AS relevant, 1 AS place FROM ranked WHERE times > 0"
        user = self.dialect.name("user")
        users = f"SELECT model, {user}, SUM(times) AS relevant FROM ranked GROUP BY model, {user}"
        low, high = "r.low", "r.high"
        if self.layout.scored:
            # Their lists hold each other for certain, which a query cannot undo.
            low, high = (f"CASE WHEN u.relevant = 1 THEN {each} END" for each in (low, high))
        return (
            f"SELECT r.model, r.{user}, r.sampled, r.items, {low} AS low, {high} AS high, r.times, "
            f"u.relevant, CASE WHEN u.relevant = 1 THEN 1 ELSE 0 END AS place FROM ranked AS r "
            f"JOIN ({users}) AS u ON r.model = u.model AND r.{user} = u.{user} WHERE r.times > 0"
        )

    # -- counts ------------------------------------------------------------------------------

    def bin(self, rank: str) -> str:
        """Return the first rank of the bin of a rank."""
        first, steps = RANKS_ALONE + 1, RANK_STEPS
        start = f"CEIL({first} * EXP(FLOOR({steps} * LN({rank} / {first}e0)) / {steps}))"
        start = f"CAST({start} AS {self.dialect.whole})"
        return f"CASE WHEN {rank} <= {RANKS_ALONE} THEN {rank} ELSE {start} END"

    def counts(self, *, between: bool, within: bool) -> str:
        """Return the query for the table of counts, with the pairs of two models or of one."""
        d, user, n = self.dialect, self.dialect.name("user"), self.dialect.name("count")
        keys = ", ".join(CELL[:-2])
        cells = f"SELECT {keys}, SUM(times) AS {n}, SUM(times * relevant) AS together"
        empty = [f"CAST(NULL AS {d.text})", *[f"CAST(NULL AS {d.whole})"] * 6]
        ends = ", ".join(f"{null} AS {name}" for null, name in zip(empty, COUNTS[9:], strict=True))
        cells += f", {ends} FROM placed GROUP BY {keys}"
        if not (between or within):
            return self.text(cells)
        pair = ("sampled", "items", "bin", "relevant", "place")
        kept = f"model, sampled, items, {self.bin('high')} AS bin, relevant, place"
        held = f"SELECT {user}, {kept}, SUM(times) AS times FROM placed GROUP BY {user}, "
        held += f"model, sampled, items, {self.bin('high')}, relevant, place"
        first = [f"a.{name}" for name in ("model", *pair)]
        second = [f"b.{name}" for name in ("model", *pair)]
        which = ["a.model < b.model"] * between + [
            "(a.model = b.model AND a.relevant > 1)"
        ] * within
        null = f"CAST(NULL AS {d.whole})"
        pairs = (
            f"SELECT a.model, a.sampled, a.items, {null}, {null}, a.relevant, a.place, "
            f"SUM(a.times * b.times), {null}, {', '.join(second)}, a.bin\n"
            f"FROM held AS a JOIN held AS b ON a.{user} = b.{user} AND ({' OR '.join(which)})\n"
            f"GROUP BY {', '.join(first + second)}"
        )
        self.parts["held"] = held
        return self.text(f"{cells}\nUNION ALL\n{pairs}")

    def wide(self, models: Sequence[str]) -> str:
        """Return a query for how often users have which ranks, of whom no model has two.

        ``more`` counts the further targets of users who have some.
        """
        user = self.dialect.name("user")
        shown = [f"'{name.replace(chr(39), chr(39) * 2)}'" for name in models]
        ranks = [f"MAX(CASE WHEN model = {m} THEN low END) AS m{n}" for n, m in enumerate(shown)]
        names = [f"m{n}" for n in range(len(models))]
        known = " - ".join(f"CASE WHEN {name} IS NULL THEN 0 ELSE 1 END" for name in names)
        users = f"SELECT COUNT(*) AS n, {', '.join(ranks)} FROM ranked GROUP BY {user}"
        return self.text(
            f"SELECT {', '.join(names)}, n - {known} AS more, COUNT(*) AS users "
            f"FROM ({users}) AS w GROUP BY {', '.join(names)}, n"
        )


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
        What a row holds: ``"ranks"``, ``"comparisons"``, ``"scores"``, or ``"lists"`` (arrays
        ``recommended`` and ``relevant``).
    dialect
        ``"duckdb"``, ``"spark"``, ``"bigquery"`` or ``"snowflake"``; the last two are not run by
        the tests, and have no lists.
    columns
        Columns that have other names, and optional ones that the table has: ``{"user": "user"}``.
    items, sampled
        The design, where it is not a column of each row.
    table
        The name of the table, as the engine writes it.
    replacement, ties, rng
        Whether an item may be sampled twice for a target; the tie rule and its seed.

    >>> print(sql(items=50, sampled=9).splitlines()[-1][:28])
    FROM placed GROUP BY model
    """
    check_choice("rows", rows, ROWS)
    engine = DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]
    given, named = check_design(items, sampled), dict(columns or {})
    if rows == "lists" and not engine.each:
        raise InputError(f"rows must not be lists in {dialect}: unnest them to a row for each item")
    if "count" in named and not engine.copies:
        raise InputError(f"columns must not name count in {dialect}: give a row for each target")
    roles = [*NEEDED[rows], *(["user"] if pair else []), *named]
    roles += [name for name in ("items", "sampled") if name not in given]
    there = {role: named.get(role, role) for role in roles if (role, rows) != ("sampled", "scores")}
    present = [*there.values(), *([by] if by else [])]
    layout = find_layout(present, "the table", given, Read(columns=named, rows=rows), by)
    kinds = dict.fromkeys(layout.columns, "whole") | {
        "rank": "real",
        "score": "real",
        "target": "flag",
    }
    kinds |= dict.fromkeys((*NAMES, *LISTS), "other")
    rule, seed = check_ties(ties, whole=True), tie_seed(rng)
    query = Query(layout, kinds, engine, table, rule, seed, replacement)
    text = query.counts(between=pair, within=pair)
    tested = dialect in ("duckdb", "spark")
    return text if tested else _NOT_RUN.format(dialect) + text
