"""Run tests/test_libraries.py once with each real library, and print what was run.

Some libraries cannot be installed beside each other: RecBole and RecTools want an older numpy,
LensKit an older pandas. Each gets an environment of its own here, into which this package is
installed from the working tree, with all that it asks for. An environment that exists is used
again.

    python tools/try_adapters.py                     all libraries
    python tools/try_adapters.py lenskit recbole     some of them
    python tools/try_adapters.py --environments DIR  where environments are kept
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from unsample.adapters import INSTALL

HERE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
#: A version of torch that has a build for processors alone.
TORCH = ("torch==2.13.0", "torchmetrics==1.9.0")
#: Library -> what is installed for its tests.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "trec": (*INSTALL["trec"], "pandas"),
    "implicit": ("implicit==0.7.3",),
    "dask": ("dask[dataframe]==2026.8.0",),
    "cornac": ("cornac==3.0.1",),
    "rectools": ("rectools==0.19.0", "numpy<2"),
    "ogb": ("ogb==1.3.6", *TORCH),
    "pykeen": (*INSTALL["pykeen"], *TORCH),
    "lenskit": (*INSTALL["lenskit"], *TORCH),
    "recbole": (*INSTALL["recbole"], *TORCH),
}


def prepare(library: str, folder: Path) -> Path:
    """Return the Python of the library's environment, made if it does not exist."""
    python, ready = folder / library / "bin" / "python", folder / library / ".ready"
    wanted = [*LIBRARIES[library], "hypothesis", "pytest"]
    # Its own dependencies are part of what is tried: a library must install beside this package.
    stamp = "\n".join([*wanted, *PROJECT["dependencies"]])
    if not ready.exists() or ready.read_text() != stamp:
        place = folder / library
        if place.exists() and not (place / "pyvenv.cfg").is_file():
            raise SystemExit(
                f"{str(place)!r} must be new, or an environment; name other --environments"
            )
        venv.create(folder / library, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "-e", HERE, *wanted], check=True)  # noqa: S603
        ready.write_text(stamp)
    return python


def run(library: str, python: Path) -> bool:
    """Run the tests; those that need another library are skipped, and say so."""
    # Warnings that foreign libraries give are no failures here.
    settings = ["-o", "filterwarnings=", "-p", "no:cacheprovider"]
    here = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    print(f"== {library}: {', '.join(LIBRARIES[library])}", flush=True)
    done = subprocess.run(  # noqa: S603
        [python, "-m", "pytest", "-q", *settings, "tests/test_libraries.py"],
        cwd=HERE,
        env={**os.environ, **here},
        check=False,
    )
    return done.returncode == 0


def main() -> int:
    """Try the libraries that were asked for, and return how many failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", choices=[*LIBRARIES, []])
    parser.add_argument("--environments", type=Path, default=HERE / "out" / "environments")
    options = parser.parse_args()
    options.environments.mkdir(parents=True, exist_ok=True)
    asked = options.libraries or list(LIBRARIES)
    failed = [name for name in asked if not run(name, prepare(name, options.environments))]
    print(f"failed: {', '.join(failed) or 'none'} of {len(asked)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
