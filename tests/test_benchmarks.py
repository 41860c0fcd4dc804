"""Every script runs, with next to no data: what nobody runs no longer starts one day."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
#: Calls of each script, small ones.
CALLS = {
    "accuracy.py": [
        ("--repeats", "1", "--datasets", "ml-1m", "--sizes", "100", "--candidates", "unseen"),
        (
            *("--repeats", "1", "--datasets", "ml-1m", "--sizes", "100", "--candidates", "all"),
            *("--ranks", "other"),
        ),
    ],
    "calibration.py": [("--parts", "0", "--groups", "0", "--workers", "1")],
    "corpora.py": [("--draws", "1", "--shares", "0.01")],
    "frames.py": [("--tiny",)],
    "guided.py": [("2", "synthetic")],
    "history.py": [("--past", "1", "--parts", "7")],
    "run.py": [
        ("--tiny", "import", "counting", "mle", "scaling", "command"),
        ("--tiny", "one", "models", "large", "exact", "items"),
        ("--tiny", "mes"),
        ("--tiny", "--grow", "growth.svg"),
    ],
}
#: Scripts and libraries that they need beyond those of the tests.
NEEDS = {("run.py", "mes"): "cvxpy"}


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        pytest.param(script, arguments, id=f"{script} {' '.join(arguments)[:40]}")
        for script, calls in CALLS.items()
        for arguments in calls
    ],
)
def test_it_runs(script, arguments, tmp_path):
    for library in {NEEDS.get((script, word)) for word in arguments} - {None}:
        pytest.importorskip(library)
    assert _run(BENCHMARKS / script, *arguments, folder=tmp_path)


@pytest.mark.slow
def test_pictures_are_drawn(tmp_path):
    _run(BENCHMARKS.parent / "tools" / "pictures.py", tmp_path, folder=tmp_path)
    assert len(list(tmp_path.glob("*.svg"))) > 5


def _run(*command, folder):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_none_is_forgotten():
    # The kernels' tests run theirs; the other needs the data sets on disk.
    elsewhere = {"gpu_ranking.py", "other_ranks.py", "synthetic.py"}
    assert {path.name for path in BENCHMARKS.glob("*.py")} - elsewhere == set(CALLS)
