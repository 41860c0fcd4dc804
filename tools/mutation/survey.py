"""Which tests reach which lines, and how long each takes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mutation.rooms import (
    QUIET,
    ROOT,
    file_of,
    fingerprint,
    forget_cached_answers,
    fork,
    package_files,
    test_files,
)


@dataclass(frozen=True)
class Case:
    """A test: where it is, how long it takes (traced), and the lines it reaches in each file."""

    node: str
    seconds: float
    lines: dict[str, frozenset[int]]


def load_survey(out: Path, files: Iterable[str]) -> list[Case]:
    """Return the tests with their lines; test files unchanged since are kept.

    The survey is kept by test file, so that a new test costs one file's run.
    """
    path = out / "survey.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    states = {test: fingerprint([*package_files(), ROOT / test]) for test in test_files()}
    known = {test: found for test, found in known.items() if found["state"] == states.get(test)}
    missing = [test for test in states if test not in known]
    if missing:
        print(f"surveying the tests of {len(missing)} files ...", flush=True)
        fresh = survey(missing, files, out)
        for test in missing:
            known[test] = {
                "state": states[test],
                "cases": [case for case in fresh["cases"] if file_of(case["node"]) == test],
                "broken": [node for node in fresh["broken"] if file_of(node) == test],
            }
        part = path.with_suffix(".new")
        part.write_text(json.dumps(known), encoding="utf-8")
        part.replace(path)
    for name in (name for found in known.values() for name in found["broken"]):
        print(f"left out, as it does not pass here: {name}")
    cases = [
        Case(
            node=case["node"],
            seconds=case["seconds"],
            lines={file: frozenset(lines) for file, lines in case["lines"].items()},
        )
        for found in known.values()
        for case in found["cases"]
    ]
    return sorted(cases, key=lambda case: (case.seconds, case.node))


def survey(tests: Sequence[str], files: Iterable[str], out: Path) -> dict[str, Any]:
    """Run tests once in a process of their own; return the cases and the broken ones."""
    target = out / "survey.part"

    def work() -> int:
        plugin = Survey(frozenset(str(ROOT / file) for file in files))
        code = pytest.main([*QUIET, "--continue-on-collection-errors", *tests], plugins=[plugin])
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            return int(code)
        text = {
            "cases": plugin.cases,
            "broken": plugin.broken,
        }
        target.write_text(json.dumps(text), encoding="utf-8")
        return 0

    target.unlink(missing_ok=True)
    os.waitpid(fork(work), 0)
    if not target.exists():
        raise SystemExit("the survey of the tests died; run pytest on them to see why")
    found = json.loads(target.read_text(encoding="utf-8"))
    target.unlink()
    return found


@dataclass(eq=False)
class Survey:
    """A pytest plugin that runs every test by itself and notes the lines it reaches."""

    files: frozenset[str]
    cases: list[dict[str, Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            self.broken.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        from _pytest.runner import runtestprotocol

        forget_cached_answers("unsample")
        lines: dict[str, set[int]] = {file: set() for file in self.files}
        start = time.perf_counter()
        with _traced(lines):
            # No next item: shared fixtures are made anew, so every test shows all that it needs.
            reports = runtestprotocol(item, log=False, nextitem=None)
        seconds = time.perf_counter() - start
        if all(report.passed for report in reports):
            reached = {_from_root(file): sorted(seen) for file, seen in lines.items() if seen}
            self.cases.append({"node": item.nodeid, "seconds": seconds, "lines": reached})
        elif any(report.failed for report in reports):
            self.broken.append(item.nodeid)
        return True


@contextlib.contextmanager
def _traced(lines: dict[str, set[int]]) -> Iterator[None]:
    def inside(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines[frame.f_code.co_filename].add(frame.f_lineno)
        return inside

    def outside(frame: FrameType, event: str, argument: object) -> Any:
        return inside if frame.f_code.co_filename in lines else None

    before = sys.gettrace()
    threading.settrace(outside)
    sys.settrace(outside)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]


def _from_root(path: str) -> str:
    return Path(path).relative_to(ROOT).as_posix()
