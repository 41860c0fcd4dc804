"""Promise of data sets: models with equal means on data sets like these seldom get a verdict."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample import compare
from unsample.answers import _across
from unsample.errors import UnsampleWarning
from unsample.law import draw_sampled_ranks

pytestmark = pytest.mark.validity

METRICS = ("NDCG@10", "Recall@100")
OFTEN = 150
PROMISE = "models with equal means on data sets like these get a verdict in at most 5 %"


@dataclass(frozen=True)
class World:
    """Data sets on which one model is better by chance, as often as the other."""

    sets: int = 3
    #: How far a data set favours one of the models, in standard deviations of users.
    chance: float = 0.2
    users: int = 400

    @property
    def setting(self) -> str:
        """Return the world in words."""
        return f"{self.sets} data sets, models moved by {self.chance:g}, {self.users} users"

    def data_sets(self, rng: np.random.Generator) -> dict[str, dict]:
        """Return the tables of data sets, each with two models."""
        found = {}
        for number in range(self.sets):
            items, rows = int(rng.integers(600, 1500)), {"model": [], "user": [], "rank": []}
            common = rng.normal(size=self.users) + 0.2 * rng.normal()
            for name in "AB":
                place = 0.8 * common + 0.6 * rng.normal(size=self.users)
                place += self.chance * rng.normal()
                full = np.floor(items ** ndtr(place)).astype(np.int64).clip(1, items)
                drawn = draw_sampled_ranks(full, items=items, sampled=99, rng=rng)
                rows["model"] += [name] * self.users
                rows["user"] += range(self.users)
                rows["rank"] += drawn.tolist()
            columns = {key: np.array(values) for key, values in rows.items()}
            size = np.full(2 * self.users, items)
            found[f"set {number}"] = columns | {"items": size, "sampled": np.full_like(size, 99)}
        return found

    def findings(self, size: int) -> list[Finding]:
        """Return how often a model was said to have the highest mean."""
        rng, won = np.random.default_rng(3), np.zeros(len(METRICS))
        for _ in range(size):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsampleWarning)
                options = {"metrics": METRICS, "candidates": "unseen"}
                found = compare(self.data_sets(rng), across="dataset", **options)
            won += [found.winner(metric) is not None for metric in METRICS]
        limit = float(binom.ppf(0.999, size, 0.05)) / size
        return [
            Finding(PROMISE, f"{self.setting}, {metric}", "verdicts", share, limit, False, size)
            for metric, share in zip(METRICS, (won / size).tolist(), strict=True)
        ]


WORLDS = [World(sets=2), World(), World(chance=0.05), World(sets=6)]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.setting)
def test_equal_models_seldom_get_a_verdict(world, ledger):
    keep(ledger(world.findings(simulations(OFTEN))))


def test_the_spread_between_data_sets_ignored_breaks_the_promise(monkeypatch, ledger):
    # The mean on these data sets, taken for that on data sets like these.
    monkeypatch.setattr(_across, "runs_apart", lambda *_: (0.0, 1.0))
    findings = World().findings(50)
    ledger(findings, planted="the spread between data sets is ignored")
    with pytest.raises(BrokenPromiseError, match="verdicts"):
        keep(findings)
