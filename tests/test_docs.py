"""The documentation is true: code runs, output is what is printed, links lead somewhere."""

from __future__ import annotations

import doctest
import fnmatch
import importlib.util
import json
import re
import shlex
import shutil
import sys
from xml.etree import ElementTree as ET

import pytest
from tools import refresh_docs, run_notebook
from tools.refresh_docs import ROOT, alike, blocks, outputs_of, run_python, sandbox, with_output

import unsample
from unsample.__main__ import application

PAGES = {page.name: page.read_text(encoding="utf-8") for page in refresh_docs.PAGES}
OTHERS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
}
#: Code that the tests of its subject run: engines, clusters, foreign libraries. Here it compiles.
ELSEWHERE = ("spark", "ranks.parquet")
ELSEWHERE_PAGES = ("libraries.md",)


def _is_run(page: str, body: str) -> bool:
    return page not in ELSEWHERE_PAGES and not any(word in body for word in ELSEWHERE)


@pytest.fixture(scope="module")
def folder():
    with sandbox() as place:
        yield place


@pytest.mark.parametrize("page", [p for p, text in PAGES.items() if "```python" in text])
def test_code_runs_and_prints_what_the_page_says(page, folder):
    names: dict[str, object] = {}
    for block, output in with_output(PAGES[page]):
        if not _is_run(page, block.body):
            compile(block.body, page, "exec")
        elif ">>>" in block.body:
            _run_doctest(block.body, names, page)
        else:
            printed = run_python(block.body, names, page, folder)
            if output is not None:
                assert alike(printed, output.body), "run tools/refresh_docs.py"


def _run_doctest(body: str, names: dict[str, object], page: str) -> None:
    found = doctest.DocTestParser().get_doctest(body, names, page, page, 0)
    assert doctest.DocTestRunner(verbose=False).run(found).failed == 0


@pytest.mark.parametrize("page", [p for p, text in PAGES.items() if "```console" in text])
def test_commands_print_what_the_page_says(page, folder):
    for block in blocks(PAGES[page]):
        if block.language == "console":
            assert alike(outputs_of(block, folder), block.body), "run tools/refresh_docs.py"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('"error": 0.005479925815230415,', '"error": 0.005479925815230414,', True),
        ("gap 1.5e-17", "gap 2e-16", True),
        ('"error": 0.005479925815230415,', '"error": 0.005479935815230414,', False),
        ("Recall@50  0.1234", "Recall@50  0.1235", False),
        ("gap 1.5e-07", "gap 1.6e-07", False),
        ('"error": 0.005479925815230415', '"error": 0.005479925815230415,', False),
    ],
)
def test_only_last_digits_may_differ(one, other, same):
    assert alike(one, other) is same


def _shown_commands(text: str) -> list[str]:
    """Return every call of the command in a page: in console and plain blocks, and within lines."""
    found = []
    for block in blocks(text):
        if block.language in ("", "text", "console"):
            joined = re.sub(r"\\\n\s*", " ", block.body)
            found += re.findall(r"^(?:\$ )?(?:\S*/)?(unsample .*)$", joined, re.MULTILINE)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return found + [" ".join(one.split()) for one in re.findall(r"`(unsample [^`]+)`", prose)]


def _calls() -> list[tuple[str, str]]:
    return [
        (page, command)
        for page, text in (PAGES | OTHERS).items()
        for command in _shown_commands(text)
        # A pattern such as `unsample VERB --help` is no call.
        if not re.search(r"VERB|NAME\b|\.\.\.|\|.*\|", command)
    ]


@pytest.mark.parametrize(("page", "command"), _calls())
def test_commands_parse(page, command):
    # What stands in square brackets is optional, and what follows a pipe is another command.
    plain = re.sub(r"\[([^]|]*)(?:\|[^]]*)?\]", r"\1", command)
    words = shlex.split(plain.partition(" | ")[0].partition(" > ")[0], comments=True)
    _parse(application(whole=True), words[1:])


def _parse(command, words: list[str]) -> None:
    context = command.make_context("unsample", list(words), resilient_parsing=True)
    inner = getattr(command, "commands", None)
    if inner is None:
        known = {n for option in command.params for n in (*option.opts, *option.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help", "-h"}, f"unknown options: {given - known}"
        assert not context.args, f"too many arguments: {context.args}"
        return
    verbs = [word for word in words if not word.startswith("-")]
    if not verbs:
        assert words[0] in {"--version", "--help", "--install-completion", "--show-completion"}
        return
    assert verbs[0] in inner, f"unknown verb {verbs[0]}; there are {', '.join(inner)}"
    _parse(inner[verbs[0]], words[words.index(verbs[0]) + 1 :])


def test_the_check_of_commands_can_fail():
    for wrong in ("unsample estmate x", "unsample estimate x --itms 3", "unsample plan a b"):
        with pytest.raises(AssertionError):
            test_commands_parse("", wrong)


# --- links -----------------------------------------------------------------------------------


def _links(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    inline = re.findall(r"\]\(([^)\s]+)\)", prose)
    return inline + re.findall(r"\{download\}`[^<`]*<([^>]+)>`", prose)


def _anchors(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,3} (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


#: Made when the site is built, from the notebook and from the package.
BUILT = ("tutorial.md", "reference/index.rst")


def _dead(folder, text: str) -> list[str]:
    dead = []
    for link in _links(text):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or path in BUILT:
            continue
        target = folder / path if path else None
        if target is not None and not target.exists():
            dead.append(link)
        elif anchor:
            there = text if target is None else target.read_text(encoding="utf-8")
            dead += [] if anchor in _anchors(there) else [link]
    return dead


@pytest.mark.parametrize("page", PAGES)
def test_no_link_of_a_page_is_dead(page):
    assert not _dead(ROOT / "docs", PAGES[page])


@pytest.mark.parametrize("page", OTHERS)
def test_no_link_beside_the_pages_is_dead(page):
    assert not _dead(ROOT, OTHERS[page])


def test_the_check_of_links_can_fail():
    text = "[a](start.md#nowhere) [b](nowhere.md) [c](start.md#install) [d](#nowhere)"
    assert _dead(ROOT / "docs", text) == ["start.md#nowhere", "nowhere.md", "#nowhere"]


def test_every_page_is_in_the_table_of_contents():
    listed = "\n".join(b.body for b in blocks(PAGES["index.md"]) if "toctree" in b.language)
    patterns = [line for line in listed.splitlines() if line and not line.startswith(":")]
    stems = [page.removesuffix(".md") for page in PAGES if page != "index.md"]
    missing = [s for s in stems if not any(fnmatch.fnmatch(s, pattern) for pattern in patterns)]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_files_and_targets_that_are_named_exist(page):
    pattern = r"\b((?:src|tests|tools|benchmarks|examples|docs)/[\w./-]+\.\w+)"
    missing = [name for name in re.findall(pattern, PAGES[page]) if not (ROOT / name).exists()]
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    missing += [name for name in re.findall(r"`make ([\w-]+)`", PAGES[page]) if name not in targets]
    assert not missing


def test_pictures_are_described():
    for page, text in PAGES.items():
        for described in re.findall(r"!\[([^]]*)\]\(", text):
            assert len(described) > 10, f"{page}: a picture without a description"


@pytest.mark.slow
def test_the_claims_of_the_paper_are_those_of_the_page(run, tmp_path):
    code, out, _ = run("reproduce", "--out", tmp_path / "all", "--workers", "1", "--json")
    assert code == 0
    words = {True: "holds", False: "does not hold", None: "-"}
    rows = [
        f"| {claim['claim'].removesuffix(' (candidates: unseen)')} | "
        f"{words[claim['holds_by_bias']]} | {words[claim['holds_by_rmse']]} |"
        for claim in json.loads(out)["claims"]
    ]
    written = [line.split(" | ") for line in PAGES["reproduction.md"].splitlines()]
    verdicts = [" | ".join(cells) for cells in written if cells[-1].rstrip(" |") in words.values()]
    assert verdicts == rows


# --- the tutorial ----------------------------------------------------------------------------


def test_the_tutorial_runs_and_shows_what_it_says():
    pytest.importorskip("matplotlib")
    notebook = run_notebook.read()
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    fresh = run_notebook.run(notebook)
    kinds = [set(output["data"]) for outputs in fresh for output in outputs if "data" in output]
    assert {"text/plain", "text/html"} in kinds
    assert {"text/plain", "image/png"} in kinds
    assert _without_pictures(fresh) == _without_pictures(stored), "run tools/refresh_docs.py"


def _without_pictures(outputs):
    return [
        [
            {key: text for key, text in output.get("data", output).items() if key != "image/png"}
            for output in cell
        ]
        for cell in outputs
    ]


def test_a_distribution_shows_its_curve_in_notebooks():
    """Tables of results are tested with their contract and their pages."""
    result = unsample.exact([1, 2, 5, 40] * 20, items=400, metrics="Recall@50")
    line = ET.fromstring(result.distribution()._repr_html_()).find(".//polyline")
    heights = [float(point.split(",")[1]) for point in line.get("points").split()]
    assert heights == sorted(heights, reverse=True)


# --- the site --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    for module in ("sphinx", "furo", "myst_parser", "latex2mathml", "ziamath"):
        if importlib.util.find_spec(module) is None:
            pytest.skip("needs the extra docs: pip install 'unsample[docs]'")
    from subprocess import run

    sources = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", sources, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("src", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "sphinx", "--quiet", "-W", "--keep-going", "-b", "html"]
    done = run([*command, sources, tmp_path / "site"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "site" / "theory.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "https://cdn" not in page
    assert "--sampled" in (tmp_path / "site" / "command-line.html").read_text(encoding="utf-8")
    reference = (tmp_path / "site" / "reference" / "unsample.html").read_text(encoding="utf-8")
    assert "HR@1" in reference
    assert "mailto:" not in reference
