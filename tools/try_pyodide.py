"""Run the library's tests inside Pyodide, where Python has 32 bits: ``pytest -m web``.

A few files of tests at a time run in a Python of their own under Node.js, with numpy and scipy as a
browser has them, so that what they took in memory is free for the next. The last lines say how many
tests passed, failed and were skipped, and what was left out and why.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree as ET

from get_pyodide import folder, is_complete, pinned

ROOT = Path(__file__).resolve().parent.parent
#: Files of tests that are about something no browser has, by what that is. All others are run.
LEFT_OUT = {
    "the command, which is not for browsers": [
        "cli",
        "cli_loading",
        "cli_options",
        "cli_streams",
        "cli_tables",
    ],
    "other libraries, compiled ones among them": [
        "libraries",
        "plots",
        "spark",
        "tables",
        "torchmetrics",
    ],
    "devices, processes and threads": [
        "files",
        "many_models",
        "parsers",
        "ranking_device",
        "security",
        "threads",
    ],
    "the laboratory, which the page does not use": [
        "lab_bank",
        "lab_datasets",
        "lab_command",
        "lab_paper",
        "lab_real",
        "lab_recommenders",
    ],
    "browsers, tools and documentation": [
        "benchmarks",
        "browser",
        "docs",
        "papers",
        "web",
    ],
    "statistical promises, which take hours": [
        "validity",
        "validity_adversary",
        "validity_audit",
        "validity_guided",
        "validity_pools",
        "validity_together",
        "validity_users",
    ],
}
#: Pure Python that the tests need beside hypothesis.
HELPERS = [
    "attrs",
    "iniconfig",
    "ir-measures",
    "jinja2",
    "markupsafe",
    "mpmath",
    "packaging",
    "pluggy",
    "pygments",
    "pytest",
    "sortedcontainers",
    "threadpoolctl",
]
#: Lines of tests that run in one Python: to start it takes as long as some files do.
TOGETHER = 900
#: Seconds that they may take before they count as failed.
PATIENCE = 3600


@dataclass
class Outcome:
    """What came of the tests of one file, or of all of them."""

    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    #: What a person wants to read where something failed.
    told: str = ""

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped.total()} skipped"

    def add(self, other: Outcome) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def all_names() -> list[str]:
    """Return the files to run: every one that is not left out."""
    left_out = {name for names in LEFT_OUT.values() for name in names}
    found = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")}
    if unknown := left_out - found:
        sys.exit(f"LEFT_OUT names files that are not in tests/: {', '.join(sorted(unknown))}")
    return sorted(found - left_out)


def assemble(place: Path) -> None:
    """Lay out numpy, scipy and the pure libraries as Python finds them."""
    wheels = [folder() / name for name in pinned() if name.endswith(".whl")]
    for wheel in (*wheels, *folder().glob("hypothesis-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place)
    for name in HELPERS:
        found = distribution(name)
        for file in found.files or ():
            if file.suffix not in {".so", ".pyc"} and ".." not in file.parts:
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                (place / file).write_bytes(Path(found.locate_file(file)).read_bytes())


def groups(names: list[str]) -> Iterator[list[str]]:
    """Yield the files that run together."""
    group, lines = [], 0
    for name in names:
        group.append(name)
        lines += len((ROOT / "tests" / f"test_{name}.py").read_text(encoding="utf-8").splitlines())
        if lines >= TOGETHER or name == names[-1]:
            yield group
            group, lines = [], 0


def run_files(names: list[str], libraries: Path) -> Outcome:
    """Run some files of tests in a process of their own, and read its report."""
    report = libraries / f"{names[0]}.xml"
    script = ROOT / "tests" / "pyodide" / "run.mjs"
    command = ["node", str(script), str(ROOT), f"--junitxml=/libraries/{report.name}"]
    command += [f"tests/test_{name}.py" for name in names]
    try:
        ended = subprocess.run(  # noqa: S603
            command,
            check=False,
            env={**os.environ, "PYODIDE": str(folder()), "LIBRARIES": str(libraries)},
            text=True,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Outcome(failed=1, told=f"no end after {PATIENCE} s")
    # Errors of the engine show its whole source, in one line.
    told = "\n".join(line[:300] for line in ended.stdout.splitlines())
    if not report.is_file():
        return Outcome(failed=1, told=f"ended without a report\n{told}")
    found = outcome_of(report)
    if ended.returncode != 0:
        found.failed = max(found.failed, 1)
        found.told = told
    return found


def outcome_of(report: Path) -> Outcome:
    """Read what pytest wrote."""
    found = Outcome()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            found.failed += 1
        elif skipped is not None:
            found.skipped[skipped.get("message", "no reason given")] += 1
        else:
            found.passed += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="files: law is tests/test_law.py; else all")
    parser.add_argument("--jobs", type=int, default=2, help="Pythons at a time")
    given = parser.parse_args()
    if not is_complete(folder()):
        sys.exit(f"no Pyodide in {folder()}; get it with: python tools/get_pyodide.py")
    names, total, start = given.names or all_names(), Outcome(), time.monotonic()
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        assemble(Path(temporary))
        together = list(groups(names))
        with ThreadPoolExecutor(given.jobs) as pool:
            outcomes = pool.map(lambda group: run_files(group, Path(temporary)), together)
            for group, found in zip(together, outcomes, strict=True):
                total.add(found)
                print(f"{', '.join(group)}: {found}", flush=True)
                if found.failed:
                    failed += group
                    print(found.told, flush=True)
    print("\nSkipped, not there in the browser or not of this run:")
    for reason, number in total.skipped.most_common():
        print(f"{number:6}  {reason}")
    if not given.names:
        print("\nFiles left out, because they are about")
        for reason, files in LEFT_OUT.items():
            print(f"{len(files):6}  {reason}: {', '.join(files)}")
    minutes = (time.monotonic() - start) / 60
    print(f"\n{total} in {len(names)} files ({minutes:.0f} min)")
    sys.exit(f"failed, one or more of: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
