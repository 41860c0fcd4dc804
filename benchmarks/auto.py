"""Whether `design="auto"` is as quick as the quickest exact way, as ratios within one run.

python benchmarks/auto.py [repeats]

Cases: factor models (200,000 items x 500 users; as large as ml-1m; a million items x 200 users),
and functions that take 2 microseconds for each score, or 5 milliseconds for each call. Targets have
ranks spread evenly over the logarithms; 1 % of all pairs are excluded, popular items more often.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import unsample

FACTORS = 64


def world(users: int, items: int) -> tuple[Any, Any, Any]:
    """Return factors, targets and what is excluded."""
    rng = np.random.default_rng(0)
    left = rng.normal(size=(users, FACTORS)).astype(np.float32)
    right = rng.normal(size=(items, FACTORS)).astype(np.float32)
    right[:, 0] += 4.0 * np.log(items / (1.0 + np.arange(items))) / np.log(items)
    left[:, 0] = np.abs(left[:, 0]) + 2.0
    targets = np.empty(users, dtype=np.int64)
    for user in range(users):
        order = np.argsort(-(left[user] @ right.T))
        targets[user] = order[int(items ** rng.random()) - 1]
    each = max(1, items // 100)
    popular = np.minimum((items ** rng.random((users, each))).astype(np.int64), items - 1)
    pairs = np.repeat(np.arange(users), each), popular.reshape(-1)
    seen = csr_array((np.ones(users * each, dtype=bool), pairs), shape=(users, items))
    seen.sum_duplicates()
    rows, columns = seen.nonzero()
    kept = columns != targets[rows]
    seen = csr_array(
        (np.ones(kept.sum(), dtype=bool), (rows[kept], columns[kept])), shape=seen.shape
    )
    return (left, right), (np.arange(users), targets), seen


def slow(factors: Any, each: float, call: float) -> Callable[..., Any]:
    """Return a function that takes so long for each score, and for each call."""
    left, right = factors

    def scores(users: Any, items: Any) -> Any:
        until = time.perf_counter() + call + each * items.size
        found = np.einsum("id,ijd->ij", left[users], right[items])
        while time.perf_counter() < until:
            pass
        return found

    return scores


def timed(scorer: Any, targets: Any, repeats: int, **options: Any) -> tuple[float, Any]:
    """Return the least time of some evaluations, and the last result."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = unsample.evaluate(scorer, targets, metrics="NDCG@10", resamples=0, **options)
        best = min(best, time.perf_counter() - start)
    return best, result


def main(repeats: int) -> None:
    """Print a table."""
    print("| case | exact | certified, random | certified, guided | auto | took | ratio |")
    print("|" + " --- |" * 7, flush=True)
    cases = [
        ("factors, 200,000 x 500", (500, 200_000), None),
        ("factors, 3,706 x 6,040", (6040, 3706), None),
        ("factors, 1,000,000 x 200", (200, 1_000_000), None),
        ("2 us a score, 3,706 x 600", (600, 3706), (2e-6, 0.0)),
        ("2 us a score, 50,000 x 200", (200, 50_000), (2e-6, 0.0)),
        ("5 ms a call, 3,706 x 6,040", (6040, 3706), (0.0, 5e-3)),
    ]
    for name, shape, cost in cases:
        if len(sys.argv) > 2 and not any(part in name for part in sys.argv[2:]):
            continue
        factors, targets, seen = world(*shape)
        scorer = factors if cost is None else slow(factors, *cost)
        options = {"items": shape[1], "exclude": seen}
        random = np.random.default_rng(1).random(shape[1])
        times = [
            timed(scorer, targets, repeats, **options, **way)[0]
            for way in (
                {"design": "exact"},
                {"design": "certified", "guide": random},
                {"design": "certified"},
            )
        ]
        auto, result = timed(scorer, targets, repeats, design="auto", **options)
        cells = [name, *(f"{seconds:.2f} s" for seconds in (*times, auto)), result.design.name]
        print("|", " | ".join([*cells, f"{auto / min(times):.2f}"]), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
