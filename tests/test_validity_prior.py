"""Promises of intervals and verdicts on data sets that had no part in learning the prior.

``benchmarks/calibration.py`` learns the prior anew without each family of data sets and kind of
models, chooses its factors without them, and judges the rank sets that were left out, those with a
metric of 0 too. Rank sets have no users, so that two models of a data set err apart.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from tests.promises import SHARE, BrokenPromiseError, Finding, keep

pytestmark = pytest.mark.validity

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "calibration.py"
HOLD = "95 % intervals hold on families of data sets and kinds of models left out"
APART = "90 % intervals of differences hold on families and kinds of models left out"
RIGHT = "verdicts on two models are right on families and kinds of models left out"
#: What intervals must hold in kinds with many rank sets. Repeated choices put many targets first,
#: which no sample shows: among all items it is not known whether they do.
LIMITS = {
    kind: dict.fromkeys(["NDCG@10", "Recall@10", "MRR@100"], limit)
    for kind, limit in {"unseen": 0.93, "all": 0.9, "repeats": 0.93, "graph": 0.93}.items()
}
#: Many of those Recall@1 that are 0 count as misses, and Recall@100 chose no factor.
SHOWN = ("Recall@1", "Recall@100")
#: Kinds with fewer rank sets are shown with what as many may show by chance.
MANY = 50


@pytest.fixture(scope="module")
def figures(tmp_path_factory) -> list[dict]:
    """Return the figures of the script; a part of the families where fewer trials are asked for."""
    path = tmp_path_factory.mktemp("calibration") / "figures.json"
    some = ["--datasets", "ml-100k", "steam-200k"] if SHARE < 1 else []
    call = [sys.executable, SCRIPT, "--workers", "2", "--sampled", "99", "--json", path, *some]
    subprocess.run(call, check=True, capture_output=True)
    return json.loads(path.read_text(encoding="utf-8"))


def _held(figures: list[dict], *, width: float = 1.0) -> list[Finding]:
    """Return how often errors lie within intervals that are ``width`` times as wide."""
    found = []
    for each in figures:
        sets = len(each["reached"])
        limit = LIMITS[each["kind"]].get(each["metric"], 0.0)
        if sets < MANY:
            limit = min(limit, float(binom.ppf(0.01, sets, limit)) / sets)
        share = float(np.mean(np.array(each["reached"]) <= width))
        where = f"{each['kind']}, {each['metric']}, {each['zeros']} of {sets} are 0"
        found.append(Finding(HOLD, where, "coverage", share, limit, True, sets))
    return found


def _pairs_held(figures: list[dict]) -> list[Finding]:
    """Return how often intervals of differences hold."""
    return [
        Finding(
            APART,
            f"{each['kind']}, {each['metric']}",
            "differences held",
            each["pairs held"],
            0.87 if each["pairs"] >= MANY else 0.0,
            True,
            each["pairs"],
        )
        for each in figures
        if each["pairs"] and each["metric"] not in SHOWN
    ]


def _right(figures: list[dict]) -> list[Finding]:
    """Return how many verdicts are right."""
    found = []
    for each in (figure for figure in figures if figure["called"]):
        called = each["called"]
        # What 95 % may show in a few verdicts.
        limit = 0.95 if called >= MANY else float(binom.ppf(0.01, called, 0.95)) / called
        where = f"{each['kind']}, {each['metric']}, {called} of {each['pairs']} pairs"
        found.append(Finding(RIGHT, where, "right", each["right"] / called, limit, True, called))
    return found


def test_intervals_hold_on_families_left_out(figures, ledger):
    keep(ledger(_held(figures)))


def test_differences_hold_on_families_left_out(figures, ledger):
    keep(ledger(_pairs_held(figures)))


def test_verdicts_are_right_on_families_left_out(figures, ledger):
    keep(ledger(_right(figures)))


def test_intervals_of_half_the_width_break_the_promise(figures, ledger):
    findings = ledger(_held(figures, width=0.5), planted="intervals half as wide")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(findings)


def test_verdicts_by_chance_break_the_promise(figures, ledger):
    """Every fourth verdict is turned round."""
    turned = [each | {"right": round(0.75 * each["right"])} for each in figures]
    findings = ledger(_right(turned), planted="every fourth verdict is turned round")
    with pytest.raises(BrokenPromiseError, match="right"):
        keep(findings)
