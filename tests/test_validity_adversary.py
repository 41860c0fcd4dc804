"""Promises against an adversary: distributions, sizes, users and designs at random."""

from __future__ import annotations

import numpy as np
import pytest

from tests import adversary
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.bounds import Bounds, _bounds
from unsample.bounds import _linear_program as _program
from unsample.counts import RankCounts, _strata
from unsample.metrics import parse
from unsample.sampling import SamplingModel, draw_sampled_ranks

pytestmark = pytest.mark.validity

#: Trials of a kind, and how many of them limits at 95 % must hold.
OFTEN, LIMIT = 100, 0.93


def _findings(kind: str, size: int) -> list[Finding]:
    found = adversary.trials(kind, size)
    held = float(np.mean([each.held for each in found]))
    slowest = max(each.seconds for each in found)
    promise = "every question has an answer in a finite time"
    return [
        Finding(
            "bounds and means hold for any distribution", kind, "coverage", held, LIMIT, True, size
        ),
        Finding(promise, kind, "slowest, s", slowest, adversary.MAX_SECONDS, False, size),
    ]


@pytest.mark.parametrize("kind", adversary.KINDS)
def test_promises_hold_against_an_adversary(kind, ledger):
    keep(ledger(_findings(kind, simulations(OFTEN))))


def test_shares_taken_as_certain_break_the_promise(monkeypatch, ledger):
    def certain(low, high, targets, part):
        return low, high

    monkeypatch.setattr(_program, "clopper_pearson", certain)
    findings = ledger(_findings("zipf", 60), planted="shares of targets have no error")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)


# -- needles beside K -----------------------------------------------------------------------------


def _beside(size: int) -> list[Finding]:
    """Return how often bounds hold where all targets are at K, or just beyond it."""
    rng, held = np.random.default_rng(6), []
    for _ in range(size):
        k = int(rng.integers(80, 1000))
        rank = k + int(rng.integers(0, 2))
        ranks = draw_sampled_ranks([rank] * 20_000, items=3706, sampled=499, rng=rng)
        bounds = Bounds.of(RankCounts.from_ranks(ranks, items=3706, sampled=499), [k])
        low, high = bounds.of_metric(parse(f"Recall@{k}"))
        held.append(bounds.feasible and low - 1e-9 <= float(rank <= k) <= high + 1e-9)
    promise = "bounds hold a needle beside K"
    return [Finding(promise, "20,000 users", "coverage", float(np.mean(held)), LIMIT, True, size)]


def test_bounds_hold_a_needle_beside_k(ledger):
    keep(ledger(_beside(simulations(100))))


def _middle(function, grid):
    """Return what is neither least nor greatest in a bin."""
    return [function((grid.low + grid.high) // 2)] * 2


def test_bins_taken_as_points_break_the_promise(monkeypatch, ledger):
    monkeypatch.setattr(_bounds, "extremes", _middle)
    findings = ledger(_beside(40), planted="P(R) sits in the middle of a bin")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)


# -- ranks that go with the size of the catalogue -------------------------------------------------


def _markets(size: int) -> list[Finding]:
    """Return how often bounds hold where R/N has one distribution in two sizes of catalogues."""
    rng = np.random.default_rng(7)
    places, found = np.quantile(rng.beta(0.3, 3.0, 10**6), (np.arange(10**5) + 0.5) / 10**5), []
    truth = float(np.mean([np.ceil(items * places).clip(1) <= 50 for items in (500, 5000)]))
    for _ in range(size):
        items = rng.choice([500, 5000], size=4000)
        full = np.ceil(items * rng.beta(0.3, 3.0, size=4000)).astype(int).clip(1)
        ranks = draw_sampled_ranks(full, items=items, sampled=99, rng=rng)
        counts = RankCounts.from_ranks(ranks, items=items, sampled=99)
        found.append(Bounds.of(counts, [50]).of_metric(parse("Recall@50")))
    promise = "bounds hold where ranks go with sizes"
    return [coverage(promise, "two sizes", *np.transpose(found), truth, LIMIT)]


def test_bounds_hold_where_ranks_go_with_sizes(ledger):
    keep(ledger(_markets(simulations(100))))


def test_sizes_taken_as_one_break_the_promise(monkeypatch, ledger):
    monkeypatch.setattr(_strata, "size_ranges", np.zeros_like)
    monkeypatch.setattr(_bounds, "SamplingModel", lambda _, *rest: SamplingModel(500, *rest))
    findings = ledger(_markets(20), planted="all catalogues are small")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)
