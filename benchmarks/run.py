"""Speed and memory as ratios to reference implementations in the same run: ``make bench``.

``python benchmarks/run.py NAME...`` runs some of them. What is printed is written to
``out/bench.json`` as well. People's own waiting (`speed.py`) comes after the kernels.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from references import (
    cvxpy_mes,
    dense_em,
    dense_em_batched,
    dense_likelihood,
    mes_objective,
)

import unsample
from unsample.designs import Candidates, FactorScores, Fixed, Scorer, exact_ranks, run
from unsample.estimators import MES, MLE, Observed
from unsample.evidence import RankCounts
from unsample.law import Law
from unsample.metrics import parse_all

K_VALUES = (1, 5, 10, 20, 50, 100)


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


ROWS: list[dict[str, object]] = []


def report(name: str, figure: str, target: str, reached: bool) -> None:
    """Print a row: what against what, the figure, and the target; keep it for the file."""
    what, _, against = name.strip().partition(": ")
    row = {"what": what, "against": against, "figure": figure, "target": target}
    ROWS.append({**row, "reached": bool(reached)})
    print(f"{'ok  ' if reached else 'MISS'} {name:<66} {figure:<24} target {target}", flush=True)


def histograms(items: int, sampled: int, users: int, repeats: int) -> tuple[Law, np.ndarray]:
    rng = np.random.default_rng(0)
    design = Law(items, sampled)
    ranks = np.ceil(items * rng.beta(0.4, 2.5, size=users)).astype(np.int64).clip(1, items)
    drawn = design.draw(ranks, rng=rng, size=(repeats,))
    return design, np.stack([np.bincount(row - 1, minlength=sampled + 1) for row in drawn])


def bench_mle() -> None:
    """100 repeats of MLE at the size of the paper's largest data set."""
    design, counted = histograms(25_815, 99, 25_677, 100)
    likelihood = dense_likelihood(25_815, 99)
    shares = counted / counted.sum(axis=1, keepdims=True)
    metrics = parse_all([f"{m}@{k}" for m in ("Recall", "NDCG", "AP") for k in K_VALUES])
    counts = RankCounts.from_histogram(counted.sum(axis=0), design)
    drawn = counted[:, counts.low - 1].astype(float)

    def ours() -> np.ndarray:
        observed = Observed.prepare(counts, resampled=drawn, cutoffs=K_VALUES)
        return MLE().evaluate(observed, metrics).values[1:]

    one_by_one = seconds(lambda: [dense_em(likelihood, row) for row in shares[:5]], 1) * 20
    batched = seconds(lambda: dense_em_batched(likelihood, shares), 1)
    mine = seconds(ours)
    dense = dense_em_batched(likelihood, shares)
    weights = np.stack([m.weights(np.arange(1, 25_816), 25_815) for m in metrics], axis=1)
    error = np.abs(ours() / (dense @ weights) - 1).max()
    name = "MLE, N = 25,815, n = 100, 100 steps x 100 repeats"
    report(
        name + ": dense EM",
        f"{one_by_one / mine:.0f} times faster",
        ">= 30",
        one_by_one >= 30 * mine,
    )
    report(name + ": batched", f"{batched / mine:.0f} times faster", ">= 30", batched >= 30 * mine)
    report("  largest relative difference of 18 metrics", f"{error:.1e}", "<= 1e-4", error <= 1e-4)


def bench_mes() -> None:
    """MES against CVXPY with Clarabel."""
    design, counted = histograms(3706, 99, 6040, 1)
    shares = counted[0] / counted[0].sum()
    likelihood = dense_likelihood(3706, 99)
    counts = RankCounts.from_histogram(counted[0], design)
    theirs = seconds(lambda: cvxpy_mes(likelihood, shares, 0.001), 1)
    their_objective = mes_objective(cvxpy_mes(likelihood, shares, 0.001), likelihood, shares, 0.001)
    mine = seconds(lambda: MES().fit(counts))
    pmf = MES().fit(counts).pmf(np.arange(1, 3707))
    gap = mes_objective(pmf, likelihood, shares, 0.001) - their_objective
    faster = theirs / mine
    report(
        "MES, N = 3,706, n = 100: CVXPY + Clarabel",
        f"{faster:.0f} times faster",
        ">= 100",
        faster >= 100,
    )
    report("  objective minus Clarabel's", f"{gap:.1e}", "<= 1e-9", gap <= 1e-9)


def bench_scaling() -> None:
    """One MLE fit from 10^5 to 10^9 items, each in a process of its own to see its memory."""
    for sampled in (99, 999):
        times, peaks = {}, {}
        for power in (5, 6, 7, 8, 9):
            command = [sys.executable, __file__, "--one-fit", str(10**power), str(sampled)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            times[power], peaks[power] = map(float, out.split())
        growth = max(times.values()) / times[5]
        spread = " ".join(f"{1000 * t:.0f}" for t in times.values())
        name = f"MLE fit, n = {sampled + 1}, N = 10^5 .. 10^9 (ms: {spread})"
        report(name, f"time grows {growth:.2f} times", "< 3", growth < 3)
        report("  peak memory", f"{max(peaks.values()):.0f} MB", "< 300", max(peaks.values()) < 300)


def one_fit(items: int, sampled: int) -> None:
    design, counted = histograms(items, sampled, 20_000, 1)
    counts = RankCounts.from_histogram(counted[0], design)
    fit = seconds(lambda: MLE().fit(counts), 5)
    # The kernel's high-water mark of this process; getrusage would inherit the parent's.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    print(fit, float(peak.split()[1]) / 1024)


def bench_counting() -> None:
    """Counting 10^8 ranks against numpy.bincount."""
    ranks = np.random.default_rng(0).integers(1, 101, size=10**8)
    for dtype in (np.int64, np.int32):
        column = ranks.astype(dtype)
        theirs = seconds(lambda c=column: np.bincount(c, minlength=101))
        mine = seconds(lambda c=column: RankCounts.from_ranks(c, items=10**4, sampled=99))
        name = f"counting 10^8 ranks of {np.dtype(dtype)}: numpy.bincount"
        report(name, f"{mine / theirs:.2f} of its time", "<= 1.5", mine <= 1.5 * theirs)


def bench_estimate() -> None:
    """The whole of `estimate` with its bootstrap, for scale (no reference)."""
    rng = np.random.default_rng(0)
    full = np.ceil(25_815 * rng.beta(0.4, 2.5, size=25_677)).astype(int)
    ranks = Law(25_815, 99).draw(full, rng=1)
    metrics = [f"{m}@{k}" for m in ("Recall", "NDCG", "AP") for k in K_VALUES]
    for method in unsample.estimators.REGISTRY:
        wanted = [m for m in parse_all(metrics) if unsample.estimators.parse(method).supports(m)]
        taken = seconds(
            lambda m=method, w=wanted: unsample.estimate(
                ranks, items=25_815, sampled=99, metrics=w, method=m, resamples=200
            ),
            1,
        )
        print(f"     estimate, 200 resamples, {len(wanted)} metrics, {method:<12} {taken:6.2f} s")


def bench_ranking() -> None:
    """Ranks of the users and items of ml-1m, from factors and from a score matrix."""
    rng = np.random.default_rng(0)
    users, items = np.arange(6040), 3706
    left = rng.standard_normal((6040, 128), dtype=np.float32)
    right = rng.standard_normal((items, 128), dtype=np.float32)
    targets = rng.integers(0, items, size=6040)
    scores = left @ right.T
    drawn = rng.integers(0, items, size=(6040, 99))

    product = seconds(lambda: (left @ right.T > 0.0).sum(axis=1), 7)
    exact = seconds(
        lambda: exact_ranks(FactorScores(left, right), (users, targets), items=items), 7
    )
    name = "exact ranks of ml-1m's size: product and one pass"
    report(name, f"{exact / product:.2f} of its time", "<= 1.3", exact <= 1.3 * product)
    gather = seconds(lambda: scores[users[:, None], drawn], 7)
    candidates = Candidates.check((users, targets), items)

    def draw() -> None:
        """Draw 99 items for every target, in its own order, and compare."""
        run(Fixed(99), Scorer(lambda some, wanted: scores[some[:, None], wanted]), candidates)

    once = seconds(draw)
    name = "99 items drawn and compared for each target: the gather of their scores"
    report(name, f"{once / gather:.1f} times its cost", "< 10", once < 10 * gather)


def bench_intervals() -> None:
    """An estimate with 1,000 resamples, intervals and bounds of 15 metrics, in seconds."""
    rng = np.random.default_rng(0)
    ranks = np.ceil(25_815 * rng.beta(0.4, 2.5, size=25_677)).astype(np.int64).clip(1, 25_815)
    drawn = Law(25_815, 99).draw(ranks, rng=rng)
    metrics = [f"{name}@{k}" for name in ("Recall", "NDCG", "AP") for k in (5, 10, 20, 50, 100)]
    for method in ("mle", "auto"):

        def work(method: str = method) -> None:
            result = unsample.estimate(
                drawn, items=25_815, sampled=99, metrics=metrics, method=method, resamples=1000
            )
            result.to_dict()

        taken = seconds(work)
        name = f"{method}, 1,000 resamples, intervals and bounds of 15 metrics"
        report(name, f"{taken:.2f} s", "<= 2 s on 2 cores", taken <= 2.0)


def bench_import() -> None:
    """``import unsample`` against ``import numpy``, in fresh processes."""

    def cold(module: str) -> float:
        command = [sys.executable, "-c", f"import {module}"]
        return seconds(lambda: subprocess.run(command, check=True), 7)

    base = cold("sys")
    ratio = (cold("unsample") - base) / (cold("numpy") - base)
    report("import unsample: import numpy", f"{ratio:.2f} of its time", "<= 1.5", ratio <= 1.5)


BENCHMARKS = {
    "import": bench_import,
    "counting": bench_counting,
    "mle": bench_mle,
    "mes": bench_mes,
    "scaling": bench_scaling,
    "estimate": bench_estimate,
    "intervals": bench_intervals,
    "ranking": bench_ranking,
}

if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", unsample.errors.UnsampleWarning)
    if sys.argv[1:2] == ["--one-fit"]:
        one_fit(int(sys.argv[2]), int(sys.argv[3]))
    else:
        import json

        import speed

        waiting = {name: partial(bench, report) for name, bench in speed.BENCHMARKS.items()}
        for chosen in sys.argv[1:] or (*BENCHMARKS, *waiting):
            (BENCHMARKS | waiting)[chosen]()
        out = Path(__file__).parent.parent / "out"
        out.mkdir(exist_ok=True)
        (out / "bench.json").write_text(json.dumps(ROWS, indent=2) + "\n", encoding="utf-8")
