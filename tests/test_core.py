"""The core alone, where the libraries of all extras are hidden; ``make core`` has none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "tests" / "core_alone"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_that_the_core_promises_works_without_extras():
    # What README shows runs in other tests too, and in `make core`.
    own = ["--noconftest", "-o", "addopts=", "-p", "no:cacheprovider", "-q", "-k", "not readme"]
    done = _run("-m", "pytest", *own, "tests/core.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_what_is_hidden_is_not_found_and_all_else_is():
    code = (
        "import numpy, unsample, importlib.util as u; print(u.find_spec('pandas')); import polars"
    )
    done = _run("-c", code)
    assert done.stdout == "None\n"
    assert "No module named 'polars'" in done.stderr
