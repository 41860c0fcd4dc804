"""Every form that a table can have, and tables with what a slow reading of them counts."""

from __future__ import annotations

import gzip
import io
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from unsample import tables
from unsample.counts import ModelCounts, Negatives, RankCounts, Targets


def grouped(options: dict[str, Any]) -> dict[str, Any]:
    """Put flat options where they belong: how tables are read, and how items were drawn."""
    read = {
        each: options.pop(each) for each in ("columns", "rows", "ties", "rng") if each in options
    }
    drawn = {each: options.pop(each) for each in ("replacement", "shared") if each in options}
    return options | {"read": tables.Read(**read), "negatives": Negatives(**drawn)}


def sql(**options: Any) -> str:
    return tables.sql(**grouped(options))


def _asked(options: dict[str, Any]) -> tables.Asked:
    return tables.Asked(**grouped(options))


def read_counts(source: Any, **options: Any) -> dict[str, RankCounts]:
    return tables.read_counts(source, _asked(options))


def read_models(source: Any, pair: bool = True, **options: Any) -> ModelCounts:
    return tables.read_counts(source, _asked(options), pair=pair)


def read_targets(source: Any, **options: Any) -> Targets:
    return tables.read_targets(source, _asked(options))


# -- forms of a table ----------------------------------------------------------------------------


def as_csv(frame: pl.DataFrame, separator: str = ",") -> bytes:
    """Write NaN as an empty cell, which is what CSV has for it."""
    return frame.fill_nan(None).write_csv(separator=separator).encode()


def _file(name: str, write: Callable[[pl.DataFrame], bytes]) -> Callable[..., Any]:
    def give(frame: pl.DataFrame, folder: Path, _: pytest.MonkeyPatch) -> str:
        (folder / name).write_bytes(write(frame))
        return str(folder / name)

    return give


def _parquet(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _npz(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    np.savez(content, **{name: _array(frame[name]) for name in frame.columns})
    return content.getvalue()


def _array(column: pl.Series) -> np.ndarray:
    if column.dtype == pl.String:
        return np.array([value or "" for value in column])
    return column.to_numpy()


def _standard_input(frame: pl.DataFrame, _: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    stream = SimpleNamespace(buffer=io.BytesIO(as_csv(frame)))
    monkeypatch.setattr(sys, "stdin", stream)
    return "-"


def _to_duckdb(frame: pl.DataFrame, *_: object) -> Any:
    return duckdb.connect().from_arrow(frame.to_arrow())


READERS: dict[str, Callable[..., Any]] = {
    "csv": _file("table.csv", as_csv),
    "tsv": _file("table.tsv", lambda frame: as_csv(frame, "\t")),
    "csv.gz": _file("table.csv.gz", lambda frame: gzip.compress(as_csv(frame), 1)),
    "jsonl": _file("table.jsonl", lambda frame: frame.fill_nan(None).write_ndjson().encode()),
    "npz": _file("table.npz", _npz),
    "parquet": _file("table.parquet", _parquet),
    "standard input": _standard_input,
    "pandas": lambda frame, *_: frame.to_pandas(),
    "polars": lambda frame, *_: frame,
    "polars-lazy": lambda frame, *_: frame.lazy(),
    "pyarrow": lambda frame, *_: frame.to_arrow(),
    "duckdb": _to_duckdb,
    "mapping": lambda frame, *_: {name: _array(frame[name]) for name in frame.columns},
}


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table, how to read it, and its counts as (label, sampled, items, rank) -> targets."""

    frame: pl.DataFrame
    expected: dict[tuple[Any, ...], int]
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, source: Any) -> None:
        assert cells(read_counts(source, **self.options)) == self.expected


def cells(groups: dict[str, RankCounts]) -> dict[tuple[Any, ...], int]:
    return {
        (label, *map(int, cell)): int(count)
        for label, counts in groups.items()
        for *cell, count in zip(counts.sampled, counts.items, counts.low, counts.count, strict=True)
    }


DESIGN = {"items": 50, "sampled": 9}


def cases() -> dict[str, Case]:
    ranks = np.random.default_rng(0).integers(1, 11, 300)
    counted = {("", 9, 50, int(rank)): n for rank, n in Counter(ranks.tolist()).items()}
    return {
        "ranks": Case(pl.DataFrame({"rank": ranks}), counted, DESIGN),
        "whole ranks written as floats": Case(
            pl.DataFrame({"position": [1.0, 2.0, 2.0], "rank": [0, 0, 0]}),
            {("", 9, 50, 1): 1, ("", 9, 50, 2): 2},
            DESIGN | {"columns": {"rank": "position"}},
        ),
        "ranks of several models": Case(
            pl.DataFrame({"model": list("BABAA"), "rank": [1, 1, 5, 2, 2]}),
            {("A", 9, 50, 1): 1, ("A", 9, 50, 2): 2, ("B", 9, 50, 1): 1, ("B", 9, 50, 5): 1},
            DESIGN | {"by": "model"},
        ),
        "designs by row": Case(
            pl.DataFrame({"rank": [1, 20, 2, 1], "sampled": [9, 19, 9, 9], "items": [50] * 4}),
            {("", 9, 50, 1): 2, ("", 19, 50, 20): 1, ("", 9, 50, 2): 1},
        ),
        "names like ours, flags as numbers": Case(
            pl.DataFrame({"label": list("aabb"), "score": [1.0, 2, 3, 4], "target": [1, 0, 1, 0]}),
            {("", 1, 50, 2): 2},
            {"items": 50, "columns": {"user": "label"}},
        ),
        "catalogues that differ": Case(
            pl.DataFrame(
                {
                    "user": [1, 1, 2, 2],
                    "score": [1, 2, 3, 0],
                    "target": [1, 0] * 2,
                    "items": [40, 40, 50, 50],
                }
            ),
            {("", 1, 40, 2): 1, ("", 1, 50, 1): 1},
        ),
        "scores": _scores("pessimistic", seed=1),
        "scores without items": _scores("optimistic", seed=2, with_items=False),
        "scores of several models, ties at random": _random_ties(),
    }


def scored_rows(seed: int, models: tuple[str, ...] = ("A",)) -> pl.DataFrame:
    """Make scores with many ties, samples of several sizes, and targets drawn as negatives."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for user in range(60):
            target = int(rng.integers(0, 30))
            others = rng.integers(0, 30, size=int(rng.integers(3, 8))).tolist()
            others.append((target + 1) % 30)  # one at least is not the target
            rows += [
                {"model": model, "user": f"u{user}", "item": item, "target": place == 0}
                for place, item in enumerate([target, *others])
            ]
    scores = rng.integers(-2, 3, len(rows)) / 2
    frame = pl.DataFrame(rows).with_columns(score=pl.Series(scores))
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)


def compare_slowly(frame: pl.DataFrame, *, with_items: bool = True) -> list[tuple[Any, ...]]:
    """Return (model, user, sampled, better, tied) of each user, by nothing but loops."""
    users: dict[Any, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        users.setdefault((row["model"], row["user"]), []).append(row)
    compared = []
    for (model, user), rows in users.items():
        (target,) = [row for row in rows if row["target"]]
        others = [row for row in rows if not row["target"]]
        if with_items:
            others = [row for row in others if row["item"] != target["item"]]
        better = sum(row["score"] > target["score"] for row in others)
        tied = sum(row["score"] == target["score"] for row in others)
        compared.append((model, user, len(others), better, tied))
    return compared


def _scores(ties: str, seed: int, *, with_items: bool = True) -> Case:
    frame = scored_rows(seed)
    lost = 1 if ties == "pessimistic" else 0
    expected = Counter(
        ("", sampled, 50, 1 + better + lost * tied)
        for _, _, sampled, better, tied in compare_slowly(frame, with_items=with_items)
    )
    kept = frame if with_items else frame.drop("item")
    return Case(kept, dict(expected), {"items": 50, "ties": ties})


def _random_ties() -> Case:
    """Under the random rule the same seed gives the same counts, whatever the reader."""
    frame = scored_rows(3, ("A", "B"))
    options = {"items": 50, "ties": "random", "rng": 7, "by": "model"}
    return Case(frame, cells(read_counts(frame.sort("user", "item"), **options)), options)


# -- names that would be something else in a query -----------------------------------------------

_RUNS_JAVA = 'java_method("java.lang.System", "setProperty", "pwn", "yes") IS NOT NULL'
#: Names of models, runs, data sets, users, items and columns: honest ones, and what ends a text
#: or a name in some engine, to go on as a part of its query.
HOSTILE = (
    f"\\' OR {_RUNS_JAVA}) AS t GROUP BY ALL -- ", f"' OR {_RUNS_JAVA} OR '1' = '1",
    "C:\\new", "\\", "it's", "`x`", "${env:HOME}", "'; DROP TABLE ranks; --", ":value_0", "\\`",
    "\\\"", "'", "say \"hi\"", "a\nb", "$value_0", "getvariable('value_0')", "naïve ☃", "/* x",
    "-- x", "$1", "?", "%", "_", "{0}", "%s", "NULL",
)  # fmt: skip


def hostile_rows(names: Sequence[str], *, by: str = "model") -> pl.DataFrame:
    """Make ranks by which each name is known: the first name has rank 1, the next rank 2, ..."""
    rows = [
        {by: name, "user": user, "rank": 1 + place}
        for place, name in enumerate(names)
        for user in HOSTILE
    ]
    return pl.DataFrame(rows)


def check_hostile_models(give: Callable[[pl.DataFrame], Any]) -> None:
    """Models, few and many, are told apart whatever they and their users are called."""
    # Up to 8 models are counted side by side.
    for names in (HOSTILE[:7], HOSTILE[7:14], HOSTILE):
        found = read_models(give(hostile_rows(names)), by="model", items=500, sampled=99)
        expected = {(name, 99, 500, 1 + at): len(HOSTILE) for at, name in enumerate(names)}
        assert cells(dict(found)) == expected
        assert {pair: each.users for pair, each in found.between.items()} == {
            (a, b): len(HOSTILE) for a in names for b in names if a < b
        }


def check_hostile_data_sets(give: Callable[[pl.DataFrame], Any], names: Sequence[str]) -> None:
    """Data sets are told apart whatever they, their models, runs and users are called."""
    model, runs = "\\' -- x", ("'", "\\")
    frame = hostile_rows(names, by="set").with_columns(model=pl.lit(model))
    rows = pl.concat([frame.with_columns(run=pl.lit(run)) for run in runs])
    asked = tables.Asked(500, 99, by="model", runs=True)
    found = tables.read_data_sets(give(rows), asked, across="set")
    assert {name: cells(dict(each)) for name, each in found.items()} == {
        name: {(f"{model} / run {run}", 99, 500, 1 + at): len(HOSTILE) for run in runs}
        for at, name in enumerate(names)
    }
