"""Shared material: one realistic rank distribution, small enough for dense references."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests.promises import Table, ledger
from unsample.__main__ import main
from unsample.counts import RankCounts
from unsample.lab.__main__ import main as laboratory
from unsample.sampling import SamplingModel

__all__ = ["ledger"]

# How long an example takes depends on what else a machine does.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Let the process that all test reports come to sum them up."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(config.rootpath / "out" / "prove.md"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[list[pytest.Collector]]:
    """Look for examples in the package and not in its tests, which takes as long."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


#: Files that take longest: a worker that met one of them last would let the others wait.
_LONGEST = ("test_docs.py", "test_field.py", "test_spark.py", "test_evaluate.py", "test_guided.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files come first; all others keep their order."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


@pytest.fixture(scope="session")
def full_ranks() -> np.ndarray:
    rng = np.random.default_rng(11)
    return np.ceil(400 * rng.beta(0.5, 2.0, size=3000)).astype(int).clip(1, 400)


@pytest.fixture(scope="session")
def counts(full_ranks: np.ndarray) -> RankCounts:
    ranks = SamplingModel(items=400, sampled=30).draw(full_ranks, rng=5)
    return RankCounts.from_ranks(ranks, items=400, sampled=30)


@pytest.fixture
def lab(capsys, monkeypatch):
    """Run ``python -m unsample.lab``; return what it prints, and let errors come out."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["unsample.lab", *map(str, arguments)])
        laboratory()
        return capsys.readouterr().out

    return call


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command as a shell would; return its exit code, output and errors."""

    def call(*arguments, stdin: bytes | None = None):
        monkeypatch.setattr(sys, "argv", ["unsample", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        if stdin is not None:
            fake = io.TextIOWrapper(io.BytesIO(stdin))
            monkeypatch.setattr(sys, "stdin", fake)
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
