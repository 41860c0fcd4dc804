"""Build the web page with the three calculators: ``make web``, into ``out/web``.

The page runs the package itself with Pyodide, which comes from a public CDN, or with
``PYODIDE=folder`` from a copy of it, for use without a network. Either way every file is known by
its hash, which stands in ``web/pyodide.json``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import unsample
from unsample.show._html import _hash, templates

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "web"
#: Pure Python that pages of results need beside the package; the rest of it comes with Pyodide.
LIBRARIES = ("jinja2", "markupsafe")
#: What Python loads before the page says that it is ready, so that the first answer is quick.
IMPORTS = """
import scipy.linalg, scipy.optimize, scipy.special
from unsample.show._calculators import Calculator
"""
_ENDINGS = {".py", ".txt", ".rst", ".md", ".typed"}


def build(out: Path, pyodide: Path | None) -> None:
    """Make the site anew in a folder."""
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    pinned = json.loads((SOURCE / "pyodide.json").read_text(encoding="utf-8"))
    files = [
        {"name": name, "unpack": name.endswith(".whl"), **file}
        for name, file in pinned["files"].items()
    ]
    if pyodide is not None:
        files = [_copied(file, pyodide, out, pinned["version"]) for file in files]
    files += [_described(_wheel(out)), _described(_libraries(out / "libraries.zip"))]
    made = {"info": pinned["info"], "files": files, "imports": IMPORTS}
    _write(out / "files.json", json.dumps(made, indent=1))

    found = templates()
    style = "".join(found.get_template(name).render() for name in ("style.css", "result.css"))
    script = found.loader.get_source(found, "result.js")[0]
    _write(out / "style.css", style + _read("style.css"))
    _write(out / "charts.js", script)
    for name in ("page.js", "worker.js"):
        _write(out / name, _read(name))
    shutil.copy(ROOT / "docs" / "_static" / "mark.svg", out / "mark.svg")
    shutil.copy(ROOT / "examples" / "ranks.csv", out / "example.csv")
    page = _filled(
        _read("index.html"),
        POLICY=policy(files, script=_hash(script), style=_hash(style)),
        RELEASE=unsample.__version__,
    )
    _write(out / "index.html", page)
    shell = sorted(path.name for path in out.iterdir() if path.suffix not in {".whl", ".zip", ""})
    digest = hashlib.sha256(b"".join((out / name).read_bytes() for name in shell)).hexdigest()
    service = _filled(_read("service.js"), VERSION=digest[:16])
    _write(out / "service.js", service.replace('"@FILES@"', json.dumps(["./", *shell])))


def policy(files: list[dict[str, Any]], *, script: str, style: str) -> str:
    """Return the content policy of the page, which holds in its worker and around reports too.

    Scripts are those of the site, the parts of Pyodide that were checked (blobs), and the one
    script of reports. Nothing can be sent anywhere but to where files are fetched from.
    """
    away = {f"https://{urlsplit(file['url']).netloc}" for file in files if ":" in file["url"]}
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'self' blob: 'wasm-unsafe-eval' '{script}'",
            f"style-src 'self' '{style}'",
            "img-src 'self'",
            "worker-src 'self' blob:",
            " ".join(["connect-src 'self'", *sorted(away)]),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _copied(file: dict[str, Any], folder: Path, out: Path, version: str) -> dict[str, Any]:
    """Take a file of Pyodide from a folder, if it is the one that is pinned."""
    path = folder / file["name"]
    if not path.is_file():
        sys.exit(f"PYODIDE must be a folder with Pyodide {version}, got {folder}: no {path.name}")
    if _digest(path) != file["sha256"]:
        sys.exit(f"PYODIDE must be a folder with Pyodide {version}: {path} is another version")
    (out / "pyodide").mkdir(exist_ok=True)
    shutil.copy(path, out / "pyodide" / path.name)
    return {**file, "url": f"pyodide/{path.name}"}


def _wheel(out: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--wheel-dir", str(out), str(ROOT)]
    subprocess.run(command, check=True)  # noqa: S603
    (wheel,) = out.glob("unsample-*.whl")
    return wheel


def _libraries(path: Path) -> Path:
    """Pack the pure Python of the libraries, with their licences; same files, same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in LIBRARIES:
            found = distribution(name)
            for file in sorted(found.files or (), key=str):
                if file.suffix in _ENDINGS and ".." not in file.parts:
                    data = Path(found.locate_file(file)).read_bytes()
                    archive.writestr(zipfile.ZipInfo(str(file)), data, zipfile.ZIP_DEFLATED)
    return path


def _described(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    return {
        "name": path.name,
        "unpack": True,
        "url": path.name,
        "size": size,
        "sha256": _digest(path),
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _read(name: str) -> str:
    return (SOURCE / name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "web")
    parser.add_argument("--pyodide", type=Path, help="a folder with Pyodide, instead of the CDN")
    given = parser.parse_args()
    build(given.out, given.pyodide)
    print(f"open it with: {Path(sys.executable).name} -m http.server -d {given.out}")


if __name__ == "__main__":
    main()
