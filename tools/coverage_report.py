"""Print how much of the library the tests ran, and fail below 95 % of lines or 90 % of branches.

``make test COVER=1`` calls this after a run of the tests under coverage.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIRED = {"lines": 0.95, "branches": 0.90}


def main() -> None:
    """Combine what the processes of the tests wrote, and judge the sum."""
    coverage = [sys.executable, "-m", "coverage"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        for call in (["combine", "--quiet"], ["report", "--skip-covered"], ["json", "-qo", path]):
            subprocess.run([*coverage, *call], check=True)  # noqa: S603
        totals = json.loads(path.read_text(encoding="utf-8"))["totals"]
    shares = {
        "lines": totals["covered_lines"] / totals["num_statements"],
        "branches": totals["covered_branches"] / totals["num_branches"],
    }
    print(
        ", ".join(
            f"{shares[name]:.1%} of {name} (at least {REQUIRED[name]:.0%})" for name in REQUIRED
        )
    )
    if any(shares[name] < REQUIRED[name] for name in REQUIRED):
        sys.exit(1)


if __name__ == "__main__":
    main()
