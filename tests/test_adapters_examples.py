"""The ten-line examples run, where their library is installed, and are ten lines."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from tests.libraries import need_library
from unsample.adapters import REGISTRY

EXAMPLES = Path(__file__).parents[1] / "examples" / "adapters"
NAMES = sorted(path.stem.removeprefix("with_") for path in EXAMPLES.glob("with_*.py"))
MODULES = {"trec": "ir_measures"}
#: The functions that lead from a library's objects to the whole catalogue.
WAYS = ("full_catalogue", "ask_the_model", "ask_the_pipeline", "from_printed_metrics")


def load(name):
    need_library(name, MODULES.get(name))
    path = EXAMPLES / f"with_{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_library_has_an_example():
    assert set(NAMES) == set(REGISTRY) - {"spark"}  # which docs/frames.md shows


@pytest.mark.parametrize("name", NAMES)
def test_ten_lines_are_enough(name):
    tree = ast.parse((EXAMPLES / f"with_{name}.py").read_text())
    ways = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in WAYS]
    assert ways
    for way in ways:
        assert way.end_lineno - way.body[0].end_lineno <= 10, way.name


@pytest.mark.filterwarnings("ignore")  # the libraries' own warnings
@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # RecBole writes logs to where it is run
    found = [values_of(result) for result in load(name).main()]
    for values in found:
        assert values
        assert all(0 < value < 1 for value in values.values()), values
    # Two ways to the whole catalogue lead to the same place, sampling error aside.
    for metric in set.intersection(*map(set, found)):
        assert found[0][metric] == pytest.approx(found[-1][metric], abs=0.06), metric


def values_of(result):
    if isinstance(result, dict):
        return {name: float(value) for name, value in result.items()}
    return {one.metric.name: one.value for one in getattr(result, "estimates", result).entries}


BLOCK = re.compile(r"<!-- (examples/adapters/\S+) -->\n```python\n(.*?)```", re.DOTALL)


def test_the_page_shows_what_the_examples_run():
    text = (EXAMPLES.parents[1] / "docs" / "libraries.md").read_text()
    blocks = BLOCK.findall(text)
    assert {Path(path).name for path, _ in blocks} == {f"with_{name}.py" for name in NAMES}
    assert text.count("```python") == len(blocks)
    for path, block in blocks:
        lines = {line.strip() for line in (EXAMPLES.parents[1] / path).read_text().splitlines()}
        for line in block.replace("result = ", "return ").splitlines():
            assert line.strip() in lines, f"{path}: {line}"
