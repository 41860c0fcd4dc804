"""Promises about users with several targets: intervals cover, and equal models get no verdict."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.evidence import Targets
from unsample.law import draw_sampled_ranks

pytestmark = [
    pytest.mark.validity,
    pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning"),
]

ITEMS, SAMPLED, USERS = 2000, 99, 600
METRICS = ["Recall@50", "Recall@100", "NDCG@100", "Precision@100", "AUC"]


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

    def truth(self) -> dict[str, float]:
        """Return the metrics of very many such users."""
        user, ranks = self.draw(np.random.default_rng(1), 400_000)
        # A catalogue this large makes equal ranks of one user as rare as lists have them.
        found = Targets(ranks, ITEMS, ITEMS - 1, users=user, replacement=False)
        from unsample.answers._exact import UserValues
        from unsample.metrics import parse_all

        means = UserValues.of(found, parse_all(METRICS)).means
        return dict(zip(METRICS, means.tolist(), strict=True))

    def __str__(self) -> str:
        return f"1 to {self.most} targets, {self.shared:.0%} shared"


CROWDS = [Crowd(1, 0.0)] + [Crowd(most, shared) for most in (3, 20) for shared in (0.0, 0.5, 1.0)]


def _intervals(crowd: Crowd, size: int, *, honest: bool = True) -> dict[str, np.ndarray]:
    """Return intervals by metric, one row for each set of users; who is not honest tells none."""
    rng = np.random.default_rng(7)
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in METRICS}
    for _ in range(size):
        user, full = crowd.draw(rng)
        ranks = draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=rng)
        told = user if honest else np.arange(len(user))
        result = unsample.estimate(
            ranks, items=ITEMS, sampled=SAMPLED, users=told, metrics=METRICS, method="mle",
            candidates="unseen", resamples=0,
        )  # fmt: skip
        for name in METRICS:
            rows[name].append(result[name].interval())
    return {name: np.array(found) for name, found in rows.items()}


def _coverages(crowd: Crowd, size: int, **how: bool) -> list[Finding]:
    truth, found = crowd.truth(), _intervals(crowd, size, **how)
    return [
        coverage(
            "intervals hold the metrics of users", f"{crowd}, {name}", *found[name].T, truth[name],
            0.93,
        )
        for name in METRICS
    ]  # fmt: skip


@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_intervals_hold_the_metrics_of_users(crowd, ledger):
    keep(ledger(_coverages(crowd, simulations(400))))


def test_targets_taken_for_users_fail_the_promise(ledger):
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_coverages(Crowd(20, 1.0), simulations(60), honest=False)))


def _verdicts(crowd: Crowd, size: int, *, honest: bool = True) -> list[Finding]:
    """Return how often two models of the same crowd get a verdict."""
    rng = np.random.default_rng(11)
    wrong = dict.fromkeys(METRICS, 0)
    for _ in range(size):
        models = {}
        for name in "AB":
            user, full = crowd.draw(np.random.default_rng(rng.integers(2**40)))
            ranks = draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=rng)
            told = user if honest else np.arange(len(user))
            models[name] = Targets(ranks, ITEMS, SAMPLED, users=told)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = unsample.compare(models, metrics=METRICS, method="mle", candidates="unseen")
        for name in METRICS:
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
