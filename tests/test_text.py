"""Text files: their rows are those that Python's csv module reads, or they are refused."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.readers import READERS, read_counts, read_targets
from unsample import tables
from unsample.errors import FileError, InputError, RankError, UnsampleError
from unsample.tables import _text
from unsample.tables._engines import DuckDB
from unsample.tables._sources import _of_files

Rows: TypeAlias = tuple[list[str], list[tuple[str, ...]]]
DESIGN = {"items": 100, "sampled": 9}
_BOM = b"\xef\xbb\xbf"
#: How many texts are drawn of each format.
TEXTS = int(os.environ.get("UNSAMPLE_TEXTS", "400"))


def _cells(duck: DuckDB, stack: ExitStack, *paths: Path) -> Rows:
    """Return the names of the columns and the rows, as the package reads them."""
    table = _of_files(duck, [str(path) for path in paths], wanted=lambda _: True, stack=stack)
    names = list(table.kinds)
    found = duck.ask(f"SELECT * FROM {table.rows}")
    columns = [["" if cell is None else str(cell) for cell in found[name]] for name in names]
    return names, list(zip(*columns, strict=True))


def _expected(content: bytes, mark: str) -> Rows | None:
    """Return the same by Python's csv module; None for what must be refused."""
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    try:
        rows = [row for row in csv.reader(text, delimiter=mark, strict=True) if row]
    except csv.Error:
        return None
    if not rows:
        return None
    names, width = [cell.strip() for cell in rows[0]], len(rows[0])
    if len(names) == 1 and names[0].isdecimal():
        names = ["rank"]
    else:
        rows = rows[1:]
    named = [place for place, name in enumerate(names) if name]
    wrong = any(len(row) < width or any(row[width:]) for row in rows)
    if wrong or not named or len({names[place].casefold() for place in named}) < len(named):
        return None
    return [names[place] for place in named], [tuple(row[n] for n in named) for row in rows]


# -- the two readers beside each other -------------------------------------------------------------

_PIECES = (
    "a", "b", "1", "2", '"', '""', "\n", "\r\n", "\r", ",", "\t", " ", "é", "#", "'", "\\", ";",
    "|", "\u2028", "\x0c", "", "NULL",
)  # fmt: skip


def _cell(draw: random.Random, mark: str, *, well: bool) -> str:
    cell = "".join(draw.choice(_PIECES) for _ in range(draw.choice([0, 1, 1, 1, 2, 3])))
    if not well:
        return cell if draw.random() < 0.2 else draw.choice(["a", "1", "b2", "", " x"])
    if any(each in cell for each in ('"', "\n", "\r", mark)) or draw.random() < 0.3:
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _content(draw: random.Random, mark: str) -> bytes:
    """Draw a small text: well written for the most part, or with what nobody should write."""
    end, well = draw.choice(["\n", "\n", "\r\n", "\r\n", "\r"]), draw.random() < 0.7
    width, odd = draw.choice([1, 2, 2, 3]), draw.random() < 0.2
    plain_names, lines = draw.random() < 0.6, [""] * draw.choice([0, 0, 0, 0, 1, 2])
    for row in range(draw.randint(1, 6)):
        cells = width + (odd and draw.choice([-1, 0, 0, 1]))
        lines.append(
            mark.join(
                f"c{n}" if plain_names and not row else _cell(draw, mark, well=well)
                for n in range(cells)
            )
        )
        lines += [""] * (draw.random() < 0.1)
    text = end.join(lines) + draw.choice(["", end, end, end * 2])
    if draw.random() < 0.1:
        text = text.replace(end, draw.choice(["\n", "\r\n", "\r"]), 1)
    return _BOM * (draw.random() < 0.2) + text.encode()


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_rows_are_those_of_the_csv_module_or_refused(tmp_path, monkeypatch, ending):
    """The same text is also read as if it were large, a few bytes at a time."""
    draw, mark = random.Random(ending), _text.DELIMITERS[ending]
    told = {"plain": 0, "written anew": 0, "refused": 0}
    with ExitStack() as stack:
        duck = DuckDB(stack)
        for number in range(TEXTS):
            path, content = tmp_path / f"{number}.{ending}", _content(draw, mark)
            path.write_bytes(content)
            expected = _expected(content, mark)
            monkeypatch.setattr(_text, "_BLOCK", (64, 1 << 22)[number % 2])
            try:
                found = _cells(duck, stack, path)
            except (UnsampleError, csv.Error, duckdb.Error):
                assert expected is None, content
                told["refused"] += 1
            else:
                assert found == expected, content
                plain = _text.open_text(path, "it", mark=mark, stack=stack)[1] == path
                told["plain" if plain else "written anew"] += 1
    # Neither reader does all the work, and few texts are refused.
    assert min(told.values()) > 0.05 * TEXTS
    assert told["refused"] < 0.4 * TEXTS


def test_several_texts_are_read_as_one_whatever_ends_their_lines(tmp_path):
    contents = [
        b"rank,user\n1,a\n2,\"b\nc\"\n", b"rank,user\r\n3,d\r\n", b"rank,user\r\n",
        b"\nrank,user\r4,e", b'user,rank\n"""",5\n', b'"rank","user"\n6,f',
    ]  # fmt: skip
    paths = [tmp_path / f"{n}.csv" for n in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    with ExitStack() as stack:
        names, rows = _cells(DuckDB(stack), stack, *paths)
    assert sorted(names) == ["rank", "user"]
    found = sorted((row[names.index("rank")], row[names.index("user")]) for row in rows)
    assert found == [("1", "a"), ("2", "b\nc"), ("3", "d"), ("4", "e"), ("5", '"'), ("6", "f")]


def test_a_large_text_with_line_breaks_in_cells_keeps_all_rows(tmp_path):
    """DuckDB reads parts of it at once, which begin anywhere."""
    path, users, note = tmp_path / "large.csv", 400_000, "1,2\n" * 20
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("rank,user,note\n")
        for user in range(users):
            file.write(f'{1 + user % 10},"u\n{user}","{note}"\n')
    found = read_targets(str(path), **DESIGN)
    assert len(np.unique(found.users)) == users
    assert np.bincount(found.ranks).tolist()[1:] == [users // 10] * 10


# -- what once went wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_break_in_a_name_leaves_out_no_rows(tmp_path, end):
    path = tmp_path / "table.csv"
    lines = [f'rank,"us{end}er"', "1,a", "2,b", "3,c", "4,d", ""]
    path.write_bytes(end.join(lines).encode())
    found = read_targets(str(path), columns={"user": f"us{end}er"}, **DESIGN)
    assert found.ranks.tolist() == [1, 2, 3, 4]


def test_empty_quotes_alone_in_a_line_are_a_row_without_a_rank(tmp_path):
    (tmp_path / "ranks.csv").write_text('rank\n1\n""\n\n2\n')
    with pytest.raises(RankError, match="got no value in 1 row"):
        read_counts(str(tmp_path / "ranks.csv"), **DESIGN)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbf\n\n", "is empty; a table starts with the names"),
        (
            b"rank,user\n1,a\r\n2\n",
            "line 3 of .* as many cells as there are columns, 2, got 1",
        ),
        (b"rank,user\n1,a\r\n2,b,c\n", "line 3 of .* columns, 2, got 3"),
        (b'rank,user\n1,"a"x\n', "cannot read line 2 of .*: ',' expected after"),
        (b'"rank,user\n1,a\n', "cannot read .*: unexpected end of data"),
    ],
)
def test_text_that_no_reader_takes_is_refused_in_one_line(tmp_path, content, message):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(FileError, match=message) as problem:
        read_counts(str(tmp_path / "table.csv"), **DESIGN)
    assert "\n" not in str(problem.value)


# -- the names of columns --------------------------------------------------------------------------


def test_a_column_without_a_name_is_passed_over(tmp_path):
    """Pandas numbers the rows in such a one."""
    frame = pd.DataFrame({"rank": [3, 1], "user": ["a", "b"]})
    frame.to_csv(tmp_path / "table.csv")
    assert read_targets(str(tmp_path / "table.csv"), **DESIGN).ranks.tolist() == [3, 1]


# A relation of DuckDB has no such columns: they were renamed when it was made.
@pytest.mark.parametrize("form", sorted({*READERS} - {"duckdb"}))
def test_columns_that_differ_in_capital_letters_alone_are_told_apart_or_refused(
    form, tmp_path, monkeypatch
):
    """Else the engine would name one of them anew, and rows would have no users."""
    rows = {"rank": [1, 3, 2], "User": ["a", "b", "c"], "user": ["x", "x", "y"], "A": 1, "a": 2}
    source = READERS[form](pl.DataFrame(rows), tmp_path, monkeypatch)
    try:
        assert read_counts(source, **DESIGN)[""].users == 2
    except InputError as problem:
        assert "two columns of one name, " in str(problem)  # noqa: PT017


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_that_differ_in_capital_letters_of_a_name_are_refused(form, tmp_path, monkeypatch):
    paths = []
    for folder, name in (("1", "User"), ("2", "user")):
        (tmp_path / folder).mkdir()
        frame = pl.DataFrame({"rank": [1, 2], name: ["a", "a"]})
        paths.append(READERS[form](frame, tmp_path / folder, monkeypatch))
    with pytest.raises(FileError, match=r"'(User|user)' and '(User|user)', capital"):
        read_counts(paths, **DESIGN)
    with pytest.raises(FileError, match=r"'(User|user)' and '(User|user)', capital"):
        tables.read_models(dict(zip("ab", paths, strict=True)), tables.Asked(**DESIGN))


def _wide(columns: int) -> tuple[list[str], list[int]]:
    return [*(f"x{n}" for n in range(columns - 1)), "rank"], [1] * columns


def _wide_json(columns: int) -> str:
    return json.dumps(dict(zip(*_wide(columns), strict=True))) + "\n"


def _wide_csv(columns: int) -> str:
    return "".join(",".join(map(str, line)) + "\n" for line in _wide(columns))


@pytest.mark.parametrize(("ending", "write"), [("csv", _wide_csv), ("jsonl", _wide_json)])
def test_tables_of_very_many_columns_are_refused_at_once(tmp_path, ending, write):
    path = tmp_path / f"wide.{ending}"
    path.write_text(write(100_000))
    with pytest.raises(FileError, match="at most 10,000 columns, got 100,000; keep those"):
        read_counts(str(path), **DESIGN)
    path.write_text(write(500))
    assert read_targets(str(path), **DESIGN).ranks.tolist() == [1]


@pytest.mark.parametrize("make", [dict, pa.table, pl.DataFrame, pd.DataFrame])
def test_of_wide_frames_only_what_is_needed_is_read(make):
    """An engine would take minutes for all columns."""
    names, values = _wide(50_000)
    start = time.perf_counter()
    frame = make({name: [value] for name, value in zip(names, values, strict=True)})
    assert read_targets(frame, **DESIGN).ranks.tolist() == [1]
    assert time.perf_counter() - start < 5
    with pytest.raises(InputError, match="has no column 'position'; its columns are: x0, x1"):
        read_counts(frame, columns={"rank": "position"}, **DESIGN)


def test_a_text_without_line_ends_is_not_read_to_its_end(tmp_path):
    (tmp_path / "endless.csv").write_text("rank," * (1 << 20))
    with pytest.raises(FileError, match=r"names of the columns .* at most 1,048,576 letters"):
        read_counts(str(tmp_path / "endless.csv"), **DESIGN)
