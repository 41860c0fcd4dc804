"""How quickly a factor model is evaluated adaptively, against gathering and multiplying alone.

    python benchmarks/ranking.py [users] [items] [dim]

Both sides score the same pairs in the same batches with numpy, one after the other in one run.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.sparse import csr_array
from unsample.answers import evaluate
from unsample.designs import Adaptive, FactorScores


class Recorded:
    """Scores of factors that remember which pairs were asked for, or how long they took."""

    def __init__(self, factors: FactorScores) -> None:
        self.factors = factors
        self.pairs: list[tuple[np.ndarray, np.ndarray]] = []
        self.seconds = 0.0

    def __call__(self, users, items):
        start = time.perf_counter()
        scores = self.factors.score(users, items)
        self.seconds += time.perf_counter() - start
        self.pairs.append((users, items.astype(np.int32)))
        return scores


def bare(factors: FactorScores, pairs) -> float:
    """Return the seconds that gathering and multiplying these pairs takes."""
    start = time.perf_counter()
    for users, items in pairs:
        factors.score(users, items)
    return time.perf_counter() - start


def main(users=100_000, items=1_000_000, dim=128):
    rng = np.random.default_rng(0)
    left = rng.standard_normal((users, dim), dtype=np.float32)
    right = rng.standard_normal((items, dim), dtype=np.float32)
    factors = FactorScores(left, right)
    targets = np.arange(users), rng.integers(items, size=users)
    # Targets as good as those of a real model: their own users' direction, more or less of it.
    pull = rng.random(users, dtype=np.float32)[:, None] * 0.5
    right[targets[1]] += pull * left
    seen = rng.integers(items, size=(users, 50))
    matrix = csr_array(
        (np.ones(seen.size, dtype=bool), (np.repeat(np.arange(users), 50), seen.ravel())),
        shape=(users, items),
    )
    matrix[targets] = False
    matrix.eliminate_zeros()
    for name, excluded in (("all items", None), ("seen excluded", matrix)):
        design = Adaptive(start=64, cap=1024)
        options = {"items": items, "design": design, "exclude": excluded, "resamples": 0}
        recorded = Recorded(factors)
        evaluate(recorded, targets, **options)
        # Scored once to find the pairs, then each side alone, three times, the best of each.
        whole, alone = [], []
        for _ in range(3):
            start = time.perf_counter()
            found = evaluate(factors, targets, **options)
            whole.append(time.perf_counter() - start)
            alone.append(bare(factors, recorded.pairs))
        share = min(alone) / min(whole)
        print(
            f"{name}: {found.scored:,} pairs, {found.share:.3%} of a full ranking; "
            f"{found.scored / min(whole):,.0f} pairs/s, gather and dot alone "
            f"{found.scored / min(alone):,.0f}: {share:.0%} of it (median ratio "
            f"{np.median(np.divide(alone, whole)):.0%})",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
