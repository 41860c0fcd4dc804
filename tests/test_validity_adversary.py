"""Promises against an adversary: laws, sizes, users and designs at random, through every door."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from unsample.confidence import SHAPES, Certainty, OverBins, Shape
from unsample.confidence import _strata as strata

import unsample
from tests import adversary
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.errors import UnsampleWarning
from unsample.evidence import RankCounts
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse

pytestmark = pytest.mark.validity

#: Trials of a kind, and how many of them an interval at 95 % must hold.
OFTEN, LIMIT = 400, 0.93


def _findings(kind: str, size: int) -> list[Finding]:
    found = adversary.trials(kind, size)
    keeping = [each for each in found if each.keeps]
    breaking = [each for each in found if not each.keeps]

    def finding(promise: str, held: list[bool], limit: float = LIMIT) -> list[Finding]:
        if not held:
            return []
        return [Finding(promise, kind, "coverage", float(np.mean(held)), limit, True, len(held))]

    held = [each.covered or each.warned for each in breaking]

    slowest = max(each.seconds for each in found)
    promise = "every question has an answer in a finite time"
    most = adversary.MOST_SECONDS
    return [
        *finding("bounds hold for any law", [each.bounded for each in found]),
        *finding("intervals hold for laws of the shape", [each.covered for each in keeping]),
        # No promise: no sample sees all that breaks an assumption. It is written down.
        *finding("measured: intervals hold for laws of other shapes, or warn", held, 0.0),
        Finding(promise, kind, "slowest, s", slowest, most, False, len(found)),
    ]


@pytest.mark.parametrize("kind", adversary.KINDS)
def test_promises_hold_against_an_adversary(kind, ledger):
    keep(ledger(_findings(kind, simulations(OFTEN))))


def test_a_shape_that_holds_for_rank_1_too_breaks_the_promise(monkeypatch, ledger):
    monkeypatch.setitem(SHAPES, "power", Shape(1.5, 0.5))
    findings = ledger(_findings("spikes", 150), planted="the shape holds for rank 1, too")
    with pytest.raises(BrokenPromiseError, match="laws of the shape"):
        keep(findings)


# -- needles beside K -----------------------------------------------------------------------------


def _beside(size: int) -> list[Finding]:
    """Return how often bounds hold where all targets are at K, or just beyond it."""
    rng, held = np.random.default_rng(6), []
    for _ in range(size):
        k = int(rng.integers(80, 1000))
        rank = k + int(rng.integers(0, 2))
        ranks = draw_sampled_ranks([rank] * 20_000, items=3706, sampled=499, rng=rng)
        counts = RankCounts.from_ranks(ranks, items=3706, sampled=499)
        certainty = Certainty.of(counts, [k], SHAPES["power"])
        low, high = certainty.bounds(parse(f"Recall@{k}"))
        inside = low - 1e-9 <= float(rank <= k) <= high + 1e-9
        held.append(certainty.fits(SHAPES["none"]) and inside)
    promise = "bounds hold a needle beside K"
    return [Finding(promise, "20,000 users", "coverage", float(np.mean(held)), LIMIT, True, size)]


def test_bounds_hold_a_needle_beside_k(ledger):
    keep(ledger(_beside(simulations(200))))


def test_bins_taken_as_even_break_the_promise(monkeypatch, ledger):
    monkeypatch.setattr(OverBins, "hull", lambda self, _: (self.mean, self.mean))
    findings = ledger(_beside(40), planted="P(R) is even inside a bin")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)


# -- ranks that go with the size of the catalogue -------------------------------------------------


def _markets(size: int) -> list[Finding]:
    """Return how often intervals hold where R/N has one law, in catalogues of 500 and 5,000."""
    rng = np.random.default_rng(7)
    places, found = np.quantile(rng.beta(0.3, 3.0, 10**6), (np.arange(10**5) + 0.5) / 10**5), []
    truth = float(np.mean([np.ceil(items * places).clip(1) <= 10 for items in (500, 5000)]))
    for _ in range(size):
        items = rng.choice([500, 5000], size=4000)
        full = np.ceil(items * rng.beta(0.3, 3.0, size=4000)).astype(int).clip(1)
        ranks = draw_sampled_ranks(full, items=items, sampled=99, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = unsample.estimate(
                ranks,
                items=items,
                sampled=99,
                candidates="unseen",
                metrics="Recall@10",
                method="naive",
            )
        found.append(
            (*result["Recall@10"].interval(kind="guaranteed"), *result["Recall@10"].bounds())
        )
    low, high, least, most = np.transpose(found)
    promise = "intervals hold where ranks go with sizes"
    return [
        coverage(promise, "interval", low, high, truth, LIMIT),
        coverage(promise, "bounds", least, most, truth, LIMIT),
    ]


def test_intervals_hold_where_ranks_go_with_sizes(ledger):
    keep(ledger(_markets(simulations(200))))


def test_sizes_taken_as_independent_break_the_promise(monkeypatch, ledger):
    monkeypatch.setattr(strata, "size_ranges", np.zeros_like)
    monkeypatch.setattr(OverBins, "hull", lambda self, _: (self.mean, self.mean))
    findings = ledger(_markets(20), planted="ranks have nothing to do with sizes")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)
