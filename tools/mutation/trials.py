"""One mutant: planted in a process of its own, where the tests that reach it are run."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from mutation.mutations import Mutant
from mutation.rooms import BROKEN, QUIET, ROOMS, ROOT, file_of, forget_cached_answers, fork
from mutation.survey import Case

#: A mutant may take this long, and this many times what its tests took; in processor time.
PATIENCE, TIMES = 10.0, 4.0
#: Memory a mutant may take on top of what the libraries do: some ask for all there is.
MEMORY = 4 << 30
#: How a process ends that took too long.
_OUT_OF_TIME = (signal.SIGXCPU, signal.SIGKILL)


@dataclass
class Running:
    """A mutant at work: its process, the pipe it answers on, and until when it may."""

    mutant: Mutant
    pipe: int
    start: float
    until: float


def run_mutants(
    mutants: Sequence[Mutant],
    cases: Sequence[Case],
    session: pytest.Session,
    *,
    workers: int,
    budget: float,
) -> Iterator[tuple[Mutant, str, str, float]]:
    """Try mutants in several processes at a time; yield status, killing test and seconds."""
    waiting = list(reversed(mutants))
    running: dict[int, Running] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            mutant = waiting.pop()
            chosen = tests_for(mutant, cases, budget)
            if not chosen:
                yield mutant, "survived", "no test reaches it", 0.0
                continue
            child, work = start(mutant, chosen, session)
            running[child] = work
        for child in list(running):
            outcome = ended(child, running[child])
            if outcome is not None:
                yield (running.pop(child).mutant, *outcome)
        time.sleep(0.005)


def start(mutant: Mutant, chosen: Sequence[Case], session: pytest.Session) -> tuple[int, Running]:
    """Plant a mutant in a new process; return its id and what is known of it."""
    limit = PATIENCE + TIMES * sum(case.seconds for case in chosen)
    nodes = [case.node for case in chosen]
    # One that does not compile would be found by any test: it is no mutant, and this stops here.
    compile(mutant.apply((ROOT / mutant.file).read_bytes()), mutant.name, "exec")
    reading, writing = os.pipe()
    child = fork(lambda: try_mutant(mutant, nodes, limit, session, writing))
    os.close(writing)
    now = time.perf_counter()
    # On the clock much longer: the machine may be busy with other things.
    return child, Running(mutant, reading, now, now + 10 * limit)


def ended(child: int, work: Running) -> tuple[str, str, float] | None:
    """Return what became of a mutant, or None while it runs."""
    now = time.perf_counter()
    if now > work.until:
        os.killpg(child, signal.SIGKILL)
    done, status = os.waitpid(child, 0 if now > work.until else os.WNOHANG)
    if not done:
        return None
    with os.fdopen(work.pipe, "rb") as pipe:
        failed = pipe.read().decode()
    seconds = now - work.start
    if now > work.until or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in _OUT_OF_TIME):
        return "timed out", "", seconds
    if os.waitstatus_to_exitcode(status) == BROKEN:
        raise SystemExit(f"could not try the mutant {work.mutant.name}")
    if status != 0:
        return "killed", f"the process ended with status {status}", seconds
    return ("killed" if failed else "survived"), failed, seconds


def tests_for(mutant: Mutant, cases: Sequence[Case], budget: float) -> list[Case]:
    """Return the tests that reach the changed lines, the room's own and fast ones first."""
    wanted = frozenset(mutant.lines)
    room = Path(mutant.file).relative_to("src/unsample").parts[0].removesuffix(".py")
    own = {f"tests/test_{name}.py" for name in ROOMS[room]}
    chosen: list[Case] = []
    spent = 0.0
    for case in sorted(cases, key=lambda case: file_of(case.node) not in own):
        lines = case.lines.get(mutant.file, frozenset())
        if not (lines & wanted if wanted else lines):
            continue
        spent += case.seconds
        if chosen and spent > budget:
            break
        chosen.append(case)
    return chosen


def try_mutant(
    mutant: Mutant, nodes: Sequence[str], limit: float, session: pytest.Session, pipe: int
) -> int:
    """Look for a test that fails, within limits, and write its name to the pipe."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 1))
    _limit_memory()
    sys.dont_write_bytecode = True
    os.write(pipe, first_failure(mutant, nodes, session).encode()[:4000])
    return 0


def _limit_memory() -> None:
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def first_failure(mutant: Mutant, nodes: Sequence[str], session: pytest.Session) -> str:
    """Run the tests with the mutant in place; return which one failed, or nothing.

    A function's body is exchanged in the package as it is loaded. What runs at import needs the
    package loaded anew, and the tests collected anew.
    """
    if not mutant.at_import and _exchange(mutant):
        return _run_collected(_in_order(session.items, nodes), session)
    for name in [name for name in sys.modules if name.partition(".")[0] in {"unsample", "tests"}]:
        del sys.modules[name]
    # pytest remembers the classes of warnings it has read about: those of the package before.
    forget_cached_answers("_pytest")
    sys.meta_path.insert(0, Planted(mutant.file, mutant.apply((ROOT / mutant.file).read_bytes())))
    plugin = Chosen(tuple(nodes))
    files = sorted({file_of(node) for node in nodes})
    folder = tempfile.mkdtemp(prefix="mutant-")
    try:
        code = pytest.main([*QUIET, "-x", f"--basetemp={folder}/base", *files], plugins=[plugin])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # Parametrised over a registry, the chosen tests may be gone: that is not a failing test.
    fine = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    return plugin.failed or ("" if code in fine else f"exit {code}")


def _run_collected(items: Sequence[pytest.Item], session: pytest.Session) -> str:
    plugin = Chosen(())
    session.config.pluginmanager.register(plugin)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if plugin.failed:
            break
    return plugin.failed


def _exchange(mutant: Mutant) -> bool:
    """Give the functions of a loaded module their mutated code; False where that cannot be."""
    path = ROOT / mutant.file
    changed = compile(mutant.apply(path.read_bytes()), str(path), "exec", dont_inherit=True)
    codes: dict[tuple[str, int], list[CodeType]] = {}
    for code in _nested(changed):
        codes.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    living = [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(path)
    ]
    for function in living:
        found = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno), [])
        if len(found) != 1 or len(found[0].co_freevars) != len(function.__code__.co_freevars):
            return False
        function.__code__ = found[0]
    return bool(living)


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


@dataclass(eq=False)
class Chosen:
    """A pytest plugin that keeps the chosen tests, in the given order, and notes what failed."""

    nodes: tuple[str, ...]
    failed: str = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        # pytest rewrites the files it is told to run, for their doctests: the mutant comes first.
        sys.meta_path.sort(key=lambda finder: not isinstance(finder, Planted))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = _in_order(items, self.nodes)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            self.failed = self.failed or f"import of {report.nodeid}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "failed":
            self.failed = self.failed or report.nodeid


def _in_order(items: Iterable[pytest.Item], nodes: Sequence[str]) -> list[pytest.Item]:
    place = {node: index for index, node in enumerate(nodes)}
    kept = [item for item in items if item.nodeid in place]
    return sorted(kept, key=lambda item: place[item.nodeid])


class Planted(importlib.abc.MetaPathFinder):
    """Gives the mutant's text to whoever imports its module."""

    def __init__(self, file: str, source: bytes) -> None:
        path = ROOT / file
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        self.module = ".".join(parts).removesuffix(".__init__")
        self.path, self.source = path, source

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        if name != self.module:
            return None
        loader = _Text(name, str(self.path))
        loader.code = compile(self.source, str(self.path), "exec", dont_inherit=True)
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


class _Text(importlib.machinery.SourceFileLoader):
    code: Any

    def get_code(self, fullname: str) -> Any:
        return self.code
