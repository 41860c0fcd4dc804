"""Exact ranks of factor models on a CUDA device: the kernels against plain products.

    python benchmarks/gpu_ranking.py [users] [items] [dim]

Prints times, ratios, memory, whether ranks equal those of float64 on whole numbers (which every
precision holds exactly, ties and excluded items included), and how rounding moves real ranks.
"""

from __future__ import annotations

import sys

import torch

from unsample.designs import _cuda

SEEN = 100  # excluded items of a user, in the mean
TYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16}


def milliseconds(work, repeats=5):
    work()
    times = []
    for _ in range(repeats):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return sorted(times)[repeats // 2]


def whole(high, shape, low=0):
    return torch.randint(low, high, shape, device="cuda")


def excluded_pairs(users, items):
    """Return where the excluded items of each user begin, and all of them."""
    starts = torch.zeros(users + 1, dtype=torch.int64, device="cuda")
    starts[1:] = whole(2 * SEEN, (users,)).cumsum(0)
    return starts, whole(items, (int(starts[-1]),))


def fused(users, items, targets, launch, pairs=None):
    own = _cuda.own_scores(users, items, targets, launch)
    better, level = _cuda.count_above(users, items, own, launch)
    if pairs is not None:
        fewer = _cuda.count_excluded(users, items, own, *pairs, launch)
        better, level = better - fewer[0], level - fewer[1]
    return better, level


def agrees(users, items, dim, precision):
    """Compare with float64 on small whole numbers, which no precision rounds."""
    left, right = whole(4, (users, dim), -3), whole(4, (items, dim), -3)
    targets = whole(items, (users,))
    scores = left.double() @ right.double().T
    own = scores.gather(1, targets[:, None])
    better, level = (scores > own).sum(1), (scores >= own).sum(1)
    starts, columns = excluded_pairs(users, items)
    row = torch.repeat_interleave(torch.arange(users, device="cuda"), starts.diff())
    better.index_add_(0, row, -(scores[row, columns] > own[row, 0]).long())
    level.index_add_(0, row, -(scores[row, columns] >= own[row, 0]).long())
    kind, launch = TYPES[precision], _cuda.LAUNCHES[precision]
    found = fused(left.to(kind), right.to(kind), targets, launch, (starts, columns))
    return bool((found[0] == better).all() and (found[1] == level).all())


def moved(users, items, precision):
    """Return how ranks differ from those of float64: shares, and the mean of |R'/R - 1|."""
    scores = users.double() @ items.double().T
    places = (torch.rand(len(users), device="cuda") * 9).exp().long().clamp(max=len(items)) - 1
    targets = scores.argsort(dim=1, descending=True).gather(1, places[:, None])[:, 0]
    kind, launch = TYPES[precision], _cuda.LAUNCHES[precision]
    ranks = fused(users.to(kind), items.to(kind), targets, launch)[0].double()
    change = (ranks - places).abs()
    crossed = ((ranks < 10) != (places < 10)).double().mean()
    relative = (change / (places + 1)).mean()
    return (change > 0).double().mean().item(), relative.item(), crossed.item()


def products(u, v, own):
    """Return the milliseconds of the product alone, and of product, comparison and sum."""
    out = torch.empty(min(8192, len(u)), len(v), dtype=u.dtype, device="cuda")
    better = torch.empty(len(u), dtype=torch.int64, device="cuda")

    def compare(scores, at):
        rival = own[at : at + len(scores), None]
        better[at : at + len(scores)] = (scores > rival).sum(1)

    def in_blocks(work):
        for start in range(0, len(u), len(out)):
            part = u[start : start + len(out)]
            torch.mm(part, v.T, out=out[: len(part)])
            work(out[: len(part)], start)

    return [milliseconds(lambda w=work: in_blocks(w), 3) for work in (lambda *_: None, compare)]


def report(precision, left, right, targets, pairs):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    u, v = left.to(TYPES[precision]), right.to(TYPES[precision])
    launch = _cuda.LAUNCHES[precision]
    product, three = products(u, v, _cuda.own_scores(u, v, targets, launch).to(u.dtype))
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    plain = milliseconds(lambda: fused(u, v, targets, launch))
    seen = milliseconds(lambda: fused(u, v, targets, launch, pairs))
    extra = (torch.cuda.max_memory_allocated() - before) / 2**20
    rate = 2e-9 * len(u) * len(v) * u.shape[1] / plain
    print(
        f"{precision}: product {product:.1f} ms, product + compare + sum {three:.1f}; kernel "
        f"{plain:.1f} ({plain / product:.2f} of the product, {three / plain:.1f} times faster "
        f"than the three, {rate:.0f} TFLOP/s), with seen items excluded {seen:.1f} "
        f"({seen / product:.2f}); extra {extra:.1f} MiB",
        flush=True,
    )


def main(users=100_000, items=1_000_000, dim=128):
    if not torch.cuda.is_available() or _cuda.triton is None:
        sys.exit("a CUDA device and Triton are needed, and are not both there")
    if dim not in (16, 32, 64, 128):
        sys.exit(f"dim must be 16, 32, 64 or 128, which the kernels take as it is, got {dim}")
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), users, "users", items, "items", dim, "factors")
    left = torch.randn(users, dim, device="cuda")
    right = torch.randn(items, dim, device="cuda")
    targets, pairs = whole(items, (users,)), excluded_pairs(users, items)
    for precision in TYPES:
        small = [agrees(*size, precision) for size in ((999, 5003, dim), (70, 40, 16))]
        print(f"{precision}: ranks of whole numbers equal float64's: {small}")
        report(precision, left, right, targets, pairs)
        shares = moved(left[:500], right[:200_000], precision)
        print("  ranks moved {:.4f}, by {:.2e} of the rank; across 10: {:.4f}".format(*shares))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
