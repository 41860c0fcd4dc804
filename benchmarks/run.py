"""What people wait for, beside references in the same run: ``make bench``.

python benchmarks/run.py [NAME ...]       all, or some; the table goes to ``out/bench.md`` as well
python benchmarks/run.py --tiny [...]     the same with next to no data, to see that it runs
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binom

import unsample
from unsample.counts import RankCounts
from unsample.estimators import MLE
from unsample.likelihood import Observed
from unsample.metrics import parse_all
from unsample.sampling import SamplingModel, draw_sampled_ranks
from unsample.scoring import FactorScores, ItemItemScores, exact_ranks
from unsample.tables import Asked, read_counts

ROOT = Path(__file__).parent.parent
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
TINY = "--tiny" in sys.argv
ITEMS = 100_000


@dataclass(frozen=True)
class Row:
    """What was measured against what, how many times as much it took, and how many it may."""

    what: str
    against: str
    ratio: float
    target: float
    #: Whether the ratio must be at least the target: it is then how many times faster ours is.
    faster: bool = False
    unit: str = ""

    @property
    def reached(self) -> bool:
        return self.ratio >= self.target if self.faster else self.ratio <= self.target

    def __str__(self) -> str:
        figure = f"{self.ratio:.3g}{self.unit or ' times faster' * self.faster}"
        sign = "≥" if self.faster else "≤"
        word = "" if self.reached else " **missed**"
        return f"| {self.what} | {self.against} | {figure} | {sign} {self.target:g}{word} |"


def size(usual: int, tiny: int) -> int:
    return tiny if TINY else usual


def least(work: Callable[[], object], repeats: int = 3, clock=time.perf_counter) -> float:
    """Return the least seconds that some work took."""
    found = []
    for _ in range(1 if TINY else repeats):
        start = clock()
        work()
        found.append(clock() - start)
    return max(min(found), 1e-9)


def in_turns(ours: Callable[[], object], theirs: Callable[[], object], turns: int = 5) -> float:
    """Return the ratio of the least seconds; in turns, so that a busy machine is so for both."""
    pairs = [(least(ours, 1), least(theirs, 1)) for _ in range(1 if TINY else turns)]
    mine, reference = np.min(pairs, axis=0)
    return float(mine / reference)


def sampled_ranks(items: int, sampled: int, users: int, seed: int = 0) -> np.ndarray:
    drawn = np.ceil(items * np.random.default_rng(seed).beta(0.4, 2.5, size=users))
    full = drawn.astype(np.int64).clip(1, items)
    return draw_sampled_ranks(full, items=items, sampled=sampled, rng=seed)


# -- processes of their own -----------------------------------------------------------------------


def cold(*arguments: str) -> float:
    """Return the seconds of a fresh Python."""
    call = [sys.executable, *arguments]
    return least(lambda: subprocess.run(call, check=False, capture_output=True, env=ONE_THREAD), 5)


def bench_start() -> Iterator[Row]:
    base = cold("-c", "import sys")
    numpy = cold("-c", "import numpy")
    light = (cold("-c", "import unsample") - base) / (numpy - base)
    yield Row("`import unsample`", "`import numpy`", light, 1.5)
    example = str(ROOT / "examples" / "ranks.csv")
    named = "-m", "unsample", "estimate", example, "--items", "3706", "--sampled", "99"
    helped = cold("-m", "unsample", "--help") / cold("-c", "import click")
    yield Row("`unsample --help`", "`import click`", helped, 1.5)
    first = cold(*named) / cold("-c", "import numpy, scipy.optimize")
    yield Row("`unsample estimate` of the example", "`import numpy, scipy.optimize`", first, 3.0)


def in_a_process(what: str, *words: object) -> list[float]:
    """Run a function of `CHILDREN` in a process of its own, to see its memory."""
    call = [sys.executable, __file__, *["--tiny"] * TINY, "--child", what, *map(str, words)]
    told = subprocess.run(call, check=True, capture_output=True, text=True, env=ONE_THREAD).stdout
    return [float(one) for one in told.split()]


def held(name: str) -> float:
    """Return what the kernel says of this process's memory; getrusage inherits the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(name))
    return float(line.split()[1]) / 1024


def count_once(path: str, kind: str) -> tuple[float, float]:
    work = COUNTED[kind][0]
    return least(lambda: work(path)), held("VmHWM:")


def query_once(path: str, kind: str) -> tuple[float, float]:
    text = COUNTED[kind][1].format(path=path)
    return least(lambda: duckdb.sql(text).fetchall()), held("VmHWM:")


CHILDREN = {"count": count_once, "query": query_once}


# -- estimates ------------------------------------------------------------------------------------


def dense_em(likelihood: np.ndarray, shares: np.ndarray, iterations: int = 100) -> np.ndarray:
    """EM on all histograms at once, as matrix products."""
    pi = np.full((len(shares), len(likelihood)), 1.0 / len(likelihood))
    for _ in range(iterations):
        pi *= (shares / (pi @ likelihood)) @ likelihood.T
    return pi


def fit_once(items: int) -> float:
    ranks = sampled_ranks(items, 999, 20_000)
    counts = RankCounts.from_ranks(ranks, items=items, sampled=999)
    return least(lambda: MLE().fit(counts), 5)


def bench_mle() -> Iterator[Row]:
    """MLE at the size of the paper's largest data set; then one fit in larger catalogues."""
    items, repeats = size(25_815, 500), size(100, 2)
    drawn = [sampled_ranks(items, 99, size(25_677, 200), seed) - 1 for seed in range(repeats)]
    counted = np.stack([np.bincount(row, minlength=100) for row in drawn])
    ranks = np.arange(items)[:, None]
    likelihood = binom.pmf(np.arange(100), 99, ranks / (items - 1))
    shares = counted / counted.sum(axis=1, keepdims=True)
    counts = RankCounts.from_histogram(counted.sum(axis=0), SamplingModel(items, 99))
    metrics = parse_all([f"{m}@{k}" for m in ("Recall", "NDCG", "AP") for k in (1, 10, 100)])

    def ours() -> np.ndarray:
        batch = counted[:, counts.low - 1].astype(float)
        observed = Observed.prepare(counts, histograms=batch, cutoffs=(1, 10, 100))
        return MLE().evaluate(observed, metrics).values

    theirs = least(lambda: dense_em(likelihood, shares), 1)
    what = f"MLE, {items:,} items, {repeats} repeats at once"
    yield Row(what, "dense EM, all at once", theirs / least(ours), 30, faster=True)
    few, many = (fit_once(10**power) for power in (5, size(9, 6)))
    yield Row("MLE, 10^9 items, n = 1,000", "10^5 items", many / few, 3.0)


def bench_answers() -> Iterator[Row]:
    ranks = sampled_ranks(3706, 99, size(100_000, 300))

    def answer() -> None:
        for entry in unsample.estimate(ranks, items=3706, sampled=99).values():
            entry.interval()
            entry.bounds()

    taken = least(answer, 5, time.process_time)
    what = f"estimate, {len(ranks):,} ranks, intervals and bounds"
    yield Row(what, "", taken, 0.15, unit=" s of processor")
    users, many = size(25_677, 200), size(10, 2)
    models = {f"m{at}": sampled_ranks(26_744, 99, users, at) for at in range(many)}
    work = partial(unsample.compare, models, items=26_744, sampled=99)
    what = f"compare, {many} models of {users:,} users"
    yield Row(what, "", least(work, 1, time.process_time), 2.0, unit=" s of processor")


def bench_cloud() -> Iterator[Row]:
    """Many questions to one set of curves cost little more than one."""
    users, clock = size(6040, 200), time.process_time
    design = {"items": 3706, "sampled": 99, "protocol": "unseen"}
    ranks = sampled_ranks(3706, 99, users)
    usual = ["Recall@10", "NDCG@10", "AP@10"]
    names = [f"{name}@{k}" for k in range(1, 26) for name in ("Recall", "NDCG", "AP", "MRR")]

    def answer(metrics: list[str]) -> unsample.Estimates:
        found = unsample.estimate(ranks, metrics=metrics, **design)
        for entry in found.values():
            entry.interval()
        return found

    one = least(partial(answer, usual), 5, clock)
    yield Row(f"estimate, {users:,} users, 3 metrics", "", one, 0.15, unit=" s of processor")
    ten, hundred = (least(partial(answer, names[:count]), 3, clock) for count in (10, 100))
    yield Row("estimate, a hundred metrics", "ten metrics", hundred / ten, 4.0)
    with tempfile.TemporaryDirectory() as folder:
        page = least(partial(answer(usual).to_html, Path(folder) / "page.html"), 3, clock)
    yield Row("`to_html` of an estimate", "the estimate", page / one, 2.0)
    models = {f"m{at}": sampled_ranks(3706, 99, users, at) for at in range(size(40, 3))}
    several = names[:10]
    both = least(partial(unsample.compare, models, metrics=several, **design), 1, clock)
    each = sum(
        least(partial(unsample.estimate, ranks, metrics=several, **design), 1, clock)
        for ranks in models.values()
    )
    yield Row(f"compare, {len(models)} models, 10 metrics", "their estimates", both / each, 3.0)


# -- counting files -------------------------------------------------------------------------------

#: What is read, by us and in SQL as one would write it by hand; for scores, with the same answer:
#: sampled items that are the target left out, bad users told apart.
COUNTED: dict[str, tuple[Callable[[str], object], str]] = {
    "ranks": (
        lambda path: read_counts(path, Asked(ITEMS, 99)),
        "SELECT rank, count(*) FROM '{path}' GROUP BY rank",
    ),
    "pairs": (
        lambda path: read_counts(path, Asked(ITEMS, 99, by="model"), pair=True),
        """SELECT a.rank, b.rank, count(*) FROM '{path}' AS a JOIN '{path}' AS b USING (user)
        WHERE a.model = 'A' AND b.model = 'B' GROUP BY ALL""",
    ),
    "scores": (
        lambda path: read_counts(path, Asked(ITEMS)),
        """WITH t AS (
            SELECT user, max(score) AS aim, max(item) AS goal, count(*) AS targets
            FROM '{path}' WHERE target GROUP BY user
        ), u AS (
            SELECT s.user, max(targets) AS targets,
                sum(CAST(score > aim AND item <> goal AS INT)) AS better,
                sum(CAST(score = aim AND item <> goal AS INT)) AS tied,
                sum(CAST(item <> goal AS INT)) AS sampled,
                max(CAST(score IS NULL OR isnan(score) OR target IS NULL OR item IS NULL AS INT))
                    AS bad
            FROM '{path}' AS s LEFT JOIN t USING (user) GROUP BY s.user
        ) SELECT sampled, better, tied, targets, bad, count(*) FROM u GROUP BY ALL""",
    ),
}
#: How the files are made, of a running number i.
FILES = {
    "ranks": "CAST(1 + floor(100 * pow((hash(i) % 1000003) / 1000003.0, 2.5)) AS INTEGER) AS rank",
    "pairs": "CAST(i // 2 AS INTEGER) AS user, CASE i % 2 WHEN 0 THEN 'A' ELSE 'B' END AS model, "
    "CAST(1 + hash(i) % 100 AS SMALLINT) AS rank",
    "scores": f"i // 100 AS user, CAST(hash(i) % {ITEMS} AS INTEGER) AS item, "
    "CAST(hash(i + 7) % 1000003 AS FLOAT) AS score, i % 100 = 0 AS target",
}


def bench_counting() -> Iterator[Row]:
    usual = {"ranks": (10**8, 1.5), "pairs": (2 * 10**7, 1.5), "scores": (2 * 10**7, 2.0)}
    with tempfile.TemporaryDirectory() as folder:
        for kind, (rows, target) in usual.items():
            path = Path(folder) / f"{kind}.parquet"
            count = size(rows, 1000)
            duckdb.sql(f"COPY (SELECT {FILES[kind]} FROM range({count}) t(i)) TO '{path}'")
            turns = [
                [in_a_process(who, path, kind) for who in ("count", "query")]
                for _ in range(size(3, 1))
            ]
            (mine, theirs), (peak, _) = np.min(turns, axis=0).T
            what = f"{kind} in Parquet, {count:,} rows"
            yield Row(what, "hand-written SQL in DuckDB", mine / theirs, target)
        yield Row("its peak memory", "", peak, 1500, unit=" MB")


# -- full rankings --------------------------------------------------------------------------------


def bench_exact() -> Iterator[Row]:
    """Exact ranks of factors against the product in blocks, a comparison and a sum."""
    rng = np.random.default_rng(0)
    items, users, rows = size(200_000, 500), size(2_000, 50), 256
    left = rng.standard_normal((users, 64), dtype=np.float32)
    right = rng.standard_normal((items, 64), dtype=np.float32)
    targets = np.arange(users), rng.integers(items, size=users)
    own = np.einsum("ij,ij->i", left, right[targets[1]])

    def plain() -> None:
        for start in range(0, users, rows):
            part = slice(start, start + rows)
            (left[part] @ right.T > own[part, None]).sum(axis=1)

    ours = partial(exact_ranks, FactorScores(left, right), targets, items=items)
    what = f"exact ranks of factors, {users:,} users x {items:,} items"
    yield Row(what, "product, compare, sum", in_turns(ours, plain, 3), 1.0)


def bench_items() -> Iterator[Row]:
    """Exact ranks of item-item models against the bare product of sparse rows and a matrix."""
    rng = np.random.default_rng(0)
    items, users, each = (300, 50, 20) if TINY else (20_000, 8_000, 100)
    probability = 1.0 / np.arange(1, items + 1) ** 0.8
    have = rng.choice(items, size=users * each, p=probability / probability.sum())
    rows = np.repeat(np.arange(users), each)
    history = csr_array((np.ones(len(have), dtype=np.float32), (rows, have)), (users, items))
    history.sum_duplicates()
    weights = rng.standard_normal((items, items), dtype=np.float32)
    targets = np.arange(users), rng.integers(items, size=users)

    def bare() -> None:
        for start in range(0, users, 256):
            history[start : start + 256] @ weights

    ours = partial(exact_ranks, ItemItemScores(history, weights), targets, items=items)
    what = f"exact ranks of item-item weights, {users:,} users x {items:,} items"
    yield Row(what, "sparse-dense product", in_turns(ours, bare, 3), 0.8)


def bench_users() -> Iterator[Row]:
    """Users in parts, as several machines have them, whose evidence is merged."""
    rng, items, taken = np.random.default_rng(0), size(2_000, 100), []
    right = rng.standard_normal((items, 16), dtype=np.float32)
    sizes = size(10**5, 100), size(10**6, 1000)
    for users in sizes:

        def whole(users=users) -> RankCounts:
            parts = []
            for _ in range(10):
                left = rng.standard_normal((users // 10, 16), dtype=np.float32)
                targets = np.arange(len(left)), rng.integers(items, size=len(left))
                found = unsample.evaluate((left, right), targets, items=items, metrics="NDCG@10")
                parts.append(found.counts)
            return RankCounts.merge(parts)

        taken.append(least(whole, 1, time.process_time))
    what = f"{sizes[1]:,} users evaluated in ten parts, merged: {taken[1]:.0f} s of processor"
    yield Row(what, f"{sizes[0]:,} users, times ten", taken[1] / taken[0] / 10.0, 1.2)


BENCHMARKS = {
    name.removeprefix("bench_"): bench
    for name, bench in list(globals().items())
    if name.startswith("bench_")
}


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore", unsample.errors.UnsampleWarning)
    if arguments[:1] == ["--child"]:
        print(*CHILDREN[arguments[1]](*arguments[2:]))
        return
    lines = ["| what | against | ratio | target |", "| --- | --- | --- | --- |"]
    print(*lines, sep="\n", flush=True)
    for chosen in arguments or BENCHMARKS:
        for row in BENCHMARKS[chosen]():
            lines.append(str(row))
            print(row, flush=True)
    Path("out").mkdir(exist_ok=True)
    Path("out/bench.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main([each for each in sys.argv[1:] if each != "--tiny"])
