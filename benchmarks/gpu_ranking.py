"""Exact ranks of factor models on a CUDA device: the fused kernels against plain products.

    python benchmarks/gpu_ranking.py [users] [items] [dim]

Prints times, ratios, memory, whether ranks equal those of float64 on whole numbers (which every
precision holds exactly, ties and excluded items included), and how rounding moves real ranks.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import torch

from unsample.designs import _fused

SEEN = 100  # excluded items of a user, in the mean
generator = torch.Generator(device="cuda").manual_seed(0)
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
    return torch.randint(low, high, shape, device="cuda", generator=generator)


def excluded_pairs(users, items):
    lengths = whole(2 * SEEN, (users,))
    starts = torch.zeros(users + 1, dtype=torch.int64, device="cuda")
    starts[1:] = lengths.cumsum(0)
    return lengths, starts, whole(items, (int(starts[-1]),))


def fused(users, items, targets, launch, pairs=None, ties=True):
    own = _fused.own_scores(users, items, targets, launch=launch)
    better, level = _fused.count_above(users, items, own, ties=ties, launch=launch)
    if pairs is not None:
        fewer = _fused.count_excluded(users, items, own, *pairs, launch=launch)
        better, level = better - fewer[0], level - fewer[1]
    return better, level


def agrees(users, items, dim, precision):
    """Compare with float64 on small whole numbers, which no precision rounds."""
    left, right = whole(4, (users, dim), -3), whole(4, (items, dim), -3)
    targets = whole(items, (users,))
    scores = left.double() @ right.double().T
    own = scores.gather(1, targets[:, None])
    better, level = (scores > own).sum(1), (scores >= own).sum(1)
    lengths, starts, columns = excluded_pairs(users, items)
    row = torch.repeat_interleave(torch.arange(users, device="cuda"), lengths)
    better.index_add_(0, row, -(scores[row, columns] > own[row, 0]).long())
    level.index_add_(0, row, -(scores[row, columns] >= own[row, 0]).long())
    kind, launch = TYPES[precision], _fused.LAUNCHES[precision]
    found = fused(left.to(kind), right.to(kind), targets, launch, (starts, columns))
    return bool((found[0] == better).all() and (found[1] == level).all())


def moved(users, items, precision):
    """Return how ranks differ from those of float64: shares, and the mean of |R'/R - 1|."""
    scores = users.double() @ items.double().T
    places = (torch.rand(len(users), device="cuda", generator=generator) * 9).exp().long() - 1
    targets = scores.argsort(dim=1, descending=True).gather(1, places[:, None])[:, 0]
    kind, launch = TYPES[precision], _fused.LAUNCHES[precision]
    ranks = fused(users.to(kind), items.to(kind), targets, launch, ties=False)[0].double()
    change = (ranks - places).abs()
    crossed = ((ranks < 10) != (places < 10)).double().mean()
    relative = (change / (places + 1)).mean()
    return (change > 0).double().mean().item(), relative.item(), crossed.item()


def in_chunks(left, right, out, work):
    for start in range(0, len(left), len(out)):
        part = left[start : start + len(out)]
        torch.mm(part, right.T, out=out[: len(part)])
        work(out[: len(part)], start)


def main(users=100_000, items=1_000_000, dim=128):
    print(torch.cuda.get_device_name(), users, "users", items, "items", dim, "factors")
    for precision in TYPES:
        small = [agrees(*size, precision) for size in ((999, 5003, dim), (70, 40, 16))]
        print(f"{precision}: ranks of whole numbers equal float64's: {small}")
    left = torch.randn(users, dim, device="cuda", generator=generator)
    right = torch.randn(items, dim, device="cuda", generator=generator)
    targets = whole(items, (users,))
    pairs = excluded_pairs(users, items)[1:]
    for precision in TYPES:
        report(precision, left, right, targets, pairs)
        shares = moved(left[:500], right[:200_000], precision)
        print("  ranks moved {:.4f}, by {:.2e} of the rank; across 10: {:.4f}".format(*shares))


def report(precision, left, right, targets, pairs):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    u, v = left.to(TYPES[precision]), right.to(TYPES[precision])
    launch = _fused.LAUNCHES[precision]
    product, three = products(u, v, _fused.own_scores(u, v, targets, launch=launch).to(u.dtype))
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    plain = milliseconds(lambda: fused(u, v, targets, launch, ties=False))
    tied = milliseconds(lambda: fused(u, v, targets, launch))
    seen = milliseconds(lambda: fused(u, v, targets, launch, pairs))
    extra = (torch.cuda.max_memory_allocated() - before) / 2**20
    rate = 2e-9 * len(u) * len(v) * u.shape[1] / plain
    print(
        f"{precision}: product {product:.1f} ms, product + compare + sum {three:.1f}; fused "
        f"{plain:.1f} ({plain / product:.2f} of the product, {three / plain:.1f} times faster "
        f"than the three, {rate:.0f} TFLOP/s), with ties {tied:.1f} ({tied / product:.2f}), "
        f"with ties and seen {seen:.1f} ({seen / product:.2f}); extra {extra:.1f} MiB",
        flush=True,
    )


def products(u, v, own):
    out = torch.empty(8192, len(v), dtype=u.dtype, device="cuda")
    better = torch.empty(len(u), dtype=torch.int64, device="cuda")

    def compare(scores, at):
        rival = own[at : at + len(scores), None]
        better[at : at + len(scores)] = (scores > rival).sum(1)

    product = milliseconds(lambda: in_chunks(u, v, out, lambda *_: None), 3)
    return product, milliseconds(lambda: in_chunks(u, v, out, compare), 3)


def timed(u, v, targets, launch, ties):
    return milliseconds(lambda: fused(u, v, targets, launch, ties=ties), 3)


def tune(precision="bfloat16", users=100_000, items=1_000_000, dim=128):
    kind = TYPES[precision]
    u = torch.randn(users, dim, device="cuda", generator=generator).to(kind)
    v = torch.randn(items, dim, device="cuda", generator=generator).to(kind)
    targets = whole(items, (users,))
    base = _fused.LAUNCHES[precision]
    for cut in (
        (128, 128, 4, 3), (128, 128, 8, 3), (128, 128, 8, 4), (128, 256, 8, 2), (128, 256, 8, 3),
        (256, 128, 8, 3), (256, 128, 8, 4), (64, 256, 4, 3), (64, 128, 4, 3), (128, 64, 4, 4),
        (64, 64, 4, 2), (128, 64, 8, 3), (128, 32, 4, 3),
    ):  # fmt: skip
        launch = replace(base, users=cut[0], items=cut[1], warps=cut[2], stages=cut[3])
        try:
            times = [timed(u, v, targets, launch, ties) for ties in (False, True)]
        except Exception as problem:  # noqa: BLE001  (a cut that does not fit the device)
            times = [type(problem).__name__]
        print(precision, cut, *times, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["tune"]:
        tune(*sys.argv[2:3])
    else:
        main(*map(int, sys.argv[1:]))
