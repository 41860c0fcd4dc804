"""What people wait for, as ratios to references in the same run: ``make bench``.

python benchmarks/run.py [NAME ...]        all, or some; written to ``out/bench.json`` as well
python benchmarks/run.py --grow FILE.svg   draws how the cost of an estimate grows
python benchmarks/run.py --tiny [...]      the same with next to no data, to see that it runs
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binom

import unsample
from unsample.answers._estimate import estimate_counts
from unsample.designs import FactorScores, ItemItemScores, exact_ranks
from unsample.estimators import MES, MLE, Observed
from unsample.evidence import RankCounts
from unsample.law import Law, draw_sampled_ranks
from unsample.metrics import parse_all

ROOT = Path(__file__).parent.parent
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
K_VALUES = (1, 5, 10, 20, 50, 100)
TINY = "--tiny" in sys.argv
ROWS: list[dict[str, object]] = []


def size(usual: int, tiny: int) -> int:
    return tiny if TINY else usual


def least(clock: Callable[[], float], work: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(1 if TINY else repeats):
        start = clock()
        work()
        found.append(clock() - start)
    return min(found)


def wall_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    return least(time.perf_counter, work, repeats)


def processor_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least processor time: a busy machine does not change it much."""
    return least(time.process_time, work, repeats)


def report(name: str, figure: str, target: str, reached: bool) -> None:
    """Print a row: what against what, the figure, and the target; keep it for the file."""
    what, _, against = name.strip().partition(": ")
    row = {"what": what, "against": against, "figure": figure, "target": target}
    ROWS.append({**row, "reached": bool(reached)})
    print(f"{'ok  ' if reached else 'MISS'} {name:<66} {figure:<24} target {target}", flush=True)


def sampled_ranks(items: int, sampled: int, users: int, seed: int = 0) -> np.ndarray:
    drawn = np.ceil(items * np.random.default_rng(seed).beta(0.4, 2.5, size=users))
    full = drawn.astype(np.int64).clip(1, items)
    return draw_sampled_ranks(full, items=items, sampled=sampled, rng=seed)


def histograms(items: int, sampled: int, users: int, repeats: int) -> tuple[Law, np.ndarray]:
    rows = [sampled_ranks(items, sampled, users, seed) - 1 for seed in range(repeats)]
    return Law(items, sampled), np.stack([np.bincount(row, minlength=sampled + 1) for row in rows])


# -- kernels, and what others would write ---------------------------------------------------------


def dense_likelihood(items: int, sampled: int) -> np.ndarray:
    """P(r | R) for every rank of the catalogue (items x n)."""
    ranks = np.arange(items)[:, None]
    return binom.pmf(np.arange(sampled + 1), sampled, ranks / (items - 1))


def dense_em(likelihood: np.ndarray, shares: np.ndarray, iterations: int = 100) -> np.ndarray:
    """EM on all histograms at once, as matrix products."""
    pi = np.full((len(shares), len(likelihood)), 1.0 / len(likelihood))
    for _ in range(iterations):
        pi *= (shares / (pi @ likelihood)) @ likelihood.T
    return pi


def cvxpy_mes(likelihood: np.ndarray, shares: np.ndarray, eta: float) -> np.ndarray:
    """The printed MES problem, solved by Clarabel."""
    import cvxpy as cp

    pi = cp.Variable(len(likelihood), nonneg=True)
    residual = likelihood.T @ pi - shares
    distance = cp.sum(cp.multiply(shares, cp.square(residual)))
    problem = cp.Problem(cp.Maximize(eta * cp.sum(cp.entr(pi)) - distance), [cp.sum(pi) == 1])
    problem.solve(solver=cp.CLARABEL)
    return np.asarray(pi.value)


def mes_objective(pi: np.ndarray, likelihood: np.ndarray, shares: np.ndarray, eta: float) -> float:
    """What MES minimises."""
    distance = np.sum(shares * (pi @ likelihood - shares) ** 2)
    return float(distance + eta * np.sum(pi * np.log(np.maximum(pi, 1e-300))))


def bench_mle() -> None:
    """100 repeats of MLE at the size of the paper's largest data set."""
    items, repeats = size(25_815, 500), size(100, 2)
    design, counted = histograms(items, 99, size(25_677, 200), repeats)
    likelihood = dense_likelihood(items, 99)
    shares = counted / counted.sum(axis=1, keepdims=True)
    metrics = parse_all([f"{m}@{k}" for m in ("Recall", "NDCG", "AP") for k in K_VALUES])
    counts = RankCounts.from_histogram(counted.sum(axis=0), design)
    drawn = counted[:, counts.low - 1].astype(float)

    def ours() -> np.ndarray:
        observed = Observed.prepare(counts, histograms=drawn, cutoffs=K_VALUES)
        return MLE().evaluate(observed, metrics).values

    one_by_one = repeats * wall_seconds(lambda: dense_em(likelihood, shares[:1]), 1)
    together = wall_seconds(lambda: dense_em(likelihood, shares), 1)
    mine = wall_seconds(ours)
    weights = np.stack([m.weights(np.arange(1, items + 1), items) for m in metrics], axis=1)
    error = np.abs(ours() / (dense_em(likelihood, shares) @ weights) - 1).max()
    for how, theirs in (("dense EM", one_by_one), ("dense EM, all repeats at once", together)):
        faster = theirs / mine
        name = f"MLE, N = {items:,}, n = 100, 100 steps x {repeats} repeats: {how}"
        report(name, f"{faster:.0f} times faster", ">= 30", faster >= 30)
    report("  largest relative difference of 18 metrics", f"{error:.1e}", "<= 1e-4", error <= 1e-4)


def bench_mes() -> None:
    """MES against CVXPY with Clarabel."""
    items = size(3706, 200)
    design, counted = histograms(items, 99, size(6040, 200), 1)
    shares, likelihood = counted[0] / counted[0].sum(), dense_likelihood(items, 99)
    counts = RankCounts.from_histogram(counted[0], design)
    found: list[np.ndarray] = []
    theirs = wall_seconds(lambda: found.append(cvxpy_mes(likelihood, shares, 0.001)), 1)
    faster = theirs / wall_seconds(lambda: MES().fit(counts))
    pmf = MES().fit(counts).pmf(np.arange(1, items + 1))
    ours, clarabel = (mes_objective(pi, likelihood, shares, 0.001) for pi in (pmf, found[0]))
    name = f"MES, N = {items:,}, n = 100: CVXPY + Clarabel"
    report(name, f"{faster:.0f} times faster", ">= 100", faster >= 100)
    gap = ours - clarabel
    report("  objective minus Clarabel's", f"{gap:.1e}", "<= 1e-9", gap <= 1e-9)


def bench_scaling() -> None:
    """One MLE fit from 10^5 to 10^9 items, each in a process of its own to see its memory."""
    for sampled in (99, 999)[: size(2, 1)]:
        times, peaks = [], []
        for power in (5, 6, 7, 8, 9)[: size(5, 2)]:
            taken, peak = in_a_process("fit", 10**power, sampled)
            times.append(taken)
            peaks.append(peak)
        growth, spread = max(times) / times[0], " ".join(f"{1000 * t:.0f}" for t in times)
        name = f"MLE fit, n = {sampled + 1}, N = 10^5 .. 10^9 (ms: {spread})"
        report(name, f"time grows {growth:.2f} times", "< 3", growth < 3)
        report("  peak memory", f"{max(peaks):.0f} MB", "< 300", max(peaks) < 300)


def bench_counting() -> None:
    """Counting 10^8 ranks against numpy.bincount."""
    ranks = np.random.default_rng(0).integers(1, 101, size=size(10**8, 1000))
    for dtype in (np.int64, np.int32):
        column = ranks.astype(dtype)
        theirs = wall_seconds(lambda c=column: np.bincount(c, minlength=101))
        mine = wall_seconds(lambda c=column: RankCounts.from_ranks(c, items=10**4, sampled=99))
        name = f"counting {len(ranks):,} ranks of {np.dtype(dtype)}: numpy.bincount"
        report(name, f"{mine / theirs:.2f} of its time", "<= 1.5", mine <= 1.5 * theirs)


# -- processes of their own -----------------------------------------------------------------------


def cold(*arguments: str) -> float:
    """Return the seconds of a fresh Python."""
    call = [sys.executable, *arguments]
    return wall_seconds(
        lambda: subprocess.run(call, check=False, capture_output=True, env=ONE_THREAD), 5
    )


def bench_import() -> None:
    """``import unsample`` against ``import numpy``."""
    base = cold("-c", "import sys")
    ratio = (cold("-c", "import unsample") - base) / (cold("-c", "import numpy") - base)
    report("import unsample: import numpy", f"{ratio:.2f} of its time", "<= 1.5", ratio <= 1.5)


def bench_command() -> None:
    """The command against bare imports."""
    example = str(ROOT / "examples" / "ranks.csv")
    named = "-m", "unsample", "estimate", example, "--items", "3706", "--sampled", "99"
    typer = cold("-c", "import typer")
    for name, call in {
        "unsample --help": ("-m", "unsample", "--help"),
        "a missing file": ("-m", "unsample", "estimate", "nothing.csv"),
        "a misspelt metric": (*named, "-m", "NDGC@10"),
        "a misspelt method": (*named, "--method", "mel"),
    }.items():
        ratio = cold(*call) / typer
        report(f"{name}: import typer", f"{ratio:.1f} times its time", "<= 2", ratio <= 2)
    first = cold(*named) / cold("-c", "import numpy, scipy.optimize")
    name = "unsample estimate of the example: import numpy, scipy.optimize"
    report(name, f"{first:.1f} times its time", "<= 3", first <= 3)


def in_a_process(what: str, *numbers: int) -> list[float]:
    call = [sys.executable, __file__, "--child", what, *map(str, numbers)]
    told = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    return [float(one) for one in told.split()]


def held(name: str) -> float:
    """Return what the kernel says of this process's memory; getrusage inherits the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(name))
    return float(line.split()[1]) / 1024


def fit_once(items: int, sampled: int) -> tuple[float, float]:
    design, counted = histograms(items, sampled, 20_000, 1)
    counts = RankCounts.from_histogram(counted[0], design)
    return wall_seconds(lambda: MLE().fit(counts), 5), held("VmHWM:")


def memory_of_exact(items: int, users: int) -> tuple[float]:
    """Return the most memory that exact ranks take beyond their factors, in MB."""
    left, right, targets = factors(items, users)
    before = held("VmRSS:")
    exact_ranks(FactorScores(left, right), (np.arange(users), targets), items=items)
    return (held("VmHWM:") - before,)


CHILDREN = {"fit": fit_once, "exact": memory_of_exact}


# -- whole answers --------------------------------------------------------------------------------


def whole_answer(result: unsample.Estimates) -> None:
    """Ask for all that is printed: values, intervals, bounds."""
    for entry in result.values():
        entry.interval()
        entry.bounds()


def bench_one() -> None:
    """One estimate: processor time, and wall time beside it."""
    ranks = sampled_ranks(3706, 99, size(100_000, 300))

    def work() -> None:
        whole_answer(unsample.estimate(ranks, items=3706, sampled=99))

    taken = processor_seconds(work, 5)
    name = f"estimate, {len(ranks):,} ranks, 3 metrics, intervals and bounds"
    report(name, f"{taken:.2f} s of processor", "<= 0.15", taken <= 0.15)
    ratio = wall_seconds(work, 5) / taken
    report("  wall time over processor time", f"{ratio:.2f}", "<= 1.3", ratio <= 1.3)


def bench_models() -> None:
    """Many models."""
    many = size(100, 3)
    with tempfile.TemporaryDirectory() as folder:
        taken = {}
        for count in (1, many):
            path = Path(folder) / f"{count}.csv"
            rows = [
                f"m{model},{rank}\n"
                for model in range(count)
                for rank in sampled_ranks(3706, 99, size(2000, 100), model)
            ]
            path.write_text("model,rank\n" + "".join(rows), encoding="utf-8")
            taken[count] = cold(
                *("-m", "unsample", "estimate", str(path), "--items", "3706"),
                *("--sampled", "99", "--by", "model"),
            )
    ratio = taken[many] / taken[1]
    report(f"estimate --by, {many} models: one model", f"{ratio:.1f} times", "<= 20", ratio <= 20)
    users = size(25_677, 200)
    models = {f"m{at}": sampled_ranks(26_744, 99, users, at) for at in range(size(10, 2))}
    taken_by_all = processor_seconds(lambda: unsample.compare(models, items=26_744, sampled=99), 1)
    name = f"compare, {len(models)} models, {users:,} users"
    report(name, f"{taken_by_all:.1f} s of processor", "<= 3", taken_by_all <= 3)


def bench_large() -> None:
    """Large samples."""
    items, many, fewer = size(10**6, 2000), size(10**5, 500), size(999, 100)
    ranks = sampled_ranks(items, many, size(20_000, 200))
    taken = processor_seconds(
        lambda: whole_answer(unsample.estimate(ranks, items=items, sampled=many)), 1
    )
    report(f"estimate, n = {many:,}, intervals", f"{taken:.1f} s of processor", "<= 6", taken <= 6)
    ranks, method = sampled_ranks(items, fewer, size(20_000, 200)), "mle(iterations=converged)"
    taken = processor_seconds(
        lambda: unsample.estimate(ranks, items=items, sampled=fewer, method=method), 1
    )
    report(f"{method}, n = {fewer + 1:,}", f"{taken:.1f} s of processor", "<= 4", taken <= 4)


# -- full rankings --------------------------------------------------------------------------------


def factors(items: int, users: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    left = rng.standard_normal((users, 64), dtype=np.float32)
    right = rng.standard_normal((items, 64), dtype=np.float32)
    return left, right, rng.integers(items, size=users)


def bench_exact() -> None:
    """Exact ranks of factors against the product in blocks, a comparison and a sum; memory."""
    usual = ((20_000, 5_000), (200_000, 2_000), (10**6, 1_000))
    for items, users in ((500, 50),) if TINY else usual:
        left, right, targets = factors(items, users)
        own = np.einsum("ij,ij->i", left, right[targets])
        rows = max(16, min(256, (1 << 26) // items))

        def plain(left=left, right=right, own=own, rows=rows) -> None:
            for start in range(0, len(left), rows):
                part = slice(start, start + rows)
                (left[part] @ right.T > own[part, None]).sum(axis=1)

        def ours(left=left, right=right, targets=targets) -> None:
            users = np.arange(len(left))
            exact_ranks(FactorScores(left, right), (users, targets), items=len(right))

        ratio = wall_seconds(ours) / wall_seconds(plain)
        name = f"exact ranks, {items:,} items x {users:,} users: product, compare, sum"
        report(name, f"{ratio:.2f} of its time", "<= 1", ratio <= 1)
        (peak,) = in_a_process("exact", items, users)
        report("  peak memory beyond the factors", f"{peak:.0f} MB", "< 200", peak < 200)


def bench_items() -> None:
    """Exact ranks of item-item models against the bare product of sparse rows and a matrix."""
    rng = np.random.default_rng(0)
    usual = ((3_706, 6_040, 165), (20_000, 8_000, 100))
    for items, users, each in ((300, 50, 20),) if TINY else usual:
        chance = 1.0 / np.arange(1, items + 1) ** 0.8
        have = rng.choice(items, size=users * each, p=chance / chance.sum())
        rows = np.repeat(np.arange(users), each)
        history = csr_array((np.ones(len(have), dtype=np.float32), (rows, have)), (users, items))
        history.sum_duplicates()
        weights = rng.standard_normal((items, items), dtype=np.float32)
        model = ItemItemScores(history, weights)
        targets = np.arange(users), rng.integers(items, size=users)

        def bare(history=history, weights=weights) -> None:
            for start in range(0, history.shape[0], 256):
                history[start : start + 256] @ weights

        def ours(model=model, targets=targets, items=items) -> None:
            exact_ranks(model, targets, items=items)

        # In turn, so that a busy machine is busy for both.
        pairs = [(processor_seconds(ours, 1), processor_seconds(bare, 1)) for _ in range(3)]
        ratio = float(np.median([mine / max(theirs, 1e-9) for mine, theirs in pairs]))
        name = f"exact ranks, {items:,} items x {users:,} users, item-item weights: sparse-dense"
        report(name, f"{ratio:.2f} of its processor time", "<= 0.8", ratio <= 0.8)


# -- growth ---------------------------------------------------------------------------------------


def growth() -> dict[str, list[tuple[float, float]]]:
    """Return, by what grows, the processor time of an answer from counts."""

    def answer(items: int = 10**5, sampled: int = 99, users: int = 10**5) -> float:
        drawn = sampled_ranks(items, sampled, min(users, 10**6))
        times = np.bincount(drawn - 1, minlength=sampled + 1) * max(1, users // len(drawn))
        counts = RankCounts.from_histogram(times, Law(items, sampled))
        return processor_seconds(lambda: whole_answer(estimate_counts(counts)), 2)

    def several(models: int) -> float:
        found = {f"m{at}": sampled_ranks(10**5, 99, 2000, at) for at in range(models)}
        return processor_seconds(lambda: unsample.compare(found, items=10**5, sampled=99), 1)

    most = size(10, 5)
    return {
        "items N": [(one, answer(items=int(one))) for one in 10.0 ** np.arange(3, most)],
        "sampled items n": [
            (one, answer(items=10**6, sampled=int(one))) for one in 10.0 ** np.arange(1, size(6, 3))
        ],
        "users": [(one, answer(users=int(one))) for one in 10.0 ** np.arange(3, most)],
        "models compared": [(one, several(one)) for one in (2, 5, 10, 20, 40)[: size(5, 2)]],
    }


def draw(path: str) -> None:
    """Draw the growth on logarithmic axes, with exponents."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), sharey=True, layout="constrained")
    for ax, (name, points) in zip(axes, growth().items(), strict=True):
        sizes, times = np.transpose(points)
        power = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        ax.loglog(sizes, times, "o-", color="#12938b")
        ax.set_title(f"{name}: exponent {power:.2f}", fontsize=10)
        ax.set_xlabel(name)
        ax.grid(alpha=0.3)
        print(f"{name:<16} exponent {power:5.2f}  ", " ".join(f"{each:.2f}" for each in times))
    axes[0].set_ylabel("seconds of processor")
    figure.savefig(path, metadata={"Date": None, "Creator": "unsample"})
    plt.close(figure)


BENCHMARKS = {
    name.removeprefix("bench_"): bench
    for name, bench in list(globals().items())
    if name.startswith("bench_")
}


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore", unsample.errors.UnsampleWarning)
    if arguments[:1] == ["--child"]:
        print(*CHILDREN[arguments[1]](*map(int, arguments[2:])))
    elif arguments[:1] == ["--grow"]:
        draw(arguments[1])
    else:
        for chosen in arguments or BENCHMARKS:
            BENCHMARKS[chosen]()
        Path("out").mkdir(exist_ok=True)
        Path("out/bench.json").write_text(json.dumps(ROWS, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main([each for each in sys.argv[1:] if each != "--tiny"])
