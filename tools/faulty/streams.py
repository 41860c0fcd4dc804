"""Signals, closed and full streams, homes that are not there, terminals that can do little."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from faulty.disk import PAGE
from faulty.kills import damage, reference_of, subject_named
from faulty.world import Outcome, Process, Trial, World, can_be_powerless, clear_failure, leftovers

__all__ = ["homes", "signals", "streams", "terminals"]

_SIGNALS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal has gone",
}
_PLAN = PAGE[:-1]
_MOMENTS = 4


def signals(world: World) -> Iterator[Trial]:
    """Ask for an end at random moments: one line, its status, and nothing left behind."""
    world.site.pause = 0.03
    for name in ("evaluate", "reproduce", "reproduce with workers", "fetch"):
        subject = subject_named(name, world)
        reference = reference_of(subject, world)
        for number, reason in _SIGNALS.items():
            for _ in range(_MOMENTS):
                place = world.fresh()
                process = subject.run(world, place)
                _until_it_listens(process, number)
                time.sleep(float(world.rng.uniform(0, reference.seconds / 2)))
                # Ctrl-C reaches all processes of a terminal.
                process.send(number, group=number == signal.SIGINT)
                outcome = process.wait(60)
                problems = list(damage(subject, reference, place))
                if outcome.code != 0:  # it was done before
                    problems += clear_failure(outcome, code=128 + number, says=[reason])
                if leftovers(place):
                    problems.append(f"leaves {leftovers(place)}")
                if not _gone(process):
                    problems.append("a process lives on")
                title = f"{name}, {number.name}"
                yield Trial(title, tuple(problems), said=outcome.complaint)


def _until_it_listens(process: Process, number: int) -> None:
    """Wait until Python has started and the command handles the signal in its own way."""
    status = Path(f"/proc/{process.popen.pid}/status")
    ours = 1 << (signal.SIGTERM - 1)
    while process.popen.poll() is None:
        text = status.read_text()
        caught = int(text.partition("SigCgt:")[2].split()[0], 16)
        if caught & ours and caught & (1 << (number - 1)):
            return
        time.sleep(0.01)


def _gone(process: Process) -> bool:
    """Return whether no process of the session is alive after some seconds."""
    for _ in range(100):
        try:
            os.killpg(process.popen.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def streams(world: World) -> Iterator[Trial]:
    """Close, fill and break the standard streams."""
    for redirection in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        page = world.fresh() / "page.html"
        outcome = _shell(world, f'"$@" {redirection}', [*PAGE, page])
        problems = [] if outcome.code == 0 else [f"exit status {outcome.code}: {outcome.err}"]
        if not page.exists() or b"</html>" not in page.read_bytes()[-20:]:
            problems.append("the page is not whole")
        yield Trial(f"plan {redirection}", tuple(problems))
    ranks = world.fresh() / "ranks.csv"
    ranks.write_text("rank\n" + "3\n" * 200)
    estimate = ["estimate", "-", "--items", "100", "--sampled", "9", "--resamples", "0"]
    outcome = _shell(world, '"$@" <&-', estimate)
    yield _judged("estimate - with standard input closed", outcome, 2, ["standard input"])
    outcome = _shell(world, '"$@" >/dev/full', _PLAN)
    yield _judged("plan > /dev/full", outcome, 1, ["standard output", "No space left"])
    outcome = _shell(world, '"$@" 2>/dev/full', [*_PLAN, "-m", "NDCG@0"])
    yield Trial("an error with 2> /dev/full", () if outcome.code == 2 else (str(outcome),))
    outcome = _shell(world, '"$@" 2>/dev/full', [*estimate[:1], ranks, *estimate[2:]])
    whole = outcome.code == 0 and "Recall@10" in outcome.out
    yield Trial("warnings with 2> /dev/full", () if whole else (str(outcome),))
    for verb in (["datasets", "list"], _PLAN, ["--help"], ["doctor", "--quick"]):
        outcome = _shell(world, '{ "$@"; echo "status $?" >&2; } | true', verb)
        status = outcome.err.strip()
        right = status in ("status 141", "status 0") or (verb == ["--help"] and "1" in status)
        yield Trial(f"{verb[0]} | true", () if right else (outcome.err,), said=status)


def homes(world: World) -> Iterator[Trial]:
    """Have no home, no cache, or one that cannot be used."""
    fetch, plan = ["datasets", "fetch", "toy"], {"registry": world.site.registry()}
    away = {"HOME": None, "XDG_CACHE_HOME": None, "UNSAMPLE_CACHE": None}
    cwd = world.fresh()
    homeless = {**plan, "homeless": True}
    outcome = world.run(fetch, plan=homeless, env=away, cwd=cwd)
    yield _judged("fetch without a home", outcome, 2, ["no home", "UNSAMPLE_CACHE"])
    yield Trial("nothing called ~ is made", tuple(map(str, cwd.iterdir())))
    for verb in (["datasets", "list"], ["doctor", "--quick"]):
        outcome = world.run(verb, plan=homeless, env=away, cwd=cwd)
        yield _fine_or_clear(f"{verb[0]} without a home", outcome)
    for mode in (0o555, 0o000) if can_be_powerless() else ():
        cache = world.fresh()
        cache.chmod(mode)
        use = {"plan": plan, "env": {"UNSAMPLE_CACHE": str(cache)}, "powerless": True}
        outcome = world.run(fetch, **use)
        yield _judged(f"fetch into a cache of mode {mode:o}", outcome, 2, [str(cache)])
        outcome = world.run(["datasets", "list"], **use)
        yield _fine_or_clear(f"list with a cache of mode {mode:o}", outcome)
    for value in ("/proc/nowhere", "/dev/null/cache", "x" * 5000):
        outcome = world.run(fetch, plan=plan, env={"UNSAMPLE_CACHE": value})
        yield _judged(f"fetch into {value[:20]}", outcome, 2, [])
        outcome = world.run(fetch, plan=plan, env={"UNSAMPLE_DATA": value})
        yield _judged(f"fetch with data at {value[:20]}", outcome, 2, ["UNSAMPLE_DATA"])
    outcome = world.run(fetch, plan=plan, env={"UNSAMPLE_CACHE": "~nobody-of-that-name/x"})
    yield _judged("fetch into the home of nobody", outcome, 2, ["UNSAMPLE_CACHE"])


def terminals(world: World) -> Iterator[Trial]:
    """Speak to terminals that are narrow, dumb, or of another alphabet."""
    table = world.fresh() / "ranks.csv"
    rows = "".join(f"{name},{rank}\n" for name in ("☃", "é", "plain") for rank in range(1, 10))
    table.write_text("model,rank\n" + rows, encoding="utf-8")
    words = [
        "--items",
        "100",
        "--sampled",
        "9",
        "--by",
        "model",
        "--resamples",
        "0",
        "-m",
        "Recall@50",
    ]
    commands = {
        "estimate": ["estimate", table, *words],
        "help": ["evaluate", "--help"],
        "list": ["datasets", "list"],
        "bad usage": ["evaluate", "--dataset"],
        "error": ["plan", "--items", "1", "--users", "10"],
    }
    surroundings: dict[str, Mapping[str, str | None]] = {
        "the C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "POSIX": {"LC_ALL": "POSIX", "LANG": None},
        "latin-1": {"PYTHONIOENCODING": "latin-1"},
        "ascii": {"PYTHONIOENCODING": "ascii"},
        "20 columns": {"COLUMNS": "20"},
        "1 column": {"COLUMNS": "1"},
        "TERM=dumb": {"TERM": "dumb"},
        "no TERM": {"TERM": None},
    }
    for name, command in commands.items():
        code = {"bad usage": 2, "error": 2}.get(name, 0)
        for where, env in surroundings.items():
            outcome = world.run(command, env=env)
            yield _untroubled(f"{name}, {where}", outcome, code)
        outcome = _on_a_terminal(world, command, columns=20)
        yield _untroubled(f"{name}, on a terminal of 20 columns", outcome, code)


def _untroubled(name: str, outcome: Outcome, code: int) -> Trial:
    problems = []
    if outcome.code != code:
        problems.append(f"exit status {outcome.code} instead of {code}: {outcome.err[-300:]}")
    if "Traceback" in outcome.err + outcome.out or "Error:" in outcome.err:
        problems.append(f"a traceback: {outcome.err[-300:]}")
    return Trial(name, tuple(problems))


def _fine_or_clear(name: str, outcome: Outcome) -> Trial:
    problems = tuple(clear_failure(outcome, code=2)) if outcome.code else ()
    return Trial(name, problems, said=outcome.complaint)


def _judged(name: str, outcome: Outcome, code: int, says: Sequence[str]) -> Trial:
    problems = tuple(clear_failure(outcome, code=code, says=says))
    return Trial(name, problems, said=outcome.complaint)


def _shell(world: World, script: str, arguments: Sequence[str | Path]) -> Outcome:
    """Run the command by a line of shell, in which it is called ``"$@"``."""
    words = [sys.executable, "-m", "unsample", *map(str, arguments)]
    started = time.monotonic()
    done = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", script, "sh", *words],
        capture_output=True,
        text=True,
        env=world.environment({}),
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - started)


def _on_a_terminal(world: World, arguments: Sequence[str | Path], columns: int) -> Outcome:
    """Run the command on a terminal; what it shows is its output and its errors alike."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    started = time.monotonic()
    popen = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "unsample", *map(str, arguments)],
        stdin=its,
        stdout=its,
        stderr=its,
        env=world.environment({"TERM": "xterm"}),
    )
    os.close(its)
    shown = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    code = popen.wait(60)
    return Outcome(code, shown.decode(errors="replace"), "", time.monotonic() - started)
