"""README is true, and what it and its neighbours name exists; ``make docs`` checks the pages."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in (
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *sorted(page for page in (ROOT / "docs").glob("*.md") if page.stem != "tutorial"),
        ROOT / "docs" / "report" / "report.md",
    )
}
#: Made when the site is built.
BUILT = ("tutorial.md",)


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def test_readme_prints_what_its_commands_print():
    command = [sys.executable, "tools/refresh_docs.py", "--check", "README.md"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", re.findall(r"`(unsample [^`]+)`", _prose(PAGES["README.md"])))
def test_commands_within_lines_of_readme_run(run, command):
    code, out, err = run(*shlex.split(command)[1:])
    assert (code, bool(out)) == (0, True), err


def test_truth_of_the_example_is_what_its_script_prints(tmp_path):
    command = [sys.executable, "examples/make_ranks.py", str(tmp_path / "ranks.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    (line,) = re.findall(r"`examples/make_ranks.py` made.*", PAGES["docs/start.md"])
    assert all(number in done.stdout for number in re.findall(r"0\.\d+", line))


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#{1,3} (.+)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _dead(folder: Path, text: str) -> list[str]:
    """Return links that lead nowhere; also from README, which Sphinx does not see."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(text)):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or path in BUILT:
            continue
        target = folder / path
        if not target.exists():
            dead.append(link)
            continue
        there = target.read_text(encoding="utf-8") if anchor and path else text
        if anchor and anchor not in _anchors(there):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES)
def test_no_link_is_dead(page):
    assert not _dead((ROOT / page).parent, PAGES[page])


def test_the_check_of_links_can_fail():
    text = "[a](start.md#nowhere) [b](nowhere.md) [c](start.md#install) [d](#nowhere)"
    assert _dead(ROOT / "docs", text) == ["start.md#nowhere", "nowhere.md", "#nowhere"]


@pytest.mark.parametrize("page", PAGES)
def test_files_and_targets_that_are_named_exist(page):
    named = r"`(?:python )?((?:src|tests|tools|benchmarks|examples|docs)/[\w./-]+\.\w+)"
    missing = [name for name in re.findall(named, PAGES[page]) if not (ROOT / name).exists()]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", makefile, re.MULTILINE)
    missing += [name for name in re.findall(r"`make ([\w-]+)`", PAGES[page]) if name not in targets]
    assert not missing


def test_places_that_the_architecture_names_are_there():
    """A place is a file of the package, perhaps with a class, function or constant of it."""
    named = r"`((?:[a-z_]+/)+\w+\.py|_\w+\.py)(?:: ([\w.]+))?`"
    places = re.findall(named, PAGES["ARCHITECTURE.md"])
    assert len(places) > 10
    for file, names in places:
        text = (ROOT / "src" / "unsample" / file).read_text(encoding="utf-8")
        for name in filter(None, names.split(".")):
            defined = rf"^ *(?:def|class) {name}\b|^{name}(?:: .*)? = "
            assert re.search(defined, text, re.MULTILINE), (file, name)
