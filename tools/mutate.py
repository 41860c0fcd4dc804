"""Mutation testing of the core rooms: plant small errors one by one, and see which no test finds.

    python tools/mutate.py [ROOM...] [--workers N] [--sample SHARE --seed S] [--out FOLDER]

First every test runs once, traced, so that it is known which lines it reaches and how long it
takes. Then the tests are collected, and each mutant gets a process of its own, forked from there:
it exchanges the code of the changed function (or, where the change is outside functions, imports
the package and the tests anew) and runs the tests that reach the changed line, the room's own and
the fast ones first, until one fails. A limit of processor time ends what hangs. The folder
``mutation`` holds the changes, the survey, the trials and the rooms.

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
import hashlib
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from mutation.listed import Listed, read_listed, stale
from mutation.mutations import Mutant, mutants_of
from mutation.rooms import (
    QUIET,
    ROOMS,
    ROOT,
    file_of,
    fingerprint,
    package_files,
    room_files,
    test_files,
)
from mutation.survey import Case, load_survey
from mutation.trials import ended, run_mutants, start

LISTED = Path(__file__).with_name("mutants")
GOAL = 0.85


@dataclass(frozen=True)
class Result:
    """What became of a mutant: killed, timed out or survived, and by which test."""

    key: str
    mutant: str
    status: str
    by: str
    seconds: float


# -- what is kept --------------------------------------------------------------------------


def state_of_everything() -> str:
    """Return a hash of all that results depend on, but for the mutant."""
    here = Path(__file__).resolve()
    own = [here, *(here.parent / "mutation").glob("*.py")]
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
        tried = run_mutants(todo, cases, session, workers=options.workers, budget=options.budget)
        for done, (mutant, *outcome) in enumerate(tried, start=1):
            note(done, mutant, *outcome)

    if todo:
        files = sorted({file_of(case.node) for case in cases})
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
        child, work = start(replace(nothing, at_import=at_import), cases, session)
        while (outcome := ended(child, work)) is None:
            time.sleep(0.05)
        status, by, _ = outcome
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
