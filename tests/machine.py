"""Programs that some tests need and pip does not bring."""

from __future__ import annotations

import os
import shutil

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
