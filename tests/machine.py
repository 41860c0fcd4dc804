"""Programs that some tests need and pip does not bring; what is skipped without them is said."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

#: Program -> what it may be called, and the line that installs it.
PROGRAMS = {
    "Chromium": (
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
        "apt-get install chromium",
    ),
    "Java": (("java",), "apt-get install default-jre-headless"),
    "Node": (("node", "nodejs"), "apt-get install nodejs"),
}
_REASON = re.compile(r"needs (\w+), which is not installed; (apt-get install .*)")


def need_program(name: str) -> str:
    """Return the path of a program; skip without it, and fail where that cannot be meant: in CI."""
    names, line = PROGRAMS[name]
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is not None:
        return found
    reason = f"needs {name}, which is not installed; {line}"
    if os.environ.get("CI"):
        pytest.fail(f"CI runs every test; this one {reason}")
    pytest.skip(reason)


def wants(reasons: Iterable[str]) -> list[str]:
    """Return a line for each program that tests were skipped for want of."""
    found = Counter(match.groups() for match in map(_REASON.search, reasons) if match)
    return [
        f"{number} tests were not run for want of {program}: {line}"
        for (program, line), number in sorted(found.items())
    ]


class Wants:
    """Says at the end of a run what was skipped for want of a program."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        yield  # what others say comes first: the last lines are those that are read
        skipped = terminalreporter.stats.get("skipped", [])
        told = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
        for line in wants(told):
            terminalreporter.write_line(line, yellow=True, bold=True)
