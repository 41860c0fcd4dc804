"""Look through the pinned dependencies: ``python tools/audit.py [constraints.txt]``.

Every pin must name one exact version, be installed in that version, and have a known licence that
allows use with BSD-3-Clause. With ``--index`` pip is asked for each pin: its hash must be known and
it must not have been withdrawn (yanked). With pip-audit installed, known vulnerabilities are looked
up too. What cannot be asked (no network) is said, and is no success.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)")
#: Parts of the names of licences under which a library may be imported by ours.
_FREE = re.compile(
    r"\b(?:MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|HPND|Unlicense|Zlib|"
    r"CC0|public domain|LGPL|GPL-2\.0-with|0BSD|CNRI|PIL|Artistic)\b",
    re.IGNORECASE,
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Look through the pinned dependencies.")
    parser.add_argument("pins", nargs="?", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--index", action="store_true", help="ask pip about hashes and withdrawals")
    options = parser.parse_args()
    pins, problems = _pins(options.pins)
    problems += _licences(pins)
    if options.index:
        problems += _ask_index(options.pins)
    problems += _vulnerabilities(options.pins)
    for text in problems:
        print(f"PROBLEM: {text}")
    print(f"{len(pins)} pins, {len(problems)} problems")
    return min(len(problems), 1)


def _pins(path: Path) -> tuple[dict[str, str], list[str]]:
    pins: dict[str, str] = {}
    problems = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        match = _PIN.fullmatch(text)
        if match and match["name"].lower() not in pins:
            pins[match["name"].lower()] = match["version"]
        elif text:
            problems.append(f"{text!r} must pin one version of one library, once")
    return pins, problems


def _licences(pins: dict[str, str]) -> list[str]:
    problems, absent = [], []
    for name, version in pins.items():
        try:
            about = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            absent.append(name)
            continue
        licence = licence_of(about)
        print(f"{name:28} {about['Version']:16} {licence or 'unknown'}")
        if not licence or not _FREE.search(licence):
            problems.append(f"{name} must have a known free licence, got {licence or 'none'!r}")
        if about["Version"].partition("+")[0] != version:
            problems.append(f"{name} must be {version}, installed is {about['Version']}")
    if absent:
        print(f"not installed here, licence not seen: {', '.join(absent)}")
    return problems


def licence_of(about) -> str:
    """Return the licence by its expression, its classifiers, or the first line of its text."""
    classified = [
        entry.rpartition(":: ")[2]
        for entry in about.get_all("Classifier") or ()
        if entry.startswith("License ::") and not entry.endswith("OSI Approved")
    ]
    written = (about.get("License") or "").strip().splitlines() or [""]
    return about.get("License-Expression") or ", ".join(classified) or written[0][:60]


def _ask_index(path: Path) -> list[str]:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    command += ["--ignore-installed", "--report", "-", "-r", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        return [f"the index could not be asked: {(done.stderr.splitlines() or ['no reason'])[-1]}"]
    problems = []
    entries = json.loads(done.stdout)["install"]
    print(f"index: asked for the hashes and withdrawals of {len(entries)} versions")
    for entry in entries:
        name = f"{entry['metadata']['name']} {entry['metadata']['version']}"
        if entry.get("is_yanked"):
            problems.append(f"{name} was withdrawn")
        if not entry["download_info"].get("archive_info", {}).get("hashes"):
            problems.append(f"{name} has no known hash")
    return problems


def _vulnerabilities(path: Path) -> list[str]:
    if importlib.util.find_spec("pip_audit") is None:
        print("vulnerabilities: not looked up (pip install pip-audit)")
        return []
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip"]
    command += ["--format", "json", "-r", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    try:
        entries = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return [f"pip-audit: {(done.stderr.splitlines() or ['no answer'])[-1]}"]
    skipped = [entry["name"] for entry in entries if "skip_reason" in entry]
    print(f"vulnerabilities: {len(entries) - len(skipped)} looked up, {len(skipped)} could not be")
    problems = [
        f"{entry['name']} {entry['version']}: {vulnerability['id']}"
        for entry in entries
        for vulnerability in entry.get("vulns", [])
    ]
    if len(skipped) == len(entries):
        problems.append("vulnerabilities: the database could not be asked")
    return problems


if __name__ == "__main__":
    sys.exit(main())
