"""Mutation testing of the core rooms: plant small errors one by one, and see which no test finds.

    python tools/mutate.py [ROOM...] [--workers N] [--sample SHARE --seed S] [--out FOLDER]

Mutants come from ``tools/mutations.py``. First every test runs once, traced, so that it is known
which lines it reaches and how long it takes. Then the tests are collected, and each mutant gets a
process of its own, forked from there: it exchanges the code of the changed function (or, where the
change is outside functions, imports the package and the tests anew) and runs the tests that reach
the changed line, the room's own and the fast ones first, until one fails. A limit of processor
time ends what hangs.

Results are appended to ``FOLDER/results.jsonl``, keyed by the mutant, the package and the tests:
a run that was stopped goes on where it was, and nothing old is believed after a change.

``tools/mutants`` lists mutants with reasons: ``equivalent`` ones change nothing anyone could see,
do not count, and must not be killed; a ``survivor`` counts, and it is said why no test finds it.
What is listed must exist, and a survivor that is not listed fails the run. Only the standard
library and pytest are needed beside the package; test files that cannot be imported are named and
left out.

mutmut 3 and cosmic-ray were looked at first. mutmut leaves out properties, code outside functions
and, up to 3.7, the methods of dataclasses, which is most of ours; cosmic-ray starts a new test run
for each mutant, which costs seconds of imports.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from listed_mutants import Listed, read_listed, stale
from mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "unsample"
LISTED = Path(__file__).with_name("mutants")
#: The rooms, and the tests that were written for each: they come first.
ROOMS = {
    "sampling": ("sampling",),
    "metrics": ("metrics",),
    "counts": ("counts",),
    "distribution": ("distribution",),
    "simplex": ("simplex", "solvers", "golden"),
    "estimators": ("golden", "auto", "estimators", "observed", "repeats", "smooth"),
    "grid": ("grid",),
    "ties": ("ties",),
}
#: The small, fast tests of these rooms; the doctests of the rooms themselves come on top.
TESTS = (
    "auto", "contract", "counts", "distribution", "estimation", "estimators", "golden", "grid",
    "metrics", "observed", "repeats", "sampling", "simplex", "smooth", "solvers", "ties",
)  # fmt: skip
GOAL = 0.85
#: A mutant may take this long, and this many times what its tests took; in processor time.
PATIENCE, TIMES = 10.0, 4.0
#: Memory a mutant may take on top of what the libraries do: some ask for all there is.
MEMORY = 4 << 30
#: How a process ends where this script, not the mutant, is wrong.
BROKEN = 70
QUIET = (
    "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no",
    # Test libraries loaded before the fork do not want to be rewritten any more.
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A test: where it is, how long it takes (traced), and the lines it reaches in each file."""

    node: str
    seconds: float
    lines: dict[str, frozenset[int]]


@dataclass(frozen=True)
class Result:
    """What became of a mutant: killed, timed out or survived, and by which test."""

    key: str
    mutant: str
    status: str
    by: str
    seconds: float


# -- which tests reach which lines ---------------------------------------------------------


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

        _forget_cached_answers("unsample")
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


def _forget_cached_answers(package: str) -> None:
    """Clear the caches of a package's functions, so that nothing lives on earlier calls."""
    cached = type(functools.cache(len))
    for thing in gc.get_objects():
        if isinstance(thing, cached) and thing.__module__.startswith(package):
            thing.cache_clear()


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
    os.waitpid(_fork(work), 0)
    if not target.exists():
        raise SystemExit("the survey of the tests died; run pytest on them to see why")
    found = json.loads(target.read_text(encoding="utf-8"))
    target.unlink()
    return found


# -- one mutant -----------------------------------------------------------------------------


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
    _forget_cached_answers("_pytest")
    sys.meta_path.insert(0, Planted(mutant.file, mutant.apply((ROOT / mutant.file).read_bytes())))
    plugin = Chosen(tuple(nodes))
    files = sorted({_file_of(node) for node in nodes})
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


def _fork(work: Any) -> int:
    """Run ``work`` in a new process, silent and in a group of its own; return its id."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        code = work()
    finally:
        os._exit(code)


# -- all mutants ----------------------------------------------------------------------------


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
    options: argparse.Namespace,
) -> Iterator[tuple[Mutant, str, str, float]]:
    """Try mutants in several processes at a time; yield status, killing test and seconds."""
    waiting = list(reversed(mutants))
    running: dict[int, Running] = {}
    while waiting or running:
        while waiting and len(running) < options.workers:
            mutant = waiting.pop()
            chosen = tests_for(mutant, cases, options.budget)
            if not chosen:
                yield mutant, "survived", "no test reaches it", 0.0
                continue
            child, work = _start(mutant, chosen, session)
            running[child] = work
        for child in list(running):
            ended = _ended(child, running[child])
            if ended is not None:
                yield (running.pop(child).mutant, *ended)
        time.sleep(0.005)


def _start(mutant: Mutant, chosen: Sequence[Case], session: pytest.Session) -> tuple[int, Running]:
    limit = PATIENCE + TIMES * sum(case.seconds for case in chosen)
    nodes = [case.node for case in chosen]
    # One that does not compile would be found by any test: it is no mutant, and this stops here.
    compile(mutant.apply((ROOT / mutant.file).read_bytes()), mutant.name, "exec")
    reading, writing = os.pipe()
    child = _fork(lambda: try_mutant(mutant, nodes, limit, session, writing))
    os.close(writing)
    now = time.perf_counter()
    # On the clock much longer: the machine may be busy with other things.
    return child, Running(mutant, reading, now, now + 10 * limit)


def _ended(child: int, work: Running) -> tuple[str, str, float] | None:
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


_OUT_OF_TIME = (signal.SIGXCPU, signal.SIGKILL)


def tests_for(mutant: Mutant, cases: Sequence[Case], budget: float) -> list[Case]:
    """Return the tests that reach the changed lines, the room's own and fast ones first."""
    wanted = frozenset(mutant.lines)
    room = Path(mutant.file).relative_to("src/unsample").parts[0].removesuffix(".py")
    own = {f"tests/test_{name}.py" for name in ROOMS[room]}
    chosen: list[Case] = []
    spent = 0.0
    for case in sorted(cases, key=lambda case: _file_of(case.node) not in own):
        lines = case.lines.get(mutant.file, frozenset())
        if not (lines & wanted if wanted else lines):
            continue
        spent += case.seconds
        if chosen and spent > budget:
            break
        chosen.append(case)
    return chosen


# -- files ----------------------------------------------------------------------------------


def room_files(room: str) -> list[str]:
    """Return the files of a room, as paths from the root."""
    path = PACKAGE / room
    found = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [file.relative_to(ROOT).as_posix() for file in found]


def test_files() -> list[str]:
    """Return the test files, and the rooms' own files for their doctests."""
    written = [f"tests/test_{name}.py" for name in TESTS]
    return [
        *(file for file in written if (ROOT / file).exists()),
        *(file for room in ROOMS for file in room_files(room) if not file.endswith("__init__.py")),
    ]


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a hash of these files, names and all."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def package_files() -> list[Path]:
    """Return the package and what all tests share."""
    helpers = (path for path in (ROOT / "tests").glob("*.py") if "test_" not in path.name)
    return [*PACKAGE.rglob("*.py"), *helpers, ROOT / "pyproject.toml"]


def state_of_everything() -> str:
    """Return a hash of all that results depend on, but for the mutant."""
    own = [Path(__file__).resolve(), Path(__file__).resolve().with_name("mutations.py")]
    return fingerprint([*package_files(), *own, *(ROOT / file for file in test_files())])


def key_of(mutant: Mutant, state: str) -> str:
    """Return the key under which a result of this mutant is kept."""
    return hashlib.sha256(f"{state}\0{mutant.name}".encode()).hexdigest()[:24]


def read_results(path: Path) -> dict[str, Result]:
    """Return the results so far; a last line cut off by a crash is passed over."""
    found = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, TypeError):
                result = Result(**json.loads(line))
                found[result.key] = result
    return found


def append(path: Path, result: Result) -> None:
    """Add one line in one write; a line that a crash cut off before is ended first."""
    line = json.dumps(vars(result), ensure_ascii=False) + "\n"
    with path.open("ab+") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


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
                "cases": [case for case in fresh["cases"] if _file_of(case["node"]) == test],
                "broken": [node for node in fresh["broken"] if _file_of(node) == test],
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


def _from_root(path: str) -> str:
    return Path(path).relative_to(ROOT).as_posix()


def _file_of(node: str) -> str:
    return node.partition("::")[0]


# -- the command ----------------------------------------------------------------------------


def main() -> int:
    """Run the mutants asked for, print the table, and return 1 where a goal is missed."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    os.chdir(ROOT)
    everything = {room: all_mutants(room) for room in ROOMS}
    listed = read_listed(LISTED)
    gone = stale(listed, [mutant for mutants in everything.values() for mutant in mutants])
    chosen = {room: sample(everything[room], options) for room in options.rooms or ROOMS}
    if options.survivors:
        chosen = only_survivors(chosen, options.survivors)
    state = state_of_everything()
    files = [file for room in ROOMS for file in room_files(room)]
    cases = load_survey(options.out, files)
    results = finish(chosen, cases, state, options)
    failures = [f"listed but not there any more: {line}" for line in gone]
    failures += report(chosen, everything, results, listed, options.out)
    for line in failures:
        print(line)
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation testing of the core rooms.")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sample", type=float, default=1.0, help="share of each room's mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants the sample holds")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds of (traced) tests for each mutant"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants")
    parser.add_argument(
        "--survivors", type=Path, help="only mutants that survived in this results.jsonl"
    )
    options = parser.parse_args()
    options.out = options.out.resolve()
    unknown = set(options.rooms) - set(ROOMS)
    if unknown:
        parser.error(f"ROOM must be one of {', '.join(ROOMS)}, got {', '.join(sorted(unknown))}")
    if not 0 < options.sample <= 1:
        parser.error(f"--sample must be a share in (0, 1], got {options.sample}")
    return options


def all_mutants(room: str) -> list[Mutant]:
    """Return the mutants of all files of a room."""
    return [
        mutant for file in room_files(room) for mutant in mutants_of(file, Path(file).read_bytes())
    ]


def sample(mutants: Sequence[Mutant], options: argparse.Namespace) -> list[Mutant]:
    """Return a share of the mutants, chosen by seed and name alone, in the order of the file."""

    def lot(mutant: Mutant) -> str:
        return hashlib.sha256(f"{options.seed}\0{mutant.name}".encode()).hexdigest()

    drawn = sorted(mutants, key=lot)[: math.ceil(options.sample * len(mutants))]
    kept = {mutant.name for mutant in drawn}
    return [mutant for mutant in mutants if mutant.name in kept]


def only_survivors(chosen: dict[str, list[Mutant]], path: Path) -> dict[str, list[Mutant]]:
    """Keep what survived last time, whatever changed since: for making tests better."""
    last = {result.mutant: result.status for result in read_results(path.resolve()).values()}
    return {
        room: [mutant for mutant in mutants if last.get(mutant.name) == "survived"]
        for room, mutants in chosen.items()
    }


def finish(
    chosen: dict[str, list[Mutant]], cases: Sequence[Case], state: str, options: argparse.Namespace
) -> dict[str, Result]:
    """Run what has no result yet, writing each result when it is there."""
    path = options.out / "results.jsonl"
    results = read_results(path)
    todo = [m for mutants in chosen.values() for m in mutants if key_of(m, state) not in results]
    start = time.perf_counter()

    def note(done: int, mutant: Mutant, status: str, by: str, seconds: float) -> None:
        result = Result(key_of(mutant, state), mutant.name, status, by, round(seconds, 2))
        append(path, result)
        results[result.key] = result
        if done % 50 == 0 or done == len(todo):
            print(f"{done} of {len(todo)} mutants, {time.perf_counter() - start:.0f} s", flush=True)

    problems: list[str] = []
    unchanged = Result(f"unchanged {state}", "nothing", "survived", "", 0.0)

    def loop(session: pytest.Session) -> None:
        if unchanged.key not in results:
            problems.extend(_killed_unchanged(todo, cases, session))
            if problems:
                return
            append(path, unchanged)
        tried = run_mutants(todo, cases, session, options)
        for done, (mutant, *outcome) in enumerate(tried, start=1):
            note(done, mutant, *outcome)

    if todo:
        files = sorted({_file_of(case.node) for case in cases})
        pytest.main([*QUIET, "-s", *files], plugins=[Collected(loop)])
    if problems:
        raise SystemExit("\n".join(problems))
    wanted = {key_of(m, state): m.name for mutants in chosen.values() for m in mutants}
    found = {wanted[key]: result for key, result in results.items() if key in wanted}
    if len(found) < len(wanted):
        raise SystemExit("not all mutants were tried; what was is kept")
    return found


@dataclass(eq=False)
class Collected:
    """A pytest plugin that does something else with the collected tests than running them."""

    loop: Callable[[pytest.Session], None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.loop(session)
        return True


def _killed_unchanged(
    todo: Sequence[Mutant], cases: Sequence[Case], session: pytest.Session
) -> Iterator[str]:
    """Try a mutant that changes nothing on all tests: what kills it would kill all others."""
    nothing = replace(todo[0], start=0, stop=0, replacement="")
    for at_import in (True, False):
        child, work = _start(replace(nothing, at_import=at_import), cases, session)
        while (ended := _ended(child, work)) is None:
            time.sleep(0.05)
        status, by, _ = ended
        if status != "survived":
            yield f"without a mutant, the tests are {status}: {by}"


def report(
    chosen: dict[str, list[Mutant]],
    everything: dict[str, list[Mutant]],
    results: dict[str, Result],
    listed: Sequence[Listed],
    out: Path,
) -> list[str]:
    """Print the table, write the survivors, and return what fails the run."""
    print(f"{'room':13}{'mutants':>8}{'of':>6}{'killed':>8}{'timed out':>11}", end="")
    print(f"{'survived':>10}{'equivalent':>12}{'score':>9}")
    failures, survivors = [], []
    total: Counter[str] = Counter()
    for room, mutants in chosen.items():
        tally: Counter[str] = Counter(mutants=len(mutants), of=len(everything[room]))
        for mutant in mutants:
            result = results[mutant.name]
            entry = next((entry for entry in listed if entry.holds(mutant)), None)
            equivalent = entry is not None and entry.equivalent
            tally["equivalent" if equivalent else result.status] += 1
            if equivalent and result.status != "survived":
                found = f"{result.status} ({result.by})"
                failures.append(f"listed as equivalent, but {found}:\n{in_words(mutant)}")
            elif not equivalent and result.status == "survived":
                reason = "no reason is listed" if entry is None else entry.reason
                survivors.append((entry is None, f"{in_words(mutant)}  {reason}\n"))
        _print_row(room, tally)
        total += tally
        if mutants and score(tally) < GOAL:
            failures.append(f"{room}: score {score(tally):.1%} is below the goal of {GOAL:.0%}")
    _print_row("all", total)
    (out / "survivors.txt").write_text("".join(text for _, text in survivors), encoding="utf-8")
    print(f"survivors: {out / 'survivors.txt'}")
    unexplained = sum(bare for bare, _ in survivors)
    if unexplained:
        failures.append(f"{unexplained} of {len(survivors)} survivors have no listed reason")
    return failures


def in_words(mutant: Mutant) -> str:
    """Return where a mutant is, and the line before and after."""
    place = f"{mutant.file}:{mutant.line} {mutant.function} ({mutant.operator})"
    return f"{place}\n  - {mutant.original}\n  + {mutant.mutated}\n"


def score(tally: Counter[str]) -> float:
    """Return the share of mutants that were found, of those that could be."""
    found = tally["killed"] + tally["timed out"]
    return found / max(found + tally["survived"], 1)


def _print_row(room: str, tally: Counter[str]) -> None:
    print(f"{room:13}{tally['mutants']:8}{tally['of']:6}{tally['killed']:8}", end="")
    print(f"{tally['timed out']:11}{tally['survived']:10}{tally['equivalent']:12}", end="")
    print(f"{score(tally):9.1%}", flush=True)


if __name__ == "__main__":
    steady = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # For tests that start an interpreter of their own.
    paths = [str(ROOT / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    steady["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))
    if any(os.environ.get(name) != value for name, value in steady.items()):
        command = [sys.executable, *sys.argv]
        os.execve(sys.executable, command, {**os.environ, **steady})  # noqa: S606
    sys.exit(main())
