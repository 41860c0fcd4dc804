"""Counting large files: time as a ratio to hand-written DuckDB in the same run, and peak memory.

``python benchmarks/frames.py`` prints the figures of docs/frames.md; it writes about 1 GB of
temporary files (``--tiny``: next to none). Each measurement is a process of its own, so that its
peak memory is its own. What is compared runs in turns, and the best of all turns counts: imports
are left out, and other load on the machine falls on both. ``cpu`` is the ratio of the processors'
time, which load moves less.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ITEMS = 100_000
SAMPLED = 99
TINY = "--tiny" in sys.argv
TURNS, REPEATS = (1, 1) if TINY else (5, 3)


def rows(usual: int) -> int:
    """Return a number of rows; next to none, to see that everything runs."""
    return usual // 10**5 if TINY else usual


# -- what is measured, in a process of its own ---------------------------------------------------


def our_ranks(path: str, engine: str) -> Callable[[], Any]:
    from unsample.tables import read_counts

    return lambda: read_counts(_source(path, engine), items=ITEMS, sampled=SAMPLED)[""]


def our_scores(path: str, engine: str) -> Callable[[], Any]:
    from unsample.tables import read_counts

    return lambda: read_counts(_source(path, engine), items=ITEMS)[""]


def our_pairs(path: str, _: str) -> Callable[[], Any]:
    from unsample.tables import read_counts

    return lambda: read_counts(path, items=ITEMS, sampled=SAMPLED, by="model", pair=True)


def _source(path: str, engine: str) -> Any:
    """Return the file, which DuckDB reads, or a lazy frame of Polars."""
    if engine == "duckdb":
        return path
    import polars as pl

    return pl.scan_parquet(path)


def our_estimate(path: str, engine: str) -> Callable[[], Any]:
    """Return the work after counting."""
    import unsample

    return partial(unsample.estimate, our_ranks(path, engine)())


def duckdb_query(path: str, query: str) -> Callable[[], Any]:
    import duckdb

    text = {"ranks": RANKS, "bare": BARE, "same": SAME, "pairs": PAIRS}[query].format(path=path)
    return lambda: duckdb.sql(text).fetchall()


RANKS = "SELECT rank, count(*) FROM '{path}' GROUP BY rank"
#: The joint histogram of two models' ranks, unchecked.
PAIRS = """
    SELECT a.rank, b.rank, count(*) FROM '{path}' AS a JOIN '{path}' AS b USING (user)
    WHERE a.model = 'A' AND b.model = 'B' GROUP BY ALL
"""
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
WORK = {
    work.__name__: work for work in (our_ranks, our_scores, our_pairs, our_estimate, duckdb_query)
}


def child(work: str, path: str, option: str) -> None:
    task = WORK[work](path, option)
    seconds, cpu = math.inf, math.inf
    for _ in range(REPEATS):
        started, used = time.perf_counter(), time.process_time()
        task()
        seconds = min(seconds, time.perf_counter() - started)
        cpu = min(cpu, time.process_time() - used)
    print(json.dumps([seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


# -- measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """The best time and processors' time in seconds, and the highest peak memory in MB."""

    seconds: float
    cpu: float
    peak: float

    @classmethod
    def of(cls, work: str, path: Path, option: str) -> Cost:
        command = [sys.executable, __file__, "child", work, str(path), option]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            sys.exit(done.stderr)
        return cls(*json.loads(done.stdout.splitlines()[-1]))

    def __or__(self, other: Cost) -> Cost:
        return Cost(
            min(self.seconds, other.seconds),
            min(self.cpu, other.cpu),
            max(self.peak, other.peak),
        )


def in_turns(*tasks: tuple[str, Path, str]) -> list[Cost]:
    costs = [Cost.of(*task) for task in tasks]
    for _ in range(TURNS - 1):
        costs = [cost | Cost.of(*task) for cost, task in zip(costs, tasks, strict=True)]
    return costs


def ratio(ours: Cost, theirs: Cost) -> str:
    return (
        f"{ours.seconds / theirs.seconds:.2f} times ({ours.seconds:.2f} s), "
        f"cpu {ours.cpu / theirs.cpu:.2f}"
    )


def report(name: str, figure: str, target: str = "", reached: bool | None = None) -> None:
    mark = {True: "ok  ", False: "MISS", None: "    "}[reached]
    print(f"{mark} {name:<66} {figure:<34} {target}".rstrip(), flush=True)


# -- data ----------------------------------------------------------------------------------------


def write_ranks(folder: Path, count: int) -> Path:
    path = folder / f"ranks-{count}.parquet"
    rank = "CAST(1 + floor(100 * pow((hash(i) % 1000003) / 1000003.0, 2.5)) AS INTEGER)"
    return write(path, f"SELECT {rank} AS rank FROM range({count}) t(i)")


def write_scores(folder: Path, users: int, each: int) -> Path:
    path = folder / f"scores-{users}-{each}.parquet"
    return write(
        path,
        f"SELECT i // {each} AS user, CAST(hash(i) % {ITEMS} AS INTEGER) AS item, "
        f"CAST(hash(i + 7) % 1000003 AS FLOAT) AS score, i % {each} = 0 AS target "
        f"FROM range({users * each}) t(i)",
    )


def write_models(folder: Path, count: int) -> Path:
    rank = "CAST(1 + hash(i) % 100 AS SMALLINT) AS rank"
    columns = "CAST(i // 2 AS INTEGER) AS user, CASE i % 2 WHEN 0 THEN 'A' ELSE 'B' END AS model"
    query = f"SELECT {columns}, {rank} FROM range({count}) t(i)"
    return write(folder / f"models-{count}.parquet", query)


def write(path: Path, query: str) -> Path:
    import duckdb

    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT {path.suffix[1:]})")
    return path


# -- figures -------------------------------------------------------------------------------------


def bench_ranks(folder: Path) -> None:
    path = write_ranks(folder, rows(10**8))
    theirs, ours, polars = in_turns(
        ("duckdb_query", path, "ranks"),
        ("our_ranks", path, "duckdb"),
        ("our_ranks", path, "polars"),
    )
    report(
        "10^8 ranks, to DuckDB's GROUP BY rank",
        ratio(ours, theirs),
        "target <= 1.5",
        ours.seconds <= 1.5 * theirs.seconds,
    )
    report("10^8 ranks, peak memory", f"{ours.peak:.0f} MB", "target < 1500", ours.peak < 1500)
    report("10^8 ranks, engine polars", ratio(polars, theirs))
    report("10^8 ranks, engine polars, peak memory", f"{polars.peak:.0f} MB")


def bench_pairs(folder: Path) -> None:
    path = write_models(folder, rows(2 * 10**7))
    theirs, ours = in_turns(("duckdb_query", path, "pairs"), ("our_pairs", path, ""))
    name, reached = "2x10^7 ranks of two models, paired", ours.seconds <= 1.5 * theirs.seconds
    report(f"{name}, to a bare join and count", ratio(ours, theirs), "target <= 1.5", reached)
    report(f"{name}, peak memory", f"{ours.peak:.0f} MB", "target < 1000", ours.peak < 1000)


def bench_text(folder: Path) -> None:
    ranks = write_ranks(folder, rows(10**6))
    path = write(folder / "ranks.csv", f"SELECT rank FROM '{ranks}'")
    theirs, ours = in_turns(("duckdb_query", path, "ranks"), ("our_ranks", path, "duckdb"))
    reached = ours.seconds <= 1.5 * theirs.seconds
    report("10^6 ranks in CSV, to GROUP BY rank", ratio(ours, theirs), "target <= 1.5", reached)


def bench_scores(folder: Path) -> None:
    path = write_scores(folder, rows(200_000), 100)
    same, bare, ours, polars = in_turns(
        ("duckdb_query", path, "same"),
        ("duckdb_query", path, "bare"),
        ("our_scores", path, "duckdb"),
        ("our_scores", path, "polars"),
    )
    name = "2x10^7 scores, to a hand-written query"
    reached = ours.seconds <= 2 * same.seconds
    report(f"{name}, same answer", ratio(ours, same), "target <= 2", reached)
    report(f"{name} that ignores items and checks nothing", ratio(ours, bare))
    report("2x10^7 scores, peak memory", f"{ours.peak:.0f} MB")
    report("2x10^7 scores, engine polars, same answer", ratio(polars, same))
    report("2x10^7 scores, engine polars, peak memory", f"{polars.peak:.0f} MB")


def bench_memory(folder: Path) -> None:
    """The same users with five times the rows: what must be remembered is the same."""
    for engine in ("duckdb", "polars"):
        small, large = (
            Cost.of("our_scores", write_scores(folder, max(2, rows(20_000)), each), engine).peak
            for each in (400, 2000)
        )
        report(
            f"peak memory, 20,000 users, 8x10^6 -> 4x10^7 rows, engine {engine}",
            f"{small:.0f} -> {large:.0f} MB",
            "target < 2 times" if engine == "duckdb" else "",
            large < 2 * small if engine == "duckdb" else None,
        )


def bench_growth(folder: Path) -> None:
    sizes = tuple(map(rows, (10**6, 10**7, 10**8)))
    costs = in_turns(*(("our_ranks", write_ranks(folder, one), "duckdb") for one in sizes))
    for low, high in ((0, 1), (1, 2), (0, 2)):
        seconds = [costs[place].seconds for place in (low, high)]
        exponent = math.log(seconds[1] / seconds[0]) / math.log(sizes[high] / sizes[low])
        report(
            f"exponent of time in rows, {sizes[low]:.0e} -> {sizes[high]:.0e}",
            f"{exponent:.2f} ({seconds[0]:.3f} -> {seconds[1]:.3f} s)",
            "target <= 1.1" if (low, high) == (0, 2) else "",
            exponent <= 1.1 if (low, high) == (0, 2) else None,
        )


def bench_estimate(folder: Path) -> None:
    few, many = in_turns(
        *(("our_estimate", write_ranks(folder, rows(one)), "duckdb") for one in (10**6, 10**8))
    )
    report(
        "estimate after counting, of 10^8 rows to 10^6",
        ratio(many, few),
        "target <= 1.5",
        many.seconds <= 1.5 * few.seconds,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for bench in (
            bench_ranks, bench_pairs, bench_text, bench_scores, bench_memory, bench_growth,
            bench_estimate,
        ):  # fmt: skip
            bench(Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:5])
    else:
        main()
