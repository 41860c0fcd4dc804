"""Promises for items that all targets share: intervals hold, equal models are not told apart.

How strong items are is the standard deviation of their effects, in that of the noise.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.pools import Pool, World
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.counts import ModelCounts
from unsample.likelihood._condensed_cells import SharedItems
from unsample.metrics import parse_all
from unsample.posterior import Cloud, joint_draws, shipped
from unsample.posterior._cloud import UNLIKE, Fitted

pytestmark = pytest.mark.validity

METRICS = parse_all(["NDCG@10", "Recall@50", "Recall@100"])
WORLDS = [
    World(effects=effects, sampled=sampled, targets=targets)
    for sampled, targets in ((60, 3000), (200, 1000))
    for effects in (0.0, 1.0, 3.0)
]


@dataclass(frozen=True)
class Heap(World):
    """Targets of which most stand in one place in the middle: no curve is like that."""

    @property
    def distribution(self) -> np.ndarray:
        mass = super().distribution * 0.2
        mass[250:300] += 0.8 / 50
        return mass


#: The most in the middle, where samples show it.
HEAPS = [Heap(effects=effects, sampled=200, targets=1000) for effects in (0.0, 1.0)]


def _cloud(world: World, seed: int, *, known: bool = True) -> Cloud:
    counts = Pool.draw(world, np.random.default_rng(seed)).targets().counts
    counts = counts if known else replace(counts, shared=None)
    return Cloud.of(counts, shipped(), protocol="unseen")


def _findings(world: World, size: int, *, known: bool = True) -> list[Finding]:
    """Return how often intervals hold, and in how many trials the data pass for unlike any.

    NDCG@10 hangs on the few items that beat nearly all targets. Where there are such items, none
    or many of them are drawn, and the draw itself does not show how much that matters: what holds
    is shown without a limit.
    """
    promise = "intervals hold where all targets share their items"
    setting = f"{world.sampled} items, {world.targets} targets, effects {world.effects:g}"
    metrics = METRICS
    if isinstance(world, Heap):
        # Of the top nothing is promised where no curve is like the data.
        metrics, setting = METRICS[-1:], f"{setting}, most in one place"
    limits, unlike = np.empty((size, len(metrics), 2)), 0
    for seed in range(size):
        found = _cloud(world, seed, known=known)
        unlike += found.fitted.unlike
        limits[seed] = [found.metric(metric).interval() for metric in metrics]
    weights = [metric.weights(np.arange(1, world.items + 1), world.items) for metric in metrics]
    findings = []
    for at, metric in enumerate(metrics):
        limit = 0.0 if metric.name == "NDCG@10" and world.effects else 0.9
        truth = weights[at] @ world.distribution
        where = f"{setting}, {metric}"
        findings.append(coverage(promise, where, *limits[:, at].T, truth, limit))
    calm = "the draw of items that targets share is no reason for a warning"
    findings.append(Finding(calm, setting, "warnings", unlike / size, 0.02, False, size))
    return findings


@pytest.mark.parametrize(
    "world",
    [*WORLDS, *HEAPS],
    ids=lambda each: f"{type(each).__name__}, {each.sampled} items, effects {each.effects:g}",
)
def test_shared_items_have_intervals_that_hold(world, ledger):
    keep(ledger(_findings(world, simulations(120))))


def test_dependence_that_is_ignored_is_found(ledger):
    found = ledger(_findings(WORLDS[2], simulations(50), known=False), planted="items ignored")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(found)


def test_items_whose_variance_is_left_out_are_found(ledger, monkeypatch):
    nothing = property(lambda each: np.zeros_like(each.covariance))
    monkeypatch.setattr(SharedItems, "weight_covariance", nothing)
    found = ledger(_findings(WORLDS[2], simulations(50)), planted="the items' part left out")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(found)


def test_a_draw_of_items_that_passes_for_a_misfit_is_found(ledger, monkeypatch):
    monkeypatch.setattr(Fitted, "unlike", property(lambda each: each.discrepancy > UNLIKE))
    found = ledger(_findings(WORLDS[2], simulations(50)), planted="a misfit by the items alone")
    with pytest.raises(BrokenPromiseError, match="warnings"):
        keep(found)


def _told_apart(effects: float, size: int, *, caution: float | None = None) -> list[Finding]:
    """Return how often two equal models that met the same items get a verdict."""
    world, called = World(effects=effects, sampled=60, targets=1000), 0
    metrics = parse_all("Recall@100")
    options = {} if caution is None else {"caution": caution}
    for seed in range(size):
        rng = np.random.default_rng(seed)
        first = Pool.draw(world, rng)
        models = {"a": first, "b": Pool.draw(world, rng, like=first)}
        counts = ModelCounts.of_targets({name: each.targets() for name, each in models.items()})
        clouds = {n: Cloud.of(each, shipped(), protocol="unseen") for n, each in counts.items()}
        draws = joint_draws(clouds, metrics, between=counts.between, **options)["Recall@100"]
        probability = float((draws[:, 0] > draws[:, 1]).mean())
        called += max(probability, 1.0 - probability) >= 0.95
    limit = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / size)
    promise = "equal models on shared items get a verdict in one of twenty trials at most"
    return [Finding(promise, f"effects {effects:g}", "verdicts", called / size, limit, False, size)]


@pytest.mark.parametrize("effects", [0.0, 1.0, 3.0])
def test_equal_models_on_shared_items_are_not_told_apart(effects, ledger):
    keep(ledger(_told_apart(effects, simulations(120))))


def test_models_with_a_quarter_of_their_error_are_found(ledger):
    found = ledger(_told_apart(1.0, 40, caution=0.25), planted="users' part divided by four")
    with pytest.raises(BrokenPromiseError, match="verdicts"):
        keep(found)
