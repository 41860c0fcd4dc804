"""Statistical promises: what is measured, the limit it must keep, and the report of all of them.

One function, `keep`, judges every promise. Tests with planted errors hand it what a wrong program
finds, and it must refuse; so a promise that is kept means something. Findings travel with the
reports of tests to the process that writes `Report`, however many workers there are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest

from unsample._files import write_atomically

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


# -- the report -----------------------------------------------------------------------------------


@pytest.fixture
def ledger(record_property):
    """Return a function that writes findings down for the report, and hands them back."""

    def write(findings: Sequence[Finding], *, planted: str = "") -> list[Finding]:
        for finding in findings:
            record_property(_PROPERTY, json.dumps(asdict(finding) | {"planted": planted}))
        return list(findings)

    return write


class Report:
    """Collects findings as tests end, and writes them when all have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.rows += [
                json.loads(text) for key, text in report.user_properties if key == _PROPERTY
            ]

    def pytest_sessionfinish(self) -> None:
        if not self.rows:
            return
        self.rows.sort(key=lambda row: (row["planted"], row["promise"], row["setting"]))
        for row in self.rows:
            fields = {key: value for key, value in row.items() if key != "planted"}
            row["all"] = Finding(**fields).kept
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"share": SHARE, "findings": self.rows}, indent=1, allow_nan=False)
        for name, content in (("report.json", text), ("report.md", markdown(self.rows))):
            write_atomically(
                self.folder / name, lambda file, content=content: file.write(content.encode())
            )


def markdown(rows: Sequence[dict]) -> str:
    """Return the promises by their worst figure, all figures, and the planted errors."""
    true = [row for row in rows if not row["planted"]]
    planted = [row for row in rows if row["planted"]]
    lines = ["# Statistical promises", ""]
    if SHARE != 1:
        lines += [f"Run with {SHARE:g} of the simulations: to try the tier, not to judge by.", ""]
    lines += ["| promise | figures | kept | nearest to its limit |", "| --- | --- | --- | --- |"]
    for promise in dict.fromkeys(row["promise"] for row in true):
        mine = [row for row in true if row["promise"] == promise]
        worst = min(mine, key=_room)
        kept = sum(row["all"] for row in mine)
        lines.append(f"| {promise} | {len(mine)} | {kept} | {_words(worst)} |")
    lines += ["", "## Planted errors", "", "| error | figures that refuse it | the clearest |"]
    lines.append("| --- | --- | --- |")
    for error in dict.fromkeys(row["planted"] for row in planted):
        mine = [row for row in planted if row["planted"] == error]
        refuse = sum(not row["all"] for row in mine)
        lines.append(f"| {error} | {refuse} of {len(mine)} | {_words(min(mine, key=_room))} |")
    lines += ["", "## All figures", "", "| promise | figure |", "| --- | --- |"]
    lines += [f"| {row['promise']} | {_words(row)} |" for row in true]
    return "\n".join(lines) + "\n"


def _room(row: dict) -> float:
    """Return how far a figure is from breaking its promise, as a share of the limit."""
    room = row["value"] - row["limit"] if row["at_least"] else row["limit"] - row["value"]
    return room / max(abs(row["limit"]), 1e-12)


def _words(row: dict) -> str:
    rule = "≥" if row["at_least"] else "≤"
    return (
        f"{row['measure']} {row['value']:.4g} ({rule} {row['limit']:.4g}), {row['setting']}, "
        f"{row['simulations']} simulations"
    )
