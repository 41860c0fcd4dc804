"""Build wheel and sdist, check them, and try the wheel in empty environments: ``make dist``.

Each Python from 3.11 to 3.13 that is found (on the path, or among those of pyenv) gets two
environments: one with the lowest versions of the dependencies that pyproject.toml allows, and one
with the newest. The first command of the README runs in each.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13")
MAX_MEGABYTES = 2.0


def build() -> Path:
    """Return the wheel, made anew beside the sdist, after checks of both."""
    shutil.rmtree(DIST, ignore_errors=True)
    python("-m", "hatchling", "build", "-d", DIST)
    python("-m", "twine", "check", "--strict", *DIST.iterdir())
    (wheel,) = DIST.glob("*.whl")
    megabytes = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {megabytes:.2f} MB")
    if megabytes > MAX_MEGABYTES:
        sys.exit(f"the wheel must have at most {MAX_MEGABYTES:g} MB")
    return wheel


def python(*arguments: object, executable: object = sys.executable) -> str:
    """Run a Python and return what it prints; stop if it fails."""
    call = [str(executable), *map(str, arguments)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{shlex.join(call)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def interpreters() -> dict[str, Path]:
    """Return the Pythons that are there, by version."""
    found = {}
    for version in VERSIONS:
        named = shutil.which(f"python{version}")
        others = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python"))
        for path in [*([Path(named)] if named else []), *others]:
            asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            told = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
            if told.stdout.strip() == version:
                found.setdefault(version, path)
    return found


def lowest(version: str) -> list[str]:
    """Return the lowest versions of the dependencies that a Python may have."""
    found = []
    for requirement in PROJECT["dependencies"]:
        name, least, sign, limit = re.fullmatch(
            r"([\w-]+)>=([\d.]+)(?:; python_version (<|>=) '([\d.]+)')?", requirement
        ).groups()
        newer = sign is not None and int(version[2:]) >= int(limit[2:])
        if sign is None or newer == (sign == ">="):
            found.append(f"{name}=={least}")
    return found


def first_command() -> list[str]:
    """Return the first call of the command in the README, as words."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    line = re.search(r"^(?:\$ )?unsample (.+)$", text, re.MULTILINE)
    return shlex.split(line[1], comments=True)


def try_out(wheel: Path, version: str, path: Path, pins: list[str]) -> None:
    """Install the wheel into an empty environment, and run the first command."""
    with tempfile.TemporaryDirectory() as folder:
        python("-m", "venv", folder, executable=path)
        own = Path(folder) / "bin" / "python"
        python("-m", "pip", "install", "--quiet", wheel, *pins, executable=own)
        printed = python("-m", "unsample", *first_command(), executable=own)
        listed = python("-m", "pip", "list", "--format=freeze", executable=own)
    names = {re.match(r"[\w-]+", each)[0] for each in PROJECT["dependencies"]}
    kept = [line for line in listed.split() if line.partition("==")[0] in names]
    print(f"Python {version}, {', '.join(kept)}: {len(printed.splitlines())} lines printed")


def main() -> None:
    """Build, check and try."""
    wheel = build()
    pythons = interpreters()
    for version, path in pythons.items():
        for pins in (lowest(version), []):
            try_out(wheel, version, path, pins)
    missing = sorted(set(VERSIONS) - set(pythons))
    print(f"not tried, for they are not here: Python {', '.join(missing)}" if missing else "done")


if __name__ == "__main__":
    main()
