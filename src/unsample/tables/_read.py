"""The doors: what a source stands for, and its rows as counts or targets."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unsample._archives import open_plain, read_arrays
from unsample._checks import LARGEST_CATALOGUE, IntArray, Seed, as_index, as_rng, check_choice
from unsample._files import find_files, is_file
from unsample.errors import FileError, InputError
from unsample.evidence import (
    NEGATIVES,
    PoolCounts,
    RankCounts,
    Targets,
    TieRule,
    check_ties,
    in_parts,
    number_users,
    numbered,
    rank_in_lists,
    rank_with_ties,
)
from unsample.tables._arrays import (
    PlainFile,
    PlainTable,
    check_users,
    compare_scores,
    failures_of,
    have_several,
    outcomes_by_item,
    read_delimited,
    read_json_lines,
    read_named_arrays,
    with_design,
)
from unsample.tables._gather import by_label, in_order
from unsample.tables._layout import DRAWN, Columns, Layout, Request
from unsample.tables._old import Comparisons

if TYPE_CHECKING:
    from unsample.tables._frames import FrameTable

#: What columns given one by one are called in messages.
_ARRAYS = "the table"
#: Ending of a name -> its format; other names (``.txt``) leave it to the content.
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".json": "jsonl",
}
_MARKS = {b"PAR1": "parquet", b"PK\x03\x04": "npz"}
_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz"}
#: Bytes that tell a format.
_START = 1 << 16


def read_counts(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    by: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
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
        paths; or a frame of pandas, Polars (eager or lazy), PyArrow, DuckDB or PySpark.
    items, sampled
        The design, where it is not a column. Scored rows tell ``sampled`` by their number.
    columns
        Columns that have other names: ``{"rank": "position"}``.
    rows
        ``"ranks"``, ``"comparisons"`` or ``"scores"``, where the columns would allow several.
    by
        A column to group by, such as ``model``.
    ties, rng
        The tie rule for comparisons and scores, and its seed. The counts depend neither on the
        engine nor on the order or the partitions of the rows.
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
        ``user``, the counts know which targets are of one user. The targets of scored rows stand
        in one list with all others of their user, so that HR, MRR and AP can be told too.
    """
    request = Request(items, sampled, columns or None, rows, by)
    rule = check_ties(ties)
    with ExitStack() as stack:
        table = open_table(source, request, stack)
        if isinstance(table, RankCounts):
            return {"": table}
        shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
        layout, batches = table.rows(one_by_one=shared, scored=shared)
        first = next(batches)
        if not shared and not have_several(first, layout):
            compared = _compared(chain([first], batches))
            with _named(table.name):
                return _counted(compared, ties, rng, replacement)
    found: dict[str, RankCounts] = {}
    with _named(table.name):
        groups = by_label(first)
        del first
        for label in sorted(groups):
            reading = _Reading(table.name, layout, rule, as_rng(rng), replacement, filtered, shared)
            found[label] = reading.targets(in_order(groups.pop(label))).counts
    return found


def read_targets(
    source: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    by: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
    replacement: bool = True,
    filtered: bool = False,
    negatives: str = "own",
) -> dict[str, Targets | RankCounts]:
    """Read a table target by target, with their users, for comparisons that pair them.

    The parameters are those of `read_counts`. Rows and the values of ``by`` keep their order; the
    targets of scored rows are sorted by user. Saved counts, and tables with a column ``count``,
    know no targets one by one: they come as counts.
    """
    request = Request(items, sampled, columns or None, rows, by)
    rule = check_ties(ties)
    with ExitStack() as stack:
        table = open_table(source, request, stack)
        if isinstance(table, RankCounts):
            return {"": table}
        shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
        layout, batches = table.rows(one_by_one=True, scored=shared)
        (found,) = batches
    targets: dict[str, Targets] = {}
    with _named(table.name):
        if ("count" in layout and "user" not in layout) or rule == "realistic":
            # Counting refuses ranks between two.
            counts = _counted(_compared([found]), ties, rng, replacement)
            if "count" in layout:
                return {label: counts[label] for label in by_label(found)}
        for label, group in by_label(found).items():
            reading = _Reading(table.name, layout, rule, as_rng(rng), replacement, filtered, shared)
            targets[label] = reading.targets(group)
            _ = targets[label].counts  # says what is wrong with the design
    return dict(targets)


def read_full_ranks(
    source: Any,
    *,
    items: Any = None,
    rng: Seed = 0,
) -> Targets:
    """Read ranks in the full catalogue: columns ``rank``, ``user``, ``items``, ``relevance``.

    Half ranks are ties, placed at random. What the ranks must be is left to `unsample.exact`.
    """
    # No rank is too large here: whoever takes them knows the catalogue.
    request = Request(items, LARGEST_CATALOGUE, None, "ranks")
    with ExitStack() as stack:
        table = open_table(source, request, stack)
        if isinstance(table, RankCounts):
            raise InputError("full ranks must be given one by one, got saved counts")
        layout, batches = table.rows(one_by_one=True)
        (rows,) = batches
    rows = _one_by_one(rows)
    ranks = _ranks_of(rows, "random", as_rng(rng))
    sizes = rows["items"]
    return Targets(
        ranks,
        sizes,
        sizes - 1,
        layout.users_of(rows),
        replacement=False,
        relevance=rows.get("relevance"),
    )


def read_items(source: Any, *, items: int, columns: Mapping[str, str] | None = None) -> Columns:
    """Read rows of ``user`` and ``item`` (a number from 0 to items - 1), and maybe ``target``."""
    for role in columns or {}:
        check_choice("columns", role, ("user", "item", "target"))
    named = {DRAWN if role == "item" else role: name for role, name in (columns or {}).items()}
    request = Request(items, columns={DRAWN: "item", **named}, kind="negatives")
    with ExitStack() as stack:
        table = open_table(source, request, stack)
        if isinstance(table, RankCounts):
            raise InputError("a table of items must have a column item, got saved counts of ranks")
        rows = table.records()
    return {**rows, "item": rows[DRAWN].astype(np.int64, copy=False)}


@dataclass(frozen=True, eq=False)
class _Reading:
    """How rows become targets."""

    source: str
    layout: Layout
    ties: TieRule
    rng: np.random.Generator
    replacement: bool
    filtered: bool
    shared: bool

    def targets(self, rows: Columns) -> Targets:
        """Return the targets of some rows, in their order."""
        if self.layout.scores and "target" in rows:
            return self._of_scored(rows)
        return self._of_targets(rows)

    def _of_scored(self, scored: Columns) -> Targets:
        """Return the targets of scored rows, and which shared item beats which of them."""
        compared = compare_scores(scored, self.layout)
        check_users(compared, self.layout, self.source)
        found = self._of_targets(with_design(compared, self.layout))
        pools = outcomes_by_item(scored, compared, self.layout, self.ties, self.rng)
        if pools is None or len(found.ranks) != len(compared["better"]):
            return found
        relevant, place = found.relevant_and_place
        parts = [
            PoolCounts.from_outcomes(
                beats,
                items=items,
                pool=int(numbered(np.asarray(found.pools)[members[:1]])[0]) if self._named else 0,
                relevant=relevant[members],
                place=place[members],
            )
            for members, items, beats in pools
        ]
        return replace(found, outcomes=PoolCounts.merge(parts))

    @property
    def _named(self) -> bool:
        return "pool" in self.layout

    def _of_targets(self, rows: Columns) -> Targets:
        rows = _one_by_one(rows)
        if "relevance" in rows:
            graded = ~np.isin(rows["relevance"], (0, 1))
            if graded.any():
                raise InputError(
                    "relevance must be 0 or 1 where ranks are sampled, got "
                    f"{rows['relevance'][np.argmax(graded)]:g}; grades count in full rankings: use "
                    "unsample.exact, or design='certified'"
                )
            rows = {role: values[rows["relevance"] > 0] for role, values in rows.items()}
        ranks, users = _ranks_of(rows, self.ties, self.rng), self.layout.users_of(rows)
        items, sampled, places = rows["items"], rows["sampled"], None
        if self.layout.scores and len(ranks):
            assert users is not None
            user = number_users(users, len(ranks))
            relevant = np.bincount(as_index(user))[user]
            if self.filtered:
                items = items - relevant + 1
            elif (relevant > 1).any():
                ranks, sampled, places = rank_in_lists(
                    ranks - 1,
                    user,
                    rows["score"],
                    items=items,
                    sampled=sampled,
                    replacement=self.replacement,
                    rng=self.rng,
                )
        request = self.layout.request
        plain = places is None and not self.filtered
        return Targets(
            ranks,
            request.items if plain and request.items is not None else items,
            request.sampled if plain and request.sampled is not None else sampled,
            users,
            self.replacement,
            places=places,
            filtered=self.filtered,
            relevance=rows.get("relevance"),
            pools=rows.get("pool", 0 if self.shared else None),
        )


def _one_by_one(rows: Columns) -> Columns:
    """Return a row for each target, where some rows stand for several."""
    if "count" not in rows:
        return rows
    times = as_index(rows["count"])
    return {role: np.repeat(values, times) for role, values in rows.items()}


def _ranks_of(rows: Columns, ties: TieRule, rng: np.random.Generator) -> IntArray:
    """Return the rank of each target, some at a time."""
    ranks = np.empty(len(rows["better"]), dtype=np.int64)
    for some in in_parts(len(ranks)):
        better, tied = (rows[role][some].astype(np.int64) for role in ("better", "tied"))
        ranks[some] = rank_with_ties(better, tied, ties, rng)
    return ranks


def _compared(batches: Iterable[Columns]) -> dict[str, Comparisons]:
    """Return the rows of each label as comparisons."""
    parts: dict[str, list[Comparisons]] = {}
    some = (
        {role: values[rows] for role, values in batch.items()}
        for batch in batches
        for rows in in_parts(len(batch["better"]))
    )
    for batch in some:
        batch.setdefault("count", np.ones(len(batch["better"]), dtype=np.int64))
        for label, group in by_label(batch).items():
            columns = {field.name: group[field.name] for field in fields(Comparisons)}
            parts.setdefault(label, []).append(Comparisons(**columns))
    return {label: Comparisons.merge(parts[label]) for label in sorted(parts)}


def _counted(
    compared: Mapping[str, Comparisons], ties: str, rng: Seed, replacement: bool
) -> dict[str, RankCounts]:
    return {label: found.counted(ties, rng, replacement) for label, found in compared.items()}


def is_frame(value: object) -> bool:
    """Return whether ``value`` is a table with named columns, without importing anything."""
    # The class is asked, because a lazy frame would have to find out to answer.
    return any(hasattr(type(value), name) for name in ("columns", "column_names"))


def is_table(value: object) -> bool:
    """Return whether ``value`` stands for a table: paths, a frame, or a mapping of columns."""
    if isinstance(value, Mapping):
        return True
    paths = value if isinstance(value, list | tuple) and value else [value]
    return all(isinstance(path, str | os.PathLike) for path in paths) or is_frame(value)


@contextmanager
def _named(table: str) -> Iterator[None]:
    """Name the table in messages about its rows as a whole."""
    try:
        yield
    except InputError as problem:
        raise type(problem)(f"{table}: {problem}") from problem


# -- which files ---------------------------------------------------------------------------------


class _File(NamedTuple):
    """A file that is there, and what messages call it."""

    path: Path
    name: str


def open_table(
    source: Any, request: Request, stack: ExitStack
) -> PlainTable | FrameTable | RankCounts:
    """Return the table that a source stands for, or the counts that were saved there.

    What must be cleaned up after reading goes onto the ``stack``.
    """
    request.check()
    if isinstance(source, Mapping):
        arrays = {str(name): np.asarray(values) for name, values in source.items()}
        return PlainTable(_ARRAYS, iter([read_named_arrays(arrays, _ARRAYS)]), request)
    several = isinstance(source, list | tuple)
    paths = list(source) if several else [source]
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        from unsample.tables._frames import FrameTable

        return FrameTable.of(source, request)
    files = [file for path in paths for file in _files_of(os.fspath(path), stack)]
    name = files[0].name if len(files) == 1 else ", ".join(repr(os.fspath(p)) for p in paths)
    kinds = {_format_of(file): file.name for file in files}
    if len(kinds) > 1:
        found = " and ".join(f"{file} ({kind})" for kind, file in kinds.items())
        raise FileError(f"{name} must be files of one format, got {found}; name fewer of them")
    (kind,) = kinds
    if kind == "parquet":
        from unsample.tables._frames import open_parquet

        return open_parquet(name, files, request)
    if kind == "npz" and "format" in _arrays_of(files[0]):
        return _saved_counts(name, files, request)
    opened = _plain_files(files, kind)
    stack.callback(opened.close)
    return PlainTable(name, opened, request)


def _files_of(path: str, stack: ExitStack) -> list[_File]:
    """Return the files that a path, a pattern or a folder stands for, sorted."""
    if path == "-":
        return [_File(_spooled(sys.stdin.buffer, stack), "standard input")]
    files = find_files(path)
    if not is_file(files[0]):  # what can be read only once
        with files[0].open("rb") as pipe:
            return [_File(_spooled(pipe, stack), repr(path))]
    if is_file(path):
        return [_File(Path(path), repr(path))]
    return [_File(file, repr(str(file))) for file in files]


def _spooled(stream: Any, stack: ExitStack) -> Path:
    """Write what can be read only once to a file."""
    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unsample-"))) / "table"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return path


# -- which format --------------------------------------------------------------------------------


def _format_of(file: _File) -> str:
    """Return the format of a file: its content tells, then its name."""
    with failures_of(file.name), open_plain(file.path) as stream:
        start = stream.read(_START)
    if not start:
        raise FileError(f"{file.name} is empty; a table starts with the names of its columns")
    for mark, kind in _MARKS.items():
        if start.startswith(mark):
            return kind
    for mark, ending in _PACKED.items():
        if start.startswith(mark):
            raise FileError(
                f"{file.name} is compressed; give a file whose name ends in {ending}, or unpack it"
            )
    packed = file.path.suffix.lower() in _PACKED.values()
    by_name = _SUFFIXES.get((file.path.with_suffix("") if packed else file.path).suffix.lower())
    first = start.lstrip().split(b"\n", 1)[0]
    if by_name is None and first.startswith(b"{"):
        return "jsonl"
    return by_name or ("tsv" if b"\t" in first else "csv")


def _plain_files(files: Sequence[_File], kind: str) -> Generator[PlainFile]:
    for file in files:
        if kind == "npz":
            yield read_named_arrays(_arrays_of(file), file.name)
            continue
        newline = "\n" if kind == "jsonl" else ""
        with (
            open_plain(file.path) as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline=newline) as text,
        ):
            if kind == "jsonl":
                yield read_json_lines(text, file.name)
            else:
                yield read_delimited(text, "\t" if kind == "tsv" else ",", file.name)


def _arrays_of(file: _File) -> dict[str, Any]:
    with file.path.open("rb") as stream:
        return read_arrays(stream, file.name)


def _saved_counts(name: str, files: Sequence[_File], request: Request) -> RankCounts:
    if request != Request():
        raise InputError(
            f"by, items, sampled, columns and rows must be left out with {name}, which holds "
            "saved counts and so knows its designs"
        )
    return RankCounts.merge(RankCounts.from_arrays(_arrays_of(f), f.name) for f in files)
