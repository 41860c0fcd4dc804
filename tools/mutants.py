"""Does a test fail when the core is wrong? ``make mutants`` runs mutmut and judges what it finds.

Mutmut copies the functions of metrics, law, evidence, prior and bounds, each with one small error,
and runs the tests that reach the function (pyproject.toml says which). There are thousands, so a
sample is drawn of each package, with a fixed seed. At least 90 % must be found. Those that survive
are listed in ``out/mutants.md``; `EXCUSED` says of which functions they may, and why.

    python tools/mutants.py                 60 of each package, about half an hour
    python tools/mutants.py --size 100000   all of them, hours
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "mutants"
LISTED = ROOT / "out" / "mutants.md"
LEAST = 0.9
#: What mutmut says of a mutant by the exit code of its tests: 0 survived, 33 no test reaches it.
SURVIVED, UNREACHED = 0, 33
#: Functions of which mutants may survive, by the beginning of their names.
EXCUSED: dict[str, str] = {}


def mutmut(*names: str) -> str:
    """Run mutmut on some mutants, and return the end of what it prints, without its spinner."""
    workers = str(len(os.sched_getaffinity(0)))
    call = [sys.executable, "-m", "mutmut", "run", "--max-children", workers, *names]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    lines = (line.rpartition("\r")[2] for line in (done.stdout + done.stderr).splitlines())
    return "\n".join(lines)[-3000:]


def results() -> dict[str, int | None]:
    """Return the exit code of each mutant's tests; None where they have not run."""
    found: dict[str, int | None] = {}
    for path in sorted(FOLDER.rglob("*.meta")):
        found |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def reached() -> set[str]:
    """Return the functions that some test reaches, by their names in mutants."""
    stats = json.loads((FOLDER / "mutmut-stats.json").read_text(encoding="utf-8"))
    return {name for name, tests in stats["tests_by_mangled_function_name"].items() if tests}


def package(name: str) -> str:
    """Return the package that a mutant belongs to."""
    return name.split(".")[1]


def function(name: str) -> str:
    """Return the function that a mutant was made of."""
    return name.partition("__mutmut_")[0]


def draw(size: int, seed: int) -> list[str]:
    """Return mutants of each package, as many at most."""
    chosen = []
    names = sorted(results())
    for each in sorted(set(map(package, names))):
        some = [name for name in names if package(name) == each]
        chosen += random.Random(seed).sample(some, min(size, len(some)))  # noqa: S311
    return chosen


def report(chosen: list[str]) -> bool:
    """Print the share that was found by package, list what survived; is it enough?"""
    found, known = results(), reached()
    codes = {name: found[name] if function(name) in known else UNREACHED for name in chosen}
    lost = {name for name, code in codes.items() if code in (SURVIVED, UNREACHED)}
    table = ["| package | mutants | found | share |", "| --- | --- | --- | --- |"]
    for each in [*sorted(set(map(package, chosen))), ""]:
        some = [name for name in chosen if not each or package(name) == each]
        number = len(set(some) - lost)
        share = number / len(some)
        error = (share * (1.0 - share) / len(some)) ** 0.5
        table.append(f"| {each or 'all'} | {len(some)} | {number} | {share:.1%} ± {error:.1%} |")
    print(*table, sep="\n")
    LISTED.parent.mkdir(exist_ok=True)
    LISTED.write_text("\n".join([*table, *map(described, sorted(lost))]) + "\n", encoding="utf-8")
    print(f"survivors are listed in {LISTED.relative_to(ROOT)}")
    return 1.0 - len(lost) / len(chosen) >= LEAST


def described(name: str) -> str:
    """Return a mutant that survived: why it may, and what was changed."""
    why = [reason for start, reason in EXCUSED.items() if name.startswith(start)]
    call = [sys.executable, "-m", "mutmut", "show", name]
    shown = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    changed = [line for line in shown.stdout.splitlines() if line[:1] in ("-", "+")][2:]
    return "\n    ".join([f"\n{name}: {why[0] if why else 'no test finds it'}\n", *changed])


def main() -> None:
    """Make the mutants, try a sample of them, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=60, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    # No mutant has this name: mutmut makes all of them, notes which test reaches what, and stops.
    told = mutmut("none")
    if not (FOLDER / "mutmut-stats.json").exists():
        sys.exit(f"the tests must pass before anything is wrong; mutmut says:\n{told}")
    names = draw(chosen.size, chosen.seed)
    known = reached()
    tried = [name for name in names if function(name) in known]
    told, found = mutmut(*tried), results()
    if any(found[name] is None for name in tried):
        sys.exit(f"every mutant must be tried; mutmut says:\n{told}")
    if not report(names):
        sys.exit(f"at least {LEAST:.0%} must be found")


if __name__ == "__main__":
    main()
