"""Build the web page with the calculators: ``make web``, into ``out/web``, for any static host.

The page runs the package itself with Pyodide, which comes from a public CDN, or with
``PYODIDE=folder`` from a copy of its distribution, for use without a network.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import unsample
from unsample.report._html import content_hash, templates

ROOT = Path(__file__).resolve().parent.parent
VERSION = "314.0.3"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
#: Pure Python that pages of results need beside the package.
LIBRARIES = ("jinja2", "markupsafe")
#: Of the package, what the page does not use.
LEFT_OUT = {"lab", "cli", "adapters", "__pycache__"}


def build(out: Path, pyodide: Path | None) -> None:
    """Make the site anew in a folder, which must hold nothing else."""
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(ROOT / "web", out)
    source = CDN
    if pyodide is not None:
        source = "pyodide/"
        shutil.copytree(pyodide, out / source)
    _pack(out / "unsample.zip")
    shutil.copy(ROOT / "docs" / "_static" / "mark.svg", out / "mark.svg")
    shutil.copy(ROOT / "examples" / "ranks.csv", out / "example.csv")

    found = templates()
    style = found.get_template("page.css").render()
    script = found.loader.get_source(found, "page.js")[0]
    own = (out / "style.css").read_text(encoding="utf-8")
    (out / "style.css").write_text(style + own, encoding="utf-8")
    page = (out / "index.html").read_text(encoding="utf-8")
    filled = {
        "@POLICY@": policy(source, script=content_hash(script), style=content_hash(style)),
        "@PYODIDE@": source,
        "@RELEASE@": unsample.__version__,
    }
    for mark, text in filled.items():
        page = page.replace(mark, text)
    (out / "index.html").write_text(page, encoding="utf-8")


def may_be_replaced(out: Path) -> bool:
    """Return whether a folder is not there, is empty, or holds a site."""
    if not out.exists():
        return True
    return out.is_dir() and (not any(out.iterdir()) or (out / "unsample.zip").is_file())


def policy(source: str, *, script: str, style: str) -> str:
    """Return the content policy of the page, which holds in its worker and around results too.

    Scripts are those of the site, Pyodide, and the one script of results. Nothing can be sent
    anywhere but to where Pyodide is fetched from: the folder of its version, for the host serves
    the scripts of everybody.
    """
    away = "" if source != CDN else f" {CDN}"
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'self' blob: 'wasm-unsafe-eval' '{script}'{away}",
            f"style-src 'self' '{style}'",
            "img-src 'self'",
            "worker-src blob:",
            f"connect-src 'self'{away}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _pack(path: Path) -> None:
    """Pack the package and the libraries with their licences; same files, same bytes."""
    package = Path(unsample.__file__).parent
    files = {f"unsample/{file.relative_to(package)}": file for file in package.rglob("*")}
    for name in LIBRARIES:
        found = distribution(name)
        files |= {str(file): Path(found.locate_file(file)) for file in found.files or ()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, file in sorted(files.items()):
            used = not LEFT_OUT & set(Path(name).parts) and file.suffix not in {".so", ".pyc"}
            if file.is_file() and used and ".." not in name:
                archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "web")
    parser.add_argument("--pyodide", type=Path, help="a folder with Pyodide, instead of the CDN")
    given = parser.parse_args()
    if not may_be_replaced(given.out):
        parser.error(f"--out must be new, empty, or a site made before, got {str(given.out)!r}")
    build(given.out, given.pyodide)
    print(f"open it with: {Path(sys.executable).name} -m http.server -d {given.out}")


if __name__ == "__main__":
    main()
