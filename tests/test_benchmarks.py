"""Every script runs, with next to no data: what nobody runs no longer starts one day.

Stand-ins take the place of what a script would install, download or run for hours.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unsample.lab.bank import Bank, load_bank
from unsample.lab.datasets import load_ranks

ROOT = Path(__file__).parent.parent
FEW = ("--datasets", "ml-100k", "steam-200k")
ONE = ("--repeats", "1", "--datasets", "ml-1m", "--sizes", "50", "--candidates", "unseen")
#: A small call of each script of benchmarks/ and examples/.
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


def call(script, *arguments, folder, check=True, **environment):
    """Run a script in a folder, and return what it prints."""
    done = subprocess.run(
        [sys.executable, ROOT / script, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == check, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def tool(monkeypatch):
    """Load a script of tools/, with some of its names and the arguments replaced."""

    def load(name, *arguments, **names):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for key, value in names.items():
            monkeypatch.setattr(module, key, value)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        return module

    return load


@pytest.mark.parametrize("script", CALLS)
def test_it_runs(script, tmp_path):
    call(script, *CALLS[script], folder=tmp_path)
    for made in tmp_path.glob("*.csv"):
        assert made.read_bytes() == (ROOT / "examples" / made.name).read_bytes()


def test_none_is_forgotten():
    texts = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/test_*.py"))
    for path in [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/*"), *ROOT.glob("tools/*.py")]:
        assert f'"{path.stem}"' in texts or path.name in texts, path


# -- what makes data, pages and tables ------------------------------------------------------------


def test_shipped_data_are_made_of_ranks(tmp_path):
    bundled = ROOT / "src" / "unsample" / "lab" / "datasets" / "bundled" / "ml-1m.npz"
    shutil.copy(bundled, tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for what in ("ranks", "bank"):
        call("tools/make_data.py", what, tmp_path, "--out", out, folder=tmp_path)
    before, after = load_ranks("ml-1m", "ease"), load_ranks("ml-1m", "ease", folder=out)
    assert not np.array_equal(after.ranks, before.ranks), "users stand in another order"
    one, other = (np.sort(each.ranks * 10_000 + each.items) for each in (before, after))
    assert np.array_equal(one, other)
    wanted = {"dataset": "ml-1m", "model": "ease", "candidates": "unseen"}
    (made,), (shipped,) = (
        bank.select(**wanted) for bank in (Bank.load(out / "bank.npz"), load_bank())
    )
    assert made.counts.tolist() == shipped.counts.tolist()


@pytest.mark.slow
def test_the_pictures_are_made(tool, tmp_path):
    tool("pictures", FOLDER=tmp_path).main()
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs" / "pictures").glob("*.svg")}


# -- what checks the package ----------------------------------------------------------------------


def test_coverage_is_judged_by_lines_and_branches(tmp_path):
    (tmp_path / "whole.py").write_text("for each in range(2):\n    print(each)\n")
    (tmp_path / "half.py").write_text("if not __name__:\n    print(1)\n    print(2)\n")
    for name, enough in (("whole", True), ("half", False)):
        run = [sys.executable, "-m", "coverage", "run", "--branch", "--parallel", f"{name}.py"]
        subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
        told = call("tools/coverage_report.py", folder=tmp_path, check=enough)
        assert f"{'100.0' if enough else '33.3'}% of lines (at least 95%)" in told


def test_the_fuzzer_tries_every_parser(tmp_path):
    (tmp_path / "atheris.py").write_text(
        "import contextlib, pathlib\n"
        "def instrument_imports(include): return contextlib.nullcontext()\n"
        "def Setup(arguments, function): globals().update(folder=arguments[1], tried=function)\n"
        "def Fuzz():\n"
        "    for path in pathlib.Path(folder).iterdir(): tried(path.read_bytes())\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = call("tools/fuzz.py", "--seconds", 1, folder=tmp_path, PYTHONPATH=paths)
    assert "parsers for 1 s" in told


@pytest.mark.parametrize("name", ["check_dist", "get_pyodide", "put_tables", "try_adapters"])
def test_others_are_loaded(tool, name):
    assert callable(tool(name).main)


def test_the_wheel_is_tried_with_the_lowest_versions(tool):
    module = tool("check_dist")
    pins = {each.partition("==")[0] for each in module.lowest("3.11")}
    assert pins == {"click", "duckdb", "numpy", "scipy", "threadpoolctl"}
    assert set(module.lowest("3.11")) != set(module.lowest("3.13"))


@pytest.mark.parametrize("least", [0.9, 0.96])
def test_mutants_are_judged_by_what_survives(tool, tmp_path, capsys, least):
    names = [f"unsample.law._law.x_mean__mutmut_{at}" for at in range(21)]
    survivors = {
        names[3]: ["-    return 1", "+    return 2"],
        names[4]: ["-    return np.asarray(1, dtype=np.int64)", "+    return np.asarray(1, )"],
    }
    module = tool(
        "mutants",
        ROOT=tmp_path,
        LISTED=tmp_path / "out" / "mutants.md",
        LEAST=least,
        results=lambda: {name: int(name not in survivors) for name in names},
        reached=lambda: {"unsample.law._law.x_mean"},
        change=survivors.get,
    )
    assert module.report(names) == (least <= 19 / 20)
    assert "| law | 21 | 1 | 19 | 95.0% ± 4.9% |" in capsys.readouterr().out
    listed = (tmp_path / "out" / "mutants.md").read_text()
    assert f"{names[4]}: the type that it has anyway" in listed
    assert f"{names[3]}: no test finds it" in listed
