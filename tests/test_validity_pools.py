"""Promises about targets that share their sampled items: one pool for all."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pools import World, draw, told, truth, verdicts
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.confidence import SHAPES, Certainty
from unsample.metrics import parse

pytestmark = pytest.mark.validity

ITEMS, SIZES = 2000, (50, 200, 1000)
NAMES = ("Recall@10", "Recall@50", "Recall@100", "NDCG@100", "AUC")


def _coverages(world: World, size: int, **how: bool) -> list[Finding]:
    """Return the coverage of each metric for each size of the pool."""
    rng = np.random.default_rng(3)
    rows: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for _ in range(size):
        (batches,) = draw(world, rng, SIZES)
        for sampled in SIZES:
            counts = told(world, batches[sampled], **how).counts
            certainty = Certainty.of(counts, [10, 50, 100], SHAPES["power"])
            for name in NAMES:
                rows.setdefault((sampled, name), []).append(certainty.interval(parse(name)))
    where = f"one pool, effects {world.effects:g}, {how or 'outcomes known'}"
    return [
        coverage(
            "intervals hold where targets share their items",
            f"{where}, {sampled} sampled, {name}",
            *np.transpose(found), truth(world, parse(name)), 0.93,
        )
        for (sampled, name), found in rows.items()
    ]  # fmt: skip


def _world(effects: float, targets: int = 1000) -> World:
    return World(effects, SIZES[-1], targets=targets, items=ITEMS)


@pytest.mark.parametrize("effects", [0.0, 1.0, 3.0])
def test_intervals_hold_where_all_targets_share_one_pool(effects, ledger):
    keep(ledger(_coverages(_world(effects), simulations(200))))


@pytest.mark.parametrize("effects", [0.0, 1.0, 3.0])
def test_what_is_proved_holds_where_outcomes_are_not_known(effects, ledger):
    keep(ledger(_coverages(_world(effects), simulations(100), known=False)))


def test_shared_items_taken_for_own_ones_fail_the_promise(ledger):
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_coverages(_world(3.0), simulations(40), shared=False)))


def _equal(world: World, size: int, **how: bool) -> list[Finding]:
    names = ["Recall@100", "NDCG@100", "AUC"]
    found = verdicts(world, names, size, 5, **how)
    limit = 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / size)
    return [
        Finding("equal models on one pool get no verdict", f"effects {world.effects:g}, {name}",
                "share of verdicts", share, limit, False, size)
        for name, share in found.items()
    ]  # fmt: skip


@pytest.mark.parametrize("effects", [0.0, 1.0, 3.0])
def test_equal_models_on_one_pool_get_no_verdict(effects, ledger):
    keep(ledger(_equal(World(effects, 200, targets=1000, items=ITEMS), simulations(400))))


def test_verdicts_on_shared_items_taken_for_own_ones_fail_the_promise(ledger):
    world = World(3.0, 200, targets=1000, items=ITEMS)
    with pytest.raises(BrokenPromiseError, match="share of verdicts"):
        keep(ledger(_equal(world, simulations(60), shared=False)))
