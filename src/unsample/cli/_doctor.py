"""``unsample doctor``: what this installation can do, and what keeps it from doing more."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from unsample import __version__
from unsample.cli._manner import progress_bar, say
from unsample.cli._options import AsJson
from unsample.errors import UnsampleError
from unsample.lab.cli._reproduce import cores
from unsample.pages._text import aligned

__all__ = ["Finding", "doctor_command", "examine"]

#: Why a finding needs no attention, might, or does.
OK, ABSENT, BROKEN = "ok", "absent", "BROKEN"

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?(?P<rule>[^;]*)"
    r"(?:;.*extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"].*)?"
)
_AT_LEAST = re.compile(r">=\s*(?P<version>[0-9.]+)")
#: Extras for those who work on the package itself.
_DEVELOPMENT = frozenset({"bench", "dev", "docs"})
_JAVA_SECONDS = 10


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    area: str
    name: str
    state: str
    detail: str


@dataclass(frozen=True)
class _Requirement:
    """A distribution that an extra (or, without one, the package) asks for."""

    name: str
    extra: str
    at_least: str


def doctor_command(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Trust what is written about packages; import none of the extras."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what this installation can do: versions, extras, engines, data, GPU.

    Libraries that are absent are no failure. Something installed that does not work is one, and
    the exit code is then 1.

    **Examples**

    `unsample doctor`

    `unsample doctor --quick --json`
    """
    with progress_bar("looking"):
        findings = list(examine(quick=quick))
    healthy = all(finding.state != BROKEN for finding in findings)
    if as_json:
        report = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
        say(json.dumps(report, indent=2))
    else:
        say(_table(findings))
    if not healthy:
        raise typer.Exit(1)


def examine(*, quick: bool = False) -> Iterator[Finding]:
    """Yield a finding for everything that is looked at; none of them raises."""
    yield _package()
    yield Finding("system", "python", OK, f"{platform.python_version()} at {sys.executable}")
    yield Finding("system", "platform", OK, f"{platform.platform()}, {cores()} cores")
    yield _self_check()
    for requirement in _requirements():
        yield _library(requirement, quick=quick)
    yield from _engines(quick=quick)
    yield from _data()
    yield _gpu(quick=quick)


def _table(findings: list[Finding]) -> str:
    rows = [(finding.area, finding.name, finding.state, finding.detail) for finding in findings]
    broken = sum(finding.state == BROKEN for finding in findings)
    verdict = "Nothing is broken." if not broken else f"{broken} BROKEN, see above."
    return "\n".join([aligned(("area", "what", "state", "detail"), rows), "", verdict])


def _package() -> Finding:
    try:
        importlib.metadata.version("unsample")
    except importlib.metadata.PackageNotFoundError:
        detail = f"{__version__}, run from its sources: what its extras need is not known"
        return Finding("system", "unsample", OK, detail)
    return Finding("system", "unsample", OK, __version__)


def _self_check() -> Finding:
    """Estimate from a full sample, which must give the exact metric to the last digits."""
    try:
        from unsample.answers.estimation import estimate

        ranks, truth = [1, 2, 3, 40], 0.75
        result = estimate(
            ranks, items=50, sampled=49, replacement=False, metrics="Recall@10", resamples=0
        )
        value = result["Recall@10"].value
    except Exception as problem:  # noqa: BLE001 - whatever is wrong is the finding
        return Finding("system", "estimate", BROKEN, _in_a_line(problem))
    if abs(value - truth) > 1e-9:
        return Finding("system", "estimate", BROKEN, f"gave {value} where {truth} is exact")
    return Finding("system", "estimate", OK, "a known answer comes out exactly")


def _requirements() -> list[_Requirement]:
    """Return what the installed package asks for, its own needs first."""
    try:
        lines = importlib.metadata.requires("unsample") or []
    except importlib.metadata.PackageNotFoundError:
        lines = ["numpy", "scipy", "narwhals", "typer"]
    found = []
    for line in lines:
        match = _REQUIREMENT.fullmatch(line.strip())
        if match is None or match["name"] == "unsample" or match["extra"] in _DEVELOPMENT:
            continue
        least = _AT_LEAST.search(match["rule"])
        found.append(
            _Requirement(match["name"], match["extra"] or "", least["version"] if least else "")
        )
    return found


def _library(requirement: _Requirement, *, quick: bool) -> Finding:
    area = f"extra {requirement.extra}" if requirement.extra else "core"
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        if not requirement.extra:
            return Finding(area, requirement.name, BROKEN, "not installed")
        line = f"pip install 'unsample[{requirement.extra}]'"
        return Finding(area, requirement.name, ABSENT, line)
    if _as_numbers(version) < _as_numbers(requirement.at_least):
        old = f"{version}, but at least {requirement.at_least} is needed"
        return Finding(area, requirement.name, BROKEN, old)
    problem = None if quick else _import_problem(_module_of(requirement.name))
    if problem is not None:
        return Finding(area, requirement.name, BROKEN, f"{version}, import fails: {problem}")
    return Finding(area, requirement.name, OK, version)


def _engines(*, quick: bool) -> Iterator[Finding]:
    """Look at what reads files and frames, Spark with the Java that it needs."""
    for name in ("duckdb", "polars", "spark"):
        module = "pyspark" if name == "spark" else name
        if importlib.util.find_spec(module) is None:
            yield Finding("engine", name, ABSENT, "not installed")
        elif name != "spark":
            yield Finding("engine", name, OK, "reads files and frames")
        else:
            yield _java(quick=quick)


def _java(*, quick: bool) -> Finding:
    java = shutil.which("java")
    if java is None:
        return Finding("engine", "spark", ABSENT, "pyspark is there, Java is not")
    if quick:
        return Finding("engine", "spark", OK, f"Java at {java}")
    try:
        answer = subprocess.run(  # noqa: S603 - the path was found just now, nothing is from a user
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return Finding("engine", "spark", BROKEN, f"Java does not start: {_in_a_line(problem)}")
    return Finding("engine", "spark", OK, answer.stderr.partition("\n")[0])


def _data() -> Iterator[Finding]:
    """Look for the data sets and the ranks that ship."""
    from unsample.lab import datasets

    bundled = datasets.bundled_ranks()
    for name in datasets.names():
        try:
            record = datasets.info(name)
        except UnsampleError as problem:  # a folder that is named and not there
            yield Finding("data", name, BROKEN, _in_a_line(problem))
            continue
        state = OK if record.at_hand else ABSENT
        where = f"unsample datasets fetch {name}"
        if record.at_hand:
            where = "at hand" if record.complete else "partly at hand"
        ranks = f"ranks of {len(bundled.get(name, ()))} recommenders ship"
        yield Finding("data", name, state, f"{where}; {ranks}")


def _gpu(*, quick: bool) -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("gpu", "cuda", ABSENT, "needs torch: pip install 'unsample[neural]'")
    if quick:
        return Finding("gpu", "cuda", ABSENT, "not looked at (--quick)")
    try:
        torch = importlib.import_module("torch")
        if not torch.cuda.is_available():
            return Finding("gpu", "cuda", ABSENT, "torch sees none; full rankings run on the CPU")
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        kernel = "fused" if importlib.util.find_spec("triton") else "in chunks, without Triton"
        detail = f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB; full rankings {kernel}"
    except Exception as problem:  # noqa: BLE001 - whatever is wrong is the finding
        return Finding("gpu", "cuda", BROKEN, _in_a_line(problem))
    return Finding("gpu", "cuda", OK, detail)


def _module_of(distribution: str) -> str:
    """Return the module that a distribution is imported by."""
    wanted = _normal(distribution)
    modules = [name for name, owners in _owners().items() if wanted in map(_normal, owners)]
    public = [name for name in modules if not name.startswith("_")]
    # Of several modules the one that is called like the distribution.
    return min(public, key=lambda name: _normal(name) != wanted, default=wanted.replace("-", "_"))


@functools.cache
def _owners() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def _import_problem(module: str) -> str | None:
    """Return why a module cannot be imported, or None where it can."""
    try:
        importlib.import_module(module)
    except Exception as problem:  # noqa: BLE001 - whatever is wrong is the finding
        return _in_a_line(problem)
    return None


def _in_a_line(problem: BaseException) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:120]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _as_numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 2.13.0+cpu is (2, 13, 0)."""
    match = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
