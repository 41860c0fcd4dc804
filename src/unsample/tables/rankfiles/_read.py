"""The doors: one file or many, read here or streamed by an engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from unsample._checks import Seed
from unsample._files import is_file
from unsample.errors import FileError, InputError
from unsample.evidence import RankCounts, Targets
from unsample.tables.frames import compare_table, embedded_engine, expand_pattern, open_files
from unsample.tables.rankfiles._columns import count_rows, group_rows, require_columns, targets_of
from unsample.tables.rankfiles._formats import (
    PARQUET_MARK,
    PARSERS,
    SUFFIXES_OF_FORMATS,
    format_of,
    read_bytes,
    start_of,
)
from unsample.tables.rankfiles._request import Request
from unsample.tables.rankfiles._table import Table

__all__ = ["read_counts", "read_grouped_counts", "read_targets"]

#: Text files from this size on are streamed by an engine, if one is installed.
_LARGE_TEXT = 1 << 25


def read_counts(
    path: str,
    *,
    items: int | None = None,
    sampled: int | None = None,
    replacement: bool = True,
    file_format: str | None = None,
    engine: str | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
) -> RankCounts:
    """Read rank files into counts; see `read_grouped_counts`."""
    groups = read_grouped_counts(
        path,
        by=None,
        items=items,
        sampled=sampled,
        replacement=replacement,
        file_format=file_format,
        engine=engine,
        columns=columns,
        rows=rows,
        ties=ties,
        rng=rng,
    )
    return groups[""]


def read_grouped_counts(
    path: str,
    *,
    by: str | None,
    items: int | None = None,
    sampled: int | None = None,
    replacement: bool = True,
    file_format: str | None = None,
    engine: str | None = None,
    columns: Mapping[str, str] | None = None,
    rows: str | None = None,
    ties: str = "random",
    rng: Seed = 0,
) -> dict[str, RankCounts]:
    """Read rank files into counts by the values of the column ``by`` (one group for None).

    Parameters
    ----------
    path
        A file, ``-`` for standard input, a pattern such as ``runs/*.parquet``, or a folder.
    by
        The column to group by.
    items, sampled, replacement
        The design, where it is not in columns.
    file_format
        One of `FORMATS`; by default told by the name or the content.
    engine
        ``"duckdb"``, ``"polars"`` or ``"spark"``, to stream the files; chosen where needed.
    columns, rows, ties, rng
        As in `unsample.tables.read_counts`.
    """
    request = Request(
        path, by, items, sampled, replacement, file_format, engine, columns or {}, rows, ties, rng
    )
    asks_engine = bool(engine or columns or rows)
    if request.standard_input and asks_engine:
        raise InputError(
            "engine, columns and rows must be left out with standard input, which is read here; "
            "write it to a file"
        )
    if request.several and _all_saved(path):
        _refuse_options(repr(path), request)
        return {"": RankCounts.merge(RankCounts.load(file) for file in expand_pattern(path))}
    if asks_engine or _is_streamed(request):
        return _stream(request)
    return _read_here(request)


def read_targets(
    path: str,
    *,
    by: str | None = None,
    items: int | None = None,
    sampled: int | None = None,
    replacement: bool = True,
    file_format: str | None = None,
) -> dict[str, Targets | RankCounts]:
    """Read a rank file target by target, by the values of the column ``by``.

    Where a row stands for several targets, or only counts can be had (saved counts, tables of
    scores, patterns of files), counts are returned, which cannot be paired by user.
    """
    request = Request(
        path, by, items, sampled, replacement, file_format, None, {}, None, "random", 0
    )
    if not request.several:
        table = _parse_file(request)
        if isinstance(table, Table) and "rank" in table.columns and "count" not in table.columns:
            groups = group_rows(table, by) if by in (None, *table.columns) else {}
            require_columns(table, by)
            return {label: targets_of(table, rows, request) for label, rows in groups.items()}
    return dict(
        read_grouped_counts(
            path,
            by=by,
            items=items,
            sampled=sampled,
            replacement=replacement,
            file_format=file_format,
        )
    )


def _parse_file(request: Request) -> Table | RankCounts:
    content, source = read_bytes(request.path)
    if not content:
        raise FileError(f"{source} is empty; a rank file has a column named rank")
    kind = format_of(request.path, content, request.file_format)
    return PARSERS[kind](content, source, request.by)


def _read_here(request: Request) -> dict[str, RankCounts]:
    table = _parse_file(request)
    if isinstance(table, RankCounts):
        _refuse_options(repr(request.path), request)
        return {"": table}
    if "score" in table.columns and "rank" not in table.columns and not request.standard_input:
        return _stream(request)
    require_columns(table, request.by)
    groups = group_rows(table, request.by)
    return {label: count_rows(table, members, request) for label, members in groups.items()}


# -- files that an engine streams ----------------------------------------------------------------


def _is_streamed(request: Request) -> bool:
    if request.several or (request.file_format == "parquet" and not request.standard_input):
        return True
    file = Path(request.path)
    if request.standard_input or not is_file(file):
        return False
    if request.file_format is None and start_of(file).startswith(PARQUET_MARK):
        return True
    text = (request.file_format or SUFFIXES_OF_FORMATS.get(file.suffix.lower())) in {"csv", "tsv"}
    return text and file.stat().st_size >= _LARGE_TEXT and embedded_engine() is not None


def _stream(request: Request) -> dict[str, RankCounts]:
    kind = request.file_format
    if not request.several:
        if not is_file(Path(request.path)):
            read_bytes(request.path)  # says what is wrong with it
        kind = format_of(request.path, start_of(Path(request.path)), kind)
    groups = compare_table(
        open_files(request.path, engine=request.engine, file_format=kind),
        by=request.by,
        items=request.items,
        sampled=request.sampled,
        columns=request.columns,
        rows=request.rows,
    )
    return {label: request.count(cells) for label, cells in groups.items()}


def _all_saved(pattern: str) -> bool:
    """Return whether all files that a pattern stands for hold saved counts."""
    suffixes = {Path(file).suffix.lower() for file in expand_pattern(pattern)}
    return suffixes <= {".npz", ".json"}


def _refuse_options(source: str, request: Request) -> None:
    if any(option is not None for option in (request.by, request.items, request.sampled)):
        raise InputError(
            f"by, items and sampled must be left out with {source}, which holds saved counts "
            "and so knows its designs"
        )
