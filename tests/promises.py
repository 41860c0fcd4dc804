"""Statistical promises: what is measured, the limit it must keep, and the table of all of them.

One function, `keep`, judges every promise. Tests with planted errors hand it what a wrong program
finds, and it must refuse; so a promise that is kept means something. Findings travel with the
reports of tests to the process that writes `Table`, however many workers there are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest

#: ``UNSAMPLE_SIMULATIONS=0.1`` runs a tenth of the simulations: to try the tier, not to judge by.
SHARE = float(os.environ.get("UNSAMPLE_SIMULATIONS", "1"))
_PROPERTY = "unsample promise"


class BrokenPromiseError(AssertionError):
    """A statistical promise is not kept."""


@dataclass(frozen=True)
class Finding:
    """One measured figure and the limit that the promise sets it."""

    promise: str
    setting: str
    measure: str
    value: float
    limit: float
    #: Whether the limit is the least allowed value; otherwise it is the greatest.
    at_least: bool
    simulations: int

    @property
    def kept(self) -> bool:
        """Return whether the figure keeps the promise; one that is not a number does not."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def room(self) -> float:
        """Return how far the figure is from breaking its promise, as a share of the limit."""
        room = self.value - self.limit if self.at_least else self.limit - self.value
        return room / max(abs(self.limit), 1e-12)

    def __str__(self) -> str:
        rule = "at least" if self.at_least else "at most"
        return (
            f"{self.promise} ({self.setting}): {self.measure} must be {rule} {self.limit:.4g}, "
            f"got {self.value:.4g} in {self.simulations} simulations"
        )


def simulations(full: int) -> int:
    """Return how many simulations to run where the tier runs ``full`` of them."""
    return max(2, round(full * SHARE))


def keep(findings: Sequence[Finding]) -> None:
    """Raise if any finding breaks its promise, or if there is none to judge by."""
    if not findings:
        raise BrokenPromiseError("nothing was measured")
    broken = [finding for finding in findings if not finding.kept]
    if broken:
        raise BrokenPromiseError("\n".join(map(str, broken)))


def coverage(
    promise: str, setting: str, low: np.ndarray, high: np.ndarray, truth: float, limit: float
) -> Finding:
    """Return how often the intervals hold the truth."""
    share = float(((low <= truth) & (truth <= high)).mean())
    return Finding(promise, setting, "coverage", share, limit, True, len(low))


def bias(
    promise: str, setting: str, values: np.ndarray, truth: float, *, allowed: float
) -> Finding:
    """Return the size of the bias, which must be ``allowed`` or within four standard errors."""
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    found = abs(float(values.mean()) - truth)
    return Finding(promise, setting, "bias", found, allowed + 4.0 * error, False, len(values))


# -- the table ------------------------------------------------------------------------------------


@pytest.fixture
def ledger(record_property):
    """Return a function that writes findings down for the table, and hands them back."""

    def write(findings: Sequence[Finding], *, planted: str = "") -> list[Finding]:
        for finding in findings:
            record_property(_PROPERTY, json.dumps([asdict(finding), planted]))
        return list(findings)

    return write


@dataclass(frozen=True)
class _Row:
    """A finding, the test that made it, and whether an error was planted in the program."""

    finding: Finding
    test: str
    planted: bool


class Table:
    """Collects findings as tests end; prints and writes them by promise when all have ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[_Row] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for key, text in report.user_properties:
            if key == _PROPERTY:
                fields, planted = json.loads(text)
                finding = Finding(**fields)
                # A test that passes although a promise is broken has planted an error.
                wrong = bool(planted) or (report.passed and not finding.kept)
                self.rows.append(_Row(finding, report.nodeid, wrong))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.rows:
            lines = markdown(self.rows)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            terminalreporter.section("promises")
            terminalreporter.write("\n".join([*lines, ""]))


def markdown(rows: Sequence[_Row]) -> list[str]:
    """Return the lines of the table: each promise, how often it was tried, and how it stands."""
    lines = [
        "| promise | trials | kept | nearest to its limit | planted errors found |",
        "| --- | --- | --- | --- | --- |",
    ]
    if SHARE != 1:
        lines = [f"With {SHARE:g} of the trials: to try the tier, not to judge by.", "", *lines]
    # An error may break one of the promises that its test looks at, and leave the others.
    broken = {row.test for row in rows if not row.finding.kept}
    missed = {row.test for row in rows if row.planted} - broken
    for promise in sorted({row.finding.promise for row in rows}):
        some = [row for row in rows if row.finding.promise == promise]
        true = [row.finding for row in some if not row.planted]
        # Several figures come from the same trials of a test.
        tests = {row.test for row in some if not row.planted}
        trials = sum(
            max(row.finding.simulations for row in some if row.test == test) for test in tests
        )
        found = {row.test for row in some if row.planted and not row.finding.kept}
        planted = found | {row.test for row in some if row.planted and row.test in missed}
        kept = f"{sum(each.kept for each in true)} of {len(true)}"
        errors = f"{len(found)} of {len(planted)}" if planted else "-"
        lines.append(f"| {promise} | {trials:,} | {kept} | {_nearest(true)} | {errors} |")
    return lines


def _nearest(findings: Sequence[Finding]) -> str:
    if not findings:
        return "-"
    worst = min(findings, key=lambda each: each.room)
    rule = "≥" if worst.at_least else "≤"
    return f"{worst.measure} {worst.value:.3g} ({rule} {worst.limit:.3g}): {worst.setting}"
