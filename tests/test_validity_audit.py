"""Promises about `audit`: good negatives are not accused, bad ones are found out."""

from dataclasses import replace

import numpy as np
import pytest

import unsample
from tests.draws import DEFECTS, Sampler, audits
from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample.answers import _audit

pytestmark = pytest.mark.validity
CALM = "an audit of good negatives says something wrong in 5 of 100 cases at most"
GOOD = {
    "with replacement": Sampler(),
    "without": Sampler(replacement=False),
    "few lists": Sampler(lists=20, sampled=10, items=100),
    "nearly all items": Sampler(lists=60, sampled=80, items=100, replacement=False),
    "a large catalogue": Sampler(lists=100, sampled=20, items=20_000),
    "seen left out, with": Sampler(seen=True),
    "seen left out, without": Sampler(seen=True, replacement=False),
}


def _accused(name: str, size: int) -> list[Finding]:
    sampler = GOOD[name]
    wrong = [sampler.wrong(result) for result in audits(sampler, size, seed=7)]
    share = float(np.mean([bool(found) for found in wrong]))
    limit = 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / size)
    return [Finding(CALM, name, "share of wrong audits", share, limit, False, size)]


@pytest.mark.parametrize("name", GOOD)
def test_good_negatives_are_not_accused(name, ledger):
    keep(ledger(_accused(name, simulations(400 if "large" not in name else 150))))


def test_tests_that_are_not_corrected_fail_the_promise(ledger, monkeypatch):
    monkeypatch.setattr(_audit, "holm", list)
    with pytest.raises(BrokenPromiseError, match="wrong audits"):
        keep(ledger(_accused("without", simulations(150)), planted="no correction for many tests"))


def test_draws_without_replacement_taken_for_others_fail_the_promise(ledger, monkeypatch):
    """The variance of draws with replacement is far too large where nearly all items are drawn."""
    from unsample.confidence import _negatives

    right = _negatives.spread_of
    monkeypatch.setattr(
        _negatives, "spread_of", lambda sizes, candidates, _: 0.2 * right(sizes, candidates, True)
    )
    with pytest.raises(BrokenPromiseError, match="wrong audits"):
        keep(ledger(_accused("with replacement", simulations(60)), planted="a variance too small"))


@pytest.mark.parametrize("defect", DEFECTS)
def test_bad_negatives_are_found_out(defect, ledger):
    make, question, answer = DEFECTS[defect]
    size = simulations(100)
    rng = np.random.default_rng(3)
    found = [unsample.audit(**make(rng))[question].answer == answer for _ in range(size)]
    share = float(np.mean(found))
    promise = "audits find what is wrong"
    keep(ledger([Finding(promise, defect, "share found", share, 0.95, True, size)]))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("replacement", [True, False], ids=["with", "without"])
@pytest.mark.parametrize("seen", [True, False], ids=["unseen", "all"])
def test_intervals_hold_the_exponent_of_popularity(exponent, replacement, seen, ledger):
    sampler = Sampler(replacement=replacement, seen=seen, exponent=exponent)
    size = simulations(300)
    found = [result["popularity"] for result in audits(sampler, size, seed=11)]
    held = float(np.mean([each.low <= exponent <= each.high for each in found]))
    setting = f"exponent {exponent:g}, {'with' if replacement else 'without'}, seen {seen}"
    keep(
        ledger(
            [
                Finding(
                    "the interval of the exponent holds it",
                    setting,
                    "coverage",
                    held,
                    0.95 - 2.0 * np.sqrt(0.05 * 0.95 / size),
                    True,
                    size,
                )
            ]
        )
    )


@pytest.mark.parametrize("replacement", [True, False], ids=["with", "without"])
def test_a_law_that_is_right_is_not_refuted(replacement, ledger):
    size = simulations(300)
    sampler = replace(Sampler(seen=True, exponent=0.75), replacement=replacement)
    share = float(np.mean([held.law != "popularity" for held in audits(sampler, size, seed=5)]))
    limit = 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / size)
    promise = "popularity is not refuted where it is the law"
    setting = "with" if replacement else "without"
    keep(ledger([Finding(promise, setting, "share refuted", share, limit, False, size)]))


@pytest.mark.parametrize("replacement", [True, False], ids=["with", "without"])
def test_probabilities_that_are_right_are_not_contradicted(replacement, ledger):
    size, wrong = simulations(300), []
    sampler = Sampler(seen=True, exponent=0.75, replacement=replacement)
    rng = np.random.default_rng(9)
    for _ in range(size):
        given = sampler.draw(rng)
        chance = given.pop("popularity") ** 0.75
        result = unsample.audit(**given, probabilities=chance / chance.sum())
        wrong.append(result["probabilities"].answer == "contradicted")
    limit = 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / size)
    promise = "probabilities that are right are not contradicted"
    setting = "with" if replacement else "without"
    share = float(np.mean(wrong))
    keep(ledger([Finding(promise, setting, "share contradicted", share, limit, False, size)]))
