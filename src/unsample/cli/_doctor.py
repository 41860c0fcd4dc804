"""``unsample doctor``: what this installation can do, and what keeps it from doing more."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import typer

from unsample import __version__
from unsample.cli.console import console_verb, progress_bar, say
from unsample.cli.options import AsJson, option

#: Why a finding needs no attention, might, or does.
OK, ABSENT, BROKEN = "ok", "absent", "BROKEN"
#: What reads large files and frames.
_ENGINES = ("duckdb", "polars", "spark")
#: Extras for those who work on the package itself.
_DEVELOPMENT = {"bench", "dev", "docs"}
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?:[^;]*?>=\s*(?P<least>[0-9.]+))?[^;]*"
    r"(?:;.*extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"].*)?"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    area: str
    name: str
    state: str
    detail: str


@console_verb
def doctor_command(
    quick: Annotated[
        bool,
        option(None, "Do not import the extras, only look up their versions.", None, "--quick"),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what this installation can do: versions, extras, engines, GPU.

    Libraries that are not installed are not a failure. If something is installed and does not work,
    the exit code is 1.

    **Examples**

    `unsample doctor`

    `unsample doctor --quick --json`
    """
    with progress_bar("looking"):
        findings = list(examine(quick=quick))
    broken = sum(finding.state == BROKEN for finding in findings)
    if as_json:
        report = {"healthy": not broken, "findings": [asdict(finding) for finding in findings]}
        say(json.dumps(report, indent=2))
    else:
        from unsample.pages import Sheet, Table, as_text

        rows = tuple(tuple(asdict(finding).values()) for finding in findings)
        verdict = f"{broken} BROKEN, see above." if broken else "Nothing is broken."
        say(as_text(Sheet((), (Table(("area", "what", "state", "detail"), rows),), (verdict,))))
    if broken:
        raise typer.Exit(1)


def examine(*, quick: bool = False) -> Iterator[Finding]:
    """Yield a finding for everything that is looked at; none of them raises."""
    import importlib.metadata  # which takes as long as the rest of --help

    yield Finding("system", "unsample", OK, __version__)
    yield Finding("system", "python", OK, f"{platform.python_version()} at {sys.executable}")
    yield Finding("system", "platform", OK, f"{platform.platform()}, {os.cpu_count()} cores")
    yield _finding("system", "estimate", _self_check)
    try:
        requirements = importlib.metadata.requires("unsample") or []
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        requirements = ["numpy", "scipy", "narwhals", "typer"]
    for match in map(_REQUIREMENT.fullmatch, requirements):
        if match and match["name"] != "unsample" and match["extra"] not in _DEVELOPMENT:
            area = f"extra {match['extra']}" if match["extra"] else "core"
            yield _finding(area, match["name"], partial(_library, match, quick))
    for name in _ENGINES:
        yield _finding("engine", name, partial(_engine, name))
    yield _finding("gpu", "cuda", partial(_gpu, quick))


def _finding(area: str, name: str, look: Callable[[], tuple[str, str]]) -> Finding:
    """Return the state and the details that ``look`` finds; what it raises is the finding."""
    try:
        state, detail = look()
    except Exception as problem:  # noqa: BLE001 - whatever is wrong is the finding
        words = f"{type(problem).__name__}: {problem}".split()
        state, detail = BROKEN, " ".join(words)[:120]
    return Finding(area, name, state, detail)


def _self_check() -> tuple[str, str]:
    """Estimate from a full sample, which must give the exact metric to the last digits."""
    from unsample import answers

    truth = 0.75
    result = answers.estimate(
        [1, 2, 3, 40], items=50, sampled=49, replacement=False, metrics="Recall@10"
    )
    value = result["Recall@10"].value
    if abs(value - truth) > 1e-9:
        return BROKEN, f"gave {value} where {truth} is exact"
    return OK, "a known answer comes out exactly"


def _library(wanted: re.Match[str], quick: bool) -> tuple[str, str]:
    """Look at a library that the package, or an extra of it, asks for."""
    import importlib.metadata

    name, extra, least = wanted["name"], wanted["extra"], wanted["least"] or ""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return (ABSENT, f"pip install 'unsample[{extra}]'") if extra else (BROKEN, "not installed")
    if not quick:
        importlib.import_module(_module_of(name))
    if _as_numbers(version) < _as_numbers(least):
        return BROKEN, f"{version}, but at least {least} is needed"
    return OK, version


def _engine(name: str) -> tuple[str, str]:
    """Look at what reads files and frames, Spark with the Java that it needs."""
    if importlib.util.find_spec("pyspark" if name == "spark" else name) is None:
        return ABSENT, "not installed"
    if name == "spark" and shutil.which("java") is None:
        return ABSENT, "pyspark is there, Java is not"
    return OK, "reads files and frames"


def _gpu(quick: bool) -> tuple[str, str]:
    if importlib.util.find_spec("torch") is None:
        return ABSENT, "needs torch: pip install 'unsample[neural]'"
    if quick:
        return ABSENT, "not looked at (--quick)"
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return ABSENT, "torch sees none; full rankings run on the CPU"
    memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    return OK, f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB"


def _module_of(distribution: str) -> str:
    """Return the module that a distribution is imported by."""
    import importlib.metadata

    wanted = _normal(distribution)
    owners = importlib.metadata.packages_distributions()
    modules = [name for name, held in owners.items() if wanted in map(_normal, held)]
    public = [name for name in modules if not name.startswith("_")]
    # Of several modules the one that is called like the distribution.
    return min(public, key=lambda name: _normal(name) != wanted, default=wanted.replace("-", "_"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _as_numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 2.13.0+cpu is (2, 13, 0)."""
    match = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
