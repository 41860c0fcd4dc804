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
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

from unsample.adapters import INSTALL

HERE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
TESTS = (
    "tests/test_adapters.py",
    "tests/test_full_metrics.py",
    "tests/test_lightning.py",
    "tests/test_ogb.py",
    "tests/test_pykeen_negatives.py",
    "tests/test_torchmetrics.py",
    "tests/test_user_metrics.py",
)
#: A version of torch that has a build for processors alone.
TORCH = "torch==2.13.0"
#: Light ones first: the distribution, and what its tests need beside `INSTALL`.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "implicit": ("implicit",),
    "trec": ("ir-measures", "pandas"),
    "cornac": ("cornac",),
    "pykeen": ("pykeen", TORCH),
    "ogb": ("ogb", TORCH),
    "torchmetrics": ("torchmetrics", "torchmetrics==1.9.0", TORCH),
    "lightning": ("lightning", "torchmetrics==1.9.0", TORCH),
    "lenskit": ("lenskit", TORCH),
    "rectools": ("rectools",),
    "recbole": ("recbole", TORCH),
    "ranx": ("ranx",),
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


def prepare(library: str, folder: Path) -> Path:
    """Return the Python of the library's environment, made if it does not exist."""
    python = folder / library / "bin" / "python"
    ready = folder / library / ".ready"
    # This package itself comes from the working tree.
    own = [name for name in INSTALL[library] if not name.startswith("unsample")]
    # Where a library wants an older version of what this package asks for, it gets it.
    named = tuple(re.split(r"[<>=]", name)[0] + ">" for name in own)
    general = [name for name in PROJECT["dependencies"] if not name.startswith(named)]
    wanted = [*own, *LIBRARIES[library], *general, "hypothesis", "pytest"]
    if not ready.exists() or ready.read_text() != "\n".join(wanted):
        venv.create(folder / library, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *wanted], check=True)  # noqa: S603
        ready.write_text("\n".join(wanted))
    return python


def run(library: str, python: Path) -> Outcome:
    """Run the tests and the examples; what needs another library is skipped."""
    start = time.monotonic()
    # Warnings that foreign libraries give are no failures here, and a file of the benchmarks is
    # not the module of the same name that a library looks for.
    settings = ["-o", "filterwarnings=", "-o", "pythonpath=", "-p", "no:cacheprovider"]
    pytest = [python, "-m", "pytest", "-q", *settings]
    here = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE / "src")}
    done = subprocess.run(  # noqa: S603
        [*pytest, *TESTS],
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
    distribution = LIBRARIES[library][0]
    versions = _versions(python, distribution, "numpy", "pandas", "scipy", "torch")
    # A test is skipped only where its library is not installed, so this one's were run.
    passed = done.returncode == 0 and distribution in versions
    return Outcome(library, versions, summary, passed, time.monotonic() - start)


def _versions(python: Path, *names: str) -> dict[str, str]:
    code = (
        "import sys, json\nfrom importlib import metadata\nfound = {}\n"
        "for name in sys.argv[1:]:\n"
        "    try: found[name] = metadata.version(name)\n"
        "    except metadata.PackageNotFoundError: pass\n"
        "print(json.dumps(found))"
    )
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
        outcome = run(name, prepare(name, options.environments))
        print(outcome, flush=True)
        failures += not outcome.passed
    return failures


if __name__ == "__main__":
    raise SystemExit(main())
