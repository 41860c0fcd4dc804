"""Run the core's tests inside Pyodide, where Python has 32 bits: ``make web-test``.

Each file of tests runs in a Python of its own under Node.js, with numpy and scipy as a browser has
them. Tests that need what no browser has (processes, compiled engines, the command) are skipped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from get_pyodide import folder, is_complete, pinned

ROOT = Path(__file__).resolve().parent.parent
#: The rooms up to `answers`, file by file, and the tables and pages that the calculators use.
CORE = [
    "metrics",
    "law",
    "evidence",
    "estimators",
    "contract",
    "observed",
    "solvers",
    "curves",
    "confidence",
    "intervals",
    "calibrated",
    "auto",
    "prior",
    "golden",
    "published",
    "planning",
    "estimation",
    "comparison",
    "pools",
    "unequal",
    "users",
    "user_metrics",
    "guided",
    "evaluate",
    "together",
    "ranking",
    "needed",
    "audit",
    "calculators",
]
#: Pure Python that the tests need beside hypothesis.
HELPERS = [
    "attrs",
    "iniconfig",
    "ir-measures",
    "jinja2",
    "markupsafe",
    "mpmath",
    "narwhals",
    "packaging",
    "pluggy",
    "pygments",
    "pytest",
    "sortedcontainers",
]


def _assemble(place: Path) -> None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=CORE, help="of files: law is tests/test_law.py")
    given = parser.parse_args()
    if not is_complete(folder()):
        sys.exit(f"no Pyodide in {folder()}; get it with: python tools/get_pyodide.py")
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        _assemble(Path(temporary))
        environment = {**os.environ, "PYODIDE": str(folder()), "LIBRARIES": temporary}
        for name in given.names:
            script, test = ROOT / "tests" / "pyodide" / "run.mjs", f"tests/test_{name}.py"
            ended = subprocess.run(  # noqa: S603
                ["node", str(script), str(ROOT), test],  # noqa: S607
                check=False,
                env=environment,
                text=True,
                encoding="utf-8",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            # Errors of the engine show its whole source, in one line.
            lines = [line[:300] for line in ended.stdout.splitlines()]
            print(f"{name}: {lines[-1] if lines else 'nothing was said'}", flush=True)
            if ended.returncode != 0:
                failed.append(name)
                print("\n".join(lines), flush=True)
    sys.exit(f"failed in Pyodide: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
