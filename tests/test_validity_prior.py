"""Promises of intervals and verdicts on data sets that had no part in learning the prior.

``benchmarks/calibration.py`` learns the prior anew without each family of data sets and kind of
models, chooses its factors without them, and judges the rank sets that were left out.
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
RIGHT = "verdicts on two models are right on families and kinds of models left out"


@pytest.fixture(scope="module")
def figures(tmp_path_factory) -> list[dict]:
    """Return the figures of the script; a part of the families where fewer trials are asked for."""
    path = tmp_path_factory.mktemp("calibration") / "figures.json"
    some = ["--datasets", "ml-100k", "steam-200k"] if SHARE < 1 else []
    call = [sys.executable, SCRIPT, "--workers", "1", "--json", path, *some]
    subprocess.run(call, check=True, capture_output=True)
    return json.loads(path.read_text(encoding="utf-8"))


def _held(figures: list[dict], *, width: float = 1.0) -> list[Finding]:
    """Return how often errors lie within intervals that are ``width`` times as wide."""
    return [
        Finding(
            HOLD,
            f"{each['kind']}, {each['metric']}",
            "coverage",
            float(np.mean(np.array(each["reached"]) <= width)),
            # What 95 % may show in so few sets; kinds with many must hold 93 %.
            min(0.93, float(binom.ppf(0.01, len(each["reached"]), 0.95)) / len(each["reached"])),
            True,
            len(each["reached"]),
        )
        for each in figures
    ]


def test_intervals_hold_on_families_left_out(figures, ledger):
    keep(ledger(_held(figures)))


def test_verdicts_are_right_on_families_left_out(figures, ledger):
    found = [
        Finding(
            RIGHT,
            f"{each['kind']}, {each['metric']}, {each['pairs']} pairs",
            "wrong",
            1.0 - each["right"] / each["called"],
            0.05,
            False,
            each["called"],
        )
        for each in figures
        if each["called"]
    ]
    keep(ledger(found))


def test_intervals_of_half_the_width_break_the_promise(figures, ledger):
    findings = ledger(_held(figures, width=0.5), planted="intervals half as wide")
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(findings)
