"""Every script runs, with next to no data: what nobody runs no longer starts one day."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FEW = ("--datasets", "ml-100k", "steam-200k")
ONE = ("--repeats", "1", "--datasets", "ml-1m", "--sizes", "50", "--candidates", "unseen")
#: A small call of each script of benchmarks/, tools/ and examples/.
CALLS = {
    "benchmarks/accuracy.py": (*ONE, "--ranks", "other"),
    "benchmarks/calibration.py": (*FEW, "--groups", "1", "--workers", "1", "--write", "prior.npz"),
    "benchmarks/corpora.py": ("--draws", "1", "--shares", "0.01"),
    "benchmarks/gpu_ranking.py": ("--tiny", "40", "300", "16"),
    "benchmarks/guided.py": ("2", "synthetic"),
    "benchmarks/history.py": ("--past", "1", *FEW),
    "benchmarks/run.py": ("--tiny",),
    "examples/evaluate_pytorch.py": ("2000",),
    "examples/make_negatives.py": ("negatives.csv",),
    "examples/make_ranks.py": ("ranks.csv",),
}


@pytest.mark.parametrize("script", CALLS)
def test_it_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / script, *CALLS[script]],
        cwd=tmp_path,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for made in tmp_path.glob("*.csv"):
        assert made.read_bytes() == (ROOT / "examples" / made.name).read_bytes()


def test_none_is_forgotten():
    scripts = {
        f"{folder}/{path.name}"
        for folder in ("benchmarks", "examples")
        for path in (ROOT / folder).glob("*.py")
    }
    assert scripts == set(CALLS)
