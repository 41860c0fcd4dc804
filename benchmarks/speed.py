"""What people wait for, as ratios to references in the same run, and how it grows.

python benchmarks/run.py            runs these with all others
python benchmarks/speed.py --grow FILE.svg   draws how the cost of an estimate grows
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.optimize
from scipy.sparse import csr_array

import unsample
from unsample.answers._estimate import estimate_counts
from unsample.confidence import Resolution
from unsample.confidence._resolution import ladder_of
from unsample.designs import Certified, FactorScores, ItemItemScores, exact_ranks
from unsample.evidence import RankCounts
from unsample.law import Law, draw_sampled_ranks

Report = Callable[[str, str, str, bool], None]
#: Full ranks, the number of items, and how many are sampled.
World = tuple[np.ndarray, int, int]
ROOT = Path(__file__).parent.parent
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def processor_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least processor time: a busy machine does not change it much."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def wall_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def full_ranks(items: int, users: int, seed: int = 0) -> np.ndarray:
    drawn = np.ceil(items * np.random.default_rng(seed).beta(0.4, 2.5, size=users))
    return drawn.astype(np.int64).clip(1, items)


def sampled_ranks(items: int, sampled: int, users: int, seed: int = 0) -> np.ndarray:
    ranks = full_ranks(items, users, seed)
    return draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=seed)


def whole_answer(result: unsample.Estimates) -> None:
    """Ask for all that is printed: values, intervals of both kinds, bounds."""
    for entry in result.values():
        entry.interval()
        entry.interval(kind="guaranteed")
        entry.bounds()


def bench_one(report: Report) -> None:
    """One estimate: processor time, threads, and the search for the resolution."""
    ranks = sampled_ranks(3706, 99, 100_000)

    def work() -> None:
        whole_answer(unsample.estimate(ranks, items=3706, sampled=99))

    taken = processor_seconds(work, 5)
    name = "estimate, 100,000 ranks, 3 metrics, intervals and bounds"
    report(name, f"{taken:.2f} s of processor", "<= 0.15", taken <= 0.15)
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(5):
        work()
    ratio = (time.perf_counter() - start) / (time.process_time() - cpu)
    report("  wall time over processor time", f"{ratio:.2f}", "<= 1.3", ratio <= 1.3)
    result = unsample.estimate(sampled_ranks(26_744, 99, 20_000), items=26_744, sampled=99)
    count = programs_of_resolution(result)
    report("resolution of N = 26,744: linear programs", f"{count}", "<= 5", count <= 5)
    families = {"N from 3,706 to 10^6": even_worlds(), "other": other_worlds()}
    for kind, worlds in {**families, "bundled": bundled_worlds()}.items():
        results = [
            unsample.estimate(
                draw_sampled_ranks(full, items=items, sampled=sampled, rng=0),
                items=items,
                sampled=sampled,
            )
            for full, items, sampled in worlds
        ]
        counts = [programs_of_resolution(result) for result in results]
        single = sum(_is_single(result.resolution(), result) for result in results)
        middle, most = int(np.median(counts)), max(counts)
        name = f"  of {len(counts)} worlds, {kind}: median, most; between neighbouring K"
        report(name, f"{middle}, {most}; {single}", "<= 5", most <= 5)


def even_worlds() -> Iterator[World]:
    """P(R) of three slopes, in three catalogues, by two sample sizes."""
    for items, sampled in product((3_706, 26_744, 10**6), (99, 999)):
        for shape in ((0.2, 3.0), (0.4, 2.5), (0.8, 2.0)):
            full = np.ceil(items * np.random.default_rng(0).beta(*shape, size=20_000))
            yield full.astype(np.int64), items, sampled


def other_worlds() -> Iterator[World]:
    """Catalogues, samples, users and shapes of all sizes, at random."""
    for seed in range(5000, 5060):
        rng = np.random.default_rng(seed)
        items, users = int(10 ** rng.uniform(2.5, 6.5)), int(10 ** rng.uniform(2, 5))
        sampled = int(min(10 ** rng.uniform(1.0, 3.2), items / 3))
        part, slopes = rng.uniform(0.1, 0.6), 10 ** rng.uniform(-1.0, 0.1, 2)
        depth = np.where(
            rng.random(users) < part,
            rng.beta(slopes[0], 2.0, users),
            rng.beta(slopes[1], 3.0, users),
        )
        yield np.ceil(items * depth).astype(np.int64).clip(1, items), items, sampled


def bundled_worlds() -> Iterator[World]:
    """Real ranks, of all users or of some."""
    for number, dataset in enumerate(("ml-1m", "pinterest-20", "citeulike-a", "yelp")):
        for recommender, (sampled, users) in product(
            ("ease", "als", "itemknn"), ((99, 10**6), (20, 1500), (499, 400))
        ):
            held = unsample.lab.load_ranks(dataset, recommender, candidates="all")
            full = np.random.default_rng(number).permutation(held.ranks)[:users]
            yield full, int(np.max(held.items)), sampled


def _is_single(found: Resolution, result: unsample.Estimates) -> bool:
    """Return whether the K below the one found was tried, and is open."""
    if found.k is None:
        return False
    ladder = [0, *ladder_of(result.counts.largest_catalogue).tolist()]
    return ladder.index(found.k) == ladder.index(found.open_k) + 1


def programs_of_resolution(result: unsample.Estimates) -> int:
    """Return how many linear programs the search takes after all else was printed."""
    str(result)
    with mock.patch("scipy.optimize.linprog", wraps=scipy.optimize.linprog) as programs:
        result.resolution()
    # A program that one solver gives up is given to the next.
    calls = programs.mock_calls
    return len({(call.args[0].tobytes(), call.kwargs["A_ub"].tobytes()) for call in calls})


def bench_command(report: Report) -> None:
    """The command against bare imports, in fresh processes."""

    def cold(*arguments: str) -> float:
        call = [sys.executable, *arguments]
        return wall_seconds(
            lambda: subprocess.run(call, check=False, capture_output=True, env=ONE_THREAD), 5
        )

    typer = cold("-c", "import typer")
    help_ = cold("-m", "unsample", "--help") / typer
    report("unsample --help: import typer", f"{help_:.1f} times its time", "<= 2", help_ <= 2)
    wrong = cold("-m", "unsample", "estimate", "nothing.csv") / typer
    report("a missing file: import typer", f"{wrong:.1f} times its time", "<= 2", wrong <= 2)
    example = str(ROOT / "examples" / "ranks.csv")
    named = "-m", "unsample", "estimate", example, "--items", "3706", "--sampled", "99"
    for what, option in (("metric", ("-m", "NDGC@10")), ("method", ("--method", "mel"))):
        wrong = cold(*named, *option) / typer
        name = f"a misspelt {what}: import typer"
        report(name, f"{wrong:.1f} times its time", "<= 2", wrong <= 2)
    base = cold("-c", "import numpy, scipy.optimize")
    first = cold(*named) / base
    name = "unsample estimate of the example: import numpy, scipy.optimize"
    report(name, f"{first:.1f} times its time", "<= 3", first <= 3)


def bench_models(report: Report) -> None:
    """Many models."""
    with tempfile.TemporaryDirectory() as folder:
        files = {count: Path(folder) / f"{count}.csv" for count in (1, 100)}
        for count, path in files.items():
            rows = [
                f"m{model},{rank}\n"
                for model in range(count)
                for rank in sampled_ranks(3706, 99, 2000, model)
            ]
            path.write_text("model,rank\n" + "".join(rows), encoding="utf-8")

        def command(count: int) -> Callable[[], object]:
            call = [sys.executable, "-m", "unsample", "estimate", str(files[count]), "--items"]
            call += ["3706", "--sampled", "99", "--by", "model"]
            return lambda: subprocess.run(call, check=True, capture_output=True, env=ONE_THREAD)

        ratio = wall_seconds(command(100), 1) / wall_seconds(command(1))
    report("estimate --by, 100 models: one model", f"{ratio:.1f} times", "<= 20", ratio <= 20)
    models = {f"m{at}": sampled_ranks(26_744, 99, 25_677, at) for at in range(10)}
    taken = processor_seconds(lambda: unsample.compare(models, items=26_744, sampled=99), 1)
    name = "compare, 10 models, 25,677 users"
    report(name, f"{taken:.1f} s of processor", "<= 3", taken <= 3)


def bench_large(report: Report) -> None:
    """Large samples and large K."""
    ranks = sampled_ranks(10**6, 10**5, 20_000)
    taken = processor_seconds(
        lambda: whole_answer(unsample.estimate(ranks, items=10**6, sampled=10**5)), 1
    )
    report("estimate, n = 10^5, intervals", f"{taken:.1f} s of processor", "<= 6", taken <= 6)
    ranks = sampled_ranks(10**6, 5000, 20_000)
    method = "mle(iterations=converged)"
    taken = processor_seconds(
        lambda: unsample.estimate(ranks, items=10**6, sampled=5000, method=method, resamples=0), 1
    )
    report(f"{method}, n = 5,001", f"{taken:.1f} s of processor", "<= 4", taken <= 4)
    taken = processor_seconds(
        lambda: unsample.plan(items=10**6, users=10**5, metrics="Recall@20000"), 1
    )
    report("plan, N = 10^6, K = 20,000", f"{taken:.1f} s of processor", "<= 5", taken <= 5)


def factors(items: int, users: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    left = rng.standard_normal((users, 64), dtype=np.float32)
    right = rng.standard_normal((items, 64), dtype=np.float32)
    return left, right, rng.integers(items, size=users)


def memory_of_exact(items: int, users: int) -> float:
    """Return the most memory that exact ranks take beyond their factors, in MB."""
    left, right, targets = factors(items, users)

    def held(name: str) -> float:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith(name))
        return float(line.split()[1]) / 1024

    before = held("VmRSS:")
    exact_ranks(FactorScores(left, right), (np.arange(users), targets), items=items)
    return held("VmHWM:") - before


def bench_exact(report: Report) -> None:
    """Exact ranks of factors against the product in blocks, a comparison and a sum; memory."""
    for items, users in ((20_000, 5_000), (200_000, 2_000), (10**6, 1_000)):
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
        report(name, f"{ratio:.2f} of its time", "<= 1 (half: 0.5)", ratio <= 1)
        call = [sys.executable, __file__, "--memory", str(items), str(users)]
        told = subprocess.run(call, check=True, capture_output=True, text=True).stdout
        report(
            "  peak memory beyond the factors", f"{float(told):.0f} MB", "< 200", float(told) < 200
        )


class Timed:
    """Scores of factors, gathered and multiplied pair by pair, and how long that took."""

    def __init__(self, factors: FactorScores) -> None:
        self.factors, self.seconds, self.pairs = factors, 0.0, 0

    def __call__(self, who: np.ndarray, what: np.ndarray) -> np.ndarray:
        start = time.process_time()
        found = self.factors.score(who, what)
        self.seconds += time.process_time() - start
        self.pairs += what.size
        return found


def bench_certified(report: Report) -> None:
    """Certified and guided evaluation of factors against gathering and multiplying alone."""
    rng = np.random.default_rng(0)
    users, items = 5_000, 100_000
    left = rng.standard_normal((users, 64), dtype=np.float32)
    right = rng.standard_normal((items, 64), dtype=np.float32)
    targets = rng.integers(items, size=users)
    right[targets] += rng.random(users, dtype=np.float32)[:, None] * 0.5 * left
    seen = rng.integers(items, size=(users, 50))
    seen = np.where(seen == targets[:, None], (seen + 1) % items, seen)
    rows = np.repeat(np.arange(users), 50)
    matrix = csr_array((np.ones(seen.size, dtype=bool), (rows, seen.reshape(-1))), (users, items))
    strength, factors = rng.random(items), FactorScores(left, right)
    cases: dict[str, dict[str, object]] = {
        "certified, guide given": {"design": Certified(10), "guide": strength},
        "certified, guide learned": {"design": Certified(10)},
        "certified, items excluded": {"design": Certified(10), "exclude": matrix},
        "guided, items excluded": {"design": "guided", "budget": 20 * 10**6, "exclude": matrix},
    }
    for case, options in cases.items():
        given = {"items": items, "metrics": "NDCG@10", "resamples": 0, **options}
        pairs, asked = Timed(factors), (np.arange(users), targets)
        start = time.process_time()
        one_by_one = unsample.evaluate(pairs, asked, **given)
        whole = time.process_time() - start
        start = time.process_time()
        found = unsample.evaluate(factors, asked, **given)
        share = pairs.seconds / (time.process_time() - start)
        assert np.array_equal(found.ranks, one_by_one.ranks)
        assert found.scored == one_by_one.scored == pairs.pairs
        name = f"{case}, {items:,} items x {users:,} users: gather and multiply"
        report(name, f"{share:.2f} of its pairs a second of processor", ">= 0.9", share >= 0.9)
        share = pairs.seconds / whole
        name = "  the same scores as a function of users and items"
        report(name, f"{share:.2f} of its pairs a second of processor", ">= 0.9", share >= 0.9)


def bench_items(report: Report) -> None:
    """Exact ranks of item-item models against the bare product of sparse rows and a matrix."""
    rng = np.random.default_rng(0)
    for items, users, each, kept in (
        (3_706, 6_040, 165, 1.0),
        (20_000, 8_000, 100, 1.0),
        (3_706, 6_040, 165, 0.05),
        (20_000, 8_000, 100, 0.01),
    ):
        chance = 1.0 / np.arange(1, items + 1) ** 0.8
        have = rng.choice(items, size=users * each, p=chance / chance.sum())
        rows = np.repeat(np.arange(users), each)
        history = csr_array((np.ones(len(have), dtype=np.float32), (rows, have)), (users, items))
        history.sum_duplicates()
        dense = rng.standard_normal((items, items), dtype=np.float32)
        weights = dense
        if kept < 1.0:
            dense *= rng.random((items, items), dtype=np.float32) < kept
            weights = csr_array(dense)
        model = ItemItemScores(history, weights)
        targets = np.arange(users), rng.integers(items, size=users)

        def bare(history=history, dense=dense) -> None:
            for start in range(0, history.shape[0], 256):
                history[start : start + 256] @ dense

        def ours(model=model, targets=targets, items=items) -> None:
            exact_ranks(model, targets, items=items)

        # In turn, so that a busy machine is busy for both.
        pairs = [(processor_seconds(ours, 1), processor_seconds(bare, 1)) for _ in range(3)]
        ratio = float(np.median([mine / theirs for mine, theirs in pairs]))
        what = "weights" if kept == 1.0 else f"weights, {kept:.0%} of them not 0"
        name = f"exact ranks, {items:,} items x {users:,} users, item-item {what}: sparse-dense"
        report(name, f"{ratio:.2f} of its processor time", "<= 0.8", ratio <= 0.8)


BENCHMARKS: dict[str, Callable[[Report], None]] = {
    "one": bench_one,
    "command": bench_command,
    "models": bench_models,
    "large": bench_large,
    "exact": bench_exact,
    "certified": bench_certified,
    "items": bench_items,
}


# -- growth --------------------------------------------------------------------------------------


def counted(items: int, sampled: int, users: int) -> RankCounts:
    """Count sampled ranks of so many users, from at most a million that are drawn."""
    drawn = sampled_ranks(items, sampled, min(users, 10**6))
    times = np.bincount(drawn - 1, minlength=sampled + 1) * max(1, users // len(drawn))
    return RankCounts.from_histogram(times, Law(items, sampled))


def growth() -> dict[str, list[tuple[float, float]]]:
    """Return, by what grows, the processor time of an answer from counts."""

    def answer(items: int = 10**5, sampled: int = 99, users: int = 10**5) -> float:
        counts = counted(items, sampled, users)
        return processor_seconds(lambda: whole_answer(estimate_counts(counts, resamples=0)), 2)

    def several(models: int) -> float:
        found = {f"m{at}": sampled_ranks(10**5, 99, 2000, at) for at in range(models)}
        return processor_seconds(lambda: unsample.compare(found, items=10**5, sampled=99), 1)

    return {
        "items N": [(size, answer(items=int(size))) for size in 10.0 ** np.arange(3, 10)],
        "sampled items n": [
            (size, answer(items=10**6, sampled=int(size)))
            for size in (10, 100, 10**3, 10**4, 10**5)
        ],
        "users": [(size, answer(users=int(size))) for size in 10.0 ** np.arange(3, 10)],
        "models compared": [(size, several(size)) for size in (2, 5, 10, 20, 40)],
    }


def draw(path: str) -> None:
    """Draw the growth on logarithmic axes, with exponents."""
    import matplotlib.pyplot as plt

    found = growth()
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), sharey=True, layout="constrained")
    for ax, (name, points) in zip(axes, found.items(), strict=True):
        sizes, times = np.transpose(points)
        power = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        ax.loglog(sizes, times, "o-", color="#12938b")
        ax.set_title(f"{name}: exponent {power:.2f}", fontsize=10)
        ax.set_xlabel(name)
        ax.grid(alpha=0.3)
        print(f"{name:<16} exponent {power:5.2f}  ", " ".join(f"{each:.2f}" for each in times))
    axes[0].set_ylabel("seconds of processor")
    figure.savefig(path, metadata={"Date": None, "Creator": "unsample"})


if __name__ == "__main__":
    warnings.simplefilter("ignore", unsample.errors.UnsampleWarning)
    if sys.argv[1:2] == ["--grow"]:
        draw(sys.argv[2])
    elif sys.argv[1:2] == ["--memory"]:
        print(memory_of_exact(int(sys.argv[2]), int(sys.argv[3])))
    else:
        from run import report as print_row

        for chosen in sys.argv[1:] or BENCHMARKS:
            BENCHMARKS[chosen](print_row)
