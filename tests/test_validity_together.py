"""Promises of models compared after guided evaluations: differences cover, and nobody is misled."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import ndtr

from tests.promises import BrokenPromiseError, coverage, keep, simulations
from unsample import compare
from unsample.bounds import DrawnError
from unsample.designs import Guided
from unsample.designs._simulation import simulated
from unsample.metrics import parse_all
from unsample.questions.evaluate.ask import estimates_of
from unsample.questions.evaluate.result import Evaluation

pytestmark = pytest.mark.validity

METRICS = parse_all(["Recall@10", "NDCG@10"])
ITEMS = 1000
OFTEN = 400


@dataclass(frozen=True)
class World:
    """Users whose target has a rank under each of two models."""

    users: int = 500
    #: Items for each target and model, and how good the guide is.
    cost: int = 100
    odds: float = 10.0
    #: The correlation of the logarithms of both ranks.
    alike: float = 0.64
    #: Whether both models draw users in one order, as they do with one seed.
    same_order: bool = True

    def __str__(self):
        order = "one order" if self.same_order else "two orders"
        guide = f"odds {self.odds:g}, {self.cost} items a target"
        return f"{self.users} users, {guide}, correlation {self.alike:g}, {order}"

    def ranks(self, rng, users):
        """Return the ranks of users under each model; the second is a little worse."""
        size, sign = np.sqrt(abs(self.alike)), np.sign(self.alike)
        common, own = rng.normal(size=users), np.sqrt(1.0 - abs(self.alike))
        places = [
            sign * size * common + own * rng.normal(size=users),
            size * common + own * rng.normal(size=users) + 0.1,
        ]
        return [np.floor(ITEMS ** ndtr(place)).astype(np.int64).clip(1, ITEMS) for place in places]

    def findings(self, size):
        """Return how often the interval of the difference covers, for users like these."""
        rng = np.random.default_rng(7)
        one, two = self.ranks(rng, 2_000_000)
        pairs = []
        for _ in range(size):
            order = rng.permutation(self.users) if self.same_order else None
            models = {
                name: self._evaluation(ranks, rng, order)
                for name, ranks in zip("AB", self.ranks(rng, self.users), strict=True)
            }
            found = compare(models, metrics=METRICS).differences
            pairs.append([(pair.low, pair.high) for pair in found])
        found = []
        for place, metric in enumerate(METRICS):
            apart = float(metric.weights(one, ITEMS).mean() - metric.weights(two, ITEMS).mean())
            low, high = np.array(pairs)[:, place].T
            promise = "intervals of differences of guided evaluations cover"
            found.append(coverage(promise, f"{self}, {metric}", low, high, apart, 0.93))
        return found

    def _evaluation(self, ranks, rng, order):
        how = {"metrics": METRICS, "odds": self.odds, "order": order}
        found = simulated(Guided(), ranks, ITEMS, rng, budget=(self.cost + 1) * len(ranks), **how)
        estimates = estimates_of(found, METRICS)
        users = np.arange(len(ranks))
        options = {"targets": users, "rng": 0, "relevance": None, "error": None}
        return Evaluation.of(replace(found, users=users), estimates, **options)


WORLDS = [
    World(),
    World(same_order=False),
    World(odds=1.0),
    World(odds=1.0, alike=0.95),
    World(odds=0.2),
    World(odds=30.0, alike=-0.98),
    World(users=60, cost=300),
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_intervals_of_differences_cover(world, ledger):
    keep(ledger(world.findings(simulations(OFTEN))))


def test_what_models_share_with_the_wrong_sign_breaks_the_promise(monkeypatch, ledger):
    right, calls = DrawnError.of_drawn, []

    def wrong(*given, **named):
        # Metrics of the first model come first: those of the second are turned round.
        found = right(*given, **named)
        calls.append(None)
        second = (len(calls) - 1) % (2 * len(METRICS)) >= len(METRICS)
        turned = 2.0 * found.totals.mean() - found.totals
        return replace(found, totals=turned) if second else found

    monkeypatch.setattr(DrawnError, "of_drawn", wrong)
    findings = WORLDS[5].findings(150)
    ledger(findings, planted="the covariance of two models has the wrong sign")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(findings)
