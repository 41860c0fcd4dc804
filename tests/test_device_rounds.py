"""Rounds on a device find what rounds of numpy find, and no list of items comes back."""

from __future__ import annotations

import functools
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.sparse import random_array

from tests.kernels import stand_in
from unsample import metrics
from unsample.designs import (
    Candidates,
    Certified,
    Exact,
    Execution,
    FactorScores,
    Guide,
    Guided,
    Scorer,
    Tally,
    _device,
    _device_rounds,
    _run,
    as_guide,
    as_scorer,
    on_device,
    run,
)
from unsample.designs._guides import GuidedOrders
from unsample.designs._orders import Orders, target_keys
from unsample.designs._scan import Scan
from unsample.errors import BudgetError, ScoreError

torch = pytest.importorskip("torch")
USERS, ITEMS, DIM = 100, 800, 12
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]
GUIDES = ["order", "lists", "lists and order", "none"]


def factors(seed=0) -> FactorScores:
    """Return small whole numbers, which nothing rounds and which tie often."""
    rng = np.random.default_rng(seed)
    left, right = (rng.integers(-3, 4, size=(n, DIM)) for n in (USERS, ITEMS))
    return FactorScores(left.astype(np.float32), right.astype(np.float32))


def world(guide="order", *, excluding=True):
    """Return candidates whose targets are good ones, and a guide."""
    rng = np.random.default_rng(1)
    users = np.sort(rng.integers(USERS, size=80))
    place = np.floor((ITEMS / 2) ** rng.random(80)).astype(np.int64)
    items = np.argsort(-factors()(users), axis=1, kind="stable")[np.arange(80), place]
    users, items = np.unique(np.column_stack([users, items]), axis=0).T
    exclude = None
    if excluding:
        exclude = random_array((USERS, ITEMS), density=0.02, rng=rng).tolil()
        exclude[users, items] = 0.0
        exclude = exclude.tocsr()
    candidates = Candidates.check((users, items), ITEMS, exclude)
    lists = {user: rng.integers(ITEMS, size=rng.integers(40)) for user in range(0, USERS, 2)}
    held = as_guide(lists, candidates)
    order = rng.permutation(ITEMS) if "order" in guide else None
    if "lists" in guide:
        return candidates, Guide(order, held.lists, held.listed)
    return candidates, Guide(order) if order is not None else None


class Module(torch.nn.Module):
    """The factors as a module, which gives its scores as a column."""

    def __init__(self, model: FactorScores) -> None:
        super().__init__()
        self.left, self.right = (
            torch.nn.Parameter(torch.as_tensor(held), requires_grad=False) for held in model.folded
        )

    def forward(self, users, items):
        return (self.left[users] * self.right[items]).sum(dim=1, keepdim=True)


def scorers(device):
    """Return the factors in all forms that are scored on a device."""
    here = as_scorer(factors(), ITEMS)
    return {
        "float32": on_device(here, device, "float32", whole=False),
        "bfloat16": on_device(here, device, "bfloat16", whole=False),
        "module": as_scorer(Module(factors()).to(device), ITEMS),
    }


def find(scorer, candidates, guide, design, budget=None, device=None):
    given = {"metrics": metrics.parse_all("NDCG@5"), "guide": guide, "budget": budget}
    return run(design, scorer, candidates, execution=Execution(device=device), **given)


@functools.cache
def by_numpy(guide, excluding, design, budget):
    """Return what numpy finds, which is the same for every device and kind of number."""
    candidates, held = world(guide, excluding=excluding)
    return find(Scorer(factors().score), candidates, held, design, budget)


def same(first, second):
    for each in fields(Tally):
        assert np.array_equal(getattr(first[1], each.name), getattr(second[1], each.name)), each
    for name in ("ranks", "lowest", "met", "scored"):
        assert np.array_equal(getattr(first[0], name), getattr(second[0], name)), name


@pytest.fixture
def in_rounds(monkeypatch):
    """Let no kernel certify targets all at once."""
    monkeypatch.setattr(_run, "fused_certify", lambda scan: None)


@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize(
    ("kind", "excluding"), [("float32", True), ("bfloat16", False), ("module", True)]
)
def test_rounds_on_a_device_find_what_numpy_finds(device, guide, kind, excluding):
    candidates, held = world(guide, excluding=excluding)
    for design, budget in ((Certified(5), None), (Guided(5), 9_000)):
        if held is not None and not design.guided:
            continue
        expected = by_numpy(guide, excluding, design, budget)
        same(find(scorers(device)[kind], candidates, held, design, budget), expected)
        assert expected[1].equal.any()


@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize("kind", ["float32", "module"])
def test_no_list_of_items_goes_through_the_host(monkeypatch, guide, kind):
    """Arrays are asked for own scores alone, and nothing longer than the targets is sent."""
    candidates, held = world(guide)
    asked, sent = [], []
    scorer = scorers("cpu")[kind]
    call, send = type(scorer.score).__call__, _device_rounds._sent
    monkeypatch.setattr(
        type(scorer.score),
        "__call__",
        lambda self, *ids: asked.append(ids[1].size) or call(self, *ids),
    )
    monkeypatch.setattr(
        _device_rounds, "_sent", lambda *some: sent.append(np.size(some[0])) or send(*some)
    )
    found, _ = find(scorer, candidates, held, Certified(5))
    assert found.scored > 10 * len(candidates)
    assert sum(asked) <= 2 * len(candidates)
    once = (
        candidates.exclude.nnz
        + ITEMS
        + (0 if held is None or held.lists is None else held.lists.size)
    )
    assert max(sent) <= once


@pytest.mark.parametrize("size", [257, 1000, 65_536, 1_000_003])
def test_orders_are_those_of_numpy(size):
    keys = target_keys(3, np.arange(50), np.arange(50))
    sizes = np.full(50, size) - np.arange(50) % 7 * (size > 300)
    first = np.arange(50) * 3
    expected = Orders(sizes, keys).positions(first, 40)
    row, place = _device_rounds._pairs(np.full(50, 40), first, torch.as_tensor)
    found = _device_rounds._permuted(sizes, keys, place, row, torch.as_tensor)
    assert np.array_equal(found.numpy(), expected.reshape(-1))


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize("excluding", [False, True])
def test_items_are_those_of_numpy(guide, excluding):
    candidates, held = world(guide, excluding=excluding)
    keys = target_keys(3, candidates.users, candidates.targets)
    orders = GuidedOrders(candidates, keys, held or Guide())
    rows = np.random.default_rng(0).permutation(len(candidates))[:40]
    scan = Scan(scorers("cpu")["float32"].score, orders)
    device = _device_rounds.DeviceScan.of(scan)
    listed = orders.listed_others[rows]
    rng = np.random.default_rng(1)
    listing = rows[listed > 3]
    for some, first, most in (
        (rows, rng.integers(listed, ITEMS // 2), 50),
        (listing, np.zeros(len(listing), dtype=np.int64), 3),
    ):
        count = rng.integers(1, most + 1, size=len(some))
        pairs = _device_rounds._pairs(count, first, torch.as_tensor)
        expected = orders.items(some, first, most)[np.arange(most) < count[:, None]]
        if len(some):
            assert np.array_equal(device._items(some, first, *pairs).numpy(), expected)


def test_real_numbers_differ_by_rounding_alone():
    rng = np.random.default_rng(0)
    model = FactorScores(*(rng.normal(size=(n, DIM)).astype(np.float32) for n in (USERS, ITEMS)))
    candidates, held = world("order")
    there = on_device(as_scorer(model, ITEMS), "cpu", "float32", whole=False)
    found, expected = (
        find(each, candidates, held, Certified(5))[0].ranks for each in (there, Scorer(model.score))
    )
    assert np.mean(found != expected) < 0.02


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_cuda)])
def fused(request, monkeypatch):
    """Return a device with kernels; on a processor something stands in for them."""
    if request.param == "cpu":
        stand_in(monkeypatch)
    monkeypatch.setattr(_device_rounds, "_FIRST_WINDOW", 64)
    return request.param


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("ties", ["random", "optimistic", "pessimistic"])
@pytest.mark.parametrize(
    ("guide", "excluding"), [("order", True), ("lists", True), ("none", False)]
)
def test_kernels_certify_all_targets_at_once(fused, kind, ties, guide, excluding):
    candidates, held = world(guide, excluding=excluding)
    given = {"metrics": metrics.parse_all("NDCG@5"), "ties": ties}
    exact, full = run(Exact(), as_scorer(factors(), ITEMS), candidates, **given)
    found, tally = run(Certified(5), scorers(fused)[kind], candidates, guide=held, **given)
    top = full.beaten("optimistic") < 5
    assert 0 < top.sum() < len(top)
    assert np.array_equal(found.ranks[top], exact.ranks[top])
    assert (found.lowest[~top] > 5).all()
    for name in ("better", "equal", "scored", "own"):
        assert np.array_equal(getattr(tally, name)[top], getattr(full, name)[top]), name
    assert (tally.scored[~top] < candidates.others[~top]).any()
    assert found.scored >= tally.scored.sum() + len(candidates)


def test_kernels_count_only_candidates(fused):
    """What a target met is what it would meet one by one: a slow count says so."""
    candidates, held = world("order")
    _, tally = run(
        Certified(5), scorers(fused)["float32"], candidates, guide=held,
        metrics=metrics.parse_all("NDCG@5"),
    )  # fmt: skip
    scores = factors()(candidates.users)
    for row, target in enumerate(candidates.targets):
        excluded = candidates.exclude[[int(candidates.users[row])]].indices
        items = held.order[~np.isin(held.order, [*excluded, target])][: tally.scored[row]]
        assert tally.better[row] == (scores[row, items] > scores[row, target]).sum()
        assert tally.equal[row] == (scores[row, items] == scores[row, target]).sum()


def test_filtered_targets_are_candidates_all_the_same(fused):
    """Where other answers are filtered, the excluded pairs hold the targets themselves."""
    candidates, held = world("order")
    exclude = candidates.exclude.tolil()
    exclude[candidates.users, candidates.targets] = 1.0
    exclude = exclude.tocsr()
    exclude.sort_indices()
    filtered = replace(candidates, exclude=exclude, filtered=True)
    given = {"metrics": metrics.parse_all("NDCG@5")}
    exact, full = run(Exact(), as_scorer(factors(), ITEMS), filtered, **given)
    found, tally = run(Certified(5), scorers(fused)["float32"], filtered, guide=held, **given)
    top = full.beaten("optimistic") < 5
    assert np.array_equal(found.ranks[top], exact.ranks[top])
    assert np.array_equal(tally.scored[top], full.scored[top])


def test_a_budget_is_kept_to(fused):
    candidates, held = world("order")
    scorer = scorers(fused)["float32"]
    needed = find(Scorer(factors().score), candidates, held, Certified(5))[0].scored
    found, _ = find(scorer, candidates, held, Certified(5), budget=needed, device=fused)
    assert found.scored <= needed
    with pytest.raises(BudgetError):
        find(scorer, candidates, held, Certified(5), budget=needed // 2, device=fused)
    guided, _ = find(scorer, candidates, held, Guided(5), budget=needed // 2, device=fused)
    assert guided.scored <= needed // 2


@pytest.mark.parametrize("wrong", ["nan", "shape"])
def test_modules_that_give_no_scores_are_refused(wrong):
    class Bad(Module):
        def forward(self, users, items):
            scores = super().forward(users, items)
            return scores * torch.nan if wrong == "nan" else scores.repeat(1, 2)

    candidates, held = world("order")
    with pytest.raises(ScoreError, match="NaN" if wrong == "nan" else "shape"):
        find(as_scorer(Bad(factors()), ITEMS), candidates, held, Certified(5))


def test_infinite_scores_are_counted():
    class Masked(Module):
        def forward(self, users, items):
            return torch.where((items % 7 == 0)[:, None], -torch.inf, super().forward(users, items))

    candidates, held = world("order")
    candidates = candidates.take(candidates.targets % 7 != 0)
    module = as_scorer(Masked(factors()), ITEMS)
    here = Scorer(
        lambda users, items: np.where(items % 7 == 0, -np.inf, factors().score(users, items))
    )
    found, expected = (find(each, candidates, held, Certified(5)) for each in (module, here))
    same(found, expected)
    assert found[1].infinite.any()


def test_short_orders_stay_on_the_host():
    candidates = Candidates.check(([0, 1], [3, 4]), 100)
    keys = target_keys(0, candidates.users, candidates.targets)
    scan = Scan(scorers("cpu")["float32"].score, GuidedOrders(candidates, keys, Guide()))
    assert not _device_rounds.can_scan(scan)
    assert isinstance(scan.score, _device.DeviceScores)
