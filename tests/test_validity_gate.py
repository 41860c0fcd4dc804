"""Promise of a gate: it seldom stops a model that is as good as the baseline."""

import numpy as np
import pytest
from scipy.stats import binom

from tests.promises import BrokenPromiseError, Finding, keep, simulations
from tests.test_validity_runs import ITEMS, METRICS, SAMPLED, World
from unsample import compare
from unsample.answers import Difference

pytestmark = pytest.mark.validity

OFTEN = 200


def _findings(size: int) -> list[Finding]:
    """Return how often a model that is as good as the baseline is stopped."""
    world, rng, stopped = World(runs=1, chance=0.0, other=0.0), np.random.default_rng(5), 0
    for _ in range(size):
        models = {name: runs[0] for name, runs in world.models(rng).items()}
        design = {"items": ITEMS, "sampled": SAMPLED, "candidates": "unseen"}
        found = compare(models, metrics=METRICS, **design)
        stopped += np.array(
            [found.gate(metric, baseline="A", margin=0.02).failed for metric in METRICS]
        )
    limit = float(binom.ppf(0.999, size, 0.05)) / size
    promise = "a gate stops a model that is as good as the baseline in at most 5 %"
    return [
        Finding(promise, f"{world.users} users, margin 0.02, {m}", "stopped", s, limit, False, size)
        for m, s in zip(METRICS, (stopped / size).tolist(), strict=True)
    ]


def test_equal_models_seldom_fail(ledger):
    keep(ledger(_findings(simulations(OFTEN))))


def test_a_margin_of_the_wrong_sign_breaks_the_promise(monkeypatch, ledger):
    right = Difference.below
    monkeypatch.setattr(Difference, "below", lambda pair, value: right(pair, -4 * value))
    findings = _findings(60)
    ledger(findings, planted="a model has to be better by the margin")
    with pytest.raises(BrokenPromiseError, match="stopped"):
        keep(findings)
