"""Promises about users: means over them cover, and equal models get no verdict."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.bounds import DirectMean
from unsample.counts import RankCounts, Targets
from unsample.metrics import parse_all
from unsample.questions.estimate.exact import UserValues
from unsample.questions.estimate.result import Estimate
from unsample.sampling import draw_sampled_ranks
from unsample.uncertainty import quantile

pytestmark = [
    pytest.mark.validity,
    pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning"),
]

ITEMS, SAMPLED, USERS = 2000, 99, 600


@dataclass(frozen=True)
class Crowd:
    """Users with one to ``most`` targets, whose ranks share a part of what decides them.

    ``shared`` is that part: 0 for independent targets, 1 for targets that are all alike.
    """

    most: int
    shared: float

    def draw(self, rng: np.random.Generator, users: int = USERS) -> tuple[np.ndarray, np.ndarray]:
        """Return whose each target is, and its global rank."""
        from scipy.special import betaincinv, ndtr

        # Users with many targets have better ranks, so that it matters how targets are weighed.
        count = rng.integers(1, self.most + 1, users)
        user = np.repeat(np.arange(users), count)
        own, common = rng.normal(size=len(user)), rng.normal(size=users)[user]
        level = ndtr(np.sqrt(self.shared) * common + np.sqrt(1.0 - self.shared) * own)
        share = betaincinv(0.6 - 0.01 * count[user], 2.0, level)
        return user, np.ceil(ITEMS * share).astype(np.int64).clip(1, ITEMS)

    def truth(self, metrics: list[str], users: int = 400_000) -> dict[str, float]:
        """Return the metrics of very many such users."""
        user, ranks = self.draw(np.random.default_rng(1), users)
        # Ranks of one user may be equal here, which lists do not have: each counts as it is.
        found = Targets(ranks, ITEMS, ITEMS - 1, users=user, replacement=False)
        means = UserValues.of(found, parse_all(metrics)).means
        return dict(zip(metrics, means.tolist(), strict=True))

    def __str__(self) -> str:
        return f"1 to {self.most} targets, {self.shared:.0%} shared"


CROWDS = [Crowd(1, 0.0), Crowd(3, 0.5), Crowd(20, 0.0), Crowd(20, 1.0)]


def _auc_interval(ranks, items, sampled, users=None, **options):
    """Return the interval of the AUC as `unsample.estimate` has it, without all the rest."""
    counts = RankCounts.from_ranks(ranks, items=items, sampled=sampled, users=users)
    (auc,) = parse_all("AUC")
    direct = DirectMean.of(auc, counts.for_metric(auc))
    reach = quantile(0.95, direct.counts.effective_users - 1.0) * direct.error(**options)
    return direct.value - reach, min(direct.value + reach, 1.0)


def test_this_is_the_interval_that_estimates_have():
    user, full = Crowd(3, 0.5).draw(np.random.default_rng(0))
    ranks = draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=0)
    found = unsample.estimate(ranks, items=ITEMS, sampled=SAMPLED, users=user, metrics="AUC")
    assert found["AUC"].interval() == pytest.approx(
        _auc_interval(ranks, ITEMS, SAMPLED, users=user)
    )


def _means(crowd: Crowd, size: int, *, honest: bool = True) -> list[Finding]:
    """Return the coverage of the AUC, which is a plain mean and quickly found."""
    rng, rows = np.random.default_rng(5), []
    for _ in range(size):
        user, full = crowd.draw(rng)
        ranks = draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=rng)
        told = user if honest else np.arange(len(user))
        rows.append(_auc_interval(ranks, ITEMS, SAMPLED, users=told))
    truth = crowd.truth(["AUC"], 600_000)["AUC"]
    return [coverage("the AUC of users is covered", str(crowd), *np.transpose(rows), truth, 0.93)]


@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_the_auc_of_users_is_covered(crowd, ledger):
    keep(ledger(_means(crowd, simulations(400))))


def test_targets_taken_for_users_fail_the_promise_of_the_auc(ledger):
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_means(Crowd(20, 1.0), simulations(200), honest=False)))


def _own_catalogues(size: int, sampled_as: int = SAMPLED) -> list[Finding]:
    """Return the coverage of the AUC where users have catalogues that go with their ranks."""
    rng, rows = np.random.default_rng(6), []
    for _ in range(size):
        items = rng.integers(200, 4000, USERS)
        share = rng.beta(0.6, 2.0 + items / 1000.0)
        full = np.ceil(items * share).astype(np.int64).clip(1, items)
        ranks = draw_sampled_ranks(full, items=items, sampled=SAMPLED, rng=rng)
        truth = (1.0 - (full - 1) / (items - 1)).mean()
        rows.append(np.array(_auc_interval(ranks, items, sampled_as, population=False)) - truth)
    promise = "the AUC of these users is covered"
    return [coverage(promise, "own catalogues", *np.transpose(rows), 0.0, 0.93)]


def test_the_auc_of_users_with_catalogues_of_their_own_is_covered(ledger):
    keep(ledger(_own_catalogues(simulations(400))))
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_own_catalogues(simulations(100), sampled_as=SAMPLED + 3)))


def _verdicts(crowd: Crowd, size: int, *, honest: bool = True) -> list[Finding]:
    """Return how often two models of the same crowd get a verdict.

    Of the AUC nothing is hidden by sampling, so that probability alone decides.
    """
    rng = np.random.default_rng(11)
    wrong = {"AUC": 0}
    for _ in range(size):
        models = {}
        for name in "AB":
            user, full = crowd.draw(np.random.default_rng(rng.integers(2**40)))
            ranks = draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=rng)
            told = user if honest else np.arange(len(user))
            models[name] = Targets(ranks, ITEMS, SAMPLED, users=told)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = unsample.compare(models, metrics=list(wrong))
        for name in wrong:
            wrong[name] += found.winner(name) is not None
    return [
        Finding(
            "equal models get no verdict", f"{crowd}, {name}", "share of verdicts",
            count / size, 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / size), False, size,
        )
        for name, count in wrong.items()
    ]  # fmt: skip


@pytest.mark.parametrize("crowd", [Crowd(3, 0.5), Crowd(20, 1.0)], ids=str)
def test_equal_models_get_no_verdict(crowd, ledger):
    keep(ledger(_verdicts(crowd, simulations(200))))


def test_verdicts_on_targets_taken_for_users_fail_the_promise(ledger):
    with pytest.raises(BrokenPromiseError, match="share of verdicts"):
        keep(ledger(_verdicts(Crowd(20, 1.0), simulations(60), honest=False)))


def _normal(entry: Estimate) -> tuple[float, float]:
    """Return the normal interval around a mean, which rare hits do not allow."""
    half = 1.96 * entry.like.error.population
    return entry.value - half, entry.value + half


def _rare(rate: float, users: int, size: int, *, honest: bool = True) -> list[Finding]:
    """Return the coverage of exact metrics where hits are rare or users few."""
    rng = np.random.default_rng(9)
    rows: dict[str, list[tuple[float, float]]] = {"HR@10": [], "NDCG@10": []}
    for _ in range(size):
        hit = rng.random(users) < rate
        ranks = np.where(hit, rng.integers(1, 11, users), 500)
        found = unsample.exact(ranks, items=1000, metrics=list(rows))
        for name, held in rows.items():
            entry = found[name]
            held.append(entry.interval() if honest else _normal(entry))
    mean = {"HR@10": rate, "NDCG@10": rate * float(np.mean(1.0 / np.log2(np.arange(2, 12))))}
    return [
        coverage("exact metrics of few or rare hits are covered",
                 f"{users} users, rate {rate:g}, {n}", *np.transpose(held), mean[n], 0.93)
        for n, held in rows.items()
    ]  # fmt: skip


@pytest.mark.parametrize(("rate", "users"), [(0.01, 100), (0.05, 100), (0.3, 20), (0.1, 1000)])
def test_exact_metrics_of_few_or_rare_hits_are_covered(rate, users, ledger):
    keep(ledger(_rare(rate, users, simulations(1000))))


def test_a_normal_interval_of_rare_hits_fails_the_promise(ledger):
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_rare(0.01, 100, simulations(200), honest=False)))


@pytest.mark.parametrize("users", [3, 20, 50])
def test_equal_models_of_few_users_get_no_verdict(users, ledger):
    rng, size = np.random.default_rng(12), simulations(600)
    wrong = dict.fromkeys(["NDCG@10", "AUC"], 0)
    for _ in range(size):
        models = {
            name: Targets(
                np.where(rng.random(users) < 0.3, rng.integers(1, 11, users),
                         rng.integers(11, 1001, users)),
                1000, 999, replacement=False,
            )
            for name in "AB"
        }  # fmt: skip
        found = unsample.compare(models, metrics=list(wrong))
        for name in wrong:
            wrong[name] += found.winner(name) is not None
    limit = 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / size)
    keep(
        ledger(
            [
                Finding(
                    "equal models of few users get no verdict",
                    f"{users} users, {name}",
                    "share of verdicts",
                    count / size,
                    limit,
                    False,
                    size,
                )
                for name, count in wrong.items()
            ]
        )
    )
