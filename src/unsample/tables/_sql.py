"""The query that turns a table into counts, for DuckDB, Spark, BigQuery and Snowflake.

It is made of named parts: ``targets`` of scored rows (how many items beat each target, how many tie
with it), ``ranked``, ``numbered`` (with the number of targets of the user), and the counts of cells
and pairs. `_sql_templates` has the text of each part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from unsample._checks import check_choice, check_flag
from unsample.counts import (
    FEW_SIZES,
    PAIR_KEYS,
    RANK_STEPS,
    RANKS_ALONE,
    SIZE_STEPS,
    SMALL_CATALOGUE,
    Negatives,
    as_negatives,
)
from unsample.errors import InputError
from unsample.tables import _sql_templates as templates
from unsample.tables._layout import (
    COLUMNS,
    DESIGN,
    NUMBER,
    RUN_OF,
    Asked,
    Layout,
    Read,
    find_layout,
)

#: The columns of a table of counts: cells, and pairs of cells where ``bin`` is not null.
CELL = (*DESIGN, "low", "high", "relevant", "position", "smallest", "largest")
_OF_PAIRS = ("bin", "other_model", *(f"other_{key}" for key in PAIR_KEYS))
COUNTS = ("model", *CELL, "count", *_OF_PAIRS)
_NOT_RUN = "-- Made for {}, and not run there when this was tested: try it on a part first.\n"
_NO_USERS = (
    "-- Each row counts as a user of its own. Where users have several rows, name their column: "
    "columns={'user': ...}, or --column user=...\n"
)


@dataclass(frozen=True)
class Dialect:
    """The syntax of an engine where engines differ."""

    quote: str
    text: str = "STRING"
    whole: str = "BIGINT"
    real: str = "DOUBLE"
    nan: str = "({0} = 'NaN')"
    #: The first 13 digits of the MD5 of a text, as a number.
    digest: str = ""
    #: Whether a text matches a pattern.
    matches: str = ""
    #: What replaces a letter in a quoted name. By default a quote is doubled.
    escapes: Mapping[str, str] = field(default_factory=dict)
    #: What no name may contain, because the engine replaces it.
    replaced: str = ""

    def name(self, column: str) -> str:
        """Quote the name of a column."""
        if self.replaced and self.replaced in column:
            raise InputError(
                f"columns must have names without {self.replaced!r} here, where variables replace "
                f"it, got {column!r}; rename the column"
            )
        escapes = self.escapes or {self.quote: self.quote * 2}
        return self.quote + "".join(escapes.get(each, each) for each in column) + self.quote


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
        replaced="${",
    ),
    "bigquery": Dialect(
        "`",
        whole="INT64",
        real="FLOAT64",
        nan="IS_NAN({0})",
        digest="CAST(CONCAT('0x', SUBSTR(TO_HEX(MD5({0})), 1, 13)) AS INT64)",
        escapes={"\\": "\\\\", "`": "\\`", "\n": "\\n", "\r": "\\r"},
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
    #: Whether nobody looks at the rows before: those without a name are given no rank then.
    unchecked: bool = False

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
        dialect = self.dialect
        kind = self.kinds[role]
        column = dialect.name(self.layout.columns[role])
        is_name = self.layout.is_name(role)
        if role in ("model", "run"):
            # There are few names, and they must be as in the query that counts.
            text = self.value(role)
            empty = dialect.nan.format(column)
            return f"CASE WHEN {empty} THEN NULL ELSE {text} END" if kind == "real" else text
        if role != "score" and not is_name:
            return column
        bad = f"{column} IS NULL"
        if kind == "text" and role == "score":
            bad += f" OR NOT {dialect.matches.format(column, NUMBER)}"
        elif kind == "text":
            bad += f" OR {column} = ''"
        elif kind == "real":
            bad += f" OR {dialect.nan.format(column)}"
        if kind == "text":
            return f"CASE WHEN {bad} THEN {column} ELSE '1' END"
        return f"CASE WHEN {bad} THEN NULL ELSE 1 END"

    def distinct(self) -> str:
        """Return the query for the distinct rows, as they are, and how many there are of each."""
        chosen = [f"{self.raw(role)} AS {self.dialect.name(role)}" for role in self.layout.columns]
        return f"SELECT {', '.join(chosen)}, COUNT(*) AS times FROM {self.table} GROUP BY ALL"

    def value(self, role: str) -> str:
        """Return a number or a name that was checked."""
        kind = self.kinds[role]
        column = self.dialect.name(self.layout.columns[role])
        text = self._as(column, "text")
        if self.layout.is_name(role):
            if kind == "real":
                whole = self._as(self._as(column, "whole"), "text")
                return f"CASE WHEN {column} = FLOOR({column}) THEN {whole} ELSE {text} END"
            return text if role in ("model", "run") else column
        if role == "target":
            # Numbers and truth values are not cast to text, which takes long.
            yes = {"BOOLEAN": column, "whole": f"{column} = 1", "real": f"{column} = 1"}
            true = yes.get(kind, f"LOWER(TRIM({text})) IN ('true', '1', '1.0')")
            return f"CASE WHEN {true} THEN 1 ELSE 0 END"
        return column if kind != "text" else self._as(f"TRIM({column})", "real")

    def plain(self) -> str:
        """Return the query for the checked rows, one by one and in their order."""
        chosen = {self.dialect.name(role): self.value(role) for role in self.layout.columns}
        return f"SELECT {_listed(chosen)} FROM {self.table}"

    def _given(self, *roles: str) -> str:
        """Return the values of the roles that the table has; ``rank`` is a keyword of SQL."""
        kept = {role: self.value(role) for role in roles if role in self.layout}
        if "rank" in kept:
            kept["position"] = kept.pop("rank")
        kept["model"] = self._name("model")
        if "run" in self.layout:
            kept["model"] = f"CONCAT({kept['model']}, '{RUN_OF}', {self.value('run')})"
        kept["who"] = self._name("user")
        return f"SELECT {_listed(kept)} FROM {self.table}"

    def _name(self, role: str) -> str:
        """Return whose a row is, by which parts of the query are joined; a null would join none."""
        if role not in self.layout:
            return "''"
        name = self.value(role)
        return f"COALESCE({self._as(name, 'text')}, '')" if self.unchecked else name

    def _if_named(self, rank: str, rows: str = "") -> str:
        """Return the rank of a row that has a name, where nobody looks at the rows before."""
        names = {"model": "model", "user": "who"} if self.unchecked else {}
        named = [f"{rows}{name} <> ''" for role, name in names.items() if role in self.layout]
        return f"CASE WHEN {' AND '.join(named)} THEN {rank} END" if named else rank

    # -- ranks -----------------------------------------------------------------------------------

    def ranked(self) -> dict[str, str]:
        """Return the parts up to ``ranked``: the user of each target, its design, and its rank."""
        if self.layout.scored:
            return self.targets() | {"ranked": self._with_rank(self._rank_of_scores(), "targets")}
        rank = "position"
        if self.kinds["rank"] != "whole":
            # A number that is not whole gets no rank, and then reading the counts refuses it.
            rank = self._as("CASE WHEN position = FLOOR(position) THEN position END", "whole")
        design = {n: self._as(str(self.asked.given.get(n, n)), "whole") for n in DESIGN}
        rows = self._given("rank", *DESIGN)
        rows_given = templates.RANKS_GIVEN.format(design=_listed(design), rows=rows)
        return {"given": rows_given, "ranked": self._with_rank(rank, "given")}

    def _with_rank(self, rank: str, rows: str) -> str:
        columns = {"items": "items", "size": "items", "low": rank}
        columns |= {"name": "name"} if self.layout.scored else {}
        if "items" in self.asked.given:
            return templates.RANKED.format(columns=_listed(columns), rows=rows)
        columns["items"] = self._size("sizes")
        return templates.RANKED_WITH_SIZES.format(columns=_listed(columns), rows=rows)

    def _size(self, sizes: str) -> str:
        """Return the size of a catalogue, on a grid where a model has many different ``sizes``."""
        grid = self._as(f"ROUND(EXP(ROUND(LN(items) * {SIZE_STEPS}) / {SIZE_STEPS}))", "whole")
        kept = f"{sizes} <= {FEW_SIZES} OR items <= {SMALL_CATALOGUE}"
        if not self.asked.negatives.replacement or "sampled" not in self.asked.given:
            # A sample of all items keeps its size, and a smaller sample never becomes all items.
            grid = f"GREATEST({grid}, sampled + 2)"
            kept += " OR sampled >= items - 1"
        return f"CASE WHEN {kept} THEN items ELSE {grid} END"

    def targets(self) -> dict[str, str]:
        """Return the parts that compare each scored target with its user's other items."""
        if self.stored:
            return {"targets": f"SELECT * FROM {self.stored}"}
        has_items = "item" in self.layout
        # Whose a list is, which joins the rows of a user with the user's targets.
        owner = ["model", "who"] if "model" in self.layout else ["who"]
        owners = ", ".join(owner)
        same_owner = " AND ".join(f"s.{key} = a.{key}" for key in owner)
        one_target = ", ".join([*(f"a.{key}" for key in owner), "a.number"])
        marked = templates.MARKED_BY_ITEM if has_items else templates.MARKED
        return {
            "given": self._given("item", "score", "target", "items"),
            "aims": templates.AIMS.format(
                keys=owners, order="score, item" if has_items else "score"
            ),
            "marked": marked.format(keys=owners, same=same_owner),
            "compared": templates.COMPARED.format(
                columns=self._compared_columns(one_target), same=same_owner, target=one_target
            ),
            "targets": templates.TARGETS.format(columns=_listed(self._target_columns())),
        }

    def _compared_columns(self, one_target: str) -> str:
        """Return the columns of a compared target: the model, its keys, and what it keeps."""
        columns = [] if "model" in self.layout else ["'' AS model"]
        columns.append(one_target)
        # All rows of a target have the same, so that the largest is the only one.
        columns += [f"MAX(a.{name}) AS {name}" for name in ("items", "item") if name in self.layout]
        return ", ".join(columns)

    def _target_columns(self) -> dict[str, str]:
        """Return the design of a target, and the name by which ties with it are broken."""
        return {
            "sampled": self._as("sampled", "whole"),
            "items": self._as(str(self.asked.given.get("items", "items")), "whole"),
            "name": "item" if "item" in self.layout else self._as("number", "text"),
        }

    def _rank_of_scores(self) -> str:
        """Return the rank of a target by the tie rule."""
        ties = self.asked.read.ties
        if ties != "random":
            return self._as("1 + better + tied" if ties == "pessimistic" else "1 + better", "whole")
        who = self._as("who", "text")
        name = self._as("name", "text")
        probability = self.dialect.digest.format(
            f"CONCAT('{self.asked.seed}|', {who}, '|', {name})"
        )
        position = f"FLOOR({probability} / 4503599627370496e0 * (tied + 1))"
        return self._as(f"1 + better + CASE WHEN tied = 0 THEN 0 ELSE {position} END", "whole")

    def _numbered(self) -> str:
        """Return ranks with the number of their user's targets."""
        if not self.users:
            return templates.NUMBERED_WITHOUT_USERS.format(low=self._if_named("low"))
        # Targets in one list hold each other for certain, which a query cannot undo.
        low = "CASE WHEN u.relevant = 1 THEN r.low END" if self.layout.scored else "r.low"
        name = ", r.name AS name" if self.layout.scored else ""
        return templates.NUMBERED.format(low=self._if_named(low, "r."), name=name)

    # -- counts ----------------------------------------------------------------------------------

    def text(self, final: str, parts: Mapping[str, str]) -> str:
        """Return the query that ends in ``final``."""
        named = ",\n".join(f"{name} AS (\n{text})" for name, text in parts.items())
        return f"WITH {named}\n{final}"

    def counts(self, *, pair: bool, models: Sequence[str] | None = None) -> str:
        """Return the query for the table of counts, with the pairs of two models if asked for.

        With ``models`` (bound names), each user has one row for all models, which is quick. The
        rank is null where a model has two targets of a user.
        """
        if models is not None:
            return self._side_by_side(models, pair)
        parts = self.ranked() | {"numbered": self._numbered()}
        counts = [templates.CELLS.format(**self._constants())]
        if self.users:
            parts["binned"] = templates.BINNED.format(bin=self._bin("low"))
            parts["user_bins"] = templates.USER_BINS
            which = "(a.model = b.model AND a.relevant > 1)"
            which += " OR a.model < b.model" if pair else ""
            counts.append(templates.PAIRS.format(which=which, **self._constants()))
        return self.text(_AND.join(counts), parts)

    def _side_by_side(self, models: Sequence[str], pair: bool) -> str:
        """Count users by their combination of ranks, one rank for each model."""
        names = {f"m{n}": name for n, name in enumerate(models)}
        ranks = {m: f"MAX(CASE WHEN model = {name} THEN low END)" for m, name in names.items()}
        known = " - ".join(f"CASE WHEN {m} IS NULL THEN 0 ELSE 1 END" for m in names)
        parts = {
            "wide": templates.WIDE.format(ranks=_listed(ranks)),
            "joint": templates.JOINT.format(models=", ".join(names), known=known),
        }
        constants = self._constants() | {name: str(self.asked.given[name]) for name in DESIGN}
        counts = [
            templates.CELLS_OF_MODEL.format(
                model=name, column=m, rank=f"CASE WHEN more = 0 THEN {m} END", **constants
            )
            for m, name in names.items()
        ]
        for first, second in combinations(names if pair else (), 2):
            sides = {"model": names[first], "column": first, "bin": self._bin(first)}
            sides |= {
                "other_model": names[second],
                "other_column": second,
                "other_bin": self._bin(second),
            }
            counts.append(templates.PAIRS_OF_MODELS.format(**sides, **constants))
        return self.text(_AND.join(counts), self.ranked() | parts)

    def _constants(self) -> dict[str, str]:
        """Return how the engine writes a null, the column of counts, and cells without a pair."""
        nulls = {n: self._as("NULL", "text" if "model" in n else "whole") for n in _OF_PAIRS}
        return {
            "null": self._as("NULL", "whole"),
            "count": self.dialect.name("count"),
            "no_pair": _listed(nulls),
        }

    def _bin(self, rank: str) -> str:
        """Return the first rank of the bin of a rank."""
        first = RANKS_ALONE + 1
        start = f"CEIL({first} * EXP(FLOOR({RANK_STEPS} * LN({rank} / {first}e0)) / {RANK_STEPS}))"
        return f"CASE WHEN {rank} <= {RANKS_ALONE} THEN {rank} ELSE {self._as(start, 'whole')} END"

    def outcomes(self) -> str:
        """Return the query for how many targets of each rank each shared item faces and beats."""
        parts = replace(self, stored="").targets() | self.ranked()
        parts["numbered"] = self._numbered()
        parts["faced"] = templates.FACED.format(seed=self.asked.seed)
        return self.text(templates.OUTCOMES, parts)


_AND = "\nUNION ALL\n"


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{value} AS {name}" for name, value in values.items())


def sql(
    *,
    table: str = "ranks",
    dialect: str = "duckdb",
    items: int | None = None,
    sampled: int | None = None,
    negatives: Negatives | None = None,
    read: Read | None = None,
    by: str | None = None,
    pair: bool = False,
) -> str:
    """Return the query that counts a table where it is; `estimate` and `compare` take its result.

    Parameters
    ----------
    table
        The name of the table, as the engine writes it.
    dialect
        ``"duckdb"``, ``"spark"``, ``"bigquery"`` or ``"snowflake"``. The tests run the last two in
        DuckDB, in sqlglot's translation, and not in the engines themselves.
    items, sampled
        The design, where it is not a column of each row.
    negatives
        How items were drawn: `unsample.Negatives`, as in `estimate`.
    read
        What columns are called, which optional ones the table has, what a row holds (by default
        ranks), the tie rule and its seed: `unsample.Read`. Without a column ``user``, as in
        ``Read(columns={"user": "user"})``, or ``pair``, each row of ranks counts as a user of its
        own, which the query says in its first line.
    by
        The column that names the model.
    pair
        Whether to count pairs of two models' ranks of the same user. The table then has a column
        ``user``.

    Returns
    -------
    str
        The query. Its result is a table of counts, of which `estimate` and `compare` take a file
        or a frame.

    Raises
    ------
    InputError, DesignError
        If an argument is wrong; the message names it.

    >>> print(sql(items=50, sampled=9).splitlines()[-1].rpartition("BY ")[2])
    model, sampled, items, low, relevant, position
    """
    pair = check_flag("pair", pair)
    how = Read() if read is None else read
    how = replace(how, rows=how.rows or "ranks")
    needed = COLUMNS[str(how.rows)][0]
    columns = dict(how.columns or {})
    asked = Asked(items=items, sampled=sampled, read=how, by=by, negatives=as_negatives(negatives))
    named = {role: role for role in (*needed, *(["user"] if pair else []))} | columns
    missing = [name for name in ("items", "sampled") if name not in asked.given]
    present = [*named.values(), *missing, *([by] if by else [])]
    return printed(asked, present, pair=pair, dialect=dialect, table=table)


def printed(
    asked: Asked,
    present: Sequence[str],
    *,
    pair: bool,
    dialect: str,
    table: str,
    text: bool = False,
) -> str:
    """Return the query that counts a table with these columns, after comments on its limits.

    With ``text``, all cells are text.
    """
    engine = DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]
    layout = find_layout(present, "the table", asked=asked)
    kinds = dict.fromkeys(layout.columns, "whole") | {"rank": "real", "score": "real"}
    kinds |= {"model": "text", "target": ""}
    kinds = dict.fromkeys(layout.columns, "text") if text else kinds
    query = Query(layout, kinds, dialect=engine, table=table, unchecked=True)
    head = "" if dialect in ("duckdb", "spark") else _NOT_RUN.format(dialect)
    return head + ("" if query.users else _NO_USERS) + query.counts(pair=pair)
