"""Does a test fail when the core is wrong? ``make mutants`` runs mutmut and judges what it finds.

Mutmut copies the functions of the packages from metrics to posterior, each with one small error,
and runs the tests that reach the function (pyproject.toml says which). There are thousands, so a
sample is drawn of each package, with a fixed seed. At least 90 % must be found. Those that survive
are listed in ``out/mutants.md``. `HARMLESS` says which changes alter no number and no refusal, and
why; they are listed with their reason, and count neither as found nor as tried.

    python tools/mutants.py                 60 of each package, about ten minutes
    python tools/mutants.py --size 100000   all of them, hours
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "mutants"
LISTED = ROOT / "out" / "mutants.md"
MIN_SHARE = 0.9
#: What mutmut says of a mutant by the exit code of its tests: 0 survived, 33 no test reaches it.
SURVIVED, UNREACHED = 0, 33
#: What is left of two lines once these are taken out of both -> why a change of it does no harm.
HARMLESS = {
    r",? *dtype=[\w.]+|astype\([\w.]+(, copy=\w+)?\)|, copy=\w+": "the type that it has anyway",
    r",? *strict=\w+": "both are equally long by construction",
    r"f?\"[^\"]* [^\"]*\"|,? *hint=\w+": "words, which tests of messages read in part",
    r"cast\(.*?, ": "for the type checker alone",
}

#: Functions that modules call while they are loaded, before mutmut puts any mutant in place.
UNTRIED = ("unsample.metrics._families.x__ideal_share",)


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
    names = sorted(name for name in results() if function(name) not in UNTRIED)
    for each in sorted(set(map(package, names))):
        some = [name for name in names if package(name) == each]
        chosen += random.Random(seed).sample(some, min(size, len(some)))  # noqa: S311
    return chosen


def report(chosen: list[str]) -> bool:
    """Print the share that was found by package, list what survived; is it enough?"""
    found, known = results(), reached()
    codes = {name: found[name] if function(name) in known else UNREACHED for name in chosen}
    survivors = {
        name: change(name) for name, code in sorted(codes.items()) if code in (SURVIVED, UNREACHED)
    }
    why = {name: reason(lines) for name, lines in survivors.items()}
    table = ["| package | mutants | harmless | found | share |", "| --- | --- | --- | --- | --- |"]
    for each in [*sorted(set(map(package, chosen))), ""]:
        some = [name for name in chosen if not each or package(name) == each]
        harmless = sum(bool(why.get(name)) for name in some)
        number, tried = sum(name not in survivors for name in some), len(some) - harmless
        share = number / tried
        error = (share * (1.0 - share) / tried) ** 0.5
        shown = f"{share:.1%} ± {error:.1%}"
        table.append(f"| {each or 'all'} | {len(some)} | {harmless} | {number} | {shown} |")
    print(*table, sep="\n")
    listed = [
        "\n    ".join([f"\n{name}: {why[name] or 'no test finds it'}\n", *lines])
        for name, lines in survivors.items()
    ]
    LISTED.parent.mkdir(exist_ok=True)
    LISTED.write_text("\n".join([*table, *listed]) + "\n", encoding="utf-8")
    print(f"survivors are listed in {LISTED.relative_to(ROOT)}")
    return share >= MIN_SHARE


def change(name: str) -> list[str]:
    """Return the lines that a mutant takes out and puts in."""
    call = [sys.executable, "-m", "mutmut", "show", name]
    shown = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return [line for line in shown.stdout.splitlines() if line[:1] in ("-", "+")][2:]


def reason(lines: list[str]) -> str:
    """Return why a change does no harm; nothing if it may."""
    before, after = ("".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    for pattern, why in HARMLESS.items():
        if re.search(pattern, before):
            left, right = (
                re.sub(r"[\s,]|\bNone\b", "", re.sub(pattern, "", side)) for side in (before, after)
            )
            if left == right:
                return why
    return ""


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
        sys.exit(f"at least {MIN_SHARE:.0%} must be found")


if __name__ == "__main__":
    main()
