"""The rooms that mutants are planted in, their tests, and what all of the tool shares."""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "unsample"
#: The rooms, and the tests that were written for each: they come first.
ROOMS = {
    "law": ("law",),
    "metrics": ("metrics",),
    "evidence": ("evidence",),
    "estimators/_solvers": ("solvers", "golden"),
    "estimators": ("golden", "estimators", "observed", "curves"),
}
#: The small, fast tests of these rooms; the doctests of the rooms themselves come on top.
TESTS = (
    "contract", "curves", "estimation", "estimators", "evidence", "golden", "law", "metrics",
    "observed", "solvers",
)  # fmt: skip
#: How a process ends where this script, not the mutant, is wrong.
BROKEN = 70
QUIET = (
    "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no",
    # Test libraries loaded before the fork do not want to be rewritten any more.
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip


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


def file_of(node: str) -> str:
    return node.partition("::")[0]


def forget_cached_answers(package: str) -> None:
    """Clear the caches of a package's functions, so that nothing lives on earlier calls."""
    cached = type(functools.cache(len))
    for thing in gc.get_objects():
        if isinstance(thing, cached) and thing.__module__.startswith(package):
            thing.cache_clear()


def fork(work: Callable[[], int]) -> int:
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
