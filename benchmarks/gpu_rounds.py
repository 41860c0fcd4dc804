"""Certified and guided rounds, and item-item models, on a CUDA device.

    python benchmarks/gpu_rounds.py [certified] [rounds] [modules] [items]

`certified`: 10^5 users, 10^6 items, 128 factors; half of the full fused ranking's time is the aim.
`rounds` and `modules`: designs whose rounds stay on the device, beside the bare scores of as many
pairs. `items`: exact ranks of item-item weights beside the bare product of sparse and dense.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_array, random_array

from unsample import metrics
from unsample.designs import (
    Candidates,
    Certified,
    Exact,
    Execution,
    FactorScores,
    Guide,
    Guided,
    ItemItemScores,
    _device,
    _device_rounds,
    _fused,
    as_scorer,
    on_device,
    run,
)

METRICS = metrics.parse_all("NDCG@10")
generator = torch.Generator(device="cuda").manual_seed(0)


def seconds(work, repeats=5):
    """Return the median time of some work, after one turn to warm up."""
    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[repeats // 2]


def factors(users, items, dim):
    left = torch.randn(users, dim, device="cuda", generator=generator)
    right = torch.randn(items, dim, device="cuda", generator=generator)
    return left.bfloat16().float(), right.bfloat16().float()


def targets_of(left, right, places):
    """Return an item near the wanted place of each user's ranking, the exact one in the top 10."""
    found, items = torch.empty(len(left), dtype=torch.int64, device="cuda"), len(right)
    top = (places <= 10).nonzero()[:, 0]
    for part in top.split(256):
        best = (left[part] @ right.T).topk(10).indices
        found[part] = best.gather(1, places[part][:, None] - 1)[:, 0]
    some = torch.randperm(items, device="cuda", generator=generator)[: items // 10]
    rest = (places > 10).nonzero()[:, 0]
    for part in rest.split(1024):
        order = (left[part] @ right[some].T).argsort(descending=True)
        at = (places[part] // 10).clamp(max=len(some) - 1)
        found[part] = some[order.gather(1, at[:, None])[:, 0]]
    return found


def world(users, items, dim, spread=1.0):
    """Return factors and targets whose ranks are log-uniform up to items**spread."""
    left, right = factors(users, items, dim)
    draw = torch.rand(users, device="cuda", generator=generator)
    places = (float(items) ** (spread * draw)).long().clamp(1, items)
    return left, right, targets_of(left, right, places)


def scores_of(left, right, precision):
    held = FactorScores(left.cpu().numpy(), right.cpu().numpy())
    return as_scorer(held, len(right)), on_device(
        as_scorer(held, len(right)), "cuda", precision, whole=False
    )


def without(pairs, users, items):
    """Return pairs of users and items without some of them."""
    some = csr_array((np.ones(len(users), pairs.dtype), (users, items)), shape=pairs.shape)
    return csr_array(pairs - pairs.multiply(some))


def certified():
    users, items, dim = 100_000, 1_000_000, 128
    left, right, targets = world(users, items, dim)
    exclude = random_array((users, items), density=50 / items, rng=0, format="csr")
    pairs = (np.arange(users), targets.cpu().numpy())
    left_out = without(exclude, *pairs)
    for precision in ("bfloat16", "float32"):
        here, there = scores_of(left, right, precision)
        score, launch = there.score, _fused.LAUNCHES[precision]
        u, v = (score.for_kernel(each) for each in (score.left, score.right))

        def full(u=u, v=v, launch=launch):
            own = _fused.own_scores(u, v, targets, launch=launch)
            return own, *_fused.count_above(u, v, own, ties=True, launch=launch)

        whole = seconds(full)
        for name, excluded in (("nothing excluded", None), ("50 excluded", left_out)):
            candidates = Candidates.check(pairs, items, excluded)
            rows = np.arange(users)

            def certify(candidates=candidates, rows=rows, score=score):
                return list(_device_rounds.certify_fused(score, candidates, None, rows, 10))

            took = seconds(certify)
            tally = certify()[0][1]
            share = tally.scored.sum() / candidates.others.sum()
            print(
                f"certified {precision}, {name}: full {1e3 * whole:.1f} ms, certified "
                f"{1e3 * took:.1f} ms = {took / whole:.2f} of it; share {share:.3f}",
                flush=True,
            )
            if excluded is None:
                _, better, level = full()
                top = (better < 10).cpu().numpy()
                same = tally.better[top] == better.cpu().numpy()[top]
                ties = tally.equal[top] == (level - better - 1).cpu().numpy()[top]
                out = (tally.better[~top] >= 10).all()
                print("  counts of the top 10 equal:", bool(same.all() and ties.all() and out))
            execution = Execution(device="cuda", precision=precision)
            for design, scorer in ((Exact(), here), (Certified(), there)):
                start = time.perf_counter()
                run(design, scorer, candidates, metrics=METRICS, execution=execution)
                print(f"  {design.name} from end to end: {time.perf_counter() - start:.2f} s")


def bare_pairs(score, count, users, items, rows=1 << 20):
    """Return the time of scoring so many pairs that lie on the device already."""
    who = torch.randint(users, (rows,), device="cuda", generator=generator)
    what = torch.randint(items, (rows, 1), device="cuda", generator=generator)
    once = seconds(lambda: score.of(who, what))
    return once * count / rows


def rounds():
    for users, items, dim in ((20_000, 100_000, 64), (4_000, 100_000, 256)):
        left, right, targets = world(users, items, dim)
        candidates = Candidates.check((np.arange(users), targets.cpu().numpy()), items)
        mean = (right @ left.mean(0)).argsort(descending=True).cpu().numpy()
        for precision in ("bfloat16", "float32"):
            here, there = scores_of(left, right, precision)
            for guide in (Guide(mean), None):
                for design, budget in ((Guided(), users * 2_000), (Certified(), None)):
                    report_rounds(
                        f"{users} x {items} x {dim} {precision}, "
                        f"{'order' if guide else 'random'}, {design.name}",
                        design, there, candidates, guide, budget, precision,
                    )  # fmt: skip
            start = time.perf_counter()
            execution = Execution(device="cuda", precision=precision)
            run(Exact(), here, candidates, metrics=METRICS, execution=execution)
            print(f"  exact: {time.perf_counter() - start:.3f} s", flush=True)


def report_rounds(name, design, scorer, candidates, guide, budget, precision):
    execution = Execution(device="cuda", precision=precision, batch=1 << 22)

    def work():
        return run(
            design, scorer, candidates, metrics=METRICS, guide=guide, budget=budget,
            execution=execution,
        )[0]  # fmt: skip

    found = work()
    took = seconds(work, 1)
    users, items = int(candidates.users.max()) + 1, candidates.items
    bare = bare_pairs(scorer.score, found.scored, users, items)
    share = found.scored / (len(candidates) * items)
    print(
        f"{name}: {took:.3f} s for {found.scored:,} scores ({share:.4f} of all); bare pairs "
        f"{bare:.4f} s; pairs a second over bare {bare / took:.3f}",
        flush=True,
    )


class Network(torch.nn.Module):
    """A small network over embeddings, as rerankers are."""

    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = (torch.nn.Parameter(each) for each in (left, right))
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2 * left.shape[1], 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)
        )

    def forward(self, users, items):
        return self.layers(torch.cat([self.left[users], self.right[items]], dim=1))


def modules():
    users, items = 5_000, 100_000
    left, right = factors(users, items, 64)
    scorer = as_scorer(Network(left, right).cuda(), items)
    targets = torch.randint(items, (users,), device="cuda", generator=generator).cpu().numpy()
    candidates = Candidates.check((np.arange(users), targets), items)
    for design, budget in ((Guided(), users * 1_000), (Certified(), None)):
        report_rounds(
            f"network, {users} x {items}, {design.name}", design, scorer, candidates, None, budget,
            "float32",
        )  # fmt: skip


def histories(users, items, mean, skew):
    """Return what users have: some items are met more often than others, as a power law has it."""
    rng = np.random.default_rng(0)
    chance = (1.0 + np.arange(items)) ** -skew
    chance = rng.permutation(chance / chance.sum())
    lengths = np.clip(rng.geometric(1 / mean, size=users), 5, items // 3)
    rows = [np.sort(rng.choice(items, size=n, replace=False, p=chance)) for n in lengths]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.concatenate(rows)
    return csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(users, items))


def each_part(count, model, held, parts):
    return [count(torch, model, held, part) for part in parts]


def items():
    """Time what is done on the device: rows and weights lie there before."""
    warnings.simplefilter("ignore", UserWarning)  # torch calls its sparse rows a beta
    for users, count, mean in ((6_040, 3_706, 165), (8_000, 20_000, 100)):
        history = histories(users, count, mean, 0.9)
        weights = np.random.default_rng(1).normal(size=(count, count)).astype(np.float32)
        model = ItemItemScores(history, weights)
        targets = np.random.default_rng(2).integers(count, size=users)
        held = torch.as_tensor(weights, device="cuda")
        arrays = (history.indptr, history.indices, history.data)
        rows = [torch.as_tensor(each, device="cuda") for each in arrays]
        sparse = torch.sparse_csr_tensor(*rows, size=history.shape)
        sums = _device.on_kernels(torch, model, held)
        counted = torch.ones((users, count), dtype=torch.uint8, device="cuda")
        wanted = torch.as_tensor(targets, device="cuda")
        counted[torch.arange(users, device="cuda"), wanted] = 0
        plain = seconds(lambda sparse=sparse, held=held: sparse @ held)
        fused = seconds(lambda given=(rows, wanted, counted), sums=sums: sums.count(*given))
        print(
            f"item-item {users} x {count}: bare product {1e3 * plain:.2f} ms; fused "
            f"{1e3 * fused:.2f} ms = {fused / plain:.2f} of it",
            flush=True,
        )
        had = without(history, np.arange(users), targets)
        for name, exclude in (("nothing excluded", None), ("history excluded", had)):
            candidates = Candidates.check((np.arange(users), targets), count, exclude)
            parts = [part for _, part in candidates.parts((1 << 26) // count)]
            ways = {
                "fused": partial(each_part, _device.fused_sums, model, sums, parts),
                "product and compare": partial(each_part, _device.chunked_sums, model, held, parts),
            }
            took = {way: seconds(work) for way, work in ways.items()}
            found = [
                [torch.cat(each) for each in zip(*work(), strict=True)] for work in ways.values()
            ]
            moved = (found[0][0] != found[1][0]).double().mean().item()
            print(
                f"  {name}, from the host: "
                + ", ".join(f"{way} {1e3 * each:.2f} ms" for way, each in took.items())
                + f"; ranks moved by rounding {moved:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    for verb in sys.argv[1:] or ["certified", "rounds", "modules", "items"]:
        {"certified": certified, "rounds": rounds, "modules": modules, "items": items}[verb]()
