"""Promises of comparisons: equal models seldom get a verdict, whatever they are compared by."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta, binom

from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample import compare
from unsample.errors import UnsampleWarning
from unsample.questions.compare import data_sets as _across
from unsample.questions.compare import joint as _joint
from unsample.questions.compare.differences import Difference
from unsample.sampling import draw_sampled_ranks

pytestmark = pytest.mark.validity

METRICS = ("NDCG@10", "Recall@100", "AUC")


def sampled(full, items, sampled, rng):
    """Return sampled ranks, given the full ones as shares of the catalogue."""
    ranks = np.floor(full).astype(np.int64).clip(1, items)
    return draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=rng)


class World:
    """Two models that are equal but for chance: a trial compares them once."""

    metrics = METRICS
    measure = "verdicts"

    def said(self, found, metric):
        """Return whether something was said that is not so."""
        return found.winner(metric) is not None

    def findings(self, size):
        """Return how often it was said; the limit is what 5 % may show in so many trials."""
        rng, often = np.random.default_rng(self.seed), np.zeros(len(self.metrics))
        for _ in range(size):
            with warnings.catch_warnings():
                # What is moved far may be unlike the corpus, and then has bounds.
                warnings.simplefilter("ignore", UnsampleWarning)
                found = self.trial(rng)
            often += [self.said(found, metric) for metric in self.metrics]
        limit, told = float(binom.ppf(0.999, size, 0.05)) / size, self.measure
        return [
            Finding(self.promise, f"{self}, {metric}", told, share, limit, False, size)
            for metric, share in zip(self.metrics, (often / size).tolist(), strict=True)
        ]


def broken(findings, ledger, planted):
    """Hold that a planted error breaks the promise."""
    ledger(findings, planted=planted)
    with pytest.raises(BrokenPromiseError, match=findings[0].measure):
        keep(findings)


# -- several runs ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs(World):
    """Users whose target has a rank under each run; runs move all ranks of a model together."""

    promise = "models whose means over runs are equal get a verdict in at most 5 %"
    seed = 11
    runs: int = 3
    #: How far training moves a run, in standard deviations of users; of the second model, too.
    probability: float = 0.1
    other: float = 0.1
    users: int = 300
    #: Whether all runs have the same users.
    same_users: bool = True

    def __str__(self):
        users = "the same" if self.same_users else "other"
        moved = f"moved by {self.probability:g} and {self.other:g}"
        return f"{self.runs} runs, {moved}, {self.users} users, {users} in each run"

    def trial(self, rng):
        models = {"A": [], "B": []}
        common = rng.normal(size=self.users)
        for runs, probability in zip(models.values(), (self.probability, self.other), strict=True):
            own = rng.normal(size=self.users)
            for _ in range(self.runs):
                if not self.same_users:
                    common, own = rng.normal(size=(2, self.users))
                place = 0.7 * common + 0.6 * own + 0.387 * rng.normal(size=self.users)
                runs.append(
                    sampled(1000 ** ndtr(place + probability * rng.normal()), 1000, 99, rng)
                )
        design = {"items": 1000, "sampled": 99, "protocol": "unseen"}
        return compare(models, metrics=self.metrics, **design)


RUNS = [
    Runs(runs=2),
    Runs(runs=2, same_users=False),
    Runs(runs=3, probability=0.15, other=0.15),
    Runs(runs=5, probability=0.05, other=0.05),
    Runs(runs=10),
]


@pytest.mark.parametrize("world", RUNS, ids=str)
def test_equal_means_of_runs_seldom_get_a_verdict(world, ledger):
    keep(ledger(world.findings(simulations(120 if world.runs < 10 else 40))))


def test_runs_ignored_or_taken_for_many_break_the_promise(monkeypatch, ledger):
    right = _joint.spread_of
    # The mean of the runs, as if they were all that there is.
    monkeypatch.setattr(_joint, "spread_of", lambda *_: (0.0, 1.0))
    broken(Runs().findings(30), ledger, "the spread of runs is ignored")
    # The spread counts, but as if it were known.
    monkeypatch.setattr(_joint, "spread_of", lambda *given: (right(*given)[0], 1e4))
    findings = Runs(runs=2, probability=0.15, other=0.0, users=1000).findings(80)
    broken(findings, ledger, "the spread of two runs is taken for that of many")


# -- several data sets ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Sets(World):
    """Data sets on which one model is better by chance, as often as the other."""

    promise = "models with equal means on data sets like these get a verdict in at most 5 %"
    seed = 3
    metrics: ClassVar = METRICS[:2]
    sets: int = 3
    #: How far a data set favours one of the models, in standard deviations of users.
    probability: float = 0.2
    users: int = 400

    def __str__(self):
        return f"{self.sets} data sets, models moved by {self.probability:g}, {self.users} users"

    def trial(self, rng):
        found = {}
        for number in range(self.sets):
            items, ranks = int(rng.integers(600, 1500)), []
            common = rng.normal(size=self.users) + 0.2 * rng.normal()
            for _ in "AB":
                place = 0.8 * common + 0.6 * rng.normal(size=self.users)
                ranks.append(
                    sampled(items ** ndtr(place + self.probability * rng.normal()), items, 99, rng)
                )
            found[f"set {number}"] = {
                "model": np.repeat(["A", "B"], self.users),
                "user": np.tile(np.arange(self.users), 2),
                "rank": np.concatenate(ranks),
                "items": np.full(2 * self.users, items),
            }
        options = {"metrics": self.metrics, "protocol": "unseen", "sampled": 99}
        return compare(found, across="dataset", **options)


@pytest.mark.parametrize("world", [Sets(2), Sets(), Sets(probability=0.05), Sets(6)], ids=str)
def test_equal_means_over_data_sets_seldom_get_a_verdict(world, ledger):
    keep(ledger(world.findings(simulations(100))))


def test_the_spread_between_data_sets_ignored_breaks_the_promise(monkeypatch, ledger):
    # The mean on these data sets, taken for that on data sets like these.
    monkeypatch.setattr(_across, "spread_of", lambda *_: (0.0, 1.0))
    broken(Sets().findings(40), ledger, "the spread between data sets is ignored")


# -- the gate -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gated(Runs):
    """A model that is as good as the baseline, and a gate."""

    promise = "a gate stops a model that is as good as the baseline in at most 5 %"
    seed = 5
    measure = "stopped"

    def __str__(self):
        return f"{self.users} users, margin 0.02"

    def said(self, found, metric):
        return found.gate(metric, baseline="A", margin=0.02).failed


EQUAL = Gated(runs=1, probability=0.0, other=0.0)


def test_a_gate_seldom_stops_an_equal_model(ledger):
    keep(ledger(EQUAL.findings(simulations(200))))


def test_a_margin_of_the_wrong_sign_breaks_the_promise(monkeypatch, ledger):
    right = Difference.below
    monkeypatch.setattr(Difference, "below", lambda pair, value: right(pair, -4 * value))
    broken(EQUAL.findings(60), ledger, "a model has to be better by the margin")


# -- users with several targets -------------------------------------------------------------------


@dataclass(frozen=True)
class Clustered(World):
    """Two draws from one P(R): users are easy or hard, more so for one of the models."""

    promise = "equal models are called apart in at most 5 % of trials"
    seed = 0
    each: int = 1
    known: bool = True

    def __str__(self):
        return f"{self.each} targets"

    def trial(self, rng):
        parts = rng.normal(size=(300, 1, 1)), rng.normal(size=(300, 1, 2))
        place = np.sqrt(0.4) * sum(parts) + np.sqrt(0.2) * rng.normal(size=(300, self.each, 2))
        full = np.ceil(400 * beta.ppf(ndtr(place), 0.5, 3.0))
        ranks = {n: sampled(full[:, :, at].ravel(), 400, 60, rng) for at, n in enumerate("AB")}
        users = np.repeat(np.arange(300), self.each) if self.known else None
        design = {"items": 400, "sampled": 60, "users": users, "protocol": "unseen"}
        return compare(ranks, metrics=self.metrics, **design)


@pytest.mark.parametrize("world", [Clustered(1), Clustered(8)], ids=str)
def test_equal_models_seldom_get_a_verdict(world, ledger):
    keep(ledger(world.findings(simulations(100))))


def test_targets_of_a_user_taken_as_independent_break_the_promise(ledger):
    findings = Clustered(8, known=False).findings(simulations(150))
    broken(findings, ledger, "targets of a user taken as independent")
