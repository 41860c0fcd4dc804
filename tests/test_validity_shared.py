"""Promises for items that all targets share: intervals hold, equal models are not told apart.

How strong items are is the standard deviation of their effects, in that of the noise.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.pools import Pool, World
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.metrics import parse_all
from unsample.prior import BOUNDS, Posterior, shipped
from unsample.prior import _posterior as _posterior_module

pytestmark = pytest.mark.validity

METRICS = parse_all(["NDCG@10", "Recall@50", "Recall@100"])
WORLDS = [
    World(effects=effects, sampled=sampled, targets=targets)
    for sampled, targets in ((60, 3000), (200, 1000))
    for effects in (0.0, 1.0, 3.0)
]


@dataclass(frozen=True)
class Heap(World):
    """Targets of which most stand in one place in the middle: no model of the bank does so."""

    @property
    def law(self) -> np.ndarray:
        mass = super().law * 0.2
        mass[250:300] += 0.8 / 50
        return mass


def _posterior(world: World, seed: int, *, known: bool = True) -> Posterior:
    counts = Pool.draw(world, np.random.default_rng(seed)).targets().counts
    counts = counts if known else replace(counts, shared=None)
    return Posterior.of(counts, shipped(), candidates="unseen")


def _findings(world: World, size: int, *, known: bool = True) -> list[Finding]:
    """Return how often intervals hold, where bounds hold always, and how many are not bounds."""
    promise = "intervals hold where all targets share their items"
    setting = f"{world.sampled} items, {world.targets} targets, effects {world.effects:g}"
    limits = np.empty((size, len(METRICS), 2))
    own = np.empty((size, len(METRICS)), dtype=bool)
    for seed in range(size):
        found = _posterior(world, seed, known=known)
        for at, metric in enumerate(METRICS):
            law = found.law(metric)
            own[seed, at] = law.sources[0] != BOUNDS
            limits[seed, at] = law.interval() if own[seed, at] else (0.0, np.inf)
    weights = [metric.weights(np.arange(1, world.items + 1), world.items) for metric in METRICS]
    findings = [
        coverage(promise, f"{setting}, {metric}", *limits[:, at].T, weights[at] @ world.law, 0.9)
        for at, metric in enumerate(METRICS)
    ]
    # Recall@K is seen where K > N/n: there the draw of items must not pass for a misfit.
    share = float(own[:, -1].mean())
    findings.append(Finding(promise, setting, "not the bounds", share, 0.95, True, size))
    return findings


@pytest.mark.parametrize(
    "world", WORLDS, ids=lambda each: f"{each.sampled} items, effects {each.effects:g}"
)
def test_shared_items_have_intervals_that_hold(world, ledger):
    keep(ledger(_findings(world, simulations(200))))


def test_dependence_that_is_ignored_is_found(ledger):
    found = ledger(_findings(WORLDS[2], simulations(50), known=False), planted="items ignored")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(found)


def test_dependence_that_passes_for_a_misfit_is_found(ledger, monkeypatch):
    monkeypatch.setattr(_posterior_module, "_of_items", lambda *_: (0.0, 0.0))
    found = ledger(_findings(WORLDS[2], simulations(50)), planted="a misfit by the items alone")
    with pytest.raises(BrokenPromiseError, match="not the bounds"):
        keep(found)


def _called(world: World, size: int) -> Finding:
    misfits = sum(_posterior(world, seed).sources[0] == BOUNDS for seed in range(size))
    promise, setting = "a misfit is seen behind shared items", f"effects {world.effects:g}"
    return Finding(promise, setting, "intervals are bounds", misfits / size, 0.95, True, size)


@pytest.mark.parametrize("effects", [0.0, 1.0])
def test_shared_items_do_not_hide_a_misfit(effects, ledger):
    keep(ledger([_called(Heap(effects=effects, sampled=200, targets=1000), simulations(40))]))


def test_shared_data_that_fit_are_no_misfit(ledger):
    found = _called(World(effects=1.0, sampled=200, targets=1000), simulations(40))
    with pytest.raises(BrokenPromiseError):
        keep(ledger([found], planted="a world like those of the bank"))


@pytest.mark.parametrize("effects", [0.0, 1.0, 3.0])
def test_equal_models_on_shared_items_are_not_told_apart(effects, ledger):
    size, called = simulations(200), 0
    world = World(effects=effects, sampled=60, targets=1000)
    for seed in range(size):
        rng = np.random.default_rng(seed)
        first = Pool.draw(world, rng)
        models = {"a": first, "b": Pool.draw(world, rng, like=first)}
        counts = {name: each.targets().counts for name, each in models.items()}
        law = Posterior.of(counts, shipped(), candidates="unseen").law("Recall@100")
        chance = law.chance("a", "b")
        called += BOUNDS not in law.sources and max(chance, 1.0 - chance) >= 0.95
    limit = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / size)
    promise = "equal models on shared items get a verdict in one of twenty trials at most"
    found = Finding(promise, f"effects {effects:g}", "verdicts", called / size, limit, False, size)
    keep(ledger([found]))
