"""Load: very many rows, models, calls at once and calls in a row; what they cost and leave behind.

``python benchmarks/load.py`` runs every scenario, ``python benchmarks/load.py NAME...`` some:

``rows``         10^9 ranks counted in parts and added up; 10^9 targets as weighted counts
``doors``        10^6 and 10^7 rows through each kind of file, and standard input: memory a row
``models``       10^4 models in one comparison, in Python and by the command
``concurrent``   1,000 estimates by threads and by processes, against one after the other
``leaks``        thousands of calls of every front door: what a call leaves behind

Each measurement is a process of its own, so that its peak memory is its own. Times that are
compared come from the same run; ``cpu`` is the processors' time, which other load moves less.
UNSAMPLE_MODELS (10000) and UNSAMPLE_CALLS (1000) in the environment make it smaller.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ITEMS, SAMPLED = 25_815, 99
METRICS = ("Recall@10", "NDCG@10", "Recall@100")


def report(name: str, figure: str, target: str = "", reached: bool | None = None) -> None:
    mark = {True: "ok  ", False: "MISS", None: "    "}[reached]
    print(f"{mark} {name:<62} {figure:<40} {target}".rstrip(), flush=True)


def peak() -> float:
    """Return the most memory this process has held, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return float(line.split()[1]) / 1024


def resident() -> float:
    """Return the memory this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def measured(work: str, *arguments: object) -> dict[str, Any]:
    """Return what a child process measured."""
    command = [sys.executable, __file__, "--child", work, *map(str, arguments)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def true_ranks(users: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.ceil(ITEMS * rng.beta(0.4, 2.5, size=users)).astype(np.int64).clip(1, ITEMS)


def drawn_ranks(users: int, seed: int = 0) -> np.ndarray:
    from unsample.law import Law

    return Law(ITEMS, SAMPLED).draw(true_ranks(users, seed), rng=seed)


# -- rows ----------------------------------------------------------------------------------------


def bench_rows() -> None:
    small, large = (measured("count_parts", parts) for parts in (10, 100))
    each = large["cpu"] / 1000
    report("10^9 ranks in 100 parts, added up: a million rows", f"{1000 * each:.2f} ms")
    ratio = large["cpu"] / large["bincount"]
    report("  to numpy.bincount of the same parts, unchecked", f"{ratio:.2f} times, cpu")
    growth = large["peak"] - small["peak"]
    report(
        "  peak memory, 10^8 -> 10^9 rows",
        f"{small['peak']:.0f} -> {large['peak']:.0f} MB",
        "target: flat within 10 MB",
        growth < 10,
    )
    weighted = measured("count_weighted")
    reached = weighted["total"] == 10**9 and weighted["difference"] < 1e-9
    report(
        "10^9 targets as 10^4 weighted rows: estimate",
        f"{weighted['cpu']:.2f} s, {weighted['peak']:.0f} MB",
    )
    report(
        "  largest difference of metrics from 10^6 targets alike",
        f"{weighted['difference']:.1e}",
        "target < 1e-9",
        reached,
    )


def count_parts(parts: str) -> dict[str, float]:
    """Count 10^7 ranks at a time, as the workers of an engine would, and add the parts up."""
    from unsample.evidence import RankCounts

    ranks = drawn_ranks(10**7).astype(np.int16)
    before = time.process_time()
    for _ in range(int(parts)):
        np.bincount(ranks, minlength=SAMPLED + 2)
    bincount = time.process_time() - before
    before = time.process_time()
    whole = RankCounts.from_ranks(ranks, items=ITEMS, sampled=SAMPLED)
    for _ in range(int(parts) - 1):
        whole += RankCounts.from_ranks(ranks, items=ITEMS, sampled=SAMPLED)
    cpu = time.process_time() - before
    assert whole.total == int(parts) * 10**7
    return {"cpu": cpu, "bincount": bincount, "peak": peak()}


def count_weighted() -> dict[str, float]:
    """Estimate from 10^9 targets, and from a thousandth of them: the values must agree."""
    import unsample
    from unsample.evidence import RankCounts

    ranks = drawn_ranks(10**4)
    before = time.process_time()
    counts = [
        RankCounts.from_ranks(
            ranks,
            items=ITEMS,
            sampled=SAMPLED,
            count=np.full(len(ranks), times),
            weights=np.full(len(ranks), 0.5),
        )
        for times in (10**5, 10**2)
    ]
    # By one method whose smoothing does not depend on the number of targets.
    many, few = (unsample.estimate(one, metrics=METRICS, method="mle") for one in counts)
    cpu = time.process_time() - before
    difference = max(abs(many[name].value - few[name].value) for name in METRICS)
    return {"cpu": cpu, "peak": peak(), "total": counts[0].total, "difference": difference}


# -- doors ---------------------------------------------------------------------------------------

#: Columns of the files: ranks alone, a user in each row, or users of five rows.
DOORS = (
    "csv",
    "standard input",
    "targets of a csv",
    "jsonl",
    "npz",
    "parquet",
    "csv with users",
    "csv with users of five rows",
    "targets of a csv with users",
    "targets of a csv with users of five rows",
)
SMALL, LARGE = 10**6, 10**7


def bench_doors() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for door in DOORS:
            few, many = (measured("read_door", door, rows, folder) for rows in (SMALL, LARGE))
            growth = (many["peak"] - few["peak"]) * 2**20 / (LARGE - SMALL)
            most = 1 if door == "parquet" else 64
            report(
                f"rank file of 10^6 and 10^7 rows, {door}",
                f"{growth:.0f} bytes a row, {1e6 * many['cpu'] / LARGE:.2f} us a row",
                f"target <= {most}",
                growth <= most,
            )
            whole = [
                found["taken"] * 2**20 / rows
                for found, rows in zip((few, many), (SMALL, LARGE), strict=True)
            ]
            report(
                "  with what does not depend on the rows",
                "{:.0f} and {:.0f} bytes a row".format(*whole),
            )


def read_door(door: str, rows: str, folder: str) -> dict[str, float]:
    from unsample.tables import read_counts, read_targets

    kind = {"npz": "npz", "jsonl": "jsonl", "parquet": "parquet"}.get(door, "csv")
    each = 5 if "five rows" in door else 1 if "users" in door else 0
    path = write_ranks(Path(folder) / f"{rows}-{each}.{kind}", int(rows), each)
    design = {"items": ITEMS, "sampled": SAMPLED}
    before, start = peak(), time.process_time()
    if door == "standard input":
        with Path(path).open(encoding="utf-8") as sys.stdin:
            found = read_counts("-", **design)[""]
    elif door.startswith("targets"):
        found = read_targets(path, **design)[""].counts
    else:
        found = read_counts(path, **design)[""]
    assert found.total == int(rows)
    cpu, most = time.process_time() - start, peak()
    return {"cpu": cpu, "peak": most, "taken": most - before}


def write_ranks(path: Path, rows: int, each: int) -> str:
    """Write the file in another process, whose memory is not counted here."""
    if not path.exists():
        call = [sys.executable, __file__, "--write", str(path), str(rows), str(each)]
        subprocess.run(call, check=True)
    return str(path)


def write_file(path: Path, rows: int, each: int) -> None:
    """Write ranks, with users of so many rows ``each``, in any order; 0 for none."""
    ranks = np.resize(drawn_ranks(10**6), rows)
    if path.suffix == ".npz":
        np.savez(path, rank=ranks)
    elif path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({"rank": ranks}), path)
    elif each:
        users = np.random.default_rng(0).permutation(rows) // each
        with path.open("w", encoding="utf-8") as file:
            file.write("user,rank\n")
            pairs = zip(users.tolist(), ranks.tolist(), strict=True)
            file.writelines(f"user{user:08d},{rank}\n" for user, rank in pairs)
    else:
        text = '{{"rank": {}}}\n' if path.suffix == ".jsonl" else "{}\n"
        with path.open("w", encoding="utf-8") as file:
            file.write("" if path.suffix == ".jsonl" else "rank\n")
            file.writelines(text.format(rank) for rank in ranks.tolist())


# -- models --------------------------------------------------------------------------------------

METHOD, USERS = "mle(iterations=20)", 1000


def bench_models() -> None:
    many = int(os.environ.get("UNSAMPLE_MODELS", "10000"))
    few = measured("compare_models", many // 10)
    lots = measured("compare_models", many)
    time_ratio = lots["cpu"] / few["cpu"]
    report(
        f"{many:,} models, one metric, against the best",
        f"{lots['cpu']:.0f} s cpu, {1000 * lots['cpu'] / many:.0f} ms a model",
    )
    report(
        f"  to {many // 10:,} models",
        f"{time_ratio:.1f} times, cpu",
        "target <= 12",
        time_ratio <= 12,
    )
    report("  after the estimates: pairs, places, chances", f"{lots['duels']:.1f} s cpu")
    each = (lots["peak"] - few["peak"]) * 1024 / (many - many // 10)
    report("  peak memory", f"{lots['peak']:.0f} MB, {each:.0f} kB a model", "", None)
    for name in ("text", "json", "html"):
        report(f"  as {name}", f"{lots[name + '_cpu']:.2f} s, {lots[name] / 1e6:.2f} MB")
    command = measured("compare_command", many // 10)
    report(
        f"the command on one CSV of {many // 10:,} models x {USERS:,} users",
        f"{command['cpu']:.0f} s cpu, {command['peak']:.0f} MB",
    )


def sweep(models: int) -> dict[str, np.ndarray]:
    """Return ranks of the models of a search for settings: most of them worse than the best."""
    from unsample.law import Law

    rng = np.random.default_rng(0)
    full, design = true_ranks(USERS), Law(ITEMS, SAMPLED)
    stretched = (np.ceil(full * (1 + place / models)).clip(1, ITEMS) for place in range(models))
    return {
        f"run-{place:05d}": design.draw(ranks.astype(np.int64), rng=rng)
        for place, ranks in enumerate(stretched)
    }


def compare_models(models: str) -> dict[str, float]:
    import unsample
    from unsample.answers import _compare

    ranks = sweep(int(models))
    spent = {"estimates": 0.0}

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        found = estimate_counts(*arguments, **options)
        spent["estimates"] += time.process_time() - start
        return found

    estimate_counts, _compare.estimate_counts = _compare.estimate_counts, timed
    before = time.process_time()
    result = unsample.compare(
        ranks, items=ITEMS, sampled=SAMPLED, metrics="Recall@300", method=METHOD, against="best"
    )
    cpu = time.process_time() - before
    assert len(result.differences) == int(models) - 1
    figures = {"cpu": cpu, "duels": cpu - spent["estimates"], "peak": peak()}
    for name, show in (("text", str), ("json", lambda one: one.to_json()), ("html", page)):
        before = time.process_time()
        figures[name] = len(show(result))
        figures[f"{name}_cpu"] = time.process_time() - before
    return figures


def page(result: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return str(result.to_html(Path(folder) / "page.html").read_text(encoding="utf-8"))


def compare_command(models: str) -> dict[str, float]:
    from unsample.__main__ import main

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.csv"
        with path.open("w", encoding="utf-8") as file:
            file.write("run,user,rank\n")
            for name, ranks in sweep(int(models)).items():
                file.writelines(f"{name},{user},{rank}\n" for user, rank in enumerate(ranks))
        design = ["--by", "run", "--items", str(ITEMS), "--sampled", str(SAMPLED), "--quiet"]
        asked = ["-m", "Recall@300", "--method", METHOD, "--against", "run-00000", "--json"]
        sys.argv = ["unsample", "compare", str(path), *design, *asked]
        before = time.process_time()
        with (
            Path(os.devnull).open("w", encoding="utf-8") as nowhere,
            redirect_stdout(nowhere),
            suppress(SystemExit),
        ):
            main()
    return {"cpu": time.process_time() - before, "peak": peak()}


# -- concurrent ----------------------------------------------------------------------------------

CALLS, WORKERS = int(os.environ.get("UNSAMPLE_CALLS", "1000")), 8


def bench_concurrent() -> None:
    found = measured("concurrent")
    serial = found.pop("serial")
    report(
        f"{CALLS:,} estimates one after the other",
        f"{CALLS / serial['seconds']:.1f} a second, {serial['peak']:.0f} MB",
    )
    for name, one in found.items():
        faster = serial["seconds"] / one["seconds"]
        same = "same bits" if one["same"] else "OTHER NUMBERS"
        figure = f"{faster:.2f} times the throughput, {same}"
        report(f"  by {name}", figure, "target: same bits", one["same"])
    report("  memory after all of it", f"{found['8 threads']['resident']:.0f} MB resident")


def one_estimate(seed: int) -> list[float]:
    """Return all that an estimate says, intervals included, for one of 20 sets of ranks."""
    import unsample

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = unsample.estimate(
            drawn_ranks(500, seed % 20),
            items=ITEMS,
            sampled=SAMPLED,
            metrics=METRICS,
            method="mle",
            resamples=20,
            rng=seed,
        )
    return [
        number
        for entry in result.entries
        for number in (entry.value, entry.standard_error, *entry.interval(), *entry.bounds())
    ]


def concurrent() -> dict[str, dict[str, float]]:
    start = time.perf_counter()
    expected = [one_estimate(seed) for seed in range(CALLS)]
    found = {"serial": {"seconds": time.perf_counter() - start, "peak": peak()}}
    pools: dict[str, Callable[[], Executor]] = {
        "8 threads": lambda: ThreadPoolExecutor(WORKERS),
        "2 forked processes": lambda: ProcessPoolExecutor(2, get_context("fork")),
        "2 spawned processes": lambda: ProcessPoolExecutor(2, get_context("spawn")),
    }
    for name, open_pool in pools.items():
        start = time.perf_counter()
        with open_pool() as pool:
            got = list(pool.map(one_estimate, range(CALLS), chunksize=10))
        seconds = time.perf_counter() - start
        found[name] = {"seconds": seconds, "same": got == expected, "resident": resident()}
    return found


# -- leaks ---------------------------------------------------------------------------------------


def bench_leaks() -> None:
    for name, whole in LEAK_CALLS.items():
        calls = max(whole * CALLS // 1000, 10)
        found = measured("leak", name, calls)
        report(
            f"{calls:,} calls of {name}, in the round that left the least",
            f"{found['traced']:+.0f} traced bytes a call",
            "target < 100",
            found["traced"] < 100,
        )
        report(
            "  resident memory, objects known to the collector",
            f"{found['resident']:+.1f} MB, {found['objects']:+.0f} objects",
        )


LEAK_CALLS = {
    "estimate": 2000,
    "exact": 2000,
    "evaluate": 1000,
    "compare": 300,
    "published": 300,
    "audit": 300,
    "plan": 60,
}
LEAK_ROUNDS = 6


def leak_work(name: str) -> Callable[[int], object]:
    import unsample

    ranks = [drawn_ranks(300, seed) for seed in range(3)]
    users, factors = np.random.default_rng(0).normal(size=(2, 60, 4))
    targets = (np.arange(60), np.arange(60))
    design = {"items": ITEMS, "sampled": SAMPLED, "metrics": "Recall@300"}
    work: dict[str, Callable[[int], object]] = {
        "estimate": lambda seed: unsample.estimate(
            ranks[seed % 3], **design, method="mle", resamples=5, rng=seed
        ).to_dict(),
        "compare": lambda seed: unsample.compare(
            {"a": ranks[seed % 3], "b": ranks[(seed + 1) % 3]}, **design, method="mle", rng=seed
        ).to_dict(),
        "published": lambda seed: unsample.published(
            {"HR@1": f"{(90 + seed % 7) / 900:.4f}", "HR@10": "0.5000"}, **{**design, "users": 900}
        ).to_dict(),
        "plan": lambda seed: unsample.plan(items=1000, users=500, repeats=20, rng=seed).to_dict(),
        "evaluate": lambda seed: unsample.evaluate(
            (users, factors), targets, items=60, design="exact", metrics="Recall@10", rng=seed
        ).to_dict(),
        "exact": lambda seed: unsample.exact(
            ranks[seed % 3], items=ITEMS, metrics="Recall@300"
        ).to_dict(),
        "audit": lambda seed: unsample.audit(
            np.random.default_rng(seed).integers(1000, size=(100, 20)), items=1000
        ).to_dict(),
    }
    return work[name]


def leak(name: str, calls: str) -> dict[str, float]:
    """Call a front door over and over; what grows in every round is left behind by its calls.

    Caches of the interpreter and of libraries grow in some rounds, for hundreds of calls.
    """
    work, count = leak_work(name), max(int(calls) // LEAK_ROUNDS, 5)
    warnings.simplefilter("ignore")
    repeat(work, range(10))
    tracemalloc.start()
    found = []
    for _ in range(LEAK_ROUNDS + 1):
        repeat(work, range(count))
        found.append((tracemalloc.get_traced_memory()[0], resident(), len(gc.get_objects())))
    traced, held, objects = np.diff(found, axis=0).min(axis=0)
    return {"traced": traced / count, "resident": held, "objects": objects}


def repeat(work: Callable[[int], object], seeds: Iterable[int]) -> None:
    for seed in seeds:
        work(seed)
    gc.collect()


BENCHMARKS = {
    "rows": bench_rows,
    "doors": bench_doors,
    "models": bench_models,
    "concurrent": bench_concurrent,
    "leaks": bench_leaks,
}
CHILDREN = {
    work.__name__: work
    for work in (
        count_parts,
        count_weighted,
        read_door,
        compare_models,
        compare_command,
        concurrent,
        leak,
    )
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](*sys.argv[3:])))
    elif sys.argv[1:2] == ["--write"]:
        write_file(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        for chosen in sys.argv[1:] or BENCHMARKS:
            BENCHMARKS[chosen]()
