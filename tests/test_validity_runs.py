"""Promise of several runs: models whose means are equal seldom get a verdict, however few runs."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample import compare
from unsample.errors import UnsampleWarning
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse_all
from unsample.prior import Law

pytestmark = pytest.mark.validity

METRICS = parse_all(["NDCG@10", "Recall@100", "AUC"])
ITEMS, SAMPLED = 1000, 99
OFTEN = 200
PROMISE = "models whose means over runs are equal get a verdict in at most 5 %"


@dataclass(frozen=True)
class World:
    """Users whose target has a rank under each run; runs move all ranks of a model together."""

    runs: int = 3
    #: How far training moves a run, in standard deviations of users; of the second model, too.
    chance: float = 0.1
    other: float = 0.1
    users: int = 300
    #: Whether all runs have the same users.
    same_users: bool = True

    @property
    def setting(self) -> str:
        """Return the world in words."""
        users = "the same" if self.same_users else "other"
        moved = f"moved by {self.chance:g} and {self.other:g}"
        return f"{self.runs} runs, {moved}, {self.users} users, {users} in each run"

    def models(self, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
        """Return sampled ranks of the runs of two models, whose means are equal."""
        found: dict[str, list[np.ndarray]] = {}
        common = rng.normal(size=self.users)
        for name, chance in (("A", self.chance), ("B", self.other)):
            own = rng.normal(size=self.users)
            for _ in range(self.runs):
                if not self.same_users:
                    common, own = rng.normal(size=(2, self.users))
                place = 0.7 * common + 0.6 * own + 0.387 * rng.normal(size=self.users)
                place += chance * rng.normal()
                full = np.floor(ITEMS ** ndtr(place)).astype(np.int64).clip(1, ITEMS)
                drawn = draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=rng)
                found.setdefault(name, []).append(drawn)
        return found

    def findings(self, size: int, promise: str = PROMISE) -> list[Finding]:
        """Return how often a verdict was given."""
        rng = np.random.default_rng(11)
        won = np.zeros(len(METRICS))
        design = {"items": ITEMS, "sampled": SAMPLED, "candidates": "unseen"}
        for _ in range(size):
            with warnings.catch_warnings():
                # A run that is moved far may be unlike the bank, and then has bounds.
                warnings.simplefilter("ignore", UnsampleWarning)
                found = compare(self.models(rng), metrics=METRICS, **design)
            won += [found.winner(metric) is not None for metric in METRICS]
        # What 5 % may show in so many trials.
        limit = float(binom.ppf(0.999, size, 0.05)) / size
        return [
            Finding(promise, f"{self.setting}, {metric}", "verdicts", share, limit, False, size)
            for metric, share in zip(METRICS, (won / size).tolist(), strict=True)
        ]


WORLDS = [
    World(runs=2),
    World(runs=2, same_users=False),
    World(runs=3, chance=0.15, other=0.15),
    World(runs=5, chance=0.05, other=0.05),
    World(runs=10),
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.setting)
def test_equal_models_seldom_get_a_verdict(world, ledger):
    often = OFTEN if world.runs < 10 else OFTEN // 3
    keep(ledger(world.findings(simulations(often))))


def test_runs_ignored_break_the_promise(monkeypatch, ledger):
    right = Law.averaged

    def wrong(law, runs):
        # The mean of the runs, as if they were all that there is.
        return replace(right(law, runs), runs=())

    monkeypatch.setattr(Law, "averaged", wrong)
    findings = World(runs=3).findings(60)
    ledger(findings, planted="the spread of runs is ignored")
    with pytest.raises(BrokenPromiseError, match="verdicts"):
        keep(findings)


def test_few_runs_taken_for_many_break_the_promise(monkeypatch, ledger):
    right = Law.averaged

    def wrong(law, runs):
        # The spread counts, but as if it were known.
        found = right(law, runs)
        return replace(found, runs=tuple((square, 1e4) for square, _ in found.runs))

    monkeypatch.setattr(Law, "averaged", wrong)
    findings = World(runs=2, chance=0.15, other=0.0, users=1000).findings(200)
    ledger(findings, planted="the spread of two runs is taken for that of many")
    with pytest.raises(BrokenPromiseError, match="verdicts"):
        keep(findings)
