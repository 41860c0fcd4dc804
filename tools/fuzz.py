"""Fuzz every parser: ``python tools/fuzz.py [TARGET...] [--inputs N] [--seed S] [--atheris]``.

Inputs are valid examples of each format with bytes, tokens, numbers or lines changed. Whatever is
neither an answer nor an error made on purpose is a finding: other exceptions, warnings, more than
five seconds, more than 256 MB. Findings are shown with the shortest input that was found, and
written to ``--out``. With ``--atheris`` the same inputs are steered by coverage (libFuzzer).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

#: Every target gets so many inputs at least; those that take microseconds share the rest.
LEAST = 10_000
#: Where files are not written to a disk, if there is such a place.
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - names are random


def main() -> int:
    options = _options()
    if options.atheris_target:
        _steer(options)
    with tempfile.TemporaryDirectory(prefix="unsample-fuzz-", dir=_MEMORY) as scratch:
        targets = _chosen(options.targets, Path(scratch))
        if options.list:
            print("\n".join(targets))
            return 0
        if options.atheris:
            return _steer_all(list(targets), options)
        return _fuzz_all(targets, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz every parser.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all, if none is named")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in total")
    parser.add_argument("--least", type=int, default=LEAST, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time", type=float, default=float("inf"), help="seconds for each target")
    parser.add_argument("--out", type=Path, help="folder for the inputs of findings")
    parser.add_argument("--atheris", action="store_true", help="steered by coverage")
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    parser.add_argument("--atheris-target", help=argparse.SUPPRESS)
    return parser.parse_args()


def _chosen(names: list[str], scratch: Path):
    from tests.fuzzing.targets import all_targets

    targets = all_targets(scratch)
    unknown = [name for name in names if name not in targets]
    if unknown:
        sys.exit(f"unknown targets {', '.join(unknown)}; known are {', '.join(targets)}")
    return {name: targets[name] for name in names or targets}


def _shares(targets, total: int, least: int) -> dict[str, int]:
    """Return how many inputs each target gets: the cheap ones all that the others leave."""
    cheap = sum(target.cheap for target in targets.values())
    rest = total - least * (len(targets) - cheap)
    each = max(least, -(-rest // max(1, cheap)))
    return {name: each if target.cheap else least for name, target in targets.items()}


def _fuzz_all(targets, options: argparse.Namespace) -> int:
    from tests.fuzzing.judge import Limits, minimised, under

    started, done, findings = time.perf_counter(), 0, {}
    shares = _shares(targets, options.inputs, options.least)
    print("target                    inputs  accepted  seconds  slowest ms  findings", flush=True)
    with under(Limits()) as judged, _silence():
        for name, target in targets.items():
            begun, slowest, found, answers = time.perf_counter(), 0.0, {}, 0
            parse, tally = _counting(target.parse)
            number = 0
            for data in itertools.islice(target.inputs(options.seed), shares[name]):
                number += 1
                before = time.perf_counter()
                finding = judged(name, parse, data)
                slowest = max(slowest, time.perf_counter() - before)
                if finding is not None:
                    found.setdefault(finding.identity, finding)
                if before - begun > options.time:
                    break
            done, answers = done + number, tally[0]
            findings |= found
            _say(
                f"{name:24} {number:>8,} {answers / number:>8.0%} "
                f"{time.perf_counter() - begun:>8.1f} {slowest * 1e3:>11.1f} {len(found):>9}"
            )
            for finding in found.values():
                short = minimised(finding, lambda data, t=target: judged(t.name, t.parse, data))
                _report(finding, short, options.out)
    seconds = time.perf_counter() - started
    _say(f"{done:,} inputs to {len(targets)} targets in {seconds:,.0f} s: {len(findings)} findings")
    return min(len(findings), 1)


def _counting(parse):
    """Return the parser, and a tally of the inputs that it accepts."""
    tally = [0]

    def counted(data: bytes) -> None:
        parse(data)
        tally[0] += 1

    return counted, tally


def _report(finding, short: bytes, out: Path | None) -> None:
    _say(f"  {finding.kind} in {finding.target}: {finding.where}\n    {finding.detail}")
    _say(f"    {short[:300]!r}" + (f" ... ({len(short)} bytes)" if len(short) > 300 else ""))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        number = len(list(out.iterdir()))
        (out / f"{finding.target}.{number}").write_bytes(short)


# -- steered by coverage ------------------------------------------------------------------------


def _steer_all(names: list[str], options: argparse.Namespace) -> int:
    """Run libFuzzer on one target after the other: it ends its process, so each has its own."""
    failed = 0
    each = max(1, options.inputs // len(names))
    for name in names:
        command = [sys.executable, __file__, "--atheris-target", name, "--inputs", str(each)]
        command += ["--seed", str(options.seed), "--time", str(options.time)]
        command += ["--out", str(options.out)] if options.out else []
        failed |= subprocess.run(command, check=False).returncode  # noqa: S603 - ourselves
    return failed


def _steer(options: argparse.Namespace) -> None:
    import atheris

    with atheris.instrument_imports(include=["unsample"]):
        from tests.fuzzing.judge import Limits, judge  # noqa: F401
        from tests.fuzzing.targets import all_targets
    from tests.fuzzing.judge import under
    from tests.fuzzing.mutation import Mutator

    scratch = Path(tempfile.mkdtemp(prefix="unsample-fuzz-", dir=_MEMORY))
    target = all_targets(scratch)[options.atheris_target]
    corpus = scratch / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(seed)
    seen: set[tuple[str, str, str]] = set()
    stack = contextlib.ExitStack()
    judged = stack.enter_context(under(Limits(space=1 << 36)))

    def one_input(data: bytes) -> None:
        finding = judged(target.name, target.parse, data)
        if finding is not None and finding.identity not in seen:
            seen.add(finding.identity)
            _report(finding, data, options.out)

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        mutator = Mutator(Random(seed), target.seeds, target.tokens)  # noqa: S311 - no secret
        return target.changed(mutator, data)[:longest]

    limit = [] if options.time == float("inf") else [f"-max_total_time={options.time:.0f}"]
    arguments = [f"-runs={options.inputs}", f"-seed={options.seed + 1}", "-max_len=16384", *limit]
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], one_input, custom_mutator=mutate)
    atheris.Fuzz()


# -- what reaches the terminal ------------------------------------------------------------------

_terminal = os.dup(1)


def _say(text: str) -> None:
    os.write(_terminal, f"{text}\n".encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def _silence():
    """Keep what parsers and engines print themselves out of the figures."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


if __name__ == "__main__":
    sys.exit(main())
