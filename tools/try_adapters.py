"""Run each library's examples and tests with the real library, and print what was run.

Some libraries cannot be installed beside the others: RecBole and RecTools want an older numpy,
LensKit an older pandas, ranx half a gigabyte. Each gets an environment of its own here, with this
package from the working tree. An environment that exists is used again.

    python tools/try_adapters.py                     all libraries, light ones first
    python tools/try_adapters.py lenskit recbole     some of them
    python tools/try_adapters.py --environments DIR  where environments are kept
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
#: What this package itself needs, and pytest; numpy and scipy come with each library.
OURS = ("scipy", "narwhals", "typer", "pytest")
VERSIONS = ("numpy", "pandas", "scipy", "torch")


@dataclass(frozen=True)
class Library:
    """A library, what to install for it, and the tests that exercise it."""

    name: str
    distribution: str
    install: tuple[str, ...]
    tests: tuple[str, ...]


def _models(name: str) -> tuple[str, ...]:
    return ("tests/test_adapters_models.py", "-k", name)


#: Light ones first. torch is pinned to a version that has a build for processors alone.
LIBRARIES = {
    library.name: library
    for library in (
        Library("implicit", "implicit", ("implicit==0.7.3",), _models("implicit")),
        Library(
            "trec", "ir-measures", ("ir-measures==0.4.3", "pandas"), ("tests/test_adapters.py",)
        ),
        Library("cornac", "cornac", ("cornac==3.0.1",), _models("cornac")),
        Library("pykeen", "pykeen", ("pykeen==1.11.1", "torch==2.13.0"), _models("pykeen")),
        Library(
            "torchmetrics",
            "torchmetrics",
            ("torchmetrics==1.9.0", "torch==2.13.0", "polars"),
            ("tests/test_frames_torchmetrics.py",),
        ),
        Library(
            "lenskit",
            "lenskit",
            ("lenskit==2025.8.1", "torch==2.13.0", "pandas<3"),
            ("tests/test_adapters_lenskit.py",),
        ),
        Library(
            "rectools", "rectools", ("rectools==0.19.0",), ("tests/test_adapters_rectools.py",)
        ),
        Library(
            "recbole",
            "recbole",
            ("recbole==1.2.1", "torch==2.13.0", "numpy<2", "pandas<3", "setuptools<81"),
            ("tests/test_adapters_recbole.py",),
        ),
        Library("ranx", "ranx", ("ranx==0.3.21",), ("tests/test_adapters_ranx.py",)),
    )
}


@dataclass(frozen=True)
class Outcome:
    """What was run, with which versions, and whether it went well."""

    library: str
    versions: dict[str, str]
    tests: str
    passed: bool
    seconds: float

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        word = "ok" if self.passed else "FAILED"
        return f"{self.library:13} {word:7} {self.tests:24} {self.seconds:5.0f} s  {versions}"


def prepare(library: Library, folder: Path) -> Path:
    """Return the Python of the library's environment, made if it does not exist."""
    python = folder / library.name / "bin" / "python"
    ready = folder / library.name / ".ready"
    wanted = "\n".join(library.install)
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(folder / library.name, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *library.install, *OURS], check=True)  # noqa: S603
        ready.write_text(wanted)
    return python


def run(library: Library, python: Path) -> Outcome:
    """Run the library's tests and its example."""
    start = time.monotonic()
    example = f"tests/test_adapters_examples.py::test_the_example_runs[{library.name}]"
    # Warnings that foreign libraries give are no failures here.
    pytest = [python, "-m", "pytest", "-q", "-o", "filterwarnings=", "-p", "no:cacheprovider"]
    here = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": "src"}
    done = subprocess.run(  # noqa: S603
        [*pytest, example, *library.tests],
        cwd=HERE,
        env={**os.environ, **here},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-1000:], sep="\n")
    lines = [line for line in done.stdout.splitlines() if re.search(r" in [\d.]+s", line)]
    summary = re.sub(r" in [\d.]+s.*", "", lines[-1].strip("= ")) if lines else "nothing ran"
    versions = _versions(library, python)
    # A test is skipped only where its library is not installed, so this one's were run.
    passed = done.returncode == 0 and library.distribution in versions
    return Outcome(library.name, versions, summary, passed, time.monotonic() - start)


def _versions(library: Library, python: Path) -> dict[str, str]:
    code = (
        "import sys, json\nfrom importlib import metadata\nfound = {}\n"
        "for name in sys.argv[1:]:\n"
        "    try: found[name] = metadata.version(name)\n"
        "    except metadata.PackageNotFoundError: pass\n"
        "print(json.dumps(found))"
    )
    names = [library.distribution, *VERSIONS]
    done = subprocess.run(  # noqa: S603
        [python, "-c", code, *names], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def main() -> int:
    """Try the libraries that were asked for, and return how many failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", choices=[*LIBRARIES, []])
    parser.add_argument("--environments", type=Path, default=HERE / "out" / "environments")
    options = parser.parse_args()
    options.environments.mkdir(parents=True, exist_ok=True)
    failures = 0
    print(f"Python {sys.version.split()[0]}")
    for name in options.libraries or LIBRARIES:
        outcome = run(LIBRARIES[name], prepare(LIBRARIES[name], options.environments))
        print(outcome, flush=True)
        failures += not outcome.passed
    return failures


if __name__ == "__main__":
    raise SystemExit(main())
