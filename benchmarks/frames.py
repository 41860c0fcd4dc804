"""Counting large files: time as a ratio to hand-written DuckDB in the same run, and peak memory.

``python benchmarks/frames.py`` prints the figures of docs/frames.md; it writes about 1 GB of
temporary files. Each measurement is a process of its own, so that its peak memory is its own; the
time is the best of three and leaves out imports.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ITEMS = 100_000
SAMPLED = 99


def our_ranks(path: str, engine: str) -> Any:
    from unsample.rankfiles import read_counts

    return read_counts(path, items=ITEMS, sampled=SAMPLED, engine=engine)


def our_scores(path: str, engine: str) -> Any:
    from unsample.rankfiles import read_counts

    return read_counts(path, items=ITEMS, engine=engine)


def duckdb_ranks(path: str, engine: str) -> Any:
    import duckdb

    return duckdb.sql(f"SELECT rank, count(*) FROM '{path}' GROUP BY rank").fetchall()


#: What an analyst would write: no item is looked at, and nothing is checked.
BARE = """
    WITH t AS (SELECT user, score AS aim FROM '{path}' WHERE target),
    u AS (
        SELECT s.user, count(*) FILTER (score > aim) AS better,
               count(*) FILTER (score = aim) - 1 AS tied, count(*) - 1 AS sampled
        FROM '{path}' AS s JOIN t USING (user) GROUP BY s.user
    )
    SELECT sampled, better, tied, count(*) FROM u GROUP BY ALL
"""
#: The same answer as ours: sampled items that are the target left out, bad users told apart.
SAME = """
    WITH t AS (
        SELECT user, max(score) AS aim, max(item) AS goal, count(*) AS targets
        FROM '{path}' WHERE target GROUP BY user
    ),
    u AS (
        SELECT s.user, max(targets) AS targets,
               sum(CAST(score > aim AND item <> goal AS INT)) AS better,
               sum(CAST(score = aim AND item <> goal AS INT)) AS tied,
               sum(CAST(item <> goal AS INT)) AS sampled,
               max(CAST(score IS NULL OR isnan(score) OR target IS NULL OR item IS NULL AS INT))
                   AS bad
        FROM '{path}' AS s LEFT JOIN t USING (user) GROUP BY s.user
    )
    SELECT sampled, better, tied, targets, bad, count(*) FROM u GROUP BY ALL
"""


def duckdb_scores(path: str, query: str) -> Any:
    import duckdb

    text = {"bare": BARE, "same": SAME}[query]
    return duckdb.sql(text.format(path=path)).fetchall()


WORK: dict[str, Callable[[str, str], Any]] = {
    work.__name__: work for work in (our_ranks, our_scores, duckdb_ranks, duckdb_scores)
}


def measure(work: str, path: Path, option: str = "") -> tuple[float, float]:
    """Return the best time in seconds and the peak memory in MB of a process of its own."""
    command = [sys.executable, __file__, "child", work, str(path), option]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def child(work: str, path: str, option: str) -> None:
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        WORK[work](path, option)
        best = min(best, time.perf_counter() - start)
    print(json.dumps([best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def write_ranks(folder: Path, rows: int) -> Path:
    import duckdb

    path = folder / f"ranks-{rows}.parquet"
    if not path.exists():
        duckdb.sql(
            "SELECT setseed(0.5); COPY (SELECT CAST(ceil(100 * pow(random(), 2.5) + 1e-9) AS "
            f"INTEGER) AS rank FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )
    return path


def write_scores(folder: Path, users: int, each: int) -> Path:
    import duckdb

    path = folder / f"scores-{users}-{each}.parquet"
    if not path.exists():
        duckdb.sql(
            f"COPY (SELECT i // {each} AS user, CAST(hash(i) % {ITEMS} AS INTEGER) AS item, "
            f"CAST(hash(i + 7) % 1000003 AS FLOAT) AS score, i % {each} = 0 AS target "
            f"FROM range({users * each}) t(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


def report(name: str, figure: str, target: str, reached: bool | None) -> None:
    mark = {True: "ok  ", False: "MISS", None: "    "}[reached]
    print(f"{mark} {name:<64} {figure:<34} {target}", flush=True)


def bench_ranks(folder: Path) -> None:
    path = write_ranks(folder, 10**8)
    theirs, _ = measure("duckdb_ranks", path)
    for engine in ("duckdb", "polars"):
        ours, peak = measure("our_ranks", path, engine)
        default = engine == "duckdb"
        report(
            f"10^8 ranks, engine {engine}: DuckDB's GROUP BY rank",
            f"{ours / theirs:.2f} times ({ours:.2f} s)",
            "target <= 1.5" if default else "",
            ours <= 1.5 * theirs if default else None,
        )
        report(
            f"10^8 ranks, engine {engine}: peak memory",
            f"{peak:.0f} MB",
            "target < 1500" if default else "",
            peak < 1500 if default else None,
        )


def bench_scores(folder: Path) -> None:
    path = write_scores(folder, 200_000, 100)
    references = {query: measure("duckdb_scores", path, query)[0] for query in ("same", "bare")}
    names = {"same": "hand-written, same answer", "bare": "hand-written, items not looked at"}
    for engine in ("duckdb", "polars"):
        ours, peak = measure("our_scores", path, engine)
        for query, theirs in references.items():
            counts = engine == "duckdb" and query == "same"
            report(
                f"2x10^7 scores, engine {engine}: {names[query]}",
                f"{ours / theirs:.2f} times ({ours:.2f} s)",
                "target <= 2" if counts else "",
                ours <= 2 * theirs if counts else None,
            )
        report(f"2x10^7 scores, engine {engine}: peak memory", f"{peak:.0f} MB", "", None)


def bench_memory(folder: Path) -> None:
    """The same users with five times the rows: what must be remembered is the same."""
    for engine in ("duckdb", "polars"):
        small, large = (
            measure("our_scores", write_scores(folder, 20_000, each), engine)[1]
            for each in (400, 2000)
        )
        report(
            f"memory, 20,000 users, 8x10^6 -> 4x10^7 rows, engine {engine}",
            f"{small:.0f} -> {large:.0f} MB",
            "target < 2 times" if engine == "duckdb" else "",
            large < 2 * small if engine == "duckdb" else None,
        )


def bench_growth(folder: Path) -> None:
    sizes = (10**6, 10**7, 10**8)
    times = [measure("our_ranks", write_ranks(folder, rows), "duckdb")[0] for rows in sizes]
    for (low, quick), (high, slow) in (
        ((sizes[0], times[0]), (sizes[1], times[1])),
        ((sizes[1], times[1]), (sizes[2], times[2])),
        ((sizes[0], times[0]), (sizes[2], times[2])),
    ):
        exponent = math.log(slow / quick) / math.log(high / low)
        whole = (low, high) == (sizes[0], sizes[2])
        report(
            f"growth with rows, {low:.0e} -> {high:.0e}: exponent",
            f"{exponent:.2f} ({quick:.3f} -> {slow:.3f} s)",
            "target <= 1.1" if whole else "",
            exponent <= 1.1 if whole else None,
        )


def bench_estimate(folder: Path) -> None:
    import warnings

    import unsample

    warnings.simplefilter("ignore")
    times = {}
    for rows in (10**6, 10**8):
        counts = our_ranks(str(write_ranks(folder, rows)), "duckdb")
        best = math.inf
        for _ in range(5):
            start = time.perf_counter()
            unsample.estimate(counts)
            best = min(best, time.perf_counter() - start)
        times[rows] = best
    ratio = times[10**8] / times[10**6]
    report(
        "estimate after counting, 10^8 rows to 10^6",
        f"{ratio:.2f} times ({times[10**8] * 1000:.0f} ms)",
        "target <= 1.5",
        ratio <= 1.5,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for bench in (bench_ranks, bench_scores, bench_memory, bench_growth, bench_estimate):
            bench(Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:5])
    else:
        main()
