"""Promises about `audit`: good negatives are not accused, bad ones are found out."""

import numpy as np
import pytest

import unsample
from tests.draws import DEFECTS, Sampler, audits
from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample.questions.audit import ask as _audit
from unsample.questions.audit import uniformity_tests as _lists

pytestmark = pytest.mark.validity
CALM = "an audit of good negatives says something wrong in 5 of 100 cases at most"
GOOD = {
    "with replacement": Sampler(),
    "without": Sampler(replacement=False),
    "few lists": Sampler(lists=20, sampled=10, items=100),
    "three lists": Sampler(lists=3, sampled=5, items=13),
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
    monkeypatch.setattr(_audit, "holm", lambda found: [p / len(found) for p in found])
    with pytest.raises(BrokenPromiseError, match="wrong audits"):
        keep(ledger(_accused("without", 150), planted="corrected the wrong way"))


def test_a_variance_that_is_too_small_fails_the_promise(ledger, monkeypatch):
    right = _lists.two_sided

    def narrower(value, *, mean, variance, third):
        return right(value, mean=mean, variance=0.2 * variance, third=third)

    monkeypatch.setattr(_lists, "two_sided", narrower)
    with pytest.raises(BrokenPromiseError, match="wrong audits"):
        keep(ledger(_accused("with replacement", 60), planted="a variance too small"))


@pytest.mark.parametrize("defect", DEFECTS)
def test_bad_negatives_are_found_out(defect, ledger):
    make, question, answer = DEFECTS[defect]
    size = simulations(100)
    rng = np.random.default_rng(3)
    found = [unsample.audit(**make(rng))[question].answer == answer for _ in range(size)]
    share = float(np.mean(found))
    promise = "audits find what is wrong"
    keep(ledger([Finding(promise, defect, "share found", share, 0.95, True, size)]))
