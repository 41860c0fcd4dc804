"""Build the package, install it into clean environments, and run the tests against it there.

Nothing is tested from the working tree: the tests are copied into an empty folder, and what they
import is the installed wheel. Every step is a line of the table at the end.

    python tools/try_versions.py                 all of the below
    python tools/try_versions.py wheel           wheel and sdist: content, metadata, the same bytes
                                                 twice, a core installation, a clean uninstall
    python tools/try_versions.py minimal         tests with the lowest versions that are allowed
    python tools/try_versions.py current         tests with the newest versions
    python tools/try_versions.py pythons         tests with the newest versions, in every other
                                                 Python that is found (python3.11, python3.12, ...)
    python tools/try_versions.py minimal -- tests/test_counts.py     what pytest is to run

torch is never installed here: its builds are too large, and ``make libraries`` tests with it. Nor
is Spark, which wants Java.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
#: Extras that the tests are run with; see above for those left out.
EXTRAS = ("frames", "data", "report", "recsys", "dask")
#: What developing needs, but no test does.
NOT_FOR_TESTS = ("unsample", "coverage", "import-linter", "mypy", "ruff", "scipy-stubs")
#: Tools that build and check, in an environment of their own.
TOOLS = ("uv", "hatchling", "twine")
#: Tests of the source tree itself, and of recommenders that learn with torch.
LEFT_OUT = (
    "--ignore=tests/test_docs.py",
    "--ignore=tests/test_mutate.py",
    "--ignore=tests/test_lab_recommenders.py",
    (
        "--deselect=tests/test_lab_evaluate.py"
        "::test_validation_chooses_the_epochs_and_then_all_pairs_are_learnt"
    ),
)
OLDEST = re.search(r"\d+\.\d+", PROJECT["project"]["requires-python"])[0]  # type: ignore[index]
#: Old libraries call what newer ones below them deprecate: no failure of ours.
DEPRECATIONS = ("-W", "default::DeprecationWarning", "-W", "default::FutureWarning")
CORE = """
import sys, unsample
result = unsample.estimate([1, 1, 2, 5, 40] * 20, items=3706, sampled=99, metrics="Recall@50")
assert 0.4 < result["Recall@50"].value < 0.6, result
heavy = {"polars", "pyarrow", "pandas", "matplotlib", "jinja2", "torch"} & set(sys.modules)
assert not heavy, heavy
print(unsample.__file__)
"""


@dataclass(frozen=True)
class Outcome:
    """What was tried, whether it went well, and what was seen."""

    what: str
    passed: bool
    seen: str
    seconds: float

    def __str__(self) -> str:
        word = "ok" if self.passed else "FAILED"
        return f"{word:7}{self.what:<58}{self.seconds:6.0f} s  {self.seen}"


class TrialError(Exception):
    """A step did not go as it must; the text says what was seen."""


def attempt(what: str, step: Callable[[], str]) -> Outcome:
    """Take a step and return what came of it, printed as soon as it is known."""
    start = time.monotonic()
    try:
        passed, seen = True, step()
    except TrialError as problem:
        passed, seen = False, str(problem)
    outcome = Outcome(what, passed, seen, time.monotonic() - start)
    print(outcome, flush=True)
    return outcome


def call(*command: object, folder: Path = HERE, **changes: str) -> str:
    """Return what a command prints; a failure of the command is one of the step."""
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(  # noqa: S603
        [str(part) for part in command],
        cwd=folder,
        env={**environment, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-2000:], sep="\n")
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise TrialError(f"exit code {done.returncode}: {' '.join(last)[:160]}")
    return done.stdout + done.stderr


def require(condition: bool, seen: str) -> None:
    """End the step where a condition does not hold."""
    if not condition:
        raise TrialError(seen)


@dataclass(frozen=True)
class Workshop:
    """The folder of environments, the tools in it, and the built files."""

    folder: Path

    @property
    def tools(self) -> Path:
        return self.folder / "tools" / "bin"

    @property
    def wheel(self) -> Path:
        return only(self.folder / "dist", "*.whl")

    @property
    def sdist(self) -> Path:
        return only(self.folder / "dist", "*.tar.gz")

    def prepare(self) -> None:
        """Make the environment of the tools, and build wheel and sdist."""
        if not (self.tools / "twine").exists():
            venv.create(self.folder / "tools", with_pip=True, clear=True)
            call(self.tools / "python", "-m", "pip", "install", "--quiet", *TOOLS)
        self.build(HERE, self.folder / "dist")

    def build(self, source: Path, out: Path, *kinds: str) -> None:
        """Build with the time of the last commit, so that the same source gives the same bytes."""
        shutil.rmtree(out, ignore_errors=True)
        stamp = call("git", "log", "-1", "--format=%ct").strip()
        wanted = kinds or ("sdist", "wheel")
        for kind in wanted:
            command = (self.tools / "python", "-m", "hatchling", "build", "-t", kind, "-d", out)
            call(*command, folder=source, SOURCE_DATE_EPOCH=stamp)

    def environment(self, name: str, python: str) -> Path:
        """Return the Python of a fresh environment, which holds nothing at all."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        call(self.tools / "uv", "venv", "--quiet", "--python", python, place)
        return place / "bin" / "python"

    def install(self, python: Path, *what: object) -> None:
        uv = (self.tools / "uv", "pip", "install", "--quiet", "--only-binary", ":all:")
        call(*uv, "--python", python, *what, UV_TORCH_BACKEND="cpu")


def only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    require(len(found) == 1, f"one {pattern} expected in {folder.name}, got {len(found)}")
    return found[0]


# -- wheel and sdist -----------------------------------------------------------------------------


def try_wheel(shop: Workshop) -> Iterator[Outcome]:
    yield attempt("wheel and sdist hold what they should", lambda: check_content(shop))
    yield attempt("metadata is complete, and twine accepts it", lambda: check_metadata(shop))
    yield attempt("built twice, the bytes are the same", lambda: check_same_bytes(shop))
    yield attempt("the wheel built from the sdist is the same", lambda: check_from_sdist(shop))
    yield attempt("core installation: imports, estimates, names extras", lambda: check_core(shop))
    yield attempt("uninstalling leaves nothing", lambda: check_uninstall(shop))


def check_content(shop: Workshop) -> str:
    with zipfile.ZipFile(shop.wheel) as wheel:
        names = set(wheel.namelist())
    tracked = set(call("git", "ls-files", "src").split())
    expected = {name.removeprefix("src/") for name in tracked}
    inside = {name for name in names if ".dist-info/" not in name}
    require(inside == expected, f"differs from the tracked files: {sorted(inside ^ expected)[:5]}")
    for needed in ("unsample/py.typed", "licenses/LICENSE", "entry_points.txt"):
        require(any(name.endswith(needed) for name in names), f"{needed} is missing")
    require(any(name.endswith(".npz") for name in names), "no bundled ranks")
    with tarfile.open(shop.sdist) as sdist:
        packed = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    for needed in ("LICENSE", "README.md", "CHANGELOG.md", "tests/conftest.py", "pyproject.toml"):
        require(needed in packed, f"{needed} is missing from the sdist")
    sizes = [file.stat().st_size / 1e6 for file in (shop.wheel, shop.sdist)]
    return f"{len(names)} files, {sizes[0]:.1f} MB; sdist {len(packed)} files, {sizes[1]:.1f} MB"


def check_metadata(shop: Workshop) -> str:
    call(shop.tools / "twine", "check", "--strict", shop.wheel, shop.sdist)
    with zipfile.ZipFile(shop.wheel) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        text = email.message_from_bytes(wheel.read(name))
    for field in ("Summary", "License-Expression", "License-File", "Requires-Python", "Keywords"):
        require(field in text, f"{field} is missing")
    extras = set(text.get_all("Provides-Extra") or ())
    require(extras == set(PROJECT["project"]["optional-dependencies"]), f"extras: {extras}")
    return f"version {text['Version']}, {len(extras)} extras, Python {text['Requires-Python']}"


def digests(files: Sequence[Path]) -> list[str]:
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def check_same_bytes(shop: Workshop) -> str:
    again = Workshop(shop.folder / "again")
    shop.build(HERE, again.folder / "dist")
    first, second = digests([shop.wheel, shop.sdist]), digests([again.wheel, again.sdist])
    require(first == second, "they differ")
    return f"wheel {first[0][:12]}, sdist {first[1][:12]}"


def check_from_sdist(shop: Workshop) -> str:
    place = shop.folder / "unpacked"
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(shop.sdist) as sdist:
        sdist.extractall(place, filter="data")
    source = next(place.iterdir())
    shop.build(source, place / "dist", "wheel")
    same = digests([only(place / "dist", "*.whl")]) == digests([shop.wheel])
    require(same, "the two wheels differ")
    return "same bytes"


def check_core(shop: Workshop) -> str:
    python = shop.environment("core", sys.executable)
    shop.install(python, shop.wheel)
    empty = empty_folder(shop)
    place = call(python, "-I", "-X", "dev", "-W", "error", "-c", CORE, folder=empty)
    require(str(shop.folder) in place, f"imported from elsewhere: {place}")
    (empty / "ranks.csv").write_text("rank\n" + "1\n5\n40\n" * 30)
    command = [python.parent / "unsample", "estimate", "ranks.csv", "--items", "3706"]
    told = json.loads(call(*command, "--sampled", "99", "--quiet", "--json", folder=empty))
    require(told["users"] == 90, f"{told['users']} users")
    failed = subprocess.run(  # noqa: S603
        [str(part) for part in (*command, "--sampled", "99", "--html", "page.html")],
        cwd=empty,
        capture_output=True,
        text=True,
        check=False,
    )
    require(failed.returncode != 0, "a page was made without the report extra")
    require("unsample[report]" in failed.stderr, f"no extra named: {failed.stderr[-100:]}")
    call(shop.tools / "uv", "pip", "check", "--python", python)
    return f"{len(installed(shop, python))} distributions"


def check_uninstall(shop: Workshop) -> str:
    python = shop.folder / "core" / "bin" / "python"
    call(shop.tools / "uv", "pip", "uninstall", "--quiet", "--python", python, "unsample")
    left = [
        path
        for path in (shop.folder / "core").rglob("*unsample*")
        if path.suffix != ".pyc" and "__pycache__" not in path.parts
    ]
    require(not left, f"left: {[path.name for path in left][:5]}")
    return "nothing"


def installed(shop: Workshop, python: Path) -> dict[str, str]:
    listing = call(shop.tools / "uv", "pip", "list", "--format", "json", "--python", python)
    found = json.loads(listing[listing.index("[") : listing.rindex("]") + 1])
    return {one["name"]: one["version"] for one in found}


# -- the tests, against the installed wheel ------------------------------------------------------


def empty_folder(shop: Workshop) -> Path:
    place = shop.folder / "empty"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def test_requirements() -> list[str]:
    """Return what the tests import beside the package and its extras."""
    listed = PROJECT["project"]["optional-dependencies"]["dev"]
    return [one for one in listed if re.split(r"[\[<>=]", one)[0] not in NOT_FOR_TESTS]


def lowest_versions(shop: Workshop) -> list[str]:
    """Return the lowest versions that pyproject.toml allows, of what it names directly."""
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    options = (
        "--resolution",
        "lowest-direct",
        "--python-version",
        OLDEST,
        "--only-binary",
        ":all:",
    )
    command = (shop.tools / "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate")
    text = call(*command, *options, *extras, HERE / "pyproject.toml")
    pinned = dict(line.split("==") for line in text.split() if "==" in line)
    direct = PROJECT["project"]["dependencies"] + [
        one for extra in EXTRAS for one in PROJECT["project"]["optional-dependencies"][extra]
    ]
    names = {re.split(r"[\[<>=]", one)[0].lower() for one in direct}
    return [f"{name}=={pinned[name]}" for name in sorted(names)]


def try_minimal(shop: Workshop, options: list[str]) -> Iterator[Outcome]:
    pins = lowest_versions(shop)
    options = [*DEPRECATIONS, *options]
    python = shop.environment("minimal", OLDEST)
    yield attempt(
        f"tests, Python {OLDEST}, lowest versions",
        lambda: run_tests(shop, python, [*pins, *test_requirements()], EXTRAS, options),
    )


def try_current(shop: Workshop, options: list[str]) -> Iterator[Outcome]:
    python = shop.environment("current", sys.executable)
    yield attempt(
        f"tests, Python {sys.version.split()[0]}, newest versions",
        lambda: run_tests(shop, python, test_requirements(), EXTRAS, options),
    )


def try_pythons(shop: Workshop, options: list[str]) -> Iterator[Outcome]:
    others = other_pythons()
    if not others:
        print("no other Python is on the path: nothing was tried")
    for version, path in others.items():
        python = shop.environment(f"python{version}", path)
        extras = [extra for extra in EXTRAS if installs(shop, python, extra)]
        yield attempt(
            f"tests, Python {version}, extras {', '.join(extras) or 'none'}",
            lambda python=python, extras=extras: run_tests(  # type: ignore[misc]
                shop, python, test_requirements(), extras, options
            ),
        )


def other_pythons() -> dict[str, str]:
    """Return the Pythons that can be found and are not too old, but for the one that runs this."""
    found = {}
    for minor in range(int(OLDEST.split(".")[1]), sys.version_info.minor + 20):
        for name in (f"python3.{minor}", f"python3.{minor}t"):
            path = shutil.which(name)
            if path and (minor, name[-1] == "t") != (sys.version_info.minor, False):
                code = "import platform; print(platform.python_version())"
                try:
                    found[call(path, "-c", code).strip() + name[-1].strip("0123456789")] = path
                except TrialError:  # a shim of a version manager without a Python behind it
                    continue
    return found


def installs(shop: Workshop, python: Path, extra: str) -> bool:
    """Return whether all of an extra can be had for this Python."""
    try:
        shop.install(python, f"{shop.wheel}[{extra}]")
    except TrialError:
        return False
    return True


def run_tests(
    shop: Workshop,
    python: Path,
    requirements: Sequence[str],
    extras: Sequence[str],
    options: Sequence[str],
) -> str:
    """Run the tests in a folder without the source, and return their summary and versions."""
    shop.install(python, f"{shop.wheel}[{','.join(extras)}]" if extras else shop.wheel)
    shop.install(python, shop.wheel, *requirements)
    empty = empty_folder(shop)
    for name in call("git", "ls-files").splitlines():
        if not name.startswith("src/"):
            (empty / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / name, empty / name)
    chosen = () if any(one.startswith("tests") for one in options) else ("tests", "README.md")
    pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LEFT_OUT, *options, *chosen)
    lines = call(*pytest, folder=empty).splitlines()
    ended = next(line for line in reversed(lines) if re.search(r" in [\d.]+s", line))
    summary = re.sub(r" in [\d.]+s.*", "", ended.strip("= "))
    versions = installed(shop, python)
    named = ("numpy", "scipy", "polars", "pyarrow", "pandas")
    listed = ", ".join(f"{name} {versions[name]}" for name in named if name in versions)
    return f"{summary}; {listed}"


TRIALS = ("wheel", "minimal", "current", "pythons")


def main() -> int:
    """Try what was asked for, print the table, and return how many steps failed."""
    arguments, _, options = _split(sys.argv[1:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("trials", nargs="*", metavar="TRIAL", choices=[*TRIALS, []])
    parser.add_argument("--environments", type=Path, default=HERE / "out" / "versions")
    chosen = parser.parse_args(arguments)
    shop = Workshop(chosen.environments.resolve())
    shop.prepare()
    outcomes: list[Outcome] = []
    for trial in chosen.trials or TRIALS:
        if trial == "wheel":
            outcomes += try_wheel(shop)
        else:
            tests = {"minimal": try_minimal, "current": try_current, "pythons": try_pythons}
            outcomes += tests[trial](shop, options)
    failed = sum(not one.passed for one in outcomes)
    print(f"\n{len(outcomes) - failed} passed, {failed} failed")
    return failed


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    """Return what stands before and after ``--``."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], "--", arguments[place + 1 :]


if __name__ == "__main__":
    raise SystemExit(main())
