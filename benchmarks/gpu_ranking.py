"""Exact ranks of factor models on a CUDA device: the fused kernels against plain products.

    python benchmarks/gpu_ranking.py [users] [items] [dim]

Prints whether ranks equal those of float64 on whole numbers (which every precision holds exactly,
ties and excluded items included) and those of the processor, times, and how rounding moves real
ranks; fails where ranks differ. It needs numpy and torch alone. ``--tiny`` runs the same on the
processor, with plain products in the kernels' place, to see that it runs.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from unsample.scoring import Candidates, FactorScores, _cuda, count_all

SEEN = 100  # excluded items of a user, in the mean
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
TINY = "--tiny" in sys.argv
DEVICE = "cpu" if TINY else "cuda"


def milliseconds(work, repeats=5):
    """Return the median time, after a first call that compiles."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        if not TINY:
            torch.cuda.synchronize()
        times.append(1000.0 * (time.perf_counter() - start))
    return sorted(times[1:])[repeats // 2]


def whole(high, shape, low=0):
    return torch.randint(low, high, shape, device=DEVICE)


def excluded_pairs(users, items):
    """Return where the excluded items of each user begin, and all of them."""
    starts = torch.zeros(users + 1, dtype=torch.int64, device=DEVICE)
    starts[1:] = whole(2 * SEEN, (users,)).cumsum(0)
    return starts, whole(items, (int(starts[-1]),))


def plain(users, items, targets, pairs=None):
    """Return how many items score above each target, and how many not below it."""
    scores = users @ items.T
    own = scores.gather(1, targets[:, None])
    better, level = (scores > own).sum(1), (scores >= own).sum(1)
    if pairs is not None:
        starts, columns = pairs
        row = torch.repeat_interleave(torch.arange(len(users), device=DEVICE), starts.diff())
        better.index_add_(0, row, -(scores[row, columns] > own[row, 0]).long())
        level.index_add_(0, row, -(scores[row, columns] >= own[row, 0]).long())
    return better, level


def fused(users, items, targets, precision, pairs=None):
    """Return the same by the kernels."""
    if TINY:
        return plain(users, items, targets, pairs)
    launch = _cuda.LAUNCHES[precision]
    own = _cuda.own_scores(users, items, targets, launch)
    better, level = _cuda.count_above(users, items, own, launch)
    if pairs is not None:
        fewer = _cuda.count_excluded(users, items, own, *pairs, launch)
        better, level = better - fewer[0], level - fewer[1]
    return better, level


def agrees(users, items, dim, precision):
    """Compare with float64 on small whole numbers, which no precision rounds."""
    left, right = whole(4, (users, dim), -3), whole(4, (items, dim), -3)
    targets, pairs = whole(items, (users,)), excluded_pairs(users, items)
    expected = plain(left.double(), right.double(), targets, pairs)
    kind = TYPES[precision]
    found = fused(left.to(kind), right.to(kind), targets, precision, pairs)
    return all(bool((one == two).all()) for one, two in zip(found, expected, strict=True))


def ranks_agree(users, dim, precision, items=700):
    """Return whether full rankings on the device are those of the processor."""
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-2, 3, size=(n, dim)).astype("float32") for n in (users, items))
    factors, targets = FactorScores(left, right), rng.integers(items, size=users)
    candidates = Candidates.check((np.arange(users), targets), items)
    here, there = (
        [np.concatenate(each) for each in list(zip(*count_all(*given), strict=True))[1:3]]
        for given in ((factors, candidates), (factors, candidates, DEVICE, precision))
    )
    return all(map(np.array_equal, here, there))


def moved(users, items, precision):
    """Return how many ranks differ from those of float64, and the mean of |R'/R - 1|."""
    scores = users.double() @ items.double().T
    places = (torch.rand(len(users), device=DEVICE) * 9).exp().long().clamp(max=len(items)) - 1
    targets = scores.argsort(dim=1, descending=True).gather(1, places[:, None])[:, 0]
    kind = TYPES[precision]
    ranks = fused(users.to(kind), items.to(kind), targets, precision)[0].double()
    change = (ranks - places).abs()
    return (change > 0).double().mean().item(), (change / (places + 1)).mean().item()


def product(u, v):
    """Return the milliseconds of the bare product, in blocks of users."""
    out = torch.empty(min(8192, len(u)), len(v), dtype=u.dtype, device=DEVICE)

    def in_blocks():
        for start in range(0, len(u), len(out)):
            part = u[start : start + len(out)]
            torch.mm(part, v.T, out=out[: len(part)])

    return milliseconds(in_blocks, 3)


def main(users=100_000, items=1_000_000, dim=128):
    if not TINY and (not torch.cuda.is_available() or _cuda.triton is None):
        sys.exit("a CUDA device and Triton are needed, and are not both there")
    torch.manual_seed(0)
    print(DEVICE if TINY else torch.cuda.get_device_name(), users, items, dim)
    left = torch.randn(users, dim, device=DEVICE)
    right = torch.randn(items, dim, device=DEVICE)
    targets, pairs = whole(items, (users,)), excluded_pairs(users, items)
    print(
        "| precision | equal | product, ms | kernel, ms | of the product | seen excluded | moved |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for precision, kind in TYPES.items():
        u, v = left.to(kind), right.to(kind)
        bare = product(u, v)
        alone = milliseconds(lambda u=u, v=v, p=precision: fused(u, v, targets, p))
        seen = milliseconds(lambda u=u, v=v, p=precision: fused(u, v, targets, p, pairs))
        equal = all(agrees(*size, precision) for size in ((999, 5003, dim), (70, 40, 16)))
        equal &= all(ranks_agree(*size, precision) for size in ((1, 3), (150, 128), (300, 129)))
        share, size = moved(left[:500], right[:200_000], precision)
        print(
            f"| {precision} | {equal} | {bare:.1f} | {alone:.1f} | {alone / bare:.2f} "
            f"| {seen:.1f} | {share:.1%} of ranks, by {size:.1e} |",
            flush=True,
        )
        if not equal:
            sys.exit(f"{precision} gives other ranks")


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:] if each != "--tiny"))
